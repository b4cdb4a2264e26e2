//! The thread that loads NVML, looks GPUs up, and loads again when the driver went away.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::incidents::Incidents;
use super::lookup::Lookups;
use super::xid_thread::XidThread;
use super::{Beat, Command, Ended, Event};
use crate::nvml::{Code, Found, Loader, Meaning, Session, topology};
use crate::telemetry::Telemetry;

/// The first pause before NVML is loaded again; doubled up to [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_secs(1);

/// The longest pause: a driver that comes back is noticed within this.
const RETRY_MAX: Duration = Duration::from_secs(15);

/// How long the end of a session waits for passes under way. A thread that is stuck in the
/// driver keeps the old library open; the new session then shares it.
const DRAIN: Duration = Duration::from_secs(5);

/// GPUs are looked up again at least this often, beside whenever their number changes or one
/// misbehaves: one unplugged and another plugged in leave the number as it was.
const ENUMERATE_EVERY: Duration = Duration::from_secs(60);

/// While a GPU cannot be opened, it is tried again this often: nothing else tells that it can.
const RETRY_REFUSED_EVERY: Duration = Duration::from_secs(5);

pub(super) struct LibraryThread {
    pub(super) loader: Loader,
    pub(super) interval: Duration,
    pub(super) give_up_after: Option<Duration>,
    pub(super) ended: watch::Sender<Option<Ended>>,
    /// Shows that the thread is not stuck in NVML.
    pub(super) beat: Arc<Beat>,
    pub(super) events: Sender<Event>,
    pub(super) orders: Receiver<Command>,
    pub(super) incidents: Arc<Incidents>,
    pub(super) telemetry: Telemetry,
}

/// Why a session ended.
enum End {
    Stop,
    Recycle(&'static str, String),
}

impl LibraryThread {
    pub(super) fn run(self) {
        let mut pause = RETRY_MIN;
        let mut away_since = Instant::now();
        let mut said = String::new();
        loop {
            self.beat.beat();
            let (reason, detail) = match self.loader.open() {
                Ok(session) => {
                    said.clear();
                    pause = RETRY_MIN;
                    let facts = &session.facts;
                    tracing::info!(
                        library = facts.path,
                        driver = facts.driver_version,
                        "NVML is up"
                    );
                    if let Some(scenario) = &facts.simulated {
                        tracing::warn!(scenario, "ALL DATA IS SIMULATED: this is not a real GPU");
                    }
                    let end = self.session(&Arc::new(session));
                    away_since = Instant::now();
                    match end {
                        End::Stop => return,
                        End::Recycle(reason, detail) => (reason, detail),
                    }
                }
                Err(error) => (error.reason(), error.to_string()),
            };
            if said != detail {
                tracing::error!(reason, "NVML is down: {detail}");
                said.clone_from(&detail);
            }
            if self.events.send(Event::Down { reason, detail }).is_err() {
                return;
            }
            if self.give_up_after.is_some_and(|bound| away_since.elapsed() >= bound) {
                self.ended.send_replace(Some(Ended::NoDriver));
            }
            if self.sleep(pause) {
                return;
            }
            pause = (pause * 2).min(RETRY_MAX);
        }
    }

    /// Sleeps; `true` when asked to stop meanwhile. Other orders concern a session that is gone.
    fn sleep(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        loop {
            match self.orders.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => return true,
                Ok(Command::Enumerate | Command::Recycle(_)) => {}
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }

    /// Keeps one session until it is of no use; then waits for those who still hold it.
    fn session(&self, session: &Arc<Session>) -> End {
        let mut xid_thread = None;
        let end = self.watch(session, &mut xid_thread);
        if let End::Recycle(reason, detail) = &end {
            tracing::warn!(reason, detail, "NVML session ends");
            let down = Event::Down { reason, detail: detail.clone() };
            if self.events.send(down).is_err() {
                return End::Stop;
            }
        }
        drop(xid_thread);
        let until = Instant::now() + DRAIN;
        while Arc::strong_count(session) > 1 && Instant::now() < until {
            if matches!(end, End::Stop) {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        end
    }

    fn watch(&self, session: &Arc<Session>, xid_thread: &mut Option<XidThread>) -> End {
        let mut lookups = Lookups::default();
        let mut known: Vec<Found> = Vec::new();
        let mut enumerated = None;
        loop {
            self.beat.beat();
            let refused = known.iter().any(|gpu| gpu.refused.is_some());
            let every = if refused { RETRY_REFUSED_EVERY } else { ENUMERATE_EVERY };
            let due = enumerated.is_none_or(|at: Instant| at.elapsed() >= every);
            let looked_up = if due || count_changed(session, known.len()) {
                enumerated = Some(Instant::now());
                lookups.enumerate(session)
            } else {
                Ok(known.clone())
            };
            match looked_up {
                Err(code) => {
                    self.telemetry.record_error("nvmlDeviceGetCount_v2", code.name());
                    if code.meaning() == Meaning::Session {
                        return End::Recycle("driver_lost", lost(code));
                    }
                }
                Ok(found) if !same(&found, &known) || known.is_empty() => {
                    if xid_thread.as_ref().is_none_or(|thread| !thread.watches(&found)) {
                        *xid_thread =
                            XidThread::start(session, &found, &self.incidents, &self.telemetry);
                    }
                    known.clone_from(&found);
                    let up = Event::Up { session: Arc::clone(session), found };
                    if self.events.send(up).is_err() {
                        return End::Stop;
                    }
                }
                Ok(_) => {}
            }
            match self.orders.recv_timeout(self.interval) {
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => return End::Stop,
                Ok(Command::Recycle(reason)) => {
                    return End::Recycle(
                        reason,
                        "NVML answers that it is not initialised".to_owned(),
                    );
                }
                Ok(Command::Enumerate) => enumerated = None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// An error counts as a change: the look-up that follows says what it is.
fn count_changed(session: &Session, known: usize) -> bool {
    topology::count(session).map_or(true, |count| usize::try_from(count) != Ok(known))
}

fn lost(code: Code) -> String {
    format!("nvmlDeviceGetCount_v2 answers {}: the driver was unloaded or replaced", code.name())
}

/// Whether two look-ups gave the same devices behind the same handles.
fn same(one: &[Found], other: &[Found]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| {
            one.handle == other.handle
                && one.refused == other.refused
                && one.identity == other.identity
        })
}
