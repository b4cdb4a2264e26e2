//! The catalogue's arguments as NVML's.

use nvml_wrapper::enum_wrappers::device as wrapped;
use nvml_wrapper_sys::bindings as sys;

use crate::catalogue::call::{Clock, EccCounter, EccError, EccLocation, LinkError, Threshold};

pub(super) fn clock_type(clock: Clock) -> wrapped::Clock {
    match clock {
        Clock::Graphics => wrapped::Clock::Graphics,
        Clock::Sm => wrapped::Clock::SM,
        Clock::Memory => wrapped::Clock::Memory,
        Clock::Video => wrapped::Clock::Video,
    }
}

pub(super) fn threshold_type(threshold: Threshold) -> wrapped::TemperatureThreshold {
    match threshold {
        Threshold::Shutdown => wrapped::TemperatureThreshold::Shutdown,
        Threshold::Slowdown => wrapped::TemperatureThreshold::Slowdown,
        Threshold::MemoryMax => wrapped::TemperatureThreshold::MemoryMax,
        Threshold::GpuMax => wrapped::TemperatureThreshold::GpuMax,
    }
}

pub(super) fn error_type(error: EccError) -> wrapped::MemoryError {
    match error {
        EccError::Corrected => wrapped::MemoryError::Corrected,
        EccError::Uncorrected => wrapped::MemoryError::Uncorrected,
    }
}

pub(super) fn counter_type(counter: EccCounter) -> wrapped::EccCounter {
    match counter {
        EccCounter::Volatile => wrapped::EccCounter::Volatile,
        EccCounter::Aggregate => wrapped::EccCounter::Aggregate,
    }
}

pub(super) fn location_type(location: EccLocation) -> wrapped::MemoryLocation {
    match location {
        EccLocation::L1 => wrapped::MemoryLocation::L1Cache,
        EccLocation::L2 => wrapped::MemoryLocation::L2Cache,
        EccLocation::Device => wrapped::MemoryLocation::Device,
        EccLocation::Register => wrapped::MemoryLocation::RegisterFile,
        EccLocation::Texture => wrapped::MemoryLocation::Texture,
        EccLocation::Shared => wrapped::MemoryLocation::Shared,
        EccLocation::Cbu => wrapped::MemoryLocation::Cbu,
        EccLocation::Sram => wrapped::MemoryLocation::SRAM,
    }
}

pub(super) fn link_error_type(error: LinkError) -> u32 {
    match error {
        LinkError::Replay => sys::nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_REPLAY,
        LinkError::Recovery => sys::nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_RECOVERY,
        LinkError::CrcFlit => sys::nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_CRC_FLIT,
        LinkError::CrcData => sys::nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_CRC_DATA,
    }
}
