//! Where the threads that hear of XIDs and read clock events note them, each XID once although
//! two sources tell of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::history::{ClockEvents, History, XidCount, age};

/// A line of the kernel log and an event of NVML about the same code on the same GPU are the same
/// XID if they are not further apart. Also, one XID may take several lines.
const SAME: Duration = Duration::from_secs(10);

/// Who tells of an XID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// NVML's event set, which knows instances but does not tell of every code.
    Nvml,
    /// The kernel log.
    KernelLog,
}

/// The histories of all GPUs, by UUID. A plain lock: it is held for a look-up, and never while
/// NVML is called.
#[derive(Debug)]
pub struct Incidents {
    gpus: Mutex<HashMap<String, Gpu>>,
    /// How long single events are of interest.
    keep: Duration,
}

#[derive(Debug, Default)]
struct Gpu {
    /// As NVML writes it; empty if unknown.
    pci_bus_id: String,
    history: Arc<History>,
    /// XIDs noted so far.
    seen: u64,
    /// When the kernel log told of codes that NVML may still tell of.
    told_by_kernel: HashMap<(Option<u32>, u64), SystemTime>,
}

impl Gpu {
    /// Whether the kernel log was first to tell of it; once only, since the next is another.
    fn is_told(&mut self, instance: Option<u32>, code: u64, at: SystemTime) -> bool {
        let told = |told: &HashMap<_, SystemTime>, key| {
            told.get(&key).is_some_and(|told| age(*told, at) <= SAME)
        };
        let keys = [(instance, code), (None, code)];
        let key = keys.into_iter().find(|key| told(&self.told_by_kernel, *key));
        key.is_some_and(|key| self.told_by_kernel.remove(&key).is_some())
    }
}

/// Either source may lack the instance.
fn may_be_one(one: Option<u32>, other: Option<u32>) -> bool {
    one.is_none() || other.is_none() || one == other
}

impl Incidents {
    /// Nothing happened yet; single events are kept for as long as the longest window asks.
    #[must_use]
    pub fn new(keep: Duration) -> Self {
        Self { gpus: Mutex::default(), keep }
    }

    fn with<T>(&self, uuid: &str, work: impl FnOnce(&mut Gpu) -> T) -> T {
        let mut gpus = self.gpus.lock().unwrap_or_else(PoisonError::into_inner);
        work(gpus.entry(uuid.to_owned()).or_default())
    }

    /// A GPU is at this address of the PCI bus.
    pub fn place(&self, uuid: &str, pci_bus_id: &str) {
        self.with(uuid, |gpu| pci_bus_id.clone_into(&mut gpu.pci_bus_id));
    }

    /// The UUIDs of all GPUs with an address, and their addresses.
    #[must_use]
    pub fn places(&self) -> Vec<(String, String)> {
        let gpus = self.gpus.lock().unwrap_or_else(PoisonError::into_inner);
        let placed = gpus.iter().filter(|(_, gpu)| !gpu.pci_bus_id.is_empty());
        placed.map(|(uuid, gpu)| (uuid.clone(), gpu.pci_bus_id.clone())).collect()
    }

    /// A GPU is watched: from now on "none yet" is known, and is 0.
    pub fn watch(&self, uuid: &str) {
        self.with(uuid, |gpu| Arc::make_mut(&mut gpu.history).watched = true);
    }

    /// A GPU turns out not to be watched: of its XIDs only those already told are known.
    pub fn unwatch(&self, uuid: &str) {
        self.with(uuid, |gpu| Arc::make_mut(&mut gpu.history).watched = false);
    }

    /// Notes an XID of a GPU, or of one of its instances; `false` if it is known already.
    pub fn xid(
        &self,
        uuid: &str,
        (instance, code): (Option<u32>, u64),
        source: Source,
        at: SystemTime,
    ) -> bool {
        self.with(uuid, |gpu| {
            let known = match source {
                Source::Nvml => gpu.is_told(instance, code, at),
                Source::KernelLog => gpu.history.xids.iter().any(|((whose, noted), count)| {
                    *noted == code && may_be_one(*whose, instance) && age(count.last, at) <= SAME
                }),
            };
            if known {
                return false;
            }
            if source == Source::KernelLog {
                gpu.told_by_kernel.insert((instance, code), at);
            }
            gpu.seen += 1;
            let order = gpu.seen;
            let count = Arc::make_mut(&mut gpu.history)
                .xids
                .entry((instance, code))
                .or_insert_with(|| XidCount { total: 0, last: at, order, recent: <_>::default() });
            count.total += 1;
            count.last = at;
            count.order = order;
            count.recent.add(at, self.keep);
            true
        })
    }

    /// Notes a sample of a GPU's clock event reasons.
    pub fn clocks(&self, uuid: &str, mask: u64, at: SystemTime) {
        self.with(uuid, |gpu| {
            let history = Arc::make_mut(&mut gpu.history);
            let former = history.clocks.take();
            history.clocks = Some(ClockEvents::sampled(former, mask, at, self.keep));
        });
    }

    /// What happened to a GPU; nothing, if nobody ever told.
    #[must_use]
    pub fn of(&self, uuid: &str) -> Arc<History> {
        let gpus = self.gpus.lock().unwrap_or_else(PoisonError::into_inner);
        gpus.get(uuid).map(|gpu| Arc::clone(&gpu.history)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPU: &str = "GPU-a";

    fn incidents() -> Incidents {
        Incidents::new(Duration::from_secs(300))
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn total(incidents: &Incidents, instance: Option<u32>, code: u64) -> Option<u64> {
        incidents.of(GPU).xids.get(&(instance, code)).map(|count| count.total)
    }

    #[test]
    fn the_last_xid_sticks_and_starts_at_zero() {
        let incidents = incidents();
        let last = |instance| incidents.of(GPU).last_xid(instance);
        assert_eq!(last(None), None);
        incidents.watch(GPU);
        assert_eq!(last(None), Some(0));
        assert!(incidents.xid(GPU, (None, 79), Source::Nvml, at(1)));
        assert!(incidents.xid(GPU, (None, 31), Source::Nvml, at(1)));
        assert_eq!(last(None), Some(31));
    }

    #[test]
    fn an_instance_shows_its_own_xid_and_its_boards() {
        let incidents = incidents();
        let last = |instance| incidents.of(GPU).last_xid(instance);
        incidents.watch(GPU);
        incidents.xid(GPU, (Some(7), 43), Source::Nvml, at(1));
        assert_eq!((last(Some(7)), last(Some(8))), (Some(43), Some(0)));
        incidents.xid(GPU, (None, 95), Source::Nvml, at(2));
        assert_eq!((last(Some(7)), last(Some(8))), (Some(95), Some(95)));
    }

    #[test]
    fn every_event_of_nvml_counts() {
        let incidents = incidents();
        for _ in 0..3 {
            assert!(incidents.xid(GPU, (None, 31), Source::Nvml, at(1)));
        }
        assert_eq!(total(&incidents, None, 31), Some(3));
    }

    #[test]
    fn lines_of_the_kernel_log_do_not_count_what_nvml_told() {
        let incidents = incidents();
        incidents.xid(GPU, (Some(2), 31), Source::Nvml, at(1));
        assert!(!incidents.xid(GPU, (None, 31), Source::KernelLog, at(3)));
        assert!(incidents.xid(GPU, (None, 62), Source::KernelLog, at(3)));
        assert!(incidents.xid(GPU, (None, 31), Source::KernelLog, at(30)));
        assert_eq!(total(&incidents, Some(2), 31), Some(1));
        assert_eq!(total(&incidents, None, 31), Some(1));
    }

    #[test]
    fn an_event_after_its_line_is_the_same_xid_and_the_next_is_another() {
        let incidents = incidents();
        assert!(incidents.xid(GPU, (None, 79), Source::KernelLog, at(1)));
        assert!(!incidents.xid(GPU, (None, 79), Source::Nvml, at(4)));
        assert!(incidents.xid(GPU, (None, 79), Source::Nvml, at(5)));
        assert_eq!(total(&incidents, None, 79), Some(2));
    }

    #[test]
    fn instances_of_one_board_have_xids_of_their_own() {
        let incidents = incidents();
        assert!(incidents.xid(GPU, (Some(1), 94), Source::KernelLog, at(1)));
        assert!(incidents.xid(GPU, (Some(2), 94), Source::KernelLog, at(1)));
        assert!(!incidents.xid(GPU, (Some(2), 94), Source::Nvml, at(2)));
        assert!(incidents.xid(GPU, (Some(3), 94), Source::Nvml, at(2)));
        assert!(!incidents.xid(GPU, (Some(1), 94), Source::Nvml, at(2)));
    }

    #[test]
    fn many_lines_of_one_xid_are_one() {
        let incidents = incidents();
        assert!(incidents.xid(GPU, (None, 145), Source::KernelLog, at(1)));
        for second in 1..9 {
            assert!(!incidents.xid(GPU, (None, 145), Source::KernelLog, at(second)));
        }
        assert_eq!(total(&incidents, None, 145), Some(1));
    }

    #[test]
    fn a_reading_of_the_past_stays_as_it_was() {
        let incidents = incidents();
        incidents.watch(GPU);
        let before = incidents.of(GPU);
        incidents.xid(GPU, (None, 79), Source::Nvml, at(1));
        assert_eq!(before.last_xid(None), Some(0));
    }
}
