//! `NVLink` throughput as DCGM gives it: the growth of NVML's byte counters between two passes.

use std::collections::HashMap;

use super::field_values::{Batch, Stamped};
use crate::catalogue::call::{FieldValueRead, RateRead, RateUnit};
use crate::catalogue::plan::Plan;
use crate::catalogue::{Number, Value};
use crate::sampler::snapshot::Sample;

/// The counters' values at the previous pass.
#[derive(Debug, Default)]
pub(super) struct Rates {
    previous: HashMap<(RateRead, Option<u8>), Counted>,
}

/// The sum of the counters of one rate, and when NVML read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    kibibytes: i64,
    /// Microseconds since 1970.
    timestamp: i64,
}

impl Rates {
    /// The batch entries that a plan's rates need.
    pub(super) fn counters(plan: &Plan) -> Vec<FieldValueRead> {
        plan.rates.iter().flat_map(|planned| planned.read.counters()).collect()
    }

    /// Adds the samples of all rates whose counters were read now and at the previous pass.
    pub(super) fn derive(&mut self, plan: &Plan, batch: &Batch, board: &mut Vec<Sample>) {
        let mut current = HashMap::with_capacity(self.previous.len());
        for planned in &plan.rates {
            for (link, counted) in count(planned.read, batch) {
                let key = (planned.read, link);
                let rate = self
                    .previous
                    .get(&key)
                    .and_then(|previous| rate(*previous, counted, planned.read.unit));
                current.insert(key, counted);
                let Some(value) = rate else { continue };
                board.extend(planned.rows.iter().map(|row| Sample {
                    row: *row,
                    link,
                    value: Value::Int(value),
                }));
            }
        }
        self.previous = current;
    }
}

/// The sum over the rate's directions for each link; a link with any counter missing has none.
fn count(rate: RateRead, batch: &Batch) -> Vec<(Option<u8>, Counted)> {
    let mut links: Vec<(Option<u8>, Option<Counted>)> = Vec::new();
    for read in rate.counters() {
        for (link, value) in batch.values(read) {
            let one = value.ok().and_then(counted);
            match links.iter_mut().find(|(known, _)| *known == link) {
                None => links.push((link, one)),
                Some((_, sum)) => *sum = sum.zip(one).and_then(|(sum, one)| add(sum, one)),
            }
        }
    }
    links.into_iter().filter_map(|(link, sum)| Some((link, sum?))).collect()
}

fn counted(value: Stamped) -> Option<Counted> {
    match value.number {
        Number::Int(kibibytes) => Some(Counted { kibibytes, timestamp: value.timestamp }),
        _ => None,
    }
}

fn add(one: Counted, other: Counted) -> Option<Counted> {
    Some(Counted {
        kibibytes: one.kibibytes.checked_add(other.kibibytes)?,
        timestamp: one.timestamp.max(other.timestamp),
    })
}

/// The growth over the time between. A counter that went backwards (a link was reset) or a time
/// that stood still gives no rate.
fn rate(previous: Counted, now: Counted, unit: RateUnit) -> Option<i64> {
    let grown = now.kibibytes - previous.kibibytes;
    let micros = now.timestamp - previous.timestamp;
    if grown < 0 || micros <= 0 {
        return None;
    }
    let kib_per_second = grown as f64 / (micros as f64 / 1e6);
    let value = match unit {
        RateUnit::ThousandKib => kib_per_second / 1000.0,
        RateUnit::Bytes => kib_per_second * 1024.0,
    };
    #[expect(clippy::cast_possible_truncation, reason = "DCGM truncates to whole units")]
    Some(value as i64)
}

#[cfg(test)]
mod tests {
    use super::{Counted, RateUnit, rate};

    #[test]
    fn a_rate_is_thousands_of_kibibytes_a_second() {
        let at = |kibibytes, timestamp| Counted { kibibytes, timestamp };
        for (previous, now, expected) in [
            (at(0, 0), at(5_000_000, 2_000_000), Some(2500)),
            (at(10, 0), at(1009, 1_000_000), Some(0)),
            (at(10, 0), at(9, 1_000_000), None),
            (at(10, 5), at(20, 5), None),
        ] {
            assert_eq!(rate(previous, now, RateUnit::ThousandKib), expected);
        }
    }
}
