//! Which GPUs there are, and who they are.

use nvml_wrapper::Device;

use super::code::Code;
use super::facts::{self, FactValue};
use super::library::Session;
use super::raw::{Handle, nvml_call};
use crate::catalogue::Fact;
use crate::sampler::snapshot::GpuIdentity;

/// The facts of `nvml_device_info`, by label.
const INFO: &[(&str, Fact)] = &[
    ("architecture", Fact::Architecture),
    ("board_part_number", Fact::BoardPartNumber),
    ("brand", Fact::Brand),
    ("cuda_compute_capability", Fact::CudaComputeCapability),
    ("inforom_image_version", Fact::InforomImage),
    ("serial", Fact::Serial),
    ("vbios_version", Fact::Vbios),
];

/// One enumerated GPU.
#[derive(Debug, Clone)]
pub struct Found {
    /// The handle of this session; `None` when NVML refused it, with the code in `refused`.
    pub handle: Option<Handle>,
    /// Why there is no handle.
    pub refused: Option<Code>,
    /// NVML's index now, and what the GPU says of itself.
    pub identity: GpuIdentity,
}

impl Found {
    /// A GPU of which only the index is known.
    #[must_use]
    pub fn refused(index: u32, code: Code) -> Self {
        let identity = GpuIdentity { index, ..GpuIdentity::default() };
        Self { handle: None, refused: Some(code), identity }
    }
}

/// How many GPUs there are, including those that may not be opened (`nvmlDeviceGetCount_v2`).
pub fn count(session: &Session) -> Result<u32, Code> {
    session.nvml().device_count().map_err(Code::from)
}

/// The GPU of an index. One that cannot be opened or identified is listed with the reason.
/// Blocks for as long as the driver does.
#[must_use]
pub fn look_up(session: &Session, index: u32) -> Found {
    match open(session, index) {
        Ok((handle, identity)) => Found { handle: Some(handle), refused: None, identity },
        Err(code) => Found::refused(index, code),
    }
}

fn open(session: &Session, index: u32) -> Result<(Handle, GpuIdentity), Code> {
    let mut raw = std::ptr::null_mut();
    nvml_call!(session.nvml(), nvmlDeviceGetHandleByIndex_v2(index, &raw mut raw))?;
    let handle = Handle(raw);
    // SAFETY: NVML has just given the handle.
    let device = unsafe { Device::new(raw, session.nvml()) };
    let uuid = device.uuid()?;
    Ok((
        handle,
        GpuIdentity {
            index,
            uuid,
            pci_bus_id: facts::pci(session, handle).map(|pci| pci.bus_id).unwrap_or_default(),
            model: device.name().unwrap_or_default(),
            minor: device.minor_number().ok(),
            info: INFO
                .iter()
                .filter_map(|(label, fact)| info(session, handle, label, *fact))
                .collect(),
        },
    ))
}

fn info(
    session: &Session,
    handle: Handle,
    label: &'static str,
    fact: Fact,
) -> Option<(&'static str, String)> {
    let value = match (fact, facts::read(session, handle, fact).ok()?) {
        (Fact::CudaComputeCapability, FactValue::Number(number)) => {
            format!("{}.{}", number >> 16, number & 0xffff)
        }
        (_, FactValue::Number(number)) => number.to_string(),
        (_, FactValue::Text(text)) => text,
    };
    Some((label, value))
}
