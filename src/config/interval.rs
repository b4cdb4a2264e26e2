//! The time between two passes.

use std::time::Duration;

use super::duration::parse_time;
use super::findings::Findings;
use super::typed::Typed;
use super::yaml::FileInterval;

/// Shortest time between two passes: below it the driver does little else than answer.
const SHORTEST: Duration = Duration::from_millis(100);

/// The one time at which all fields are read: the flag's; else the shortest in the configuration
/// file, where the default stands for the fields that are in no group.
pub(super) fn between_passes(flag: &Typed, file: &FileInterval, found: &mut Findings) -> Duration {
    if flag.is_set() {
        if let [(_, first), ..] = &file.groups[..] {
            found.warn(first, format!("ignored: {flag} is of all fields"));
        }
        return bounded(flag, found);
    }
    let base = file.base.clone().unwrap_or_else(|| (default(flag, found), flag.clone()));
    let times = || std::iter::once(&base).chain(&file.groups);
    let Some((shortest, typed)) = times().min_by_key(|(length, _)| *length) else {
        return bounded(flag, found);
    };
    if times().any(|(length, _)| length != shortest) {
        found.warn(typed, "is of all fields: all are read at the shortest of the times given");
    }
    bounded(typed, found)
}

fn default(flag: &Typed, found: &mut Findings) -> Duration {
    found.read(flag, parse_time).duration
}

/// The time, bounded below. A bare number is of milliseconds; one that looks like seconds is
/// pointed out.
fn bounded(typed: &Typed, found: &mut Findings) -> Duration {
    const UNIT: &str = "a bare number is of milliseconds; write 15s for seconds";
    let time = found.read(typed, |text| parse_time(text.trim()));
    if time.duration < SHORTEST {
        let unit = if time.bare { format!(" ({UNIT})") } else { String::new() };
        found.warn(typed, format!("shorter than 100ms{unit}; 100ms is used"));
        return SHORTEST;
    }
    if time.bare && time.duration < Duration::from_secs(1) {
        found.warn(typed, UNIT);
    }
    time.duration
}
