//! Faults that a control command has asked for: errors, delays, calls that never return.

use std::time::Duration;

use crate::code::{Answer, Code};

/// Whom a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Victim {
    /// One GPU, by its number in the scenario.
    Gpu(usize),
    /// Every GPU.
    AllGpus,
    /// Functions that have no device.
    System,
}

impl Victim {
    /// Whether a command for this victim is also one for the other.
    fn covers(self, other: Self) -> bool {
        self == other || (self == Self::AllGpus && matches!(other, Self::Gpu(_)))
    }

    fn meets(self, gpu: Option<usize>) -> bool {
        match self {
            Self::Gpu(number) => gpu == Some(number),
            Self::AllGpus => gpu.is_some(),
            Self::System => gpu.is_none(),
        }
    }
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Effect {
    Error(Code),
    Latency(Duration),
    Hang,
    /// `nvmlReturn` of one field id (or all) in `nvmlDeviceGetFieldValues`.
    Field(Option<u32>, Code),
    /// The value, or the `nvmlReturn`, of one metric id (or all) in `nvmlGpmMetricsGet`.
    Gpm(Option<u32>, Answer<f64>),
}

impl Effect {
    /// Whether a command with this effect is also one about the other, whatever its value.
    fn covers(self, other: Self) -> bool {
        match (self, other) {
            (Self::Field(all, _), Self::Field(one, _)) | (Self::Gpm(all, _), Self::Gpm(one, _)) => {
                all.is_none() || all == one
            }
            _ => std::mem::discriminant(&self) == std::mem::discriminant(&other),
        }
    }
}

/// A fault: an effect on some function (or all) of some victim.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fault {
    pub(crate) victim: Victim,
    /// `None` is every function.
    pub(crate) function: Option<String>,
    pub(crate) effect: Effect,
}

/// The faults in force.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    /// Puts a fault in force, in place of one of the same kind.
    pub(crate) fn add(&mut self, fault: Fault) {
        self.clear(&fault);
        self.0.push(fault);
    }

    /// Takes back a fault: same victim, function and kind, whatever its value. `*` takes back what
    /// was said of single functions, fields and metrics too, all GPUs what was said of single ones.
    pub(crate) fn clear(&mut self, like: &Fault) {
        self.0.retain(|f| {
            !like.victim.covers(f.victim)
                || !like.effect.covers(f.effect)
                || (like.function.is_some() && f.function != like.function)
        });
    }

    /// The error a call is to return.
    pub(crate) fn error(&self, function: &str, gpu: Option<usize>) -> Option<Code> {
        self.matching(function, gpu).find_map(|f| match f.effect {
            Effect::Error(code) => Some(code),
            _ => None,
        })
    }

    /// The error that a call is to return for a GPU, where the function is named.
    pub(crate) fn named_error(&self, function: &str, gpu: usize) -> Option<Code> {
        self.matching(function, Some(gpu)).filter(|f| f.function.is_some()).find_map(|f| {
            match f.effect {
                Effect::Error(code) => Some(code),
                _ => None,
            }
        })
    }

    /// How long a call is to take.
    pub(crate) fn latency(&self, function: &str, gpu: Option<usize>) -> Option<Duration> {
        self.matching(function, gpu).find_map(|f| match f.effect {
            Effect::Latency(time) => Some(time),
            _ => None,
        })
    }

    /// Whether a call is to hang.
    pub(crate) fn hangs(&self, function: &str, gpu: Option<usize>) -> bool {
        self.matching(function, gpu).any(|f| f.effect == Effect::Hang)
    }

    /// The error a field value is to carry.
    pub(crate) fn field(&self, gpu: usize, id: u32) -> Option<Code> {
        self.0.iter().rev().filter(|f| f.victim.meets(Some(gpu))).find_map(|f| match f.effect {
            Effect::Field(wanted, code) if wanted.is_none_or(|w| w == id) => Some(code),
            _ => None,
        })
    }

    /// What a metric is to be.
    pub(crate) fn metric(&self, gpu: usize, id: u32) -> Option<Answer<f64>> {
        self.0.iter().rev().filter(|f| f.victim.meets(Some(gpu))).find_map(|f| match f.effect {
            Effect::Gpm(wanted, answer) if wanted.is_none_or(|w| w == id) => Some(answer),
            _ => None,
        })
    }

    /// The last word counts: later faults hide earlier ones.
    fn matching(&self, function: &str, gpu: Option<usize>) -> impl Iterator<Item = &Fault> {
        self.0.iter().rev().filter(move |f| {
            f.victim.meets(gpu) && f.function.as_deref().is_none_or(|name| name == function)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(victim: Victim, function: Option<&str>, code: Code) -> Fault {
        Fault { victim, function: function.map(str::to_owned), effect: Effect::Error(code) }
    }

    #[test]
    fn faults_strike_whom_they_name() {
        let mut faults = Faults::default();
        faults.add(error(Victim::Gpu(3), Some("f"), 999));
        assert_eq!(faults.error("f", Some(3)), Some(999));
        assert_eq!(faults.error("f", Some(2)), None);
        assert_eq!(faults.error("g", Some(3)), None);
        assert_eq!(faults.error("f", None), None);
    }

    #[test]
    fn the_last_word_counts_and_a_star_clears_all() {
        let mut faults = Faults::default();
        faults.add(error(Victim::AllGpus, None, 3));
        faults.add(error(Victim::AllGpus, Some("f"), 15));
        assert_eq!(faults.error("f", Some(0)), Some(15));
        assert_eq!(faults.error("g", Some(0)), Some(3));
        faults.add(error(Victim::Gpu(1), Some("f"), 15));
        faults.clear(&error(Victim::AllGpus, None, 0));
        assert_eq!(faults.error("f", Some(0)), None);
        assert_eq!(faults.error("f", Some(1)), None);
    }
}
