//! The `NVSwitch` fabric, and confidential computing.

use nvml_wrapper_sys::bindings::{
    nvmlConfComputeMemSizeInfo_t, nvmlConfComputeSystemCaps_t, nvmlConfComputeSystemState_t,
    nvmlGpuFabricInfo_t, nvmlGpuFabricInfo_v2_t, nvmlGpuFabricInfo_v3_t, nvmlMemory_t,
    nvmlSystemConfComputeSettings_v1_t,
};

use crate::call::{device_api, system_api};
use crate::clock::{nearest, whole};
use crate::code::{ARGUMENT_VERSION_MISMATCH, Answer, NOT_SUPPORTED};
use crate::curve::mix;
use crate::device::Device;
use crate::ffi::{Out, struct_version};
use crate::setting::Key;
use crate::world::World;

/// `NVML_DEVICE_ARCH_HOPPER`: fabrics that NVML knows of start there.
const HOPPER: u32 = 9;

/// The driver branch that brought the third version of the struct.
const HEALTH_SUMMARY_SINCE: u32 = 570;

/// Every part of the health mask says "false" or "none": nothing is wrong.
const HEALTHY: u32 = 0x1aa;

/// Cluster, status, clique, state, health mask, health summary.
fn fabric(device: &Device<'_>) -> Answer<nvmlGpuFabricInfo_v3_t> {
    if device.model.architecture < HOPPER {
        return Err(NOT_SUPPORTED);
    }
    let there = device.model.fabric;
    let state = nearest(device.setting(Key::FabricState, || if there { 3.0 } else { 0.0 }));
    let joined = state == 3;
    let health = if joined { f64::from(HEALTHY) } else { 0.0 };
    let mut uuid = [0; 16];
    if joined {
        // All GPUs of a machine are in one cluster.
        let seed = device.world.gpus.first().map_or(0, |g| g.id.seed);
        uuid[..8].copy_from_slice(&mix(seed, 60).to_be_bytes());
        uuid[8..].copy_from_slice(&mix(seed, 61).to_be_bytes());
    }
    let summary = nearest(device.setting(Key::FabricSummary, || f64::from(u8::from(joined))));
    Ok(nvmlGpuFabricInfo_v3_t {
        version: 0,
        clusterUuid: uuid,
        status: nearest(device.setting(Key::FabricStatus, || 0.0)),
        cliqueId: 0,
        state: u8::try_from(state).unwrap_or(0),
        healthMask: u32::try_from(whole(device.setting(Key::FabricHealth, || health))).unwrap_or(0),
        healthSummary: u8::try_from(summary).unwrap_or(0),
    })
}

device_api! {
    Gpu nvmlDeviceGetGpuFabricInfo(device, info: Out<nvmlGpuFabricInfo_t>) {
        let f = fabric(device)?;
        info.put(nvmlGpuFabricInfo_t {
            clusterUuid: f.clusterUuid, status: f.status, cliqueId: f.cliqueId, state: f.state,
        })
    }

    Gpu nvmlDeviceGetGpuFabricInfoV(device, info: Out<nvmlGpuFabricInfo_v3_t>) {
        let version = info.version()?;
        if version == struct_version::<nvmlGpuFabricInfo_v2_t>(2) {
            let f = fabric(device)?;
            return info.cast().put(nvmlGpuFabricInfo_v2_t {
                version,
                clusterUuid: f.clusterUuid,
                status: f.status,
                cliqueId: f.cliqueId,
                state: f.state,
                healthMask: f.healthMask,
            });
        }
        if device.world.branch() < HEALTH_SUMMARY_SINCE {
            return Err(ARGUMENT_VERSION_MISMATCH);
        }
        info.expect_version(3)?;
        info.put(nvmlGpuFabricInfo_v3_t { version, ..fabric(device)? })
    }

    Gpu nvmlDeviceGetConfComputeMemSizeInfo(device, info: Out<nvmlConfComputeMemSizeInfo_t>) {
        if device.model.architecture < HOPPER {
            return Err(NOT_SUPPORTED);
        }
        info.put(nvmlConfComputeMemSizeInfo_t {
            protectedMemSizeKib: 0,
            unprotectedMemSizeKib: device.model.memory.total_mib * 1024,
        })
    }

    Any nvmlDeviceGetConfComputeProtectedMemoryUsage(device, memory: Out<nvmlMemory_t>) {
        if device.model.architecture < HOPPER || device.gpu.mig.is_some() {
            return Err(NOT_SUPPORTED);
        }
        memory.put(nvmlMemory_t { total: 0, free: 0, used: 0 })
    }
}

/// Whether the machine could do confidential computing at all.
fn capable(world: &World) -> bool {
    world.attached().any(|g| world.models[g.model].architecture >= HOPPER)
}

system_api! {
    nvmlSystemGetConfComputeCapabilities(world, capabilities: Out<nvmlConfComputeSystemCaps_t>) {
        let gpus = u32::from(capable(world));
        capabilities.put(nvmlConfComputeSystemCaps_t { cpuCaps: 0, gpusCaps: gpus })
    }

    nvmlSystemGetConfComputeState(_world, state: Out<nvmlConfComputeSystemState_t>) {
        state.put(nvmlConfComputeSystemState_t { environment: 0, ccFeature: 0, devToolsMode: 0 })
    }

    nvmlSystemGetConfComputeSettings(_world, settings: Out<nvmlSystemConfComputeSettings_v1_t>) {
        settings.expect_version(1)?;
        settings.put(nvmlSystemConfComputeSettings_v1_t {
            version: settings.version()?,
            environment: 0,
            ccFeature: 0,
            devToolsMode: 0,
            multiGpuMode: 0,
        })
    }

    nvmlSystemGetConfComputeGpusReadyState(_world, ready: Out<u32>) { ready.put(0) }
}
