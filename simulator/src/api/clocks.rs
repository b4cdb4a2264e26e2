//! Clocks, and what holds them back.

use crate::call::{device_api, device_getters};
use crate::code::{INVALID_ARGUMENT, NOT_SUPPORTED};
use crate::device::{ClockDomain, Device};
use crate::ffi::{Array, Out};
use crate::setting::Key;
use nvml_wrapper_sys::bindings::nvmlViolationTime_t;

/// The application clock of a domain: what can be chosen, and what is.
fn application_clock(device: &Device<'_>, kind: u32) -> Result<u32, u32> {
    let application = device.model.clocks.application.ok_or(NOT_SUPPORTED)?;
    match ClockDomain::new(kind)? {
        ClockDomain::Sm => Ok(application),
        ClockDomain::Memory => Ok(device.max_clock(ClockDomain::Memory)),
        ClockDomain::Video => Err(NOT_SUPPORTED),
    }
}

/// Supported SM clocks at a memory clock, highest first, in steps of 15 MHz.
fn sm_clocks(device: &Device<'_>) -> Vec<u32> {
    let clocks = &device.model.clocks;
    (clocks.idle..=clocks.max).rev().filter(|mhz| (clocks.max - mhz).is_multiple_of(15)).collect()
}

/// All reasons that a board can have.
const REASONS: u64 = 0x1ff;

device_api! {
    Gpu nvmlDeviceGetClockInfo(device, kind: u32, clock: Out<u32>) {
        clock.put(device.clock(ClockDomain::new(kind)?))
    }

    Gpu nvmlDeviceGetMaxClockInfo(device, kind: u32, clock: Out<u32>) {
        clock.put(device.max_clock(ClockDomain::new(kind)?))
    }

    Gpu nvmlDeviceGetApplicationsClock(device, kind: u32, clock: Out<u32>) {
        clock.put(application_clock(device, kind)?)
    }

    Gpu nvmlDeviceGetDefaultApplicationsClock(device, kind: u32, clock: Out<u32>) {
        clock.put(application_clock(device, kind)?)
    }

    Gpu nvmlDeviceGetMaxCustomerBoostClock(device, kind: u32, clock: Out<u32>) {
        device.model.clocks.application.ok_or(NOT_SUPPORTED)?;
        clock.put(device.max_clock(ClockDomain::new(kind)?))
    }

    Gpu nvmlDeviceGetClock(device, kind: u32, id: u32, clock: Out<u32>) {
        let domain = ClockDomain::new(kind)?;
        clock.put(match id {
            0 => device.clock(domain),
            1 | 2 => application_clock(device, kind)?,
            3 => device.max_clock(domain),
            _ => return Err(INVALID_ARGUMENT),
        })
    }

    Gpu nvmlDeviceGetSupportedMemoryClocks(device, count: Out<u32>, clocks: Array<u32>) {
        clocks.put_list(count, &device.model.clocks.memory)
    }

    Gpu nvmlDeviceGetSupportedGraphicsClocks(
        device, memory: u32, count: Out<u32>, clocks: Array<u32>,
    ) {
        if !device.model.clocks.memory.contains(&memory) {
            return Err(crate::code::NOT_FOUND);
        }
        clocks.put_list(count, &sm_clocks(device))
    }

    Gpu nvmlDeviceGetViolationStatus(device, policy: u32, time: Out<nvmlViolationTime_t>) {
        let violation = match policy {
            0 => device.violation(Some(Key::ViolationPower), 0.03),
            1 => device.violation(Some(Key::ViolationThermal), 0.0),
            2 | 10 | 11 => 0,
            3 => device.violation(Some(Key::ViolationBoard), 0.0),
            4 => device.violation(None, 0.001),
            5 => device.violation(Some(Key::ViolationReliability), 0.0),
            _ => return Err(INVALID_ARGUMENT),
        };
        time.put(nvmlViolationTime_t {
            referenceTime: device.world.clock.wall_micros(device.now),
            violationTime: violation,
        })
    }
}

device_getters! {
    Gpu nvmlDeviceGetCurrentClocksEventReasons: u64 = |device| device.clock_reasons();
    Gpu nvmlDeviceGetCurrentClocksThrottleReasons: u64 = |device| device.clock_reasons();
    Gpu nvmlDeviceGetSupportedClocksEventReasons: u64 = |_device| REASONS;
    Gpu nvmlDeviceGetSupportedClocksThrottleReasons: u64 = |_device| REASONS;
    Gpu nvmlDeviceGetPerformanceState: u32 = |device| device.performance_state();
    Gpu nvmlDeviceGetPowerState: u32 = |device| device.performance_state();
}
