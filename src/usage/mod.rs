//! What the users of devices use of them, and what they spend: energy and time.
//!
//! [`Usage`] is what one snapshot shows, joined with what is known of the users; [`Ledger`] adds
//! up from snapshot to snapshot. Both are plain data and pure.

mod divide;
mod ledger;
mod pods;
mod tenants;
mod uses;

pub use ledger::{Account, KEPT, Ledger, Reason};
pub use tenants::{Details, Tenant};
pub use uses::{
    DeviceUse, GpuUse, Missing, NOT_VISIBLE, Share, UNKNOWN_UID, Usage, Use, Utilization,
};

/// Whose use is told (`--usage-by`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, clap::ValueEnum)]
pub enum By {
    /// Pods: what holds a device by the kubelet's word.
    Pod,
    /// Containers, by cgroup.
    Container,
    /// Users, by the process's real user id.
    User,
    /// Units of systemd, by cgroup.
    Unit,
    /// Slurm's jobs, by cgroup.
    SlurmJob,
    /// Single processes.
    Process,
}

impl By {
    /// Every one.
    pub const ALL: [Self; 6] =
        [Self::Pod, Self::Container, Self::User, Self::Unit, Self::SlurmJob, Self::Process];

    /// What it is called in names of families (`nvml_<word>_…`) and in labels.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Container => "container",
            Self::User => "user",
            Self::Unit => "unit",
            Self::SlurmJob => "slurm_job",
            Self::Process => "process",
        }
    }
}
