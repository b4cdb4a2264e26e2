//! The sampler's clock: hands out passes, gives up on late ones, publishes.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant, SystemTime};

use super::incidents::Incidents;
use super::notice::Notices;
use super::snapshot::{GpuIdentity, Library, Snapshot, Status};
use super::tracked::{Job, Tracked};
use super::{
    Beat, Command, Event, Latest, PASS_DEADLINE, PASS_DEADLINE_MIN, PUBLISH_GRACE, ProcRoot,
    Settings, WARM_UP, receive,
};
use crate::nvml::raw_handle::Handle;
use crate::nvml::{Code, Found, Meaning, Pass, Session, Target, reader::Request};
use crate::telemetry::Telemetry;

/// Beside one interval, the library thread is silent for so long at most: the longest pause
/// between two attempts to load NVML, and looking GPUs up.
const LIBRARY_STUCK: Duration = Duration::from_secs(30);

/// What the sampler is connected to.
pub(super) struct Wiring {
    pub(super) events: Sender<Event>,
    pub(super) commands: Sender<Command>,
    pub(super) incidents: Arc<Incidents>,
    pub(super) telemetry: Telemetry,
    pub(super) latest: Arc<Latest<Snapshot>>,
    pub(super) beat: Arc<Beat>,
    /// The library thread's.
    pub(super) library_beat: Arc<Beat>,
}

pub(super) struct Coordinator {
    wiring: Wiring,
    interval: Duration,
    deadline: Duration,
    request: Arc<Request>,
    proc_root: ProcRoot,
    session: Option<Arc<Session>>,
    library: Library,
    gpus: Vec<Tracked>,
    next_pass: Instant,
    /// When to publish what there is; `None` when nothing new has come.
    publish_at: Option<Instant>,
    warm: bool,
    job: u64,
    library_stuck: bool,
    notices: Notices,
}

impl Coordinator {
    pub(super) fn new(settings: Settings, wiring: Wiring) -> Self {
        Self {
            wiring,
            interval: settings.interval,
            deadline: settings.interval.clamp(PASS_DEADLINE_MIN, PASS_DEADLINE),
            request: settings.request,
            proc_root: settings.proc_root,
            session: None,
            library: Library::Starting,
            gpus: Vec::new(),
            next_pass: Instant::now(),
            publish_at: None,
            warm: false,
            job: 0,
            library_stuck: false,
            notices: Notices::default(),
        }
    }

    pub(super) fn run(mut self, inbox: &Receiver<Event>) {
        loop {
            match receive(inbox, self.wake_at()) {
                Some(Event::Stop) => break,
                Some(event) => self.handle(event),
                None => {}
            }
            self.wiring.beat.beat();
            let now = Instant::now();
            self.give_up_late(now);
            self.notice_stuck_library();
            if now >= self.next_pass {
                self.begin_pass(now);
            }
            if self.publish_at.is_some_and(|at| now >= at) {
                self.publish();
            }
        }
        // The library thread may be waiting for this; if it has ended, so much the better.
        let _ = self.wiring.commands.send(Command::Stop);
    }

    fn wake_at(&self) -> Instant {
        let late = self.gpus.iter().filter_map(|gpu| gpu.due(self.deadline));
        late.chain(self.publish_at).fold(self.next_pass, Instant::min)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Down { reason, detail } => {
                self.session = None;
                self.warm = false;
                self.library = Library::Down { reason, detail };
                self.gpus.retain(Tracked::known);
                for gpu in &mut self.gpus {
                    gpu.handle = None;
                    gpu.down("library");
                }
                self.publish_at = Some(Instant::now());
            }
            Event::Up { session, found } => self.adopt(session, found),
            Event::Done { uuid, job, pass } => self.finish(&uuid, job, *pass),
            Event::Request(request) => {
                self.request = request;
                // Readings refer to the rows of the request that they were made for. The page of
                // the former one stays until the new passes are in.
                self.gpus.iter_mut().for_each(Tracked::forget);
                self.publish_at = None;
                self.next_pass = Instant::now();
            }
            Event::Stop => {}
        }
    }

    /// Takes over an enumeration: GPUs are told apart by UUID, and keep their first index.
    fn adopt(&mut self, session: Arc<Session>, found: Vec<Found>) {
        let fresh = self.session.as_ref().is_none_or(|known| !Arc::ptr_eq(known, &session));
        self.library = Library::Up(Arc::new(session.facts.clone()));
        self.session = Some(session);
        self.gpus.retain(Tracked::known);
        let mut present = Vec::new();
        for one in found {
            let position = self.track(one);
            present.push(position);
        }
        for (position, gpu) in self.gpus.iter_mut().enumerate() {
            if !present.contains(&position) {
                if gpu.status != Status::Down("detached") {
                    let GpuIdentity { index, uuid, .. } = &*gpu.identity;
                    tracing::error!(gpu = index, uuid, "GPU is gone from NVML's list");
                }
                gpu.handle = None;
                gpu.down("detached");
            }
        }
        self.gpus.sort_by_key(|gpu| gpu.identity.index);
        if fresh {
            self.warm = false;
            self.next_pass = Instant::now();
        }
        self.publish_at.get_or_insert(Instant::now() + PUBLISH_GRACE);
    }

    /// Finds or adds one GPU; its position.
    fn track(&mut self, found: Found) -> usize {
        let mut identity = found.identity;
        let known = if identity.uuid.is_empty() {
            // It cannot say who it is, but a GPU of that index was here before.
            self.gpus.iter().position(|gpu| gpu.identity.index == identity.index)
        } else {
            self.gpus.iter().position(|gpu| gpu.identity.uuid == identity.uuid)
        };
        let position = known.unwrap_or_else(|| {
            identity.index = self.free_index(identity.index);
            if !identity.uuid.is_empty() {
                let GpuIdentity { index, uuid, model, .. } = &identity;
                tracing::info!(gpu = index, uuid, model, "GPU found");
            }
            self.gpus.push(Tracked::new(identity.clone()));
            self.gpus.len() - 1
        });
        let gpu = &mut self.gpus[position];
        if let (Some(_), false) = (known, identity.uuid.is_empty()) {
            let index = gpu.identity.index;
            gpu.identity = Arc::new(GpuIdentity { index, ..identity });
        }
        let GpuIdentity { uuid, pci_bus_id, .. } = &*gpu.identity;
        self.wiring.incidents.place(uuid, pci_bus_id);
        gpu.handle = found.handle;
        if let Some(code) = found.refused {
            let status = Status::Down(refusal(code));
            if gpu.status != status {
                let (index, code_name) = (gpu.identity.index, code.name());
                tracing::error!(gpu = index, code = code_name, "GPU cannot be opened");
            }
            gpu.down(refusal(code));
        } else if matches!(gpu.status, Status::Down("detached" | "library")) {
            gpu.status = Status::Starting;
        }
        position
    }

    /// The index wanted, or the next that no GPU of this process has had.
    fn free_index(&self, wanted: u32) -> u32 {
        let taken = |index| self.gpus.iter().any(|gpu| gpu.identity.index == index);
        (wanted..=u32::MAX).find(|index| !taken(*index)).unwrap_or(wanted)
    }

    fn begin_pass(&mut self, now: Instant) {
        let gap = if self.warm { self.interval } else { self.interval.min(WARM_UP) };
        self.next_pass = (self.next_pass + gap).max(now);
        let Some(session) = self.session.clone() else { return };
        self.warm = true;
        for position in 0..self.gpus.len() {
            self.assign(position, &session);
        }
        self.publish_at.get_or_insert(now + PUBLISH_GRACE);
    }

    fn assign(&mut self, position: usize, session: &Arc<Session>) {
        let peers = self.peers(position);
        let gpu = &mut self.gpus[position];
        let Some(handle) = gpu.handle.filter(|_| gpu.busy.is_none()) else { return };
        self.job += 1;
        let job = Job {
            number: self.job,
            target: Target {
                session: Arc::clone(session),
                handle,
                identity: Arc::clone(&gpu.identity),
                request: Arc::clone(&self.request),
                proc_root: self.proc_root.clone(),
                peers,
            },
        };
        if !gpu.assign(job, &self.wiring.events, &self.wiring.incidents) {
            gpu.down("error");
        }
    }

    /// The other GPUs, if one is to be asked about them.
    fn peers(&self, position: usize) -> Vec<(u32, Handle)> {
        if self.request.plan.peers.rows.is_empty() {
            return Vec::new();
        }
        let others = self.gpus.iter().enumerate().filter(|(at, _)| *at != position);
        others.filter_map(|(_, gpu)| Some((gpu.identity.index, gpu.handle?))).collect()
    }

    fn finish(&mut self, uuid: &str, job: u64, pass: Pass) {
        let deadline = self.deadline;
        let Some(position) = self.gpus.iter().position(|gpu| gpu.identity.uuid == uuid) else {
            return;
        };
        let gpu = &mut self.gpus[position];
        let Some(busy) = gpu.busy.take_if(|busy| busy.job == job) else { return };
        for (call, code) in &pass.errors {
            self.wiring.telemetry.record_error(call, code.name());
        }
        let took = busy.since.elapsed();
        self.wiring.telemetry.record_pass(took);
        if pass.unpaired {
            // Means do not wait for a whole interval, also of a new instance.
            self.next_pass = self.next_pass.min(Instant::now() + WARM_UP);
        }
        let stale = pass.errors.iter().any(|(_, code)| code.meaning() == Meaning::Stale);
        if gpu.handle.is_none() {
            // The GPU or the session went away meanwhile.
        } else if took > deadline {
            // Some of its values are as old as the pass; a new pass follows at once.
            tracing::info!(
                gpu = gpu.identity.index,
                uuid,
                seconds = took.as_secs(),
                "GPU answers again"
            );
            gpu.status = Status::Starting;
            self.again(position);
        } else if !Arc::ptr_eq(&busy.request, &self.request) {
            self.again(position);
        } else {
            self.judge(position, pass);
        }
        if stale {
            self.command(Command::Enumerate);
        }
        let all_in = self.gpus.iter().all(|gpu| gpu.busy.is_none() || gpu.due(deadline).is_none());
        let now = Instant::now();
        if all_in || self.publish_at.is_none() {
            self.publish_at = Some(now);
        }
    }

    /// Hands out a pass at once, in the place of one that came to nothing.
    fn again(&mut self, position: usize) {
        if let Some(session) = self.session.clone() {
            self.assign(position, &session);
        }
    }

    /// Turns the end of a pass in time into a reading or a state.
    fn judge(&mut self, position: usize, pass: Pass) {
        let gpu = &mut self.gpus[position];
        let before = gpu.status;
        match pass.outcome {
            // Facts are remembered and make no reading.
            Ok(_) if pass.silent => gpu.down("error"),
            Ok(reading) => gpu.up(reading),
            Err(code) => gpu.down(refusal(code)),
        }
        if before == gpu.status {
            return;
        }
        let (index, uuid) = (gpu.identity.index, gpu.identity.uuid.clone());
        match gpu.status {
            Status::Down("library") => self.command(Command::Recycle("library_lost")),
            Status::Down(reason) => {
                tracing::error!(gpu = index, uuid, reason, "GPU gives no readings");
                self.command(Command::Enumerate);
            }
            Status::Up if before != Status::Starting => {
                tracing::info!(gpu = index, uuid, "GPU is back");
            }
            _ => {}
        }
    }

    fn give_up_late(&mut self, now: Instant) {
        for gpu in &mut self.gpus {
            if gpu.due(self.deadline).is_some_and(|due| now >= due) {
                let (index, uuid) = (gpu.identity.index, &gpu.identity.uuid);
                let seconds = self.deadline.as_secs_f64();
                tracing::error!(gpu = index, uuid, seconds, "GPU does not answer; its series end");
                self.wiring.telemetry.record_error("pass", "TIMEOUT");
                gpu.down("timeout");
                self.publish_at = Some(now);
            }
        }
    }

    /// NVML can hang while it is initialised or GPUs are counted. Known GPUs are read all the same,
    /// but one that comes or goes is not noticed.
    fn notice_stuck_library(&mut self) {
        let stuck = self.wiring.library_beat.age() > self.interval + LIBRARY_STUCK;
        if stuck && !self.library_stuck {
            tracing::error!("NVML does not return from being initialised or counting GPUs");
            self.wiring.telemetry.record_error("nvmlDeviceGetCount_v2", "TIMEOUT");
        }
        self.library_stuck = stuck;
    }

    fn command(&self, command: Command) {
        // A library thread that has ended has nothing left to do.
        let _ = self.wiring.commands.send(command);
    }

    fn publish(&mut self) {
        self.publish_at = None;
        let snapshot = Snapshot {
            taken: SystemTime::now(),
            selection: Arc::clone(&self.request.selection),
            library: self.library.clone(),
            gpus: self.gpus.iter().map(|gpu| gpu.snapshot(&self.wiring.incidents)).collect(),
        };
        self.notices.of(&snapshot, &self.request.devices);
        self.wiring.latest.set(snapshot);
    }
}

/// The state that a code puts a GPU in.
fn refusal(code: Code) -> &'static str {
    match code.meaning() {
        Meaning::Lost => "lost",
        Meaning::ResetRequired => "reset_required",
        Meaning::Session => "library",
        _ if code == Code::NO_PERMISSION => "no_permission",
        _ if code == Code::TIMEOUT => "timeout",
        _ => "error",
    }
}
