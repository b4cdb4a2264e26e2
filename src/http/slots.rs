//! Who may be connected: a bounded number, and at the bound the longest idle gives way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::activity::Activity;
use super::limits::Limits;

/// How long a newcomer waits for the evicted connection to be gone: one turn of its task.
const HANDOVER: Duration = Duration::from_secs(1);

/// The open connections.
#[derive(Debug)]
pub(super) struct Slots {
    free: Arc<Semaphore>,
    /// Guards the list alone; held for the time of an insert, a removal or a search, by the
    /// accept loops and by connections that end. No answer waits for it.
    open: Mutex<Open>,
    limits: Limits,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    connections: BTreeMap<u64, Arc<Activity>>,
}

impl Slots {
    pub(super) fn new(limits: Limits) -> Self {
        let free = Arc::new(Semaphore::new(limits.connections));
        Self { free, open: Mutex::default(), limits }
    }

    /// A slot for a new connection; `None` when every connection has a request under way.
    pub(super) async fn take(self: &Arc<Self>) -> Option<Slot> {
        let permit = if let Ok(permit) = self.free.clone().try_acquire_owned() {
            permit
        } else {
            self.longest_idle()?.evict();
            let freed = self.free.clone().acquire_owned();
            tokio::time::timeout(HANDOVER, freed).await.ok()?.ok()?
        };
        let activity = Arc::new(Activity::new(&self.limits));
        let mut open = self.open();
        let id = open.next;
        open.next += 1;
        open.connections.insert(id, activity.clone());
        drop(open);
        Some(Slot { id, activity, slots: self.clone(), _permit: permit })
    }

    fn longest_idle(&self) -> Option<Arc<Activity>> {
        let open = self.open();
        let idle = open.connections.values().filter_map(|c| Some((c.idle_since()?, c)));
        idle.min_by_key(|(since, _)| *since).map(|(_, connection)| connection.clone())
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection's slot; dropped, it is free.
#[derive(Debug)]
pub(super) struct Slot {
    id: u64,
    pub(super) activity: Arc<Activity>,
    slots: Arc<Slots>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.open().connections.remove(&self.id);
    }
}
