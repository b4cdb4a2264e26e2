//! The series that a rule can count on, each with the labels that it can have: those of
//! `docs/own-metrics.md`, those that `metrics.csv` selects, what pods use and spend, and a few of
//! other exporters.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::files::{Scheme, read, root};

pub(crate) type Labels = BTreeSet<String>;

/// Series of others, with the labels that rules use, and why they are used.
const FOREIGN: &[(&str, &[&str], &str)] = &[
    ("up", &[], "Prometheus' own: whether a target could be scraped"),
    (
        "probe_ssl_earliest_cert_expiry",
        &[],
        "blackbox_exporter's: no exporter sees what clients see",
    ),
    (
        "kube_pod_status_phase",
        &["namespace", "pod", "phase"],
        "kube-state-metrics': whether a pod runs",
    ),
    (
        "kube_pod_labels",
        &["namespace", "pod", "label_team"],
        "kube-state-metrics': what pods are labelled with",
    ),
];

/// Labels that the recorded pages do not show, since nothing happened on them.
const HAPPENED: &[(&str, &[&str])] =
    &[("nvml_xid_last_timestamp_seconds", &["xid", "GPU_I_PROFILE", "GPU_I_ID"])];

const DEVICE: &[&str] =
    &["gpu", "UUID", "pci_bus_id", "device", "modelName", "GPU_I_PROFILE", "GPU_I_ID", "hostname"];
const GPU: &[&str] = &["gpu", "UUID", "pci_bus_id", "device", "model_name", "hostname"];
const POD: &[&str] = &["container", "namespace", "pod"];
const DRIVER: &str = "DCGM_FI_DRIVER_VERSION";

/// What pods use and spend (`--usage-by=pod`, the default with `--kubernetes`).
pub(crate) const OF_PODS: &[&str] = &[
    "nvml_pod_processes",
    "nvml_pod_memory_used_bytes",
    "nvml_pod_sm_utilization_ratio",
    "nvml_pod_memory_copy_utilization_ratio",
    "nvml_pod_encoder_utilization_ratio",
    "nvml_pod_decoder_utilization_ratio",
    "nvml_pod_energy_joules_total",
    "nvml_pod_gpu_seconds_total",
    "nvml_pod_gpu_busy_seconds_total",
];
/// What nobody is charged for.
pub(crate) const UNATTRIBUTED: &str = "nvml_device_unattributed_energy_joules_total";
/// The labels of a pod under both names that Prometheus may give them.
const OF_A_POD: &[&str] = &["namespace", "pod", "exported_namespace", "exported_pod"];

/// What Prometheus or its configuration adds to every series.
pub(crate) const TARGET: &[&str] = &["cluster", "job", "instance", "node"];

/// Series by name.
pub(crate) struct Series(BTreeMap<String, Labels>);

fn owned<'a>(labels: impl IntoIterator<Item = &'a str>) -> Labels {
    labels.into_iter().map(str::to_owned).collect()
}

impl Series {
    /// Those that are there by default.
    pub(crate) fn served(scheme: Scheme) -> Self {
        let mut series = BTreeMap::new();
        selected(&mut series);
        always_there(&mut series);
        used(&mut series);
        for (name, labels) in HAPPENED {
            let known = series.get_mut(*name);
            known.unwrap().extend(owned(labels.iter().chain(POD).copied()));
        }
        if scheme == Scheme::Dcgm47 {
            series = renamed(series);
        }
        for (name, labels, _) in FOREIGN {
            series.insert((*name).to_owned(), owned(labels.iter().copied()));
        }
        Self(series)
    }

    /// The labels that a series can have.
    pub(crate) fn labels(&self, name: &str) -> Option<&Labels> {
        let histogram = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        self.0.get(name).or_else(|| self.0.get(histogram?))
    }
}

/// The cells of the tables' rows, without the quotes around names.
fn rows(document: &str) -> Vec<Vec<String>> {
    let rows = document.lines().filter(|line| line.starts_with("| `"));
    let cells = |row: &str| row.trim_matches('|').split('|').map(|c| c.trim().to_owned()).collect();
    rows.map(cells).collect()
}

/// The names in a cell.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// What `metrics.csv` turns on, with the labels that pages show, or where no page has the
/// metric those of its kind.
fn selected(series: &mut BTreeMap<String, Labels>) {
    let seen = seen();
    let csv = read("metrics.csv");
    let lines = csv.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let mut drivers = false;
    for name in lines.filter_map(|line| line.split(',').next()) {
        drivers |= name == DRIVER;
        let kind = if name.starts_with("nvml_") { GPU } else { DEVICE };
        let mut labels = seen.get(name).cloned().unwrap_or_else(|| owned(kind.iter().copied()));
        // Pages without MIG or pods do not show all that a device can have.
        if name.starts_with("DCGM_") {
            labels.extend(owned(DEVICE.iter().chain(POD).copied()));
        }
        series.insert(name.to_owned(), labels);
    }
    assert!(drivers, "metrics.csv has the driver's version as a label");
}

/// The labels of each metric on the recorded pages.
fn seen() -> BTreeMap<String, Labels> {
    let mut seen: BTreeMap<String, Labels> = BTreeMap::new();
    for entry in fs::read_dir(root().join("tests/golden")).unwrap() {
        let page = fs::read_to_string(entry.unwrap().path()).unwrap();
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, rest)) = line.split_once('{') else { continue };
            let block = rest.rsplit_once('}').map_or("", |(block, _)| block);
            let names = block.split("=\"").filter_map(|piece| piece.rsplit(['"', ',']).next());
            let labels = seen.entry(name.to_owned()).or_default();
            labels.extend(names.filter(|name| !name.is_empty()).map(str::to_owned));
        }
    }
    assert!(!seen.is_empty(), "tests/golden has no page");
    seen
}

/// What `docs/own-metrics.md` lists.
fn always_there(series: &mut BTreeMap<String, Labels>) {
    for row in rows(&read("docs/own-metrics.md")) {
        let [names, _, labels, _] = row.as_slice() else { panic!("a row of {} cells", row.len()) };
        let mut known = owned(quoted(labels));
        if labels.contains("GPU labels") {
            known.extend(owned(GPU.iter().copied()));
        }
        if labels.contains("host") {
            known.insert("hostname".to_owned());
        }
        for name in quoted(names) {
            series.insert(name.to_owned(), known.clone());
        }
    }
}

/// What pods use and spend, and what nobody does.
fn used(series: &mut BTreeMap<String, Labels>) {
    for name in OF_PODS {
        let known = series.entry((*name).to_owned()).or_default();
        known.extend(owned(GPU.iter().chain(OF_A_POD).copied()));
        known.extend(owned(["GPU_I_PROFILE", "GPU_I_ID"]));
    }
    let known = series.entry(UNATTRIBUTED.to_owned()).or_default();
    known.extend(owned(GPU.iter().copied()).into_iter().chain(owned(["by", "reason"])));
}

/// The same series under the names of DCGM 4.7.
fn renamed(series: BTreeMap<String, Labels>) -> BTreeMap<String, Labels> {
    let document = read("docs/metrics.md");
    let mut later = BTreeMap::new();
    for row in rows(&document) {
        if let [name, _, _, _, _, _, _, _, new, _] = row.as_slice() {
            let name = quoted(name).next().unwrap().to_owned();
            later.insert(name.clone(), quoted(new).next().map_or(name, str::to_owned));
        }
    }
    let new = |name: String| later.get(&name).cloned().unwrap_or(name);
    series
        .into_iter()
        .map(|(name, labels)| (new(name), labels.into_iter().map(new).collect()))
        .collect()
}
