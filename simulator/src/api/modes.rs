//! Modes and other traits that hardly ever change.

use nvml_wrapper_sys::bindings::{
    nvmlC2cModeInfo_v1_t, nvmlClockOffset_t, nvmlCoolerInfo_t, nvmlDeviceAddressingMode_t,
    nvmlDeviceCapabilities_t, nvmlGpuDynamicPstatesInfo_st__bindgen_ty_1,
    nvmlGpuDynamicPstatesInfo_t, nvmlPdi_t, nvmlPlatformInfo_v1_t, nvmlPlatformInfo_v2_t,
    nvmlSystemDriverBranchInfo_t,
};

use crate::call::{device_api, device_getters, system_api};
use crate::clock::nearest;
use crate::code::{Answer, INSUFFICIENT_SIZE, INVALID_ARGUMENT, NOT_SUPPORTED};
use crate::device::{ClockDomain, Device};
use crate::ffi::{Array, Out, Text, chars, struct_version};
use crate::setting::Key;

/// `NVML_DEVICE_ARCH_TURING`: GSP firmware starts there.
const TURING: u32 = 6;
/// `NVML_DEVICE_ARCH_BLACKWELL`: boards know their place in the rack from there on.
const BLACKWELL: u32 = 10;

/// Only boards for screens let their clocks be shifted.
fn tunable(device: &Device<'_>) -> Answer {
    if device.model.display { Ok(()) } else { Err(NOT_SUPPORTED) }
}

device_getters! {
    Gpu nvmlDeviceGetDisplayMode: u32 = |device| u32::from(device.model.display);
    Gpu nvmlDeviceGetDisplayActive: u32 = |device| u32::from(device.model.display);
    Gpu nvmlDeviceGetPersistenceMode: u32 = |device| nearest(
        device.setting(Key::PersistenceMode, || f64::from(u8::from(device.world.driver.persistence)))
    );
    Any nvmlDeviceGetComputeMode: u32 = |device| nearest(device.setting(Key::ComputeMode, || 0.0));
    Gpu nvmlDeviceGetVirtualizationMode: u32 = |_device| 0;
    Gpu nvmlDeviceGetAdaptiveClockInfoStatus: u32 = |device| u32::from(!device.model.display);
    Gpu nvmlDeviceGetNumaNodeId: u32 = |device| {
        device.model.c2c.as_ref().ok_or(NOT_SUPPORTED)?;
        device.gpu.id.numa_node + 1
    };
    Gpu nvmlDeviceGetC2cModeInfoV: nvmlC2cModeInfo_v1_t = |device| {
        nvmlC2cModeInfo_v1_t { isC2cEnabled: u32::from(device.model.c2c.is_some()) }
    };
}

device_api! {
    Gpu nvmlDeviceGetAPIRestriction(device, api: u32, restricted: Out<u32>) {
        match api {
            0 if device.model.clocks.application.is_some() => restricted.put(0),
            0 | 1 => Err(NOT_SUPPORTED),
            _ => Err(INVALID_ARGUMENT),
        }
    }

    Gpu nvmlDeviceGetAutoBoostedClocksEnabled(_device, on: Out<u32>, default: Out<u32>) {
        let _ = (on, default);
        Err(NOT_SUPPORTED)
    }

    Gpu nvmlDeviceGetGspFirmwareVersion(device, version: Text) {
        if device.model.architecture < TURING {
            return Err(NOT_SUPPORTED);
        }
        version.put(64, &device.world.driver.version)
    }

    Gpu nvmlDeviceGetGspFirmwareMode(device, on: Out<u32>, default: Out<u32>) {
        if device.model.architecture < TURING {
            return Err(NOT_SUPPORTED);
        }
        on.put(1)?;
        default.put(1)
    }

    WholeGpu nvmlDeviceGetDynamicPstatesInfo(device, info: Out<nvmlGpuDynamicPstatesInfo_t>) {
        let share = |present: bool, percentage| nvmlGpuDynamicPstatesInfo_st__bindgen_ty_1 {
            bIsPresent: u32::from(present), percentage, incThreshold: 0, decThreshold: 0,
        };
        let mut utilization = [share(false, 0); 8];
        utilization[0] = share(true, device.gpu_utilization());
        utilization[1] = share(true, device.memory_utilization());
        utilization[2] = share(true, device.engine_utilization(Key::DecoderUtilization, 0.8));
        utilization[3] = share(true, device.memory_utilization() / 4);
        info.put(nvmlGpuDynamicPstatesInfo_t { flags: 1, utilization })
    }

    Gpu nvmlDeviceGetSupportedPerformanceStates(device, states: Array<u32>, size: u32) {
        let known: &[u32] = if device.model.display { &[0, 2, 3, 5, 8] } else { &[0] };
        let room = size as usize / size_of::<u32>();
        if room < known.len() {
            return Err(INSUFFICIENT_SIZE);
        }
        let mut list = vec![32; room.min(16)];
        list[..known.len()].copy_from_slice(known);
        states.put_some(&list)
    }

    Gpu nvmlDeviceGetMinMaxClockOfPState(
        device, kind: u32, state: u32, min: Out<u32>, max: Out<u32>,
    ) {
        let domain = ClockDomain::new(kind)?;
        if state != 0 && !device.model.display {
            return Err(INVALID_ARGUMENT);
        }
        max.put(device.max_clock(domain))?;
        min.put(match domain {
            ClockDomain::Memory => device.model.clocks.memory.last().copied().unwrap_or(0),
            _ => device.model.clocks.idle,
        })
    }

    Gpu nvmlDeviceGetAddressingMode(device, mode: Out<nvmlDeviceAddressingMode_t>) {
        mode.expect_version(1)?;
        let mut value = mode.get()?;
        value.value = if device.model.c2c.is_some() { 2 } else { 1 };
        mode.put(value)
    }

    Gpu nvmlDeviceGetCapabilities(device, capabilities: Out<nvmlDeviceCapabilities_t>) {
        capabilities.expect_version(1)?;
        let mut value = capabilities.get()?;
        value.capMask = u32::from(device.model.c2c.is_some());
        capabilities.put(value)
    }

    Gpu nvmlDeviceGetGpcClkVfOffset(device, offset: Out<i32>) { tunable(device)?; offset.put(0) }

    Gpu nvmlDeviceGetMemClkVfOffset(device, offset: Out<i32>) { tunable(device)?; offset.put(0) }

    Gpu nvmlDeviceGetGpcClkMinMaxVfOffset(device, min: Out<i32>, max: Out<i32>) {
        tunable(device)?;
        min.put(-1_000)?;
        max.put(1_000)
    }

    Gpu nvmlDeviceGetMemClkMinMaxVfOffset(device, min: Out<i32>, max: Out<i32>) {
        tunable(device)?;
        min.put(-2_000)?;
        max.put(6_000)
    }

    Gpu nvmlDeviceGetClockOffsets(device, info: Out<nvmlClockOffset_t>) {
        info.expect_version(1)?;
        tunable(device)?;
        let mut value = info.get()?;
        (value.clockOffsetMHz, value.minClockOffsetMHz, value.maxClockOffsetMHz) = (0, -1_000, 1_000);
        info.put(value)
    }

    Gpu nvmlDeviceGetCoolerInfo(device, info: Out<nvmlCoolerInfo_t>) {
        info.expect_version(1)?;
        if device.model.fans == 0 {
            return Err(NOT_SUPPORTED);
        }
        let mut value = info.get()?;
        if value.index >= device.model.fans {
            return Err(INVALID_ARGUMENT);
        }
        (value.signalType, value.target) = (2, 2);
        info.put(value)
    }

    Gpu nvmlDeviceGetPdi(device, pdi: Out<nvmlPdi_t>) {
        pdi.expect_version(1)?;
        let mut value = pdi.get()?;
        value.value = device.gpu.id.seed;
        pdi.put(value)
    }

    Gpu nvmlDeviceGetPlatformInfo(device, info: Out<nvmlPlatformInfo_v2_t>) {
        if device.model.architecture < BLACKWELL {
            return Err(NOT_SUPPORTED);
        }
        let serial = format!("{:013}", device.gpu.id.serial / 1_000);
        let module = u8::try_from(device.gpu.number + 1).unwrap_or(u8::MAX);
        let version = info.version()?;
        if version == struct_version::<nvmlPlatformInfo_v1_t>(1) {
            return info.cast().put(nvmlPlatformInfo_v1_t {
                version,
                ibGuid: [0; 16],
                rackGuid: [0; 16],
                chassisPhysicalSlotNumber: 1,
                computeSlotIndex: 0,
                nodeIndex: 0,
                peerType: 1,
                moduleId: module,
            });
        }
        info.expect_version(2)?;
        let chars: [std::ffi::c_char; 16] = chars(&serial);
        info.put(nvmlPlatformInfo_v2_t {
            version,
            ibGuid: [0; 16],
            chassisSerialNumber: chars.map(|c| u8::try_from(c).unwrap_or(0)),
            slotNumber: 1,
            trayIndex: 0,
            hostId: 1,
            peerType: 1,
            moduleId: module,
        })
    }
}

system_api! {
    nvmlSystemGetHicVersion(_world, count: Out<u32>, entries: Array<u8>) {
        let _ = entries;
        count.put(0)
    }

    nvmlSystemGetDriverBranch(world, branch: Out<nvmlSystemDriverBranchInfo_t>, length: u32) {
        branch.expect_version(1)?;
        let text = format!("r{}_00", world.branch());
        if text.len() >= length as usize {
            return Err(INSUFFICIENT_SIZE);
        }
        let version = branch.version()?;
        branch.put(nvmlSystemDriverBranchInfo_t { version, branch: chars(&text) })
    }
}
