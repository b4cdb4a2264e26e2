//! Calls that fill a struct of NVML's.

use std::sync::atomic::Ordering;

use nvml_wrapper_sys::bindings as sys;

use super::{Answer, numbers, one, unsigned};
use crate::catalogue::{Call, Numbers};
use crate::nvml::code::Code;
use crate::nvml::library::Session;
use crate::nvml::raw::{nvml_call, version_of, zeroed};

/// `NVML_GRID_LICENSE_FEATURE_CODE_VGPU`.
const FEATURE_VGPU: u32 = 1;

/// Calls that fill a larger struct.
pub(super) fn structs(session: &Session, device: sys::nvmlDevice_t, call: Call) -> Answer {
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
        Call::UnrepairableMemoryFlag => unrepairable_memory(session, device),
        // Every other call is made by `simple` or `raw`.
        _ => Err(Code::FUNCTION_NOT_FOUND),
    }
}

pub(in crate::nvml) fn platform(
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
pub(super) fn memory(session: &Session, device: sys::nvmlDevice_t) -> Answer {
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
pub(in crate::nvml) struct Fabric {
    state: u8,
    status: u32,
    clique: u32,
    health_mask: u32,
    health_summary: Option<u8>,
    /// 16 bytes, all zero before registration.
    pub(in crate::nvml) cluster: [u8; 16],
}

pub(in crate::nvml) fn fabric_info(
    session: &Session,
    device: sys::nvmlDevice_t,
) -> Result<Fabric, Code> {
    let nvml = session.nvml();
    if !session.fabric_v2.load(Ordering::Relaxed) {
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
        session.fabric_v2.store(true, Ordering::Relaxed);
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

pub(super) fn fabric(session: &Session, device: sys::nvmlDevice_t) -> Answer {
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
pub(super) enum Processes {
    Compute,
    Graphics,
    Mps,
}

/// Counts processes by asking for none: the answer to a too small buffer is the number.
/// The versions differ in the struct only, which is not touched here.
pub(super) fn processes(session: &Session, device: sys::nvmlDevice_t, kind: Processes) -> Answer {
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
pub(super) fn sized(answer: Result<(), Code>) -> Result<(), Code> {
    if answer == Err(Code::INSUFFICIENT_SIZE) { Ok(()) } else { answer }
}

/// nvml-wrapper-sys does not know the function, so the symbol is looked up by name.
fn unrepairable_memory(session: &Session, device: sys::nvmlDevice_t) -> Answer {
    type Function = unsafe extern "C" fn(sys::nvmlDevice_t, *mut u32) -> sys::nvmlReturn_t;
    let library = &session.nvml().lib().__library;
    // SAFETY: nvml.h declares the function with a struct of one unsigned int.
    let function = unsafe { library.get::<Function>(b"nvmlDeviceGetUnrepairableMemoryFlag_v1\0") }
        .map_err(|_| Code::FUNCTION_NOT_FOUND)?;
    let mut flag = 0;
    // SAFETY: the flag outlives the call, and the library is open as long as the session.
    Code::check(unsafe { function(device, &raw mut flag) }).map(|()| one(flag))
}
