//! Files that objects carry: counters, dashboards, rules.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::manifests::made::sources;
use crate::matrix::the;
use crate::support::{CHART, items, objects, of_kind, only, root, said, template, text};

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, to).unwrap();
        }
    }
}

/// The chart with these files alone below `files/`.
fn chart_with(files: &[(&str, &str)]) -> TempDir {
    let chart = TempDir::new().unwrap();
    copy(&root().join(CHART), chart.path());
    let place = chart.path().join("files");
    for folder in ["alerts", "dashboards"] {
        let _ = fs::remove_dir_all(place.join(folder));
    }
    for (path, text) in files {
        let path = place.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    chart
}

fn rendered(chart: &TempDir, values: &str) -> Vec<Value> {
    let output = template(chart.path().to_str().unwrap(), values, &[]);
    assert!(output.status.success(), "{}", said(&output));
    objects(&String::from_utf8(output.stdout).unwrap())
}

const BOTH: &str =
    "{prometheusRule: {enabled: true, namespace: rules, additionalLabels: {role: r}},
dashboards: {enabled: true, namespace: grafana, annotations: {folder: GPU}}}";

#[test]
fn custom_metrics_are_the_text_of_the_values() {
    let map = only(&the("custom metrics").objects, "ConfigMap");
    let rows = "# one row\nDCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (in C).";
    assert_eq!(text(&map["data"]["metrics.csv"]).trim_end(), rows);
}

#[test]
fn without_rules_and_dashboards_there_is_nothing() {
    let objects = rendered(&chart_with(&[]), BOTH);
    assert!(of_kind(&objects, "PrometheusRule").is_empty());
    assert!(of_kind(&objects, "ConfigMap").is_empty());
}

const TEMPLATED: &str = r#"groups:
  - name: a
    rules:
      - alert: Hot
        expr: |
          max by (gpu) (DCGM_FI_DEV_GPU_TEMP) > 90
        for: 5m
        labels: {severity: warning}
        annotations:
          summary: '{{ "{{" }} $labels.gpu {{ "}}" }} is {{ "{{" }} $value | humanize {{ "}}" }} °C'
"#;

#[test]
fn rules_are_one_object_and_keep_their_templates() {
    let more = "groups:\n  - {name: b, rules: [{record: 'x:y', expr: vector(1)}]}\n";
    let chart = chart_with(&[("alerts/1.yml", TEMPLATED), ("alerts/2.yml", more)]);
    let objects = rendered(&chart, BOTH);
    let rule = only(&objects, "PrometheusRule");
    assert_eq!(rule["metadata"]["namespace"], "rules");
    assert_eq!(rule["metadata"]["labels"]["role"], "r");
    let groups = json!([
        {"name": "a", "rules": [{
            "alert": "Hot", "expr": "max by (gpu) (DCGM_FI_DEV_GPU_TEMP) > 90\n", "for": "5m",
            "labels": {"severity": "warning"},
            "annotations": {"summary": "{{ $labels.gpu }} is {{ $value | humanize }} °C"},
        }]},
        {"name": "b", "rules": [{"record": "x:y", "expr": "vector(1)"}]},
    ]);
    assert_eq!(rule["spec"]["groups"], groups);
    assert!(of_kind(&rendered_with_defaults(&chart), "PrometheusRule").is_empty());
}

fn rendered_with_defaults(chart: &TempDir) -> Vec<Value> {
    rendered(chart, "{}")
}

/// The project's own rules, if it has any, reach Prometheus as they are written.
#[test]
fn the_rules_of_the_project_are_rendered_unchanged() {
    for (folder, names) in [("alerts", "legacy"), ("alerts/dcgm47", "dcgm47")] {
        let mut groups = BTreeMap::new();
        for (_, text) in sources(root(), folder, "yml").unwrap() {
            let file: Value = serde_saphyr::from_str(&text).unwrap();
            groups.extend(by_name(items(&file["groups"])));
        }
        let rules = project_rules(names, "{}");
        assert_eq!(by_name(items(&rules["spec"]["groups"])), groups, "{names}");
        assert!(groups.len() > 5, "{names}");
    }
}

fn by_name<'a>(groups: impl Iterator<Item = &'a Value>) -> BTreeMap<String, Value> {
    groups.map(|group| (text(&group["name"]).to_owned(), group.clone())).collect()
}

fn project_rules(names: &str, thresholds: &str) -> Value {
    let values = format!(
        "{{metricNames: {names}, prometheusRule: {{enabled: true, classic: true, thresholds: {thresholds}}}}}"
    );
    let output = template(CHART, &values, &[]);
    assert!(output.status.success(), "{}", said(&output));
    only(&objects(&String::from_utf8(output.stdout).unwrap()), "PrometheusRule").clone()
}

#[test]
fn the_classic_rules_are_there_on_request_alone() {
    let output = template(CHART, BOTH, &[]);
    let objects = objects(&String::from_utf8(output.stdout).unwrap());
    let rules = only(&objects, "PrometheusRule").to_string();
    assert!(rules.contains("\"GpuXidFatal\"") && !rules.contains("\"GPUXidErrors\""));
    assert!(project_rules("legacy", "{}").to_string().contains("\"GPUXidErrors\""));
}

#[test]
fn thresholds_are_values() {
    let rules = project_rules("legacy", "{thermalMarginCelsius: 11, job: nvml-.*, idleFor: 7h}");
    let written = rules.to_string();
    assert!(written.contains("up{job=~\\\"nvml-.*\\\"}"), "{written}");
    assert!(written.contains("\"for\":\"7h\""), "{written}");
    assert!(written.contains("- 11"), "{written}");
}

#[test]
fn dashboards_are_found_by_grafanas_sidecar_and_keep_their_templates() {
    let board = "{\"title\": \"GPUs\",\n \"legend\": \"{{gpu}} `x` $datasource\"}\n";
    let chart = chart_with(&[("dashboards/GPU_fleet.json", board), ("dashboards/node.json", "{}")]);
    let objects = rendered(&chart, BOTH);
    let maps = of_kind(&objects, "ConfigMap");
    let names: Vec<&str> = maps.iter().map(|map| text(&map["metadata"]["name"])).collect();
    assert_eq!(names, ["nvml-exporter-gpu-fleet", "nvml-exporter-node"]);
    for map in &maps {
        assert_eq!(map["metadata"]["namespace"], "grafana");
        assert_eq!(map["metadata"]["labels"]["grafana_dashboard"], "1");
        assert_eq!(map["metadata"]["annotations"]["folder"], "GPU");
    }
    assert_eq!(text(&maps[0]["data"]["GPU_fleet.json"]).trim_end(), board.trim_end());
    assert!(of_kind(&rendered_with_defaults(&chart), "ConfigMap").is_empty());
}

#[test]
fn a_file_of_rules_that_is_no_yaml_is_refused() {
    let chart = chart_with(&[("alerts/1.yml", "groups: [")]);
    let output = template(chart.path().to_str().unwrap(), BOTH, &[]);
    assert!(!output.status.success());
    assert!(said(&output).contains("files/alerts/1.yml"), "{}", said(&output));
}
