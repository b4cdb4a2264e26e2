//! What dashboards say of alerts: the alerts that they name exist, and red and orange are theirs.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::boards::{FOLDERS, Folder, list, text};
use crate::files::read;
use crate::nothing;

/// Alerts with their severity.
fn alerts() -> BTreeMap<String, String> {
    let rules = read("alerts/gpu-alerts.yml");
    let mut alerts = BTreeMap::new();
    let mut name = None;
    for line in rules.lines().map(str::trim) {
        if let Some(alert) = line.strip_prefix("- alert: ") {
            name = Some(alert.to_owned());
        } else if let Some(severity) = line.strip_prefix("severity: ") {
            alerts.extend(name.take().map(|name| (name, severity.to_owned())));
        }
    }
    assert!(alerts.len() > 40, "{alerts:?}");
    alerts
}

/// The alerts that a text names.
fn named(words: &str) -> impl Iterator<Item = &str> {
    let words = words.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| {
        let rest = word.strip_prefix("Gpu").or_else(|| word.strip_prefix("Nvml"));
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
    })
}

fn colours<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("color").and_then(Value::as_str));
            fields.values().for_each(|value| colours(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| colours(value, found)),
        _ => {}
    }
}

#[test]
fn alerts_that_panels_name_exist() {
    let alerts = alerts();
    let mut unknown = Vec::new();
    for board in FOLDERS.iter().flat_map(Folder::boards) {
        for panel in board.panels() {
            let names = named(text(&panel["description"]));
            let names = names.filter(|name| !alerts.contains_key(*name));
            unknown.extend(names.map(|name| format!("{}: {}: {name}", board.path, panel["title"])));
        }
    }
    nothing("alerts that panels name exist", &unknown);
}

/// Nothing is red without a critical alert, nor orange without a warning, and the panel says
/// which. The counts of alerts themselves are about all of them.
#[test]
fn red_and_orange_are_alerts() {
    let alerts = alerts();
    let mut offences = Vec::new();
    for board in FOLDERS.iter().flat_map(Folder::boards) {
        for panel in board.data_panels() {
            let about = text(&panel["description"]);
            let mut shown = Vec::new();
            colours(&panel["fieldConfig"], &mut shown);
            for (colour, severity) in [("red", "critical"), ("orange", "warning")] {
                let mut severities = named(about).filter_map(|name| alerts.get(name));
                let all = about.contains(&format!("Alerts of severity {severity}"));
                if shown.contains(&colour) && !all && !severities.any(|found| found == severity) {
                    let title = &panel["title"];
                    offences.push(format!("{}: {title}: {colour}, but no alert", board.path));
                }
            }
        }
    }
    nothing("red and orange panels name an alert of that severity", &offences);
}

/// The annotation marks what is critical.
#[test]
fn annotations_show_critical_alerts_and_xids() {
    for board in FOLDERS.iter().flat_map(Folder::boards) {
        let annotations = list(&board.json["annotations"]["list"]);
        let asks = |words: &str| annotations.iter().any(|one| text(&one["expr"]).contains(words));
        assert!(asks("severity=\"critical\"") && asks("nvml_xid_last_timestamp_seconds"));
    }
}
