//! Which NVML calls are made: those that the enabled rows need, once a pass, and none for a scrape.

use std::collections::BTreeSet;

use crate::support::{Call, Exporter, Setup, until};

/// A call without what differs from pass to pass: what was asked of whom. Samples take turns in
/// their buffers; metrics are of the device that was sampled before.
fn asked(call: &Call, sampled: &mut String) -> String {
    let Call { function, device, arguments, .. } = call;
    if function == "nvmlDeviceGetProcessUtilization" {
        // Since when: another time each pass.
        return format!("{function} {device}");
    }
    if !function.starts_with("nvmlGpm") {
        return format!("{function} {device} {arguments}").trim_end().to_owned();
    }
    let words: Vec<&str> =
        arguments.split(' ').filter(|word| !word.starts_with("0x") && !word.is_empty()).collect();
    if function.ends_with("SampleGet") {
        *sampled = [&[device.as_str()], &words[..]].concat().join(" ");
        format!("{function} {sampled}")
    } else {
        [&[function.as_str(), sampled], &words[..]].concat().join(" ")
    }
}

/// The calls of one GPU's reading thread, pass by pass, without the first passes, in which the
/// thread learns what the GPU does not support, and the last, which may be under way.
fn passes(exporter: &Exporter, gpu: u32) -> Vec<Vec<String>> {
    let trace = exporter.trace();
    let name = format!("gpu{gpu}");
    let is_of_gpu = |call: &&Call| call.device.split('/').next() == Some(&name);
    // The thread that enumerates is another one, and asks no clocks, temperatures, batches.
    let thread = trace.iter().rfind(is_of_gpu).unwrap().thread;
    let mut sampled = String::new();
    let own = trace.iter().filter(|call| call.thread == thread);
    let calls: Vec<String> = own.map(|call| asked(call, &mut sampled)).collect();
    let last = calls.last().unwrap();
    let ends: Vec<usize> =
        calls.iter().enumerate().filter(|(_, call)| *call == last).map(|(at, _)| at + 1).collect();
    let passes: Vec<Vec<String>> =
        ends.windows(2).map(|ends| calls[ends[0]..ends[1]].to_vec()).collect();
    assert!(passes.len() > 4, "{passes:#?}");
    passes[2..passes.len() - 1].to_vec()
}

/// No call twice in a pass, and every pass as the one before; the calls.
fn one_pass(exporter: &Exporter, gpu: u32) -> BTreeSet<String> {
    let mut passes = passes(exporter, gpu).into_iter().map(|calls| {
        let different: BTreeSet<String> = calls.iter().cloned().collect();
        let mut twice = calls.clone();
        twice.sort();
        twice.dedup();
        assert_eq!(calls.len(), twice.len(), "GPU {gpu}: a call is made twice: {calls:#?}");
        different
    });
    let first = passes.next().unwrap();
    for other in passes {
        assert_eq!(first, other, "GPU {gpu}: two passes differ");
    }
    first
}

fn set(calls: &[&str]) -> BTreeSet<String> {
    calls.iter().map(|call| (*call).to_owned()).collect()
}

/// Rows that share calls, rows in the batch, a label, and a row that needs no call.
const SOME: &str = "
    DCGM_FI_DRIVER_VERSION, label, The driver.
    DCGM_FI_DEV_XID_ERRORS, gauge, Last XID.
    DCGM_FI_DEV_SM_CLOCK, gauge, SM clock.
    DCGM_FI_DEV_MEM_CLOCK, gauge, Memory clock.
    DCGM_FI_DEV_GPU_UTIL, gauge, GPU utilisation.
    DCGM_FI_DEV_MEM_COPY_UTIL, gauge, Memory utilisation.
    DCGM_FI_DEV_FB_FREE, gauge, Free.
    DCGM_FI_DEV_FB_USED, gauge, Used.
    DCGM_FI_DEV_MEMORY_TEMP, gauge, Memory temperature.
    DCGM_FI_DEV_POWER_VIOLATION, counter, Power violation.
    nvml_clocks_event_seconds_total, counter, Violations.
";

#[test]
fn a_pass_makes_the_calls_that_the_rows_need() {
    let exporter = Setup::simulate("dgx-h100").frozen().counters(SOME).ready();
    exporter.until_passes(8);
    for gpu in 0..8 {
        let calls = [
            format!("nvmlDeviceGetClockInfo gpu{gpu} 1"),
            format!("nvmlDeviceGetClockInfo gpu{gpu} 2"),
            format!("nvmlDeviceGetUtilizationRates gpu{gpu}"),
            format!("nvmlDeviceGetMemoryInfo_v2 gpu{gpu}"),
            format!("nvmlDeviceGetFieldValues gpu{gpu} 74,75,76,77,78,79,80,81,82,251,252,253"),
            // Whether there are instances to be read.
            format!("nvmlDeviceGetMigMode gpu{gpu}"),
        ];
        assert_eq!(one_pass(&exporter, gpu), calls.into_iter().collect(), "GPU {gpu}");
    }
}

#[test]
fn no_rows_need_no_calls() {
    let csv = "DCGM_FI_DEV_XID_ERRORS, gauge, Last XID.\n";
    let exporter = Setup::simulate("gh200").frozen().counters(csv).ready();
    exporter.until_passes(8);
    assert_eq!(one_pass(&exporter, 0), set(&["nvmlDeviceGetMigMode gpu0"]));
}

/// A board's values are read once, whatever number of instances repeats them.
#[test]
fn instances_are_asked_for_what_is_theirs() {
    let exporter = Setup::simulate("a100-mig-mixed").frozen().counters(SOME).ready();
    exporter.until_passes(8);
    let calls = one_pass(&exporter, 1);
    let of = |function: &str| -> Vec<&String> {
        calls.iter().filter(|call| call.split(' ').next() == Some(function)).collect()
    };
    assert_eq!(of("nvmlDeviceGetClockInfo").len(), 2);
    assert_eq!(of("nvmlDeviceGetFieldValues").len(), 1);
    let memory = of("nvmlDeviceGetMemoryInfo_v2");
    assert_eq!(memory.len(), 7);
    assert!(memory.iter().all(|call| call.contains("/gi")), "{memory:?}");
    // A GPU in MIG mode refuses it, which is known by now.
    assert_eq!(of("nvmlDeviceGetUtilizationRates").len(), 0);
    let walk = [
        "nvmlDeviceGetMigMode",
        "nvmlDeviceGetMaxMigDeviceCount",
        "nvmlDeviceGetMigDeviceHandleByIndex",
        "nvmlDeviceGetGpuInstanceId",
        "nvmlDeviceGetComputeInstanceId",
        "nvmlDeviceGetUUID",
    ];
    let others: Vec<&String> = calls
        .iter()
        .filter(|call| !walk.iter().any(|function| call.split(' ').next() == Some(function)))
        .collect();
    assert_eq!(others.len(), 2 + 1 + 7, "{others:#?}");
}

/// The same for all that there is to enable.
#[test]
fn everything_enabled_still_needs_each_call_once() {
    let everything: String = include_str!("../../metrics.csv")
        .lines()
        .map(|line| {
            line.strip_prefix("# ").filter(|rest| rest.matches(',').count() > 1).unwrap_or(line)
        })
        .filter(|line| line.starts_with("DCGM_") || line.starts_with("nvml_"))
        .flat_map(|line| [line, "\n"])
        .collect();
    assert!(everything.lines().count() > 300);
    for (scenario, gpus) in [("dgx-h100", 8), ("h200-mig-and-whole", 4), ("v100-old-driver", 4)] {
        let exporter = Setup::simulate(scenario).frozen().counters(&everything).ready();
        exporter.until_passes(8);
        for gpu in 0..gpus {
            assert!(one_pass(&exporter, gpu).len() > 20, "{scenario}");
        }
    }
}

/// What processes use, and what the driver has accounted of them: of those that run.
#[test]
fn users_of_a_gpu_need_each_call_once() {
    let csv = "DCGM_FI_DEV_XID_ERRORS, gauge, Last XID.\n";
    let exporter = Setup::simulate("dgx-h100")
        .frozen()
        .counters(csv)
        .args(["--usage-by=process"])
        .control(&[
            "gpu * processes 11:1GiB:5,12:1GiB:5,13:1GiB:5",
            "gpu 0 accounting on",
            "gpu * processes 11:1GiB:5,12:1GiB:5",
        ])
        .ready();
    exporter.until_passes(8);
    let users = |gpu: u32, accounting: &[&str]| {
        let lists = [
            "nvmlDeviceGetComputeRunningProcesses_v3",
            "nvmlDeviceGetGraphicsRunningProcesses_v3",
            "nvmlDeviceGetMPSComputeRunningProcesses_v3",
            "nvmlDeviceGetProcessUtilization",
            "nvmlDeviceGetAccountingMode",
        ];
        let all = lists.iter().map(|call| format!("{call} gpu{gpu}"));
        all.chain(accounting.iter().map(|call| (*call).to_owned())).collect::<BTreeSet<_>>()
    };
    let accounted = [
        "nvmlDeviceGetAccountingPids gpu0",
        "nvmlDeviceGetAccountingStats gpu0 11",
        "nvmlDeviceGetAccountingStats gpu0 12",
    ];
    for (gpu, accounting) in [(0, &accounted[..]), (1, &[])] {
        let mut calls = one_pass(&exporter, gpu);
        calls.retain(|call| call.contains("Process") || call.contains("Accounting"));
        assert_eq!(calls, users(gpu, accounting));
    }
}

#[test]
fn a_scrape_makes_no_call() {
    let exporter =
        Setup::simulate("dgx-h100").args(["--collect-interval=1h", "--openmetrics"]).ready();
    // The second pass follows soon after the first, the third in an hour.
    exporter
        .until("two passes", |page| page.sum("nvml_exporter_pass_duration_seconds_count") >= 16.0);
    // The thread that waits for events does so all the time.
    let calls =
        || exporter.trace().iter().filter(|call| call.function != "nvmlEventSetWait_v2").count();
    // A GPU that was slow to have its first pass may bring on a third.
    let before = until(
        "no more passes",
        || {
            let before = calls();
            std::thread::sleep(std::time::Duration::from_millis(300));
            (calls() == before).then_some(before)
        },
        || exporter.log(),
    );
    let page = exporter.scrape();
    for _ in 0..20 {
        for path in ["/metrics", "/", "/health", "/livez", "/readyz"] {
            assert_eq!(exporter.get(path, &[]).status, 200, "{path}");
        }
        let openmetrics = [("Accept", "application/openmetrics-text")];
        assert_eq!(exporter.get("/metrics", &openmetrics).status, 200);
    }
    assert_eq!(calls(), before);
    let energy = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION";
    let after = exporter.scrape();
    assert!(page.samples(energy).eq(after.samples(energy)), "the scenario's clock runs");
}
