//! Executes one [`Call`] on one handle: a call in, numbers in NVML's units out.

use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device as wrapped;
use nvml_wrapper_sys::bindings as sys;

use super::code::Code;
use super::library::Session;
use super::raw::{Handle, nvml_call, version_of, zeroed};
use crate::catalogue::call::{LinkError, RetirementCause, SLOTS};
use crate::catalogue::{Call, Number, Numbers};
use arguments::{
    clock_type, counter_type, error_type, link_error_type, location_type, threshold_type,
};
use structs::{Processes, fabric, memory, processes, sized, structs as filled};
pub(super) use structs::{fabric_info, platform};

mod arguments;
mod structs;

/// What a call gives.
pub type Answer = Result<Numbers, Code>;

/// Makes the call; `link` matters to the calls that are made once a link. Blocks for as long as
/// the driver does.
pub fn execute(session: &Session, handle: Handle, call: Call, link: u8) -> Answer {
    // SAFETY: the handle is this session's; NVML itself refuses one whose device is gone.
    let device = unsafe { Device::new(handle.0, session.nvml()) };
    simple(&device, call).unwrap_or_else(|| raw(session, handle.0, call, link))
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
fn raw(session: &Session, device: sys::nvmlDevice_t, call: Call, link: u8) -> Answer {
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
        Call::NvLinkErrorCounter(link, error) => link_errors(session, device, link, error),
        Call::EachNvLinkErrorCounter(error) => link_errors(session, device, link, error),
        Call::EachNvLinkState => {
            let mut active = 0;
            nvml_call!(nvml, nvmlDeviceGetNvLinkState(device, link.into(), &raw mut active))
                .map(|()| one(active))
        }
        Call::MemoryInfo => memory(session, device),
        Call::FabricInfo => fabric(session, device),
        Call::ComputeProcesses => processes(session, device, Processes::Compute),
        Call::GraphicsProcesses => processes(session, device, Processes::Graphics),
        Call::MpsProcesses => processes(session, device, Processes::Mps),
        other => filled(session, device, other),
    }
}

fn link_errors(session: &Session, device: sys::nvmlDevice_t, link: u8, error: LinkError) -> Answer {
    let mut count = 0;
    let error = link_error_type(error);
    nvml_call!(
        session.nvml(),
        nvmlDeviceGetNvLinkErrorCounter(device, link.into(), error, &raw mut count)
    )
    .map(|()| unsigned([count]))
}
