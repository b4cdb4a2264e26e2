//! Who uses a device.

use std::sync::Arc;

use super::By;
use crate::attribution::PodFacts;
use crate::sampler::owners::Owner;

/// One who uses a device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tenant {
    /// A pod.
    Pod {
        /// Its namespace.
        namespace: Arc<str>,
        /// Its name.
        pod: Arc<str>,
    },
    /// A container, by its id.
    Container(Arc<str>),
    /// A user, by number.
    User(u32),
    /// A unit of systemd.
    Unit(Arc<str>),
    /// A job of Slurm, by number.
    SlurmJob(Arc<str>),
    /// A process. Its number can be another's later.
    Process {
        /// Its number in the node's process namespace.
        pid: u32,
        /// When it started, in clock ticks after boot, if that is known.
        start: Option<u64>,
    },
}

/// What else is known of a tenant, for labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// What the API server says of the pod.
    pub facts: Option<Arc<PodFacts>>,
    /// Whose one of its processes is.
    pub owner: Option<Arc<Owner>>,
    /// The pod of a process: namespace and name.
    pub pod: Option<(Arc<str>, Arc<str>)>,
}

impl Tenant {
    /// What kind it is.
    #[must_use]
    pub const fn by(&self) -> By {
        match self {
            Self::Pod { .. } => By::Pod,
            Self::Container(_) => By::Container,
            Self::User(_) => By::User,
            Self::Unit(_) => By::Unit,
            Self::SlurmJob(_) => By::SlurmJob,
            Self::Process { .. } => By::Process,
        }
    }

    /// Whose a process is; `None` where it is nobody's of this kind. Pods are found otherwise.
    pub(super) fn of(by: By, pid: u32, owner: Option<&Owner>) -> Option<Self> {
        match by {
            By::Pod => None,
            By::Container => owner?.container_id.clone().map(Self::Container),
            By::User => owner?.user_id.map(Self::User),
            By::Unit => owner?.unit.clone().map(Self::Unit),
            By::SlurmJob => owner?.slurm_job.clone().map(Self::SlurmJob),
            By::Process => Some(Self::Process { pid, start: owner.and_then(|owner| owner.start) }),
        }
    }
}
