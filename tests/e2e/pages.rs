//! Each scenario's whole page is as it was reviewed. `UPDATE_EXPECT=1` writes the pages anew.

use std::path::Path;

use expect_test::expect_file;

use crate::support::{Page, SCENARIOS, Setup};

/// What the exporter says of its own process, of times and of its version: no two pages agree on
/// it. How it looks is tested where it is made.
fn is_fleeting(family: &str) -> bool {
    const FLEETING: &[&str] = &[
        "nvml_exporter_build_info",
        "nvml_exporter_config_last_reload_success_timestamp_seconds",
        // The registry keeps label sets in a hash map, in another order in each process.
        "nvml_exporter_config_reloads_total",
        "nvml_exporter_last_pass_timestamp_seconds",
        // Passes that were given up on a busy machine; nothing else may fail.
        "nvml_exporter_nvml_errors_total",
        "nvml_exporter_page_timestamp_seconds",
        "nvml_exporter_pass_duration_seconds",
        "nvml_exporter_reading_age_seconds",
        "nvml_exporter_scrapes_total",
        "nvml_exporter_snapshot_age_seconds",
    ];
    FLEETING.contains(&family) || family.starts_with("process_")
}

/// The page's own lines, without the fleeting families. Of more than eight GPUs the first and the
/// last stand for all: a page of sixteen times seven instances is nothing to review.
fn lasting(page: &Page) -> String {
    let gpus = page.samples("nvml_exporter_device_up").count();
    let left_out: Vec<String> = if gpus > 8 {
        (1..gpus - 1).map(|gpu| format!("gpu=\"{gpu}\"")).collect()
    } else {
        Vec::new()
    };
    let mut kept = String::new();
    let mut keep = true;
    for line in page.text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            keep = !is_fleeting(rest.split(' ').next().unwrap_or_default());
        }
        if keep && !left_out.iter().any(|gpu| line.contains(gpu)) {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

fn check(scenario: &str) {
    assert!(SCENARIOS.contains(&scenario));
    let exporter = Setup::simulate(scenario).frozen().ready();
    let page = exporter.until_settled();
    for error in page.samples("nvml_exporter_nvml_errors_total") {
        assert_eq!(error.label("call"), Some("pass"), "{error:?}");
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    expect_file![golden.join(format!("{scenario}.prom"))].assert_eq(&lasting(&page));
}

/// What the golden page of `dense-16x7` leaves out: that all sixteen GPUs have the same series.
#[test]
fn sixteen_gpus_of_a_kind_have_the_same_series() {
    let page = Setup::simulate("dense-16x7").frozen().ready().until_settled();
    let of_gpu = |gpu: u32| -> Vec<String> {
        let gpu = gpu.to_string();
        page.families
            .iter()
            .flat_map(|family| &family.samples)
            .filter(|sample| sample.label("gpu") == Some(&gpu))
            .map(|sample| {
                let instance = sample.label("GPU_I_ID").unwrap_or_default();
                let link = sample.label("nvlink").unwrap_or_default();
                let field = sample.label("field").unwrap_or_default();
                let reason = sample.label("reason").unwrap_or_default();
                format!("{} {instance} {link} {field} {reason}", sample.name)
            })
            .collect()
    };
    let first = of_gpu(0);
    assert!(first.len() > 100, "{first:?}");
    for gpu in 1..16 {
        assert_eq!(of_gpu(gpu), first, "GPU {gpu}");
    }
    assert!(of_gpu(16).is_empty());
}

macro_rules! pages {
    ($($name:ident: $scenario:literal;)*) => {
        $(#[test] fn $name() { check($scenario); })*

        #[test]
        fn every_scenario_has_its_page() {
            assert_eq!([$($scenario),*], SCENARIOS);
        }
    };
}

pages! {
    a100_mig_mixed: "a100-mig-mixed";
    dense_16x7: "dense-16x7";
    dgx_b200: "dgx-b200";
    dgx_h100: "dgx-h100";
    geforce_3090: "geforce-3090";
    gh200: "gh200";
    h200_mig_and_whole: "h200-mig-and-whole";
    no_gpus: "no-gpus";
    t4_l4_mixed: "t4-l4-mixed";
    v100_old_driver: "v100-old-driver";
}
