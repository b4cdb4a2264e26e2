//! What control commands do to a running client.

use std::sync::mpsc;
use std::time::Duration;

use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enum_wrappers::device::TemperatureSensor;
use nvml_wrapper_sys::bindings::nvmlEventData_t;

use crate::common::{Simulator, refusal};

fn temperature(nvml: &Nvml, index: u32) -> Result<u32, nvml_wrapper::error::NvmlError> {
    nvml.device_by_index(index)?.temperature(TemperatureSensor::Gpu)
}

#[test]
fn values_can_be_set_added_to_and_let_go() {
    let simulator = Simulator::play("dgx-h100");
    let nvml = simulator.nvml();
    let device = nvml.device_by_index(3).unwrap();
    let natural = temperature(&nvml, 3).unwrap();
    simulator.control("gpu 3 set temperature 91");
    assert_eq!(temperature(&nvml, 3).unwrap(), 91);
    let reasons = device.current_throttle_reasons_strict().unwrap();
    assert!(format!("{reasons:?}").contains("THERMAL"), "{reasons:?}");
    simulator.control("gpu 3 unset temperature");
    assert_eq!(temperature(&nvml, 3).unwrap(), natural);
    simulator.control("gpu 3 set memory_used 40GiB");
    assert_eq!(device.memory_info().unwrap().used, 40 << 30);
    let before = device.total_energy_consumption().unwrap();
    simulator.control("gpu 3 set power 100W");
    assert_eq!(device.power_usage().unwrap(), 100_000);
    let kept = device.total_energy_consumption().unwrap();
    assert!(kept.abs_diff(before) <= 1, "counters do not jump");
    simulator.control("clock advance 10s");
    let grown = device.total_energy_consumption().unwrap() - kept;
    assert!(grown.abs_diff(1_000_000) <= 1, "{grown}");
    simulator.control("gpu 3 link 4 set state down");
    assert!(!device.link_wrapper_for(4).is_active().unwrap());
    assert!(device.link_wrapper_for(5).is_active().unwrap());
    assert_ne!(simulator.try_control("gpu 3 set temprature 91"), 0);
}

#[test]
fn errors_strike_the_function_they_name() {
    let simulator = Simulator::play("dgx-h100");
    let nvml = simulator.nvml();
    simulator.control("gpu 3 error nvmlDeviceGetTemperature GPU_IS_LOST");
    assert_eq!(refusal(temperature(&nvml, 3)), "GpuLost");
    assert!(temperature(&nvml, 2).is_ok());
    simulator.control("gpu * error * clear");
    assert!(temperature(&nvml, 3).is_ok());
    simulator.control("gpu 3 error nvmlDeviceGetHandleByIndex_v2 NO_PERMISSION");
    assert_eq!(refusal(nvml.device_by_index(3)), "NoPermission");
    assert_eq!(nvml.device_count().unwrap(), 8);
    simulator.control("system error nvmlDeviceGetCount_v2 999");
    assert_eq!(refusal(nvml.device_count()), "Unknown");
    simulator.control("system error nvmlInit_v2 DRIVER_NOT_LOADED");
    assert_eq!(refusal(simulator.try_nvml()), "DriverNotLoaded");
}

#[test]
fn a_hanging_gpu_hangs_alone_until_it_is_resumed() {
    let simulator = Simulator::play("dgx-h100");
    let nvml = simulator.nvml();
    simulator.control("gpu 3 hang *");
    let (done, seen) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            done.send(temperature(&nvml, 3).is_ok()).unwrap();
        });
        assert!(temperature(&nvml, 2).is_ok(), "the others answer");
        assert!(seen.recv_timeout(Duration::from_millis(50)).is_err());
        simulator.control("gpu * resume");
        assert_eq!(seen.recv(), Ok(true));
    });
}

#[test]
fn a_slow_call_is_slow_alone() {
    let simulator = Simulator::play("dgx-h100");
    let nvml = simulator.nvml();
    simulator.control("gpu 3 latency nvmlDeviceGetTemperature 300ms");
    let (done, seen) = mpsc::channel();
    std::thread::scope(|scope| {
        let slow = done.clone();
        scope.spawn(|| {
            temperature(&nvml, 3).unwrap();
            slow.send("slow").unwrap();
            drop(slow);
        });
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            temperature(&nvml, 2).unwrap();
            done.send("quick").unwrap();
            drop(done);
        });
        assert_eq!(seen.iter().collect::<Vec<_>>(), ["quick", "slow"]);
    });
}

#[test]
fn a_lost_gpu_is_lost_until_it_is_restored() {
    let simulator = Simulator::play("dgx-h100");
    let nvml = simulator.nvml();
    let device = nvml.device_by_index(3).unwrap();
    simulator.control("gpu 3 lost");
    assert_eq!(refusal(device.power_usage()), "GpuLost");
    assert_eq!(refusal(nvml.device_by_index(3)), "GpuLost");
    assert_eq!(nvml.device_count().unwrap(), 8);
    simulator.control("gpu 3 restore");
    assert!(device.power_usage().is_ok());
}

#[test]
fn indices_shift_when_a_gpu_goes() {
    let simulator = Simulator::play("dgx-h100");
    let nvml = simulator.nvml();
    let fifth = nvml.device_by_index(4).unwrap().uuid().unwrap();
    let gone = nvml.device_by_index(3).unwrap();
    simulator.control("gpu 3 detach");
    assert_eq!(nvml.device_count().unwrap(), 7);
    assert_eq!(nvml.device_by_index(3).unwrap().uuid().unwrap(), fifth);
    assert_eq!(refusal(gone.power_usage()), "InvalidArg");
    simulator.control("gpu 3 attach");
    assert_eq!(nvml.device_count().unwrap(), 8);
    assert_eq!(refusal(gone.power_usage()), "InvalidArg", "the old handle stays stale");
    assert!(nvml.device_by_index(3).unwrap().power_usage().is_ok());
}

#[test]
fn the_driver_comes_and_goes() {
    let simulator = Simulator::play("dgx-h100");
    let nvml = simulator.nvml();
    simulator.control("driver unload");
    assert_eq!(refusal(nvml.device_count()), "Uninitialized");
    assert_eq!(refusal(simulator.try_nvml()), "DriverNotLoaded");
    simulator.control("driver load 575.57.08");
    assert_eq!(refusal(nvml.device_count()), "Uninitialized");
    let again = simulator.nvml();
    assert_eq!(again.sys_driver_version().unwrap(), "575.57.08");
    simulator.control("driver mismatch");
    assert_eq!(refusal(again.device_count()), "LibRmVersionMismatch");
    assert_eq!(refusal(simulator.try_nvml()), "LibRmVersionMismatch");
    simulator.control("driver load");
    assert!(simulator.try_nvml().is_ok());
}

#[test]
fn instances_can_be_cut_anew() {
    let simulator = Simulator::play("a100-mig-mixed");
    let nvml = simulator.nvml();
    let device = nvml.device_by_index(0).unwrap();
    let old = device.mig_device_by_index(0).unwrap();
    let energy = device.total_energy_consumption().unwrap();
    simulator.control("gpu 0 mig 4g.40gb,1g.10gb,2g.20gb");
    assert_eq!(refusal(old.name()), "InvalidArg");
    let names: Vec<String> =
        (0..3).map(|i| device.mig_device_by_index(i).unwrap().name().unwrap()).collect();
    assert!(names[0].ends_with("4g.40gb"), "{names:?}");
    assert!(device.total_energy_consumption().unwrap().abs_diff(energy) <= 1);
    simulator.control("gpu 0 mig off");
    assert_eq!(device.mig_mode().unwrap().current, 0);
    assert!(device.utilization_rates().is_ok());
    simulator.control("gpu 0 mig on");
    assert_eq!(refusal(device.mig_device_by_index(0)), "NotFound");
    assert_eq!(device.mig_device_count().unwrap(), 7);
}

/// Waits for an event as the product does, with the ids of the instances.
fn wait(
    nvml: &Nvml,
    set: &nvml_wrapper::EventSet<'_>,
    millis: u32,
) -> Result<(u64, u32, u32), u32> {
    let call = nvml.lib().nvmlEventSetWait_v2.as_ref().unwrap();
    // SAFETY: all zeros is a value of the struct, and the set is alive.
    unsafe {
        let mut data: nvmlEventData_t = std::mem::zeroed();
        match call(set.handle(), &raw mut data, millis) {
            0 => Ok((data.eventData, data.gpuInstanceId, data.computeInstanceId)),
            code => Err(code),
        }
    }
}

#[test]
fn xids_reach_those_who_wait_for_them() {
    let simulator = Simulator::play("a100-mig-mixed");
    let nvml = simulator.nvml();
    simulator.control("gpu 0 xid 13");
    let set = nvml.create_event_set().unwrap();
    let device = nvml.device_by_index(0).unwrap();
    let set = device.register_events(EventTypes::CRITICAL_XID_ERROR, set).unwrap();
    assert_eq!(wait(&nvml, &set, 0), Err(10), "what came before is not told");
    simulator.control("gpu 0 xid 79");
    simulator.control("gpu 0 xid 94 gi 2 ci 0");
    simulator.control("gpu 1 xid 31");
    assert_eq!(wait(&nvml, &set, 0), Ok((79, u32::MAX, u32::MAX)));
    assert_eq!(wait(&nvml, &set, 0), Ok((94, 2, 0)));
    assert_eq!(wait(&nvml, &set, 5), Err(10));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            simulator.control("gpu 0 xid 48");
        });
        assert_eq!(wait(&nvml, &set, 60_000), Ok((48, u32::MAX, u32::MAX)));
    });
    simulator.control("gpu 0 lost");
    assert_eq!(wait(&nvml, &set, 60_000), Err(15));
}
