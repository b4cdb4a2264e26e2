//! A GPU that pods share, with real processes in real cgroups: each pod has what its processes
//! use, all together have no more than the board, and a number given anew is nobody's former.

use serde_json::json;

use crate::support::apiserver::{ApiServer, Kind};
use crate::support::cgroups::{Cgroup, idle, idle_as, of_pod};
use crate::support::kubelet::{Kubelet, pod};
use crate::support::pods::{GPU, beside_a_kubelet, until_pods, uuids};
use crate::support::{Exporter, Page};

const MEMORY: &str = "nvml_pod_memory_used_bytes";
const SM: &str = "nvml_pod_sm_utilization_ratio";
const PROCESSES: &str = "nvml_pod_processes";
const GIB: f64 = 1_073_741_824.0;

/// A UID that no other test has at this time.
fn uid(of: &str) -> String {
    let salt = std::process::id();
    let number = of.bytes().fold(0_u64, |number, byte| number << 8 | u64::from(byte));
    format!("{salt:08x}-0000-4000-8000-{number:012x}")
}

fn described(uid: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"uid": uid, "labels": {}},
        "spec": {"nodeName": "node-a", "containers": []},
        "status": {"phase": "Running"},
    })
}

struct Node {
    kubelet: Kubelet,
    /// The exporter finds it by a file.
    _server: ApiServer,
    exporter: Exporter,
}

impl Node {
    /// Pods share GPU 0 of eight by time-slicing.
    fn shared_by(pods: &[(&str, &str)], args: &[&str]) -> Self {
        let server = ApiServer::start();
        for (name, uid) in pods {
            server.put(Kind::Pod, "ml", name, described(uid));
        }
        let (setup, path) = beside_a_kubelet("dgx-h100");
        let kubelet = Kubelet::start(&path);
        let config = setup.file("kubeconfig", &server.kubeconfig());
        let exporter = setup
            .env("KUBECONFIG", &config)
            .args(args.iter().copied())
            .control(&["gpu 0 set utilization 90", "gpu 0 set memory_used 48GiB"])
            .ready();
        let node = Self { kubelet, _server: server, exporter };
        node.lists(&pods.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        node
    }

    fn lists(&self, pods: &[&str]) {
        let uuid = uuids(&self.exporter.scrape())[0].clone();
        let one = |(n, name): (usize, &&str)| pod(name, &[(GPU, &format!("{uuid}::{n}"))]);
        self.kubelet.lists(pods.iter().enumerate().map(one).collect());
    }
}

fn of(page: &Page, family: &str, pod: &str) -> Option<f64> {
    page.value(family, &[("gpu", "0"), ("namespace", "ml"), ("pod", pod)])
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn three_pods_on_one_gpu_add_up_to_the_board_and_a_process_that_ends_takes_its_share_along() {
    let uids = ["a", "b", "c"].map(uid);
    let mut groups: Vec<Cgroup> =
        uids.iter().enumerate().map(|(form, uid)| Cgroup::make(&of_pod(uid, form))).collect();
    let [a, b, c] = [groups[0].run(), groups[1].run(), groups[2].run()];
    let node =
        Node::shared_by(&[("a", &uids[0]), ("b", &uids[1]), ("c", &uids[2])], &["--usage-by=pod"]);
    node.exporter.control(&[&format!("gpu 0 processes {a}:24GiB:50,{b}:16GiB:30,{c}:8GiB:10")]);
    let page = node.exporter.until("three shares", |page| {
        ["a", "b", "c"].iter().all(|pod| of(page, MEMORY, pod) > Some(0.0))
            && page.samples(SM).count() == 3
            && of(page, SM, "a") > Some(0.0)
    });
    let all = |family: &str| ["a", "b", "c"].map(|pod| of(&page, family, pod).unwrap());
    assert_eq!(
        all(MEMORY).map(|bytes| bytes / GIB).map(f64::to_bits),
        [24.0, 16.0, 8.0].map(f64::to_bits)
    );
    assert_eq!(all(PROCESSES).map(f64::to_bits), [1f64.to_bits(); 3]);
    let sum = |family: &str| all(family).iter().sum::<f64>();
    let board = |family: &str| page.value(family, &[("gpu", "0")]).unwrap();
    assert!(near(sum(SM), board("DCGM_FI_DEV_GPU_UTIL") / 100.0), "{}", page.text);
    assert!(near(sum(MEMORY) / 1_048_576.0, board("DCGM_FI_DEV_FB_USED")), "{}", page.text);
    // Whoever has nothing is not on the page: the other GPUs are nobody's.
    assert!(page.samples(MEMORY).all(|sample| sample.label("gpu") == Some("0")));

    // The process ends, the pod stays: it holds the GPU and uses nothing.
    groups[1].end();
    node.exporter.control(&[&format!("gpu 0 processes {a}:24GiB:50,{c}:8GiB:10")]);
    let page = node.exporter.until("b idle", |page| of(page, PROCESSES, "b") == Some(0.0));
    assert_eq!(of(&page, MEMORY, "b"), Some(0.0));

    // The pod ends: its readings do at once, its accounts stay to be scraped.
    node.lists(&["a", "c"]);
    let page = node.exporter.until("b gone", |page| of(page, PROCESSES, "b").is_none());
    for family in [MEMORY, SM, "nvml_pod_encoder_utilization_ratio"] {
        assert_eq!((of(&page, family, "b"), of(&page, family, "a").is_some()), (None, true));
    }
    let held = of(&page, "nvml_pod_gpu_seconds_total", "b").unwrap();
    let page = node.exporter.until_passes(2);
    assert_eq!(
        of(&page, "nvml_pod_gpu_seconds_total", "b").map(f64::to_bits),
        Some(held.to_bits())
    );
}

#[test]
fn a_process_number_that_is_given_again_is_the_new_pods() {
    let uids = ["d", "e"].map(uid);
    let mut groups: Vec<Cgroup> =
        uids.iter().enumerate().map(|(form, uid)| Cgroup::make(&of_pod(uid, form))).collect();
    let pid = groups[0].run();
    let node = Node::shared_by(&[("d", &uids[0]), ("e", &uids[1])], &["--usage-by=pod"]);
    node.exporter.control(&[&format!("gpu 0 processes {pid}:24GiB:50")]);
    let is = |page: &Page, has: &str, has_not: &str| {
        of(page, MEMORY, has) == Some(24.0 * GIB) && of(page, MEMORY, has_not) == Some(0.0)
    };
    node.exporter.until("d's process", |page| is(page, "d", "e"));
    groups[0].end();
    groups[1].adopt(idle_as(pid));
    let page = node.exporter.until("e's process", |page| is(page, "e", "d"));
    assert_eq!((of(&page, PROCESSES, "d"), of(&page, PROCESSES, "e")), (Some(0.0), Some(1.0)));
}

#[test]
fn without_uids_one_pod_alone_is_known_and_several_are_not_guessed() {
    let pods_uid = uid("f");
    let mut group = Cgroup::make(&of_pod(&pods_uid, 2));
    let pid = group.run();
    let (setup, path) = beside_a_kubelet("dgx-h100");
    let kubelet = Kubelet::start(&path);
    let command = format!("gpu 0 processes {pid}:24GiB:50");
    let exporter = setup.control(&[&command]).ready();
    let gpu = uuids(&exporter.scrape())[0].clone();
    kubelet.lists(vec![pod("f", &[(GPU, &gpu)])]);
    let page = exporter.until("the pod's memory", |page| of(page, MEMORY, "f").is_some());
    assert_eq!(of(&page, MEMORY, "f"), Some(24.0 * GIB));

    let shares = |name: &str, n: u8| pod(name, &[(GPU, &format!("{gpu}::{n}"))]);
    kubelet.lists(vec![shares("f", 0), shares("g", 1)]);
    let missing = [("gpu", "0"), ("family", MEMORY), ("reason", "pod_uid_unknown")];
    let page = exporter.until("the reason", |page| {
        page.sample("nvml_exporter_process_split_missing", &missing).is_some()
    });
    assert_eq!((of(&page, MEMORY, "f"), of(&page, MEMORY, "g")), (None, None));
    // What cannot be divided is told as such, and is nobody's.
    let page = exporter.until_passes(2);
    let undivided = [("gpu", "0"), ("by", "pod"), ("reason", "not_divisible")];
    let family = "nvml_device_unattributed_energy_joules_total";
    assert!(page.value(family, &undivided) > Some(0.0), "{}", page.text);
}

#[test]
fn processes_of_no_pod_are_no_pods_and_hidden_ones_have_a_reason() {
    let mut stray = idle();
    let (setup, path) = beside_a_kubelet("dgx-h100");
    let kubelet = Kubelet::start(&path);
    let command = format!("gpu 0 processes {}:24GiB:50", stray.id());
    // A number that no process of this machine can have.
    let hidden = "gpu 1 processes 4194999:8GiB:20";
    let exporter = setup.control(&[&command, hidden]).ready();
    let all = uuids(&exporter.scrape());
    kubelet.lists(vec![pod("h", &[(GPU, &all[0])]), pod("i", &[(GPU, &all[1])])]);
    until_pods(&exporter, "1", &["i"]);
    let page = exporter.until("h's processes", |page| of(page, PROCESSES, "h").is_some());
    assert_eq!(of(&page, PROCESSES, "h"), Some(0.0));
    assert!(page.samples(MEMORY).all(|sample| sample.label("gpu") == Some("0")), "{}", page.text);
    let missing = [("gpu", "1"), ("family", MEMORY), ("reason", "processes_not_visible")];
    assert!(page.sample("nvml_exporter_process_split_missing", &missing).is_some());
    // Energy and time need no processes where one pod holds the GPU.
    let energy = [("gpu", "1"), ("pod", "i")];
    exporter.until("energy", |page| {
        page.value("nvml_pod_energy_joules_total", &energy) > Some(0.0)
            && page.value("nvml_pod_gpu_busy_seconds_total", &energy) > Some(0.0)
    });
    stray.kill().unwrap();
    stray.wait().unwrap();
}
