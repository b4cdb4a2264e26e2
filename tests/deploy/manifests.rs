//! The manifests in the tree are what the chart renders to, and kustomize makes of them what the
//! chart makes of values.

#[path = "../../xtask/src/deploy/manifests.rs"]
pub(crate) mod made;

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::support::{CHART, objects, of_kind, only, root, said, template, tool};

#[test]
fn manifests_are_current() {
    for (path, text) in made::all(root(), &tool("helm")).unwrap() {
        let committed = std::fs::read_to_string(root().join(path)).unwrap_or_default();
        assert!(
            committed == text,
            "{path} is not what the chart renders to: run cargo xtask deploy"
        );
    }
}

#[test]
fn the_chart_has_the_alerts_and_dashboards_of_the_project() {
    for copied in &made::COPIED {
        let copies = format!("{}/files/{}", made::CHART, copied.to);
        let wanted = copied.wanted(root()).unwrap();
        let found = made::sources(root(), &copies, copied.extension).unwrap();
        assert!(wanted == found, "{copies} is not as {}: run cargo xtask deploy", copied.from);
    }
}

/// The values of the thresholds are those of the rules.
#[test]
fn the_chart_has_the_thresholds_of_the_rules() {
    let read = |path: &str| -> Value {
        let text = std::fs::read_to_string(root().join(path)).unwrap();
        serde_saphyr::from_str(&text).unwrap()
    };
    let thresholds = |values: Value| values["prometheusRule"]["thresholds"].clone();
    let (chart, rules) = (read(&format!("{CHART}/values.yaml")), read("alerts/helm/values.yaml"));
    assert_eq!(thresholds(chart), thresholds(rules));
}

#[test]
fn manifests_are_right_in_every_version_of_kubernetes() {
    for (path, _) in made::all(root(), &tool("helm")).unwrap() {
        let text = std::fs::read_to_string(root().join(path)).unwrap();
        assert!(!objects(&text).is_empty(), "{path}");
        assert!(!text.contains("Helm\n"), "{path} says that Helm manages it");
    }
}

/// hostPath is refused at `baseline` already.
#[test]
fn the_namespace_lets_the_pods_in() {
    let path = "deploy/manifests/nvml-exporter.yaml";
    let all = objects(&std::fs::read_to_string(root().join(path)).unwrap());
    let labels = &only(&all, "Namespace")["metadata"]["labels"];
    assert_eq!(labels["pod-security.kubernetes.io/enforce"], "privileged");
}

fn kustomized(folder: &str) -> Vec<Value> {
    let output =
        Command::new(tool("kubectl")).args(["kustomize", folder]).current_dir(root()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{folder}: {}", said(&output));
    objects(&String::from_utf8(output.stdout).unwrap())
}

/// Objects by kind, without what only Helm or only kustomize adds.
fn comparable(objects: &[Value]) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for object in objects.iter().filter(|object| object["kind"] != "Namespace") {
        let mut object = object.clone();
        let labels = object["metadata"]["labels"].as_object_mut().unwrap();
        for name in ["helm.sh/chart", "app.kubernetes.io/managed-by"] {
            labels.remove(name);
        }
        let path = "/spec/template/spec/containers/0/env";
        if let Some(Value::Array(env)) = object.pointer_mut(path) {
            env.sort_by_key(|variable| variable["name"].to_string());
        }
        let before = found.insert(object["kind"].as_str().unwrap().to_owned(), object);
        assert_eq!(before, None);
    }
    found
}

#[test]
fn kustomize_and_helm_agree() {
    let values = "fullnameOverride: nvml-exporter\nserviceMonitor: {enabled: false}";
    for (folder, values) in [
        ("deploy/kustomize/base", format!("{values}\nnamespaceOverride: nvml-exporter")),
        (
            "deploy/kustomize/example",
            "{namespaceOverride: gpu-monitoring, kubernetes: {podLabels: {enabled: true}}, \
             image: {repository: registry.example/nvml-exporter}, \
             serviceMonitor: {enabled: true, additionalLabels: {release: prometheus}}}"
                .to_owned(),
        ),
    ] {
        let output = template(CHART, &values, &[]);
        assert!(output.status.success(), "{}", said(&output));
        let mut helms = comparable(&objects(&String::from_utf8(output.stdout).unwrap()));
        // Kustomize does not rename what is cluster-wide: its name has the base's namespace.
        for object in helms.values_mut() {
            let text = object.to_string().replace("gpu-monitoring:nvml", "nvml-exporter:nvml");
            *object = serde_json::from_str(&text).unwrap();
        }
        let all = kustomized(folder);
        assert_eq!(of_kind(&all, "Namespace").len(), 1, "{folder}");
        let kustomizes = comparable(&all);
        assert_eq!(
            kustomizes.keys().collect::<Vec<_>>(),
            helms.keys().collect::<Vec<_>>(),
            "{folder}"
        );
        for (kind, object) in &kustomizes {
            assert_eq!(object, &helms[kind], "{folder}: {kind}");
        }
    }
}
