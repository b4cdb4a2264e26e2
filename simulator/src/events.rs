//! Event sets: who waits for what, and what has happened.

use std::collections::VecDeque;

use crate::code::{Answer, INVALID_ARGUMENT};
use crate::ffi::Handle;

/// The handle of event set 0; the others follow.
const FIRST: usize = 0xe5 << 40;

/// How many events a set holds; the oldest go first, as in the driver's ring.
const DEPTH: usize = 256;

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) gpu: usize,
    pub(crate) types: u64,
    pub(crate) data: u64,
    /// The GPU instance and compute instance; all ones where it is nobody's.
    pub(crate) instance: (u32, u32),
}

/// An event set.
#[derive(Debug, Default)]
pub(crate) struct EventSet {
    /// GPUs with the events they are watched for.
    pub(crate) watched: Vec<(usize, u64)>,
    queue: VecDeque<Event>,
}

/// All event sets. Numbers of freed sets are not used again.
#[derive(Debug, Default)]
pub(crate) struct EventSets {
    sets: Vec<(usize, EventSet)>,
    created: usize,
}

impl EventSets {
    /// Makes a set.
    pub(crate) fn create(&mut self) -> Handle {
        let handle = FIRST + self.created;
        self.created += 1;
        self.sets.push((handle, EventSet::default()));
        Handle(handle)
    }

    /// Frees a set.
    pub(crate) fn free(&mut self, handle: Handle) -> Answer {
        let before = self.sets.len();
        self.sets.retain(|(h, _)| *h != handle.0);
        if self.sets.len() == before { Err(INVALID_ARGUMENT) } else { Ok(()) }
    }

    /// The set of a handle.
    pub(crate) fn get(&mut self, handle: Handle) -> Answer<&mut EventSet> {
        let found = self.sets.iter_mut().find(|(h, _)| *h == handle.0);
        found.map(|(_, set)| set).ok_or(INVALID_ARGUMENT)
    }

    /// Tells every set that watches for it of an event.
    pub(crate) fn post(
        &mut self,
        gpu: usize,
        types: u64,
        data: u64,
        (gi, ci): (Option<u32>, Option<u32>),
    ) {
        let instance = (gi.unwrap_or(u32::MAX), ci.unwrap_or(u32::MAX));
        for (_, set) in &mut self.sets {
            if set.watched.iter().any(|(g, mask)| *g == gpu && mask & types != 0) {
                if set.queue.len() == DEPTH {
                    set.queue.pop_front();
                }
                set.queue.push_back(Event { gpu, types, data, instance });
            }
        }
    }
}

impl EventSet {
    /// Watches a GPU for some events, beside those it is watched for already.
    pub(crate) fn watch(&mut self, gpu: usize, types: u64) {
        match self.watched.iter_mut().find(|(g, _)| *g == gpu) {
            Some((_, mask)) => *mask |= types,
            None => self.watched.push((gpu, types)),
        }
    }

    /// The oldest event that nobody has taken.
    pub(crate) fn take(&mut self) -> Option<Event> {
        self.queue.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_watched_events_arrive_in_order_and_once() {
        let mut sets = EventSets::default();
        let handle = sets.create();
        sets.post(0, 8, 1, (None, None));
        sets.get(handle).unwrap().watch(0, 8);
        sets.post(0, 8, 79, (None, None));
        sets.post(0, 1, 0, (None, None));
        sets.post(1, 8, 13, (None, None));
        sets.post(0, 8, 94, (Some(9), Some(0)));
        let set = sets.get(handle).unwrap();
        assert_eq!(set.take().map(|e| (e.data, e.instance.0)), Some((79, u32::MAX)));
        assert_eq!(set.take().map(|e| (e.data, e.instance.0)), Some((94, 9)));
        assert_eq!(set.take(), None);
    }

    #[test]
    fn freed_sets_are_unknown() {
        let mut sets = EventSets::default();
        let handle = sets.create();
        assert!(sets.free(handle).is_ok());
        assert!(sets.free(handle).is_err());
        assert_ne!(sets.create(), handle);
    }
}
