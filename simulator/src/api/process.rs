//! Who uses a device.

use nvml_wrapper_sys::bindings::{
    nvmlProcessDetail_v1_t, nvmlProcessDetailList_t, nvmlProcessInfo_v1_t, nvmlProcessInfo_v2_t,
    nvmlProcessUtilizationInfo_v1_t, nvmlProcessUtilizationSample_t,
    nvmlProcessesUtilizationInfo_t, nvmlSample_t, nvmlValue_t,
};

use crate::call::device_api;
use crate::code::{Answer, INSUFFICIENT_SIZE, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED};
use crate::device::{ClockDomain, Device, MIB};
use crate::ffi::{Array, Out};
use crate::setting::Key;

/// A process on a device.
struct Process {
    pid: u32,
    memory: u64,
    instance: (u32, u32),
}

impl Process {
    fn v1(&self) -> nvmlProcessInfo_v1_t {
        nvmlProcessInfo_v1_t { pid: self.pid, usedGpuMemory: self.memory }
    }

    fn v2(&self) -> nvmlProcessInfo_v2_t {
        let (gi, ci) = self.instance;
        nvmlProcessInfo_v2_t {
            pid: self.pid,
            usedGpuMemory: self.memory,
            gpuInstanceId: gi,
            computeInstanceId: ci,
        }
    }
}

/// The compute processes of a device: the scenario's, or the client's parent as a stand-in, for
/// then the process exists. Idle devices have none.
fn compute(device: &Device<'_>) -> Vec<Process> {
    let pids = match &device.gpu.processes {
        Some(pids) => pids.clone(),
        None => vec![stand_in()],
    };
    let mut processes = Vec::new();
    let mut add = |memory: u64, instance: (u32, u32)| {
        let share = memory.saturating_sub(300 * MIB) / (pids.len().max(1) as u64);
        processes.extend(pids.iter().map(|&pid| Process { pid, memory: share, instance }));
    };
    match (device.part, &device.gpu.mig) {
        (Some((gi, ci)), _) => {
            if device.gpu.load(Some(gi), device.now) > 0.005 {
                add(device.memory().2, (gi.id, ci.id));
            }
        }
        (None, Some(instances)) => {
            for gi in instances.iter().filter(|gi| device.gpu.load(Some(gi), device.now) > 0.005) {
                let memory = device.instance_memory_used(gi);
                for ci in &gi.compute {
                    add(memory, (gi.id, ci.id));
                }
            }
        }
        (None, None) if !device.idle() => add(device.memory().2, (u32::MAX, u32::MAX)),
        (None, None) => {}
    }
    processes
}

fn stand_in() -> u32 {
    // SAFETY: plain queries.
    let (parent, own) = unsafe { (libc::getppid(), libc::getpid()) };
    u32::try_from(if parent > 1 { parent } else { own }).unwrap_or(1)
}

/// No graphics and no MPS processes, on any device.
fn none() -> Vec<Process> {
    Vec::new()
}

macro_rules! process_lists {
    ($($name:ident: $info:ty = |$device:ident| $processes:expr, $convert:ident;)*) => {
        device_api! {$(
            Any $name($device, count: Out<u32>, infos: Array<$info>) {
                let list: Vec<$info> = $processes.iter().map(Process::$convert).collect();
                infos.put_list(count, &list)
            }
        )*}
    };
}

process_lists! {
    nvmlDeviceGetComputeRunningProcesses: nvmlProcessInfo_v1_t = |device| compute(device), v1;
    nvmlDeviceGetComputeRunningProcesses_v2: nvmlProcessInfo_v2_t = |device| compute(device), v2;
    nvmlDeviceGetComputeRunningProcesses_v3: nvmlProcessInfo_v2_t = |device| compute(device), v2;
    nvmlDeviceGetGraphicsRunningProcesses: nvmlProcessInfo_v1_t = |_device| none(), v1;
    nvmlDeviceGetGraphicsRunningProcesses_v2: nvmlProcessInfo_v2_t = |_device| none(), v2;
    nvmlDeviceGetGraphicsRunningProcesses_v3: nvmlProcessInfo_v2_t = |_device| none(), v2;
    nvmlDeviceGetMPSComputeRunningProcesses: nvmlProcessInfo_v1_t = |_device| none(), v1;
    nvmlDeviceGetMPSComputeRunningProcesses_v2: nvmlProcessInfo_v2_t = |_device| none(), v2;
    nvmlDeviceGetMPSComputeRunningProcesses_v3: nvmlProcessInfo_v2_t = |_device| none(), v2;
}

/// When the driver last looked at the processes: once a second.
fn sampled(device: &Device<'_>) -> u64 {
    device.world.clock.wall_micros(device.now.floor())
}

device_api! {
    Any nvmlDeviceGetRunningProcessDetailList(device, list: Out<nvmlProcessDetailList_t>) {
        list.expect_version(1)?;
        let mut value = list.get()?;
        let processes = match value.mode {
            0 => compute(device),
            1 | 2 => none(),
            _ => return Err(INVALID_ARGUMENT),
        };
        let room = value.numProcArrayEntries as usize;
        value.numProcArrayEntries = u32::try_from(processes.len()).unwrap_or(0);
        list.put(value)?;
        if processes.len() > room {
            return Err(INSUFFICIENT_SIZE);
        }
        let details: Vec<_> = processes
            .iter()
            .map(|p| nvmlProcessDetail_v1_t {
                pid: p.pid,
                usedGpuMemory: p.memory,
                gpuInstanceId: p.instance.0,
                computeInstanceId: p.instance.1,
                usedGpuCcProtectedMemory: u64::MAX,
            })
            .collect();
        Array::from_field(value.procArray).put_some(&details)
    }

    WholeGpu nvmlDeviceGetProcessUtilization(
        device, samples: Array<nvmlProcessUtilizationSample_t>, count: Out<u32>, last_seen: u64,
    ) {
        let time = sampled(device);
        let processes = if time > last_seen { compute(device) } else { none() };
        if processes.is_empty() {
            count.put(0)?;
            return Err(NOT_FOUND);
        }
        let share = u32::try_from(processes.len()).unwrap_or(1);
        let list: Vec<_> = processes
            .iter()
            .map(|p| nvmlProcessUtilizationSample_t {
                pid: p.pid,
                timeStamp: time,
                smUtil: device.gpu_utilization() / share,
                memUtil: device.memory_utilization() / share,
                encUtil: device.engine_utilization(Key::EncoderUtilization, 0.3) / share,
                decUtil: device.engine_utilization(Key::DecoderUtilization, 0.8) / share,
            })
            .collect();
        samples.put_list(count, &list)
    }

    WholeGpu nvmlDeviceGetProcessesUtilizationInfo(device, info: Out<nvmlProcessesUtilizationInfo_t>) {
        info.expect_version(1)?;
        let mut value = info.get()?;
        let time = sampled(device);
        let processes = if time > value.lastSeenTimeStamp { compute(device) } else { none() };
        if processes.is_empty() {
            return Err(NOT_FOUND);
        }
        let room = value.processSamplesCount as usize;
        let share = u32::try_from(processes.len()).unwrap_or(1);
        value.processSamplesCount = share;
        info.put(value)?;
        if value.procUtilArray.is_null() || processes.len() > room {
            return Err(INSUFFICIENT_SIZE);
        }
        let list: Vec<_> = processes
            .iter()
            .map(|p| nvmlProcessUtilizationInfo_v1_t {
                timeStamp: time,
                pid: p.pid,
                smUtil: device.gpu_utilization() / share,
                memUtil: device.memory_utilization() / share,
                encUtil: device.engine_utilization(Key::EncoderUtilization, 0.3) / share,
                decUtil: device.engine_utilization(Key::DecoderUtilization, 0.8) / share,
                jpgUtil: device.engine_utilization(Key::JpegUtilization, 0.4) / share,
                ofaUtil: device.engine_utilization(Key::OfaUtilization, 0.1) / share,
            })
            .collect();
        Array::from_field(value.procUtilArray).put_some(&list)
    }

    Gpu nvmlDeviceGetSamples(
        device, kind: u32, last_seen: u64, value_type: Out<u32>, count: Out<u32>,
        samples: Array<nvmlSample_t>,
    ) {
        let value = sample(device, kind)?;
        value_type.put(1)?;
        if samples.is_null() {
            return count.put(SAMPLES);
        }
        let room = count.get()?;
        if room == 0 {
            return Err(INVALID_ARGUMENT);
        }
        // The driver keeps the last two seconds or so.
        let step = 20_000;
        let newest = device.world.clock.wall_micros(device.now) / step * step;
        let list: Vec<_> = (0..u64::from(SAMPLES))
            .rev()
            .map(|age| newest - age * step)
            .filter(|time| *time > last_seen)
            .take(room as usize)
            .map(|time| nvmlSample_t { timeStamp: time, sampleValue: nvmlValue_t { uiVal: value } })
            .collect();
        if list.is_empty() {
            return Err(NOT_FOUND);
        }
        count.put(u32::try_from(list.len()).unwrap_or(0))?;
        samples.put_some(&list)
    }
}

/// How many samples the driver keeps.
const SAMPLES: u32 = 120;

fn sample(device: &Device<'_>, kind: u32) -> Answer<u32> {
    if device.gpu.mig.is_some() && matches!(kind, 1..=4 | 8 | 9) {
        return Err(NOT_SUPPORTED);
    }
    Ok(match kind {
        0 => device.power_milliwatts(),
        1 => device.gpu_utilization(),
        2 => device.memory_utilization(),
        3 => device.engine_utilization(Key::EncoderUtilization, 0.3),
        4 => device.engine_utilization(Key::DecoderUtilization, 0.8),
        5 => device.clock(ClockDomain::Sm),
        6 => device.clock(ClockDomain::Memory),
        7 => return Err(NOT_SUPPORTED),
        8 => device.engine_utilization(Key::JpegUtilization, 0.4),
        9 => device.engine_utilization(Key::OfaUtilization, 0.1),
        _ => return Err(INVALID_ARGUMENT),
    })
}
