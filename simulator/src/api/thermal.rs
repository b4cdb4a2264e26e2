//! Temperatures and fans.

use nvml_wrapper_sys::bindings::{
    nvmlFanSpeedInfo_t, nvmlGpuThermalSettings_t, nvmlGpuThermalSettings_t__bindgen_ty_1,
    nvmlMarginTemperature_t, nvmlTemperature_v1_t,
};

use crate::call::{device_api, device_getters};
use crate::clock::nearest;
use crate::code::{Answer, INVALID_ARGUMENT, NOT_SUPPORTED};
use crate::device::Device;
use crate::ffi::Out;
use crate::setting::Key;

/// Percent of full speed.
fn fan_speed(device: &Device<'_>, fan: u32) -> Answer<u32> {
    if device.model.fans == 0 {
        return Err(NOT_SUPPORTED);
    }
    if fan >= device.model.fans {
        return Err(INVALID_ARGUMENT);
    }
    let heat = f64::from(device.temperature());
    Ok(nearest(
        device.setting(Key::FanSpeed, || (heat - 30.0).mul_add(1.4, 20.0).clamp(0.0, 100.0)),
    ))
}

fn fans(device: &Device<'_>) -> Answer<u32> {
    if device.model.fans == 0 { Err(NOT_SUPPORTED) } else { Ok(device.model.fans) }
}

device_api! {
    Gpu nvmlDeviceGetTemperature(device, sensor: u32, temperature: Out<u32>) {
        if sensor != 0 {
            return Err(INVALID_ARGUMENT);
        }
        temperature.put(device.temperature())
    }

    Gpu nvmlDeviceGetTemperatureV(device, temperature: Out<nvmlTemperature_v1_t>) {
        temperature.expect_version(1)?;
        let mut value = temperature.get()?;
        if value.sensorType != 0 {
            return Err(INVALID_ARGUMENT);
        }
        value.temperature = device.temperature().cast_signed();
        temperature.put(value)
    }

    Gpu nvmlDeviceGetTemperatureThreshold(device, threshold: u32, temperature: Out<u32>) {
        let limits = &device.model.temperature;
        temperature.put(match threshold {
            0 => limits.shutdown,
            1 => limits.slowdown,
            2 => limits.memory_max.ok_or(NOT_SUPPORTED)?,
            3 => limits.max_operating,
            4..=7 => return Err(NOT_SUPPORTED),
            _ => return Err(INVALID_ARGUMENT),
        })
    }

    Gpu nvmlDeviceGetMarginTemperature(device, margin: Out<nvmlMarginTemperature_t>) {
        margin.expect_version(1)?;
        let mut value = margin.get()?;
        let limit = device.model.temperature.slowdown.cast_signed();
        value.marginTemperature = limit - device.temperature().cast_signed();
        margin.put(value)
    }

    Gpu nvmlDeviceGetThermalSettings(device, sensor: u32, settings: Out<nvmlGpuThermalSettings_t>) {
        if sensor != 0 && sensor != 15 {
            return Err(INVALID_ARGUMENT);
        }
        let none = nvmlGpuThermalSettings_t__bindgen_ty_1 {
            controller: 0, defaultMinTemp: 0, defaultMaxTemp: 0, currentTemp: 0, target: 0,
        };
        let gpu = nvmlGpuThermalSettings_t__bindgen_ty_1 {
            controller: 1,
            defaultMinTemp: -40,
            defaultMaxTemp: 127,
            currentTemp: device.temperature().cast_signed(),
            target: 1,
        };
        settings.put(nvmlGpuThermalSettings_t { count: 1, sensor: [gpu, none, none] })
    }

    Gpu nvmlDeviceGetFanSpeed_v2(device, fan: u32, speed: Out<u32>) {
        speed.put(fan_speed(device, fan)?)
    }

    Gpu nvmlDeviceGetTargetFanSpeed(device, fan: u32, speed: Out<u32>) {
        speed.put(fan_speed(device, fan)?)
    }

    Gpu nvmlDeviceGetFanSpeedRPM(device, speed: Out<nvmlFanSpeedInfo_t>) {
        speed.expect_version(1)?;
        let mut value = speed.get()?;
        value.speed = fan_speed(device, value.fan)? * 30;
        speed.put(value)
    }

    Gpu nvmlDeviceGetMinMaxFanSpeed(device, min: Out<u32>, max: Out<u32>) {
        fans(device)?;
        min.put(30)?;
        max.put(100)
    }

    Gpu nvmlDeviceGetFanControlPolicy_v2(device, fan: u32, policy: Out<u32>) {
        fan_speed(device, fan)?;
        policy.put(0)
    }
}

device_getters! {
    Gpu nvmlDeviceGetFanSpeed: u32 = |device| fan_speed(device, 0)?;
    Gpu nvmlDeviceGetNumFans: u32 = |device| fans(device).unwrap_or(0);
}
