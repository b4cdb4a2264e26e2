//! `DCGM_FI_PROF_*`: means between two passes, measured by GPM.

use crate::support::{Page, Setup};
use crate::watched::{ERRORS, TEMPERATURE, Watched, errors, is_down, is_up};

const ACTIVE: &str = "DCGM_FI_PROF_GR_ENGINE_ACTIVE";
const DRAM: &str = "DCGM_FI_PROF_DRAM_ACTIVE";
const SENT: &str = "DCGM_FI_PROF_PCIE_TX_BYTES";
const UNSUPPORTED: &str = "nvml_exporter_field_unsupported";

/// What the simulator's GPM answers of graphics activity at full load.
const FULL: f64 = 0.99;

/// A counters file of these fields.
fn counters(fields: &[&str]) -> String {
    fields.iter().flat_map(|field| [field, ", gauge, Text.\n"]).collect()
}

/// The mean is of a tenth of a second out of weeks: its last digits are lost.
fn close(found: Option<f64>, expected: f64) -> bool {
    found.is_some_and(|found| (found - expected).abs() < 1e-6)
}

/// The value of a GPU instance.
fn of_instance(page: &Page, name: &str, gpu: &str, instance: &str) -> Option<f64> {
    page.value(name, &[("gpu", gpu), ("GPU_I_ID", instance)])
}

fn is_missing(page: &Page, field: &str, gpu: &str, reason: &str) -> bool {
    let why = [("field", field), ("gpu", gpu), ("reason", reason)];
    page.of_gpu(field, gpu).is_none() && page.value(UNSUPPORTED, &why).is_some()
}

#[test]
fn values_follow_the_load_of_each_gpu() {
    let exporter = Setup::simulate("dgx-h100")
        .counters(&counters(&[ACTIVE, "DCGM_FI_DEV_GPU_UTIL"]))
        .control(&["gpu 0 set load 0.5", "gpu 1 set load 0", "gpu 2 set load 1"])
        .ready();
    for (gpu, load) in [("0", 0.5), ("1", 0.0), ("2", 1.0)] {
        let page = exporter.until("the load", |page| close(page.of_gpu(ACTIVE, gpu), load * FULL));
        assert!(close(page.of_gpu("DCGM_FI_DEV_GPU_UTIL", gpu), 100.0 * load), "{}", page.text);
    }
    exporter.control(&["gpu 1 set load 0.25"]);
    let page = exporter.until("a quarter", |page| close(page.of_gpu(ACTIVE, "1"), 0.25 * FULL));
    assert!(close(page.of_gpu(ACTIVE, "0"), 0.5 * FULL), "{}", page.text);
}

/// Field, number of GPM's metric, what GPM says, what is served.
const FIELDS: &[(&str, u16, &str, &str)] = &[
    (ACTIVE, 1, "12.5", "0.125"),
    ("DCGM_FI_PROF_SM_ACTIVE", 2, "100", "1"),
    ("DCGM_FI_PROF_SM_OCCUPANCY", 3, "0", "0"),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 5, "62.5", "0.625"),
    (DRAM, 10, "50", "0.5"),
    ("DCGM_FI_PROF_PIPE_FP64_ACTIVE", 11, "1", "0.01"),
    ("DCGM_FI_PROF_PIPE_FP32_ACTIVE", 12, "2", "0.02"),
    ("DCGM_FI_PROF_PIPE_FP16_ACTIVE", 13, "3", "0.03"),
    (SENT, 20, "1.5", "1572864"),
    // Cut, not rounded.
    ("DCGM_FI_PROF_PCIE_RX_BYTES", 21, "0.0000028", "2"),
    ("DCGM_FI_PROF_NVLINK_TX_BYTES", 61, "2", "2097152"),
    ("DCGM_FI_PROF_NVLINK_RX_BYTES", 60, "3", "3145728"),
    ("DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE", 9, "4", "0.04"),
    ("DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE", 7, "5", "0.05"),
    ("DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE", 6, "6", "0.06"),
    ("DCGM_FI_PROF_PIPE_INT_ACTIVE", 4, "7", "0.07"),
    ("DCGM_FI_PROF_NVDEC0_ACTIVE", 30, "8", "0.08"),
    ("DCGM_FI_PROF_NVDEC7_ACTIVE", 37, "9", "0.09"),
    ("DCGM_FI_PROF_NVJPG0_ACTIVE", 40, "10", "0.1"),
    ("DCGM_FI_PROF_NVJPG7_ACTIVE", 47, "11", "0.11"),
    ("DCGM_FI_PROF_NVOFA0_ACTIVE", 50, "12", "0.12"),
    ("DCGM_FI_PROF_NVOFA1_ACTIVE", 51, "13", "0.13"),
    ("DCGM_FI_PROF_NVLINK_L0_TX_BYTES", 63, "4", "4194304"),
    ("DCGM_FI_PROF_NVLINK_L0_RX_BYTES", 62, "5", "5242880"),
    ("DCGM_FI_PROF_NVLINK_L17_TX_BYTES", 97, "6", "6291456"),
    ("DCGM_FI_PROF_NVLINK_L17_RX_BYTES", 96, "7", "7340032"),
    ("DCGM_FI_PROF_C2C_TX_ALL_BYTES", 100, "8", "8388608"),
    ("DCGM_FI_PROF_C2C_TX_DATA_BYTES", 102, "9", "9437184"),
    ("DCGM_FI_PROF_C2C_RX_ALL_BYTES", 101, "10", "10485760"),
    ("DCGM_FI_PROF_C2C_RX_DATA_BYTES", 103, "11", "11534336"),
    ("DCGM_FI_PROF_HOSTMEM_CACHE_HIT", 160, "70.9", "70"),
    ("DCGM_FI_PROF_HOSTMEM_CACHE_MISS", 161, "29.1", "29"),
    ("DCGM_FI_PROF_PEERMEM_CACHE_HIT", 162, "1", "1"),
    ("DCGM_FI_PROF_PEERMEM_CACHE_MISS", 163, "99", "99"),
    ("DCGM_FI_PROF_SM_CYCLES_ELAPSED_TOTAL", 248, "4503599627370497", "4503599627370497"),
    ("DCGM_FI_PROF_SM_CYCLES_ACTIVE_TOTAL", 249, "11.9", "11"),
    ("DCGM_FI_PROF_MMA_CYCLES_ACTIVE_TOTAL", 250, "12", "12"),
    ("DCGM_FI_PROF_DMMA_CYCLES_ACTIVE_TOTAL", 251, "13", "13"),
    ("DCGM_FI_PROF_HMMA_CYCLES_ACTIVE_TOTAL", 252, "14", "14"),
    ("DCGM_FI_PROF_IMMA_CYCLES_ACTIVE_TOTAL", 253, "15", "15"),
    ("DCGM_FI_PROF_DFMA_CYCLES_ACTIVE_TOTAL", 254, "16", "16"),
    ("DCGM_FI_PROF_PCIE_TX_BYTES_TOTAL", 255, "17", "17"),
    ("DCGM_FI_PROF_PCIE_RX_BYTES_TOTAL", 256, "18", "18"),
    ("DCGM_FI_PROF_INT_CYCLES_ACTIVE_TOTAL", 257, "19", "19"),
    ("DCGM_FI_PROF_FP64_CYCLES_ACTIVE_TOTAL", 258, "20", "20"),
    ("DCGM_FI_PROF_FP32_CYCLES_ACTIVE_TOTAL", 259, "21", "21"),
    ("DCGM_FI_PROF_FP16_CYCLES_ACTIVE_TOTAL", 260, "22", "22"),
];

#[test]
fn each_field_is_its_metric_in_dcgms_unit() {
    let names: Vec<&str> = FIELDS.iter().map(|(name, ..)| *name).collect();
    let said: Vec<String> =
        FIELDS.iter().map(|(_, id, says, _)| format!("gpu 0 gpm {id} set {says}")).collect();
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    let page =
        Setup::simulate("gh200").counters(&counters(&names)).control(&said).ready().until_settled();
    for (name, id, says, served) in FIELDS {
        let sample = page.sample(name, &[("gpu", "0")]);
        let digits = sample.map(|sample| sample.digits.as_str());
        assert_eq!(digits, Some(*served), "{name}: metric {id} is {says}");
    }
}

#[test]
fn every_link_has_its_own_metrics() {
    const TX: &str = "DCGM_FI_PROF_NVLINK_TX_BYTES_PER_LINK";
    const RX: &str = "DCGM_FI_PROF_NVLINK_RX_BYTES_PER_LINK";
    let said: Vec<String> = (0..36).map(|at| format!("gpu 3 gpm {} set {}", 62 + at, at)).collect();
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    let page = Setup::simulate("dgx-h100")
        .counters(&counters(&[TX, RX]))
        .control(&said)
        .ready()
        .until_settled();
    for link in 0..18 {
        // DCGM counts links from 1.
        let labels = [("gpu", "3"), ("nvlink", &*(link + 1).to_string())];
        let mebibytes = |name| page.value(name, &labels).unwrap() / 1_048_576.0;
        assert!((mebibytes(RX) - f64::from(2 * link)).abs() < 1e-9, "{link}");
        assert!((mebibytes(TX) - f64::from(2 * link + 1)).abs() < 1e-9, "{link}");
    }
    assert_eq!(page.samples(TX).count(), 8 * 18);
}

#[test]
fn instances_engine_time_is_told_as_a_share_of_the_boards() {
    const SHARE: &str = "nvml_gr_engine_active_board_ratio";
    let page = Setup::simulate("h200-mig-and-whole")
        .counters(&counters(&[SHARE, ACTIVE]))
        .ready()
        .until_settled();
    // Profiles of seven slices, one of them with media engines.
    for (profile, slices) in
        [("3g.71gb", 3.0), ("2g.35gb", 2.0), ("1g.18gb", 1.0), ("1g.18gb+me", 1.0)]
    {
        let labels = [("gpu", "2"), ("GPU_I_PROFILE", profile)];
        let active = page.value(ACTIVE, &labels).unwrap();
        assert!(close(page.value(SHARE, &labels), active * slices / 7.0), "{}", page.text);
        assert!(active > 0.0, "{}", page.text);
    }
    assert!(close(page.of_gpu(SHARE, "0"), page.of_gpu(ACTIVE, "0").unwrap()), "{}", page.text);
}

#[test]
fn both_generations_of_names() {
    let page = Setup::simulate("gh200")
        .frozen()
        .counters(&counters(&[ACTIVE, "dcgm_fi_prof_dram_active", SENT]))
        .args(["--metric-names=both"])
        .ready()
        .until_settled();
    for (legacy, later) in [
        (ACTIVE, "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"),
        ("dcgm_fi_prof_dram_active", "DCGM_FI_PROF_DRAM_UTIL_RATIO"),
    ] {
        let value = page.of_gpu(legacy, "0");
        assert!(value.is_some_and(|value| value > 0.0), "{}", page.text);
        assert_eq!(page.of_gpu(later, "0"), value, "{later}");
    }
    assert!(page.of_gpu(SENT, "0").is_some(), "{}", page.text);
}

/// What counts since boot came with a driver of its own, and goes on over passes.
#[test]
fn counts_are_served_where_the_driver_has_them() {
    const COUNT: &str = "DCGM_FI_PROF_SM_CYCLES_ELAPSED_TOTAL";
    let exporter = Setup::simulate("dgx-b200").counters(&counters(&[ACTIVE, COUNT])).ready();
    exporter.until("the reason", |page| is_missing(page, COUNT, "0", "NOT_SUPPORTED"));
    exporter.control(&["driver load 590.44.01"]);
    let page = exporter.until("a count", |page| page.of_gpu(COUNT, "0").is_some());
    let before = page.of_gpu(COUNT, "0").unwrap();
    exporter.until("more", |page| page.of_gpu(COUNT, "0").is_some_and(|count| count > before));
}

#[test]
fn instances_have_their_own_values_and_the_boards() {
    let exporter = Setup::simulate("h200-mig-and-whole")
        .counters(&counters(&[ACTIVE, SENT]))
        .control(&["gpu 0 set load 1", "gpu 2 set load 0.5", "gpu 2 gi 2 set load 0.25"])
        .ready();
    let page = exporter
        .until("an instance", |page| close(of_instance(page, ACTIVE, "2", "2"), 0.25 * FULL));
    let of_board: Vec<_> =
        page.samples(ACTIVE).filter(|sample| sample.has(&[("gpu", "2")])).collect();
    assert!(of_board.len() > 1, "{}", page.text);
    assert!(of_board.iter().all(|sample| sample.label("GPU_I_ID").is_some()), "{of_board:?}");
    assert!(close(page.of_gpu(ACTIVE, "0"), FULL), "{}", page.text);
    // The link is the board's, and so is what goes over it.
    let sent: Vec<_> = page.samples(SENT).filter(|sample| sample.has(&[("gpu", "2")])).collect();
    assert_eq!(sent.len(), of_board.len());
    assert!(sent.iter().all(|sample| sample.digits == sent[0].digits && sample.value > 0.0));
}

#[test]
fn gpus_before_hopper_have_none_and_say_why() {
    for (scenario, gpus, models) in [("a100-mig-mixed", 3, 1), ("t4-l4-mixed", 4, 2)] {
        let exporter = Setup::simulate(scenario).ready();
        let page = exporter.until_settled();
        assert!(!page.names().iter().any(|name| name.contains("_PROF_")), "{}", page.text);
        for gpu in 0..gpus {
            for field in [ACTIVE, SENT] {
                assert!(is_missing(&page, field, &gpu.to_string(), "NOT_SUPPORTED"), "{scenario}");
            }
        }
        exporter.until_passes(3);
        let log = exporter.log();
        let told = log.lines().filter(|line| line.contains("no profiling metrics")).count();
        assert_eq!(told, models, "{log}");
        // Each GPU is asked once whether it has any, and no more.
        let trace = exporter.trace();
        let asked = trace.iter().filter(|call| call.function.starts_with("nvmlGpm"));
        let asked: Vec<&str> = asked.map(|call| call.function.as_str()).collect();
        assert_eq!(asked, vec!["nvmlGpmQueryDeviceSupport"; gpus], "{scenario}");
    }
}

/// Drivers before GPM lack its functions altogether.
#[test]
fn a_driver_before_gpm_is_a_reason_too() {
    let page = Setup::simulate("v100-old-driver").ready().until_settled();
    assert!(is_missing(&page, ACTIVE, "0", "FUNCTION_NOT_FOUND"), "{}", page.text);
}

#[test]
fn the_list_of_fields_says_who_has_them() {
    for (scenario, verdict) in
        [("gh200", "yes"), ("a100-mig-mixed", "no: NOT_SUPPORTED on every GPU")]
    {
        let (code, out, log) = Setup::simulate(scenario).args(["fields"]).run();
        assert_eq!(code, 0, "{log}");
        let line = out.lines().find(|line| line.starts_with(ACTIVE)).unwrap();
        assert!(line.ends_with(verdict), "{line}");
    }
}

#[test]
fn one_metric_fails_and_the_others_go_on() {
    let watched = Watched::start(Setup::simulate("dgx-h100"));
    watched.exporter.until("values", |page| page.of_gpu(DRAM, "4").is_some());
    for (command, reason, counted) in [
        ("error UNKNOWN", "UNKNOWN", true),
        ("error NOT_SUPPORTED", "NOT_SUPPORTED", false),
        ("set nan", "NO_VALUE", false),
        // After a reset, say: no share of time is less than none.
        ("set -1", "NO_VALUE", false),
    ] {
        let page = watched.after(&[&format!("gpu 4 gpm 1 {command}")], reason, |page| {
            is_missing(page, ACTIVE, "4", reason)
        });
        assert!(page.of_gpu(DRAM, "4").is_some() && page.of_gpu(ACTIVE, "3").is_some());
        assert_eq!(errors(&page, "nvmlGpmMetricsGet", reason) > 0.0, counted, "{command}");
        watched
            .after(&["gpu 4 gpm 1 clear"], "it is back", |page| page.of_gpu(ACTIVE, "4").is_some());
    }
    watched.others_go_on(&[]);
    watched.end();
}

/// As when another profiler holds the counters, or the driver has a bad day.
#[test]
fn no_sample_or_no_metrics_cost_the_metrics_alone() {
    let watched = Watched::start(Setup::simulate("dgx-h100"));
    watched.exporter.until("values", |page| page.of_gpu(ACTIVE, "4").is_some());
    for (whom, function, reason) in [
        ("gpu 4", "nvmlGpmSampleGet", "IN_USE"),
        ("gpu 4", "nvmlGpmSampleGet", "INVALID_ARGUMENT"),
        ("gpu 4", "nvmlGpmSampleGet", "NOT_SUPPORTED"),
        ("system", "nvmlGpmMetricsGet", "UNKNOWN"),
        // Then metrics are asked for one by one.
        ("system", "nvmlGpmMetricsGet", "INVALID_ARGUMENT"),
    ] {
        let what = format!("{function} {reason}");
        let page = watched.after(&[&format!("{whom} error {what}")], &what, |page| {
            is_missing(page, ACTIVE, "4", reason) && is_missing(page, SENT, "4", reason)
        });
        assert!(is_up(&page, "4"), "{what}");
        let counted = errors(&page, function, reason) > 0.0;
        let property = reason == "NOT_SUPPORTED" || whom == "system" && reason != "UNKNOWN";
        assert_eq!(counted, !property, "{what}: {:?}", page.family(ERRORS));
        watched.after(&[&format!("{whom} error {function} clear")], "they are back", |page| {
            page.of_gpu(ACTIVE, "4").is_some() && page.of_gpu(SENT, "4").is_some()
        });
    }
    watched.others_go_on(&[]);
    watched.end();
}

#[test]
fn no_buffers_at_the_start_are_tried_again() {
    let exporter = Setup::simulate("gh200")
        .counters(&counters(&[ACTIVE, TEMPERATURE]))
        .control(&["system error nvmlGpmSampleAlloc MEMORY"])
        .ready();
    let page = exporter.until("the reason", |page| is_missing(page, ACTIVE, "0", "MEMORY"));
    assert!(errors(&page, "nvmlGpmSampleAlloc", "MEMORY") > 0.0, "{}", page.text);
    exporter.control(&["system error nvmlGpmSampleAlloc clear"]);
    exporter.until("a value", |page| page.of_gpu(ACTIVE, "0").is_some());
}

#[test]
fn a_lost_gpu_comes_back_with_a_new_mean() {
    let watched = Watched::start(Setup::simulate("dgx-h100").frozen());
    watched
        .after(&["gpu 2 set load 0.5"], "half", |page| close(page.of_gpu(ACTIVE, "2"), 0.5 * FULL));
    watched.after(&["gpu 2 lost"], "GPU 2 down", |page| is_down(page, "2", "lost"));
    // Had the mean gone on over this hour, it would be less than half.
    let hour = ["gpu 2 set load 0", "clock advance 1h", "gpu 2 set load 0.5", "gpu 2 restore"];
    let page = watched.after(&hour, "a mean", |page| page.of_gpu(ACTIVE, "2").is_some());
    assert!(close(page.of_gpu(ACTIVE, "2"), 0.5 * FULL), "{:?}", page.of_gpu(ACTIVE, "2"));
    watched.end();
}
