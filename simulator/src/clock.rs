//! Time in a scenario.
//!
//! The scenario clock counts seconds since the (imagined) driver was loaded. It follows the
//! machine's boot clock, so that all processes on a machine agree on it, and it can be frozen, set
//! and advanced.

use std::time::{SystemTime, UNIX_EPOCH};

/// How far into the driver's life a scenario is when the machine has just booted.
const LEAD: f64 = 1_000_000.0;

/// Where a frozen clock stands unless told otherwise.
const FROZEN_AT: f64 = LEAD + 3_600.0;

/// What a frozen clock tells of the wall: 2026-01-01 00:00:00 UTC was scenario second 0.
const FROZEN_EPOCH: f64 = 1_767_225_600.0;

/// The scenario clock.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    /// Where the clock stands, if it stands.
    frozen: Option<f64>,
    /// What was added to the running clock.
    offset: f64,
    /// Wall time at scenario second 0.
    epoch: f64,
}

impl Clock {
    /// Reads `NVML_SIM_CLOCK`: empty, `frozen` or `frozen:<seconds>`.
    pub(crate) fn from_setting(setting: Option<&str>) -> Result<Self, String> {
        let running =
            Self { frozen: None, offset: LEAD, epoch: wall_seconds() - boot_seconds() - LEAD };
        let Some(setting) = setting.filter(|s| !s.is_empty() && *s != "run") else {
            return Ok(running);
        };
        let at = match setting.split_once(':') {
            None if setting == "frozen" => FROZEN_AT,
            Some(("frozen", seconds)) => parse_duration(seconds)
                .ok_or_else(|| format!("not a number of seconds: {seconds}"))?,
            _ => return Err(format!("not a clock: {setting} (frozen, frozen:<seconds>)")),
        };
        Ok(Self { frozen: Some(at), offset: LEAD, epoch: FROZEN_EPOCH })
    }

    /// Seconds since the driver was loaded.
    pub(crate) fn now(&self) -> f64 {
        self.frozen.unwrap_or_else(|| boot_seconds() + self.offset)
    }

    /// Microseconds since the Unix epoch at a scenario time.
    pub(crate) fn wall_micros(&self, now: f64) -> u64 {
        whole((self.epoch + now) * 1e6)
    }

    /// When the driver last took a sample by itself, which it does once a second. It goes on doing
    /// so, by the wall's clock, while the scenario's clock stands.
    pub(crate) fn sampled_micros(&self, now: f64) -> u64 {
        let seconds = if self.frozen.is_some() { wall_seconds() } else { self.epoch + now };
        whole(seconds.floor() * 1e6)
    }

    /// Moves the clock forward; a frozen clock stays frozen.
    pub(crate) fn advance(&mut self, seconds: f64) {
        match &mut self.frozen {
            Some(at) => *at += seconds,
            None => self.offset += seconds,
        }
    }

    /// Moves the clock to a scenario time.
    pub(crate) fn set(&mut self, seconds: f64) {
        self.advance(seconds - self.now());
    }

    /// Stops the clock here, or at a given time: then the wall stands at a given time too.
    pub(crate) fn freeze(&mut self, at: Option<f64>) {
        if at.is_some() {
            self.epoch = FROZEN_EPOCH;
        }
        self.frozen = Some(at.unwrap_or_else(|| self.now()));
    }

    /// Lets the clock run on from where it stands.
    pub(crate) fn run(&mut self) {
        if let Some(at) = self.frozen.take() {
            self.offset = at - boot_seconds();
        }
    }
}

/// Reads `250ms`, `30s`, `5m`, `2h`, `1d`, or a bare number of seconds.
pub(crate) fn parse_duration(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    let value: f64 = digits.parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some(value * factor)
}

/// A non-negative number as an integer: the one place where the simulator rounds floats down.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped by `as`")]
pub(crate) fn whole(value: f64) -> u64 {
    value.max(0.0) as u64
}

/// As [`whole`], for 32-bit answers, rounded to the nearest.
pub(crate) fn nearest(value: f64) -> u32 {
    u32::try_from(whole(value + 0.5)).unwrap_or(u32::MAX)
}

fn boot_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that the call fills; it fails for no valid clock.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn wall_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_and_without_unit() {
        assert_eq!(parse_duration("250ms"), Some(0.25));
        assert_eq!(parse_duration("30"), Some(30.0));
        assert_eq!(parse_duration("2h"), Some(7_200.0));
        assert_eq!(parse_duration("3 weeks"), None);
        assert_eq!(parse_duration("-1s"), None);
    }

    #[test]
    fn a_frozen_clock_moves_only_when_told() {
        let mut clock = Clock::from_setting(Some("frozen:100")).unwrap();
        assert_eq!(clock.now().to_bits(), 100f64.to_bits());
        clock.advance(30.0);
        assert_eq!(clock.now().to_bits(), 130f64.to_bits());
        clock.set(50.0);
        assert_eq!(clock.now().to_bits(), 50f64.to_bits());
    }

    #[test]
    fn a_clock_runs_on_from_where_it_stood() {
        let mut clock = Clock::from_setting(Some("frozen:100")).unwrap();
        clock.run();
        let now = clock.now();
        assert!(now >= 100.0, "{now}");
        clock.freeze(None);
        let then = clock.now();
        assert_eq!(then.to_bits(), clock.now().to_bits());
    }

    #[test]
    fn a_wrong_setting_is_an_error() {
        assert!(Clock::from_setting(Some("frozen:soon")).is_err());
        assert!(Clock::from_setting(Some("fast")).is_err());
    }
}
