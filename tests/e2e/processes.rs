//! Who uses a GPU: asked on request, per process and pod, whatever version of the functions the
//! driver has. The scenario's clock stands, so that the load does.

use nvml_exporter::nvml::Code;
use nvml_exporter::sampler::ProcRoot;
use nvml_exporter::sampler::snapshot::{GpuReading, Processes};

use crate::support::Call;
use crate::support::bench::{Bench, Gpu, times};

const COMPUTE: &str = "nvmlDeviceGetComputeRunningProcesses_v3";
const UTILIZATION: &str = "nvmlDeviceGetProcessUtilization";
const NEWER: &str = "nvmlDeviceGetProcessesUtilizationInfo";
const POD_A: &str = "aaaaaaaa-1111-2222-3333-444444444444";
const POD_B: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";
const FROZEN: (&str, &str) = ("NVML_SIM_CLOCK", "frozen");

/// A process with its pod, and its instance and bytes, or its percentage.
type Memory = (u32, Option<String>, Option<u32>, Option<u64>);
type Percent = (u32, Option<String>, u32);

fn bench(test: &str, scenario: &str, environment: &[(&str, &str)]) -> Option<Bench> {
    let environment: Vec<_> = environment.iter().copied().chain([FROZEN]).collect();
    Bench::of(test, scenario, &environment)
}

fn asking(bench: &Bench, index: u32) -> Gpu<'_> {
    bench.gpu(index, |request| request.processes = true)
}

fn memory(processes: &Processes) -> Result<Vec<Memory>, &'static str> {
    processes.running.clone().map(|all| {
        let one = |pod: Option<std::sync::Arc<str>>| pod.map(|uid| uid.to_string());
        all.into_iter()
            .map(|p| {
                (
                    p.pid,
                    one(p.owner.and_then(|owner| owner.pod_uid.clone())),
                    p.gpu_instance,
                    p.used_bytes,
                )
            })
            .collect()
    })
}

fn percent(processes: &Processes) -> Result<Vec<Percent>, &'static str> {
    processes.utilization.clone().map(|all| {
        all.into_iter()
            .map(|p| {
                (
                    p.pid,
                    p.owner.and_then(|owner| Some(owner.pod_uid.as_ref()?.to_string())),
                    p.sm_percent,
                )
            })
            .collect()
    })
}

fn processes(reading: GpuReading) -> Processes {
    reading.processes.unwrap()
}

fn functions(calls: &[Call]) -> Vec<&str> {
    calls.iter().map(|call| call.function.as_str()).collect()
}

#[test]
fn processes_are_asked_on_request_with_a_call_a_list() {
    let test = "processes::processes_are_asked_on_request_with_a_call_a_list";
    let Some(bench) = bench(test, "dgx-h100", &[]) else { return };
    let (pass, calls) = bench.gpu(0, |_| ()).pass();
    assert!(pass.outcome.unwrap().processes.is_none());
    assert_eq!(functions(&calls), ["nvmlDeviceGetMigMode"]);
    let mut gpu = asking(&bench, 0);
    for _ in 0..2 {
        let (pass, calls) = gpu.pass();
        assert!(pass.outcome.unwrap().processes.is_some());
        assert_eq!(
            functions(&calls),
            [
                "nvmlDeviceGetMigMode",
                COMPUTE,
                "nvmlDeviceGetGraphicsRunningProcesses_v3",
                "nvmlDeviceGetMPSComputeRunningProcesses_v3",
                UTILIZATION,
            ]
        );
    }
}

#[test]
fn memory_and_utilisation_are_by_process_and_pod() {
    let test = "processes::memory_and_utilisation_are_by_process_and_pod";
    let Some(bench) = bench(test, "dgx-h100", &[]) else { return };
    bench.process(11, &format!("/kubepods/burstable/pod{POD_A}/x"));
    bench.process(12, &format!("/kubepods.slice/kubepods-pod{POD_B}.slice/x.scope"));
    bench.process(13, "/system.slice/x.service");
    // In two lists, of a pod's MPS client nothing known, of no pod, and nowhere to be seen.
    bench.control("gpu 0 processes 11:2GiB:35:cg,12:na:20:m,13:1GiB:0,14:3GiB:7");
    let mut gpu = asking(&bench, 0);
    let read = processes(gpu.reading());
    let (a, b) = (Some(POD_A.to_owned()), Some(POD_B.to_owned()));
    let running = vec![
        (11, a.clone(), None, Some(2 << 30)),
        (12, b.clone(), None, None),
        (13, None, None, Some(1 << 30)),
        (14, None, None, Some(3 << 30)),
    ];
    assert_eq!(memory(&read), Ok(running));
    // A process that moved memory only is among the samples, with no percent.
    assert_eq!(percent(&read), Ok(vec![(11, a, 35), (12, b, 20), (13, None, 0), (14, None, 7)]));
    assert_eq!(read.visible, 3);

    bench.control("gpu 0 processes none");
    let read = processes(gpu.reading());
    assert_eq!((memory(&read), percent(&read), read.visible), (Ok(vec![]), Ok(vec![]), 0));

    let many: Vec<String> = (1000..1300).map(|pid| format!("{pid}:1MiB:1")).collect();
    bench.control(&format!("gpu 0 processes {}", many.join(",")));
    let read = processes(gpu.reading());
    assert_eq!(memory(&read).unwrap().len(), 300);
    assert_eq!(percent(&read).unwrap().len(), 300);
}

#[test]
fn processes_of_this_machine_are_found_in_proc() {
    let test = "processes::processes_of_this_machine_are_found_in_proc";
    let Some(bench) = bench(test, "dgx-h100", &[]) else { return };
    let own = std::process::id();
    bench.control(&format!("gpu 7 processes {own}:1GiB:50,{}:1GiB:50", u32::MAX - 1));
    let mut gpu = asking(&bench, 7);
    gpu.target.proc_root = ProcRoot::default();
    let read = processes(gpu.reading());
    assert_eq!((memory(&read).unwrap().len(), read.visible), (2, 1));
}

#[test]
fn in_mig_mode_memory_is_by_instance_and_utilisation_is_not_asked() {
    let test = "processes::in_mig_mode_memory_is_by_instance_and_utilisation_is_not_asked";
    let Some(bench) = bench(test, "h200-mig-and-whole", &[]) else { return };
    bench.process(21, &format!("/kubepods/pod{POD_A}/x"));
    bench.control("gpu 3 processes none");
    bench.control("gpu 3 gi 2 processes 21:1GiB");
    bench.control("gpu 3 gi 9 processes 21:2GiB,22:3GiB");
    let mut gpu = asking(&bench, 3);
    let (pass, calls) = gpu.pass();
    assert_eq!(pass.errors, []);
    let read = processes(pass.outcome.unwrap());
    let running = vec![
        (21, Some(POD_A.to_owned()), Some(2), Some(1 << 30)),
        (21, Some(POD_A.to_owned()), Some(9), Some(2 << 30)),
        (22, None, Some(9), Some(3 << 30)),
    ];
    assert_eq!(memory(&read), Ok(running));
    assert_eq!(percent(&read), Err("NOT_SUPPORTED"));
    assert_eq!(read.visible, 1);
    assert_eq!(times(&calls, UTILIZATION), 0);
    let asked: Vec<&str> = calls
        .iter()
        .filter(|call| call.function == COMPUTE)
        .map(|call| call.device.as_str())
        .collect();
    // Each compute instance, and never the board, for which NVML wants privileges.
    assert_eq!(asked, ["gpu3/gi2/ci0", "gpu3/gi2/ci1", "gpu3/gi9/ci0"]);

    // Only instances that are rows are asked; the whole GPU is all of them.
    for (devices, asked) in [("i:3.9", 1), ("g", 3), ("g+i:3.9", 3)] {
        let devices = devices.parse().unwrap();
        let mut gpu = bench.gpu(3, |request| {
            request.processes = true;
            request.devices = devices;
        });
        assert_eq!(times(&gpu.pass().1, COMPUTE), asked);
    }
}

/// Conformance case 78.
#[test]
fn a_part_that_fails_takes_nothing_with_it() {
    let test = "processes::a_part_that_fails_takes_nothing_with_it";
    let Some(bench) = bench(test, "dgx-h100", &[]) else { return };
    bench.control("gpu 0 processes 11:2GiB:35");
    let mut gpu = asking(&bench, 0);
    gpu.reading();

    bench.control(&format!("gpu 0 error {COMPUTE} UNKNOWN"));
    let (pass, _) = gpu.pass();
    assert!(!pass.silent, "the pass stands");
    assert_eq!(pass.errors, [(COMPUTE, Code::UNKNOWN)]);
    let read = processes(pass.outcome.unwrap());
    assert_eq!((memory(&read), percent(&read)), (Err("UNKNOWN"), Ok(vec![(11, None, 35)])));

    bench.control("gpu 0 error * clear");
    bench.control(&format!("gpu 0 error {UTILIZATION} GPU_IS_LOST"));
    let (pass, _) = gpu.pass();
    assert!(!pass.silent);
    assert_eq!(pass.errors, [(UTILIZATION, Code::GPU_IS_LOST)]);
    let read = processes(pass.outcome.unwrap());
    assert_eq!(memory(&read), Ok(vec![(11, None, None, Some(2 << 30))]));
    assert_eq!(percent(&read), Err("GPU_IS_LOST"));

    bench.control("gpu 0 error * clear");
    let read = processes(gpu.reading());
    assert!(read.running.is_ok() && read.utilization.is_ok());
}

#[test]
fn what_a_gpu_refuses_is_no_failure_and_not_asked_again() {
    let test = "processes::what_a_gpu_refuses_is_no_failure_and_not_asked_again";
    let Some(bench) = bench(test, "dgx-h100", &[]) else { return };
    bench.control("gpu 0 processes 11:2GiB:35");
    bench.control("gpu 0 error nvmlDeviceGetGraphicsRunningProcesses_v3 NOT_SUPPORTED");
    bench.control("gpu 0 error nvmlDeviceGetMPSComputeRunningProcesses_v3 INVALID_ARGUMENT");
    bench.control(&format!("gpu 0 error {UTILIZATION} NO_PERMISSION"));
    let mut gpu = asking(&bench, 0);
    for (calls_made, errors) in [(5, 1), (2, 0)] {
        let (pass, calls) = gpu.pass();
        assert_eq!((calls.len(), pass.errors.len()), (calls_made, errors), "{calls:?}");
        let read = processes(pass.outcome.unwrap());
        assert_eq!(memory(&read), Ok(vec![(11, None, None, Some(2 << 30))]));
        assert_eq!(percent(&read), Err("NO_PERMISSION"));
    }
    bench.control(&format!("gpu 1 error {COMPUTE} NOT_SUPPORTED"));
    let mut gpu = asking(&bench, 1);
    for _ in 0..2 {
        assert_eq!(memory(&processes(gpu.reading())), Err("NOT_SUPPORTED"));
    }
}

#[test]
fn older_versions_of_the_lists_tell_the_same() {
    let test = "processes::older_versions_of_the_lists_tell_the_same";
    let third = "nvmlDeviceGetComputeRunningProcesses_v3,nvmlDeviceGetGraphicsRunningProcesses_v3,\
                 nvmlDeviceGetMPSComputeRunningProcesses_v3";
    let hidden = third.to_owned() + "," + &third.replace("_v3", "_v2");
    let Some(bench) = bench(test, "v100-old-driver", &[("NVML_SIM_HIDE", &hidden)]) else {
        return;
    };
    bench.control("gpu 0 processes 11:2GiB:35,12:na");
    let mut gpu = asking(&bench, 0);
    let (pass, calls) = gpu.pass();
    assert_eq!(times(&calls, "nvmlDeviceGetComputeRunningProcesses"), 1, "{calls:?}");
    let running = [(11, None, None, Some(2 << 30)), (12, None, None, None)];
    assert_eq!(memory(&processes(pass.outcome.unwrap())), Ok(running.to_vec()));
}

/// Their version 3 writes more than it says.
#[test]
fn early_drivers_of_branch_535_are_asked_by_version_2() {
    let test = "processes::early_drivers_of_branch_535_are_asked_by_version_2";
    let Some(bench) = bench(test, "dgx-h100", &[]) else { return };
    bench.control("driver load 535.54.03");
    bench.control("gpu 0 processes 11:2GiB:35,12:3GiB");
    let bench = bench.again("dgx-h100");
    let (pass, calls) = asking(&bench, 0).pass();
    assert_eq!(times(&calls, "nvmlDeviceGetComputeRunningProcesses_v2"), 1, "{calls:?}");
    let running = [(11, None, None, Some(2 << 30)), (12, None, None, Some(3 << 30))];
    assert_eq!(memory(&processes(pass.outcome.unwrap())), Ok(running.to_vec()));
}

#[test]
fn what_is_refused_in_one_mode_is_asked_in_the_other() {
    let test = "processes::what_is_refused_in_one_mode_is_asked_in_the_other";
    let Some(bench) = bench(test, "a100-mig-mixed", &[]) else { return };
    bench.control("gpu 2 processes 11:2GiB:35");
    let mut gpu = asking(&bench, 2);
    assert_eq!(percent(&processes(gpu.reading())), Ok(vec![(11, None, 35)]));
    bench.control("gpu 2 mig 3g.40gb");
    let read = processes(gpu.reading());
    assert_eq!(percent(&read), Err("NOT_SUPPORTED"));
    assert_eq!(memory(&read), Ok(vec![(11, None, Some(2), Some(2 << 30))]));
    bench.control("gpu 2 mig off");
    assert_eq!(percent(&processes(gpu.reading())), Ok(vec![(11, None, 35)]));
}

#[test]
fn samples_come_from_the_newer_function_where_the_older_is_refused() {
    let test = "processes::samples_come_from_the_newer_function_where_the_older_is_refused";
    let Some(bench) = bench(test, "dgx-h100", &[]) else { return };
    bench.control("gpu 0 processes 11:2GiB:35,12:1GiB:20");
    bench.control(&format!("gpu 0 error {UTILIZATION} NOT_SUPPORTED"));
    let mut gpu = asking(&bench, 0);
    for older in [1, 0] {
        let (pass, calls) = gpu.pass();
        assert_eq!((times(&calls, UTILIZATION), times(&calls, NEWER)), (older, 1));
        assert_eq!(pass.errors, []);
        let read = processes(pass.outcome.unwrap());
        assert_eq!(percent(&read), Ok(vec![(11, None, 35), (12, None, 20)]));
    }
    // One that fails fails; a list that is longer than expected takes a second call.
    bench.control(&format!("gpu 0 error {NEWER} UNKNOWN"));
    let (pass, _) = gpu.pass();
    assert_eq!(pass.errors, [(NEWER, Code::UNKNOWN)]);
    assert_eq!(percent(&processes(pass.outcome.unwrap())), Err("UNKNOWN"));
    bench.control(&format!("gpu 0 error {NEWER} clear"));
    let many: Vec<String> = (1000..1300).map(|pid| format!("{pid}:1MiB:1")).collect();
    bench.control(&format!("gpu 0 processes {}", many.join(",")));
    let (pass, calls) = gpu.pass();
    assert_eq!(times(&calls, NEWER), 2);
    assert_eq!(percent(&processes(pass.outcome.unwrap())).unwrap().len(), 300);
    bench.control("gpu 0 processes none");
    assert_eq!(percent(&processes(gpu.reading())), Ok(vec![]));
    // Both refuse.
    bench.control(&format!("gpu 1 error {UTILIZATION} NOT_SUPPORTED"));
    bench.control(&format!("gpu 1 error {NEWER} NOT_SUPPORTED"));
    let mut gpu = asking(&bench, 1);
    for calls_made in [2, 0] {
        let (pass, calls) = gpu.pass();
        assert_eq!(times(&calls, UTILIZATION) + times(&calls, NEWER), calls_made);
        assert_eq!(percent(&processes(pass.outcome.unwrap())), Err("NOT_SUPPORTED"));
    }
}

#[test]
fn samples_come_from_the_function_that_there_is() {
    let test = "processes::samples_come_from_the_function_that_there_is";
    let Some(bench) = bench(test, "dgx-h100", &[("NVML_SIM_HIDE", UTILIZATION)]) else { return };
    bench.control("gpu 0 processes 11:2GiB:35");
    let read = processes(asking(&bench, 0).reading());
    assert_eq!(percent(&read), Ok(vec![(11, None, 35)]));
}

/// Before R550 there is no other one.
#[test]
fn a_driver_without_the_newer_function_says_why_there_are_no_samples() {
    let test = "processes::a_driver_without_the_newer_function_says_why_there_are_no_samples";
    let Some(bench) = bench(test, "v100-old-driver", &[]) else { return };
    bench.control("gpu 0 processes 11:2GiB:35");
    bench.control(&format!("gpu 0 error {UTILIZATION} NOT_SUPPORTED"));
    let mut gpu = asking(&bench, 0);
    for _ in 0..2 {
        assert_eq!(percent(&processes(gpu.reading())), Err("NOT_SUPPORTED"));
    }
}
