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
use crate::mig::{ComputeInstance, GpuInstance};
use crate::process::{List, NOT_AVAILABLE, Process};
use crate::scenario::version_numbers;
use crate::setting::Key;

/// A process on a device.
struct Running {
    process: Process,
    memory: u64,
    instance: (u32, u32),
}

impl Running {
    fn v1(&self) -> nvmlProcessInfo_v1_t {
        nvmlProcessInfo_v1_t { pid: self.process.pid, usedGpuMemory: self.memory }
    }

    fn v2(&self) -> nvmlProcessInfo_v2_t {
        let (gi, ci) = self.instance;
        nvmlProcessInfo_v2_t {
            pid: self.process.pid,
            usedGpuMemory: self.memory,
            gpuInstanceId: gi,
            computeInstanceId: ci,
        }
    }

    fn detail(&self) -> nvmlProcessDetail_v1_t {
        let (gi, ci) = self.instance;
        nvmlProcessDetail_v1_t {
            pid: self.process.pid,
            usedGpuMemory: self.memory,
            gpuInstanceId: gi,
            computeInstanceId: ci,
            usedGpuCcProtectedMemory: NOT_AVAILABLE,
        }
    }

    /// Percent of time that its kernels ran, if `share` of it follows the device.
    fn utilization(&self, share: u32) -> u32 {
        self.process.utilization.unwrap_or(share)
    }
}

/// The processes of a device: those that the scenario or a command put there, or the client's
/// parent as a stand-in, for then the process exists. Idle devices have only those of which more
/// is said than that they are there.
fn running(device: &Device<'_>) -> Vec<Running> {
    let mut found = Vec::new();
    match (device.part, &device.gpu.mig) {
        (Some(part), _) => found = of_instance(device, part),
        (None, Some(instances)) => {
            for gi in instances {
                found.extend(gi.compute.iter().flat_map(|ci| of_instance(device, (gi, ci))));
            }
        }
        (None, None) => {
            let busy = !device.idle();
            add(&device.gpu.listed(), busy, device.memory().2, (u32::MAX, u32::MAX), &mut found);
        }
    }
    found
}

fn of_instance(device: &Device<'_>, (gi, ci): (&GpuInstance, &ComputeInstance)) -> Vec<Running> {
    let mut found = Vec::new();
    let own = device.gpu.instance_processes.iter().find(|(id, _)| *id == gi.id);
    // A process is in one compute instance: that of a command, in the first.
    let first = gi.compute.first().is_some_and(|first| first.id == ci.id);
    let list = match own {
        Some((_, list)) if first => list.clone(),
        Some(_) => Vec::new(),
        None => device.gpu.listed(),
    };
    let busy = device.gpu.load(Some(gi), device.now) > 0.005;
    add(&list, busy, device.instance_memory_used(gi), (gi.id, ci.id), &mut found);
    found
}

fn add(list: &[Process], busy: bool, used: u64, instance: (u32, u32), found: &mut Vec<Running>) {
    let share = if busy { used.saturating_sub(300 * MIB) / (list.len().max(1) as u64) } else { 0 };
    found.extend(list.iter().filter(|process| busy || process.stays()).map(|process| Running {
        memory: process.memory.unwrap_or(share),
        process: process.clone(),
        instance,
    }));
}

fn listed(device: &Device<'_>, list: List) -> Vec<Running> {
    let mut found = running(device);
    found.retain(|running| running.process.lists.contains(&list));
    found
}

macro_rules! process_lists {
    ($($name:ident: $info:ty = $list:ident, $convert:ident;)*) => {
        device_api! {$(
            Any $name(device, count: Out<u32>, infos: Array<$info>) {
                let list: Vec<$info> =
                    listed(device, List::$list).iter().map(Running::$convert).collect();
                infos.put_list(count, &list)
            }
        )*}
    };
}

process_lists! {
    nvmlDeviceGetComputeRunningProcesses: nvmlProcessInfo_v1_t = Compute, v1;
    nvmlDeviceGetComputeRunningProcesses_v2: nvmlProcessInfo_v2_t = Compute, v2;
    nvmlDeviceGetGraphicsRunningProcesses: nvmlProcessInfo_v1_t = Graphics, v1;
    nvmlDeviceGetGraphicsRunningProcesses_v2: nvmlProcessInfo_v2_t = Graphics, v2;
    nvmlDeviceGetMPSComputeRunningProcesses: nvmlProcessInfo_v1_t = Mps, v1;
    nvmlDeviceGetMPSComputeRunningProcesses_v2: nvmlProcessInfo_v2_t = Mps, v2;
}

macro_rules! newest_process_lists {
    ($($name:ident = $list:ident;)*) => {
        device_api! {$(
            Any $name(device, count: Out<u32>, infos: Array<nvmlProcessInfo_v2_t>) {
                let list = listed(device, List::$list);
                if is_wide(&device.world.driver.version) {
                    let list: Vec<_> = list.iter().map(Running::detail).collect();
                    return infos.cast().put_list(count, &list);
                }
                infos.put_list(count, &list.iter().map(Running::v2).collect::<Vec<_>>())
            }
        )*}
    };
}

newest_process_lists! {
    nvmlDeviceGetComputeRunningProcesses_v3 = Compute;
    nvmlDeviceGetGraphicsRunningProcesses_v3 = Graphics;
    nvmlDeviceGetMPSComputeRunningProcesses_v3 = Mps;
}

/// The first drivers of branch 535 gave the third version a wider struct, and did not say so.
fn is_wide(version: &str) -> bool {
    matches!(version_numbers(version)[..], [535, minor, ..] if minor < 98)
}

/// A sample of a process: what it is made of is the same in both structs.
struct Sampled {
    pid: u32,
    multiprocessors: u32,
    memory: u32,
    encoder: u32,
    decoder: u32,
}

/// What the driver sampled later than `last_seen`, with the time: one sample of each process that
/// used the GPU at all.
fn sampled(device: &Device<'_>, last_seen: u64) -> Answer<(u64, Vec<Sampled>)> {
    let time = device.world.clock.sampled_micros(device.now);
    let processes = if time > last_seen { running(device) } else { Vec::new() };
    let count = u32::try_from(processes.len()).unwrap_or(1).max(1);
    let list: Vec<Sampled> = processes
        .iter()
        .map(|running| Sampled {
            pid: running.process.pid,
            multiprocessors: running.utilization(device.gpu_utilization() / count),
            memory: device.memory_utilization() / count,
            encoder: device.engine_utilization(Key::EncoderUtilization, 0.3) / count,
            decoder: device.engine_utilization(Key::DecoderUtilization, 0.8) / count,
        })
        .filter(|s| s.multiprocessors + s.memory + s.encoder + s.decoder > 0)
        .collect();
    if list.is_empty() { Err(NOT_FOUND) } else { Ok((time, list)) }
}

device_api! {
    Any nvmlDeviceGetRunningProcessDetailList(device, list: Out<nvmlProcessDetailList_t>) {
        list.expect_version(1)?;
        let mut value = list.get()?;
        let processes = match value.mode {
            0 => listed(device, List::Compute),
            1 => listed(device, List::Graphics),
            2 => listed(device, List::Mps),
            _ => return Err(INVALID_ARGUMENT),
        };
        let room = value.numProcArrayEntries as usize;
        value.numProcArrayEntries = u32::try_from(processes.len()).unwrap_or(0);
        list.put(value)?;
        if processes.len() > room {
            return Err(INSUFFICIENT_SIZE);
        }
        let details: Vec<_> = processes.iter().map(Running::detail).collect();
        Array::from_field(value.procArray).put_some(&details)
    }

    WholeGpu nvmlDeviceGetProcessUtilization(
        device, samples: Array<nvmlProcessUtilizationSample_t>, count: Out<u32>, last_seen: u64,
    ) {
        let (time, sampled) = sampled(device, last_seen).inspect_err(|_| {
            let _ = count.put(0);
        })?;
        let list: Vec<_> = sampled
            .iter()
            .map(|s| nvmlProcessUtilizationSample_t {
                pid: s.pid,
                timeStamp: time,
                smUtil: s.multiprocessors,
                memUtil: s.memory,
                encUtil: s.encoder,
                decUtil: s.decoder,
            })
            .collect();
        if samples.is_null() {
            count.put(u32::try_from(list.len()).unwrap_or(u32::MAX))?;
            return Err(INSUFFICIENT_SIZE);
        }
        samples.put_list(count, &list)
    }

    WholeGpu nvmlDeviceGetProcessesUtilizationInfo(device, info: Out<nvmlProcessesUtilizationInfo_t>) {
        info.expect_version(1)?;
        let mut value = info.get()?;
        let (time, sampled) = sampled(device, value.lastSeenTimeStamp)?;
        let room = value.processSamplesCount as usize;
        value.processSamplesCount = u32::try_from(sampled.len()).unwrap_or(u32::MAX);
        info.put(value)?;
        if value.procUtilArray.is_null() || sampled.len() > room {
            return Err(INSUFFICIENT_SIZE);
        }
        let count = u32::try_from(sampled.len()).unwrap_or(1);
        let list: Vec<_> = sampled
            .iter()
            .map(|s| nvmlProcessUtilizationInfo_v1_t {
                timeStamp: time,
                pid: s.pid,
                smUtil: s.multiprocessors,
                memUtil: s.memory,
                encUtil: s.encoder,
                decUtil: s.decoder,
                jpgUtil: device.engine_utilization(Key::JpegUtilization, 0.4) / count,
                ofaUtil: device.engine_utilization(Key::OfaUtilization, 0.1) / count,
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
