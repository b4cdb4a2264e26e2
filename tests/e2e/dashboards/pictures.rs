//! What `cargo xtask pictures` draws: answers to the dashboards' queries from a short run of two
//! simulated nodes, whose devices pods hold, under the project's alerts.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nvml_exporter::attribution::kubelet::messages::PodResources;
use serde_json::{Value, json};

use super::boards::{FOLDERS, list, substituted, text};
use super::workers::Worker;
use crate::support::apiserver::{ApiServer, Kind};
use crate::support::kubelet::{Kubelet, device, pod, socket};
use crate::support::pods::{GPU, uuids};
use crate::support::{Exporter, Prometheus, Setup};

/// Where the answers go.
const FOLDER: &str = "NVML_EXPORTER_PICTURES";
/// How long the nodes run before they are asked, in seconds, and how far back they are then asked.
const RUN: u32 = 170;
const RANGE: u32 = 150;
const STEP: u32 = 3;

struct Node {
    exporter: Exporter,
    kubelet: Kubelet,
}

fn node(name: &str, scenario: &str, server: &ApiServer) -> (Node, Vec<String>, Vec<[String; 2]>) {
    let setup = Setup::simulate(scenario).env("NODE_NAME", name);
    let path = socket(&setup.directory());
    let kubelet = Kubelet::start(&path);
    let config = setup.file("kubeconfig", &server.kubeconfig());
    let exporter = setup
        .env("KUBECONFIG", &config)
        .args(["--kubernetes", "--kubernetes-enable-owner-labels", "--collect-interval=1s"])
        .args([format!("--pod-resources-kubelet-socket={}", path.display())])
        .ready();
    let page = exporter.until_settled();
    let mut whole = uuids(&page);
    let mut split = Vec::new();
    for one in page.samples("nvml_mig_instance_info") {
        let [uuid, profile, id] =
            ["UUID", "GPU_I_PROFILE", "mig_uuid"].map(|label| one.label(label).unwrap().to_owned());
        whole.retain(|gpu| *gpu != uuid);
        split.push([format!("nvidia.com/mig-{}", profile.replace('+', ".")), id]);
    }
    let all = whole.iter().map(|uuid| device(GPU, uuid));
    let all = all.chain(split.iter().map(|[resource, id]| device(resource, id)));
    kubelet.can_hand_out(all.collect());
    (Node { exporter, kubelet }, whole, split)
}

/// A pod's UID, by which its processes are known: as long as those of Kubernetes.
fn uid(pod: &str) -> String {
    format!("{pod:0>36}")
}

fn held(namespace: &str, name: &str, devices: &[(&str, &str)]) -> PodResources {
    PodResources { namespace: namespace.to_owned(), ..pod(name, devices) }
}

/// Tells the API server whose pods these are.
fn own(server: &ApiServer, node: &str, pods: &[PodResources]) {
    for pod in pods {
        let owner = pod.name.rsplit_once('-').map_or(pod.name.as_str(), |(owner, _)| owner);
        let kind = if pod.namespace == "research" { "StatefulSet" } else { "Job" };
        let described = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"uid": uid(&pod.name), "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": owner,
                "controller": true,
            }]},
            "spec": {"nodeName": node, "containers": []},
            "status": {"phase": "Running"},
        });
        server.put(Kind::Pod, &pod.namespace, &pod.name, described);
    }
}

fn prometheus(nodes: [&Node; 2]) -> Prometheus {
    let targets = nodes.map(|node| format!("'{}'", node.exporter.address)).join(", ");
    let alerts = Path::new(env!("CARGO_MANIFEST_DIR")).join("alerts");
    let config = format!(
        "global: {{scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 2s}}\n\
         rule_files: ['{0}/gpu-alerts.yml', '{0}/gpu-fleet-rules.yml']\n\
         scrape_configs:\n- job_name: nvml-exporter\n  static_configs: [{{targets: [{targets}]}}]\n",
        alerts.display()
    );
    Prometheus::configured(&config, &[])
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64().floor()
}

fn sent(expr: &str, host: &str) -> String {
    substituted(expr, |name| match name {
        "host" => host.to_owned(),
        "__rate_interval" => "15s".to_owned(),
        "__interval" => format!("{STEP}s"),
        "__interval_ms" => (STEP * 1000).to_string(),
        "__range" => format!("{RANGE}s"),
        "__range_s" => RANGE.to_string(),
        "price" => "2.50".to_owned(),
        _ => ".*".to_owned(),
    })
}

/// The answers to a panel's queries, in their order.
fn answers(prometheus: &Prometheus, host: &str, panel: &Value, until: f64) -> Value {
    let answer = |target: &Value| {
        let query = sent(text(&target["expr"]), host);
        if target["instant"] == true {
            prometheus.range(&query, (until, until, STEP))
        } else {
            prometheus.range(&query, (until - f64::from(RANGE), until, STEP))
        }
    };
    let queries: Vec<Value> = list(&panel["targets"]).iter().map(answer).collect();
    json!({"title": panel["title"], "queries": queries})
}

#[test]
#[ignore = "no test: `cargo xtask pictures` draws what it records"]
fn record() {
    let folder = std::env::var(FOLDER).unwrap();
    let server = ApiServer::start();
    let (first, gpus, _) = node("gpu-a1", "dgx-h100", &server);
    let (second, whole, split) = node("gpu-b1", "h200-mig-and-whole", &server);
    let share = |n: usize| format!("{}::{n}", gpus[5]);
    let pods = vec![
        held("vision", "train-resnet-0", &[(GPU, &gpus[0]), (GPU, &gpus[1])]),
        held("vision", "train-resnet-1", &[(GPU, &gpus[2]), (GPU, &gpus[3])]),
        held("chat", "llm-0", &[(GPU, &gpus[4])]),
        held("research", "notebook-0", &[(GPU, &share(0))]),
        held("research", "notebook-1", &[(GPU, &share(1))]),
        held("research", "idle-0", &[(GPU, &gpus[6])]),
    ];
    own(&server, "gpu-a1", &pods);
    first.kubelet.lists(pods);
    let slices: Vec<PodResources> = split
        .iter()
        .take(4)
        .zip(["serve-0", "serve-1", "embed-0", "embed-1"])
        .map(|([resource, id], name)| held("chat", name, &[(resource, id)]))
        .chain([held("vision", "eval-0", &[(GPU, &whole[0])])])
        .collect();
    own(&server, "gpu-b1", &slices);
    second.kubelet.lists(slices);
    let sharers = ["notebook-0", "notebook-1"].map(|pod| Worker::of_pod(&uid(pod)));
    let [one, other] = sharers.each_ref().map(Worker::id);
    let processes = format!("gpu 5 processes {one}:21GiB:46,{other}:12GiB:17");
    first.exporter.control(&["gpu 6 set load 0", "gpu 7 set load 0", &processes]);

    let prometheus = prometheus([&first, &second]);
    std::thread::sleep(Duration::from_secs(u64::from(RUN / 2)));
    // An application's fault, one for which an alert fires, and a GPU that gets hot.
    first.exporter.control(&["gpu 2 xid 31", "gpu 1 set temperature 86", "gpu 4 set load 1"]);
    second.exporter.control(&["gpu 0 xid 94", "gpu 0 add ecc_dbe_volatile 1"]);
    std::thread::sleep(Duration::from_secs(u64::from(RUN / 2)));

    let until = now() - 1.0;
    for board in FOLDERS[0].boards() {
        let name = super::board_name(&board);
        // On this one a host is chosen.
        let host = if name == "detail" { "gpu-a1" } else { ".*" };
        let panels = board.data_panels().map(|panel| answers(&prometheus, host, panel, until));
        let recorded =
            json!({"until": until, "range": RANGE, "panels": panels.collect::<Vec<_>>()});
        let path = Path::new(&folder).join(format!("{name}.json"));
        std::fs::write(path, recorded.to_string()).unwrap();
    }
}
