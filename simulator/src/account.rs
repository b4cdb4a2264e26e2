//! Accounting mode: what the driver writes down of processes while they run, and keeps of those
//! that have ended.
//!
//! Written down is what commands change; all else is a function of the time.

use crate::clock::whole;
use crate::code::{Answer, NOT_SUPPORTED};
use crate::device::{Device, MIB};
use crate::gpu::Gpu;
use crate::handle::{Kind, Target};
use crate::note::complain;
use crate::process::Process;
use crate::setting::Key;
use crate::world::World;

/// How many processes that have ended the driver remembers.
pub(crate) const KEPT: u32 = 4_000;

/// The accounts of one GPU.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    live: Vec<Live>,
    /// The one that ended last comes last; one of a process id.
    ended: Vec<Record>,
}

/// What is told of a process.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    pub(crate) pid: u32,
    /// Scenario time.
    pub(crate) start: f64,
    pub(crate) end: Option<f64>,
    /// The most memory that it ever had, in bytes.
    pub(crate) peak: u64,
    /// Percent of its life in which its kernels ran.
    pub(crate) multiprocessors: f64,
    /// The same for reading and writing memory.
    pub(crate) memory: f64,
}

/// A process that has not ended.
#[derive(Debug)]
struct Live {
    process: Process,
    /// How many share what the device does.
    sharers: f64,
    start: f64,
    /// Percent times seconds up to `since`: of multiprocessors, of memory.
    before: [f64; 2],
    since: f64,
    /// Seconds of full load of the GPU up to `since`.
    busy: f64,
    peak: u64,
}

/// What accounts are made of, at a moment.
struct Moment {
    now: f64,
    /// Seconds of full load of the GPU up to now.
    busy: f64,
    load: f64,
    busy_now: bool,
    /// Memory that is in use at full load, in bytes.
    full: f64,
}

impl Moment {
    fn new(device: &Device<'_>) -> Self {
        let (total, reserved, _) = device.memory();
        let full = || 0.95 * (total - reserved) as f64 - (300 * MIB) as f64;
        Self {
            now: device.now,
            busy: device.busy_seconds(),
            load: device.load(),
            busy_now: !device.idle(),
            full: device.setting(Key::MemoryUsed, full),
        }
    }
}

impl Live {
    fn new(process: &Process, sharers: usize, moment: &Moment) -> Self {
        let (start, busy) = (moment.now, moment.busy);
        let mut new = Self {
            process: process.clone(),
            sharers: 1.0,
            start,
            before: [0.0; 2],
            since: start,
            busy,
            peak: 0,
        };
        new.turn(process, sharers, moment);
        new
    }

    /// From now on it does something else.
    fn turn(&mut self, process: &Process, sharers: usize, moment: &Moment) {
        self.before = self.done(moment);
        (self.since, self.busy) = (moment.now, moment.busy);
        self.process = process.clone();
        self.sharers = sharers.max(1) as f64;
        let share = whole(moment.full / self.sharers);
        // NVML_VALUE_NOT_AVAILABLE is the largest number, and so stays.
        self.peak = self.peak.max(process.memory.unwrap_or(share));
    }

    /// Percent times seconds up to now.
    fn done(&self, moment: &Moment) -> [f64; 2] {
        let (seconds, busy) = (moment.now - self.since, moment.busy - self.busy);
        let [multiprocessors, memory] = self.percent(busy, seconds);
        [self.before[0] + multiprocessors, self.before[1] + memory]
    }

    /// What it does in some time in which the GPU is busy for so long, in percent of a second.
    fn percent(&self, busy: f64, seconds: f64) -> [f64; 2] {
        let own = self.process.utilization.map(|percent| f64::from(percent) * seconds);
        [own.unwrap_or(100.0 * busy / self.sharers), 62.0 * busy / self.sharers]
    }

    /// A process that follows its device is there while something runs.
    fn is_there(&self, moment: &Moment) -> bool {
        moment.busy_now || self.process.stays()
    }

    fn record(&self, moment: &Moment, end: Option<f64>) -> Record {
        let life = moment.now - self.start;
        let [multiprocessors, memory] = if life > 0.0 {
            self.done(moment).map(|sum| sum / life)
        } else {
            self.percent(moment.load, 1.0)
        };
        let (pid, start, peak) = (self.process.pid, self.start, self.peak);
        Record { pid, start, end, peak, multiprocessors, memory }
    }
}

impl Accounts {
    /// Writes down who has come, who has gone and who does something else.
    fn follow(&mut self, list: &[Process], moment: &Moment) {
        let (stay, gone): (Vec<Live>, Vec<Live>) = std::mem::take(&mut self.live)
            .into_iter()
            .partition(|live| list.iter().any(|process| process.pid == live.process.pid));
        for live in gone.into_iter().filter(|live| live.is_there(moment)) {
            // The driver keeps one account of a process id: that of the process that ended last.
            self.ended.retain(|record| record.pid != live.process.pid);
            self.ended.push(live.record(moment, Some(moment.now)));
        }
        let excess = self.ended.len().saturating_sub(KEPT as usize);
        self.ended.drain(..excess);
        self.live = stay;
        for process in list {
            match self.live.iter_mut().find(|live| live.process.pid == process.pid) {
                Some(live) => live.turn(process, list.len(), moment),
                None => self.live.push(Live::new(process, list.len(), moment)),
            }
        }
    }
}

/// What is told of the processes of a GPU: first of those that have ended, as the driver does.
pub(crate) fn records(device: &Device<'_>) -> Answer<Vec<Record>> {
    let accounts = device.gpu.accounts.as_ref().ok_or(NOT_SUPPORTED)?;
    let moment = Moment::new(device);
    let there = accounts.live.iter().filter(|live| live.is_there(&moment));
    Ok(accounts.ended.iter().cloned().chain(there.map(|live| live.record(&moment, None))).collect())
}

/// Changes who runs on a GPU, and writes it down.
pub(crate) fn change(world: &mut World, number: usize, apply: impl FnOnce(&mut Gpu)) {
    apply(&mut world.gpus[number]);
    let target = Target { kind: Kind::Device, generation: 0, gpu: number, gi: 0, ci: 0 };
    let Ok(moment) = Device::new(world, target).map(|device| Moment::new(&device)) else { return };
    let gpu = &mut world.gpus[number];
    let list = gpu.listed();
    if let Some(accounts) = &mut gpu.accounts {
        accounts.follow(&list, &moment);
    }
}

/// `gpu <n> accounting on|off`. Off forgets everything; a GPU in MIG mode has no accounts.
pub(crate) fn switch(world: &mut World, number: usize, on: bool) {
    if on && world.gpus[number].mig.is_some() {
        complain(format_args!("gpu {number} accounting: not in MIG mode"));
        return;
    }
    change(world, number, |gpu| match (on, &gpu.accounts) {
        (true, Some(_)) => {}
        (true, None) => gpu.accounts = Some(Accounts::default()),
        (false, _) => gpu.accounts = None,
    });
}
