//! Reasons for lower clocks: counted by sample in a window, and by appearance.

use crate::support::{Exporter, Page, Setup};

const COUNT: &str = "DCGM_EXP_CLOCK_EVENTS_COUNT";
const TOTAL: &str = "DCGM_EXP_CLOCK_EVENTS_TOTAL";

const ALL: [&str; 9] = [
    "gpu_idle",
    "clocks_setting",
    "power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal",
    "hw_thermal",
    "hw_power_brake",
    "display_clocks",
];

fn exporter(scenario: &str, mask: &str) -> Exporter {
    let csv = format!("{COUNT}, gauge, Window.\n{TOTAL}, counter, Since the start.\n");
    let mask = format!("gpu * set clock_reasons {mask}");
    Setup::simulate(scenario).counters(&csv).control(&[&mask]).ready()
}

fn reasons<'a>(page: &'a Page, name: &'a str, gpu: &'a str) -> Vec<&'a str> {
    let of_gpu = page.samples(name).filter(|sample| sample.label("gpu") == Some(gpu));
    of_gpu.filter_map(|sample| sample.label("clock_event")).collect()
}

#[test]
fn case_48_a_mask_with_all_bits_counts_for_each() {
    let exporter = exporter("dgx-h100", "0x1ff");
    let page = exporter.until_settled();
    assert_eq!(reasons(&page, COUNT, "0"), ALL);
    let of_gpu = page.samples(COUNT).filter(|sample| sample.label("gpu") == Some("0"));
    let counts: Vec<f64> = of_gpu.map(|sample| sample.value).collect();
    // One a pass, for each alike.
    assert!(counts[0] >= 2.0 && counts.iter().all(|count| count.total_cmp(&counts[0]).is_eq()));
    assert_eq!(page.samples(COUNT).next().unwrap().label("window_size_in_ms"), Some("300000"));
}

#[test]
fn case_50_no_reason_is_a_zero() {
    let page = exporter("dgx-h100", "0").until_settled();
    assert_eq!(page.samples(COUNT).count(), 8);
    assert!(page.samples(COUNT).all(|s| s.digits == "0" && s.label("clock_event").is_none()));
    assert_eq!(page.samples(TOTAL).count(), 0);
}

#[test]
fn case_61_a_reason_counts_each_time_it_appears_and_not_if_it_was_there() {
    let exporter = exporter("dgx-h100", "0x4");
    let page = exporter.until_settled();
    assert_eq!(page.samples(TOTAL).count(), 0);
    for times in 1..=2 {
        exporter.control(&["gpu 3 set clock_reasons 0x44"]);
        let page = exporter.until("hw_thermal", |page| {
            page.is(TOTAL, &[("gpu", "3"), ("clock_event", "hw_thermal")], f64::from(times))
        });
        assert_eq!(page.samples(TOTAL).count(), 1);
        exporter.control(&["gpu 3 set clock_reasons 0x4"]);
        exporter.until_passes(3);
    }
}

/// dcgm-exporter answers 500; here the family alone is missing.
#[test]
fn cases_51_and_52_a_mask_that_cannot_be_read_counts_for_nothing() {
    let csv = format!("{COUNT}, gauge, Window.\nDCGM_FI_DEV_GPU_TEMP, gauge, Temperature.\n");
    for code in ["NOT_SUPPORTED", "UNKNOWN"] {
        let calls = ["Event", "Throttle"]
            .map(|word| format!("gpu 2 error nvmlDeviceGetCurrentClocks{word}Reasons {code}"));
        let setup = Setup::simulate("dgx-h100").counters(&csv);
        let page = setup.control(&calls.each_ref().map(String::as_str)).ready().until_settled();
        assert!(page.sample(COUNT, &[("gpu", "2")]).is_none(), "{code}");
        assert_eq!(page.samples("DCGM_FI_DEV_GPU_TEMP").count(), 8, "{code}");
        assert!(page.samples(COUNT).count() >= 7, "{code}");
    }
}

#[test]
fn a_boards_reasons_stand_on_each_of_its_instances() {
    let exporter = exporter("a100-mig-mixed", "0x4");
    let page = exporter.until_settled();
    let mut of_gpu: Vec<_> = page
        .samples(COUNT)
        .filter(|sample| sample.has(&[("gpu", "0"), ("clock_event", "power_cap")]))
        .map(|sample| sample.label("GPU_I_ID").unwrap())
        .collect();
    of_gpu.sort_unstable();
    assert_eq!(of_gpu, ["2", "3", "9"]);
}
