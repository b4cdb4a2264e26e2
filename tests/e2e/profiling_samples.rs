//! The calls that profiling metrics cost: a sample of each device and one question about it a
//! pass, over buffers that are used again and given back.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Call, Exporter, Page, Setup};

const ACTIVE: &str = "DCGM_FI_PROF_GR_ENGINE_ACTIVE";
const FILE: &str = "\
    DCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge, Text.\n\
    DCGM_FI_PROF_DRAM_ACTIVE, gauge, Text.\n\
    DCGM_FI_PROF_PCIE_TX_BYTES, gauge, Text.\n\
    DCGM_FI_DEV_POWER_USAGE, gauge, Text.\n";

/// The calls of GPM since the start.
fn calls(exporter: &Exporter) -> Vec<Call> {
    let mut trace = exporter.trace();
    trace.retain(|call| call.function.starts_with("nvmlGpm"));
    trace
}

fn count(calls: &[Call], function: &str) -> usize {
    calls.iter().filter(|call| call.function == function).count()
}

/// Buffers allocated and not given back, as calls.
fn held(calls: &[Call]) -> usize {
    let allocated = calls.iter().filter(|call| call.function == "nvmlGpmSampleAlloc");
    allocated.filter(|call| call.code == 0).count() - count(calls, "nvmlGpmSampleFree")
}

/// A device as the sample calls name it, and the buffer.
fn sampled(call: &Call) -> Option<(String, String)> {
    let buffer = call.arguments.rsplit(' ').next()?.to_owned();
    match call.function.as_str() {
        "nvmlGpmSampleGet" => Some((call.device.clone(), buffer)),
        "nvmlGpmMigSampleGet" => {
            let (instance, _) = call.arguments.split_once(' ')?;
            Some((format!("{} {instance}", call.device), buffer))
        }
        _ => None,
    }
}

/// Every question about metrics is about the sample just taken and the one before of the same
/// device; the metrics that each device was asked for.
fn asked(calls: &[Call]) -> BTreeMap<String, BTreeSet<String>> {
    let mut metrics: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut samples: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut last: BTreeMap<u64, String> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.code == 0) {
        if let Some((device, buffer)) = sampled(call) {
            samples.entry(device.clone()).or_default().push(buffer);
            last.insert(call.thread, device);
        } else if call.function == "nvmlGpmMetricsGet" {
            let device = last.remove(&call.thread);
            let device = device.unwrap_or_else(|| panic!("asked without a new sample: {call:?}"));
            let taken = &samples[&device];
            let [.., before, now] = taken.as_slice() else { panic!("{device} has one sample") };
            let (pair, wanted) = call.arguments.rsplit_once(' ').unwrap();
            assert_eq!(pair, format!("{before} {now}"), "{device}");
            metrics.entry(device).or_default().insert(wanted.to_owned());
        }
    }
    metrics
}

fn one(metrics: &str) -> BTreeSet<String> {
    BTreeSet::from([metrics.to_owned()])
}

#[test]
fn a_pass_takes_one_sample_and_asks_once() {
    let exporter = Setup::simulate("h200-mig-and-whole").counters(FILE).ready();
    exporter.until_passes(12);
    let trace = exporter.trace();
    let calls = calls(&exporter);
    // The board's metrics are asked of the board, those of instances of each instance, and all of
    // a whole GPU in one go.
    let metrics = asked(&calls);
    assert_eq!(metrics["gpu0"], one("20,1,10"), "{metrics:?}");
    assert_eq!(metrics["gpu2"], one("20"), "{metrics:?}");
    assert_eq!(metrics["gpu2 2"], one("1,10"), "{metrics:?}");
    // As often as anything else that is read once a pass; the pass that is under way aside.
    let of = |device: &str, function: &str| {
        trace.iter().filter(|call| call.function == function && call.device == device).count()
    };
    for gpu in ["gpu0", "gpu2"] {
        let (passes, samples) = (of(gpu, "nvmlDeviceGetPowerUsage"), of(gpu, "nvmlGpmSampleGet"));
        assert!(passes.abs_diff(samples) <= 1, "{gpu}: {passes} passes, {samples} samples");
    }
    // Two buffers a device, whether there are two passes or twelve.
    let devices: BTreeSet<String> =
        calls.iter().filter_map(sampled).map(|(device, _)| device).collect();
    assert_eq!(count(&calls, "nvmlGpmSampleAlloc"), 2 * devices.len(), "{devices:?}");
    assert_eq!(count(&calls, "nvmlGpmSampleFree"), 0);
    assert_eq!(count(&calls, "nvmlGpmQueryDeviceSupport"), 4);
    assert_eq!(count(&calls, "nvmlGpmSetStreamingEnabled"), 0);
}

#[test]
fn nothing_is_sampled_that_no_row_asks_for() {
    let exporter = Setup::simulate("h200-mig-and-whole")
        .counters("DCGM_FI_DEV_POWER_USAGE, gauge, Text.\n")
        .ready();
    exporter.until_passes(4);
    assert_eq!(calls(&exporter), []);
    // Rows that only a whole GPU has leave instances alone.
    let exporter = Setup::simulate("h200-mig-and-whole")
        .counters("DCGM_FI_PROF_PCIE_TX_BYTES, gauge, Text.\n")
        .ready();
    exporter.until_passes(4);
    assert_eq!(count(&calls(&exporter), "nvmlGpmMigSampleGet"), 0);
}

#[test]
fn a_new_layout_has_new_samples_and_the_buffers_of_the_old_one_are_given_back() {
    let file = format!("{FILE}DCGM_FI_DEV_MIG_MODE, gauge, Text.\n");
    let exporter = Setup::simulate("h200-mig-and-whole").counters(&file).ready();
    exporter.until_settled();
    let ids = |page: &Page| -> BTreeSet<String> {
        let of_gpu = page.samples(ACTIVE).filter(|sample| sample.label("gpu") == Some("2"));
        of_gpu.filter_map(|sample| sample.label("GPU_I_ID").map(str::to_owned)).collect()
    };
    for _ in 0..6 {
        exporter.control(&["gpu 2 mig 3g.71gb,3g.71gb"]);
        exporter.until("two instances", |page| ids(page).len() == 2);
        exporter.control(&["gpu 2 mig 1g.18gb,1g.18gb,1g.18gb,1g.18gb"]);
        exporter.until("four instances", |page| ids(page).len() == 4);
        for (mode, shown) in [("off", 0.0), ("on", 1.0)] {
            exporter.control(&[&format!("gpu 2 mig {mode}")]);
            exporter.until("the GPU without instances", |page| {
                let values = || page.samples(ACTIVE).filter(|s| s.label("gpu") == Some("2"));
                ids(page).is_empty()
                    && values().count() == 1
                    && page.is("DCGM_FI_DEV_MIG_MODE", &[("gpu", "2")], shown)
            });
        }
        exporter.control(&["gpu 2 mig 7g.141gb"]);
        exporter.until("one instance", |page| ids(page).len() == 1);
    }
    let calls = calls(&exporter);
    asked(&calls);
    // Three whole GPUs or boards with two buffers each, and few instances.
    assert!(held(&calls) <= 2 * 12, "{} of {}", held(&calls), calls.len());
    assert!(count(&calls, "nvmlGpmSampleAlloc") > 60, "nothing was given back");
    let freed = calls.iter().filter(|call| call.function == "nvmlGpmSampleFree");
    assert!(freed.clone().all(|call| call.code == 0), "a buffer was freed twice");
}

#[test]
fn buffers_end_with_their_session_and_with_the_rows_that_need_them() {
    let exporter = Setup::simulate("dgx-h100").counters(FILE).ready();
    exporter.until_settled();
    assert_eq!(held(&calls(&exporter)), 16);
    for _ in 0..3 {
        exporter.control(&["driver unload"]);
        exporter.until("no driver", |page| page.is("nvml_up", &[], 0.0));
        exporter.control(&["driver load"]);
        exporter.until("values again", |page| page.samples(ACTIVE).count() == 8);
        assert_eq!(held(&calls(&exporter)), 16);
    }
    exporter.write("counters.csv", "DCGM_FI_DEV_POWER_USAGE, gauge, Text.\n");
    exporter.until("other rows", |page| page.family(ACTIVE).is_none());
    exporter.until_passes(2);
    assert_eq!(held(&calls(&exporter)), 0);
}

/// A mean does not wait for a whole interval, neither after the start nor of a new instance.
#[test]
fn the_second_sample_comes_soon() {
    let exporter = Setup::simulate("h200-mig-and-whole")
        .counters(FILE)
        .args(["--collect-interval=1h"])
        .ready();
    let start = exporter.until("values", |page| page.samples(ACTIVE).count() > 3);
    exporter.write("counters.csv", &FILE.replace("DRAM", "SM"));
    exporter.until("values of other rows", |page| {
        page.samples("DCGM_FI_PROF_SM_ACTIVE").count() == start.samples(ACTIVE).count()
    });
}
