//! Starts what learns who uses the devices, as the configuration asks for it.

use std::sync::Arc;

use crate::attribution::Attribution;
use crate::config::Kubernetes;
use crate::exposition::AttributionScheme;
use crate::sampler::{Bell, Latest};

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

/// Nothing is learnt yet.
pub(super) fn start(bell: &Arc<Bell>) -> Arc<Latest<Attribution>> {
    Arc::new(Latest::ringing(Attribution::default(), Arc::clone(bell)))
}
