//! Who holds which GPU or MIG instance: pods by the kubelet's word, jobs by the batch system's.
//!
//! What is learnt is plain data ([`Attribution`]), published like snapshots are. [`assign`] joins
//! it with a snapshot when a page is made, so that a pod's device and the device's readings are
//! always of the same moment.

pub mod allocations;
pub mod assignment;
pub mod device_id;
pub mod dra;
pub mod jobs;
pub mod kubelet;
pub mod pods;
pub mod poller;
pub mod resource;

use std::sync::Arc;

pub use allocations::{Allocations, Claim, Container, Holding};
pub use assignment::{Assignment, DeviceKey, Holder, IdCounts, Mig, assign};
pub use device_id::{DeviceId, Target};
pub use dra::dra_target;
pub use jobs::Jobs;
pub use kubelet::{OwnPod, PodResourcesError, Seen};
pub use pods::{PodFacts, PodTable};
pub use resource::ResourceNames;

/// All that is known of who uses the node's devices; plain data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attribution {
    /// What the kubelet says pods hold; `None` while that is not known (any more).
    pub allocations: Option<Arc<Allocations>>,
    /// What the API server says of this node's pods; empty unless it is asked.
    pub pods: Arc<PodTable>,
    /// What runs on which device by the batch system's word.
    pub jobs: Arc<Jobs>,
}
