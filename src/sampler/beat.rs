//! Shows from outside whether a loop still moves.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// When a loop last moved.
#[derive(Debug)]
pub struct Beat {
    epoch: Instant,
    milliseconds: AtomicU64,
}

impl Default for Beat {
    fn default() -> Self {
        Self { epoch: Instant::now(), milliseconds: AtomicU64::new(0) }
    }
}

impl Beat {
    /// The loop moves.
    pub fn beat(&self) {
        let now = u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.milliseconds.store(now, Ordering::Relaxed);
    }

    /// How long ago it last did.
    #[must_use]
    pub fn age(&self) -> Duration {
        let last = Duration::from_millis(self.milliseconds.load(Ordering::Relaxed));
        self.epoch.elapsed().saturating_sub(last)
    }
}
