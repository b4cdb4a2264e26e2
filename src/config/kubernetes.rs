//! Who holds a GPU: what was typed about pods, containers and jobs.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum as _;

use super::args::KubernetesArgs;
use super::check::path;
use super::duration::{self, parse_go};
use super::findings::{Findings, items};
use super::host;
use super::machine::Machine;
use super::settings::{GpuIdType, Kubernetes};
use super::typed::Typed;
use crate::exposition::Show;
use crate::usage::By;

/// The kubelet answers 100 questions a second to all who ask; one a second is plenty.
const POLL_MIN: Duration = Duration::from_secs(1);

pub(super) fn check(
    args: &KubernetesArgs,
    interval: Duration,
    machine: &dyn Machine,
    found: &mut Findings,
) -> Kubernetes {
    let texts = |typed: &[Typed]| items(typed).map(|(_, item)| item.to_owned()).collect();
    let enabled = found.switch(&args.kubernetes);
    Kubernetes {
        enabled,
        node_name: host::node_name(machine),
        pod_labels: found.switch(&args.kubernetes_enable_pod_labels),
        pod_uid: found.switch(&args.kubernetes_enable_pod_uid),
        gpu_id_type: found.choice::<GpuIdType>(&args.kubernetes_gpu_id_type),
        pod_label_allowlist: texts(&args.kubernetes_pod_label_allowlist_regex),
        pod_annotation_allowlist: texts(&args.kubernetes_pod_annotation_allowlist_regex),
        owner_labels: found.switch(&args.kubernetes_enable_owner_labels),
        node_label: found.switch(&args.kubernetes_enable_node_label),
        ignore_pods: patterns(&args.kubernetes_ignore_pods, found),
        show: found.choice::<Show>(&args.attribution),
        poll_interval: poll_interval(args.pod_resources_interval.as_ref(), interval, found),
        own_pod: enabled.then(|| own_pod(machine)).flatten(),
        virtual_gpus: found.switch(&args.kubernetes_virtual_gpus),
        dra: found.switch(&args.kubernetes_enable_dra),
        kubelet_socket: kubelet_socket(&args.pod_resources_kubelet_socket, found),
        resource_names: texts(&args.nvidia_resource_names),
        hpc_job_mapping: path(args.hpc_job_mapping_dir.as_ref()),
        usage: usage(args.usage_by.as_ref(), enabled, found),
        usage_uids: args.usage_by.as_ref().is_some_and(|typed| !typed.text.is_empty()),
        container_runtime: container_runtime(args, enabled, found),
    }
}

/// An absolute path; the gRPC form `unix:///path` is one, too.
fn kubelet_socket(typed: &Typed, found: &mut Findings) -> PathBuf {
    let path = PathBuf::from(typed.text.strip_prefix("unix://").unwrap_or(&typed.text));
    if !path.is_absolute() {
        found.refuse(typed, "is not an absolute path; allowed: the path of the kubelet's socket, such as /var/lib/kubelet/pod-resources/kubelet.sock");
    }
    path
}

/// A pod left out by mistake would be a pod that nobody sees: a wrong pattern is refused.
fn patterns(typed: &[Typed], found: &mut Findings) -> Vec<String> {
    let mut patterns = Vec::new();
    for (typed, item) in items(typed) {
        match regex::Regex::new(item) {
            Ok(_) => patterns.push(item.to_owned()),
            Err(error) => {
                let error = error.to_string();
                let why = error.lines().last().unwrap_or_default();
                found.refuse(typed, format!("{item} is not a regular expression: {why}"));
            }
        }
    }
    patterns
}

fn poll_interval(typed: Option<&Typed>, passes: Duration, found: &mut Findings) -> Duration {
    let Some(typed) = typed.filter(|typed| !typed.text.is_empty()) else {
        return passes.max(POLL_MIN);
    };
    match parse_go(&typed.text).and_then(duration::Nanoseconds::to_duration) {
        Some(length) if length >= POLL_MIN => length,
        _ => {
            let allowed = duration::ALLOWED;
            found.refuse(typed, format!("is not 1s or more; allowed: {allowed}"));
            POLL_MIN
        }
    }
}

fn usage(typed: Option<&Typed>, kubernetes: bool, found: &mut Findings) -> Vec<By> {
    let Some(typed) = typed.filter(|typed| !typed.text.trim().is_empty()) else {
        return if kubernetes { vec![By::Pod] } else { Vec::new() };
    };
    let mut kinds = Vec::new();
    for item in typed.text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        match By::from_str(item, false) {
            Ok(By::Pod) if !kubernetes => {
                found.refuse(typed, "pod needs --kubernetes, by which it is known who holds a GPU");
            }
            Ok(by) if !kinds.contains(&by) => kinds.push(by),
            Ok(_) => {}
            Err(_) if item == "none" => {}
            Err(_) => found.refuse(
                typed,
                format!(
                    "{item} is unknown; allowed: none, or any of pod, container, user, unit, \
                    slurm-job, process with commas between them"
                ),
            ),
        }
    }
    let none = typed.text.split(',').any(|item| item.trim() == "none");
    if none && !kinds.is_empty() {
        found.refuse(typed, "none stands alone");
    } else if !none && kinds.is_empty() && found.mistakes.is_empty() {
        found.refuse(typed, "names no kind; none is written none");
    }
    kinds.sort_unstable();
    kinds
}

/// As the downward API tells it; else a pod's host name is its name, unless it has the node's.
fn own_pod(machine: &dyn Machine) -> Option<(String, Option<String>)> {
    let told = |name| machine.environment(name).filter(|text| !text.is_empty());
    let namespace = told("POD_NAMESPACE");
    if let Some(name) = told("POD_NAME") {
        return Some((name, namespace));
    }
    let name = machine.host_name().ok()?;
    (Some(&name) != host::node_name(machine).as_ref()).then_some((name, namespace))
}

/// Container labels need a socket, and give way to Kubernetes, as in dcgm-exporter.
fn container_runtime(
    args: &KubernetesArgs,
    kubernetes: bool,
    found: &mut Findings,
) -> Option<PathBuf> {
    let wanted = &args.container_labels;
    let socket = path(args.container_runtime_socket.as_ref());
    if !found.switch(wanted) {
        return None;
    }
    if kubernetes {
        found.warn(wanted, "ignored, for --kubernetes is on");
        return None;
    }
    if socket.is_none() {
        found.refuse(wanted, "needs --container-runtime-socket");
    }
    found.warn(wanted, "container labels are not served yet");
    socket
}
