//! The PCI Express link.

use std::time::Duration;

use crate::call::{Function, On, device, device_api, device_getters};
use crate::clock::nearest;
use crate::code::{Code, INVALID_ARGUMENT, NOT_SUPPORTED};
use crate::ffi::{Handle, Out};

/// The throughput is counted over this time: the call takes as long.
const THROUGHPUT_WINDOW: Duration = Duration::from_millis(20);

/// MB/s of a lane, by generation.
const LANE_SPEED: [u32; 7] = [0, 2_500, 5_000, 8_000, 16_000, 32_000, 64_000];

fn lane_speed(generation: u32) -> u32 {
    LANE_SPEED.get(generation as usize).copied().unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetPcieThroughput(handle: Handle, counter: u32, value: Out<u32>) -> Code {
    static FUNCTION: Function = Function { name: "nvmlDeviceGetPcieThroughput", on: On::Gpu };
    let mut measured = false;
    let code = device(&FUNCTION, handle, &[&counter, &value], &mut |device| {
        let (sent, received) = device.model.pcie.rates();
        let rate = match counter {
            0 => sent,
            1 => received,
            _ => return Err(INVALID_ARGUMENT),
        };
        measured = true;
        value.put(nearest((rate * device.load() + 2e3) / 1024.0))
    });
    if measured {
        std::thread::sleep(THROUGHPUT_WINDOW);
    }
    code
}

device_getters! {
    Gpu nvmlDeviceGetMaxPcieLinkGeneration: u32 = |device| device.model.pcie.generation;
    Gpu nvmlDeviceGetGpuMaxPcieLinkGeneration: u32 = |device| device.model.pcie.generation;
    Gpu nvmlDeviceGetMaxPcieLinkWidth: u32 = |device| device.model.pcie.width;
    Gpu nvmlDeviceGetCurrPcieLinkGeneration: u32 = |device| device.pcie_link().0;
    Gpu nvmlDeviceGetCurrPcieLinkWidth: u32 = |device| device.pcie_link().1;
    Gpu nvmlDeviceGetPcieReplayCounter: u32 = |device| {
        u32::try_from(device.pcie_replays()).unwrap_or(u32::MAX)
    };
    Gpu nvmlDeviceGetPcieLinkMaxSpeed: u32 = |device| device.model.pcie.generation;
    Gpu nvmlDeviceGetPcieSpeed: u32 = |device| lane_speed(device.pcie_link().0);
}

device_api! {
    Gpu nvmlDeviceGetBridgeChipInfo(_device, hierarchy: Out<u8>) {
        // Only boards with several GPUs have one.
        let _ = hierarchy;
        Err(NOT_SUPPORTED)
    }
}
