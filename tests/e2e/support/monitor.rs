//! Scrape jobs as prometheus-operator writes them of a `ServiceMonitor`: its endpoint's settings, and
//! the labels of the exporter's pod as target labels.

use std::net::SocketAddr;

use serde_json::{Map, Value, json};

/// Where prometheus-operator's labels say the exporter runs.
pub(crate) const NAMESPACE: &str = "gpu-monitoring";

/// An exporter's pod.
#[derive(Debug, Clone)]
pub(crate) struct Target<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) pod: &'a str,
    pub(crate) node: &'a str,
}

/// What a `Prometheus` object lays over all monitors.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Overrides {
    /// `overrideHonorLabels`.
    pub(crate) honor_labels: bool,
    /// `enforcedNamespaceLabel: namespace`.
    pub(crate) namespace: bool,
}

/// A file of the tree as YAML's data.
pub(crate) fn yaml(path: &str) -> Value {
    let text = text(path);
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A file of the tree.
pub(crate) fn text(path: &str) -> String {
    let full = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(full).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// `sourceLabels` as Prometheus writes it, `source_labels`.
fn snake(name: &str) -> String {
    name.chars()
        .flat_map(|c| {
            c.is_ascii_uppercase().then_some('_').into_iter().chain([c.to_ascii_lowercase()])
        })
        .collect()
}

fn relabelings(endpoint: &Value, name: &str) -> Vec<Value> {
    let rules = endpoint[name].as_array().into_iter().flatten();
    rules
        .map(|rule| {
            let fields = rule.as_object().unwrap().iter();
            fields.map(|(name, value)| (snake(name), value.clone())).collect::<Map<_, _>>().into()
        })
        .collect()
}

/// The scrape job of an endpoint of a monitor.
pub(crate) fn job(name: &str, endpoint: &Value, over: Overrides, targets: &[Target<'_>]) -> Value {
    let honor = endpoint["honorLabels"].as_bool().unwrap_or(false) && !over.honor_labels;
    let (mut before, mut after) =
        (relabelings(endpoint, "relabelings"), relabelings(endpoint, "metricRelabelings"));
    if over.namespace {
        let stamp = json!({"target_label": "namespace", "replacement": NAMESPACE});
        before.push(stamp.clone());
        after.push(stamp);
    }
    let targets: Vec<Value> = targets
        .iter()
        .map(|target| {
            json!({"targets": [target.address.to_string()], "labels": {
                "namespace": NAMESPACE,
                "pod": target.pod,
                "container": "nvidia-dcgm-exporter",
                "service": "nvidia-dcgm-exporter",
                "endpoint": endpoint["port"],
                "__meta_kubernetes_pod_node_name": target.node,
            }})
        })
        .collect();
    json!({
        "job_name": name,
        "honor_labels": honor,
        "metrics_path": endpoint["path"].as_str().unwrap_or("/metrics"),
        "static_configs": targets,
        "relabel_configs": before,
        "metric_relabel_configs": after,
    })
}

/// A configuration with these jobs, which scrapes and evaluates fast.
pub(crate) fn config(jobs: &[Value], rules: &[&str]) -> String {
    json!({
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": rules,
        "scrape_configs": jobs,
    })
    .to_string()
}
