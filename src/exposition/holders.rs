//! Who holds which device, as families of their own: to join on, to count, to see what the
//! kubelet's ids came to. They are about devices and nodes, not about series of a pod.

use std::collections::BTreeSet;

use super::labels::Block;
use super::roster::Member;
use super::sharing::Sharing;
use super::split::Split;
use super::text::Writer;
use super::usage::missing;
use crate::attribution::{Allocations, DeviceKey};
use crate::catalogue::Value;
use crate::sampler::snapshot::{GpuReading, InstanceIdentity};
use crate::usage::{UNKNOWN_UID, Usage};

const ONE: Value = Value::Int(1);

/// Writes the families; nothing unless pods are asked for and known.
pub(super) fn write(
    writer: &mut Writer,
    members: &[Member<'_>],
    sharing: &Sharing<'_>,
    usage: &Usage,
) {
    if let Some(allocations) = sharing.attribution.allocations.as_deref() {
        pods(writer, members, sharing);
        allocated(writer, members, sharing);
        resources(writer, allocations, sharing);
        ids(writer, sharing);
    }
    missing_splits(writer, members, sharing, usage);
}

fn pods(writer: &mut Writer, members: &[Member<'_>], sharing: &Sharing<'_>) {
    const NAME: &str = "nvml_device_pod_info";
    writer.gauge(NAME, "Which container holds which GPU or MIG instance.", |writer| {
        each_device(members, |member, instance, key| {
            for holder in sharing.untold(key) {
                let info = sharing.info(holder);
                let block = block(member, instance, info, sharing);
                writer.sample(NAME, block.as_str(), ONE);
            }
        });
    });
}

fn allocated(writer: &mut Writer, members: &[Member<'_>], sharing: &Sharing<'_>) {
    const NAME: &str = "nvml_device_allocated";
    writer.gauge(NAME, "Whether a pod holds the GPU or MIG instance.", |writer| {
        each_device(members, |member, instance, key| {
            // Of a GPU in MIG mode its instances are what is handed out.
            let held = !sharing.assignment.of(key).is_empty();
            if instance.is_none() && !member.instances.is_empty() && !held {
                return;
            }
            let block = block(member, instance, Vec::new(), sharing);
            writer.sample(NAME, block.as_str(), Value::Int(i64::from(held)));
        });
    });
}

fn resources(writer: &mut Writer, allocations: &Allocations, sharing: &Sharing<'_>) {
    const ALLOCATABLE: &str = "nvml_node_allocatable_devices";
    const ALLOCATED: &str = "nvml_node_allocated_devices";
    const FREE: &str = "nvml_node_free_devices";
    let allocatable = allocations.allocatable.as_ref();
    let allocated = &sharing.assignment.allocated;
    let mut names: BTreeSet<&str> = allocated.keys().copied().collect();
    names.extend(allocatable.iter().flat_map(|all| all.keys()).map(|name| &**name));
    let mut family = |name: &str, help: &str, of: &dyn Fn(&str) -> Option<usize>| {
        writer.gauge(name, help, |writer| {
            for resource in &names {
                let Some(count) = of(resource) else { continue };
                let labels = [("resource", *resource)].into_iter();
                let block = Block::of(labels.chain(sharing.settings.labels.host_labels()));
                writer.sample(name, block.as_str(), count_value(count));
            }
        });
    };
    let held = |resource: &str| allocated.get(resource).copied().unwrap_or_default();
    let all = |resource: &str| allocatable?.get(resource).copied();
    family(
        ALLOCATABLE,
        "Healthy devices, or shares of devices, that the node can hand out, by resource name.",
        &all,
    );
    family(
        ALLOCATED,
        "Devices, or shares of devices, that pods hold, by resource name.",
        &|name| Some(held(name)),
    );
    family(FREE, "Devices, or shares of devices, that no pod holds, by resource name.", &|name| {
        Some(all(name)?.saturating_sub(held(name)))
    });
}

fn ids(writer: &mut Writer, sharing: &Sharing<'_>) {
    const UNMATCHED: &str = "nvml_exporter_pod_resources_ids_unmatched";
    let ids = &sharing.assignment.ids;
    for (name, help, count) in [
        (
            "nvml_exporter_pod_resources_ids",
            "Device ids that the kubelet lists with pods.",
            ids.seen,
        ),
        (
            "nvml_exporter_pod_resources_ids_matched",
            "Those that name a device of this node.",
            ids.matched,
        ),
        (
            "nvml_exporter_pod_resources_ids_ambiguous",
            "Those that only one pod can hold and several are listed with.",
            ids.ambiguous,
        ),
    ] {
        writer.gauge(name, help, |writer| writer.sample(name, " ", count_value(count)));
    }
    writer.gauge(UNMATCHED, "Those that name no device of this node.", |writer| {
        for (reason, count) in &ids.unmatched {
            let block = Block::of([("reason", *reason)]);
            writer.sample(UNMATCHED, block.as_str(), count_value(*count));
        }
    });
}

/// Says where the values of a device's users are missing, and why.
fn missing_splits(
    writer: &mut Writer,
    members: &[Member<'_>],
    sharing: &Sharing<'_>,
    usage: &Usage,
) {
    const NAME: &str = "nvml_exporter_process_split_missing";
    writer.gauge(NAME, "Families that are not divided among the GPU's users.", |writer| {
        for member in members {
            let Some(reading) = member.reading() else { continue };
            let mut all: Vec<(String, &str)> = missing(usage, member.identity.index).collect();
            if sharing.settings.attribution.split && sharing.attribution.allocations.is_some() {
                all.extend(unsplit(member, reading, sharing));
            }
            for (family, reason) in &all {
                let further = vec![("family", family.as_str()), ("reason", *reason)];
                let block = block(member, None, further, sharing);
                writer.sample(NAME, block.as_str(), ONE);
            }
        }
    });
}

fn unsplit(
    member: &Member<'_>,
    reading: &GpuReading,
    sharing: &Sharing<'_>,
) -> Vec<(String, &'static str)> {
    let whole = DeviceKey { gpu: member.identity.index, instance: None };
    let instances = member.instances.iter().map(|one| one.identity.gpu_instance);
    let mut devices = instances.map(|id| DeviceKey { instance: Some(id), ..whole });
    let unknown = sharing.lacks_uid(whole) || devices.any(|key| sharing.lacks_uid(key));
    let of = |(family, split): (&str, Split)| {
        let unread = reading.processes.as_ref().and_then(|processes| split.missing(processes));
        let reasons = unread.into_iter().chain(unknown.then_some(UNKNOWN_UID));
        reasons.map(|reason| (family.to_owned(), reason)).collect::<Vec<_>>()
    };
    Split::ALL.into_iter().flat_map(of).collect()
}

fn each_device<'a>(
    members: &[Member<'a>],
    mut visit: impl FnMut(&Member<'a>, Option<&InstanceIdentity>, DeviceKey),
) {
    for member in members {
        let whole = DeviceKey { gpu: member.identity.index, instance: None };
        visit(member, None, whole);
        for instance in &member.instances {
            let identity = &instance.identity;
            let key = DeviceKey { instance: Some(identity.gpu_instance), ..whole };
            visit(member, Some(identity), key);
        }
    }
}

/// The labels to join on, then the others.
fn block<'a>(
    member: &Member<'a>,
    instance: Option<&InstanceIdentity>,
    further: Vec<(&'a str, &'a str)>,
    sharing: &Sharing<'a>,
) -> Block<'a> {
    let scheme = &sharing.settings.labels;
    let gpu = member.identity.index.to_string();
    let id = instance.map(|instance| instance.gpu_instance.to_string());
    let mut labels = vec![("gpu", gpu.as_str()), (scheme.uuid_name(), &member.identity.uuid)];
    if let (Some(instance), Some(id)) = (instance, &id) {
        labels.extend([("GPU_I_PROFILE", instance.profile.as_str()), ("GPU_I_ID", id)]);
    }
    labels.extend(scheme.host_labels());
    let taken: Vec<&str> = labels.iter().map(|(name, _)| *name).collect();
    let further = further.into_iter().filter(|(name, _)| !taken.contains(name));
    Block::of(labels.iter().copied().chain(further))
}

fn count_value(count: usize) -> Value {
    Value::Uint(count as u64)
}
