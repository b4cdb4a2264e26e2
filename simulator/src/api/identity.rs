//! Who a device is.

use nvml_wrapper_sys::bindings::{nvmlPciInfo_t, nvmlPciInfoExt_t};

use crate::call::{device_api, device_getters};
use crate::code::{Answer, INVALID_ARGUMENT, NOT_SUPPORTED};
use crate::device::Device;
use crate::ffi::{Out, Text, chars, struct_version};
use crate::model::Inforom;
use crate::setting::Key;

use super::nvlink::PciInfoV2;

/// PCI information in the form of today.
pub(super) fn pci_info(device: &Device<'_>) -> nvmlPciInfo_t {
    let [domain, bus, slot] = device.gpu.id.pci;
    nvmlPciInfo_t {
        busIdLegacy: chars(&format!("{:04X}:{bus:02X}:{slot:02X}.0", domain & 0xffff)),
        domain,
        bus,
        device: slot,
        pciDeviceId: device.model.pci_device_id,
        pciSubSystemId: device.model.pci_subsystem_id,
        busId: chars(&device.gpu.bus_id()),
    }
}

/// The oldest form of the PCI information.
#[repr(C)]
#[derive(Clone, Copy)]
struct PciInfoV1 {
    bus_id: [std::ffi::c_char; 16],
    numbers: [u32; 4],
}

fn inforom<'a>(device: &Device<'a>) -> Answer<&'a Inforom> {
    device.model.inforom.as_ref().ok_or(NOT_SUPPORTED)
}

device_api! {
    Any nvmlDeviceGetName(device, name: Text, length: u32) { name.put(length, &device.name()) }

    Any nvmlDeviceGetUUID(device, uuid: Text, length: u32) { uuid.put(length, &device.uuid()) }

    Gpu nvmlDeviceGetSerial(device, serial: Text, length: u32) {
        if !device.model.serial {
            return Err(NOT_SUPPORTED);
        }
        serial.put(length, &device.gpu.id.serial.to_string())
    }

    Gpu nvmlDeviceGetVbiosVersion(device, version: Text, length: u32) {
        version.put(length, &device.model.vbios)
    }

    Gpu nvmlDeviceGetBoardPartNumber(device, number: Text, length: u32) {
        number.put(length, device.model.part_number.as_deref().ok_or(NOT_SUPPORTED)?)
    }

    Gpu nvmlDeviceGetInforomImageVersion(device, version: Text, length: u32) {
        version.put(length, &inforom(device)?.image)
    }

    Gpu nvmlDeviceGetInforomVersion(device, object: u32, version: Text, length: u32) {
        let inforom = inforom(device)?;
        let object = match object {
            0 => Some(&inforom.oem),
            1 => inforom.ecc.as_ref(),
            2 => inforom.power.as_ref(),
            3 => None,
            _ => return Err(INVALID_ARGUMENT),
        };
        version.put(length, object.filter(|o| *o != "N/A").ok_or(NOT_SUPPORTED)?)
    }

    Gpu nvmlDeviceGetInforomConfigurationChecksum(device, checksum: Out<u32>) {
        inforom(device)?;
        checksum.put(u32::try_from(device.gpu.id.seed >> 32).unwrap_or(0))
    }

    Gpu nvmlDeviceValidateInforom(device) {
        inforom(device)?;
        if device.setting(Key::InforomValid, || 1.0) > 0.0 {
            Ok(())
        } else {
            Err(crate::code::CORRUPTED_INFOROM)
        }
    }

    Any nvmlDeviceGetPciInfo_v3(device, pci: Out<nvmlPciInfo_t>) { pci.put(pci_info(device)) }

    Any nvmlDeviceGetPciInfo_v2(device, pci: Out<PciInfoV2>) {
        pci.put(PciInfoV2::new(device.gpu.id.pci, device.model.pci_device_id, device.model.pci_subsystem_id))
    }

    Any nvmlDeviceGetPciInfo(device, pci: Out<PciInfoV1>) {
        let [domain, bus, slot] = device.gpu.id.pci;
        let bus_id = chars(&format!("{:04X}:{bus:02X}:{slot:02X}.0", domain & 0xffff));
        pci.put(PciInfoV1 { bus_id, numbers: [domain, bus, slot, device.model.pci_device_id] })
    }

    Gpu nvmlDeviceGetPciInfoExt(device, pci: Out<nvmlPciInfoExt_t>) {
        pci.expect_version(1)?;
        let [domain, bus, slot] = device.gpu.id.pci;
        pci.put(nvmlPciInfoExt_t {
            version: struct_version::<nvmlPciInfoExt_t>(1),
            domain,
            bus,
            device: slot,
            pciDeviceId: device.model.pci_device_id,
            pciSubSystemId: device.model.pci_subsystem_id,
            baseClass: 3,
            subClass: if device.model.display { 0 } else { 2 },
            busId: chars(&device.gpu.bus_id()),
        })
    }

    Any nvmlDeviceGetCudaComputeCapability(device, major: Out<i32>, minor: Out<i32>) {
        let [high, low] = device.model.compute_capability;
        major.put(high)?;
        minor.put(low)
    }
}

device_getters! {
    Any nvmlDeviceGetBrand: u32 = |device| device.model.brand;
    Any nvmlDeviceGetArchitecture: u32 = |device| device.model.architecture;
    Gpu nvmlDeviceGetMinorNumber: u32 = |device| device.gpu.id.minor;
    Gpu nvmlDeviceGetBoardId: u32 = |device| device.gpu.id.pci[0] << 16 | device.gpu.id.pci[1] << 8;
    Gpu nvmlDeviceGetMultiGpuBoard: u32 = |_device| 0;
    WholeGpu nvmlDeviceGetNumGpuCores: u32 = |device| device.model.cores;
    Gpu nvmlDeviceGetMemoryBusWidth: u32 = |device| device.model.memory.bus_bits;
    Gpu nvmlDeviceGetBusType: u32 = |_device| 2;
    Gpu nvmlDeviceGetIrqNum: u32 = |device| 64 + device.gpu.id.minor;
    Gpu nvmlDeviceGetModuleId: u32 = |device| {
        // Cards in slots have no place on a baseboard.
        let baseboard = device.model.nvlink.as_ref().is_some_and(|n| n.switch);
        if baseboard { 1 + (device.gpu.id.minor ^ 2) % 16 } else { 0 }
    };
}
