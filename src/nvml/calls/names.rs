//! NVML's name of each call.

use crate::catalogue::Call;

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
        Call::NvLinkErrorCounter(..) | Call::EachNvLinkErrorCounter(_) => {
            "nvmlDeviceGetNvLinkErrorCounter"
        }
        Call::EachNvLinkState => "nvmlDeviceGetNvLinkState",
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
        Call::UnrepairableMemoryFlag => "nvmlDeviceGetUnrepairableMemoryFlag_v1",
    }
}
