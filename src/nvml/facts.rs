//! Facts that do not change while the driver stays loaded.

use std::fmt::Write as _;

use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::InfoRom;
use nvml_wrapper_sys::bindings as sys;

use super::calls::{fabric_info, platform};
use super::code::Code;
use super::library::Session;
use super::raw::{Handle, nvml_call, text, zeroed};
use crate::catalogue::Fact;

/// A fact's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FactValue {
    /// Text, never empty.
    Text(String),
    /// A number in NVML's own form.
    Number(i64),
}

/// `nvmlBrandType_t`, as DCGM words it; data centre boards since A100 say plain NVIDIA.
const BRANDS: &[&str] = &[
    "Unknown",
    "Quadro",
    "Tesla",
    "NVS",
    "Grid",
    "GeForce",
    "Titan",
    "NVIDIA Virtual Applications",
    "NVIDIA Virtual PC",
    "NVIDIA Virtual Compute Server",
    "NVIDIA RTX Virtual Workstation",
    "NVIDIA vGaming",
    "Quadro RTX",
    "NVIDIA RTX",
    "NVIDIA",
    "GeForce RTX",
    "Titan RTX",
];

/// `nvmlDeviceArchitecture_t`; the index is NVML's number.
const ARCHITECTURES: &[&str] = &[
    "",
    "",
    "kepler",
    "maxwell",
    "pascal",
    "volta",
    "turing",
    "ampere",
    "ada",
    "hopper",
    "blackwell",
];

/// Reads one fact.
pub(super) fn read(session: &Session, handle: Handle, fact: Fact) -> Result<FactValue, Code> {
    // SAFETY: the handle is this session's; NVML itself refuses one whose device is gone.
    let device = unsafe { Device::new(handle.0, session.nvml()) };
    let value = match fact {
        Fact::DriverVersion => FactValue::Text(session.facts.driver_version.clone()),
        Fact::NvmlVersion => FactValue::Text(session.facts.nvml_version.clone()),
        Fact::CudaDriverVersion => {
            FactValue::Number(session.nvml().sys_cuda_driver_version()?.into())
        }
        Fact::Name => FactValue::Text(device.name()?),
        Fact::Serial => FactValue::Text(device.serial()?),
        Fact::Uuid => FactValue::Text(device.uuid()?),
        Fact::Vbios => FactValue::Text(device.vbios_version()?),
        Fact::BoardPartNumber => FactValue::Text(device.board_part_number()?),
        Fact::InforomOem => FactValue::Text(device.info_rom_version(InfoRom::OEM)?),
        Fact::InforomEcc => FactValue::Text(device.info_rom_version(InfoRom::ECC)?),
        Fact::InforomPower => FactValue::Text(device.info_rom_version(InfoRom::Power)?),
        Fact::InforomImage => FactValue::Text(device.info_rom_image_version()?),
        Fact::InforomChecksum => FactValue::Number(device.config_checksum()?.into()),
        Fact::InforomValid => match device.validate_info_rom().map_err(Code::from) {
            Ok(()) => FactValue::Number(1),
            Err(Code::CORRUPTED_INFOROM) => FactValue::Number(0),
            Err(code) => return Err(code),
        },
        Fact::NvmlIndex => FactValue::Number(device.index()?.into()),
        Fact::MinorNumber => FactValue::Number(device.minor_number()?.into()),
        Fact::CudaComputeCapability => {
            let version = device.cuda_compute_capability()?;
            FactValue::Number((i64::from(version.major) << 16) | i64::from(version.minor))
        }
        Fact::Brand => FactValue::Text(brand(session, handle)?),
        Fact::Architecture => FactValue::Text(architecture(session, handle)?),
        Fact::PciBusId => FactValue::Text(pci(session, handle)?.bus_id),
        Fact::PciCombinedId => FactValue::Number(pci(session, handle)?.device.into()),
        Fact::PciSubsystemId => FactValue::Number(pci(session, handle)?.subsystem.into()),
        Fact::FabricClusterUuid => FactValue::Text(cluster_uuid(session, handle)?),
        Fact::ChassisSerialNumber => {
            let serial = platform(session, handle.0)?.chassisSerialNumber;
            FactValue::Text(text(&serial.map(u8::cast_signed)))
        }
        Fact::InfinibandGuid => {
            let guid = platform(session, handle.0)?.ibGuid;
            if guid == [0; 16] {
                return Err(Code::NOT_SUPPORTED);
            }
            FactValue::Text(hex(&guid))
        }
    };
    match value {
        FactValue::Text(text) if text.trim().is_empty() => Err(Code::NOT_SUPPORTED),
        value => Ok(value),
    }
}

/// Where a GPU sits on the PCI bus.
pub(super) struct Pci {
    /// `00000000:1B:00.0`: eight digits of domain, upper case, as DCGM writes it.
    pub(super) bus_id: String,
    /// Device id << 16 | vendor id.
    pub(super) device: u32,
    /// Subsystem device id << 16 | subsystem vendor id.
    pub(super) subsystem: u32,
}

pub(super) fn pci(session: &Session, handle: Handle) -> Result<Pci, Code> {
    let mut info: sys::nvmlPciInfo_st = zeroed();
    nvml_call!(session.nvml(), nvmlDeviceGetPciInfo_v3(handle.0, &raw mut info))?;
    Ok(Pci {
        bus_id: text(&info.busId).to_uppercase(),
        device: info.pciDeviceId,
        subsystem: info.pciSubSystemId,
    })
}

/// Through the symbol table: the wrapper refuses brands newer than itself.
fn brand(session: &Session, handle: Handle) -> Result<String, Code> {
    let mut brand = 0;
    nvml_call!(session.nvml(), nvmlDeviceGetBrand(handle.0, &raw mut brand))?;
    let name = usize::try_from(brand).ok().and_then(|index| BRANDS.get(index));
    Ok(name.map_or_else(|| format!("Unknown({brand})"), ToString::to_string))
}

fn architecture(session: &Session, handle: Handle) -> Result<String, Code> {
    let mut number = 0;
    nvml_call!(session.nvml(), nvmlDeviceGetArchitecture(handle.0, &raw mut number))?;
    let name = usize::try_from(number).ok().and_then(|index| ARCHITECTURES.get(index));
    Ok(name
        .filter(|name| !name.is_empty())
        .map_or_else(|| format!("unknown({number})"), ToString::to_string))
}

/// 16 bytes in the form 8-4-4-4-12; all zero means that the GPU has joined no cluster.
fn cluster_uuid(session: &Session, handle: Handle) -> Result<String, Code> {
    let bytes = fabric_info(session, handle.0)?.cluster;
    if bytes == [0; 16] {
        return Err(Code::NOT_SUPPORTED);
    }
    let hex = hex(&bytes);
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Ok(parts.join("-"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
