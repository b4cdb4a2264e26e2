//! `docs/prometheus-labels.md`: its configurations in a real Prometheus, compared with its table.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::kubelet::{Kubelet, pod};
use crate::support::monitor::{NAMESPACE, Overrides, Target, config, job, text};
use crate::support::pods::{GPU, TEMP, beside_a_kubelet, until_pods, uuids};
use crate::support::{Prometheus, until};

const PAGE: &str = "docs/prometheus-labels.md";

/// The endpoints in the page's YAML, by the name in their first line.
fn endpoints(page: &str) -> BTreeMap<String, Value> {
    page.split("```yaml\n# ")
        .skip(1)
        .map(|block| {
            let block = block.split("```").next().unwrap();
            let (name, yaml) = block.split_once('\n').unwrap();
            (name.to_owned(), serde_saphyr::from_str(yaml).unwrap())
        })
        .collect()
}

/// The rows of the page's first table: a name and what it says.
fn table(page: &str) -> Vec<(String, [String; 3])> {
    page.lines()
        .skip_while(|line| !line.starts_with("| Configuration |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<String> =
                line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
            let [name, held, idle, own] = <[String; 4]>::try_from(cells).unwrap();
            (name, [held, idle, own])
        })
        .collect()
}

/// The endpoint of a row, and what the `Prometheus` object lays over it.
fn scraped(name: &str, endpoints: &BTreeMap<String, Value>) -> (Value, Overrides) {
    if let Some(endpoint) = endpoints.get(name) {
        return (endpoint.clone(), Overrides::default());
    }
    let (endpoint, over) = name.split_once(", ").unwrap();
    let over = match over {
        "overridden" => Overrides { honor_labels: true, namespace: false },
        "namespace enforced" => Overrides { honor_labels: false, namespace: true },
        other => panic!("{other}"),
    };
    (endpoints[endpoint].clone(), over)
}

/// A series' labels as the table writes them.
fn said(labels: &Value) -> String {
    let pair = |namespace: &str, pod: &str| {
        let label = |name: &str| labels[name].as_str();
        (label(namespace).is_some() || label(pod).is_some()).then(|| {
            let part = |name: &str| label(name).unwrap_or_default();
            format!("`{}/{}`", part(namespace), part(pod))
        })
    };
    let exported =
        pair("exported_namespace", "exported_pod").map(|pair| format!("exported {pair}"));
    let all: Vec<String> = pair("namespace", "pod").into_iter().chain(exported).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

#[test]
fn the_page_says_what_prometheus_shows() {
    let (setup, path) = beside_a_kubelet("t4-l4-mixed");
    let kubelet = Kubelet::start(&path);
    let exporter = setup.ready();
    let uuid = uuids(&exporter.scrape())[0].clone();
    kubelet.lists(vec![pod("llm", &[(GPU, &uuid)])]);
    until_pods(&exporter, "0", &["llm"]);

    let page = text(PAGE);
    let (endpoints, rows) = (endpoints(&page), table(&page));
    assert_eq!((endpoints.len(), rows.len()), (5, 8));
    let target = Target { address: exporter.address, pod: "exporter", node: "node-a" };
    let jobs: Vec<Value> = rows
        .iter()
        .map(|(name, _)| {
            let (endpoint, over) = scraped(name, &endpoints);
            let mut job = job(name, &endpoint, over, std::slice::from_ref(&target));
            assert_eq!(job["static_configs"][0]["labels"]["namespace"], json!(NAMESPACE));
            job["scrape_interval"] = json!("2s");
            job
        })
        .collect();
    let rules = text("alerts/gpu-recording-rules.yml").replace("interval: 15s", "interval: 1s");
    let prometheus =
        Prometheus::configured(&config(&jobs, &["rules.yml"]), &[("rules.yml", &rules)]);
    until(
        "every job",
        || (prometheus.query("min by (job) (min_over_time(up[1h])) == 1").len() == 8).then_some(()),
        || format!("{:?}\n{}", prometheus.targets(), prometheus.log()),
    );
    for (name, expected) in &rows {
        let found = [
            format!("{TEMP}{{job=\"{name}\",gpu=\"0\"}}"),
            format!("{TEMP}{{job=\"{name}\",gpu=\"1\"}}"),
            format!("nvml_exporter_build_info{{job=\"{name}\"}}"),
        ]
        .map(|query| {
            let series = prometheus.query(&query);
            assert_eq!(series.len(), 1, "{query}: {series:?}");
            said(&series[0].0)
        });
        assert_eq!(&found, expected, "{name}");
    } // What the rules make of all of them: one pod, and the one that enforcing falsifies.
    until(
        "recorded series",
        || {
            let held = prometheus.query("namespace_pod_uuid:gpu_held:group");
            let pods: Vec<String> = held.iter().map(|(labels, _)| said(labels)).collect();
            let falsified = format!("`{NAMESPACE}/llm`");
            (pods.len() == 2 && pods.contains(&falsified) && pods.contains(&"`ml/llm`".to_owned()))
                .then_some(())
        },
        || format!("{:?}", prometheus.query("namespace_pod_uuid:gpu_held:group")),
    );
}
