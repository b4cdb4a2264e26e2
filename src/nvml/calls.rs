//! Executes one [`Call`] on one handle: a call in, numbers in NVML's units out.

use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device as wrapped;
use nvml_wrapper_sys::bindings as sys;

use super::code::Code;
use super::library::Session;
use super::raw::{Handle, nvml_call, version_of, zeroed};
use crate::catalogue::call::{
    Clock, EccCounter, EccError, EccLocation, LinkError, RetirementCause, SLOTS, Threshold,
};
use crate::catalogue::{Call, Number, Numbers};

/// What a call gives.
pub type Answer = Result<Numbers, Code>;

/// `NVML_GRID_LICENSE_FEATURE_CODE_VGPU`.
const FEATURE_VGPU: u32 = 1;

/// Makes the call. Blocks for as long as the driver does.
pub fn execute(session: &Session, handle: Handle, call: Call) -> Answer {
    // SAFETY: the handle is this session's; NVML itself refuses one whose device is gone.
    let device = unsafe { Device::new(handle.0, session.nvml()) };
    simple(&device, call).unwrap_or_else(|| raw(session, handle.0, call))
}

/// The NVML function behind a call, as error metrics name it.
#[must_use]
pub fn name(call: Call) -> &'static str {
    match call {
        Call::DeviceCount => "nvmlDeviceGetCount_v2",
        Call::ClockInfo(_) => "nvmlDeviceGetClockInfo",
        Call::MaxClockInfo(_) => "nvmlDeviceGetMaxClockInfo",
        Call::ApplicationsClock(_) => "nvmlDeviceGetApplicationsClock",
        Call::Temperature => "nvmlDeviceGetTemperature",
        Call::TemperatureThreshold(_) => "nvmlDeviceGetTemperatureThreshold",
        Call::MarginTemperature => "nvmlDeviceGetMarginTemperature",
        Call::PowerUsage => "nvmlDeviceGetPowerUsage",
        Call::PowerManagementLimit => "nvmlDeviceGetPowerManagementLimit",
        Call::PowerManagementLimitConstraints => "nvmlDeviceGetPowerManagementLimitConstraints",
        Call::PowerManagementDefaultLimit => "nvmlDeviceGetPowerManagementDefaultLimit",
        Call::EnforcedPowerLimit => "nvmlDeviceGetEnforcedPowerLimit",
        Call::PerformanceState => "nvmlDeviceGetPerformanceState",
        Call::FanSpeed => "nvmlDeviceGetFanSpeed",
        Call::UtilizationRates => "nvmlDeviceGetUtilizationRates",
        Call::EncoderUtilization => "nvmlDeviceGetEncoderUtilization",
        Call::DecoderUtilization => "nvmlDeviceGetDecoderUtilization",
        Call::JpgUtilization => "nvmlDeviceGetJpgUtilization",
        Call::OfaUtilization => "nvmlDeviceGetOfaUtilization",
        Call::MemoryInfo => "nvmlDeviceGetMemoryInfo",
        Call::Bar1MemoryInfo => "nvmlDeviceGetBAR1MemoryInfo",
        Call::PcieReplayCounter => "nvmlDeviceGetPcieReplayCounter",
        Call::MaxPcieLinkGeneration => "nvmlDeviceGetMaxPcieLinkGeneration",
        Call::MaxPcieLinkWidth => "nvmlDeviceGetMaxPcieLinkWidth",
        Call::CurrPcieLinkGeneration => "nvmlDeviceGetCurrPcieLinkGeneration",
        Call::CurrPcieLinkWidth => "nvmlDeviceGetCurrPcieLinkWidth",
        Call::MemoryErrorCounter(..) => "nvmlDeviceGetMemoryErrorCounter",
        Call::TotalEccErrors(..) => "nvmlDeviceGetTotalEccErrors",
        Call::EccMode => "nvmlDeviceGetEccMode",
        Call::SramEccErrorStatus => "nvmlDeviceGetSramEccErrorStatus",
        Call::RowRemapperHistogram => "nvmlDeviceGetRowRemapperHistogram",
        Call::RetiredPages(_) => "nvmlDeviceGetRetiredPages",
        Call::NvLinkErrorCounter(..) => "nvmlDeviceGetNvLinkErrorCounter",
        Call::FabricInfo => "nvmlDeviceGetGpuFabricInfoV",
        Call::ComputeMode => "nvmlDeviceGetComputeMode",
        Call::PersistenceMode => "nvmlDeviceGetPersistenceMode",
        Call::MigMode => "nvmlDeviceGetMigMode",
        Call::ClocksEventReasons => "nvmlDeviceGetCurrentClocksEventReasons",
        Call::VirtualizationMode => "nvmlDeviceGetVirtualizationMode",
        Call::GridLicensed => "nvmlDeviceGetGridLicensableFeatures_v4",
        Call::AutoBoostedClocks => "nvmlDeviceGetAutoBoostedClocksEnabled",
        Call::EncoderStats => "nvmlDeviceGetEncoderStats",
        Call::FbcStats => "nvmlDeviceGetFBCStats",
        Call::ComputeProcesses => "nvmlDeviceGetComputeRunningProcesses",
        Call::GraphicsProcesses => "nvmlDeviceGetGraphicsRunningProcesses",
        Call::MpsProcesses => "nvmlDeviceGetMPSComputeRunningProcesses",
        Call::GpmSupport => "nvmlGpmQueryDeviceSupport",
        Call::ConfComputeState => "nvmlSystemGetConfComputeState",
        Call::PlatformInfo => "nvmlDeviceGetPlatformInfo",
    }
}

fn one(value: impl Into<i64>) -> Numbers {
    numbers([Some(value.into())])
}

fn pair(first: impl Into<i64>, second: impl Into<i64>) -> Numbers {
    numbers([Some(first.into()), Some(second.into())])
}

fn numbers<const N: usize>(values: [Option<i64>; N]) -> Numbers {
    let mut all = [None; SLOTS];
    for (slot, value) in all.iter_mut().zip(values) {
        *slot = value.map(Number::Int);
    }
    all
}

fn number(value: u64) -> Number {
    i64::try_from(value).map_or(Number::Uint(value), Number::Int)
}

fn unsigned<const N: usize>(values: [u64; N]) -> Numbers {
    let mut all = [None; SLOTS];
    for (slot, value) in all.iter_mut().zip(values) {
        *slot = Some(number(value));
    }
    all
}

/// The calls that nvml-wrapper has right; `None` for the others.
fn simple(device: &Device<'_>, call: Call) -> Option<Answer> {
    let answer = match call {
        Call::ClockInfo(clock) => device.clock_info(clock_type(clock)).map(one),
        Call::MaxClockInfo(clock) => device.max_clock_info(clock_type(clock)).map(one),
        Call::ApplicationsClock(clock) => device.applications_clock(clock_type(clock)).map(one),
        Call::Temperature => device.temperature(wrapped::TemperatureSensor::Gpu).map(one),
        Call::TemperatureThreshold(threshold) => {
            device.temperature_threshold(threshold_type(threshold)).map(one)
        }
        Call::PowerUsage => device.power_usage().map(one),
        Call::PowerManagementLimit => device.power_management_limit().map(one),
        Call::PowerManagementLimitConstraints => device
            .power_management_limit_constraints()
            .map(|limits| pair(limits.min_limit, limits.max_limit)),
        Call::PowerManagementDefaultLimit => device.power_management_limit_default().map(one),
        Call::EnforcedPowerLimit => device.enforced_power_limit().map(one),
        Call::UtilizationRates => {
            device.utilization_rates().map(|rates| pair(rates.gpu, rates.memory))
        }
        Call::EncoderUtilization => device.encoder_utilization().map(|used| one(used.utilization)),
        Call::DecoderUtilization => device.decoder_utilization().map(|used| one(used.utilization)),
        Call::Bar1MemoryInfo => {
            device.bar1_memory_info().map(|bar1| unsigned([bar1.total, bar1.free, bar1.used]))
        }
        Call::PcieReplayCounter => device.pcie_replay_counter().map(one),
        Call::MaxPcieLinkGeneration => device.max_pcie_link_gen().map(one),
        Call::MaxPcieLinkWidth => device.max_pcie_link_width().map(one),
        Call::CurrPcieLinkGeneration => device.current_pcie_link_gen().map(one),
        Call::CurrPcieLinkWidth => device.current_pcie_link_width().map(one),
        Call::MemoryErrorCounter(error, counter, location) => device
            .memory_error_counter(error_type(error), counter_type(counter), location_type(location))
            .map(|count| unsigned([count])),
        Call::TotalEccErrors(error, counter) => device
            .total_ecc_errors(error_type(error), counter_type(counter))
            .map(|count| unsigned([count])),
        Call::EccMode => {
            device.is_ecc_enabled().map(|mode| pair(mode.currently_enabled, mode.pending_enabled))
        }
        Call::PersistenceMode => device.is_in_persistent_mode().map(one),
        Call::MigMode => device.mig_mode().map(|mode| pair(mode.current, mode.pending)),
        Call::AutoBoostedClocks => {
            device.auto_boosted_clocks_enabled().map(|boost| one(boost.is_enabled))
        }
        Call::EncoderStats => device.encoder_stats().map(|stats| {
            unsigned([
                stats.session_count.into(),
                stats.average_fps.into(),
                stats.average_latency.into(),
            ])
        }),
        Call::FbcStats => device.fbc_stats().map(|stats| {
            unsigned([
                stats.sessions_count.into(),
                stats.average_fps.into(),
                stats.average_latency.into(),
            ])
        }),
        Call::GpmSupport => device.gpm_support().map(one),
        _ => return None,
    };
    Some(answer.map_err(Code::from))
}

/// The calls made through the symbol table.
fn raw(session: &Session, device: sys::nvmlDevice_t, call: Call) -> Answer {
    let nvml = session.nvml();
    match call {
        Call::DeviceCount => {
            let mut count = 0;
            nvml_call!(nvml, nvmlDeviceGetCount_v2(&raw mut count)).map(|()| one(count))
        }
        Call::MarginTemperature => {
            let mut margin: sys::nvmlMarginTemperature_v1_t = zeroed();
            margin.version = version_of::<sys::nvmlMarginTemperature_v1_t>(1);
            nvml_call!(nvml, nvmlDeviceGetMarginTemperature(device, &raw mut margin))
                .map(|()| one(margin.marginTemperature))
        }
        Call::PerformanceState => {
            let mut state = 0;
            nvml_call!(nvml, nvmlDeviceGetPerformanceState(device, &raw mut state))
                .map(|()| one(state))
        }
        Call::FanSpeed => {
            let mut percent = 0;
            nvml_call!(nvml, nvmlDeviceGetFanSpeed(device, &raw mut percent)).map(|()| one(percent))
        }
        Call::JpgUtilization => {
            let (mut percent, mut period) = (0, 0);
            nvml_call!(nvml, nvmlDeviceGetJpgUtilization(device, &raw mut percent, &raw mut period))
                .map(|()| one(percent))
        }
        Call::OfaUtilization => {
            let (mut percent, mut period) = (0, 0);
            nvml_call!(nvml, nvmlDeviceGetOfaUtilization(device, &raw mut percent, &raw mut period))
                .map(|()| one(percent))
        }
        Call::ComputeMode => {
            let mut mode = 0;
            nvml_call!(nvml, nvmlDeviceGetComputeMode(device, &raw mut mode)).map(|()| one(mode))
        }
        Call::VirtualizationMode => {
            let mut mode = 0;
            nvml_call!(nvml, nvmlDeviceGetVirtualizationMode(device, &raw mut mode))
                .map(|()| one(mode))
        }
        Call::RetiredPages(cause) => {
            let mut count = 0;
            let cause = match cause {
                RetirementCause::SingleBit => 0,
                RetirementCause::DoubleBit => 1,
            };
            let addresses = std::ptr::null_mut();
            sized(nvml_call!(
                nvml,
                nvmlDeviceGetRetiredPages(device, cause, &raw mut count, addresses)
            ))
            .map(|()| one(count))
        }
        Call::NvLinkErrorCounter(link, error) => {
            let mut count = 0;
            let error = link_error_type(error);
            nvml_call!(
                nvml,
                nvmlDeviceGetNvLinkErrorCounter(device, link.into(), error, &raw mut count)
            )
            .map(|()| unsigned([count]))
        }
        Call::MemoryInfo => memory(session, device),
        Call::FabricInfo => fabric(session, device),
        Call::ComputeProcesses => processes(session, device, Processes::Compute),
        Call::GraphicsProcesses => processes(session, device, Processes::Graphics),
        Call::MpsProcesses => processes(session, device, Processes::Mps),
        other => structs(session, device, other),
    }
}

/// Calls that fill a larger struct.
fn structs(session: &Session, device: sys::nvmlDevice_t, call: Call) -> Answer {
    let nvml = session.nvml();
    match call {
        Call::SramEccErrorStatus => {
            let mut status: sys::nvmlEccSramErrorStatus_v1_t = zeroed();
            status.version = version_of::<sys::nvmlEccSramErrorStatus_v1_t>(1);
            nvml_call!(nvml, nvmlDeviceGetSramEccErrorStatus(device, &raw mut status))
                .map(|()| one(status.bThresholdExceeded))
        }
        Call::RowRemapperHistogram => {
            let mut banks: sys::nvmlRowRemapperHistogramValues_st = zeroed();
            nvml_call!(nvml, nvmlDeviceGetRowRemapperHistogram(device, &raw mut banks)).map(|()| {
                unsigned(
                    [banks.max, banks.high, banks.partial, banks.low, banks.none].map(u64::from),
                )
            })
        }
        Call::ClocksEventReasons => {
            let mut mask = 0;
            match nvml_call!(nvml, nvmlDeviceGetCurrentClocksEventReasons(device, &raw mut mask)) {
                // Before R535 the call has its old name only.
                Err(Code::FUNCTION_NOT_FOUND) => nvml_call!(
                    nvml,
                    nvmlDeviceGetCurrentClocksThrottleReasons(device, &raw mut mask)
                ),
                other => other,
            }
            .map(|()| unsigned([mask]))
        }
        Call::GridLicensed => {
            let mut features: sys::nvmlGridLicensableFeatures_st = zeroed();
            nvml_call!(nvml, nvmlDeviceGetGridLicensableFeatures_v4(device, &raw mut features))
                .map(|()| licensed(&features))
        }
        Call::ConfComputeState => {
            let mut state: sys::nvmlConfComputeSystemState_st = zeroed();
            nvml_call!(nvml, nvmlSystemGetConfComputeState(&raw mut state))
                .map(|()| one(state.ccFeature))
        }
        Call::PlatformInfo => platform(session, device).map(|info| {
            unsigned(
                [info.slotNumber, info.trayIndex, info.hostId, info.peerType, info.moduleId]
                    .map(u64::from),
            )
        }),
        // Every other call is made by `simple` or `raw`.
        _ => Err(Code::FUNCTION_NOT_FOUND),
    }
}

pub(super) fn platform(
    session: &Session,
    device: sys::nvmlDevice_t,
) -> Result<sys::nvmlPlatformInfo_v2_t, Code> {
    let mut info: sys::nvmlPlatformInfo_v2_t = zeroed();
    info.version = version_of::<sys::nvmlPlatformInfo_v2_t>(2);
    nvml_call!(session.nvml(), nvmlDeviceGetPlatformInfo(device, &raw mut info)).map(|()| info)
}

/// 0 when the board cannot be licensed at all, else whether the vGPU feature is; a board that
/// can be licensed but lists no vGPU feature has no value.
fn licensed(features: &sys::nvmlGridLicensableFeatures_st) -> Numbers {
    if features.isGridLicenseSupported == 0 {
        return one(0);
    }
    let count = usize::try_from(features.licensableFeaturesCount).unwrap_or(0);
    let vgpu = features
        .gridLicensableFeatures
        .iter()
        .take(count)
        .find(|feature| feature.featureCode == FEATURE_VGPU)
        .map(|feature| i64::from(feature.featureState > 0));
    numbers([vgpu])
}

/// v2 from driver 510 on: only it keeps reserved memory apart from used.
fn memory(session: &Session, device: sys::nvmlDevice_t) -> Answer {
    let nvml = session.nvml();
    if session.driver_major().is_none_or(|major| major >= 510) {
        let mut info: sys::nvmlMemory_v2_st = zeroed();
        info.version = version_of::<sys::nvmlMemory_v2_st>(2);
        match nvml_call!(nvml, nvmlDeviceGetMemoryInfo_v2(device, &raw mut info)) {
            Ok(()) => return Ok(unsigned([info.total, info.free, info.used, info.reserved])),
            Err(Code::FUNCTION_NOT_FOUND | Code::ARGUMENT_VERSION_MISMATCH) => {}
            Err(code) => return Err(code),
        }
    }
    let mut info: sys::nvmlMemory_st = zeroed();
    nvml_call!(nvml, nvmlDeviceGetMemoryInfo(device, &raw mut info))
        .map(|()| unsigned([info.total, info.free, info.used]))
}

/// The fabric registration, by the newest struct that the driver takes.
pub(super) struct Fabric {
    state: u8,
    status: u32,
    clique: u32,
    health_mask: u32,
    health_summary: Option<u8>,
    /// 16 bytes, all zero before registration.
    pub(super) cluster: [u8; 16],
}

pub(super) fn fabric_info(session: &Session, device: sys::nvmlDevice_t) -> Result<Fabric, Code> {
    let nvml = session.nvml();
    let mut info: sys::nvmlGpuFabricInfo_v3_t = zeroed();
    info.version = version_of::<sys::nvmlGpuFabricInfo_v3_t>(3);
    let answer = nvml_call!(nvml, nvmlDeviceGetGpuFabricInfoV(device, &raw mut info));
    if answer != Err(Code::ARGUMENT_VERSION_MISMATCH) {
        return answer.map(|()| Fabric {
            state: info.state,
            status: info.status,
            clique: info.cliqueId,
            health_mask: info.healthMask,
            health_summary: Some(info.healthSummary),
            cluster: info.clusterUuid,
        });
    }
    let mut info: sys::nvmlGpuFabricInfo_v2_t = zeroed();
    info.version = version_of::<sys::nvmlGpuFabricInfo_v2_t>(2);
    let pointer = (&raw mut info).cast::<sys::nvmlGpuFabricInfoV_t>();
    nvml_call!(nvml, nvmlDeviceGetGpuFabricInfoV(device, pointer)).map(|()| Fabric {
        state: info.state,
        status: info.status,
        clique: info.cliqueId,
        health_mask: info.healthMask,
        health_summary: None,
        cluster: info.clusterUuid,
    })
}

fn fabric(session: &Session, device: sys::nvmlDevice_t) -> Answer {
    fabric_info(session, device).map(|fabric| {
        numbers([
            Some(fabric.state.into()),
            Some(fabric.status.into()),
            Some(fabric.clique.into()),
            Some(fabric.health_mask.into()),
            fabric.health_summary.map(i64::from),
        ])
    })
}

#[derive(Clone, Copy)]
enum Processes {
    Compute,
    Graphics,
    Mps,
}

/// Counts processes by asking for none: the answer to a too small buffer is the number.
/// The versions differ in the struct only, which is not touched here.
fn processes(session: &Session, device: sys::nvmlDevice_t, kind: Processes) -> Answer {
    let nvml = session.nvml();
    let mut count = 0;
    let none: *mut std::ffi::c_void = std::ptr::null_mut();
    macro_rules! newest {
        ($($symbol:ident),*) => {{
            let mut answer = Err(Code::FUNCTION_NOT_FOUND);
            $(if answer == Err(Code::FUNCTION_NOT_FOUND) {
                answer = nvml_call!(nvml, $symbol(device, &raw mut count, none.cast()));
            })*
            answer
        }};
    }
    let answer = match kind {
        Processes::Compute => newest!(
            nvmlDeviceGetComputeRunningProcesses_v3,
            nvmlDeviceGetComputeRunningProcesses_v2,
            nvmlDeviceGetComputeRunningProcesses
        ),
        Processes::Graphics => newest!(
            nvmlDeviceGetGraphicsRunningProcesses_v3,
            nvmlDeviceGetGraphicsRunningProcesses_v2,
            nvmlDeviceGetGraphicsRunningProcesses
        ),
        Processes::Mps => newest!(nvmlDeviceGetMPSComputeRunningProcesses_v3),
    };
    sized(answer).map(|()| one(count))
}

/// A sizing call: `INSUFFICIENT_SIZE` means that the size is known now.
fn sized(answer: Result<(), Code>) -> Result<(), Code> {
    if answer == Err(Code::INSUFFICIENT_SIZE) { Ok(()) } else { answer }
}

fn clock_type(clock: Clock) -> wrapped::Clock {
    match clock {
        Clock::Graphics => wrapped::Clock::Graphics,
        Clock::Sm => wrapped::Clock::SM,
        Clock::Memory => wrapped::Clock::Memory,
        Clock::Video => wrapped::Clock::Video,
    }
}

fn threshold_type(threshold: Threshold) -> wrapped::TemperatureThreshold {
    match threshold {
        Threshold::Shutdown => wrapped::TemperatureThreshold::Shutdown,
        Threshold::Slowdown => wrapped::TemperatureThreshold::Slowdown,
        Threshold::MemoryMax => wrapped::TemperatureThreshold::MemoryMax,
        Threshold::GpuMax => wrapped::TemperatureThreshold::GpuMax,
    }
}

fn error_type(error: EccError) -> wrapped::MemoryError {
    match error {
        EccError::Corrected => wrapped::MemoryError::Corrected,
        EccError::Uncorrected => wrapped::MemoryError::Uncorrected,
    }
}

fn counter_type(counter: EccCounter) -> wrapped::EccCounter {
    match counter {
        EccCounter::Volatile => wrapped::EccCounter::Volatile,
        EccCounter::Aggregate => wrapped::EccCounter::Aggregate,
    }
}

fn location_type(location: EccLocation) -> wrapped::MemoryLocation {
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

fn link_error_type(error: LinkError) -> u32 {
    match error {
        LinkError::Replay => sys::nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_REPLAY,
        LinkError::Recovery => sys::nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_RECOVERY,
        LinkError::CrcFlit => sys::nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_CRC_FLIT,
        LinkError::CrcData => sys::nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_CRC_DATA,
    }
}
