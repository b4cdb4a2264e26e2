//! The exporter as the GPU Operator starts it: with the environment of `tests/data/gpu-operator.yaml`
//! and nothing else, but for paths in the test's own folder, a free port, and the simulator.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::apiserver::{ApiServer, Kind};
use crate::support::kubelet::{Kubelet, claiming, pod, socket};
use crate::support::monitor::yaml;
use crate::support::pods::{GPU, TEMP, pods_of, until_pods, uuids};
use crate::support::{Exporter, Page, Setup};

const SCENARIO: &str = "dgx-h100";

fn contract() -> Value {
    yaml("tests/data/gpu-operator.yaml")
}

/// The environment that the contract gives with these of its parts.
fn environment(parts: &[&str]) -> BTreeMap<String, String> {
    let contract = contract();
    let env = |part: &&str| contract[*part]["env"].as_object().unwrap().clone();
    let text = |value: Value| value.as_str().unwrap().to_owned();
    let all = ["daemonSet"].iter().chain(parts).flat_map(env);
    all.map(|(name, value)| (name, text(value))).collect()
}

/// The operator's pod: what the contract says, with its files and its port moved.
fn installed(parts: &[&str], counters: &str) -> (Setup, PathBuf) {
    let mut setup = Setup::bare().without_env("NODE_NAME");
    for (name, value) in environment(parts) {
        let value = match name.as_str() {
            "DCGM_EXPORTER_LISTEN" => "127.0.0.1:0".to_owned(),
            "DCGM_EXPORTER_COLLECTORS" => setup.file(value.rsplit('/').next().unwrap(), counters),
            "DCGM_HPC_JOB_MAPPING_DIR" => setup.directory(),
            _ => value,
        };
        setup = setup.env(&name, &value);
    }
    let path = socket(&setup.directory());
    let moved = path.display().to_string();
    let setup = setup
        .env("DCGM_POD_RESOURCES_KUBELET_SOCKET", &moved)
        .env("NVML_EXPORTER_SIMULATE", SCENARIO)
        .env("HOME", "/nonexistent");
    (setup, path)
}

/// The selection that the image has.
fn selection() -> String {
    crate::support::monitor::text("metrics.csv")
}

/// The UUIDs of the scenario, which are the same each time.
fn gpus() -> Vec<String> {
    uuids(&Setup::simulate(SCENARIO).ready().scrape())
}

/// Samples of the first GPU of all families that `OpenShift` records, held by the pod.
fn assert_openshift(page: &Page, pod: &str) {
    let contract = contract();
    let families = contract["openshift"].as_array().unwrap();
    assert_eq!(families.len(), 7);
    for family in families {
        let family = family.as_str().unwrap();
        let labels = [("gpu", "0"), ("pod", pod), ("namespace", "ml"), ("hostname", "node-a")];
        assert!(page.sample(family, &labels).is_some(), "{family}\n{}", page.text);
    }
}

fn assert_healthy(exporter: &Exporter) {
    let probe = contract()["daemonSet"]["probe"].as_str().unwrap().to_owned();
    let answer = exporter.get(&probe, &[]);
    assert_eq!(answer.status, 200, "{}", answer.body);
}

#[test]
fn the_daemon_set_is_healthy_and_shows_pods_without_a_token() {
    let gpus = gpus();
    let (setup, path) = installed(&[], &selection());
    let kubelet = Kubelet::start(&path);
    kubelet.lists(vec![pod("job-0", &[(GPU, &gpus[0])])]);
    let exporter = setup.start();
    assert_healthy(&exporter);
    let page = until_pods(&exporter, "0", &["job-0"]);
    assert_openshift(&page, "job-0");
    assert_eq!(pods_of(&page, "7", None), [""]);
    // Nothing of it was asked for wrongly.
    let log = exporter.log();
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("WARN")).collect();
    assert!(warnings.iter().all(|line| line.contains("SIMULATED")), "{warnings:?}");
}

/// The probe restarts the pod, which mends no GPU.
#[test]
fn the_probe_does_not_fail_with_the_gpus() {
    let (setup, _) = installed(&[], &selection());
    let exporter = setup.control(&["gpu * lost"]).start();
    exporter.until_log("GPU_IS_LOST");
    assert_healthy(&exporter);
    let (setup, _) = installed(&[], &selection());
    let exporter = setup.control(&["driver unload"]).start();
    exporter.until("no driver", |page| page.value("nvml_up", &[]) == Some(0.0));
    assert_healthy(&exporter);
}

/// The image has the file; `tests/packaging.rs` holds it to that.
#[test]
fn a_counters_file_that_is_not_there_ends_the_start_with_its_name() {
    let (setup, _) = installed(&[], &selection());
    let named = &environment(&[])["DCGM_EXPORTER_COLLECTORS"];
    let (code, _, log) = setup.env("DCGM_EXPORTER_COLLECTORS", named).run();
    assert_eq!(code, 1, "{log}");
    assert!(log.contains(&format!("DCGM_EXPORTER_COLLECTORS={named}")), "{log}");
}

#[test]
fn a_config_map_mounted_as_a_file_is_the_selection() {
    let (setup, _) = installed(&["config"], "DCGM_FI_DEV_GPU_TEMP, gauge, Temperature.\n");
    let page = setup.ready().scrape();
    assert!(page.family(TEMP).is_some());
    assert!(page.family("DCGM_FI_DEV_GPU_UTIL").is_none());
}

#[test]
fn a_host_engine_is_warned_of_and_changes_nothing() {
    let gpus = gpus();
    let (setup, path) = installed(&["hostEngine"], &selection());
    let kubelet = Kubelet::start(&path);
    kubelet.lists(vec![pod("job-0", &[(GPU, &gpus[0])])]);
    let exporter = setup.ready();
    let engine = &environment(&["hostEngine"])["DCGM_REMOTE_HOSTENGINE_INFO"];
    exporter.until_log(engine);
    let log = exporter.log();
    let warned = log.lines().any(|line| line.contains("WARN") && line.contains(engine.as_str()));
    assert!(warned, "{log}");
    assert_openshift(&until_pods(&exporter, "0", &["job-0"]), "job-0");
}

#[test]
fn pod_metadata_comes_from_the_api_server() {
    let gpus = gpus();
    let server = ApiServer::start();
    let described = serde_json::json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"uid": "uid-1", "labels": {"app": "train", "team": "vision", "other": "no"}},
        "spec": {"nodeName": "node-a", "containers": []},
        "status": {"phase": "Running"},
    });
    server.put(Kind::Pod, "ml", "job-0", described);
    let (setup, path) = installed(&["podMetadata", "jobs"], &selection());
    let kubelet = Kubelet::start(&path);
    kubelet.lists(vec![pod("job-0", &[(GPU, &gpus[0])])]);
    let config = setup.file("kubeconfig", &server.kubeconfig());
    let exporter = setup.env("KUBECONFIG", &config).ready();
    let labels = [("pod", "job-0"), ("pod_uid", "uid-1"), ("app", "train"), ("team", "vision")];
    let page = exporter.until("labels", |page| page.sample(TEMP, &labels).is_some());
    assert!(page.sample(TEMP, &labels).unwrap().label("other").is_none());
}

/// The exporter's own claim, and those of the operator's other pods, are on all GPUs.
#[test]
fn the_dra_stack_shows_claims_and_not_those_that_only_watch() {
    let server = ApiServer::start();
    server.claim("ml", "admin", true);
    server.claim("ml", "mine", false);
    let (setup, path) = installed(&["dra"], &selection());
    let kubelet = Kubelet::start(&path);
    let own = gethostname::gethostname().into_string().unwrap();
    let all: Vec<String> = (0..8).map(|minor| format!("gpu-{minor}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    kubelet.lists(vec![
        claiming(&own, "own", &all),
        claiming("nvidia-operator-validator-x", "admin", &all),
        claiming("train", "mine", &all[..1]),
    ]);
    let config = setup.file("kubeconfig", &server.kubeconfig());
    let exporter = setup.env("KUBECONFIG", &config).ready();
    assert_healthy(&exporter);
    let held = |page: &Page| -> Vec<String> {
        let held = page.samples(TEMP).filter(|sample| sample.label("pod") != Some(""));
        held.map(|sample| sample.label("pod").unwrap_or("no label").to_owned()).collect()
    };
    let page = exporter.until("the claim alone", |page| held(page) == ["train"]);
    let sample = page.samples(TEMP).find(|sample| sample.label("pod") == Some("train")).unwrap();
    assert!(sample.has(&[("dra_claim_name", "mine"), ("dra_device_name", "gpu-0")]), "{sample:?}");
}

#[test]
fn the_contracts_paths_and_port_are_the_exporters_defaults() {
    let help = Setup::bare().args(["--help"]).run().1;
    let contract = contract();
    let mounts = contract["daemonSet"]["mounts"].as_array().unwrap();
    let socket = format!("[default: {}/kubelet.sock]", mounts[0].as_str().unwrap());
    let unwrapped = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unwrapped.contains(&socket), "{socket}");
    let listen = &environment(&[])["DCGM_EXPORTER_LISTEN"];
    assert_eq!(listen, &format!(":{}", contract["daemonSet"]["port"]));
    assert!(unwrapped.contains(&format!("[default: {listen}]")));
    // Each of its variables is one that the exporter knows.
    for name in environment(&["config", "hostEngine", "podMetadata", "jobs", "dra"]).keys() {
        assert!(name == "NODE_NAME" || unwrapped.contains(&format!("[env: {name}]")), "{name}");
    }
}
