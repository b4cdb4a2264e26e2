//! What the kubelet says pods hold, parsed and sorted.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::DeviceId;

/// One answer of the kubelet's pod-resources service (`List`, `GetAllocatableResources`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allocations {
    /// Devices that containers hold, sorted, each once. Without the exporter's own pod, ignored
    /// pods and claims with admin access.
    pub holdings: Vec<Holding>,
    /// Ids that the node can hand out, by resource name; `None` if the kubelet does not say.
    pub allocatable: Option<BTreeMap<Arc<str>, usize>>,
    /// GPU-like ids of accepted resources whose form is unknown: resource name and id, sorted.
    pub unknown: Vec<(Arc<str>, String)>,
}

/// One device id that one container holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holding {
    /// Who holds it.
    pub container: Arc<Container>,
    /// The resource's name; for a DRA claim the driver's.
    pub resource: Arc<str>,
    /// What the id names.
    pub id: DeviceId,
    /// The DRA claim that it came through.
    pub claim: Option<Arc<Claim>>,
    /// The number of the poll that first showed this pod with this id: of two pods that hold an
    /// id which only one can hold, the one that came later has it.
    pub since: u64,
}

/// A container of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Container {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The container's name.
    pub name: String,
}

/// A device of a DRA claim (KEP-3063), as pod-resources tells it (KEP-3695).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claim {
    /// The `ResourceClaim`'s name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The driver that serves it.
    pub driver: String,
    /// The driver's pool, usually the node's name.
    pub pool: String,
    /// The device's name in the pool.
    pub device: String,
    /// Which share of a device with consumable capacity (KEP-5075); empty if it is not shared so.
    pub share: String,
}
