//! Starts what learns who uses the devices, as the configuration asks for it.

use std::sync::Arc;

use regex::Regex;

use crate::attribution::kubelet::Limits;
use crate::attribution::poller::{self, Metadata, PollSettings};
use crate::attribution::{Attribution, OwnPod};
use crate::catalogue::Selection;
use crate::cluster::labels::Allowed;
use crate::cluster::{self, ClusterSettings, LabelRules};
use crate::config::Kubernetes;
use crate::exposition::AttributionScheme;
use crate::sampler::{Bell, Latest};
use crate::telemetry::Telemetry;
use crate::usage::By;

/// How the users of devices are shown.
pub(super) fn scheme(kubernetes: &Kubernetes) -> AttributionScheme {
    AttributionScheme {
        pods: kubernetes.enabled,
        show: kubernetes.show,
        split: kubernetes.virtual_gpus,
        dra: kubernetes.dra,
        pod_uid: kubernetes.pod_uid,
        node: kubernetes.node_name.clone().filter(|_| kubernetes.node_label),
    }
}

/// Starts asking; has to be called within a tokio runtime. Pod labels may not take the names of
/// the selection's labels.
pub(super) fn start(
    kubernetes: &Kubernetes,
    selection: &Selection,
    telemetry: Telemetry,
    bell: &Arc<Bell>,
) -> std::io::Result<Arc<Latest<Attribution>>> {
    if !kubernetes.enabled && kubernetes.hpc_job_mapping.is_none() {
        return Ok(Arc::new(Latest::ringing(Attribution::default(), Arc::clone(bell))));
    }
    let reserved = selection.labels.iter().map(|row| row.name.to_string()).collect();
    let cluster = cluster::start(cluster_settings(kubernetes, reserved));
    let metadata =
        Metadata { pods: cluster.pods, admin_claims: cluster.admin_claims, claims: cluster.claims };
    poller::start(poll_settings(kubernetes), telemetry, metadata, bell)
}

/// How the kubelet is asked.
pub(super) fn poll_settings(kubernetes: &Kubernetes) -> PollSettings {
    // The configuration holds none that is wrong.
    let ignore = kubernetes.ignore_pods.iter().filter_map(|text| Regex::new(text).ok()).collect();
    let own_pod = kubernetes.own_pod.clone();
    PollSettings {
        kubernetes: kubernetes.enabled,
        socket: kubernetes.kubelet_socket.clone(),
        interval: kubernetes.poll_interval,
        resource_names: kubernetes.resource_names.clone(),
        own_pod: own_pod.map(|(name, namespace)| OwnPod { namespace, name }),
        ignore,
        jobs: kubernetes.hpc_job_mapping.clone(),
        limits: Limits::default(),
        keep: poller::keep_for(kubernetes.poll_interval),
    }
}

fn cluster_settings(kubernetes: &Kubernetes, reserved: Vec<String>) -> ClusterSettings {
    let allowed = |flag: &str, patterns: &[String], all_without: bool| {
        let (allowed, wrong) = Allowed::by(patterns, all_without);
        for pattern in wrong {
            tracing::warn!("{flag}: {pattern} is not a regular expression, and left out");
        }
        allowed
    };
    let labels = if kubernetes.pod_labels {
        let flag = "--kubernetes-pod-label-allowlist-regex";
        allowed(flag, &kubernetes.pod_label_allowlist, true)
    } else {
        Allowed::Nothing
    };
    let flag = "--kubernetes-pod-annotation-allowlist-regex";
    let annotations = allowed(flag, &kubernetes.pod_annotation_allowlist, false);
    let wanted = kubernetes.pod_labels
        || kubernetes.pod_uid
        || kubernetes.owner_labels
        || kubernetes.virtual_gpus
        || kubernetes.usage_uids && kubernetes.usage.contains(&By::Pod)
        || !kubernetes.pod_annotation_allowlist.is_empty();
    let rules = LabelRules { labels, annotations, owners: kubernetes.owner_labels, reserved };
    ClusterSettings {
        node: kubernetes.node_name.clone(),
        pods: (kubernetes.enabled && wanted).then_some(rules),
        claims: kubernetes.enabled && kubernetes.dra,
    }
}
