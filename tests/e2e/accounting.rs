//! What the driver has accounted of processes: served with `--usage-by process`, and only where
//! accounting mode is on. The scenario's clock stands but when it is moved.

use nvml_exporter::nvml::Code;

use crate::support::bench::{Bench, times};
use crate::support::{Call, Exporter, Page, Sample, Setup};

const MEMORY: &str = "nvml_process_accounted_max_memory_bytes";
const SM: &str = "nvml_process_accounted_sm_utilization_ratio";
const COPY: &str = "nvml_process_accounted_memory_copy_utilization_ratio";
const SECONDS: &str = "nvml_process_accounted_seconds";

const MODE: &str = "nvmlDeviceGetAccountingMode";
const PIDS: &str = "nvmlDeviceGetAccountingPids";
const STATS: &str = "nvmlDeviceGetAccountingStats";
const SIZE: &str = "nvmlDeviceGetAccountingBufferSize";

/// No process has this number.
const NOBODY: &str = "4294967294";

fn telling(by: &str, commands: &[&str]) -> Exporter {
    Setup::simulate("dgx-h100")
        .frozen()
        .counters("DCGM_FI_DEV_GPU_TEMP, gauge, Temperature.\n")
        .args(["--usage-by", by])
        .control(&["gpu * processes none"])
        .control(commands)
        .ready()
}

fn names(page: &Page) -> Vec<&str> {
    page.names().into_iter().filter(|name| name.contains("_accounted_")).collect()
}

/// The series of a process of GPU 0.
fn of<'a>(page: &'a Page, name: &str, pid: &str) -> Option<&'a Sample> {
    page.sample(name, &[("gpu", "0"), ("pid", pid)])
}

fn value(page: &Page, name: &str, pid: &str) -> Option<f64> {
    of(page, name, pid).map(|sample| sample.value)
}

fn is_running(page: &Page, pid: &str, running: &str) -> bool {
    of(page, MEMORY, pid).is_some_and(|sample| sample.label("running") == Some(running))
}

/// Which functions of accounting were called, each once.
fn called(calls: &[Call]) -> Vec<&str> {
    let mut all: Vec<&str> = calls.iter().map(|call| call.function.as_str()).collect();
    all.retain(|function| function.contains("Accounting"));
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn while_the_mode_is_off_nothing_but_the_mode_is_asked() {
    let own = std::process::id().to_string();
    let exporter = telling("process", &[&format!("gpu 0 processes {own}:1GiB:5")]);
    let page = exporter.until_passes(3);
    assert_eq!(names(&page), [""; 0]);
    assert_eq!(called(&exporter.trace()), [MODE]);
    assert!(of(&page, "nvml_process_memory_used_bytes", &own).is_some(), "{}", page.text);
}

#[test]
fn without_processes_nothing_is_asked() {
    let exporter = telling("user,unit", &["gpu 0 processes 11:1GiB:5", "gpu 0 accounting on"]);
    let page = exporter.until_passes(3);
    assert_eq!(names(&page), [""; 0]);
    assert_eq!(called(&exporter.trace()), [""; 0]);
}

#[test]
fn accounts_are_told_of_processes_that_run_and_that_have_ended() {
    let own = std::process::id().to_string();
    let both = format!("gpu 0 processes {own}:2GiB:40,{NOBODY}:na:10");
    let exporter = telling(
        "process",
        &["gpu 0 accounting on", "gpu 0 set load 0.5", &both, "clock advance 30s"],
    );
    let page = exporter.until("both", |page| page.samples(MEMORY).count() == 1);
    assert_eq!(names(&page), [MEMORY, SM, COPY], "no time while they run");
    assert_eq!(value(&page, MEMORY, &own), Some(2_147_483_648.0));
    assert_eq!(value(&page, SM, &own), Some(0.4));
    assert_eq!(value(&page, SM, NOBODY), Some(0.1));
    // Half of the load's 31 %, in whole percent.
    assert_eq!(value(&page, COPY, &own), Some(0.16));
    assert_eq!(value(&page, MEMORY, NOBODY), None, "not available");
    let told = of(&page, SM, &own).unwrap();
    let device = ["gpu", "UUID", "pci_bus_id", "device", "model_name", "hostname"];
    let names = told.label_names().into_iter().filter(|name| *name != "user");
    assert!(names.eq(device.into_iter().chain(["command", "pid", "running"])), "{}", page.text);
    let now = of(&page, "nvml_process_memory_used_bytes", &own).unwrap();
    assert_eq!(told.label("user"), now.label("user"));
    assert!(told.has(&[("running", "true"), ("command", &command())]), "{}", page.text);
    let stranger = of(&page, SM, NOBODY).unwrap();
    assert_eq!((stranger.label("command"), stranger.label("user")), (None, None));
    assert_eq!(page.samples(SM).count(), 2, "of no other GPU");

    exporter.control(&["clock advance 10s", "gpu 0 processes none", "clock advance 1h"]);
    let page = exporter.until("their end", |page| is_running(page, &own, "false"));
    assert_eq!(page.samples(SM).count(), 2, "{}", page.text);
    assert_eq!(value(&page, SECONDS, &own), Some(40.0));
    assert_eq!(value(&page, SECONDS, NOBODY), Some(40.0));
    assert_eq!(value(&page, SM, &own), Some(0.4));
    let told = of(&page, SECONDS, &own).unwrap();
    assert!(told.has(&[("running", "false"), ("command", &command())]), "{}", page.text);

    // What has ended is not asked for again.
    let asked = || exporter.trace().iter().filter(|call| call.function == STATS).count();
    let before = asked();
    let page = exporter.until_passes(3);
    assert_eq!((asked(), page.samples(SM).count()), (before, 2));
}

/// This process's own name, as the kernel has it.
fn command() -> String {
    std::fs::read_to_string("/proc/self/comm").unwrap().trim_end().to_owned()
}

#[test]
fn the_mode_is_followed() {
    let exporter = telling("process", &["gpu 0 processes 11:1GiB:5", "gpu 0 accounting on"]);
    exporter.until("accounts", |page| is_running(page, "11", "true"));
    exporter.control(&["gpu 0 accounting off"]);
    exporter.until("none", |page| names(page).is_empty());
    exporter.control(&["gpu 1 processes 12:1GiB:5", "gpu 1 accounting on"]);
    let other = [("gpu", "1"), ("pid", "12")];
    exporter.until("another GPU's", |page| page.sample(MEMORY, &other).is_some());
}

#[test]
fn a_number_that_is_used_again_has_one_series() {
    let exporter = telling("process", &["gpu 0 accounting on", "gpu 0 processes 11:1GiB:5"]);
    exporter.until("the first", |page| is_running(page, "11", "true"));
    exporter.control(&["clock advance 10s", "gpu 0 processes none"]);
    exporter.until("its end", |page| is_running(page, "11", "false"));
    // The driver tells of the one that has ended as long as the other runs.
    exporter.control(&["clock advance 10s", "gpu 0 processes 11:3GiB:7"]);
    let page = exporter.until_passes(3);
    assert_eq!(value(&page, SECONDS, "11"), Some(10.0));
    assert_eq!(page.samples(MEMORY).count(), 1);
    exporter.control(&["clock advance 20s", "gpu 0 processes none"]);
    let page = exporter.until("the second", |page| value(page, SECONDS, "11") == Some(20.0));
    assert_eq!(value(&page, MEMORY, "11"), Some(3_221_225_472.0));
    assert_eq!(page.samples(MEMORY).count(), 1);
    // Back at once with other numbers, before anybody has looked.
    exporter.control(&[
        "gpu 0 processes 11:5GiB:7",
        "clock advance 30s",
        "gpu 0 processes 12:1GiB:7",
        "gpu 0 processes 11:6GiB:7,12:1GiB:7",
    ]);
    let page = exporter.until("the third", |page| value(page, SECONDS, "11") == Some(30.0));
    assert_eq!(page.samples(MEMORY).count(), 2, "{}", page.text);
}

/// Lists of processes are of distinct numbers.
fn many(pids: std::ops::RangeInclusive<u32>) -> String {
    let list: Vec<String> = pids.map(|pid| format!("{pid}:1MiB:0")).collect();
    format!("gpu 0 processes {}", list.join(","))
}

#[test]
fn of_too_many_the_newest_are_told() {
    let exporter = telling("process", &["gpu 0 accounting on", &many(4_300_001..=4_300_300)]);
    exporter.control(&["clock advance 10s", &many(4_300_301..=4_300_400), "clock advance 20s"]);
    let newest = |page: &Page| {
        let running = page.samples(MEMORY).filter(|one| one.has(&[("running", "true")])).count();
        (page.samples(MEMORY).count(), running)
    };
    exporter.until("those that run, and some others", |page| newest(page) == (128, 100));
    exporter.control(&["gpu 0 processes none"]);
    exporter.until("their end", |page| newest(page) == (128, 0));
    let page = exporter.until_passes(6);
    let ran = |seconds: f64| {
        page.samples(SECONDS).filter(|one| one.value.to_bits() == seconds.to_bits()).count()
    };
    assert_eq!((ran(10.0), ran(20.0)), (28, 100), "{}", page.text);
}

fn bench(test: &str, scenario: &str, environment: &[(&str, &str)]) -> Option<Bench> {
    let environment: Vec<_> =
        environment.iter().copied().chain([("NVML_SIM_CLOCK", "frozen")]).collect();
    Bench::of(test, scenario, &environment)
}

fn asking(bench: &Bench, index: u32) -> crate::support::bench::Gpu<'_> {
    bench.gpu(index, |request| (request.processes, request.accounting) = (true, true))
}

#[test]
fn a_pass_asks_for_no_more_than_128() {
    let test = "accounting::a_pass_asks_for_no_more_than_128";
    let Some(bench) = bench(test, "dgx-h100", &[]) else { return };
    bench.control("gpu 0 processes none");
    bench.control("gpu 0 accounting on");
    bench.control(&many(1_001..=5_000));
    bench.control("gpu 0 processes none");
    let mut gpu = asking(&bench, 0);
    let mut asked = 0;
    for pass in 0..33 {
        let (read, calls) = gpu.pass();
        assert_eq!((times(&calls, MODE), times(&calls, PIDS)), (1, 1), "pass {pass}");
        assert_eq!(times(&calls, SIZE), usize::from(pass == 0));
        assert!(times(&calls, STATS) <= 128, "pass {pass}");
        assert_eq!(read.outcome.unwrap().accounting.len(), 128);
        asked += times(&calls, STATS);
    }
    assert_eq!(asked, 4_000, "each once");
}

#[test]
fn a_failure_costs_the_accounts_alone() {
    let test = "accounting::a_failure_costs_the_accounts_alone";
    let Some(bench) = bench(test, "dgx-h100", &[]) else { return };
    bench.control("gpu 0 processes 11:2GiB:35,12:1GiB:5");
    bench.control("gpu 0 accounting on");
    bench.control("gpu 0 processes 11:2GiB:35");
    let mut gpu = asking(&bench, 0);
    let pids = |gpu: &mut crate::support::bench::Gpu<'_>| {
        let (pass, calls) = gpu.pass();
        let reading = pass.outcome.unwrap();
        assert!(reading.processes.unwrap().running.is_ok());
        let told: Vec<u32> = reading.accounting.iter().map(|one| one.pid).collect();
        (told, pass.errors, calls)
    };
    assert_eq!(pids(&mut gpu).0, [11, 12]);
    for (function, told) in [(MODE, &[][..]), (PIDS, &[]), (STATS, &[12])] {
        bench.control(&format!("gpu 0 error {function} UNKNOWN"));
        let (found, errors, calls) = pids(&mut gpu);
        assert_eq!(found, told, "{function}");
        assert_eq!(errors, [(function, Code::UNKNOWN)]);
        assert!(times(&calls, STATS) < 2, "one failure is enough");
        bench.control("gpu 0 error * clear");
        assert_eq!(pids(&mut gpu).0, [11, 12], "{function}");
    }
}

#[test]
fn what_a_gpu_refuses_is_not_asked_again() {
    let test = "accounting::what_a_gpu_refuses_is_not_asked_again";
    let Some(bench) = bench(test, "dgx-h100", &[]) else { return };
    let gpus = [MODE, PIDS, STATS];
    for (index, function) in (0..).zip(gpus) {
        bench.control(&format!("gpu {index} processes 11:2GiB:35"));
        bench.control(&format!("gpu {index} accounting on"));
        bench.control(&format!("gpu {index} error {function} NOT_SUPPORTED"));
        let mut gpu = asking(&bench, index);
        for pass in 0..2 {
            let (read, calls) = gpu.pass();
            assert_eq!(read.errors, [], "{function}");
            assert!(read.outcome.unwrap().accounting.is_empty(), "{function}");
            assert_eq!(times(&calls, function), usize::from(pass == 0), "{function}");
            assert!(pass == 0 || called(&calls).is_empty(), "{function}: {calls:?}");
        }
    }
}

#[test]
fn in_mig_mode_nothing_is_asked() {
    let test = "accounting::in_mig_mode_nothing_is_asked";
    let Some(bench) = bench(test, "a100-mig-mixed", &[]) else { return };
    bench.control("gpu 2 processes 11:2GiB:35");
    bench.control("gpu 2 accounting on");
    let mut gpu = asking(&bench, 2);
    assert_eq!(gpu.reading().accounting.len(), 1);
    bench.control("gpu 2 mig 3g.40gb");
    let (pass, calls) = gpu.pass();
    assert!(pass.outcome.unwrap().accounting.is_empty());
    assert_eq!(called(&calls), [""; 0]);
    bench.control("gpu 2 mig off");
    assert!(gpu.reading().accounting.is_empty(), "the mode is off");
    bench.control("gpu 2 accounting on");
    assert_eq!(gpu.reading().accounting.len(), 1);
}
