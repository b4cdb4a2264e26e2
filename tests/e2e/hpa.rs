//! Autoscaling on GPUs: the real exporter, scraped by a real Prometheus as prometheus-operator has it
//! scrape, the recording rules, the adapter's queries made from its values file, and the autoscaler's
//! arithmetic on the objects in `deploy/hpa`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::adapter::{Adapter, milli};
use crate::support::autoscaler::{Hpa, by_average, by_pods, by_value};
use crate::support::kubelet::{Kubelet, pod, socket};
use crate::support::monitor::{NAMESPACE, Overrides, Target, config, job, text, yaml};
use crate::support::pods::{GPU, uuids};
use crate::support::{Exporter, Page, Prometheus, Setup, missing, until};

const RULES: &str = "alerts/gpu-recording-rules.yml";
const VALUES: &str = "deploy/hpa/prometheus-adapter-values.yaml";
const DIRECT: &str = "deploy/hpa/prometheus-adapter-values-direct.yaml";
const UTILIZATION: &str = "DCGM_FI_DEV_GPU_UTIL";
const MEMORY: &str = "gpu_memory_used_ratio";

/// Pods of the fleet with what they hold: a GPU, two GPUs, a share of one each, a MIG instance.
const PODS: [&str; 5] = ["llm-7c9-a", "llm-7c9-b", "sharer-0", "sharer-1", "slice-0"];
/// The pods of the exporters themselves.
const EXPORTERS: [&str; 2] = ["nvidia-dcgm-exporter-aaaaa", "nvidia-dcgm-exporter-bbbbb"];
const QUEUE: i64 = 30;

/// Two nodes, one with whole GPUs and one with MIG instances.
struct Fleet {
    whole: Exporter,
    split: Exporter,
    /// Hold their answers as long as the fleet lives.
    _kubelets: [Kubelet; 2],
}

fn node(scenario: &str, control: &[&str]) -> (Exporter, Kubelet) {
    let setup = Setup::simulate(scenario).frozen().control(control).counters(
        "DCGM_FI_DEV_GPU_UTIL, gauge, U.\nDCGM_FI_DEV_FB_USED, gauge, M.\n\
         DCGM_FI_DEV_FB_FREE, gauge, M.",
    );
    let path = socket(&setup.directory());
    let kubelet = Kubelet::start(&path);
    let flag = format!("--pod-resources-kubelet-socket={}", path.display());
    (setup.args(["--kubernetes", &flag]).ready(), kubelet)
}

impl Fleet {
    fn start() -> Self {
        let loads: Vec<String> = [92, 80, 88, 60, 5, 5, 5, 5]
            .iter()
            .enumerate()
            .map(|(gpu, load)| format!("gpu {gpu} set utilization {load}"))
            .collect();
        let loads: Vec<&str> = loads.iter().map(String::as_str).collect();
        let (whole, first) = node("dgx-h100", &loads);
        let (split, second) = node("h200-mig-and-whole", &[]);
        let gpus = uuids(&whole.scrape());
        let share = |n| format!("{}::{n}", gpus[3]);
        first.lists(vec![
            pod(PODS[0], &[(GPU, &gpus[0])]),
            pod(PODS[1], &[(GPU, &gpus[1]), (GPU, &gpus[2])]),
            pod(PODS[2], &[(GPU, &share(0))]),
            pod(PODS[3], &[(GPU, &share(1))]),
            pod("cpu-only", &[]),
        ]);
        let page = split.scrape();
        let instance = page.samples("nvml_mig_instance_info").next().unwrap();
        second.lists(vec![pod(
            PODS[4],
            &[("nvidia.com/mig-3g.71gb", instance.label("mig_uuid").unwrap())],
        )]);
        let held = |page: &Page, number: f64| {
            page.samples("nvml_device_allocated").map(|held| held.value).sum::<f64>() >= number
        };
        whole.until("four GPUs held", |page| held(page, 4.0));
        split.until("an instance held", |page| held(page, 1.0));
        Self { whole, split, _kubelets: [first, second] }
    }

    /// A Prometheus that scrapes it as the monitor says, with labels honoured or not, and evaluates
    /// the rules beside what kube-state-metrics and an inference server would say.
    fn prometheus(&self, honor_labels: bool) -> Prometheus {
        let mut endpoint = yaml("deploy/hpa/servicemonitor.yaml")["spec"]["endpoints"][0].clone();
        endpoint["honorLabels"] = honor_labels.into();
        let targets = [
            Target { address: self.whole.address, pod: EXPORTERS[0], node: "node-a" },
            Target { address: self.split.address, pod: EXPORTERS[1], node: "node-b" },
        ];
        let job = job("nvidia-dcgm-exporter", &endpoint, Overrides::default(), &targets);
        // Evaluated each second, so that the test is soon over.
        let rules = text(RULES).replace("interval: 15s", "interval: 1s");
        let files = [("rules.yml", rules.as_str()), ("cluster.yml", &cluster())];
        Prometheus::configured(&config(&[job], &["rules.yml", "cluster.yml"]), &files)
    }
}

/// Series of kube-state-metrics and of vLLM, made by rules.
fn cluster() -> String {
    let series = |name: &str, value: i64, labels: Value| json!({"record": name, "expr": format!("vector({value})"), "labels": labels});
    let owner = |pod: &str, kind: &str, name: &str| {
        let labels = json!({"namespace": "ml", "pod": pod, "owner_kind": kind, "owner_name": name});
        series("kube_pod_owner", 1, labels)
    };
    let deployment = json!({"namespace": "ml", "replicaset": "llm-7c9", "owner_kind": "Deployment", "owner_name": "llm"});
    let queue = json!({"namespace": "ml", "pod": PODS[0], "model_name": "llm"});
    let rules = [
        owner(PODS[0], "ReplicaSet", "llm-7c9"),
        owner(PODS[1], "ReplicaSet", "llm-7c9"),
        owner(PODS[2], "StatefulSet", "sharer"),
        owner(PODS[3], "StatefulSet", "sharer"),
        owner(PODS[4], "StatefulSet", "slice"),
        series("kube_replicaset_owner", 1, deployment),
        series("vllm:num_requests_waiting", QUEUE, queue),
    ];
    json!({"groups": [{"name": "cluster", "rules": rules}]}).to_string()
}

fn values(of: &[(&str, f64)]) -> BTreeMap<String, i64> {
    of.iter().map(|(pod, value)| ((*pod).to_owned(), milli(*value))).collect()
}

/// Used memory of a device, of all its memory.
fn memory(page: &Page, labels: &[(&str, &str)]) -> f64 {
    let value = |name| page.value(name, labels).unwrap();
    let used = value("DCGM_FI_DEV_FB_USED");
    used / (used + value("DCGM_FI_DEV_FB_FREE"))
}

/// Waits until the last rules have seen both nodes: two workloads have a utilisation, five pods have
/// memory.
fn until_recorded(prometheus: &Prometheus) {
    let count = |series: &str| prometheus.query(series).len();
    until(
        "what the rules record",
        || {
            let workloads = count("namespace_workload:dcgm_gpu_utilization:avg");
            (workloads == 2 && count("namespace_pod:dcgm_fb_used:ratio") == 5).then_some(())
        },
        || format!("{:?}\n{}", prometheus.targets(), prometheus.log()),
    );
}

#[test]
fn each_pod_has_one_value_whether_labels_are_honoured_or_not() {
    let fleet = Fleet::start();
    let adapter = Adapter::read(VALUES);
    for honor_labels in [true, false] {
        let prometheus = fleet.prometheus(honor_labels);
        until_recorded(&prometheus);
        let of =
            |metric, namespace, pods| adapter.custom(&prometheus, metric, ("pod", namespace), pods);
        // NVML says no utilisation of MIG instances, and so there is none; it is never 0.
        let expected = [(PODS[0], 92.0), (PODS[1], 84.0), (PODS[2], 60.0), (PODS[3], 60.0)];
        assert_eq!(of(UTILIZATION, "ml", &PODS[..]), values(&expected), "{honor_labels}");
        assert_eq!(of(UTILIZATION, "ml", &PODS[1..2]), values(&expected[1..2]), "{honor_labels}");

        let (whole, split) = (fleet.whole.scrape(), fleet.split.scrape());
        let one = memory(&whole, &[("gpu", "0")]);
        let two = f64::midpoint(memory(&whole, &[("gpu", "1")]), memory(&whole, &[("gpu", "2")]));
        let shared = memory(&whole, &[("gpu", "3")]);
        let slice = memory(&split, &[("pod", PODS[4])]);
        let expected = [
            (PODS[0], one),
            (PODS[1], two),
            (PODS[2], shared),
            (PODS[3], shared),
            (PODS[4], slice),
        ];
        let found = of(MEMORY, "ml", &PODS[..]);
        assert_eq!(found.keys().collect::<Vec<_>>(), PODS);
        for (pod, expected) in expected {
            // Thousandths are cut off after the mean.
            assert!((found[pod] - milli(expected)).abs() <= 1, "{honor_labels} {pod}: {found:?}");
        }

        // Idle GPUs are nobody's, and no workload is looked for in the exporter's own pod.
        for metric in [UTILIZATION, MEMORY] {
            assert_eq!(of(metric, NAMESPACE, &EXPORTERS[..]), BTreeMap::new(), "{honor_labels}");
        }
        assert_eq!(prometheus.number("count(namespace_pod_uuid:gpu_held:group)"), Some(6.0));
    }
}

#[test]
fn the_adapters_rules_need_no_recorded_series_where_labels_are_honoured() {
    let fleet = Fleet::start();
    let adapter = Adapter::read(DIRECT);
    let prometheus = fleet.prometheus(true);
    prometheus.until_scraped(2.0);
    let of = |namespace, pods| adapter.custom(&prometheus, UTILIZATION, ("pod", namespace), pods);
    // Sharers are not named on the device's series.
    assert_eq!(of("ml", &PODS[..]), values(&[(PODS[0], 92.0), (PODS[1], 84.0)]));
    assert_eq!(of(NAMESPACE, &EXPORTERS[..]), BTreeMap::new());

    // Where they are not, the metric is found on the exporter's own pods, and not on the workload's.
    let prometheus = fleet.prometheus(false);
    prometheus.until_scraped(2.0);
    let of = |namespace, pods| adapter.custom(&prometheus, UTILIZATION, ("pod", namespace), pods);
    assert_eq!(of("ml", &PODS[..]), BTreeMap::new());
    assert_eq!(of(NAMESPACE, &EXPORTERS[..]).len(), 2);
}

#[test]
fn the_objects_scale_the_deployment_by_what_the_adapter_says() {
    let fleet = Fleet::start();
    let adapter = Adapter::read(VALUES);
    let prometheus = fleet.prometheus(false);
    until_recorded(&prometheus);

    let hpa = Hpa::read("deploy/hpa/hpa-pods.yaml");
    let (utilization, queue) = (hpa.metric("Pods"), hpa.metric("External"));
    let llm = &PODS[..2];
    let found = adapter.custom(&prometheus, utilization.name(), ("pod", hpa.namespace()), llm);
    let target = utilization.target("AverageValue");
    // (92 + 84) / 2 = 88, which is 1.17 times 75: 2.35 pods.
    assert_eq!(by_pods(target, &found, llm), Some(3));
    // A third pod has not begun: as if it had 0 %, and that would be too few.
    assert_eq!(by_pods(target, &found, &[PODS[0], PODS[1], "llm-7c9-c"]), Some(3));
    let waiting = adapter.external(&prometheus, queue.name(), hpa.namespace(), &queue.selector());
    assert_eq!(waiting, [QUEUE * 1000]);
    // 30 requests at 8 a pod.
    let by_queue = by_average(queue.target("AverageValue"), waiting[0], 2);
    assert_eq!(by_queue, 4);
    assert_eq!(hpa.decides(&[3, by_queue]), 4);

    let hpa = Hpa::read("deploy/hpa/hpa-object.yaml");
    let object = hpa.metric("Object");
    assert_eq!(object.object(), hpa.deployment());
    let scope = ("deployment", hpa.namespace());
    let found = adapter.custom(&prometheus, object.name(), scope, &[object.object()]);
    assert_eq!(found, values(&[("llm", 88.0)]));
    assert_eq!(by_value(object.target("Value"), found["llm"], 2), 3);

    let hpa = Hpa::read("deploy/hpa/hpa-external.yaml");
    let external = hpa.metric("External");
    assert_eq!(external.selector()["workload"], hpa.deployment());
    let found =
        adapter.external(&prometheus, external.name(), hpa.namespace(), &external.selector());
    assert_eq!(found, [88000]);
    assert_eq!(by_value(external.target("Value"), found[0], 2), 3);
    // Another namespace's autoscaler does not see it.
    let elsewhere = adapter.external(&prometheus, external.name(), "other", &external.selector());
    assert_eq!(elsewhere, Vec::<i64>::new());

    let keda = yaml("deploy/hpa/keda-scaledobject.yaml");
    let triggers = keda["spec"]["triggers"].as_array().unwrap();
    let ask = |trigger: &Value| {
        let query = trigger["metadata"]["query"].as_str().unwrap();
        let threshold: f64 = trigger["metadata"]["threshold"].as_str().unwrap().parse().unwrap();
        (milli(threshold), milli(prometheus.number(query).unwrap()))
    };
    assert_eq!((&triggers[0]["metricType"], ask(&triggers[0])), (&"Value".into(), (75000, 88000)));
    assert_eq!(
        (&triggers[1]["metricType"], ask(&triggers[1])),
        (&"AverageValue".into(), (8000, 30000))
    );
}

#[test]
fn pods_without_a_value_hold_the_number_of_replicas() {
    let pods = ["a", "b", "c", "d"];
    let by = |of: &[(&str, f64)]| by_pods(75_000, &values(of), &pods);
    let all = |value| pods.map(|pod| (pod, value));
    // Within a tenth of the target nothing is done.
    assert_eq!(by(&all(82.0)), Some(4));
    assert_eq!(by(&all(68.0)), Some(4));
    assert_eq!(by(&all(83.0)), Some(5));
    assert_eq!(by(&all(67.0)), Some(4));
    assert_eq!(by(&all(50.0)), Some(3));
    assert_eq!(by(&all(100.0)), Some(6));
    assert_eq!(by(&all(0.0)), Some(0), "minReplicas ends that");
    // Three idle pods and one that says nothing: at most three could go, and one stays.
    assert_eq!(by(&[("a", 0.0), ("b", 0.0), ("c", 0.0)]), Some(1));
    // Three full pods and one that says nothing: the fourth may yet help.
    assert_eq!(by(&[("a", 100.0), ("b", 100.0), ("c", 100.0)]), Some(4));
    // The exporter is gone.
    assert_eq!(by(&[]), None);
}

#[test]
fn the_monitor_selects_the_exporters_service() {
    let monitor = yaml("deploy/hpa/servicemonitor.yaml");
    assert_eq!(monitor["spec"]["selector"]["matchLabels"], json!({"app": "nvidia-dcgm-exporter"}));
    let endpoint = &monitor["spec"]["endpoints"][0];
    for (field, value) in [
        ("port", json!("gpu-metrics")),
        ("path", json!("/metrics")),
        ("interval", json!("15s")),
        ("honorLabels", json!(true)),
    ] {
        assert_eq!(endpoint[field], value, "{field}");
    }
}

fn promtool(arguments: &[&str]) {
    let output = std::process::Command::new("promtool")
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", missing("promtool")));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn promtool_accepts_the_recording_rules_and_their_tests() {
    promtool(&["check", "rules", RULES]);
    promtool(&["test", "rules", "alerts/tests/gpu-recording-rules.test.yml"]);
}

/// The object for prometheus-operator has the groups that autoscaling needs, word for word.
#[test]
fn the_prometheus_rule_is_the_rules_file() {
    let text = text(RULES);
    let groups = &text[text.find("groups:").unwrap()..];
    let indented: String = groups
        .lines()
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") })
        .collect();
    let head = "\
# Written by a test from alerts/gpu-recording-rules.yml (UPDATE_EXPECT=1).
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: gpu-recording-rules
  namespace: monitoring
  labels:
    # What the Prometheus object's ruleSelector asks for; kube-prometheus-stack: its release.
    release: kube-prometheus-stack
spec:
";
    expect_test::expect_file!["../../deploy/hpa/prometheusrule.yaml"]
        .assert_eq(&format!("{head}{indented}"));
}
