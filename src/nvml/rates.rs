//! `NVLink` throughput as DCGM gives it: the growth of NVML's byte counters between two passes.

use std::collections::HashMap;

use super::field_values::{Batch, Stamped};
use crate::catalogue::call::{RateRead, RateUnit};
use crate::catalogue::plan::Plan;
use crate::catalogue::{Number, Value, pick};
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
                board.extend(planned.takers.rows.iter().map(|row| Sample {
                    row: *row,
                    link,
                    value,
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

/// By NVML's own times of the two readings.
fn rate(previous: Counted, now: Counted, unit: RateUnit) -> Option<Value> {
    let micros = now.timestamp - previous.timestamp;
    pick::rate(now.kibibytes - previous.kibibytes, micros as f64 / 1e6, unit)
}
