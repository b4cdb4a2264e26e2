//! Who uses a device: the lists in all their versions, and the samples.

use std::mem::zeroed;
use std::ptr::null_mut;

use nvml_wrapper::Nvml;
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlProcessInfo_v1_t, nvmlProcessInfo_v2_t, nvmlProcessUtilizationSample_t,
    nvmlReturn_t,
};

use crate::common::Simulator;

type Lister<T> = unsafe extern "C" fn(nvmlDevice_t, *mut u32, *mut T) -> nvmlReturn_t;

/// `nvmlProcessInfo_t` of the first drivers of branch 535.
#[repr(C)]
#[derive(Clone, Copy)]
struct Wide {
    pid: u32,
    used: u64,
    gi: u32,
    ci: u32,
    protected: u64,
}

fn handle(nvml: &Nvml, index: u32) -> nvmlDevice_t {
    // SAFETY: the handle is used while `nvml` lives.
    unsafe { nvml.device_by_index(index).unwrap().handle() }
}

/// The handle of the MIG device in a slot.
fn part(nvml: &Nvml, index: u32, slot: u32) -> nvmlDevice_t {
    let device = nvml.device_by_index(index).unwrap();
    // SAFETY: the handle is used while `nvml` lives.
    unsafe { device.mig_device_by_index(slot).unwrap().handle() }
}

/// A list in full, the way clients get it: first its length, then itself.
fn list<T: Copy>(simulator: &Simulator, name: &str, device: nvmlDevice_t) -> Vec<T> {
    let call = simulator.symbol::<Lister<T>>(name).unwrap();
    let mut count = 0;
    // SAFETY: the array is as long as announced, and `T` is the function's struct of integers.
    unsafe {
        match call(device, &raw mut count, null_mut()) {
            0 => assert_eq!(count, 0),
            code => assert_eq!(code, 7),
        }
        let mut infos = vec![zeroed::<T>(); count as usize];
        assert_eq!(call(device, &raw mut count, infos.as_mut_ptr()), 0);
        infos
    }
}

fn compute(simulator: &Simulator, device: nvmlDevice_t) -> Vec<(u32, u64, u32, u32)> {
    let infos: Vec<nvmlProcessInfo_v2_t> =
        list(simulator, "nvmlDeviceGetComputeRunningProcesses_v3", device);
    infos.iter().map(|p| (p.pid, p.usedGpuMemory, p.gpuInstanceId, p.computeInstanceId)).collect()
}

/// Process ids with the utilisation of their multiprocessors, and when that was sampled.
fn samples(nvml: &Nvml, device: nvmlDevice_t, since: u64) -> Result<(u64, Vec<(u32, u32)>), u32> {
    let call = nvml.lib().nvmlDeviceGetProcessUtilization.as_ref().unwrap();
    let mut count = 0;
    // SAFETY: all zeros is a value of the struct, and the array is as long as announced.
    unsafe {
        match call(device, null_mut(), &raw mut count, since) {
            7 => {}
            code => return Err(code),
        }
        let mut list = vec![zeroed::<nvmlProcessUtilizationSample_t>(); count as usize];
        match call(device, list.as_mut_ptr(), &raw mut count, since) {
            0 => Ok((list[0].timeStamp, list.iter().map(|s| (s.pid, s.smUtil)).collect())),
            code => Err(code),
        }
    }
}

#[test]
fn processes_are_where_a_command_puts_them() {
    let simulator = Simulator::play("dgx-h100");
    let nvml = simulator.nvml();
    let device = handle(&nvml, 7);
    assert_eq!(compute(&simulator, device), [], "an idle GPU");
    simulator.control("gpu 7 processes 11:2GiB:35,12:na:-:m,13:1MiB:0:cg,14");
    let whole = u32::MAX;
    assert_eq!(
        compute(&simulator, device),
        [(11, 2 << 30, whole, whole), (13, 1 << 20, whole, whole)]
    );
    let graphics: Vec<nvmlProcessInfo_v2_t> =
        list(&simulator, "nvmlDeviceGetGraphicsRunningProcesses_v3", device);
    assert_eq!(graphics.iter().map(|p| p.pid).collect::<Vec<_>>(), [13]);
    let shared: Vec<nvmlProcessInfo_v2_t> =
        list(&simulator, "nvmlDeviceGetMPSComputeRunningProcesses_v3", device);
    let shared: Vec<_> = shared.iter().map(|p| (p.pid, p.usedGpuMemory)).collect();
    assert_eq!(shared, [(12, u64::MAX)]);
    let first: Vec<nvmlProcessInfo_v1_t> =
        list(&simulator, "nvmlDeviceGetComputeRunningProcesses", device);
    assert_eq!(first.iter().map(|p| p.pid).collect::<Vec<_>>(), [11, 13]);
    assert_eq!(samples(&nvml, device, 0).unwrap().1, [(11, 35)], "the others did nothing");
    simulator.control("gpu 7 processes none");
    assert_eq!(compute(&simulator, device), []);
    assert_eq!(samples(&nvml, device, 0), Err(6));
    assert_ne!(simulator.try_control("gpu 7 processes 11:lots"), 0);
}

#[test]
fn instances_have_processes_of_their_own() {
    let simulator = Simulator::play("h200-mig-and-whole");
    let nvml = simulator.nvml();
    simulator.control("gpu 3 processes none");
    simulator.control("gpu 3 gi 2 processes 21:1GiB");
    simulator.control("gpu 3 gi 9 processes 22:2GiB");
    let board = compute(&simulator, handle(&nvml, 3));
    assert_eq!(board, [(21, 1 << 30, 2, 0), (22, 2 << 30, 9, 0)]);
    let parts: Vec<_> = (0..3).map(|slot| compute(&simulator, part(&nvml, 3, slot))).collect();
    assert_eq!(parts, [vec![board[0]], vec![], vec![board[1]]], "one compute instance has it");
    assert_eq!(samples(&nvml, handle(&nvml, 3), 0), Err(3), "not in MIG mode");
    assert_eq!(samples(&nvml, part(&nvml, 3, 0), 0), Err(3), "nor on a MIG device");
    simulator.control("gpu 3 processes none");
    assert_eq!(compute(&simulator, handle(&nvml, 3)), []);
}

#[test]
fn samples_are_taken_once_a_second_and_told_once() {
    let simulator = Simulator::play("dgx-h100");
    // The clock of the scenario must run for its samples to follow it.
    simulator.control("clock run");
    let nvml = simulator.nvml();
    let device = handle(&nvml, 0);
    simulator.control("gpu 0 processes 11:1GiB:35");
    let (first, _) = samples(&nvml, device, 0).unwrap();
    assert_eq!(first % 1_000_000, 0);
    assert_eq!(samples(&nvml, device, first + 60_000_000), Err(6), "nothing as new as that");
    simulator.control("clock advance 120s");
    let (second, list) = samples(&nvml, device, first + 60_000_000).unwrap();
    assert!(second >= first + 120_000_000, "{first} {second}");
    assert_eq!(list, [(11, 35)]);
}

#[test]
fn samples_go_on_while_the_clock_stands() {
    let simulator = Simulator::play("dgx-h100");
    let nvml = simulator.nvml();
    simulator.control("gpu 0 processes 11:1GiB:35");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let recent = u64::try_from(now.as_micros()).unwrap() - 2_000_000;
    assert_eq!(samples(&nvml, handle(&nvml, 0), recent).unwrap().1, [(11, 35)]);
}

#[test]
fn early_drivers_of_branch_535_gave_the_third_version_a_wider_struct() {
    let simulator = Simulator::play("dgx-h100");
    simulator.control("driver load 535.54.03");
    simulator.control("gpu 0 processes 11:1GiB,12:2GiB");
    let nvml = simulator.nvml();
    let device = handle(&nvml, 0);
    let wide: Vec<Wide> = list(&simulator, "nvmlDeviceGetComputeRunningProcesses_v3", device);
    let all: Vec<_> = wide.iter().map(|p| (p.pid, p.used, p.gi, p.ci, p.protected)).collect();
    let (none, na) = (u32::MAX, u64::MAX);
    assert_eq!(all, [(11, 1 << 30, none, none, na), (12, 2 << 30, none, none, na)]);
    let second: Vec<nvmlProcessInfo_v2_t> =
        list(&simulator, "nvmlDeviceGetComputeRunningProcesses_v2", device);
    assert_eq!(second.iter().map(|p| p.pid).collect::<Vec<_>>(), [11, 12]);
}
