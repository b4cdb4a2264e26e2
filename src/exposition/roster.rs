//! Which GPUs are there, and which of them have readings fresh enough to be served.

use std::time::{Duration, SystemTime};

use super::labels::{Block, Further, Style};
use super::scheme::Settings;
use crate::sampler::history::History;
use crate::sampler::snapshot::{
    Gpu, GpuIdentity, GpuReading, InstanceReading, Known, Snapshot, Status,
};

/// One GPU of the page.
#[derive(Debug)]
pub(super) struct Member<'a> {
    pub(super) identity: &'a GpuIdentity,
    /// The GPU's identity labels alone, for our own families.
    pub(super) block: Block<'a>,
    pub(super) state: State<'a>,
    pub(super) status: Status,
    /// Its MIG instances that are rows, by GPU instance id.
    pub(super) instances: Vec<&'a InstanceReading>,
    /// How old the newest reading is, fresh or not.
    pub(super) age: Option<Duration>,
    /// What its last reading told that outlives it.
    pub(super) known: &'a Known,
    pub(super) history: &'a History,
}

/// Whether a GPU has series.
#[derive(Debug, Clone, Copy)]
pub(super) enum State<'a> {
    /// It answers, and this is its fresh reading.
    Up(&'a GpuReading),
    /// It has none, for this reason (a label).
    Down(&'static str),
}

impl<'a> Member<'a> {
    /// The reading, if it is to be served.
    pub(super) fn reading(&self) -> Option<&'a GpuReading> {
        match self.state {
            State::Up(reading) => Some(reading),
            State::Down(_) => None,
        }
    }
}

/// The GPUs by index, each once, whatever order the snapshot has them in.
pub(super) fn roster<'a>(
    snapshot: &'a Snapshot,
    settings: &'a Settings,
    now: SystemTime,
) -> Vec<Member<'a>> {
    let mut gpus: Vec<&Gpu> = snapshot.gpus.iter().collect();
    gpus.sort_by_key(|gpu| (gpu.identity.index, gpu.identity.uuid.as_str()));
    // A second entry of the same GPU would give every series twice, and so no page at all.
    gpus.dedup_by_key(|gpu| (gpu.identity.index, gpu.identity.uuid.as_str()));
    gpus.into_iter().map(|gpu| member(gpu, settings, now)).collect()
}

fn member<'a>(gpu: &'a Gpu, settings: &'a Settings, now: SystemTime) -> Member<'a> {
    // A clock set back makes readings look younger than now: that is no age.
    let age = gpu.last_read.map(|at| now.duration_since(at).unwrap_or_default());
    let state = state(gpu, age, settings.max_age);
    Member {
        identity: &gpu.identity,
        block: Block::gpu(&gpu.identity, Style::Own, &settings.labels, &Further::default()),
        instances: match state {
            State::Up(reading) => instances(reading),
            State::Down(_) => Vec::new(),
        },
        state,
        status: gpu.status,
        age,
        known: &gpu.known,
        history: &gpu.history,
    }
}

fn instances(reading: &GpuReading) -> Vec<&InstanceReading> {
    let mut instances: Vec<&InstanceReading> = reading.instances.iter().collect();
    instances.sort_by_key(|instance| instance.identity.gpu_instance);
    instances.dedup_by_key(|instance| instance.identity.gpu_instance);
    instances
}

fn state(gpu: &Gpu, age: Option<Duration>, max_age: Duration) -> State<'_> {
    match (gpu.status, gpu.reading.as_deref(), age) {
        (Status::Down(reason), ..) => State::Down(reason),
        (Status::Starting, ..) => State::Down("starting"),
        (Status::Up, Some(reading), Some(age)) if age <= max_age => State::Up(reading),
        (Status::Up, ..) => State::Down("stale"),
    }
}
