//! The NVML functions behind calls and facts, as error metrics and documents name them.

use super::call::{Call, Fact};

impl Call {
    /// The NVML function; of several generations the newest.
    #[must_use]
    pub const fn function(self) -> &'static str {
        match self {
            Self::DeviceCount => "nvmlDeviceGetCount_v2",
            Self::ClockInfo(..) => "nvmlDeviceGetClockInfo",
            Self::MaxClockInfo(..) => "nvmlDeviceGetMaxClockInfo",
            Self::ApplicationsClock(..) => "nvmlDeviceGetApplicationsClock",
            Self::Temperature => "nvmlDeviceGetTemperature",
            Self::TemperatureThreshold(..) => "nvmlDeviceGetTemperatureThreshold",
            Self::MarginTemperature => "nvmlDeviceGetMarginTemperature",
            Self::PowerUsage => "nvmlDeviceGetPowerUsage",
            Self::PowerManagementLimit => "nvmlDeviceGetPowerManagementLimit",
            Self::PowerManagementLimitConstraints => "nvmlDeviceGetPowerManagementLimitConstraints",
            Self::PowerManagementDefaultLimit => "nvmlDeviceGetPowerManagementDefaultLimit",
            Self::EnforcedPowerLimit => "nvmlDeviceGetEnforcedPowerLimit",
            Self::PerformanceState => "nvmlDeviceGetPerformanceState",
            Self::FanSpeed => "nvmlDeviceGetFanSpeed",
            Self::UtilizationRates => "nvmlDeviceGetUtilizationRates",
            Self::EncoderUtilization => "nvmlDeviceGetEncoderUtilization",
            Self::DecoderUtilization => "nvmlDeviceGetDecoderUtilization",
            Self::JpgUtilization => "nvmlDeviceGetJpgUtilization",
            Self::OfaUtilization => "nvmlDeviceGetOfaUtilization",
            Self::MemoryInfo => "nvmlDeviceGetMemoryInfo_v2",
            Self::Bar1MemoryInfo => "nvmlDeviceGetBAR1MemoryInfo",
            Self::PcieReplayCounter => "nvmlDeviceGetPcieReplayCounter",
            Self::MaxPcieLinkGeneration => "nvmlDeviceGetMaxPcieLinkGeneration",
            Self::MaxPcieLinkWidth => "nvmlDeviceGetMaxPcieLinkWidth",
            Self::CurrPcieLinkGeneration => "nvmlDeviceGetCurrPcieLinkGeneration",
            Self::CurrPcieLinkWidth => "nvmlDeviceGetCurrPcieLinkWidth",
            Self::MemoryErrorCounter(..) => "nvmlDeviceGetMemoryErrorCounter",
            Self::TotalEccErrors(..) => "nvmlDeviceGetTotalEccErrors",
            Self::EccMode => "nvmlDeviceGetEccMode",
            Self::SramEccErrorStatus => "nvmlDeviceGetSramEccErrorStatus",
            Self::RowRemapperHistogram => "nvmlDeviceGetRowRemapperHistogram",
            Self::RetiredPages(..) => "nvmlDeviceGetRetiredPages",
            Self::NvLinkErrorCounter(..) | Self::EachNvLinkErrorCounter(..) => {
                "nvmlDeviceGetNvLinkErrorCounter"
            }
            Self::EachNvLinkState => "nvmlDeviceGetNvLinkState",
            Self::FabricInfo => "nvmlDeviceGetGpuFabricInfoV",
            Self::ComputeMode => "nvmlDeviceGetComputeMode",
            Self::PersistenceMode => "nvmlDeviceGetPersistenceMode",
            Self::MigMode => "nvmlDeviceGetMigMode",
            Self::ClocksEventReasons => "nvmlDeviceGetCurrentClocksEventReasons",
            Self::VirtualizationMode => "nvmlDeviceGetVirtualizationMode",
            Self::GridLicensed => "nvmlDeviceGetGridLicensableFeatures_v4",
            Self::AutoBoostedClocks => "nvmlDeviceGetAutoBoostedClocksEnabled",
            Self::EncoderStats => "nvmlDeviceGetEncoderStats",
            Self::FbcStats => "nvmlDeviceGetFBCStats",
            Self::ComputeProcesses => "nvmlDeviceGetComputeRunningProcesses_v3",
            Self::GraphicsProcesses => "nvmlDeviceGetGraphicsRunningProcesses_v3",
            Self::MpsProcesses => "nvmlDeviceGetMPSComputeRunningProcesses_v3",
            Self::GpmSupport => "nvmlGpmQueryDeviceSupport",
            Self::ConfComputeState => "nvmlSystemGetConfComputeState",
            Self::PlatformInfo => "nvmlDeviceGetPlatformInfo",
            Self::UnrepairableMemoryFlag => "nvmlDeviceGetUnrepairableMemoryFlag_v1",
        }
    }
}

impl Fact {
    /// The NVML function.
    #[must_use]
    pub const fn function(self) -> &'static str {
        match self {
            Self::DriverVersion => "nvmlSystemGetDriverVersion",
            Self::NvmlVersion => "nvmlSystemGetNVMLVersion",
            Self::CudaDriverVersion => "nvmlSystemGetCudaDriverVersion_v2",
            Self::Name => "nvmlDeviceGetName",
            Self::Brand => "nvmlDeviceGetBrand",
            Self::NvmlIndex => "nvmlDeviceGetIndex",
            Self::Serial => "nvmlDeviceGetSerial",
            Self::Uuid => "nvmlDeviceGetUUID",
            Self::MinorNumber => "nvmlDeviceGetMinorNumber",
            Self::PciBusId | Self::PciCombinedId | Self::PciSubsystemId => {
                "nvmlDeviceGetPciInfo_v3"
            }
            Self::CudaComputeCapability => "nvmlDeviceGetCudaComputeCapability",
            Self::InforomOem | Self::InforomEcc | Self::InforomPower => {
                "nvmlDeviceGetInforomVersion"
            }
            Self::InforomImage => "nvmlDeviceGetInforomImageVersion",
            Self::InforomChecksum => "nvmlDeviceGetInforomConfigurationChecksum",
            Self::InforomValid => "nvmlDeviceValidateInforom",
            Self::Vbios => "nvmlDeviceGetVbiosVersion",
            Self::BoardPartNumber => "nvmlDeviceGetBoardPartNumber",
            Self::Architecture => "nvmlDeviceGetArchitecture",
            Self::FabricClusterUuid => "nvmlDeviceGetGpuFabricInfoV",
            Self::ChassisSerialNumber | Self::InfinibandGuid => "nvmlDeviceGetPlatformInfo",
        }
    }
}
