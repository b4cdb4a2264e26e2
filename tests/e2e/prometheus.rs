//! What a real Prometheus makes of the page.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Page, Prometheus, Python, Setup, promtool_findings};

/// Rows of the default selection that an H100 on driver 570 does not give.
const NOT_ON_H100: &[(&str, &str)] = &[
    ("DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG", "the call came with driver 580"),
    ("DCGM_FI_DEV_RETIRED_SBE", "Hopper remaps rows and retires no pages"),
    ("DCGM_FI_DEV_RETIRED_DBE", "Hopper remaps rows and retires no pages"),
    ("DCGM_FI_DEV_RETIRED_PENDING", "Hopper remaps rows and retires no pages"),
    ("DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS", "counted since Blackwell"),
    ("DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS", "counted since Blackwell"),
    ("DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS", "counted since Blackwell"),
];

/// Families with more than one series a GPU: reasons, codes, and the links of an H100.
const SEVERAL: &[(&str, f64)] = &[
    ("nvml_clocks_event_reason", 9.0),
    ("nvml_clocks_event_seconds_total", 11.0),
    ("nvml_nvlink_up", 18.0),
    // The codes that start at 0.
    ("DCGM_EXP_XID_ERRORS_TOTAL", 55.0),
    // The parts that are judged.
    ("DCGM_EXP_GPU_HEALTH_STATUS", 11.0),
];

const XID_TIME: &str = "nvml_xid_last_timestamp_seconds";

/// The families that metrics.csv enables.
fn enabled() -> Vec<String> {
    include_str!("../../metrics.csv")
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| line.split(',').map(str::trim).collect::<Vec<_>>())
        .filter(|columns| columns[1] != "label")
        .map(|columns| columns[0].to_owned())
        .collect()
}

#[test]
fn every_enabled_family_arrives_with_eight_series() {
    let exporter = Setup::simulate("dgx-h100").ready();
    exporter.until_settled();
    // Before the first XID there is no time of the last.
    exporter.control(&["gpu * xid 79"]);
    let page = exporter.until("an XID each", |page| page.samples(XID_TIME).count() == 8);
    let prometheus = Prometheus::start(&[exporter.address]);
    prometheus.until_scraped(5.0);
    prometheus.assert_content();

    let arrived: BTreeMap<String, f64> = prometheus
        .query("count by (__name__) ({job=\"nvml-exporter\"})")
        .into_iter()
        .map(|(metric, count)| (metric["__name__"].as_str().unwrap().to_owned(), count))
        .collect();
    let enabled = enabled();
    assert!(enabled.len() > 80, "{enabled:?}");
    for family in &enabled {
        let count = arrived.get(family).copied();
        if NOT_ON_H100.iter().any(|(name, _)| name == family) {
            assert_eq!(count, None, "{family}");
            let gpu = [("field", family.as_str()), ("gpu", "0")];
            assert!(page.value("nvml_exporter_field_unsupported", &gpu).is_some(), "{family}");
        } else {
            let several = SEVERAL.iter().find(|(name, _)| name == family).map_or(1.0, |(_, n)| *n);
            assert_eq!(count, Some(8.0 * several), "{family}");
        }
    }
    // Whatever else there is arrives as well: nothing is dropped on the way.
    let names: BTreeSet<&str> =
        page.families.iter().flat_map(|f| &f.samples).map(|sample| sample.name.as_str()).collect();
    for name in names {
        assert!(arrived.contains_key(name), "{name}");
    }
}

/// Prometheus asks for `OpenMetrics` first, and reads it when it gets it.
#[test]
fn openmetrics_is_read_too() {
    let exporter = Setup::simulate("h200-mig-and-whole").args(["--openmetrics"]).ready();
    let prometheus = Prometheus::start(&[exporter.address]);
    prometheus.until_scraped(3.0);
    prometheus.assert_content();
    let page = exporter.until("scrapes counted", |page| {
        page.value("nvml_exporter_scrapes_total", &[("format", "openmetrics")]).is_some()
    });
    // What is a counter there has the same name here.
    for name in ["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "nvml_pcie_tx_bytes_total"] {
        let series = page.samples(name).count() as f64;
        assert!(series > 0.0, "{name}");
        assert_eq!(prometheus.number(&format!("count({name})")), Some(series), "{name}");
    }
}

/// The reference parser of `OpenMetrics` is the strictest reader there is.
#[test]
fn the_reference_parser_reads_the_openmetrics_page() {
    for scenario in ["a100-mig-mixed", "dgx-h100", "no-gpus", "v100-old-driver"] {
        let exporter = Setup::simulate(scenario).args(["--openmetrics"]).ready();
        exporter.until_ready();
        let answer = exporter.get("/metrics", &[("Accept", "application/openmetrics-text")]);
        assert_eq!(
            answer.header("content-type"),
            Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
        );
        let script = "import sys\n\
            from prometheus_client.openmetrics.parser import text_string_to_metric_families\n\
            families = list(text_string_to_metric_families(sys.stdin.read()))\n\
            print(sum(len(family.samples) for family in families))\n";
        let output = Python::new("python").args(["-c", script]).run(&answer.body);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{scenario}: {errors}");
        let samples: usize = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
        let lines = answer.body.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(samples, lines, "{scenario}");
    }
}

/// What promtool finds, beside the two findings that follow from a rule below: all of it in names
/// that are DCGM's.
const FINDINGS: &[(&str, &str)] = &[
    // "counter" is a part of the field's name, whose type is counter.
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "metric name should not include type 'counter'"),
    // A summary of the fabric's health, not of a distribution.
    ("DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY", "metric name should not include type 'summary'"),
    // Nanoseconds: DCGM's unit as well as its name.
    (
        "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS",
        "metric names should not contain abbreviated units",
    ),
    (
        "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS",
        "metric names should not contain abbreviated units",
    ),
    (
        "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS",
        "metric names should not contain abbreviated units",
    ),
    (
        "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS",
        "metric names should not contain abbreviated units",
    ),
    (
        "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_NS",
        "metric names should not contain abbreviated units",
    ),
];

/// DCGM's counters have DCGM's names, without the suffix.
const NO_SUFFIX: &str = "counter metrics should have \"_total\" suffix";

/// dcgm-exporter's label `modelName`.
const CAMEL_CASE: &str = "label names should be written in 'snake_case' not 'camelCase'";

fn expected_findings(page: &Page) -> BTreeSet<(String, String)> {
    let finding = |name: &str, message: &str| (name.to_owned(), message.to_owned());
    let counters = page
        .families
        .iter()
        .filter(|family| family.kind == "counter" && family.name.starts_with("DCGM_"))
        .map(|family| finding(&family.name, NO_SUFFIX));
    let camel_case = page
        .families
        .iter()
        .filter(|family| family.samples.iter().any(|sample| sample.label("modelName").is_some()))
        .map(|family| finding(&family.name, CAMEL_CASE));
    let listed = FINDINGS.iter().map(|(name, message)| finding(name, message));
    counters.chain(camel_case).chain(listed).collect()
}

#[test]
fn promtool_finds_only_dcgms_own_naming() {
    let page = Setup::simulate("dgx-h100").ready().until_settled();
    let found = promtool_findings(&page.text);
    let expected = expected_findings(&page);
    let unexpected: Vec<_> = found.difference(&expected).collect();
    let absent: Vec<_> = expected.difference(&found).collect();
    assert!(unexpected.is_empty() && absent.is_empty(), "new: {unexpected:#?}\ngone: {absent:#?}");
    for (name, message) in &found {
        assert!(name.starts_with("DCGM_"), "{name}: {message}");
    }
}

/// Every metric name and label of every scenario is one that Prometheus takes.
#[test]
fn promtool_reads_every_scenarios_page() {
    for scenario in ["a100-mig-mixed", "geforce-3090", "no-gpus", "v100-old-driver"] {
        let page = Setup::simulate(scenario).ready().until_ready();
        for (name, message) in promtool_findings(&page.text) {
            assert!(name.starts_with("DCGM_"), "{name}: {message}");
        }
    }
}
