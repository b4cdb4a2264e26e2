//! What passes tell of a GPU's health: levels, and how much counters grew in the last minute.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use super::history::age;
use crate::catalogue::Sign;

/// Counters are compared with what they were this long ago.
const MINUTE: Duration = Duration::from_secs(60);

/// Passes closer than this to the last one kept are compared and not kept.
const GRAIN: Duration = Duration::from_secs(5);

const COUNT: usize = Sign::ALL.len();

/// One pass's values. A sign with a value a link has the least and the greatest of them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Signs {
    least: [Option<f64>; COUNT],
    greatest: [Option<f64>; COUNT],
    /// Growth in the last minute, or since the first pass.
    grown: [Option<f64>; COUNT],
    /// The time that growth is of.
    over: Duration,
}

impl Signs {
    /// Takes a value in.
    pub fn add(&mut self, sign: Sign, value: f64) {
        let at = sign as usize;
        self.least[at] = Some(self.least[at].map_or(value, |least| least.min(value)));
        self.greatest[at] = Some(self.greatest[at].map_or(value, |most| most.max(value)));
    }

    /// The value; the greatest of several.
    #[must_use]
    pub const fn get(&self, sign: Sign) -> Option<f64> {
        self.greatest[sign as usize]
    }

    /// The least of several values.
    #[must_use]
    pub const fn least(&self, sign: Sign) -> Option<f64> {
        self.least[sign as usize]
    }

    /// How much a counter grew in the last minute; `None` if it was not there then, or began anew.
    #[must_use]
    pub const fn grown(&self, sign: Sign) -> Option<f64> {
        self.grown[sign as usize]
    }

    /// The time in which counters grew: a minute, or less after the start.
    #[must_use]
    pub const fn over(&self) -> Duration {
        self.over
    }
}

/// The signs of the last minute.
#[derive(Debug, Default)]
pub struct Trend(VecDeque<(SystemTime, Signs)>);

impl Trend {
    /// Compares a pass's values with those of a minute ago.
    pub fn follow(&mut self, mut signs: Signs, at: SystemTime) -> Signs {
        // The oldest stays until the next is a minute old: growth is of a minute at least.
        while self.0.get(1).is_some_and(|(next, _)| age(*next, at) >= MINUTE) {
            self.0.pop_front();
        }
        if let Some((then, former)) = self.0.front() {
            signs.over = age(*then, at);
            for (index, grown) in signs.grown.iter_mut().enumerate() {
                let growth = signs.greatest[index].zip(former.greatest[index]);
                *grown = growth.map(|(now, then)| now - then).filter(|grown| *grown >= 0.0);
            }
        }
        if self.0.back().is_none_or(|(last, _)| age(*last, at) >= GRAIN) {
            self.0.push_back((at, signs));
        }
        signs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn replays(value: f64) -> Signs {
        let mut signs = Signs::default();
        signs.add(Sign::PcieReplays, value);
        signs
    }

    #[test]
    fn growth_is_of_the_last_minute() {
        let mut trend = Trend::default();
        assert_eq!(trend.follow(replays(5.0), at(0)).grown(Sign::PcieReplays), None);
        let signs = trend.follow(replays(7.0), at(30));
        assert_eq!((signs.grown(Sign::PcieReplays), signs.over()), (Some(2.0), MINUTE / 2));
        let signs = trend.follow(replays(8.0), at(60));
        assert_eq!(signs.grown(Sign::PcieReplays), Some(3.0));
        let signs = trend.follow(replays(8.0), at(90));
        assert_eq!((signs.grown(Sign::PcieReplays), signs.over()), (Some(1.0), MINUTE));
        let signs = trend.follow(replays(8.0), at(150));
        assert_eq!(signs.grown(Sign::PcieReplays), Some(0.0));
    }

    #[test]
    fn many_passes_take_no_more_room_than_few() {
        let mut trend = Trend::default();
        for tenth in 0..2000 {
            let now = at(0) + Duration::from_millis(tenth * 100);
            let signs = trend.follow(replays(tenth as f64), now);
            let growth = signs.grown(Sign::PcieReplays).unwrap_or_default();
            assert!(growth <= 650.0, "{growth} in {:?}", signs.over());
        }
        assert!(trend.0.len() <= 14, "{}", trend.0.len());
    }

    #[test]
    fn a_counter_that_begins_anew_has_not_grown() {
        let mut trend = Trend::default();
        trend.follow(replays(50.0), at(0));
        assert_eq!(trend.follow(replays(3.0), at(30)).grown(Sign::PcieReplays), None);
        assert_eq!(trend.follow(Signs::default(), at(31)).grown(Sign::PcieReplays), None);
    }

    #[test]
    fn of_several_links_the_worst_and_the_best_are_known() {
        let mut signs = Signs::default();
        for up in [1.0, 0.0, 1.0] {
            signs.add(Sign::LinkUp, up);
        }
        assert_eq!((signs.least(Sign::LinkUp), signs.get(Sign::LinkUp)), (Some(0.0), Some(1.0)));
    }
}
