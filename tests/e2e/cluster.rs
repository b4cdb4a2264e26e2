//! What the API server adds to pods: labels, owners, UIDs, and which claims only watch. And that
//! the exporter asks for nothing else.

use serde_json::json;

use crate::support::apiserver::{ApiServer, Kind};
use crate::support::kubelet::{Kubelet, claiming, pod};
use crate::support::pods::{GPU, TEMP, beside_a_kubelet, pods_of, until_pods, uuids};
use crate::support::until;

/// The rights of one purpose as the chart's test compares them with its rules.
fn rights(purpose: &str) -> Vec<&'static str> {
    let lines = include_str!("../data/rights.txt").lines();
    lines.filter(|line| line.split_whitespace().next() == Some(purpose)).collect()
}

fn shown(purpose: &str, server: &ApiServer) -> Vec<String> {
    server.rights().iter().map(|right| format!("{purpose} {right}")).collect()
}

fn described(node: &str, uid: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "uid": uid,
            "labels": {"app.kubernetes.io/name": "train", "team": "vision", "pod-template-hash": "h1"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "train-h1", "uid": "r",
                "controller": true,
            }],
        },
        "spec": {"nodeName": node, "containers": []},
        "status": {"phase": "Running"},
    })
}

#[test]
fn case_72_to_75_pod_labels_uids_and_owners_come_from_the_api_server() {
    let server = ApiServer::start();
    let (setup, path) = beside_a_kubelet("t4-l4-mixed");
    let kubelet = Kubelet::start(&path);
    let config = setup.file("kubeconfig", &server.kubeconfig());
    let exporter = setup
        .env("KUBECONFIG", &config)
        .args([
            "--kubernetes-enable-pod-labels",
            "--kubernetes-enable-pod-uid",
            "--kubernetes-enable-owner-labels",
            "--kubernetes-enable-node-label",
            "--kubernetes-pod-label-allowlist-regex=^app,team",
        ])
        .ready();
    let uuid = uuids(&exporter.scrape())[0].clone();
    kubelet.lists(vec![pod("a", &[(GPU, &uuid)])]);
    let page = until_pods(&exporter, "0", &["a"]);
    assert!(page.sample(TEMP, &[("pod", "a"), ("pod_uid", "")]).is_some(), "not known yet");
    server.put(Kind::Pod, "ml", "a", described("node-b", "elsewhere"));
    server.put(Kind::Pod, "ml", "a", described("node-a", "uid-1"));
    let all = [
        ("pod", "a"),
        ("pod_uid", "uid-1"),
        ("app_kubernetes_io_name", "train"),
        ("team", "vision"),
        ("owner_kind", "Deployment"),
        ("owner_name", "train"),
        ("node", "node-a"),
    ];
    let page = exporter.until("the labels", |page| page.sample(TEMP, &all).is_some());
    assert!(page.sample(TEMP, &all).unwrap().label("pod_template_hash").is_none());

    server.expire_watches();
    server.put(Kind::Pod, "ml", "a", described("node-a", "uid-2"));
    exporter.until("the new uid", |page| page.sample(TEMP, &[("pod_uid", "uid-2")]).is_some());
    let mut ended = described("node-a", "uid-2");
    ended["status"]["phase"] = "Succeeded".into();
    server.put(Kind::Pod, "ml", "a", ended);
    until_pods(&exporter, "0", &[""]);
    server.delete(Kind::Pod, "ml", "a");
    until_pods(&exporter, "0", &["a"]);
    assert!(server.asked().iter().all(|asked| asked.contains("spec.nodeName%3Dnode-a")));
    assert_eq!(shown("pods", &server), rights("pods"));
}

#[test]
fn claims_with_admin_access_and_the_exporters_own_pod_use_nothing() {
    let server = ApiServer::start();
    server.claim("ml", "all-gpus", true);
    server.claim("ml", "mine", false);
    let (setup, path) = beside_a_kubelet("dgx-h100");
    let kubelet = Kubelet::start(&path);
    let config = setup.file("kubeconfig", &server.kubeconfig());
    let exporter = setup
        .env("KUBECONFIG", &config)
        .env("POD_NAME", "exporter-x")
        .env("POD_NAMESPACE", "ml")
        .args(["--kubernetes-enable-dra", "--kubernetes-ignore-pods=^ml/monitor-"])
        .ready();
    let page = exporter.scrape();
    let uuids = uuids(&page);
    // The driver numbers by minor number, which is not the index here.
    let device = |gpu: &str| {
        let info = page.sample("nvml_device_info", &[("gpu", gpu)]).unwrap();
        format!("gpu-{}", info.label("minor_number").unwrap())
    };
    let (watched, used) = ([device("0"), device("1")], device("1"));
    kubelet.lists(vec![
        claiming("validator", "all-gpus", &[&watched[0], &watched[1]]),
        claiming("train", "mine", &[&used]),
        pod("exporter-x", &[(GPU, &uuids[2])]),
        pod("monitor-1", &[(GPU, &uuids[3])]),
    ]);
    let page = exporter.until("claims", |page| {
        pods_of(page, "1", None) == ["train"] && pods_of(page, "0", None) == [""]
    });
    for gpu in ["2", "3"] {
        assert_eq!(pods_of(&page, gpu, None), [""], "{gpu}");
    }
    assert_eq!(shown("claims", &server), rights("claims"));
}

#[test]
fn without_credentials_pods_are_shown_all_the_same() {
    let (setup, path) = beside_a_kubelet("t4-l4-mixed");
    let kubelet = Kubelet::start(&path);
    let exporter =
        setup.args(["--kubernetes-enable-pod-labels"]).env("HOME", "/nonexistent").ready();
    let uuid = uuids(&exporter.scrape())[0].clone();
    kubelet.lists(vec![pod("a", &[(GPU, &uuid)])]);
    until_pods(&exporter, "0", &["a"]);
    exporter.until_log("automountServiceAccountToken");
}

#[test]
fn a_config_map_is_listed_and_watched_by_its_name_and_without_switches_nothing_is_asked() {
    let server = ApiServer::start();
    let counters = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {},
        "data": {"metrics": "DCGM_FI_DEV_GPU_TEMP, gauge, T."},
    });
    server.put(Kind::ConfigMap, "gpu", "rows", counters.clone());
    for (flag, purpose) in
        [("--configmap-data=gpu:rows", "configmap"), ("--configmap-data=none", "none")]
    {
        let before = server.asked().len();
        let (setup, path) = beside_a_kubelet("t4-l4-mixed");
        let _kubelet = Kubelet::start(&path);
        let config = setup.file("kubeconfig", &server.kubeconfig());
        let exporter = setup.env("KUBECONFIG", &config).args([flag]).ready();
        if purpose == "none" {
            exporter.until_passes(5);
            assert_eq!(server.asked()[before..], Vec::<String>::new());
            continue;
        }
        exporter.until_log("counters loaded source=\"ConfigMap gpu:rows\"");
        server.put(Kind::ConfigMap, "gpu", "rows", counters.clone());
        let watched = || server.asked().iter().any(|asked| asked.contains("watch=")).then_some(());
        until("the watch", watched, || exporter.log());
        assert!(server.asked().iter().all(|asked| asked.contains("metadata.name%3Drows")));
        assert_eq!(shown(purpose, &server), rights(purpose));
    }
}
