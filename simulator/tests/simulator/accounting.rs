//! Accounting mode: who is in the driver's accounts, and with what.

use std::mem::zeroed;
use std::ptr::null_mut;

use nvml_wrapper::Nvml;
use nvml_wrapper_sys::bindings::{nvmlAccountingStats_t, nvmlDevice_t};

use crate::common::Simulator;

const NOT_SUPPORTED: u32 = 3;
const NOT_FOUND: u32 = 6;
const INSUFFICIENT_SIZE: u32 = 7;

fn handle(nvml: &Nvml, index: u32) -> nvmlDevice_t {
    // SAFETY: the handle is used while `nvml` lives.
    unsafe { nvml.device_by_index(index).unwrap().handle() }
}

fn is_on(nvml: &Nvml, index: u32) -> bool {
    nvml.device_by_index(index).unwrap().is_accounting_enabled().unwrap()
}

/// The list, the way clients get it: first its length, then itself.
fn pids(nvml: &Nvml, device: nvmlDevice_t) -> Result<Vec<u32>, u32> {
    let call = nvml.lib().nvmlDeviceGetAccountingPids.as_ref().unwrap();
    let mut count = 0;
    // SAFETY: the array is as long as announced.
    unsafe {
        match call(device, &raw mut count, null_mut()) {
            0 => assert_eq!(count, 0),
            INSUFFICIENT_SIZE => {}
            code => return Err(code),
        }
        let mut all = vec![0; count as usize];
        match call(device, &raw mut count, all.as_mut_ptr()) {
            0 => Ok(all),
            code => Err(code),
        }
    }
}

fn stats(nvml: &Nvml, device: nvmlDevice_t, pid: u32) -> Result<nvmlAccountingStats_t, u32> {
    let call = nvml.lib().nvmlDeviceGetAccountingStats.as_ref().unwrap();
    // SAFETY: all zeros is a value of the struct.
    unsafe {
        let mut stats = zeroed();
        match call(device, pid, &raw mut stats) {
            0 => Ok(stats),
            code => Err(code),
        }
    }
}

/// Percent of both kinds, bytes, milliseconds, whether it runs.
fn told(nvml: &Nvml, device: nvmlDevice_t, pid: u32) -> (u32, u32, u64, u64, u32) {
    let told = stats(nvml, device, pid).unwrap();
    let percent = (told.gpuUtilization, told.memoryUtilization);
    (percent.0, percent.1, told.maxMemoryUsage, told.time, told.isRunning)
}

#[test]
fn the_mode_is_off_until_a_command_and_after_the_driver_was_reloaded() {
    let simulator = Simulator::play("dgx-h100");
    let nvml = simulator.nvml();
    let device = handle(&nvml, 0);
    assert!(!is_on(&nvml, 0));
    assert_eq!(pids(&nvml, device), Err(NOT_SUPPORTED));
    assert_eq!(stats(&nvml, device, 11).unwrap_err(), NOT_SUPPORTED);
    simulator.control("gpu 0 processes 11:1GiB");
    simulator.control("gpu 0 accounting on");
    assert!(is_on(&nvml, 0) && !is_on(&nvml, 1));
    assert_eq!(pids(&nvml, device), Ok(vec![11]));
    assert_eq!(stats(&nvml, device, 12).unwrap_err(), NOT_FOUND);
    simulator.control("gpu 0 accounting off");
    assert_eq!(pids(&nvml, device), Err(NOT_SUPPORTED));
    simulator.control("gpu 0 accounting on");
    drop(nvml);
    simulator.control("driver load");
    assert!(!is_on(&simulator.nvml(), 0));
}

#[test]
fn a_process_is_accounted_while_it_runs_and_after_its_end() {
    let simulator = Simulator::play("dgx-h100");
    let nvml = simulator.nvml();
    let device = handle(&nvml, 0);
    simulator.control("gpu 0 processes none");
    simulator.control("gpu 0 accounting on");
    simulator.control("gpu 0 set load 0.5");
    simulator.control("gpu 0 processes 11:2GiB:40,12:na:0,13");
    let started = stats(&nvml, device, 11).unwrap().startTime;
    assert_eq!(told(&nvml, device, 11), (40, 10, 2 << 30, 0, 1), "it has only begun");
    simulator.control("clock advance 30s");
    simulator.control("gpu 0 processes 11:1GiB:10,12:na:0,13");
    simulator.control("clock advance 10s");
    // (30 s of 40 % + 10 s of 10 %) of 40 s, and the most memory of both times.
    let running = (33, 10, 2 << 30, 0, 1);
    assert_eq!(told(&nvml, device, 11), running);
    assert_eq!(told(&nvml, device, 12), (0, 10, u64::MAX, 0, 1));
    let (own, ..) = told(&nvml, device, 13);
    assert_eq!(own, 17, "a third of the load");
    simulator.control("gpu 0 processes 12:na:0,13");
    assert_eq!(told(&nvml, device, 11), (33, 10, 2 << 30, 40_000, 0));
    simulator.control("clock advance 60s");
    assert_eq!(told(&nvml, device, 11), (33, 10, 2 << 30, 40_000, 0), "what has ended stays");
    assert_eq!(stats(&nvml, device, 11).unwrap().startTime, started);
    assert_eq!(pids(&nvml, device), Ok(vec![11, 12, 13]));
}

/// As the open kernel module does: one that ended is found first, and one of a number is kept.
#[test]
fn a_number_that_is_used_again_is_listed_twice_and_tells_of_the_one_that_ended() {
    let simulator = Simulator::play("dgx-h100");
    let nvml = simulator.nvml();
    let device = handle(&nvml, 0);
    simulator.control("gpu 0 processes none");
    simulator.control("gpu 0 accounting on");
    for (memory, seconds) in [("1GiB", 10), ("2GiB", 20)] {
        simulator.control(&format!("gpu 0 processes 11:{memory}:50"));
        simulator.control(&format!("clock advance {seconds}s"));
        simulator.control("gpu 0 processes none");
    }
    assert_eq!(pids(&nvml, device), Ok(vec![11]));
    let (.., memory, time, running) = told(&nvml, device, 11);
    assert_eq!((memory, time, running), (2 << 30, 20_000, 0));
    let ended = stats(&nvml, device, 11).unwrap().startTime;
    simulator.control("gpu 0 processes 11:3GiB:50");
    assert_eq!(pids(&nvml, device), Ok(vec![11, 11]));
    assert_eq!(stats(&nvml, device, 11).unwrap().startTime, ended);
    simulator.control("gpu 0 processes none");
    assert_eq!(pids(&nvml, device), Ok(vec![11]));
    assert_eq!(told(&nvml, device, 11).2, 3 << 30);
}

#[test]
fn the_driver_forgets_the_oldest_of_too_many() {
    let simulator = Simulator::play("dgx-h100");
    let nvml = simulator.nvml();
    let device = handle(&nvml, 0);
    assert_eq!(nvml.device_by_index(0).unwrap().accounting_buffer_size().unwrap(), 4_000);
    simulator.control("gpu 0 accounting on");
    for pids in [1..=3_000, 3_001..=4_001] {
        let list: Vec<String> = pids.map(|pid: u32| format!("{pid}:1MiB:0")).collect();
        simulator.control(&format!("gpu 0 processes {}", list.join(",")));
    }
    simulator.control("gpu 0 processes none");
    let all = pids(&nvml, device).unwrap();
    assert_eq!((all.len(), all[0], all[3_999]), (4_000, 2, 4_001));
}

#[test]
fn a_gpu_in_mig_mode_has_no_accounts() {
    let simulator = Simulator::play("a100-mig-mixed");
    let nvml = simulator.nvml();
    simulator.control("gpu 0 accounting on");
    assert!(!is_on(&nvml, 0));
    assert_eq!(pids(&nvml, handle(&nvml, 0)), Err(NOT_SUPPORTED));
    simulator.control("gpu 2 accounting on");
    assert!(is_on(&nvml, 2));
    simulator.control("gpu 2 mig 3g.40gb");
    assert!(!is_on(&nvml, 2));
    simulator.control("gpu 2 mig off");
    assert!(!is_on(&nvml, 2));
}
