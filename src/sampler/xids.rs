//! The last XID of each GPU and MIG instance.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Shared between the event thread, which writes, and the reading threads. A plain lock: it is
/// held for a look-up, and never while NVML is called.
#[derive(Debug, Default)]
pub struct Xids(Mutex<HashMap<String, Gpu>>);

#[derive(Debug, Default)]
struct Gpu {
    /// Counts the XIDs seen, to tell which of two is the newer.
    seen: u64,
    board: Option<(u64, u64)>,
    instances: HashMap<u32, (u64, u64)>,
}

impl Xids {
    /// A GPU is registered for XIDs: from now on "none yet" is known, and is 0.
    pub fn watch(&self, uuid: &str) {
        let mut gpus = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        gpus.entry(uuid.to_owned()).or_default();
    }

    /// A GPU turns out not to be watched: nothing is known of its XIDs.
    pub fn unwatch(&self, uuid: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uuid);
    }

    /// Notes an XID of a GPU, or of one of its instances.
    pub fn record(&self, uuid: &str, instance: Option<u32>, xid: u64) {
        let mut gpus = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gpu = gpus.entry(uuid.to_owned()).or_default();
        gpu.seen += 1;
        let newest = (gpu.seen, xid);
        match instance {
            None => gpu.board = Some(newest),
            Some(instance) => {
                gpu.instances.insert(instance, newest);
            }
        }
    }

    /// The last XID: 0 before the first, `None` for a GPU that cannot be watched. An XID of the
    /// whole board shows on each of its instances, since a MIG board has no row of its own.
    #[must_use]
    pub fn last(&self, uuid: &str, instance: Option<u32>) -> Option<u64> {
        let gpus = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gpu = gpus.get(uuid)?;
        let own = instance.and_then(|instance| gpu.instances.get(&instance).copied());
        Some(gpu.board.max(own).map_or(0, |(_, xid)| xid))
    }
}

#[cfg(test)]
mod tests {
    use super::Xids;

    #[test]
    fn the_last_xid_sticks_and_starts_at_zero() {
        let xids = Xids::default();
        assert_eq!(xids.last("GPU-a", None), None);
        xids.watch("GPU-a");
        assert_eq!(xids.last("GPU-a", None), Some(0));
        xids.record("GPU-a", None, 79);
        xids.record("GPU-a", None, 31);
        assert_eq!(xids.last("GPU-a", None), Some(31));
    }

    #[test]
    fn an_instance_shows_its_own_xid_and_its_boards() {
        let xids = Xids::default();
        xids.watch("GPU-a");
        xids.record("GPU-a", Some(7), 43);
        assert_eq!((xids.last("GPU-a", Some(7)), xids.last("GPU-a", Some(8))), (Some(43), Some(0)));
        xids.record("GPU-a", None, 95);
        assert_eq!(
            (xids.last("GPU-a", Some(7)), xids.last("GPU-a", Some(8))),
            (Some(95), Some(95))
        );
    }
}
