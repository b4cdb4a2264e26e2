//! The thread that is blocked in NVML's event set.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::incidents::{Incidents, Source};
use crate::nvml::raw_handle::Handle;
use crate::nvml::{
    Code, Found, Meaning, Session,
    events::{XidEvent, XidWatch},
};
use crate::telemetry::Telemetry;

/// The pause before a broken event set is built again.
const REBUILD: Duration = Duration::from_secs(1);

/// A wait that ends sooner without an event did not block, as some stand-ins for NVML do not:
/// the thread sleeps instead of spinning.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// A running watch over a set of GPUs. Dropping it asks the thread to end, which it does within
/// one wait of the event set.
#[derive(Debug)]
pub(super) struct XidThread {
    gpus: Vec<(Handle, String)>,
    stop: Arc<AtomicBool>,
}

impl XidThread {
    /// Starts watching; `None` when there is nothing to watch or no thread to be had.
    pub(super) fn start(
        session: &Arc<Session>,
        found: &[Found],
        incidents: &Arc<Incidents>,
        telemetry: &Telemetry,
    ) -> Option<Self> {
        let gpus = watchable(found);
        if gpus.is_empty() {
            return None;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let work = Work {
            session: Arc::clone(session),
            gpus: gpus.clone(),
            stop: Arc::clone(&stop),
            incidents: Arc::clone(incidents),
            telemetry: telemetry.clone(),
        };
        match thread::Builder::new().name("xid".into()).spawn(move || work.run()) {
            Ok(_) => Some(Self { gpus, stop }),
            Err(error) => {
                tracing::error!(%error, "cannot start the XID thread; XIDs are not seen");
                None
            }
        }
    }

    /// Whether it watches just these GPUs.
    pub(super) fn watches(&self, found: &[Found]) -> bool {
        self.gpus == watchable(found)
    }
}

impl Drop for XidThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn watchable(found: &[Found]) -> Vec<(Handle, String)> {
    found.iter().filter_map(|gpu| Some((gpu.handle?, gpu.identity.uuid.clone()))).collect()
}

fn unwatchable(code: Code) {
    tracing::warn!(code = code.name(), "no GPU reports XIDs to this process");
}

struct Work {
    session: Arc<Session>,
    gpus: Vec<(Handle, String)>,
    stop: Arc<AtomicBool>,
    incidents: Arc<Incidents>,
    telemetry: Telemetry,
}

impl Work {
    fn run(&self) {
        while !self.stopped() {
            match XidWatch::new(&self.session, &self.gpus) {
                Ok(watch) => {
                    watch.watched().for_each(|uuid| self.incidents.watch(uuid));
                    if let Err(code) = self.wait(&watch) {
                        watch.watched().for_each(|uuid| self.incidents.unwatch(uuid));
                        return unwatchable(code);
                    }
                }
                Err(code) if code.meaning() == Meaning::Unsupported => return unwatchable(code),
                Err(code) => self.failed("nvmlDeviceRegisterEvents", code),
            }
        }
    }

    /// Waits until the set is of no use any more; an error means that no set ever will be.
    fn wait(&self, watch: &XidWatch<'_>) -> Result<(), Code> {
        while !self.stopped() {
            let begun = Instant::now();
            match watch.wait() {
                Ok(None) if begun.elapsed() < SHORTEST_WAIT => thread::sleep(SHORTEST_WAIT),
                Ok(None) => {}
                Ok(Some(event)) => {
                    let XidEvent { uuid, gpu_instance, xid } = event;
                    tracing::error!(uuid, ?gpu_instance, xid, "XID");
                    let at = SystemTime::now();
                    self.incidents.xid(&uuid, (gpu_instance, xid), Source::Nvml, at);
                }
                Err(code) if code.meaning() == Meaning::Unsupported => return Err(code),
                Err(code) => {
                    self.failed("nvmlEventSetWait_v2", code);
                    break;
                }
            }
        }
        Ok(())
    }

    fn failed(&self, call: &'static str, code: Code) {
        self.telemetry.record_error(call, code.name());
        thread::sleep(REBUILD);
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
