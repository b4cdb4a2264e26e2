//! Framebuffer and BAR1.

use nvml_wrapper_sys::bindings::{nvmlBAR1Memory_t, nvmlMemory_t, nvmlMemory_v2_t};

use crate::call::device_api;
use crate::ffi::Out;

device_api! {
    Any nvmlDeviceGetMemoryInfo(device, memory: Out<nvmlMemory_t>) {
        // The first version has no word for what is reserved, and counts it as used.
        let (total, reserved, used) = device.memory();
        let used = used + reserved;
        memory.put(nvmlMemory_t { total, free: total - used, used })
    }

    Any nvmlDeviceGetMemoryInfo_v2(device, memory: Out<nvmlMemory_v2_t>) {
        memory.expect_version(2)?;
        let (total, reserved, used) = device.memory();
        let version = memory.version()?;
        memory.put(nvmlMemory_v2_t { version, total, reserved, free: total - reserved - used, used })
    }

    Any nvmlDeviceGetBAR1MemoryInfo(device, memory: Out<nvmlBAR1Memory_t>) {
        let (total, used) = device.bar1();
        memory.put(nvmlBAR1Memory_t { bar1Total: total, bar1Free: total - used, bar1Used: used })
    }
}
