//! What the driver has accounted of single processes over their life, where accounting mode is on.

use std::collections::BTreeMap;

use super::labels::{Block, Further, Style};
use super::roster::Member;
use super::scheme::Settings;
use super::text::Writer;
use crate::catalogue::Value;
use crate::sampler::snapshot::Accounted;

/// Name, help and value of a family.
type Gauge = (&'static str, &'static str, fn(&Accounted) -> Option<Value>);

const GAUGES: [Gauge; 4] = [
    (
        "nvml_process_accounted_max_memory_bytes",
        "The most device memory that the process ever had.",
        |one| Some(Value::Uint(one.max_memory_bytes?)),
    ),
    (
        "nvml_process_accounted_sm_utilization_ratio",
        "Share of the process's life in which its kernels ran.",
        |one| share(one.sm_percent),
    ),
    (
        "nvml_process_accounted_memory_copy_utilization_ratio",
        "Share of the process's life in which it read or wrote memory.",
        |one| share(one.memory_percent),
    ),
    (
        "nvml_process_accounted_seconds",
        "For how long the process, which has ended, used the GPU.",
        |one| Some(Value::Float(one.took?.as_secs_f64())),
    ),
];

fn share(percent: Option<u32>) -> Option<Value> {
    Some(Value::Float(f64::from(percent?) / 100.0))
}

/// Writes the families.
pub(super) fn write(writer: &mut Writer, members: &[Member<'_>], settings: &Settings) {
    let mut all: Vec<(&Accounted, String)> = Vec::new();
    for member in members {
        let reading = member.reading().filter(|reading| reading.whole);
        for one in newest(reading.map_or(&[], |reading| &reading.accounting)) {
            all.push((one, labels(member, one, settings)));
        }
    }
    for (name, help, value) in GAUGES {
        writer.gauge(name, help, |writer| {
            for (one, labels) in &all {
                let Some(value) = value(one) else { continue };
                writer.sample(name, labels, value);
            }
        });
    }
}

/// The newest account of each number: two of one would be the same series.
fn newest(all: &[Accounted]) -> impl Iterator<Item = &Accounted> {
    let mut newest: BTreeMap<u32, &Accounted> = BTreeMap::new();
    for one in all {
        let held = newest.entry(one.pid).or_insert(one);
        if one.start > held.start {
            *held = one;
        }
    }
    newest.into_values()
}

fn labels(member: &Member<'_>, one: &Accounted, settings: &Settings) -> String {
    let pid = one.pid.to_string();
    let owner = one.owner.as_deref();
    let mut attributes = Vec::new();
    attributes.extend(owner.and_then(|owner| Some(("command", owner.command.as_deref()?))));
    attributes.push(("pid", &pid));
    attributes.push(("running", if one.running { "true" } else { "false" }));
    attributes.extend(owner.and_then(|owner| Some(("user", owner.user.as_deref()?))));
    let further = Further { attributes, ..Further::default() };
    let block = Block::gpu(member.identity, Style::Own, &settings.labels, &further);
    block.as_str().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_told_of_once_with_the_process_that_started_last() {
        let account = |pid, start| Accounted {
            pid,
            start,
            owner: None,
            running: false,
            max_memory_bytes: None,
            sm_percent: None,
            memory_percent: None,
            took: None,
        };
        let all = [account(2, 7), account(1, 5), account(1, 9), account(1, 6)];
        let told: Vec<_> = newest(&all).map(|one| (one.pid, one.start)).collect();
        assert_eq!(told, [(1, 9), (2, 7)]);
    }
}
