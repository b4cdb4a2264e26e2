//! Helm's own opinion of the chart.

use crate::support::{helm, said};

#[test]
fn helm_finds_nothing_to_complain_about() {
    let output = helm(&["lint", "--strict", "deploy/helm/nvml-exporter"]);
    assert!(output.status.success(), "{}", said(&output));
}
