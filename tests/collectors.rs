//! The configurations for other collectors ask for the same as each other, and for what the
//! manifests make. The collectors themselves are not needed.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test ends where it fails")]

use std::fs;
use std::process::Command;

use regex::Regex;
use serde_json::{Map, Value, json};

const FOLDER: &str = "deploy/collectors";
/// What comes after a collector's name, for hosts and for Kubernetes.
const PLACES: [&str; 2] = ["", "-kubernetes"];

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&text(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The only scrape job of a list.
fn only(jobs: &Value) -> &Value {
    assert_eq!(jobs.as_array().map(Vec::len), Some(1), "{jobs}");
    &jobs[0]
}

/// The Collector's job, which the others are compared with, and how it sends.
fn collector(place: &str) -> (Value, Value) {
    let file = yaml(&format!("{FOLDER}/otel-collector{place}.yaml"));
    let job = only(&file["receivers"]["prometheus"]["config"]["scrape_configs"]);
    (job.clone(), file["exporters"]["prometheusremotewrite"].clone())
}

/// Alloy's syntax as far as the files use it, with a statement a line: a block is a list of
/// objects under its name, a reference its text.
fn alloy(lines: &mut dyn Iterator<Item = &str>) -> Value {
    let mut body = Map::new();
    while let Some(line) = lines.next().map(str::trim) {
        if line == "}" {
            return body.into();
        }
        if line.is_empty() || line.starts_with("//") {
            continue;
        }
        if let Some(name) = line.strip_suffix(" {") {
            let inner = alloy(lines);
            body.entry(name).or_insert_with(|| json!([])).as_array_mut().unwrap().push(inner);
        } else {
            let (name, value) = line.split_once('=').unwrap_or_else(|| panic!("{line}"));
            let plain = serde_json::from_str(&value.replace("\" = ", "\": "));
            body.insert(name.trim().into(), plain.unwrap_or_else(|_| value.trim().into()));
        }
    }
    body.into()
}

/// Alloy's job as the others write it, and where it sends to.
fn alloy_job(place: &str) -> (Value, Value) {
    let text = text(&format!("{FOLDER}/alloy{place}.alloy"));
    let all = alloy(&mut text.lines());
    let block = |name: &str| only(&all[name]).clone();
    let mut job = block("prometheus.scrape \"nvml_exporter\"");
    let fields = job.as_object_mut().unwrap();
    assert_eq!(fields.remove("forward_to").unwrap(), "[prometheus.remote_write.metrics.receiver]");
    let targets = fields.remove("targets").unwrap();
    if let Some(address) = targets[0].get("__address__") {
        fields.insert("static_configs".into(), json!([{"targets": [address]}]));
    } else {
        let relabel = block("discovery.relabel \"nvml_exporter\"");
        assert_eq!(targets, "discovery.relabel.nvml_exporter.output");
        assert_eq!(relabel["targets"], "discovery.kubernetes.nvml_exporter.targets");
        let mut discovery = block("discovery.kubernetes \"nvml_exporter\"");
        discovery["namespaces"] = only(&discovery["namespaces"]).clone();
        fields.insert("kubernetes_sd_configs".into(), json!([discovery]));
        fields.insert("relabel_configs".into(), relabel["rule"].clone());
    }
    let write = block("prometheus.remote_write \"metrics\"");
    (job, only(&write["endpoint"])["url"].clone())
}

#[test]
fn all_collectors_ask_alike_and_send_alike() {
    for place in PLACES {
        let (job, send) = collector(place);
        let agent = yaml(&format!("{FOLDER}/vmagent{place}.yaml"));
        assert_eq!(only(&agent["scrape_configs"]), &job, "vmagent{place}");
        assert_eq!(alloy_job(place), (job, send["endpoint"].clone()), "alloy{place}");
    }
}

#[test]
fn labels_and_names_stay_and_alerts_find_the_job() {
    let alerts = yaml("alerts/src/thresholds.yml")["job"].as_str().unwrap().to_owned();
    let alerts = Regex::new(&format!("^(?:{alerts})$")).unwrap();
    for (job, send) in PLACES.map(collector) {
        assert_eq!(job["honor_labels"], true);
        assert!(alerts.is_match(job["job_name"].as_str().unwrap()), "{job}");
        // Else DCGM's counters would end in `_total`.
        assert_eq!(send["add_metric_suffixes"], false);
    }
}

#[test]
fn hosts_are_scraped_where_and_as_often_as_the_exporter_serves() {
    let output = Command::new(env!("CARGO_BIN_EXE_nvml-exporter")).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let default = |flag: &str| {
        let (_, rest) = help.split_once(flag).unwrap().1.split_once("[default: ").unwrap();
        rest.split_once(']').unwrap().0
    };
    let (job, _) = collector("");
    let target = job["static_configs"][0]["targets"][0].as_str().unwrap();
    assert!(target.ends_with(default("--address")), "{target}");
    let seconds = job["scrape_interval"].as_str().unwrap().strip_suffix('s').unwrap();
    assert_eq!(format!("{seconds}000"), default("--collect-interval"));
}

fn daemon_set() -> Value {
    let manifests = text("deploy/manifests/nvml-exporter.yaml");
    let mut objects = manifests.split("\n---\n").map(|one| serde_saphyr::from_str(one).unwrap());
    objects.find(|one: &Value| one["kind"] == "DaemonSet").unwrap()
}

#[test]
fn googles_managed_prometheus_finds_them_too() {
    let monitoring = yaml("deploy/gke/podmonitoring.yaml");
    let pod = &daemon_set()["spec"]["template"];
    for (name, value) in monitoring["spec"]["selector"]["matchLabels"].as_object().unwrap() {
        assert_eq!(&pod["metadata"]["labels"][name], value, "{name}");
    }
    let endpoint = only(&monitoring["spec"]["endpoints"]);
    assert_eq!(endpoint["port"], pod["spec"]["containers"][0]["ports"][0]["name"]);
}

#[test]
fn pods_are_found_as_the_manifests_make_them() {
    let set = daemon_set();
    let (pod, (job, _)) = (&set["spec"]["template"], collector("-kubernetes"));
    let container = &pod["spec"]["containers"][0];
    let discovery = only(&job["kubernetes_sd_configs"]);
    assert_eq!(discovery["namespaces"]["names"], json!([set["metadata"]["namespace"]]));
    let label = only(&discovery["selectors"])["label"].as_str().unwrap();
    let (name, value) = label.split_once('=').unwrap();
    assert_eq!(pod["metadata"]["labels"][name], value, "{label}");
    let kept = &job["relabel_configs"][0];
    assert_eq!(kept["action"], "keep");
    assert_eq!(kept["source_labels"], json!(["__meta_kubernetes_pod_container_port_name"]));
    assert_eq!(kept["regex"], container["ports"][0]["name"]);
    let variables = container["env"].as_array().unwrap();
    let interval = variables.iter().find(|one| one["name"] == "DCGM_EXPORTER_INTERVAL").unwrap();
    assert_eq!(job["scrape_interval"], interval["value"]);
}

#[test]
fn the_page_names_every_file() {
    let page = text("docs/collectors.md");
    let names =
        fs::read_dir(FOLDER).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let missing: Vec<_> = names.filter(|name| !page.contains(&format!("/{name})"))).collect();
    assert_eq!(missing, [""; 0]);
}
