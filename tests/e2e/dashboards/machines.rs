//! Simulated machines whose devices pods hold, all scraped by one Prometheus.

use serde_json::json;

use crate::support::apiserver::{ApiServer, Kind};
use crate::support::kubelet::{Kubelet, device, pod, socket};
use crate::support::pods::{GPU, uuids};
use crate::support::{Exporter, Page, Prometheus, Setup};

/// The machines on which every dashboard is looked at.
pub(super) const SCENARIOS: &[&str] =
    &["dgx-h100", "a100-mig-mixed", "dense-16x7", "t4-l4-mixed", "geforce-3090"];

/// A pod that an exporter would be in Kubernetes.
const EXPORTERS_POD: &str = "namespace: gpu-monitoring, pod: nvml-exporter-x, container: exporter";

struct Machine {
    scenario: &'static str,
    instance: String,
    exporter: Exporter,
    _kubelet: Kubelet,
}

/// Running exporters, each with a kubelet beside it.
pub(super) struct Machines {
    machines: Vec<Machine>,
    _server: ApiServer,
}

impl Machines {
    /// Starts them; pods hold their devices, and one XID has been reported on each.
    pub(super) fn start(scenarios: &[&'static str], flags: &[&str]) -> Self {
        let server = ApiServer::start();
        let machines = scenarios.iter().map(|scenario| start(scenario, flags, &server)).collect();
        Self { machines, _server: server }
    }

    /// A Prometheus that has scraped all of them a few times: as static targets, and one of them
    /// twice more as a pod, whose labels are honoured or not.
    pub(super) fn prometheus(&self) -> Prometheus {
        let all: Vec<String> =
            self.machines.iter().map(|machine| format!("'{}'", machine.instance)).collect();
        let first = &all[0];
        let job = |name: &str, honour: bool| {
            format!(
                "- job_name: {name}\n  honor_labels: {honour}\n  \
                 static_configs: [{{targets: [{first}], labels: {{{EXPORTERS_POD}}}}}]\n"
            )
        };
        let config = format!(
            "global: {{scrape_interval: 2s, scrape_timeout: 2s}}\nscrape_configs:\n\
             - job_name: nvml-exporter\n  static_configs: [{{targets: [{}]}}]\n{}{}",
            all.join(", "),
            job("honoured", true),
            job("exported", false)
        );
        let prometheus = Prometheus::configured(&config, &[]);
        prometheus.until_scraped(4.0);
        prometheus
    }

    /// Scenarios with their targets.
    pub(super) fn instances(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.machines.iter().map(|machine| (machine.scenario, machine.instance.as_str()))
    }

    fn machine(&self, scenario: &str) -> &Machine {
        self.machines.iter().find(|machine| machine.scenario == scenario).unwrap()
    }

    pub(super) fn instance(&self, scenario: &str) -> &str {
        &self.machine(scenario).instance
    }

    pub(super) fn page(&self, scenario: &str) -> Page {
        self.machine(scenario).exporter.scrape()
    }

    pub(super) fn control(&self, scenario: &str, commands: &[&str]) {
        self.machine(scenario).exporter.control(commands);
    }
}

fn start(scenario: &'static str, flags: &[&str], server: &ApiServer) -> Machine {
    // One GPU does nothing, another is held down and has lost lanes.
    let commands =
        ["gpu 1 set utilization 0", "gpu * set clock_reasons 0x4", "gpu 0 set pcie_width 4"];
    let alone = if scenario == "geforce-3090" { "gpu 0 set utilization 0" } else { "" };
    let setup = Setup::simulate(scenario).frozen().control(&commands).control(&[alone]);
    let path = socket(&setup.directory());
    let kubelet = Kubelet::start(&path);
    let config = setup.file("kubeconfig", &server.kubeconfig());
    let exporter = setup
        .env("KUBECONFIG", &config)
        // No more often than it is scraped: several of them run at a time.
        .args(["--kubernetes", "--kubernetes-enable-owner-labels", "--collect-interval=1s"])
        .args([format!("--pod-resources-kubelet-socket={}", path.display())])
        .args(flags.iter().copied())
        .ready();
    let page = exporter.until_settled();
    hand_out(scenario, &page, &kubelet, server);
    exporter.control(&["gpu 0 xid 31"]);
    exporter.until("pods, owners and the XID", |page| {
        let held = page.samples("nvml_device_allocated").any(|sample| sample.value > 0.0);
        let owned = page.text.contains("owner_name=\"train\"");
        let reported = page.samples("nvml_xid_last_timestamp_seconds").next().is_some();
        held && owned && reported
    });
    Machine { scenario, instance: exporter.address.to_string(), exporter, _kubelet: kubelet }
}

/// The first device goes to a pod of a Deployment, the second to two pods; others stay free. A
/// machine with one device shares that.
fn hand_out(scenario: &str, page: &Page, kubelet: &Kubelet, server: &ApiServer) {
    let instances: Vec<_> = page.samples("nvml_mig_instance_info").collect();
    let split: Vec<&str> = instances.iter().map(|one| one.label("UUID").unwrap()).collect();
    let mut devices: Vec<(String, String)> = instances
        .iter()
        .map(|one| {
            let profile = one.label("GPU_I_PROFILE").unwrap();
            let resource = format!("nvidia.com/mig-{}", profile.replace('+', "."));
            (resource, one.label("mig_uuid").unwrap().to_owned())
        })
        .collect();
    let whole = uuids(page).into_iter().filter(|uuid| !split.contains(&uuid.as_str()));
    devices.extend(whole.map(|uuid| (GPU.to_owned(), uuid)));
    kubelet.can_hand_out(devices.iter().map(|(resource, id)| device(resource, id)).collect());
    let (first, second) = (&devices[0], devices.get(1).unwrap_or(&devices[0]));
    let name = |pod: &str| format!("{pod}-{scenario}");
    let share = |n: usize| format!("{}::{n}", second.1);
    let mut pods = vec![
        pod(&name("notebook-a"), &[(&second.0, &share(0))]),
        pod(&name("notebook-b"), &[(&second.0, &share(1))]),
    ];
    let train = if scenario == "dgx-h100" { "train-0".to_owned() } else { name("train") };
    let id = if devices.len() > 1 { first.1.clone() } else { share(2) };
    pods.push(pod(&train, &[(&first.0, &id)]));
    server.put(Kind::Pod, "ml", &train, owned());
    kubelet.lists(pods);
}

fn owned() -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"uid": "u", "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "train-h1", "uid": "r",
            "controller": true,
        }], "labels": {"pod-template-hash": "h1"}},
        "spec": {"nodeName": "node-a", "containers": []},
        "status": {"phase": "Running"},
    })
}
