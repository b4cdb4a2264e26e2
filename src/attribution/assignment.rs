//! Holdings joined with the devices of a snapshot.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Allocations, Attribution, Claim, Container, Holding, PodFacts, PodTable, Target};
use crate::sampler::snapshot::Snapshot;

mod inventory;

use inventory::Inventory;

/// A GPU by its index, or one of its MIG instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceKey {
    /// `GpuIdentity::index`.
    pub gpu: u32,
    /// GPU instance id of a MIG device.
    pub instance: Option<u32>,
}

/// One use of a device by a container.
#[derive(Debug, Clone, Copy)]
pub struct Holder<'a> {
    /// Who.
    pub container: &'a Container,
    /// Which share, of a device that several pods share.
    pub replica: Option<&'a str>,
    /// The resource's name, or the DRA driver's.
    pub resource: &'a str,
    /// The DRA claim that it came through.
    pub claim: Option<&'a Claim>,
    /// What the API server says of the pod, if it is asked and has answered.
    pub facts: Option<&'a PodFacts>,
    /// The MIG device, if it is one.
    pub mig: Option<Mig<'a>>,
}

/// A MIG device as its claim's labels name it.
#[derive(Debug, Clone, Copy)]
pub struct Mig<'a> {
    /// The UUID of its first compute instance; empty if the driver told none.
    pub uuid: &'a str,
    /// `1g.18gb`, …
    pub profile: &'a str,
}

/// Who holds which device.
#[derive(Debug, Default)]
pub struct Assignment<'a> {
    holders: BTreeMap<DeviceKey, Vec<Holder<'a>>>,
    /// What became of the ids that the kubelet listed.
    pub ids: IdCounts,
    /// Ids that pods hold, by resource name.
    pub allocated: BTreeMap<&'a str, usize>,
    /// What pods hold that is no device of this node.
    pub strangers: Vec<&'a Holding>,
}

/// What became of the ids that the kubelet listed, each use by a container counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdCounts {
    /// Ids of accepted resources.
    pub seen: usize,
    /// Those that name a device of this node.
    pub matched: usize,
    /// Those that do not, by a reason that is a label: see [`assign`].
    pub unmatched: BTreeMap<&'static str, usize>,
    /// Those that only one pod can hold, and that several are listed with from the first look on.
    pub ambiguous: usize,
}

/// The id's form is not known.
pub const UNKNOWN_FORM: &str = "unknown_form";
/// No such device is on the node now.
pub const NO_SUCH_DEVICE: &str = "no_such_device";
/// The GPU is passed through to a virtual machine, where this driver does not see it.
pub const PASSTHROUGH: &str = "passthrough";
/// The id is a mediated device's: a vGPU of a virtual machine.
pub const VGPU: &str = "vgpu";

impl<'a> Assignment<'a> {
    /// Who holds a device: sorted by namespace, pod, container and share.
    #[must_use]
    pub fn of(&self, device: DeviceKey) -> &[Holder<'a>] {
        self.holders.get(&device).map_or(&[], Vec::as_slice)
    }

    /// All devices that are held, each with its holders.
    pub fn iter(&self) -> impl Iterator<Item = (DeviceKey, &[Holder<'a>])> {
        self.holders.iter().map(|(device, holders)| (*device, holders.as_slice()))
    }
}

/// Joins what pods hold with the devices of a snapshot.
///
/// A pod that has ended holds nothing. An id that only one pod can hold belongs to the pod that
/// was seen with it last; if several have been there from the first look on, all are kept and
/// counted as ambiguous.
#[must_use]
pub fn assign<'a>(snapshot: &'a Snapshot, attribution: &'a Attribution) -> Assignment<'a> {
    let mut assignment = Assignment::default();
    let Some(allocations) = attribution.allocations.as_deref() else { return assignment };
    let inventory = Inventory::new(snapshot);
    let running = running(allocations, &attribution.pods);
    let newest = newest(&running);
    assignment.ids.seen = running.len() + allocations.unknown.len();
    if !allocations.unknown.is_empty() {
        assignment.ids.unmatched.insert(UNKNOWN_FORM, allocations.unknown.len());
    }
    let mut counted = HashSet::new();
    for (holding, facts) in running {
        if let Some(rivals) = newest.get(&holding.id).filter(|_| is_exclusive(holding)) {
            if holding.since < rivals.since {
                continue;
            }
            if rivals.pods.len() > 1 {
                assignment.ids.ambiguous += 1;
            }
        }
        if counted.insert((&holding.resource, &holding.id)) {
            *assignment.allocated.entry(&holding.resource).or_default() += 1;
        }
        let devices = inventory.find(&holding.id.target);
        if devices.is_empty() {
            let reason = unmatched(&holding.id.target);
            *assignment.ids.unmatched.entry(reason).or_default() += 1;
            assignment.strangers.push(holding);
            continue;
        }
        assignment.ids.matched += 1;
        for device in devices {
            assignment.holders.entry(device).or_default().push(Holder {
                container: &holding.container,
                replica: holding.id.replica.as_deref(),
                resource: &holding.resource,
                claim: holding.claim.as_deref(),
                facts,
                mig: inventory.mig(device),
            });
        }
    }
    for holders in assignment.holders.values_mut() {
        holders.sort_by_key(|holder| (holder.container, holder.replica, holder.claim));
        holders.dedup_by_key(|holder| (holder.container, holder.replica, holder.claim));
    }
    assignment
}

/// The holdings of pods that have not ended, with what is known of the pods.
fn running<'a>(
    allocations: &'a Allocations,
    pods: &'a PodTable,
) -> Vec<(&'a Holding, Option<&'a PodFacts>)> {
    let facts = |holding: &Holding| pods.get(&holding.container.namespace, &holding.container.pod);
    allocations
        .holdings
        .iter()
        .map(|holding| (holding, facts(holding)))
        .filter(|(_, facts)| facts.is_none_or(|facts| !facts.finished))
        .collect()
}

/// The newest pods that are listed with one id.
#[derive(Debug, Default)]
struct Newest<'a> {
    since: u64,
    pods: HashSet<(&'a str, &'a str)>,
}

fn newest<'a>(
    running: &[(&'a Holding, Option<&PodFacts>)],
) -> HashMap<&'a super::DeviceId, Newest<'a>> {
    let mut newest: HashMap<_, Newest<'_>> = HashMap::new();
    for (holding, _) in running {
        let entry = newest.entry(&holding.id).or_default();
        if holding.since > entry.since {
            *entry = Newest { since: holding.since, ..Newest::default() };
        }
        if holding.since == entry.since {
            entry.pods.insert((&holding.container.namespace, &holding.container.pod));
        }
    }
    newest
}

/// Device plugins hand an id to one pod at a time; claims can be shared.
fn is_exclusive(holding: &Holding) -> bool {
    holding.claim.is_none() && !matches!(holding.id.target, Target::All | Target::Tegra)
}

fn unmatched(target: &Target) -> &'static str {
    match target {
        Target::Pci(_) | Target::Vfio(_) => PASSTHROUGH,
        Target::Mdev(_) => VGPU,
        _ => NO_SUCH_DEVICE,
    }
}

#[cfg(test)]
mod tests;
