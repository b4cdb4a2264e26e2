//! What prometheus-adapter does with a values file of its chart: it finds series, gives them the
//! metrics API's names, and asks Prometheus. After its documentation and version 0.12.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Prometheus;
use super::monitor::yaml;

/// The adapter with one values file.
#[derive(Debug)]
pub(crate) struct Adapter {
    custom: Vec<Rule>,
    external: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    series: String,
    /// Labels by the resource that they name.
    labels: BTreeMap<String, String>,
    matches: regex::Regex,
    name: String,
    query: String,
}

impl Rule {
    fn read(rule: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{rule}")).to_owned();
        let overrides = rule["resources"]["overrides"].as_object().unwrap();
        let labels =
            overrides.iter().map(|(label, it)| (text(&it["resource"]), label.clone())).collect();
        Self {
            series: text(&rule["seriesQuery"]),
            labels,
            matches: regex::Regex::new(&text(&rule["name"]["matches"])).unwrap(),
            name: text(&rule["name"]["as"]),
            query: text(&rule["metricsQuery"]),
        }
    }

    /// The series' name in Prometheus, if discovery finds it, with labels for all resources, and
    /// gives it this name in the API.
    fn discovers(
        &self,
        prometheus: &Prometheus,
        metric: &str,
        resources: &[&str],
    ) -> Option<String> {
        let labels: Vec<&String> =
            resources.iter().map(|resource| self.labels.get(*resource)).collect::<Option<_>>()?;
        prometheus.series(&self.series).iter().find_map(|series| {
            let name = series["__name__"].as_str().unwrap();
            let mut exposed = String::new();
            self.matches.captures(name)?.expand(&self.name, &mut exposed);
            let all = labels.iter().all(|label| series[label.as_str()].is_string());
            (exposed == metric && all).then(|| name.to_owned())
        })
    }

    /// The query for these objects of a namespace.
    fn custom(
        &self,
        series: &str,
        (resource, namespace): (&str, &str),
        objects: &[&str],
    ) -> String {
        let label = &self.labels[resource];
        let operator = if objects.len() > 1 { "=~" } else { "=" };
        let matchers = [
            format!("{}=\"{namespace}\"", self.labels["namespace"]),
            format!("{label}{operator}\"{}\"", objects.join("|")),
        ];
        self.expand(series, &matchers, label)
    }

    /// The query for what a selector finds for a namespace.
    fn external(&self, series: &str, namespace: &str, of: &BTreeMap<String, String>) -> String {
        let selected = of.iter().map(|(label, value)| format!("{label}=\"{value}\""));
        let own = format!("{}=\"{namespace}\"", self.labels["namespace"]);
        self.expand(series, &selected.chain([own]).collect::<Vec<_>>(), "")
    }

    /// The query of the template.
    fn expand(&self, series: &str, matchers: &[String], group_by: &str) -> String {
        let query = self
            .query
            .replace("<<.Series>>", series)
            .replace("<<.LabelMatchers>>", &matchers.join(","))
            .replace("<<.GroupBy>>", group_by);
        assert!(!query.contains("<<"), "{query}");
        query
    }
}

/// A value as the metrics APIs carry it, in thousandths.
#[expect(clippy::cast_possible_truncation, reason = "as the adapter does")]
pub(crate) fn milli(value: f64) -> i64 {
    (value * 1000.0) as i64
}

impl Adapter {
    pub(crate) fn read(path: &str) -> Self {
        let values = yaml(path);
        let rules = |kind: &str| -> Vec<Rule> {
            values["rules"][kind].as_array().into_iter().flatten().map(Rule::read).collect()
        };
        Self { custom: rules("custom"), external: rules("external") }
    }

    /// The metric of these objects of a namespace, in thousandths: what Prometheus answers, which
    /// for each object must be at most one sample.
    pub(crate) fn custom(
        &self,
        prometheus: &Prometheus,
        metric: &str,
        (resource, namespace): (&str, &str),
        objects: &[&str],
    ) -> BTreeMap<String, i64> {
        let found = self.custom.iter().find_map(|rule| {
            let series = rule.discovers(prometheus, metric, &["namespace", resource])?;
            Some((rule, series))
        });
        let Some((rule, series)) = found else { return BTreeMap::new() };
        let label = &rule.labels[resource];
        let query = rule.custom(&series, (resource, namespace), objects);
        let mut values = BTreeMap::new();
        for (labels, value) in prometheus.query(&query) {
            let object = labels[label.as_str()].as_str().unwrap_or_else(|| panic!("{query}"));
            let before = values.insert(object.to_owned(), milli(value));
            assert_eq!(before, None, "{object} has two values: {query}");
        }
        values
    }

    /// The values of an external metric that a selector finds for a namespace, in thousandths.
    pub(crate) fn external(
        &self,
        prometheus: &Prometheus,
        metric: &str,
        namespace: &str,
        selector: &BTreeMap<String, String>,
    ) -> Vec<i64> {
        let found = self
            .external
            .iter()
            .find_map(|rule| Some((rule, rule.discovers(prometheus, metric, &["namespace"])?)));
        let Some((rule, series)) = found else { return Vec::new() };
        let query = rule.external(&series, namespace, selector);
        prometheus.query(&query).into_iter().map(|(_, value)| milli(value)).collect()
    }
}

/// What version 0.12.0's own code (`pkg/naming`) made of the values file: its queries for one and for
/// two objects, and for a selector.
#[test]
fn queries_are_those_of_the_adapter_itself() {
    let adapter = Adapter::read("deploy/hpa/prometheus-adapter-values.yaml");
    let mut found = Vec::new();
    let series = |rule: &Rule| rule.series.split('{').next().unwrap().to_owned();
    for rule in &adapter.custom {
        let resource = if rule.labels.contains_key("pod") { "pod" } else { "deployment" };
        for objects in [&["a"][..], &["a", "b"]] {
            found.push(rule.custom(&series(rule), (resource, "ml"), objects));
        }
    }
    let selector = [("workload", "llm"), ("workload_kind", "Deployment")];
    let selector = selector.map(|(label, value)| (label.to_owned(), value.to_owned())).into();
    for rule in &adapter.external {
        found.push(rule.external(&series(rule), "ml", &selector));
    }
    let expected = [
        r#"max by (pod) (avg_over_time(namespace_pod:dcgm_gpu_utilization:avg{namespace="ml",pod="a"}[2m]))"#,
        r#"max by (pod) (avg_over_time(namespace_pod:dcgm_gpu_utilization:avg{namespace="ml",pod=~"a|b"}[2m]))"#,
        r#"max by (pod) (avg_over_time(namespace_pod:dcgm_fb_used:ratio{namespace="ml",pod="a"}[2m]))"#,
        r#"max by (pod) (avg_over_time(namespace_pod:dcgm_fb_used:ratio{namespace="ml",pod=~"a|b"}[2m]))"#,
        r#"max by (workload) (avg_over_time(namespace_workload:dcgm_gpu_utilization:avg{namespace="ml",workload="a",workload_kind="Deployment"}[2m]))"#,
        r#"max by (workload) (avg_over_time(namespace_workload:dcgm_gpu_utilization:avg{namespace="ml",workload=~"a|b",workload_kind="Deployment"}[2m]))"#,
        r#"max(avg_over_time(namespace_workload:dcgm_gpu_utilization:avg{workload="llm",workload_kind="Deployment",namespace="ml"}[2m]))"#,
        r#"sum(avg_over_time(vllm:num_requests_waiting{workload="llm",workload_kind="Deployment",namespace="ml"}[1m]))"#,
    ];
    assert_eq!(found, expected);
}
