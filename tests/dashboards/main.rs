//! The dashboards in `dashboards/`, for both sets of names: Grafana takes them, its linter finds
//! nothing, and all that a query names is there to be had. That every query has an answer is
//! tested beside a real Prometheus, in `tests/e2e/dashboards.rs`.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test ends where it fails")]

mod alerts;
mod boards;
mod expressions;
mod files;
#[path = "../alerts/labels.rs"]
#[expect(dead_code, reason = "annotations of alerts are looked at there")]
mod labels;
#[path = "../alerts/series.rs"]
mod series;
mod structure;

fn nothing(rule: &str, offences: &[String]) {
    assert!(offences.is_empty(), "{rule}:\n  {}", offences.join("\n  "));
}
