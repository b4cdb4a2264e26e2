//! What each sharer of a device has of it, by its processes.

use std::sync::Arc;

use crate::catalogue::Value;
use crate::sampler::owners::Owner;
use crate::sampler::snapshot::Processes;
use crate::usage::NOT_VISIBLE;

/// A family whose series are divided among the pods that share a device. dcgm-exporter knows
/// these two, by their classic names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Split {
    /// Percent of time in which the pod's kernels ran.
    Utilization,
    /// MiB of memory that the pod's processes hold.
    Memory,
}

/// Whose processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// The board's.
    Board,
    /// A GPU instance's.
    Instance(u32),
}

/// Bytes in the unit of `DCGM_FI_DEV_FB_USED`.
const MIB: u64 = 1 << 20;

impl Split {
    /// Every family that is divided, with its name.
    pub(super) const ALL: [(&'static str, Self); 2] =
        [("DCGM_FI_DEV_GPU_UTIL", Self::Utilization), ("DCGM_FI_DEV_FB_USED", Self::Memory)];

    /// How a family is divided, if it is.
    pub(super) fn of(family: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, _)| *name == family).map(|(_, split)| *split)
    }

    /// A pod's share: 0 for one without processes; `None` where it is not known.
    pub(super) fn share(self, processes: &Processes, whose: Whose, pod_uid: &str) -> Option<Value> {
        if self.missing(processes).is_some() {
            return None;
        }
        let is_pods = |owner: &Option<Arc<Owner>>| {
            owner.as_ref().and_then(|owner| owner.pod_uid.as_deref()) == Some(pod_uid)
        };
        match (self, whose) {
            (Self::Utilization, Whose::Board) => {
                let all = processes.utilization.as_ref().ok()?;
                let own = all.iter().filter(|process| is_pods(&process.owner));
                Some(Value::Uint(own.map(|process| u64::from(process.sm_percent)).sum()))
            }
            // NVML does not tell the utilisation of a process in an instance.
            (Self::Utilization, Whose::Instance(_)) => None,
            (Self::Memory, _) => {
                let all = processes.running.as_ref().ok()?;
                let own = all.iter().filter(|process| is_pods(&process.owner)).filter(|process| {
                    match whose {
                        Whose::Board => true,
                        Whose::Instance(id) => process.gpu_instance == Some(id),
                    }
                });
                // A process whose memory is not told makes the sum unknown.
                let bytes: Option<u64> = own.map(|process| process.used_bytes).sum();
                Some(Value::Uint(bytes? / MIB))
            }
        }
    }

    /// Why no share is known on this GPU, as a label; `None` if shares are.
    pub(super) fn missing(self, processes: &Processes) -> Option<&'static str> {
        let failed = match self {
            Self::Utilization => processes.utilization.as_ref().err(),
            Self::Memory => processes.running.as_ref().err(),
        };
        match failed {
            Some(code) => Some(code),
            None => processes.is_hidden().then_some(NOT_VISIBLE),
        }
    }
}

/// Whether a family's series are divided among the pods that share a device.
#[must_use]
pub fn is_divided(family: &str) -> bool {
    Split::of(family).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::snapshot::{ProcessMemory, ProcessUtilization};

    fn owner(uid: &str) -> Arc<Owner> {
        Arc::new(Owner { pod_uid: Some(uid.into()), ..Owner::default() })
    }

    fn processes() -> Processes {
        let memory = |pid, uid: Option<&str>, used_bytes, gpu_instance| ProcessMemory {
            pid,
            owner: uid.map(owner),
            used_bytes,
            gpu_instance,
        };
        let sm = |pid, uid: &str, sm_percent| ProcessUtilization {
            pid,
            owner: Some(owner(uid)),
            sm_percent,
            memory_percent: 0,
            encoder_percent: 0,
            decoder_percent: 0,
        };
        Processes {
            running: Ok(vec![
                memory(1, Some("a"), Some(3 << 20), Some(1)),
                memory(2, Some("a"), Some(4 << 20), Some(2)),
                memory(3, Some("b"), None, Some(1)),
                memory(4, None, Some(9 << 20), Some(1)),
            ]),
            utilization: Ok(vec![sm(1, "a", 20), sm(2, "a", 30), sm(3, "b", 7)]),
            visible: 4,
        }
    }

    #[test]
    fn case_77_a_pods_processes_are_summed_and_an_idle_pod_has_0() {
        let all = processes();
        let share = |split: Split, uid| split.share(&all, Whose::Board, uid);
        assert_eq!(share(Split::Utilization, "a"), Some(Value::Uint(50)));
        assert_eq!(share(Split::Utilization, "idle"), Some(Value::Uint(0)));
        assert_eq!(share(Split::Memory, "a"), Some(Value::Uint(7)));
        assert_eq!(share(Split::Memory, "idle"), Some(Value::Uint(0)));
        assert_eq!(share(Split::Memory, "b"), None);
        assert_eq!(Split::Memory.share(&all, Whose::Instance(2), "a"), Some(Value::Uint(4)));
    }

    #[test]
    fn case_78_one_failing_query_leaves_the_other() {
        let running = Processes { running: Err("NO_PERMISSION"), ..processes() };
        assert_eq!(Split::Memory.share(&running, Whose::Board, "a"), None);
        assert_eq!(Split::Memory.missing(&running), Some("NO_PERMISSION"));
        assert_eq!(Split::Utilization.share(&running, Whose::Board, "a"), Some(Value::Uint(50)));
        let utilization = Processes { utilization: Err("NOT_SUPPORTED"), ..processes() };
        assert_eq!(Split::Utilization.share(&utilization, Whose::Board, "a"), None);
        assert_eq!(Split::Memory.share(&utilization, Whose::Board, "a"), Some(Value::Uint(7)));
    }

    #[test]
    fn processes_that_cannot_be_seen_are_not_nothing() {
        let unseen = Processes { visible: 0, ..processes() };
        assert_eq!(Split::Memory.share(&unseen, Whose::Board, "idle"), None);
        assert_eq!(Split::Memory.missing(&unseen), Some(NOT_VISIBLE));
        let none = Processes { running: Ok(vec![]), utilization: Ok(vec![]), visible: 0 };
        assert_eq!(Split::Memory.share(&none, Whose::Board, "idle"), Some(Value::Uint(0)));
    }
}
