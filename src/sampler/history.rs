//! What happened to one GPU while this process looked: XIDs, and reasons that held its clocks
//! down. Plain data, part of a snapshot; unlike readings it outlives a GPU that is lost.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, SystemTime};

/// How many reasons NVML's mask of clock events has a name for: bits 0 to 8.
pub const CLOCK_REASONS: usize = 9;

/// XIDs and clock events of one GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// Somebody tells this process of the GPU's XIDs: those it has not heard of are known to be 0.
    pub watched: bool,
    /// By GPU instance, `None` for the board, and code.
    pub xids: BTreeMap<(Option<u32>, u64), XidCount>,
    /// Reasons for lower clocks; `None` where no row asks for them.
    pub clocks: Option<ClockEvents>,
}

/// The XIDs of one code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XidCount {
    /// Since the process began.
    pub total: u64,
    /// When the last one was reported.
    pub last: SystemTime,
    /// Its place among all XIDs of the GPU: the greatest is the last one.
    pub order: u64,
    /// The recent ones.
    pub recent: Recent,
}

/// Samples of NVML's mask of clock event reasons (`nvmlDeviceGetCurrentClocksEventReasons`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClockEvents {
    /// How often each reason appeared, by bit, those at the first sample left out.
    pub appeared: [u64; CLOCK_REASONS],
    /// The newest mask.
    pub now: u64,
    /// The recent samples.
    pub samples: VecDeque<(SystemTime, u64)>,
}

/// How many events there were in which second: a storm of them takes no more room than a few.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recent(VecDeque<(SystemTime, u64)>);

/// Events closer than this are one entry.
const GRAIN: Duration = Duration::from_secs(1);

impl Recent {
    /// Adds one event, and forgets those before `keep`.
    pub fn add(&mut self, at: SystemTime, keep: Duration) {
        match self.0.back_mut() {
            Some((begun, count)) if age(*begun, at) < GRAIN => *count += 1,
            _ => self.0.push_back((at, 1)),
        }
        while self.0.front().is_some_and(|(first, _)| age(*first, at) > keep) {
            self.0.pop_front();
        }
    }

    /// The events of the last `window`.
    #[must_use]
    pub fn within(&self, window: Duration, now: SystemTime) -> u64 {
        let inside = self.0.iter().filter(|(at, _)| age(*at, now) <= window);
        inside.map(|(_, count)| count).sum()
    }
}

impl ClockEvents {
    /// Takes a sample, and forgets those before `keep`. `None` is before the first.
    #[must_use]
    pub fn sampled(former: Option<Self>, mask: u64, at: SystemTime, keep: Duration) -> Self {
        let known = former.as_ref().map(|former| former.now);
        let mut events = former.unwrap_or_default();
        let new = known.map_or(0, |known| mask & !known);
        for (bit, appeared) in events.appeared.iter_mut().enumerate() {
            *appeared += new >> bit & 1;
        }
        events.now = mask;
        events.samples.push_back((at, mask));
        while events.samples.front().is_some_and(|(first, _)| age(*first, at) > keep) {
            events.samples.pop_front();
        }
        events
    }

    /// In how many samples of the last `window` each reason stood, by bit.
    #[must_use]
    pub fn within(&self, window: Duration, now: SystemTime) -> [u64; CLOCK_REASONS] {
        let mut counts = [0; CLOCK_REASONS];
        for (_, mask) in self.samples.iter().filter(|(at, _)| age(*at, now) <= window) {
            for (bit, count) in counts.iter_mut().enumerate() {
                *count += mask >> bit & 1;
            }
        }
        counts
    }
}

impl History {
    /// The last XID: 0 before the first, `None` for a GPU that nobody watches. An XID of the
    /// whole board shows on each of its instances, since a MIG board has no row of its own.
    #[must_use]
    pub fn last_xid(&self, instance: Option<u32>) -> Option<u64> {
        let about =
            self.xids.iter().filter(|((whose, _), _)| whose.is_none() || *whose == instance);
        let last = about.max_by_key(|(_, count)| count.order).map(|((_, code), _)| *code);
        last.or(self.watched.then_some(0))
    }
}

/// A clock set back makes events look younger than now: they happened just now.
pub(super) fn age(at: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(at).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_window_holds_what_is_young_enough_and_a_storm_takes_little_room() {
        let mut recent = Recent::default();
        for _ in 0..1000 {
            recent.add(at(10), Duration::from_secs(60));
        }
        recent.add(at(40), Duration::from_secs(60));
        assert_eq!(recent.0.len(), 2);
        assert_eq!(recent.within(Duration::from_secs(60), at(50)), 1001);
        assert_eq!(recent.within(Duration::from_secs(20), at(50)), 1);
        assert_eq!(recent.within(Duration::from_secs(60), at(500)), 0);
        recent.add(at(90), Duration::from_secs(60));
        assert_eq!(recent.0.len(), 2);
    }

    #[test]
    fn a_reason_counts_when_it_appears_and_not_while_it_stays() {
        let keep = Duration::from_secs(300);
        let masks = [0b10, 0b11, 0b01, 0b11, 0b11];
        let mut events = None;
        for (second, mask) in (0..).zip(masks) {
            events = Some(ClockEvents::sampled(events, mask, at(second), keep));
        }
        let events = events.unwrap();
        // Bit 1 stood at the first sample: that it was new then is not known.
        assert_eq!(events.appeared[..3], [1, 1, 0]);
        assert_eq!(events.within(keep, at(4))[..3], [4, 4, 0]);
        assert_eq!(events.within(Duration::from_secs(1), at(4))[..3], [2, 2, 0]);
    }

    #[test]
    fn bits_without_a_name_count_for_nothing() {
        let events = ClockEvents::sampled(None, 0, at(0), Duration::from_secs(9));
        let events = ClockEvents::sampled(Some(events), 1 << 40, at(1), Duration::from_secs(9));
        assert_eq!(events.appeared, [0; CLOCK_REASONS]);
        assert_eq!(events.within(Duration::from_secs(9), at(1)), [0; CLOCK_REASONS]);
    }
}
