//! The arithmetic of Kubernetes' horizontal pod autoscaler, on an object's own YAML. All quantities
//! are in thousandths.

use std::collections::BTreeMap;

use serde_json::Value;

use super::monitor::yaml;

/// `--horizontal-pod-autoscaler-tolerance`.
const TOLERANCE: f64 = 0.1;

/// A `HorizontalPodAutoscaler`.
#[derive(Debug)]
pub(crate) struct Hpa(Value);

impl Hpa {
    pub(crate) fn read(path: &str) -> Self {
        Self(yaml(path))
    }

    pub(crate) fn namespace(&self) -> &str {
        self.0["metadata"]["namespace"].as_str().unwrap()
    }

    /// The Deployment that it scales.
    pub(crate) fn deployment(&self) -> &str {
        let target = &self.0["spec"]["scaleTargetRef"];
        assert_eq!(
            (&target["apiVersion"], &target["kind"]),
            (&"apps/v1".into(), &"Deployment".into())
        );
        target["name"].as_str().unwrap()
    }

    /// The metric of a type: `Pods`, `Object`, `External`.
    pub(crate) fn metric(&self, kind: &str) -> Metric<'_> {
        let all = self.0["spec"]["metrics"].as_array().unwrap();
        let metric = all.iter().find(|metric| metric["type"] == kind).unwrap();
        Metric(&metric[kind.to_lowercase()])
    }

    /// The number of replicas that these proposals of its metrics lead to: the largest, within its
    /// bounds.
    pub(crate) fn decides(&self, proposals: &[i64]) -> i64 {
        let bound = |name: &str| self.0["spec"][name].as_i64().unwrap();
        let largest = proposals.iter().copied().max().unwrap();
        largest.clamp(bound("minReplicas"), bound("maxReplicas"))
    }
}

/// One of its metrics.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Metric<'a>(&'a Value);

impl<'a> Metric<'a> {
    pub(crate) fn name(self) -> &'a str {
        self.0["metric"]["name"].as_str().unwrap()
    }

    /// The object that it is of.
    pub(crate) fn object(self) -> &'a str {
        self.0["describedObject"]["name"].as_str().unwrap()
    }

    pub(crate) fn selector(self) -> BTreeMap<String, String> {
        let labels = self.0["metric"]["selector"]["matchLabels"].as_object().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        labels.iter().map(|(label, value)| (label.clone(), text(value))).collect()
    }

    /// Its target, which must be of this type.
    pub(crate) fn target(self, kind: &str) -> i64 {
        let target = &self.0["target"];
        assert_eq!(target["type"], kind);
        let field = if kind == "Value" { "value" } else { "averageValue" };
        target[field].as_str().unwrap().parse::<i64>().unwrap() * 1000
    }
}

fn near(ratio: f64) -> bool {
    (1.0 - ratio).abs() <= TOLERANCE
}

#[expect(clippy::cast_possible_truncation, reason = "replicas are few")]
fn ceil(replicas: f64) -> i64 {
    replicas.ceil() as i64
}

/// Replicas by a `Pods` metric, of pods that are all ready. Pods without a value hold the number:
/// they count as 0 when the others ask for more and as the target when they ask for less.
pub(crate) fn by_pods(target: i64, values: &BTreeMap<String, i64>, pods: &[&str]) -> Option<i64> {
    let current = i64::try_from(pods.len()).unwrap();
    let present: Vec<i64> = pods.iter().filter_map(|pod| values.get(*pod).copied()).collect();
    if present.is_empty() {
        return None;
    }
    let ratio = |values: &[i64]| {
        let mean = values.iter().sum::<i64>() / i64::try_from(values.len()).unwrap();
        mean as f64 / target as f64
    };
    let first = ratio(&present);
    if present.len() == pods.len() {
        return Some(if near(first) { current } else { ceil(first * current as f64) });
    }
    let assumed = if first < 1.0 { target } else { 0 };
    let all: Vec<i64> =
        pods.iter().map(|pod| values.get(*pod).copied().unwrap_or(assumed)).collect();
    let second = ratio(&all);
    let turned = (first < 1.0 && second > 1.0) || (first > 1.0 && second < 1.0);
    Some(if near(second) || turned { current } else { ceil(second * current as f64) })
}

/// Replicas by one number with a target of type `Value`.
pub(crate) fn by_value(target: i64, value: i64, ready: i64) -> i64 {
    let ratio = value as f64 / target as f64;
    if near(ratio) { ready } else { ceil(ratio * ready as f64) }
}

/// Replicas by one number with a target of type `AverageValue`.
pub(crate) fn by_average(target: i64, value: i64, current: i64) -> i64 {
    let ratio = value as f64 / (target as f64 * current as f64);
    if near(ratio) { current } else { ceil(value as f64 / target as f64) }
}
