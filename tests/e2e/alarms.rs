//! What happens to a GPU, from the simulator to the message: a real Prometheus with the project's
//! rules, a real Alertmanager with its example. Of each fault one alert is told, the right one, and
//! it ends with the fault. All times of the rules are shortened alike; what they compare is not.

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::Value;

use crate::support::alertmanager::Alertmanager;
use crate::support::prometheus::Prometheus;
use crate::support::{Exporter, Setup, until};

const RUNBOOKS: &str = "https://github.com/nvml-exporter/nvml-exporter/blob/main/docs/runbooks";

/// The data is the simulator's, which has its alert.
const ALWAYS: &str = "NvmlExporterSimulated";

fn text(path: &str) -> String {
    std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The rules with each time a thirtieth of what it is, and no `for` beyond a second.
fn shortened(path: &str) -> String {
    let rules = text(path);
    let pauses = Regex::new(r"(?m)^(\s+for:) \S+$").unwrap();
    let rules = pauses.replace_all(&rules, "$1 1s");
    let windows = Regex::new(r"\[(\d+)([smhd])\]").unwrap();
    let rules = windows.replace_all(&rules, |found: &regex::Captures<'_>| {
        let unit = match &found[2] {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            _ => 86400,
        };
        format!("[{}s]", (found[1].parse::<u64>().unwrap() * unit).div_ceil(30))
    });
    // How long an XID is shown.
    rules.replace("< 900", "< 25")
}

/// The example, with messages at once and a receiver that nobody listens at.
fn receivers() -> String {
    let waits = Regex::new(r"(group_wait|group_interval): \S+").unwrap();
    waits.replace_all(&text("alerts/alertmanager-example.yml"), "$1: 1s").into_owned()
}

struct Watched {
    exporter: Exporter,
    prometheus: Prometheus,
    alertmanager: Alertmanager,
}

/// An alert as it is told: its name, and who is told.
type Told = BTreeSet<(String, String)>;

impl Watched {
    fn start(calm: &[&str]) -> Self {
        let setup = Setup::simulate("dgx-h100").args(["--xid-count-window-size=10s"]);
        let exporter = setup.control(calm).ready();
        let alertmanager = Alertmanager::configured(&receivers());
        let files = ["alerts/gpu-alerts.yml", "alerts/gpu-fleet-rules.yml"];
        let files: Vec<(&str, String)> =
            files.iter().map(|path| (path.rsplit('/').next().unwrap(), shortened(path))).collect();
        let config = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}\n\
             rule_files: [gpu-alerts.yml, gpu-fleet-rules.yml]\n\
             alerting:\n\
             \x20 alertmanagers: [{{static_configs: [{{targets: ['{}']}}]}}]\n\
             scrape_configs:\n\
             - job_name: nvml-exporter\n\
             \x20 static_configs: [{{targets: ['{}'], labels: {{node: node-a}}}}]\n",
            alertmanager.address, exporter.address
        );
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let prometheus = Prometheus::configured(&config, &files);
        Self { exporter, prometheus, alertmanager }
    }

    fn told(&self) -> Told {
        let mut told = Told::new();
        for group in self.alertmanager.groups() {
            for alert in group["alerts"].as_array().unwrap() {
                let name = alert["labels"]["alertname"].as_str().unwrap();
                let receiver = group["receiver"]["name"].as_str().unwrap();
                told.insert((name.to_owned(), receiver.to_owned()));
            }
        }
        told
    }

    /// Waits for this and nothing else to be told, beside that the data is simulated.
    fn until_told(&self, alerts: &[(&str, &str)]) {
        let mut wanted: Told =
            alerts.iter().map(|(name, to)| ((*name).to_owned(), (*to).to_owned())).collect();
        wanted.insert((ALWAYS.to_owned(), "tickets".to_owned()));
        until(
            &format!("{wanted:?}"),
            || (self.told() == wanted).then_some(()),
            || {
                format!(
                    "{:?}\n{:#?}\n{}",
                    self.told(),
                    self.prometheus.query("ALERTS"),
                    self.prometheus.log()
                )
            },
        );
        // It stays so: what is late would come now.
        let rounds = self.rounds();
        until("further rounds", || (self.rounds() > rounds + 4.0).then_some(()), String::new);
        assert_eq!(self.told(), wanted);
    }

    /// How often the rules were looked at.
    fn rounds(&self) -> f64 {
        self.prometheus.number("count_over_time(up[1h])").unwrap_or_default()
    }

    fn alert(&self, name: &str) -> Value {
        let groups = self.alertmanager.groups();
        let mut alerts = groups.iter().flat_map(|group| group["alerts"].as_array().unwrap());
        let found = alerts.find(|alert| alert["labels"]["alertname"] == name);
        found.unwrap_or_else(|| panic!("{name}: {groups:?}")).clone()
    }
}

#[test]
fn each_fault_is_told_once_and_by_its_name() {
    let watched = Watched::start(&[]);
    watched.until_told(&[]);
    for (fault, remedy, alert, receiver, label) in [
        ("xid 79", None, "GpuXidFatal", "page", Some(("xid", "79"))),
        (
            "set ecc_dbe_volatile 2",
            Some("set ecc_dbe_volatile 0"),
            "GpuEccUncorrectable",
            "page",
            None,
        ),
        // Five seconds within the shortened five minutes.
        ("add violation_hw_thermal 5000000000", None, "GpuHardwareSlowdown", "page", None),
        ("lost", Some("restore"), "GpuLost", "page", Some(("reason", "lost"))),
        ("link 5 set state down", Some("link 5 set state up"), "GpuNvlinkDown", "page", None),
    ] {
        watched.exporter.control(&[&format!("gpu 3 {fault}")]);
        watched.until_told(&[(alert, receiver)]);
        let told = watched.alert(alert);
        let (labels, annotations) = (&told["labels"], &told["annotations"]);
        for (name, value) in [("gpu", "3"), ("hostname", "node-a"), ("node", "node-a")] {
            assert_eq!(labels[name], value, "{told}");
        }
        if let Some((name, value)) = label {
            assert_eq!(labels[name], value, "{told}");
        }
        assert!(labels["pod"].is_null() && labels["GPU_I_ID"].is_null(), "{told}");
        let summary = annotations["summary"].as_str().unwrap();
        assert!(summary.contains("GPU 3") && summary.contains("node-a"), "{summary}");
        assert!(!summary.contains("<no value>"), "{summary}");
        assert_eq!(annotations["runbook_url"], format!("{RUNBOOKS}/{alert}.md"));
        if let Some(remedy) = remedy {
            watched.exporter.control(&[&format!("gpu 3 {remedy}")]);
        }
        watched.until_told(&[]);
    }
}

/// Two GPUs of a node fail: that is one message.
#[test]
fn alerts_of_a_node_are_grouped() {
    let watched = Watched::start(&[]);
    watched.exporter.control(&["gpu 1 xid 119", "gpu 6 xid 119"]);
    watched.until_told(&[("GpuXidFatal", "page")]);
    let groups = watched.alertmanager.groups();
    let group = groups.iter().find(|group| group["receiver"]["name"] == "page").unwrap();
    assert_eq!(group["alerts"].as_array().unwrap().len(), 2, "{group}");
    assert_eq!(group["labels"]["hostname"], "node-a");
}
