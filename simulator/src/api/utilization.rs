//! How busy a device is.

use nvml_wrapper_sys::bindings::{nvmlFBCStats_t, nvmlUtilization_t};

use crate::call::device_api;
use crate::ffi::{Array, Out};
use crate::setting::Key;

/// Over how many microseconds the video engines are watched.
const PERIOD: u32 = 167_000;

device_api! {
    WholeGpu nvmlDeviceGetUtilizationRates(device, utilization: Out<nvmlUtilization_t>) {
        let (gpu, memory) = (device.gpu_utilization(), device.memory_utilization());
        utilization.put(nvmlUtilization_t { gpu, memory })
    }

    WholeGpu nvmlDeviceGetEncoderUtilization(device, percent: Out<u32>, period: Out<u32>) {
        percent.put(device.engine_utilization(Key::EncoderUtilization, 0.3))?;
        period.put(PERIOD)
    }

    WholeGpu nvmlDeviceGetDecoderUtilization(device, percent: Out<u32>, period: Out<u32>) {
        percent.put(device.engine_utilization(Key::DecoderUtilization, 0.8))?;
        period.put(PERIOD)
    }

    WholeGpu nvmlDeviceGetJpgUtilization(device, percent: Out<u32>, period: Out<u32>) {
        percent.put(device.engine_utilization(Key::JpegUtilization, 0.4))?;
        period.put(PERIOD)
    }

    WholeGpu nvmlDeviceGetOfaUtilization(device, percent: Out<u32>, period: Out<u32>) {
        percent.put(device.engine_utilization(Key::OfaUtilization, 0.1))?;
        period.put(PERIOD)
    }

    WholeGpu nvmlDeviceGetEncoderCapacity(_device, kind: u32, capacity: Out<u32>) {
        if kind > 2 {
            return Err(crate::code::INVALID_ARGUMENT);
        }
        capacity.put(100)
    }

    WholeGpu nvmlDeviceGetEncoderStats(
        device, sessions: Out<u32>, fps: Out<u32>, latency: Out<u32>,
    ) {
        let running = device.gpu.media && !device.idle();
        sessions.put(if running { 4 } else { 0 })?;
        fps.put(if running { 30 } else { 0 })?;
        latency.put(if running { 4_200 } else { 0 })
    }

    WholeGpu nvmlDeviceGetEncoderSessions(_device, count: Out<u32>, sessions: Array<u8>) {
        let _ = sessions;
        count.put(0)
    }

    WholeGpu nvmlDeviceGetFBCStats(_device, stats: Out<nvmlFBCStats_t>) {
        stats.put(nvmlFBCStats_t { sessionsCount: 0, averageFPS: 0, averageLatency: 0 })
    }

    WholeGpu nvmlDeviceGetFBCSessions(_device, count: Out<u32>, sessions: Array<u8>) {
        let _ = sessions;
        count.put(0)
    }
}
