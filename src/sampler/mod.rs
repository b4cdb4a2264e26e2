//! Threads, cadence and deadlines; what they publish is a [`snapshot::Snapshot`].
//!
//! Five kinds of threads, none of which ever waits for another inside NVML:
//!
//! - `nvml` loads the library, looks GPUs up and loads again when the driver went away;
//! - `gpu-N`, one a GPU, makes that GPU's passes; a GPU that hangs costs this thread and its own
//!   series, nothing else;
//! - `xid` is blocked in NVML's event set;
//! - `kernel-log` reads the driver's lines about XIDs;
//! - `sampler` holds the clock: it hands out passes, gives up on those that are late and
//!   publishes.

mod beat;
pub mod cgroup;
mod coordinator;
pub mod history;
pub mod incidents;
mod kernel_log;
mod latest;
mod library;
mod lookup;
mod notice;
pub mod owners;
pub mod signs;
pub mod snapshot;
mod tracked;
mod vital;
mod xid_thread;

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::config::KernelLog;
use crate::nvml::{Found, Loader, Pass, Session, reader::Request};
use crate::telemetry::Telemetry;
pub use beat::Beat;
use incidents::Incidents;
pub use latest::{Bell, Latest};
pub use owners::ProcRoot;
use snapshot::{Library, Snapshot};
pub use vital::{Ended, Vital};

/// A GPU that has not finished its pass after this long is given up until it does: its series
/// end and the other GPUs go on. A pass takes milliseconds to a few hundred of them; seconds
/// mean a wedged driver. With a shorter interval the bound is that interval, but never less
/// than [`PASS_DEADLINE_MIN`].
pub const PASS_DEADLINE: Duration = Duration::from_secs(5);

/// The least that a pass may take before its GPU is given up, however short the interval.
pub const PASS_DEADLINE_MIN: Duration = Duration::from_secs(1);

/// How long the other GPUs' values wait for a slow one before they are published without it.
const PUBLISH_GRACE: Duration = Duration::from_millis(250);

/// The second pass follows the first after this, so that rates do not wait for a whole interval.
const WARM_UP: Duration = Duration::from_secs(1);

/// What the sampler needs to know.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The library to load.
    pub loader: Loader,
    /// From the begin of one pass to the begin of the next.
    pub interval: Duration,
    /// What to read.
    pub request: Arc<Request>,
    /// End the process when NVML has been away for this long; `None` is never.
    pub give_up_after: Option<Duration>,
    /// Where to look for the processes that use GPUs, if they are asked for.
    pub proc_root: ProcRoot,
    /// How long single XIDs and samples of clock events are of interest.
    pub keep: Duration,
    /// Where the kernel log is, if it is to be read.
    pub kernel_log: Option<KernelLog>,
}

/// What the threads tell the sampler.
enum Event {
    /// There is no session.
    Down { reason: &'static str, detail: String },
    /// A session, with the GPUs found: new, or looked up again.
    Up { session: Arc<Session>, found: Vec<Found> },
    /// One GPU's pass is over.
    Done { uuid: String, job: u64, pass: Box<Pass> },
    /// Read something else from now on.
    Request(Arc<Request>),
    /// End.
    Stop,
}

/// What the sampler tells the library thread.
enum Command {
    /// Look the GPUs up again.
    Enumerate,
    /// The session is of no use any more: end it and load again.
    Recycle(&'static str),
    /// End.
    Stop,
}

/// The running sampler. Dropping it lets the threads end by themselves.
#[derive(Debug)]
pub struct Sampler {
    events: Sender<Event>,
    /// The newest snapshot.
    pub latest: Arc<Latest<Snapshot>>,
    /// Shows that the sampling loop moves.
    pub beat: Arc<Beat>,
    ended: watch::Sender<Option<Ended>>,
}

impl Sampler {
    /// Starts the threads.
    pub fn start(settings: Settings, telemetry: Telemetry) -> std::io::Result<Self> {
        let (events, inbox) = mpsc::channel();
        let (commands, orders) = mpsc::channel();
        let (ended, _) = watch::channel(None);
        let incidents = Arc::new(Incidents::new(settings.keep));
        if let Some(log) = settings.kernel_log.clone() {
            kernel_log::start(log, Arc::clone(&incidents), telemetry.clone())?;
        }
        let latest = Arc::new(Latest::new(Snapshot {
            taken: std::time::SystemTime::now(),
            selection: Arc::clone(&settings.request.selection),
            library: Library::Starting,
            gpus: Vec::new(),
        }));
        let beat = Arc::new(Beat::default());
        let library_beat = Arc::new(Beat::default());
        let library = library::LibraryThread {
            loader: settings.loader.clone(),
            interval: settings.interval,
            give_up_after: settings.give_up_after,
            ended: ended.clone(),
            beat: Arc::clone(&library_beat),
            events: events.clone(),
            orders,
            incidents: Arc::clone(&incidents),
            telemetry: telemetry.clone(),
        };
        let vital = Vital { thread: "nvml", ended: ended.clone() };
        thread::Builder::new().name("nvml".into()).spawn(move || {
            let _vital = vital;
            library.run();
        })?;
        let coordinator = coordinator::Coordinator::new(
            settings,
            coordinator::Wiring {
                events: events.clone(),
                commands,
                incidents,
                telemetry,
                latest: Arc::clone(&latest),
                beat: Arc::clone(&beat),
                library_beat,
            },
        );
        let vital = Vital { thread: "sampler", ended: ended.clone() };
        thread::Builder::new().name("sampler".into()).spawn(move || {
            let _vital = vital;
            coordinator.run(&inbox);
        })?;
        Ok(Self { events, latest, beat, ended })
    }

    /// Reads by another request from the next pass on, which begins at once.
    pub fn replace(&self, request: Arc<Request>) {
        // A sampler that has ended needs no request.
        let _ = self.events.send(Event::Request(request));
    }

    /// A thread of another module that the process cannot do without.
    #[must_use]
    pub fn vital(&self, thread: &'static str) -> Vital {
        Vital { thread, ended: self.ended.clone() }
    }

    /// Resolves when the process should end by itself.
    pub async fn ended(&self) -> Ended {
        let mut ended = self.ended.subscribe();
        // The sender lives in `self`, so that there is always a value to wait for.
        let seen = ended.wait_for(Option::is_some).await.ok().and_then(|seen| *seen);
        seen.unwrap_or(Ended::Died("sampler"))
    }

    /// Asks the threads to end. Does not wait: one may be stuck in the driver.
    pub fn stop(&self) {
        let _ = self.events.send(Event::Stop);
    }
}

/// Waits for the next message until `until`; `None` when that time has come.
fn receive(inbox: &Receiver<Event>, until: Instant) -> Option<Event> {
    inbox.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
}
