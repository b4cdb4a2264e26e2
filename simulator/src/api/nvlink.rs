//! `NVLink`.

use nvml_wrapper_sys::bindings::nvmlPciInfo_t;

use crate::call::device_api;
use crate::code::{Answer, INVALID_ARGUMENT, NOT_SUPPORTED};
use crate::device::Device;
use crate::ffi::{Out, chars};
use crate::setting::Key;

/// `NVML_NVLINK_VERSION_2_2`, the last with counters of its own beside the field values.
const LAST_WITH_COUNTERS: u32 = 3;

/// Refuses links that the board does not have.
pub(super) fn check(device: &Device<'_>, link: u32) -> Answer {
    if link < device.nvlink()?.links { Ok(()) } else { Err(INVALID_ARGUMENT) }
}

/// The key of an `nvmlNvLinkErrorCounter_t`.
fn error_key(counter: u32) -> Answer<Key> {
    match counter {
        0 => Ok(Key::LinkReplay),
        1 => Ok(Key::LinkRecovery),
        2 => Ok(Key::LinkCrcFlit),
        3 => Ok(Key::LinkCrcData),
        4 => Ok(Key::LinkEcc),
        _ => Err(INVALID_ARGUMENT),
    }
}

/// Domain, bus, device and PCI id of what is at the other end.
fn remote(device: &Device<'_>, link: u32) -> Answer<([u32; 3], u32)> {
    check(device, link)?;
    if !device.link_up(link) {
        return Err(NOT_SUPPORTED);
    }
    if device.nvlink()?.switch {
        // Links go round the switches of the baseboard.
        return Ok(([0, 0x05 + link % 4, 0], 0x22A3_10DE));
    }
    let peers: Vec<_> = device
        .world
        .attached()
        .filter(|g| g.number != device.gpu.number && g.model == device.gpu.model)
        .collect();
    let peer = peers.get(link as usize % peers.len().max(1)).ok_or(NOT_SUPPORTED)?;
    Ok((peer.id.pci, device.model.pci_device_id))
}

/// The part of the PCI information that the oldest version of the struct has too.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct PciInfoV2 {
    bus_id: [std::ffi::c_char; 16],
    numbers: [u32; 5],
}

impl PciInfoV2 {
    pub(super) fn new([domain, bus, slot]: [u32; 3], device_id: u32, subsystem: u32) -> Self {
        let bus_id = chars(&format!("{:04X}:{bus:02X}:{slot:02X}.0", domain & 0xffff));
        Self { bus_id, numbers: [domain, bus, slot, device_id, subsystem] }
    }
}

device_api! {
    Gpu nvmlDeviceGetNvLinkState(device, link: u32, active: Out<u32>) {
        check(device, link)?;
        active.put(u32::from(device.link_up(link)))
    }

    Gpu nvmlDeviceGetNvLinkVersion(device, link: u32, version: Out<u32>) {
        check(device, link)?;
        version.put(device.nvlink()?.version)
    }

    Gpu nvmlDeviceGetNvLinkCapability(device, link: u32, capability: u32, result: Out<u32>) {
        check(device, link)?;
        result.put(match capability {
            0 | 2 | 5 => 1,
            1 | 3 | 4 => 0,
            _ => return Err(INVALID_ARGUMENT),
        })
    }

    Gpu nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link: u32, pci: Out<nvmlPciInfo_t>) {
        let ([domain, bus, slot], id) = remote(device, link)?;
        pci.put(nvmlPciInfo_t {
            busIdLegacy: chars(&format!("{:04X}:{bus:02X}:{slot:02X}.0", domain & 0xffff)),
            domain,
            bus,
            device: slot,
            pciDeviceId: id,
            pciSubSystemId: 0,
            busId: chars(&format!("{domain:08X}:{bus:02X}:{slot:02X}.0")),
        })
    }

    Gpu nvmlDeviceGetNvLinkRemotePciInfo(device, link: u32, pci: Out<PciInfoV2>) {
        let (at, id) = remote(device, link)?;
        pci.put(PciInfoV2::new(at, id, 0))
    }

    Gpu nvmlDeviceGetNvLinkRemoteDeviceType(device, link: u32, kind: Out<u32>) {
        remote(device, link)?;
        kind.put(if device.nvlink()?.switch { 2 } else { 0 })
    }

    Gpu nvmlDeviceGetNvLinkErrorCounter(device, link: u32, counter: u32, value: Out<u64>) {
        check(device, link)?;
        value.put(device.link_errors(link, error_key(counter)?))
    }

    Gpu nvmlDeviceGetNvLinkUtilizationCounter(
        device, link: u32, counter: u32, received: Out<u64>, sent: Out<u64>,
    ) {
        check(device, link)?;
        if counter > 1 {
            return Err(INVALID_ARGUMENT);
        }
        if device.nvlink()?.version > LAST_WITH_COUNTERS {
            return Err(NOT_SUPPORTED);
        }
        let (tx, rx) = device.link_bytes(link);
        received.put(rx)?;
        sent.put(tx)
    }
}
