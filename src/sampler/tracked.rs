//! One GPU as the sampler sees it: its thread, whether it is busy, its newest reading.

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::Event;
use super::incidents::Incidents;
use super::snapshot::{Gpu, GpuIdentity, GpuReading, Known, Status};
use crate::nvml::raw_handle::Handle;
use crate::nvml::reader::Request;
use crate::nvml::{Reader, Target};

/// One pass to make.
pub(super) struct Job {
    pub(super) number: u64,
    pub(super) target: Target,
}

/// A pass under way.
#[derive(Debug)]
pub(super) struct Busy {
    pub(super) job: u64,
    /// When it was handed out.
    pub(super) since: Instant,
    /// What is asked: the rows that its samples will refer to.
    pub(super) request: Arc<Request>,
}

/// A GPU that this process has seen, by UUID; or one that could not even be identified, which
/// has no thread.
#[derive(Debug)]
pub(super) struct Tracked {
    pub(super) identity: Arc<GpuIdentity>,
    /// The handle in the present session; `None` while the GPU cannot be opened.
    pub(super) handle: Option<Handle>,
    pub(super) status: Status,
    pub(super) reading: Option<Arc<GpuReading>>,
    last_read: Option<SystemTime>,
    /// What the last reading told that outlives it.
    known: Arc<Known>,
    /// The pass under way.
    pub(super) busy: Option<Busy>,
    jobs: Option<Sender<Job>>,
}

impl Tracked {
    pub(super) fn new(identity: GpuIdentity) -> Self {
        Self {
            identity: Arc::new(identity),
            handle: None,
            status: Status::Starting,
            reading: None,
            last_read: None,
            known: Arc::default(),
            busy: None,
            jobs: None,
        }
    }

    /// Whether the GPU could be identified: only then does it outlive an enumeration.
    pub(super) fn known(&self) -> bool {
        !self.identity.uuid.is_empty()
    }

    /// Takes the readings of a complete pass.
    pub(super) fn up(&mut self, reading: GpuReading) {
        self.status = Status::Up;
        self.last_read = Some(reading.read_at);
        let known = Known::of(&reading);
        if *self.known != known {
            self.known = Arc::new(known);
        }
        self.reading = Some(Arc::new(reading));
    }

    /// Lets go of readings whose rows are no longer asked for.
    pub(super) fn forget(&mut self) {
        self.reading = None;
        self.known = Arc::default();
        if self.status == Status::Up {
            self.status = Status::Starting;
        }
    }

    /// Ends the GPU's series.
    pub(super) fn down(&mut self, reason: &'static str) {
        self.status = Status::Down(reason);
        self.reading = None;
    }

    /// Hands a pass to the GPU's thread, starting it if need be. `false` if it cannot be.
    pub(super) fn assign(
        &mut self,
        job: Job,
        events: &Sender<Event>,
        incidents: &Arc<Incidents>,
    ) -> bool {
        let request = Arc::clone(&job.target.request);
        let busy = Busy { job: job.number, since: Instant::now(), request };
        let jobs = match self.jobs.take() {
            Some(jobs) => jobs,
            None => match spawn(&self.identity, events.clone(), Arc::clone(incidents)) {
                Ok(jobs) => jobs,
                Err(error) => {
                    tracing::error!(gpu = self.identity.index, %error, "cannot start a reading thread");
                    return false;
                }
            },
        };
        if jobs.send(job).is_err() {
            return false;
        }
        self.jobs = Some(jobs);
        self.busy = Some(busy);
        true
    }

    /// When the pass under way will be late.
    pub(super) fn due(&self, deadline: Duration) -> Option<Instant> {
        let since = self.busy.as_ref()?.since;
        (self.status != Status::Down("timeout")).then(|| since + deadline)
    }

    pub(super) fn snapshot(&self, incidents: &Incidents) -> Gpu {
        Gpu {
            identity: Arc::clone(&self.identity),
            status: self.status,
            reading: self.reading.clone(),
            last_read: self.last_read,
            known: Arc::clone(&self.known),
            history: incidents.of(&self.identity.uuid),
        }
    }
}

/// The reading thread of one GPU: it ends when the sampler forgets the GPU.
fn spawn(
    identity: &GpuIdentity,
    events: Sender<Event>,
    incidents: Arc<Incidents>,
) -> std::io::Result<Sender<Job>> {
    let (jobs, inbox) = mpsc::channel::<Job>();
    let uuid = identity.uuid.clone();
    thread::Builder::new().name(format!("gpu-{}", identity.index)).spawn(move || {
        let mut reader = Reader::default();
        for job in inbox {
            let pass = Box::new(reader.pass(&job.target, &incidents));
            let number = job.number;
            // The session can end only when no thread holds it.
            drop(job);
            if events.send(Event::Done { uuid: uuid.clone(), job: number, pass }).is_err() {
                break;
            }
        }
    })?;
    Ok(jobs)
}
