//! Functions that have nothing to say on the machines imagined here: no vGPUs, no S-class units,
//! no administrator. They are exported so that no client stumbles over a missing symbol; they
//! check sessions and handles like all others, and faults can be put on them.

use crate::call::{Function, On, device, system};
use crate::code::{Code, NO_PERMISSION, NOT_SUPPORTED};
use crate::ffi::Handle;

/// Functions whose first parameter is a device. The C convention lets a callee take fewer
/// parameters than the caller passes.
macro_rules! device_stubs {
    ($code:ident: $($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(handle: Handle) -> Code {
            static FUNCTION: Function = Function { name: stringify!($name), on: On::Any };
            device(&FUNCTION, handle, &[], &mut |_| Err($code))
        }
    )*};
}

/// Functions about anything else.
macro_rules! system_stubs {
    ($code:ident: $($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> Code {
            system(stringify!($name), &[], &mut |_| Err($code))
        }
    )*};
}

device_stubs! { NOT_SUPPORTED:
    nvmlDeviceGetActiveVgpus
    nvmlDeviceGetClkMonStatus
    nvmlDeviceGetConfComputeGpuAttestationReport
    nvmlDeviceGetConfComputeGpuCertificate
    nvmlDeviceGetCreatableVgpus
    nvmlDeviceGetCurrentClockFreqs
    nvmlDeviceGetDramEncryptionMode
    nvmlDeviceGetDriverModel
    nvmlDeviceGetDriverModel_v2
    nvmlDeviceGetGpuOperationMode
    nvmlDeviceGetHostVgpuMode
    nvmlDeviceGetLastBBXFlushTime
    nvmlDeviceGetNvLinkInfo
    nvmlDeviceGetNvLinkUtilizationControl
    nvmlDeviceGetNvlinkBwMode
    nvmlDeviceGetNvlinkSupportedBwModes
    nvmlDeviceGetPerformanceModes
    nvmlDeviceGetPgpuMetadataString
    nvmlDeviceGetPowerMizerMode_v1
    nvmlDeviceGetRepairStatus
    nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts
    nvmlDeviceGetSupportedVgpus
    nvmlDeviceGetVgpuCapabilities
    nvmlDeviceGetVgpuHeterogeneousMode
    nvmlDeviceGetVgpuInstancesUtilizationInfo
    nvmlDeviceGetVgpuMetadata
    nvmlDeviceGetVgpuProcessUtilization
    nvmlDeviceGetVgpuProcessesUtilizationInfo
    nvmlDeviceGetVgpuSchedulerCapabilities
    nvmlDeviceGetVgpuSchedulerLog
    nvmlDeviceGetVgpuSchedulerState
    nvmlDeviceGetVgpuTypeCreatablePlacements
    nvmlDeviceGetVgpuTypeSupportedPlacements
    nvmlDeviceGetVgpuUtilization
    nvmlDeviceReadWritePRM_v1
    nvmlDeviceWorkloadPowerProfileGetCurrentProfiles
    nvmlDeviceWorkloadPowerProfileGetProfilesInfo
}

device_stubs! { NO_PERMISSION:
    nvmlDeviceClearAccountingPids
    nvmlDeviceClearCpuAffinity
    nvmlDeviceClearEccErrorCounts
    nvmlDeviceClearFieldValues
    nvmlDeviceCreateGpuInstance
    nvmlDeviceCreateGpuInstanceWithPlacement
    nvmlDeviceFreezeNvLinkUtilizationCounter
    nvmlDevicePowerSmoothingActivatePresetProfile
    nvmlDevicePowerSmoothingSetState
    nvmlDevicePowerSmoothingUpdatePresetProfileParam
    nvmlDeviceResetApplicationsClocks
    nvmlDeviceResetGpuLockedClocks
    nvmlDeviceResetMemoryLockedClocks
    nvmlDeviceResetNvLinkErrorCounters
    nvmlDeviceResetNvLinkUtilizationCounter
    nvmlDeviceSetAPIRestriction
    nvmlDeviceSetAccountingMode
    nvmlDeviceSetApplicationsClocks
    nvmlDeviceSetAutoBoostedClocksEnabled
    nvmlDeviceSetClockOffsets
    nvmlDeviceSetComputeMode
    nvmlDeviceSetConfComputeUnprotectedMemSize
    nvmlDeviceSetCpuAffinity
    nvmlDeviceSetDefaultAutoBoostedClocksEnabled
    nvmlDeviceSetDefaultFanSpeed_v2
    nvmlDeviceSetDramEncryptionMode
    nvmlDeviceSetDriverModel
    nvmlDeviceSetEccMode
    nvmlDeviceSetFanControlPolicy
    nvmlDeviceSetFanSpeed_v2
    nvmlDeviceSetGpcClkVfOffset
    nvmlDeviceSetGpuLockedClocks
    nvmlDeviceSetGpuOperationMode
    nvmlDeviceSetMemClkVfOffset
    nvmlDeviceSetMemoryLockedClocks
    nvmlDeviceSetMigMode
    nvmlDeviceSetNvLinkDeviceLowPowerThreshold
    nvmlDeviceSetNvLinkUtilizationControl
    nvmlDeviceSetNvlinkBwMode
    nvmlDeviceSetPersistenceMode
    nvmlDeviceSetPowerManagementLimit
    nvmlDeviceSetPowerManagementLimit_v2
    nvmlDeviceSetPowerMizerMode_v1
    nvmlDeviceSetTemperatureThreshold
    nvmlDeviceSetVgpuCapabilities
    nvmlDeviceSetVgpuHeterogeneousMode
    nvmlDeviceSetVgpuSchedulerState
    nvmlDeviceSetVirtualizationMode
    nvmlDeviceWorkloadPowerProfileClearRequestedProfiles
    nvmlDeviceWorkloadPowerProfileSetRequestedProfiles
    nvmlGpmSetStreamingEnabled
}

system_stubs! { NO_PERMISSION:
    nvmlComputeInstanceDestroy
    nvmlDeviceDiscoverGpus
    nvmlDeviceModifyDrainState
    nvmlDeviceRemoveGpu
    nvmlDeviceRemoveGpu_v2
    nvmlGpuInstanceCreateComputeInstance
    nvmlGpuInstanceCreateComputeInstanceWithPlacement
    nvmlGpuInstanceDestroy
    nvmlGpuInstanceSetVgpuHeterogeneousMode
    nvmlGpuInstanceSetVgpuSchedulerState
    nvmlSetVgpuVersion
    nvmlSystemSetConfComputeGpusReadyState
    nvmlSystemSetConfComputeKeyRotationThresholdInfo
    nvmlSystemSetNvlinkBwMode
    nvmlUnitSetLedState
    nvmlVgpuInstanceClearAccountingPids
    nvmlVgpuInstanceSetEncoderCapacity
}

system_stubs! { NOT_SUPPORTED:
    nvmlGetExcludedDeviceInfoByIndex
    nvmlGetVgpuCompatibility
    nvmlGetVgpuDriverCapabilities
    nvmlGetVgpuVersion
    nvmlGpuInstanceGetActiveVgpus
    nvmlGpuInstanceGetCreatableVgpus
    nvmlGpuInstanceGetVgpuHeterogeneousMode
    nvmlGpuInstanceGetVgpuSchedulerLog
    nvmlGpuInstanceGetVgpuSchedulerState
    nvmlGpuInstanceGetVgpuTypeCreatablePlacements
    nvmlSystemEventSetCreate
    nvmlSystemEventSetFree
    nvmlSystemEventSetWait
    nvmlSystemGetConfComputeKeyRotationThresholdInfo
    nvmlSystemGetNvlinkBwMode
    nvmlSystemRegisterEvents
    nvmlUnitGetDevices
    nvmlUnitGetFanSpeedInfo
    nvmlUnitGetHandleByIndex
    nvmlUnitGetLedState
    nvmlUnitGetPsuInfo
    nvmlUnitGetTemperature
    nvmlUnitGetUnitInfo
    nvmlVgpuInstanceGetAccountingMode
    nvmlVgpuInstanceGetAccountingPids
    nvmlVgpuInstanceGetAccountingStats
    nvmlVgpuInstanceGetEccMode
    nvmlVgpuInstanceGetEncoderCapacity
    nvmlVgpuInstanceGetEncoderSessions
    nvmlVgpuInstanceGetEncoderStats
    nvmlVgpuInstanceGetFBCSessions
    nvmlVgpuInstanceGetFBCStats
    nvmlVgpuInstanceGetFbUsage
    nvmlVgpuInstanceGetFrameRateLimit
    nvmlVgpuInstanceGetGpuInstanceId
    nvmlVgpuInstanceGetGpuPciId
    nvmlVgpuInstanceGetLicenseInfo
    nvmlVgpuInstanceGetLicenseInfo_v2
    nvmlVgpuInstanceGetLicenseStatus
    nvmlVgpuInstanceGetMdevUUID
    nvmlVgpuInstanceGetMetadata
    nvmlVgpuInstanceGetPlacementId
    nvmlVgpuInstanceGetRuntimeStateSize
    nvmlVgpuInstanceGetType
    nvmlVgpuInstanceGetUUID
    nvmlVgpuInstanceGetVmDriverVersion
    nvmlVgpuInstanceGetVmID
    nvmlVgpuTypeGetBAR1Info
    nvmlVgpuTypeGetCapabilities
    nvmlVgpuTypeGetClass
    nvmlVgpuTypeGetDeviceID
    nvmlVgpuTypeGetFbReservation
    nvmlVgpuTypeGetFrameRateLimit
    nvmlVgpuTypeGetFramebufferSize
    nvmlVgpuTypeGetGpuInstanceProfileId
    nvmlVgpuTypeGetGspHeapSize
    nvmlVgpuTypeGetLicense
    nvmlVgpuTypeGetMaxInstances
    nvmlVgpuTypeGetMaxInstancesPerGpuInstance
    nvmlVgpuTypeGetMaxInstancesPerVm
    nvmlVgpuTypeGetName
    nvmlVgpuTypeGetNumDisplayHeads
    nvmlVgpuTypeGetResolution
}
