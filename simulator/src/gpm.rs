//! Samples of GPU performance monitoring: what is kept between two readings.

use crate::code::{Answer, INVALID_ARGUMENT};
use crate::ffi::Handle;

/// The handle of sample buffer 0; the others follow.
const FIRST: usize = 0xe6 << 40;

/// What a sample holds: whose, when, and the counters then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) gpu: usize,
    pub(crate) gi: Option<u32>,
    pub(crate) time: f64,
    /// When by the machine's clock, in milliseconds.
    pub(crate) taken: f64,
    pub(crate) busy_seconds: f64,
}

/// How often the driver refreshes the counters that it samples, in seconds.
const REFRESH: f64 = 0.1;

impl Sample {
    /// Whether the counters were refreshed since an earlier sample, by the scenario's clock or, if
    /// that stands, by the machine's.
    pub(crate) fn is_refreshed(&self, earlier: &Self) -> bool {
        let scenario = self.time - earlier.time;
        let machine = (self.taken - earlier.taken) / 1e3;
        scenario.max(machine) >= REFRESH
    }
}

/// All sample buffers. Numbers of freed buffers are used again.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<Option<Slot>>);

#[derive(Debug, Clone, Copy)]
struct Slot(Option<Sample>);

impl Samples {
    /// Makes an empty buffer.
    pub(crate) fn allocate(&mut self) -> Handle {
        let free = self.0.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.0.push(None);
            self.0.len() - 1
        });
        self.0[index] = Some(Slot(None));
        Handle(FIRST + index)
    }

    /// Frees a buffer.
    pub(crate) fn free(&mut self, handle: Handle) -> Answer {
        let slot = handle.0.checked_sub(FIRST).and_then(|i| self.0.get_mut(i));
        slot.and_then(Option::take).map(|_| ()).ok_or(INVALID_ARGUMENT)
    }

    /// Fills a buffer.
    pub(crate) fn store(&mut self, handle: Handle, sample: Sample) -> Answer {
        let slot = handle.0.checked_sub(FIRST).and_then(|i| self.0.get_mut(i));
        *slot.and_then(Option::as_mut).ok_or(INVALID_ARGUMENT)? = Slot(Some(sample));
        Ok(())
    }

    /// The content of a filled buffer.
    pub(crate) fn get(&self, handle: Handle) -> Answer<Sample> {
        let slot = handle.0.checked_sub(FIRST).and_then(|i| self.0.get(i));
        slot.copied().flatten().and_then(|Slot(sample)| sample).ok_or(INVALID_ARGUMENT)
    }
}
