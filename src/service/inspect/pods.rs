//! `check`'s part on pods: what the kubelet lists, and what matched and why not.

use super::line;
use crate::attribution::{DeviceKey, Holding, assign, poller};
use crate::config::Kubernetes;
use crate::sampler::snapshot::Snapshot;
use crate::service::attribution::poll_settings;

/// More ids that match nothing are not listed.
const STRANGERS: usize = 20;

/// Asks the kubelet once and reads the job files; whether there is nothing to complain of: the
/// kubelet has answered, and if it lists ids, one has matched at least.
pub(super) fn report(out: &mut String, kubernetes: &Kubernetes, snapshot: &Snapshot) -> bool {
    if !kubernetes.enabled && kubernetes.hpc_job_mapping.is_none() {
        return true;
    }
    let (attribution, seen) = match poller::look(&poll_settings(kubernetes)) {
        Ok(found) => found,
        Err(error) => {
            line(out, format_args!("pods: {error}"));
            return false;
        }
    };
    for ((gpu, instance), jobs) in &attribution.jobs.0 {
        let device = device(DeviceKey { gpu: *gpu, instance: *instance });
        line(out, format_args!("jobs: {device}: {}", jobs.join(", ")));
    }
    let Some(allocations) = attribution.allocations.as_deref() else { return true };
    let assignment = assign(snapshot, &attribution);
    let ids = &assignment.ids;
    line(
        out,
        format_args!(
            "pods: {} pods with {} containers hold {} device ids, {} of them here",
            seen.pods, seen.containers, ids.seen, ids.matched
        ),
    );
    for (key, holders) in assignment.iter() {
        for holder in holders {
            let container = holder.container;
            line(
                out,
                format_args!(
                    "  {}: {}/{} {} ({})",
                    device(key),
                    container.namespace.escape_debug(),
                    container.pod.escape_debug(),
                    container.name.escape_debug(),
                    holder.resource.escape_debug()
                ),
            );
        }
    }
    for (reason, count) in &ids.unmatched {
        line(out, format_args!("  unmatched: {count} ids: {reason}"));
    }
    strangers(out, &assignment.strangers);
    for (resource, id) in &allocations.unknown {
        line(
            out,
            format_args!("  unknown form: {} ({})", id.escape_debug(), resource.escape_debug()),
        );
    }
    if ids.ambiguous > 0 {
        line(out, format_args!("  ambiguous: {} ids", ids.ambiguous));
    }
    for (resource, count) in &seen.other {
        line(out, format_args!("  not a GPU's: {count} ids of {resource}"));
    }
    if ids.seen > 0 && ids.matched == 0 {
        line(
            out,
            format_args!(
                "  no id matches: do the pods' GPUs belong to this node, and does --devices \
                 select them?"
            ),
        );
        return false;
    }
    true
}

fn strangers(out: &mut String, strangers: &[&Holding]) {
    for stranger in strangers.iter().take(STRANGERS) {
        let container = &stranger.container;
        let place = format!("{}/{} {}", container.namespace, container.pod, container.name);
        let (target, resource) = (&stranger.id.target, stranger.resource.escape_debug());
        line(out, format_args!("    {target:?} ({resource}) of {}", place.escape_debug()));
    }
}

fn device(key: DeviceKey) -> String {
    match key.instance {
        Some(instance) => format!("GPU {} instance {instance}", key.gpu),
        None => format!("GPU {}", key.gpu),
    }
}
