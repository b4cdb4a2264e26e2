//! What the tests are made of: the exporter as a process, a strict reader of its page, the
//! simulator's control file and trace.

pub(crate) mod adapter;
pub(crate) mod alertmanager;
pub(crate) mod apiserver;
pub(crate) mod autoscaler;
pub(crate) mod bench;
pub(crate) mod cgroups;
mod exporter;
pub(crate) mod kubelet;
pub(crate) mod monitor;
mod page;
pub(crate) mod pods;
pub(crate) mod prometheus;
mod python;
mod trace;

use std::time::{Duration, Instant};

pub(crate) use exporter::{Exporter, Setup, get, simulator};
pub(crate) use page::{Page, Sample};
pub(crate) use prometheus::{Prometheus, missing, promtool_findings};
pub(crate) use python::Python;
pub(crate) use trace::Call;

/// After this long a test has hung.
pub(crate) const HUNG: Duration = Duration::from_secs(30);

/// The scenarios that the simulator has built in.
pub(crate) const SCENARIOS: &[&str] = &[
    "a100-mig-mixed",
    "dense-16x7",
    "dgx-b200",
    "dgx-h100",
    "geforce-3090",
    "gh200",
    "h200-mig-and-whole",
    "no-gpus",
    "t4-l4-mixed",
    "v100-old-driver",
];

/// Waits for what has to come; `report` says what there was instead.
pub(crate) fn until<T>(
    what: &str,
    mut look: impl FnMut() -> Option<T>,
    report: impl FnOnce() -> String,
) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < HUNG, "waited in vain for: {what}\n{}", report());
        std::thread::sleep(Duration::from_millis(15));
    }
}

#[test]
fn no_scenario_is_forgotten() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("simulator/scenarios");
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, SCENARIOS);
}
