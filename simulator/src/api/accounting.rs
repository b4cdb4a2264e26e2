//! The driver's accounts of processes.

use nvml_wrapper_sys::bindings::nvmlAccountingStats_t;

use crate::account::{KEPT, records};
use crate::call::{device_api, device_getters};
use crate::clock::{nearest, whole};
use crate::code::NOT_FOUND;
use crate::ffi::{Array, Out};

device_getters! {
    Gpu nvmlDeviceGetAccountingMode: u32 = |device| u32::from(device.gpu.accounts.is_some());
    Gpu nvmlDeviceGetAccountingBufferSize: u32 = |_device| KEPT;
}

device_api! {
    // A process id that is used again is there twice.
    Gpu nvmlDeviceGetAccountingPids(device, count: Out<u32>, pids: Array<u32>) {
        let all: Vec<u32> = records(device)?.iter().map(|record| record.pid).collect();
        pids.put_list(count, &all)
    }

    // Of a process id that is used again the one that has ended is found.
    Gpu nvmlDeviceGetAccountingStats(device, pid: u32, stats: Out<nvmlAccountingStats_t>) {
        let all = records(device)?;
        let record = all.iter().find(|record| record.pid == pid).ok_or(NOT_FOUND)?;
        stats.put(nvmlAccountingStats_t {
            gpuUtilization: nearest(record.multiprocessors),
            memoryUtilization: nearest(record.memory),
            maxMemoryUsage: record.peak,
            time: record.end.map_or(0, |end| whole((end - record.start) * 1e3)),
            startTime: device.world.clock.wall_micros(record.start),
            isRunning: u32::from(record.end.is_none()),
            reserved: [0; 5],
        })
    }
}
