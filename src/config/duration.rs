//! Durations as Go writes them (`1h30m`, `1.5s`), and bare numbers of milliseconds.

use std::time::Duration;

/// Go's units, in nanoseconds. Longer names come first: `ms` is not minutes.
const UNITS: &[(&str, i128)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// What the messages say is allowed.
pub(super) const ALLOWED: &str =
    "a number with a unit of ns, us, ms, s, m, h, such as 15s, 500ms, 1h30m";

/// A length of time, which Go lets be negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Nanoseconds(i128);

impl Nanoseconds {
    /// As a duration; negative ones are none.
    pub(super) fn to_duration(self) -> Option<Duration> {
        let nanoseconds = u128::try_from(self.0).ok()?;
        let seconds = u64::try_from(nanoseconds / 1_000_000_000).ok()?;
        let rest = u32::try_from(nanoseconds % 1_000_000_000).ok()?;
        Some(Duration::new(seconds, rest))
    }
}

/// Reads a duration in Go's form; `0` needs no unit. `None` is a mistake.
pub(super) fn parse_go(text: &str) -> Option<Nanoseconds> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(Nanoseconds(0));
    }
    if rest.is_empty() {
        return None;
    }
    let mut sum = 0_i128;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        let (unit, scale) = UNITS.iter().find(|(unit, _)| tail.starts_with(unit))?;
        sum = sum.checked_add(scaled(number, *scale)?)?;
        rest = &tail[unit.len()..];
    }
    // Go's durations are 64 bits of nanoseconds: 292 years.
    let sum = i128::from(i64::try_from(sum).ok()?);
    Some(Nanoseconds(if negative { -sum } else { sum }))
}

/// `1.5` times a unit, without floating point.
fn scaled(number: &str, scale: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { whole.parse::<i128>().ok()? };
    let mut sum = whole.checked_mul(scale)?;
    let mut place = scale;
    for digit in fraction.bytes() {
        place /= 10;
        sum = sum.checked_add(i128::from(digit - b'0') * place)?;
    }
    Some(sum)
}

/// A length of time that dcgm-exporter wants in milliseconds, and that may have a unit here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Time {
    /// The length.
    pub(super) duration: Duration,
    /// Whether the text was a bare number, thus of milliseconds.
    pub(super) bare: bool,
}

/// Reads a bare number of milliseconds or a duration in Go's form, not negative.
pub(super) fn parse_time(text: &str) -> Result<Time, String> {
    if let Ok(milliseconds) = text.parse::<i64>() {
        return u64::try_from(milliseconds)
            .map(|ms| Time { duration: Duration::from_millis(ms), bare: true })
            .map_err(|_| "is negative; allowed: 0 or more".to_owned());
    }
    match parse_go(text) {
        Some(nanoseconds) => nanoseconds
            .to_duration()
            .map(|duration| Time { duration, bare: false })
            .ok_or_else(|| "is negative; allowed: 0 or more".to_owned()),
        None => {
            Err(format!("is not a time; allowed: a whole number of milliseconds, or {ALLOWED}"))
        }
    }
}
