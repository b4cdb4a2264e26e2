//! Power and energy.

use crate::call::{device_api, device_getters};
use crate::clock::nearest;
use crate::ffi::Out;

device_getters! {
    Gpu nvmlDeviceGetPowerUsage: u32 = |device| device.power_milliwatts();
    Gpu nvmlDeviceGetTotalEnergyConsumption: u64 = |device| device.energy_millijoules();
    Gpu nvmlDeviceGetPowerManagementLimit: u32 = |device| device.power_limit_milliwatts();
    Gpu nvmlDeviceGetEnforcedPowerLimit: u32 = |device| device.power_limit_milliwatts();
    Gpu nvmlDeviceGetPowerManagementDefaultLimit: u32 = |device| nearest(device.model.power.limit * 1e3);
    Gpu nvmlDeviceGetPowerManagementMode: u32 = |_device| 1;
    Gpu nvmlDeviceGetPowerSource: u32 = |_device| 0;
}

device_api! {
    Gpu nvmlDeviceGetPowerManagementLimitConstraints(device, min: Out<u32>, max: Out<u32>) {
        min.put(nearest(device.model.power.min * 1e3))?;
        max.put(nearest(device.model.power.max * 1e3))
    }
}
