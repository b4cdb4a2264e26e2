//! What one snapshot shows of who uses which device, and how much.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::pods::Pods;
use super::{By, Details, Tenant};
use crate::attribution::{Assignment, Attribution, DeviceKey};
use crate::sampler::owners::Owner;
use crate::sampler::snapshot::{
    Gpu, GpuReading, InstanceIdentity, ProcessUtilization, Processes, Snapshot,
};

/// So many tenants of one kind a device shows; those with the least memory are left out.
const MOST: usize = 128;

/// What a snapshot shows: only GPUs with a reading.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Usage {
    /// By GPU index, then kind.
    pub gpus: Vec<GpuUse>,
}

/// One GPU, seen for one kind of tenants.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuUse {
    /// `GpuIdentity::index`.
    pub gpu: u32,
    /// Of which kind the tenants are.
    pub by: By,
    /// Whether it is known who holds devices.
    pub held_known: bool,
    /// The GPU itself, if it is not in MIG mode; else its instances.
    pub devices: Vec<DeviceUse>,
    /// What is not known, and why.
    pub missing: Vec<(Share, Missing)>,
}

/// One device.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceUse {
    /// The MIG instance, if it is one.
    pub instance: Option<Arc<InstanceIdentity>>,
    /// Who uses it, in the order of tenants.
    pub uses: Vec<Use>,
    /// Multiprocessor share, 0 to 1, of processes that are known to be nobody's in `uses` who
    /// holds the device.
    pub others: f64,
    /// The same of processes of which that is not known.
    pub unseen: f64,
    /// Whether there are processes of nobody in `uses` who holds the device.
    pub foreign: bool,
    /// How many tenants are left out, so that there are not too many.
    pub left_out: usize,
}

/// What one uses of a device. `None` is not known.
#[derive(Debug, Clone, PartialEq)]
pub struct Use {
    /// Who.
    pub tenant: Tenant,
    /// What else is known of who it is.
    pub details: Details,
    /// Whether it holds the device: pods by the kubelet's word, all others by using it.
    pub holds: bool,
    /// How many processes.
    pub processes: Option<usize>,
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
    /// What it did of late.
    pub utilization: Option<Utilization>,
}

/// Shares of time, 0 to 1. Over all processes of a board none adds up to more than 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Utilization {
    /// In which its kernels ran.
    pub sm: f64,
    /// In which it read or wrote memory.
    pub memory: f64,
    /// In which the video encoder worked for it.
    pub encoder: f64,
    /// In which the video decoder worked for it.
    pub decoder: f64,
}

/// What can be known or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// Memory, and how many processes there are.
    Memory,
    /// Utilisation.
    Utilization,
}

/// Why something is not known; a label. NVML's code by name, `processes_not_visible`,
/// `pod_uid_unknown`.
pub type Missing = &'static str;

/// The reading is of before processes were asked for.
const NOT_READ: Missing = "not_read";

/// The exporter is not in the node's process namespace (`hostPID`).
pub const NOT_VISIBLE: Missing = "processes_not_visible";

/// Nobody has told the UID of a pod, by which its processes are known.
pub const UNKNOWN_UID: Missing = "pod_uid_unknown";

impl Usage {
    /// Joins a snapshot with what is known of devices' users.
    #[must_use]
    pub fn of(
        snapshot: &Snapshot,
        (assignment, attribution): (&Assignment<'_>, &Attribution),
        kinds: &[By],
    ) -> Self {
        let pods = Pods::new(assignment, attribution);
        let readings = snapshot.gpus.iter().filter_map(|gpu| Some((gpu, gpu.reading.as_deref()?)));
        // A GPU that --devices leaves out is no row in any way.
        let is_row = |reading: &GpuReading| reading.whole || !reading.instances.is_empty();
        let gpus = readings
            .filter(|(_, reading)| is_row(reading))
            .flat_map(|(gpu, reading)| kinds.iter().map(|by| gpu_use(gpu, reading, *by, &pods)));
        Self { gpus: gpus.collect() }
    }
}

fn gpu_use(gpu: &Gpu, reading: &GpuReading, by: By, pods: &Pods<'_>) -> GpuUse {
    let key = |instance| DeviceKey { gpu: gpu.identity.index, instance };
    let mut instances: Vec<_> = reading.instances.iter().map(|one| &one.identity).collect();
    instances.sort_by_key(|identity| identity.gpu_instance);
    instances.dedup_by_key(|identity| identity.gpu_instance);
    let unread = Processes { running: Err(NOT_READ), utilization: Err(NOT_READ), visible: 0 };
    let processes = reading.processes.as_ref().unwrap_or(&unread);
    let mut untold = false;
    let mut device = |instance: Option<&Arc<InstanceIdentity>>| {
        let id = instance.map(|identity| identity.gpu_instance);
        let seen = Seen::new(processes, id);
        let found = match by {
            By::Pod => pods.uses(key(id), &seen),
            _ => seen.uses(by, pods),
        };
        untold |= found.untold;
        finish(found, &seen, instance)
    };
    let devices = if instances.is_empty() {
        vec![device(None)]
    } else {
        instances.into_iter().map(|instance| device(Some(instance))).collect()
    };
    let unseen = processes.is_hidden().then_some(NOT_VISIBLE);
    let why = |failed: Option<&'static str>| failed.or(unseen).into_iter();
    let memory = why(processes.running.as_ref().err().copied());
    let utilization = why(processes.utilization.as_ref().err().copied());
    let of_uid = [Share::Memory, Share::Utilization].into_iter().filter(|_| untold);
    GpuUse {
        gpu: gpu.identity.index,
        by,
        held_known: by != By::Pod || pods.held_known,
        devices,
        missing: memory
            .map(|why| (Share::Memory, why))
            .chain(utilization.map(|why| (Share::Utilization, why)))
            .chain(of_uid.map(|share| (share, UNKNOWN_UID)))
            .collect(),
    }
}

/// Who uses a device.
#[derive(Default)]
pub(super) struct Found {
    pub(super) uses: Vec<Use>,
    /// Multiprocessor share of processes of which it is not known whose they are.
    pub(super) unseen: f64,
    /// Whether there are processes of nobody who holds the device.
    pub(super) foreign: bool,
    /// Whether a holder's processes could not be told from others'.
    pub(super) untold: bool,
}

/// Bounds the number of tenants and sums up what is left.
fn finish(found: Found, seen: &Seen<'_>, instance: Option<&Arc<InstanceIdentity>>) -> DeviceUse {
    let Found { mut uses, unseen, foreign, .. } = found;
    let left_out = uses.len().saturating_sub(MOST);
    if left_out > 0 {
        uses.sort_by_key(|one| Reverse((one.holds, one.memory_bytes)));
        uses.truncate(MOST);
    }
    uses.sort_by(|a, b| a.tenant.cmp(&b.tenant));
    let held = uses.iter().filter(|one| one.holds);
    let of_held: f64 = held.filter_map(|one| one.utilization).map(|used| used.sm).sum();
    DeviceUse {
        instance: instance.cloned(),
        uses,
        others: (sm(seen.all.values()) - of_held - unseen).max(0.0),
        unseen,
        foreign: foreign || left_out > 0,
        left_out,
    }
}

pub(super) fn sm<'p, 'a: 'p>(processes: impl Iterator<Item = &'p Process<'a>>) -> f64 {
    processes.filter_map(|process| process.utilization).map(|used| used.sm).sum()
}

/// One process on one device.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Process<'a> {
    pub(super) owner: Option<&'a Arc<Owner>>,
    /// Whether it is in a list of running processes.
    runs: bool,
    memory: Option<u64>,
    utilization: Option<Utilization>,
}

/// The processes of one device.
pub(super) struct Seen<'a> {
    pub(super) all: BTreeMap<u32, Process<'a>>,
    memory_known: bool,
    utilization_known: bool,
}

impl<'a> Seen<'a> {
    fn new(processes: &'a Processes, instance: Option<u32>) -> Self {
        let mut all: BTreeMap<u32, Process<'a>> = BTreeMap::new();
        for process in processes.running.iter().flatten() {
            // The whole GPU is all of its instances.
            if instance.is_some() && process.gpu_instance != instance {
                continue;
            }
            let entry = all.entry(process.pid).or_default();
            entry.owner = process.owner.as_ref();
            entry.runs = true;
            entry.memory = process.used_bytes;
        }
        // What is sampled is the board's, which has no instances then.
        let sampled = processes.utilization.as_deref().ok().filter(|_| instance.is_none());
        let sampled_all = sampled.unwrap_or_default();
        let mut total = Utilization::default();
        for process in sampled_all {
            total.add(&Utilization::of(process));
        }
        for process in sampled_all {
            let entry = all.entry(process.pid).or_default();
            entry.owner = process.owner.as_ref();
            entry.utilization = Some(Utilization::of(process).within(&total));
        }
        let hidden = processes.is_hidden();
        Self {
            all,
            memory_known: processes.running.is_ok() && !hidden,
            utilization_known: sampled.is_some() && !hidden,
        }
    }

    /// What tenants that are found by their processes use.
    fn uses(&self, by: By, pods: &Pods<'_>) -> Found {
        let mut tenants: BTreeMap<Tenant, Vec<Process<'a>>> = BTreeMap::new();
        let mut foreign = Vec::new();
        for (pid, process) in &self.all {
            let owner = process.owner.map(|owner| &**owner);
            match Tenant::of(by, *pid, owner) {
                Some(tenant) => tenants.entry(tenant).or_default().push(*process),
                None => foreign.push(process),
            }
        }
        let one = |(tenant, processes): (Tenant, Vec<Process<'a>>)| {
            let owner = processes.iter().find_map(|process| process.owner).cloned();
            let pod = owner.as_ref().filter(|_| by == By::Process).and_then(|owner| pods.of(owner));
            self.use_of(tenant, Details { owner, pod, ..Details::default() }, &processes)
        };
        let uses = tenants.into_iter().map(one).collect();
        let hidden = foreign.iter().copied().filter(|process| process.owner.is_none());
        Found { uses, unseen: sm(hidden), foreign: !foreign.is_empty(), untold: false }
    }

    pub(super) fn use_of(
        &self,
        tenant: Tenant,
        details: Details,
        processes: &[Process<'_>],
    ) -> Use {
        let running = || processes.iter().filter(|process| process.runs);
        let mut utilization = Utilization::default();
        for used in processes.iter().filter_map(|process| process.utilization) {
            utilization.add(&used);
        }
        Use {
            tenant,
            details,
            holds: true,
            processes: self.memory_known.then(|| running().count()),
            // A process whose memory is not told makes the sum unknown.
            memory_bytes: self
                .memory_known
                .then(|| running().map(|process| process.memory).sum::<Option<u64>>())
                .flatten(),
            utilization: self.utilization_known.then_some(utilization),
        }
    }
}

impl Utilization {
    fn of(process: &ProcessUtilization) -> Self {
        let share = |percent: u32| f64::from(percent) / 100.0;
        Self {
            sm: share(process.sm_percent),
            memory: share(process.memory_percent),
            encoder: share(process.encoder_percent),
            decoder: share(process.decoder_percent),
        }
    }

    fn add(&mut self, other: &Self) {
        self.sm += other.sm;
        self.memory += other.memory;
        self.encoder += other.encoder;
        self.decoder += other.decoder;
    }

    /// Samples are of different moments and rounded, so that all of them together can be more than
    /// there is: then each is its part of what there is.
    fn within(&self, total: &Self) -> Self {
        Self {
            sm: self.sm / total.sm.max(1.0),
            memory: self.memory / total.memory.max(1.0),
            encoder: self.encoder / total.encoder.max(1.0),
            decoder: self.decoder / total.decoder.max(1.0),
        }
    }
}
