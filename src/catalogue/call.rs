//! The NVML calls that rows are read from, and what each answers.
//!
//! A pass makes each `Call` at most once per device, however many rows share it. The numbers a
//! call answers are named by the constants in [`slot`]; a number that the driver did not give
//! is `None`.

pub use super::field_value::{
    Decode, FieldValueRead, NVLINK_RX_KIB, NVLINK_TX_KIB, RateRead, RateUnit, Scope,
};

/// At most this many numbers come out of one call.
pub const SLOTS: usize = 8;

/// The numbers of one call in NVML's own units, before conversion.
pub type Numbers = [Option<Number>; SLOTS];

/// One number as NVML gave it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Any of NVML's integers.
    Int(i64),
    /// A u64 that does not fit an `i64`.
    Uint(u64),
    /// A double, in field values only.
    Float(f64),
}

/// Positions in [`Numbers`], by call. Calls with a single answer use 0.
pub mod slot {
    /// The only number of a call.
    pub const VALUE: usize = 0;
    /// GPM's metrics of an instance: its share of the board's slices, 0 to 1; of a board 1.
    pub const SIZE: usize = 1;
    /// `MemoryInfo`, bytes.
    pub const TOTAL: usize = 0;
    /// `MemoryInfo`, bytes.
    pub const FREE: usize = 1;
    /// `MemoryInfo`, bytes.
    pub const USED: usize = 2;
    /// `MemoryInfo`, bytes; only the v2 call has it.
    pub const RESERVED: usize = 3;
    /// `UtilizationRates`, percent.
    pub const GPU: usize = 0;
    /// `UtilizationRates`, percent.
    pub const MEMORY: usize = 1;
    /// `PowerManagementLimitConstraints`, mW.
    pub const MIN: usize = 0;
    /// `PowerManagementLimitConstraints`, mW.
    pub const MAX: usize = 1;
    /// `MigMode` and `EccMode`: now, 0 or 1.
    pub const CURRENT: usize = 0;
    /// `MigMode` and `EccMode`: after the next reset.
    pub const PENDING: usize = 1;
    /// `FabricInfo`: `nvmlGpuFabricState_t`.
    pub const FABRIC_STATE: usize = 0;
    /// `FabricInfo`: `nvmlReturn_t` of the registration.
    pub const FABRIC_STATUS: usize = 1;
    /// `FabricInfo`: clique id.
    pub const FABRIC_CLIQUE: usize = 2;
    /// `FabricInfo`: health mask (v2 and v3).
    pub const FABRIC_HEALTH_MASK: usize = 3;
    /// `FabricInfo`: health summary (v3 only).
    pub const FABRIC_HEALTH_SUMMARY: usize = 4;
    /// `EncoderStats` and `FbcStats`: sessions open.
    pub const SESSIONS: usize = 0;
    /// `EncoderStats` and `FbcStats`: mean frames per second.
    pub const FPS: usize = 1;
    /// `EncoderStats` and `FbcStats`: mean latency, microseconds.
    pub const LATENCY: usize = 2;
    /// `RowRemapperHistogram`, banks.
    pub const BANKS_MAX: usize = 0;
    /// `RowRemapperHistogram`, banks.
    pub const BANKS_HIGH: usize = 1;
    /// `RowRemapperHistogram`, banks.
    pub const BANKS_PARTIAL: usize = 2;
    /// `RowRemapperHistogram`, banks.
    pub const BANKS_LOW: usize = 3;
    /// `RowRemapperHistogram`, banks.
    pub const BANKS_NONE: usize = 4;
    /// `SramEccErrorStatus`: 0/1, the RMA criterion.
    pub const SRAM_THRESHOLD_EXCEEDED: usize = 0;
    /// `PlatformInfo`: chassis slot.
    pub const PLATFORM_SLOT: usize = 0;
    /// `PlatformInfo`: tray index.
    pub const PLATFORM_TRAY: usize = 1;
    /// `PlatformInfo`: host id.
    pub const PLATFORM_HOST: usize = 2;
    /// `PlatformInfo`: peer type.
    pub const PLATFORM_PEER: usize = 3;
    /// `PlatformInfo`: module id.
    pub const PLATFORM_MODULE: usize = 4;
}

/// `nvmlClockType_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Clock {
    /// Graphics.
    Graphics,
    /// Streaming multiprocessors.
    Sm,
    /// Memory.
    Memory,
    /// Video encoder and decoder.
    Video,
}

/// `nvmlTemperatureThresholds_t`, degrees Celsius.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Threshold {
    /// The GPU shuts down.
    Shutdown,
    /// Hardware slowdown begins.
    Slowdown,
    /// Memory software slowdown begins.
    MemoryMax,
    /// GPU software slowdown begins.
    GpuMax,
}

/// `nvmlMemoryErrorType_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EccError {
    /// Single bit, corrected.
    Corrected,
    /// Double bit, uncorrected.
    Uncorrected,
}

/// `nvmlEccCounterType_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EccCounter {
    /// Since the driver was loaded.
    Volatile,
    /// Over the board's life.
    Aggregate,
}

/// `nvmlMemoryLocation_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EccLocation {
    /// L1 cache.
    L1,
    /// L2 cache.
    L2,
    /// Device memory.
    Device,
    /// Register file.
    Register,
    /// Texture memory.
    Texture,
    /// Shared (texture) memory.
    Shared,
    /// CBU.
    Cbu,
    /// SRAM as a whole (Turing and later).
    Sram,
}

/// `nvmlPageRetirementCause_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RetirementCause {
    /// Several single-bit errors.
    SingleBit,
    /// A double-bit error.
    DoubleBit,
}

/// `nvmlNvLinkErrorCounter_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LinkError {
    /// Data link replays.
    Replay,
    /// Data link recoveries.
    Recovery,
    /// CRC errors in flits.
    CrcFlit,
    /// CRC errors in data.
    CrcData,
}

/// One NVML call with its arguments, but for the device. Each is documented with the NVML
/// function and the numbers it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Call {
    /// `nvmlDeviceGetCount_v2`: GPUs, including those that may not be opened.
    DeviceCount,
    /// `nvmlDeviceGetClockInfo`, MHz.
    ClockInfo(Clock),
    /// `nvmlDeviceGetMaxClockInfo`, MHz.
    MaxClockInfo(Clock),
    /// `nvmlDeviceGetApplicationsClock`, MHz.
    ApplicationsClock(Clock),
    /// `nvmlDeviceGetTemperature(GPU)`, Celsius.
    Temperature,
    /// `nvmlDeviceGetTemperatureThreshold`, Celsius.
    TemperatureThreshold(Threshold),
    /// `nvmlDeviceGetMarginTemperature`, Celsius to the slowdown; may be negative.
    MarginTemperature,
    /// `nvmlDeviceGetPowerUsage`, mW.
    PowerUsage,
    /// `nvmlDeviceGetPowerManagementLimit`, mW.
    PowerManagementLimit,
    /// `nvmlDeviceGetPowerManagementLimitConstraints`, mW: MIN, MAX.
    PowerManagementLimitConstraints,
    /// `nvmlDeviceGetPowerManagementDefaultLimit`, mW.
    PowerManagementDefaultLimit,
    /// `nvmlDeviceGetEnforcedPowerLimit`, mW.
    EnforcedPowerLimit,
    /// `nvmlDeviceGetPerformanceState`, 0 to 15; 32 unknown.
    PerformanceState,
    /// `nvmlDeviceGetFanSpeed`, percent; may exceed 100.
    FanSpeed,
    /// `nvmlDeviceGetUtilizationRates`, percent: GPU, MEMORY.
    UtilizationRates,
    /// `nvmlDeviceGetEncoderUtilization`, percent.
    EncoderUtilization,
    /// `nvmlDeviceGetDecoderUtilization`, percent.
    DecoderUtilization,
    /// `nvmlDeviceGetJpgUtilization`, percent.
    JpgUtilization,
    /// `nvmlDeviceGetOfaUtilization`, percent.
    OfaUtilization,
    /// `nvmlDeviceGetMemoryInfo_v2`, or the v1 call before driver 510; bytes: TOTAL, FREE, USED,
    /// RESERVED (v2 only).
    MemoryInfo,
    /// `nvmlDeviceGetBAR1MemoryInfo`, bytes: TOTAL, FREE, USED.
    Bar1MemoryInfo,
    /// `nvmlDeviceGetPcieReplayCounter`, count.
    PcieReplayCounter,
    /// `nvmlDeviceGetMaxPcieLinkGeneration`.
    MaxPcieLinkGeneration,
    /// `nvmlDeviceGetMaxPcieLinkWidth`, lanes.
    MaxPcieLinkWidth,
    /// `nvmlDeviceGetCurrPcieLinkGeneration`.
    CurrPcieLinkGeneration,
    /// `nvmlDeviceGetCurrPcieLinkWidth`, lanes.
    CurrPcieLinkWidth,
    /// `nvmlDeviceGetMemoryErrorCounter`, count.
    MemoryErrorCounter(EccError, EccCounter, EccLocation),
    /// `nvmlDeviceGetTotalEccErrors`, count.
    TotalEccErrors(EccError, EccCounter),
    /// `nvmlDeviceGetEccMode`, 0/1: CURRENT, PENDING.
    EccMode,
    /// `nvmlDeviceGetSramEccErrorStatus`: `SRAM_THRESHOLD_EXCEEDED`.
    SramEccErrorStatus,
    /// `nvmlDeviceGetRowRemapperHistogram`, banks: `BANKS_MAX` … `BANKS_NONE`.
    RowRemapperHistogram,
    /// `nvmlDeviceGetRetiredPages` with a count of 0: number of pages.
    RetiredPages(RetirementCause),
    /// `nvmlDeviceGetNvLinkErrorCounter` of one link, count.
    NvLinkErrorCounter(u8, LinkError),
    /// `nvmlDeviceGetNvLinkErrorCounter` of every link of the device, count: one call a link,
    /// for rows of `Entity::Link`.
    EachNvLinkErrorCounter(LinkError),
    /// `nvmlDeviceGetNvLinkState` of every link of the device, `nvmlEnableState_t` 0/1: one call
    /// a link, for rows of `Entity::Link`. A link that is not there answers an error.
    EachNvLinkState,
    /// `nvmlDeviceGetGpuFabricInfoV` v3, then v2: `FABRIC_STATE` … `FABRIC_HEALTH_SUMMARY`.
    FabricInfo,
    /// `nvmlDeviceGetComputeMode`, NVML's own numbers.
    ComputeMode,
    /// `nvmlDeviceGetPersistenceMode`, 0/1.
    PersistenceMode,
    /// `nvmlDeviceGetMigMode`, 0/1: CURRENT, PENDING.
    MigMode,
    /// `nvmlDeviceGetCurrentClocksEventReasons`, or its deprecated twin before R535: bit mask.
    ClocksEventReasons,
    /// `nvmlDeviceGetVirtualizationMode`.
    VirtualizationMode,
    /// `nvmlDeviceGetGridLicensableFeatures_v4`: 1 licensed, 0 not.
    GridLicensed,
    /// `nvmlDeviceGetAutoBoostedClocksEnabled`, 0/1.
    AutoBoostedClocks,
    /// `nvmlDeviceGetEncoderStats`: SESSIONS, FPS, LATENCY.
    EncoderStats,
    /// `nvmlDeviceGetFBCStats`: SESSIONS, FPS, LATENCY.
    FbcStats,
    /// `nvmlDeviceGetComputeRunningProcesses_v3` or older: number of processes.
    ComputeProcesses,
    /// `nvmlDeviceGetGraphicsRunningProcesses_v3` or older: number of processes.
    GraphicsProcesses,
    /// `nvmlDeviceGetMPSComputeRunningProcesses_v3` or older: number of processes.
    MpsProcesses,
    /// `nvmlGpmQueryDeviceSupport`, 0/1.
    GpmSupport,
    /// `nvmlSystemGetConfComputeState`: 0/1, the `ccFeature`.
    ConfComputeState,
    /// `nvmlDeviceGetPlatformInfo` v2: `PLATFORM_SLOT` … `PLATFORM_MODULE`.
    PlatformInfo,
    /// `nvmlDeviceGetUnrepairableMemoryFlag_v1`, 0/1. Drivers of the 580 series and later; not in
    /// nvml-wrapper-sys, so the symbol is looked up by name.
    UnrepairableMemoryFlag,
}

/// A fact about a device or the node that does not change while the driver stays loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fact {
    /// `nvmlSystemGetDriverVersion`, text.
    DriverVersion,
    /// `nvmlSystemGetNVMLVersion`, text.
    NvmlVersion,
    /// `nvmlSystemGetCudaDriverVersion_v2`: 1000 x major + 10 x minor.
    CudaDriverVersion,
    /// `nvmlDeviceGetName`, text.
    Name,
    /// `nvmlDeviceGetBrand`, text.
    Brand,
    /// `nvmlDeviceGetIndex` when the GPU was first seen.
    NvmlIndex,
    /// `nvmlDeviceGetSerial`, text.
    Serial,
    /// `nvmlDeviceGetUUID`, text.
    Uuid,
    /// `nvmlDeviceGetMinorNumber`.
    MinorNumber,
    /// `nvmlDeviceGetPciInfo_v3` bus id, text.
    PciBusId,
    /// `nvmlDeviceGetPciInfo_v3`: device id << 16 | vendor id.
    PciCombinedId,
    /// `nvmlDeviceGetPciInfo_v3`: subsystem id.
    PciSubsystemId,
    /// `nvmlDeviceGetCudaComputeCapability`: major << 16 | minor.
    CudaComputeCapability,
    /// `nvmlDeviceGetInforomVersion(OEM)`, text.
    InforomOem,
    /// `nvmlDeviceGetInforomVersion(ECC)`, text.
    InforomEcc,
    /// `nvmlDeviceGetInforomVersion(POWER)`, text.
    InforomPower,
    /// `nvmlDeviceGetInforomImageVersion`, text.
    InforomImage,
    /// `nvmlDeviceGetInforomConfigurationChecksum`.
    InforomChecksum,
    /// `nvmlDeviceValidateInforom`: 1 for success, 0 for `CORRUPTED_INFOROM`. It reads the
    /// board's flash, which is why it is a fact and not a call of every pass.
    InforomValid,
    /// `nvmlDeviceGetVbiosVersion`, text.
    Vbios,
    /// `nvmlDeviceGetBoardPartNumber`, text.
    BoardPartNumber,
    /// `nvmlDeviceGetArchitecture`, text such as `hopper`.
    Architecture,
    /// `nvmlDeviceGetGpuFabricInfoV` cluster UUID, text.
    FabricClusterUuid,
    /// `nvmlDeviceGetPlatformInfo` chassis serial number, text.
    ChassisSerialNumber,
    /// `nvmlDeviceGetPlatformInfo` InfiniBand GUID, hex text.
    InfinibandGuid,
}

impl Fact {
    /// Whether the fact is text rather than a number.
    #[must_use]
    pub const fn is_text(self) -> bool {
        !matches!(
            self,
            Self::CudaDriverVersion
                | Self::NvmlIndex
                | Self::MinorNumber
                | Self::PciCombinedId
                | Self::PciSubsystemId
                | Self::CudaComputeCapability
                | Self::InforomChecksum
                | Self::InforomValid
        )
    }
}
