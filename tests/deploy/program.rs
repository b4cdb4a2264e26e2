//! The exporter reads what the chart gives it: arguments, environment and files of every row.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tempfile::TempDir;

use crate::matrix::{Rendered, rendered};
use crate::support::{items, of_kind, said, text};

pub(crate) const EXPORTER: &str = env!("CARGO_BIN_EXE_nvml-exporter");

/// Variables that others read: the container runtime, the loader, the downward API's names.
const OTHERS: [&str; 8] = [
    "LD_LIBRARY_PATH",
    "NODE_NAME",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_MIG_MONITOR_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "POD_NAME",
    "POD_NAMESPACE",
    "RUST_LOG",
];

/// The exporter as a row's container starts it, on a simulated machine without GPUs. Its
/// `ConfigMap`s and Secrets lie below a folder, and paths to where they are mounted lead there.
pub(crate) fn exporter(rendered: &Rendered, folder: &Path, command: &str) -> Command {
    let mut exporter = Command::new(EXPORTER);
    exporter.arg(command).env_clear().arg("--simulate=no-gpus");
    // Not the cluster of whoever runs the tests.
    exporter.env("KUBECONFIG", folder.join("no-kubeconfig"));
    exporter.args(items(&rendered.container()["args"]).map(text));
    let mounts = mount(rendered, folder);
    for (name, value) in rendered.env() {
        let moved = mounts.iter().find_map(|(path, place)| {
            value.strip_prefix(path.as_str()).map(|rest| format!("{place}{rest}"))
        });
        exporter.env(name, moved.unwrap_or(value));
    }
    exporter
}

/// Writes the files that a pod would see; where each folder is in the pod, and where here.
fn mount(rendered: &Rendered, folder: &Path) -> Vec<(String, String)> {
    let mut places = Vec::new();
    for mounted in items(&rendered.container()["volumeMounts"]) {
        let path = text(&mounted["mountPath"]).to_owned();
        let place = format!("{}{path}", folder.display());
        let mut volumes = items(&rendered.pod()["volumes"]);
        let volume = volumes.find(|volume| volume["name"] == mounted["name"]).unwrap();
        for (name, text) in files(rendered, volume) {
            std::fs::create_dir_all(&place).unwrap();
            // What is in one file may name another.
            let text = text
                .replace("/etc/nvml-exporter", &format!("{}/etc/nvml-exporter", folder.display()));
            std::fs::write(Path::new(&place).join(name), text).unwrap();
        }
        places.push((path, place));
    }
    places
}

/// The files of a volume, if it is one of the chart's own objects.
fn files(rendered: &Rendered, volume: &Value) -> Vec<(String, String)> {
    let (kind, name) = if volume["secret"].is_null() {
        ("ConfigMap", &volume["configMap"]["name"])
    } else {
        ("Secret", &volume["secret"]["secretName"])
    };
    let mut objects = of_kind(&rendered.objects, kind).into_iter();
    let Some(object) = objects.find(|object| object["metadata"]["name"] == *name) else {
        return Vec::new();
    };
    let files = object["data"].as_object().unwrap().iter();
    let read = |file: &Value| match kind {
        "Secret" => String::from_utf8(STANDARD.decode(text(file)).unwrap()).unwrap(),
        _ => text(file).to_owned(),
    };
    files.map(|(name, file)| (name.clone(), read(file))).collect()
}

/// A variable that the exporter does not know would do nothing, silently.
#[test]
fn every_variable_is_one_that_somebody_reads() {
    let help = Command::new(EXPORTER).arg("--help").output().unwrap();
    let help = said(&help);
    let known: BTreeSet<&str> = help
        .split("env:")
        .skip(1)
        .filter_map(|rest| {
            rest.trim_start().split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next()
        })
        .collect();
    assert!(known.contains("DCGM_EXPORTER_LISTEN"), "{known:?}");
    for rendered in rendered() {
        for name in rendered.env().keys() {
            let is_known = known.contains(name.as_str()) || OTHERS.contains(&name.as_str());
            assert!(is_known, "{}: nobody reads {name}", rendered.row.name);
        }
    }
}

/// With nothing to export on this machine, a configuration that is right ends with status 2.
#[test]
fn every_row_is_a_configuration_that_the_exporter_takes() {
    for rendered in rendered() {
        let name = rendered.row.name;
        let folder = TempDir::new().unwrap();
        let output = exporter(rendered, folder.path(), "check").output().unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert!(!said.contains("warning:"), "{name}: {said}");
        let asks = rendered.row.purposes.contains(&"configmap");
        let counters = match name {
            "custom metrics" => format!("counters: {}/etc/", folder.path().display()),
            _ if asks => "counters: ConfigMap gpu:rows\n".to_owned(),
            _ => "counters: built-in\n".to_owned(),
        };
        assert!(said.contains(&counters), "{name}: no {counters:?} in {said}");
        let rows = if name == "custom metrics" { "0 of 1 give" } else { "give values here" };
        assert!(said.contains(rows), "{name}: {said}");
        let pods = said.lines().any(|line| line.starts_with("pods: "));
        let wanted = rendered.env().contains_key("DCGM_EXPORTER_KUBERNETES");
        assert_eq!(pods, wanted, "{name}: {said}");
    }
}

/// What is right is told from what is wrong, or the tests above would say nothing.
#[test]
fn a_wrong_value_would_be_noticed() {
    let defaults = crate::matrix::the("defaults");
    for (name, value) in [
        ("DCGM_EXPORTER_INTERVAL", "often"),
        ("DCGM_EXPORTER_LISTEN", "nowhere"),
        ("DCGM_EXPORTER_DEVICES_STR", "x"),
        ("NVML_EXPORTER_HOST_LABEL", "host"),
        ("NVML_EXPORTER_ATTRIBUTION", "nowhere"),
        ("DCGM_EXPORTER_KUBERNETES", "maybe"),
    ] {
        let folder = TempDir::new().unwrap();
        let output = exporter(defaults, folder.path(), "check").env(name, value).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{name}={value}: {}", said(&output));
        assert!(said(&output).contains(name), "{}", said(&output));
    }
}
