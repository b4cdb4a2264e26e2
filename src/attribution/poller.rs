//! The thread that asks the kubelet and reads job files, again and again.
//!
//! It has a tokio runtime of its own: nothing that it waits for delays a pass or a scrape. Three
//! loops run on it: one asks the kubelet, one reads job files, and one puts together what is
//! known, including what the API server says, whenever any of that changes.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use regex::Regex;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::jobs::JobReader;
use super::kubelet::{
    Answer, Client, Limits, OwnPod, PodResourcesError, Reason, Rules, Seen, convert,
};
use super::{Allocations, Attribution, Jobs, PodTable, ResourceNames};
use crate::sampler::{Bell, Latest};
use crate::telemetry::Telemetry;

mod first_seen;
mod journal;

use first_seen::FirstSeen;
use journal::Journal;

/// How long the last answer counts when no new one comes, unless polls are rare.
pub const KEEP: Duration = Duration::from_secs(60);

/// The answer counts for as many intervals if that is longer.
pub const KEEP_INTERVALS: u32 = 3;

/// The kubelet is asked no more often: its limit of calls is for all clients together.
pub const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// Time between a poll that failed and the next.
pub const RETRY: Duration = Duration::from_secs(1);

/// A kubelet that has just started lists nothing for some tenths of a second, and for about a
/// second pods that have ended long ago: after a new connection what was known stays for so long.
pub const SETTLE: Duration = Duration::from_secs(3);

/// A namespace and a name.
pub type Key = (String, String);

/// What to ask, and how.
#[derive(Debug, Clone)]
pub struct PollSettings {
    /// Whether to ask the kubelet at all (`--kubernetes`).
    pub kubernetes: bool,
    /// The kubelet's socket.
    pub socket: PathBuf,
    /// Time between polls, at least [`MIN_INTERVAL`].
    pub interval: Duration,
    /// Further names of resources that are GPUs.
    pub resource_names: Vec<String>,
    /// The exporter's own pod, if it is in one.
    pub own_pod: Option<OwnPod>,
    /// Pods to leave out, matched on `namespace/name`.
    pub ignore: Vec<Regex>,
    /// Directory of job files.
    pub jobs: Option<PathBuf>,
    /// Bounds of calls.
    pub limits: Limits,
    /// How long the last answer counts; [`keep_for`] says how long is usual.
    pub keep: Duration,
}

impl PollSettings {
    fn rules(&self) -> Rules {
        Rules {
            names: ResourceNames::new(self.resource_names.iter().cloned()),
            own_pod: self.own_pod.clone(),
            ignore: self.ignore.clone(),
        }
    }

    fn interval(&self) -> Duration {
        self.interval.max(MIN_INTERVAL)
    }
}

/// How long an answer counts with this interval: [`KEEP`] or [`KEEP_INTERVALS`].
#[must_use]
pub fn keep_for(interval: Duration) -> Duration {
    KEEP.max(interval.saturating_mul(KEEP_INTERVALS))
}

/// What the API server tells, and what it is asked for. Either end may be dropped: what was said
/// last then stays.
#[derive(Debug)]
pub struct Metadata {
    /// This node's pods.
    pub pods: watch::Receiver<Arc<PodTable>>,
    /// Claims with administrators' access, whose holders do not count as users of a device.
    pub admin_claims: watch::Receiver<Arc<HashSet<Key>>>,
    /// The claims that the kubelet lists now.
    pub claims: watch::Sender<BTreeSet<Key>>,
}

impl Metadata {
    /// For an exporter that does not ask the API server.
    #[must_use]
    pub fn none() -> Self {
        Self {
            pods: watch::channel(Arc::default()).1,
            admin_claims: watch::channel(Arc::default()).1,
            claims: watch::channel(BTreeSet::new()).0,
        }
    }
}

/// Starts the thread, named `pods`; it ends with the process. What it learns is in the slot, which
/// rings the bell.
pub fn start(
    settings: PollSettings,
    telemetry: Telemetry,
    metadata: Metadata,
    bell: &Arc<Bell>,
) -> io::Result<Arc<Latest<Attribution>>> {
    let runtime = runtime()?;
    let latest = Arc::new(Latest::ringing(Attribution::default(), Arc::clone(bell)));
    let slot = Arc::clone(&latest);
    thread::Builder::new().name("pods".into()).spawn(move || {
        runtime.block_on(run(settings, telemetry, metadata, &slot));
    })?;
    Ok(latest)
}

/// Asks the kubelet once and reads the job files, for the command `check`. It has to be called
/// outside a tokio runtime.
pub fn look(settings: &PollSettings) -> Result<(Attribution, Seen), PodResourcesError> {
    let jobs = settings.jobs.clone().map(|directory| JobReader::new(directory).read());
    let mut attribution =
        Attribution { jobs: Arc::new(jobs.unwrap_or_default()), ..Attribution::default() };
    if !settings.kubernetes {
        return Ok((attribution, Seen::default()));
    }
    let failed = |error: io::Error| PodResourcesError {
        reason: Reason::Other,
        path: settings.socket.clone(),
        detail: error.to_string(),
    };
    let answer = runtime().map_err(failed)?.block_on(async {
        let mut client = Client::new(settings.socket.clone(), settings.limits);
        ask(&mut client, &settings.rules(), |_| ()).await
    })?;
    attribution.allocations = Some(Arc::new(answer.allocations));
    Ok((attribution, answer.seen))
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().thread_name("jobs").build()
}

async fn run(
    settings: PollSettings,
    telemetry: Telemetry,
    metadata: Metadata,
    latest: &Latest<Attribution>,
) {
    let (jobs_found, jobs) = watch::channel(Arc::default());
    let (told, known) = watch::channel(Known::default());
    let Metadata { pods, admin_claims, claims } = metadata;
    let join = Join { known, jobs, pods, admin_claims, latest, telemetry: &telemetry };
    tokio::join!(
        join.run(),
        read_jobs(settings.jobs.clone(), settings.interval(), jobs_found),
        poll(&settings, &telemetry, &told, &claims),
    );
}

/// The last answer, and until when it counts.
#[derive(Debug, Clone, Default)]
struct Known(Option<(Arc<Allocations>, Instant)>);

impl Known {
    fn is_fresh(&self) -> bool {
        self.0.as_ref().is_some_and(|(_, until)| Instant::now() < *until)
    }
}

/// Whether a kubelet may have started a moment ago.
#[derive(Debug, Default)]
struct Settling {
    connections: usize,
    until: Option<Instant>,
}

impl Settling {
    /// After an answer over the newest of so many connections.
    fn is_unsettled(&mut self, connections: usize) -> bool {
        let now = Instant::now();
        if connections != self.connections {
            self.connections = connections;
            self.until = Some(now + SETTLE);
        }
        self.until.is_some_and(|until| now < until)
    }
}

/// Asks the kubelet for as long as the process lives.
async fn poll(
    settings: &PollSettings,
    telemetry: &Telemetry,
    told: &watch::Sender<Known>,
    claims: &watch::Sender<BTreeSet<Key>>,
) {
    if !settings.kubernetes {
        return;
    }
    for reason in Reason::ALL {
        telemetry.expect_poll_error(reason.label());
    }
    let rules = settings.rules();
    let mut client = Client::new(settings.socket.clone(), settings.limits);
    let mut journal = Journal::default();
    let mut seen_first = FirstSeen::default();
    let mut settled = Settling::default();
    loop {
        let began = Instant::now();
        let part = |error: &PodResourcesError| {
            if error.reason != Reason::Unimplemented {
                telemetry.record_poll_error(error.reason.label());
            }
        };
        let result = ask(&mut client, &rules, part).await;
        let took = began.elapsed();
        let pause = if result.is_ok() { settings.interval() } else { RETRY };
        match result {
            Ok(Answer { mut allocations, claims: listed, seen }) => {
                telemetry.record_poll(took, seen.pods);
                if settled.is_unsettled(client.connections()) && told.borrow().is_fresh() {
                    sleep_until(began + RETRY).await;
                    continue;
                }
                journal.answered(&settings.socket, &seen, &allocations);
                seen_first.stamp(&mut allocations.holdings);
                claims.send_if_modified(|known| {
                    let changed = *known != listed;
                    *known = listed;
                    changed
                });
                told.send_modify(|known| {
                    // Unchanged allocations stay the same allocation of memory.
                    let same = known.0.take().map(|(known, _)| known);
                    let same = same.filter(|known| **known == allocations);
                    let allocations = same.unwrap_or_else(|| Arc::new(allocations));
                    known.0 = Some((allocations, Instant::now() + settings.keep));
                });
            }
            Err(error) => {
                telemetry.record_poll_failure(took, error.reason.label());
                journal.failed(&error, told.borrow().0.is_some());
            }
        }
        sleep_until(began + pause).await;
    }
}

/// One look. `part` is told of a failure that costs only a part of the answer.
async fn ask(
    client: &mut Client,
    rules: &Rules,
    part: impl Fn(&PodResourcesError),
) -> Result<Answer, PodResourcesError> {
    let list = client.list().await?;
    let allocatable = client.allocatable().await.inspect_err(part).ok();
    Ok(convert(&list, allocatable.as_ref(), rules))
}

/// Reads job files for as long as the process lives. They may be on a file system that hangs, so
/// that they are read by a thread of the runtime's.
async fn read_jobs(
    directory: Option<PathBuf>,
    interval: Duration,
    found: watch::Sender<Arc<Jobs>>,
) {
    let Some(directory) = directory else { return };
    let mut reader = JobReader::new(directory.clone());
    loop {
        let read = tokio::task::spawn_blocking(move || {
            let jobs = reader.read();
            (jobs, reader)
        });
        let jobs;
        (jobs, reader) =
            read.await.unwrap_or_else(|_| (Jobs::default(), JobReader::new(directory.clone())));
        found.send_if_modified(|known| {
            let changed = **known != jobs;
            if changed {
                *known = Arc::new(jobs);
            }
            changed
        });
        sleep(interval).await;
    }
}

/// Puts together what is known.
struct Join<'a> {
    known: watch::Receiver<Known>,
    jobs: watch::Receiver<Arc<Jobs>>,
    pods: watch::Receiver<Arc<PodTable>>,
    admin_claims: watch::Receiver<Arc<HashSet<Key>>>,
    latest: &'a Latest<Attribution>,
    telemetry: &'a Telemetry,
}

impl Join<'_> {
    async fn run(mut self) {
        let mut published = Attribution::default();
        loop {
            let Known(known) = self.known.borrow_and_update().clone();
            let fresh = known.as_ref().filter(|(_, until)| Instant::now() < *until);
            let attribution = join(
                fresh.map(|(allocations, _)| allocations),
                &self.admin_claims.borrow_and_update(),
                &self.pods.borrow_and_update(),
                &self.jobs.borrow_and_update(),
            );
            if attribution.allocations.is_none() && published.allocations.is_some() {
                self.telemetry.record_pods_forgotten();
                tracing::warn!("what pods hold is not known any more: devices lose their pods");
            }
            if attribution != published {
                published = attribution.clone();
                self.latest.set(attribution);
            }
            let expiry = fresh.map(|(_, until)| *until);
            tokio::select! {
                Ok(()) = self.known.changed() => (),
                Ok(()) = self.jobs.changed() => (),
                Ok(()) = self.pods.changed() => (),
                Ok(()) = self.admin_claims.changed() => (),
                () = sleep_until(expiry.unwrap_or_else(Instant::now)), if expiry.is_some() => (),
                // No one is left to tell anything.
                else => return,
            }
        }
    }
}

/// What is known of all sources, without the holdings of administrators' claims.
fn join(
    allocations: Option<&Arc<Allocations>>,
    admin_claims: &HashSet<Key>,
    pods: &Arc<PodTable>,
    jobs: &Arc<Jobs>,
) -> Attribution {
    let is_admins = |holding: &super::Holding| {
        let claim = holding.claim.as_ref();
        claim.is_some_and(|it| admin_claims.contains(&(it.namespace.clone(), it.name.clone())))
    };
    let allocations = allocations.map(|all| {
        if admin_claims.is_empty() || !all.holdings.iter().any(is_admins) {
            return Arc::clone(all);
        }
        let holdings = all.holdings.iter().filter(|holding| !is_admins(holding)).cloned();
        Arc::new(Allocations { holdings: holdings.collect(), ..(**all).clone() })
    });
    Attribution { allocations, pods: Arc::clone(pods), jobs: Arc::clone(jobs) }
}

#[cfg(test)]
mod tests;
