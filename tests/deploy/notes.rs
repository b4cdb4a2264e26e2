//! What Helm tells whoever has installed the chart, and what the chart's values say of themselves.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{CHART, root, said, template_with};

fn notes(values: &str) -> String {
    let output = template_with("install", CHART, values, &["--dry-run=client"]);
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_once("NOTES:\n").unwrap().1.to_owned()
}

#[test]
fn notes_say_what_was_installed_and_what_may_be_missing() {
    let defaults = notes("{}");
    for text in [
        "nvml-exporter 0.1.0 is installed as DaemonSet nvml-exporter in namespace monitoring",
        "exec daemonset/nvml-exporter -- nvml-exporter check",
        "--set gpuNodesOnly=false",
        "kubectl label namespace monitoring pod-security.kubernetes.io/enforce=privileged",
        "--set runtimeClassName=nvidia",
        "Nothing tells Prometheus to scrape it",
    ] {
        assert!(defaults.contains(text), "no {text:?} in\n{defaults}");
    }
    assert!(!defaults.contains("virtualGpus"), "{defaults}");
}

#[test]
fn notes_leave_out_what_does_not_matter() {
    let notes = notes(
        "{kubernetes: {enabled: false}, gpuNodesOnly: false, runtimeClassName: nvidia, \
         podMonitor: {enabled: true}, service: {enabled: false}}",
    );
    for text in ["privileged", "--set", "Nothing tells", "port-forward"] {
        assert!(!notes.contains(text), "{text:?} in\n{notes}");
    }
}

#[test]
fn notes_warn_of_halves() {
    let shared = notes("kubernetes: {virtualGpus: true, rbac: {create: false}}");
    assert!(shared.contains("kubernetes.virtualGpus without hostPID"), "{shared}");
    let usage = notes("usageBy: [pod]");
    assert!(usage.contains("usageBy without hostPID"), "{usage}");
    assert!(!notes("usageBy: [none]").contains("usageBy without"));
    assert!(shared.contains("bind nvml-exporter to roles of your own"), "{shared}");
}

/// Names of the values that a schema takes, those within values as `a.b`.
fn accepted(schema: &Value, path: &str, names: &mut BTreeSet<String>) {
    for (name, value) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}{name}");
        accepted(value, &format!("{path}."), names);
        names.insert(path);
    }
}

/// Whether a dotted name leads somewhere.
fn leads(values: &Value, name: &str) -> bool {
    let found = name.split('.').try_fold(values, |values, part| values.get(part));
    found.is_some()
}

/// Helm holds the defaults to the schema; this is the other way round.
#[test]
fn every_value_that_is_taken_is_shown_with_its_default() {
    let read = |name: &str| std::fs::read_to_string(root().join(CHART).join(name)).unwrap();
    let schema: Value = serde_json::from_str(&read("values.schema.json")).unwrap();
    let values: Value = serde_saphyr::from_str(&read("values.yaml")).unwrap();
    let mut names = BTreeSet::new();
    accepted(&schema, "", &mut names);
    assert!(names.contains("kubernetes.podLabels.allowlistRegex"), "{names:?}");
    let hidden: Vec<&String> = names.iter().filter(|name| !leads(&values, name)).collect();
    assert!(hidden.is_empty(), "not in values.yaml: {hidden:?}");
}

/// Values that documents name, as `--set NAME=` or in backquotes, are those of the chart.
#[test]
fn values_that_documents_name_exist() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    let values: Value = serde_saphyr::from_str(&read(&format!("{CHART}/values.yaml"))).unwrap();
    let mut texts = vec![read(&format!("{CHART}/templates/NOTES.txt"))];
    texts.push(read("deploy/README.md"));
    let mut named = 0;
    for text in &texts {
        for rest in text.split("--set ").skip(1) {
            let name = rest.split('=').next().unwrap();
            assert!(leads(&values, name), "--set {name}");
            named += 1;
        }
    }
    // The second column of the table of names is this chart's.
    let table = texts[1].split("## From dcgm-exporter's chart").nth(1).unwrap();
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let here = row.split('|').nth(2).unwrap();
        for name in here.split('`').skip(1).step_by(2) {
            assert!(leads(&values, name), "{row}: there is no {name}");
            named += 1;
        }
    }
    assert!(named > 20, "{named}");
}

#[test]
fn links_of_the_guide_lead_somewhere() {
    let text = std::fs::read_to_string(root().join("deploy/README.md")).unwrap();
    let links: Vec<&str> =
        text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert!(!links.is_empty());
    for link in links.into_iter().filter(|link| !link.contains("://")) {
        assert!(root().join("deploy").join(link).exists(), "{link}");
    }
}
