//! The web configuration's `rate_limit`: a token bucket in one atomic.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// One request each `interval`, and `burst` of them at once after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) interval: Duration,
    pub(super) burst: u32,
}

/// The bucket. It keeps the time at which it will be full again (the generic cell rate
/// algorithm), so that a changed rate needs no new one.
#[derive(Debug)]
pub(super) struct Bucket {
    epoch: Instant,
    full_at: AtomicU64,
}

impl Default for Bucket {
    fn default() -> Self {
        Self { epoch: Instant::now(), full_at: AtomicU64::new(0) }
    }
}

impl Bucket {
    /// Takes a token if there is one.
    pub(super) fn allows(&self, rate: Rate, now: Instant) -> bool {
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let now = nanos(now.saturating_duration_since(self.epoch));
        let interval = nanos(rate.interval);
        let depth = interval.saturating_mul(rate.burst.into());
        let take = |full_at: u64| {
            let next = full_at.max(now).saturating_add(interval);
            (next - now <= depth).then_some(next)
        };
        self.full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_one_each_interval() {
        let rate = Rate { interval: Duration::from_secs(1), burst: 3 };
        let bucket = Bucket::default();
        let at = |millis| bucket.epoch + Duration::from_millis(millis);
        let allowed = |millis| (0..5).filter(|_| bucket.allows(rate, at(millis))).count();
        assert_eq!([allowed(0), allowed(999), allowed(1000)], [3, 0, 1]);
        assert_eq!([allowed(3500), allowed(60_000)], [2, 3]);
    }
}
