//! How fresh and complete the readings are: the exporter's own families about devices. They are
//! written from the snapshot on every page, so none outlives its GPU. They never carry labels of
//! pods or of the counters file.

use std::time::{Duration, SystemTime};

use super::labels::Block;
use super::roster::{Member, State};
use super::scheme::LabelScheme;
use super::text::Writer;
use crate::catalogue::{Selection, Value};
use crate::sampler::snapshot::{Library, Snapshot};

/// Writes the families.
pub(super) fn write(
    writer: &mut Writer,
    snapshot: &Snapshot,
    members: &[Member<'_>],
    scheme: &LabelScheme,
    now: SystemTime,
) {
    up(writer, members, scheme);
    ages(writer, snapshot, members, now);
    simulated(writer, &snapshot.library);
    unsupported(writer, &snapshot.selection, members, scheme);
}

fn up(writer: &mut Writer, members: &[Member<'_>], scheme: &LabelScheme) {
    const UP: &str = "nvml_exporter_device_up";
    const DOWN: &str = "nvml_exporter_device_down";
    writer.gauge(UP, "Whether the GPU has a fresh, complete reading.", |writer| {
        for member in members {
            let up = member.reading().is_some();
            writer.sample(UP, member.block.as_str(), Value::Int(i64::from(up)));
        }
    });
    writer.gauge(DOWN, "Why the GPU has no fresh reading.", |writer| {
        for member in members {
            if let State::Down(reason) = member.state {
                let gpu = member.identity.index.to_string();
                let labels = [
                    ("reason", reason),
                    ("gpu", gpu.as_str()),
                    (scheme.uuid_name(), member.identity.uuid.as_str()),
                ];
                let block = Block::of(labels.into_iter().chain(scheme.host_labels()));
                writer.sample(DOWN, block.as_str(), Value::Int(1));
            }
        }
    });
}

fn ages(writer: &mut Writer, snapshot: &Snapshot, members: &[Member<'_>], now: SystemTime) {
    const AGE: &str = "nvml_exporter_reading_age_seconds";
    writer.gauge(AGE, "Age of the GPU's newest reading when the page was made.", |writer| {
        for member in members {
            if let Some(age) = member.age {
                writer.sample(AGE, member.block.as_str(), seconds(age));
            }
        }
    });
    let passes = snapshot.gpus.iter().filter_map(|gpu| gpu.reading.as_ref());
    if let Some(last) = passes.map(|reading| reading.read_at).max() {
        scalar(
            writer,
            "nvml_exporter_last_pass_timestamp_seconds",
            "When the newest pass over a GPU was complete, in Unix time.",
            unix(last),
        );
    }
    scalar(
        writer,
        "nvml_exporter_snapshot_age_seconds",
        "Age of the snapshot when the page was made.",
        seconds(now.duration_since(snapshot.taken).unwrap_or_default()),
    );
    // Pages are handed out many times: this is what tells that no new one is made.
    scalar(
        writer,
        "nvml_exporter_page_timestamp_seconds",
        "When the page was made, in Unix time.",
        unix(now),
    );
}

fn simulated(writer: &mut Writer, library: &Library) {
    const NAME: &str = "nvml_exporter_simulated";
    writer.gauge(NAME, "Whether the readings are invented by the simulator.", |writer| {
        let Library::Up(facts) = library else { return };
        let block = Block::of(facts.simulated.iter().map(|name| ("scenario", name.as_str())));
        let simulated = i64::from(facts.simulated.is_some());
        writer.sample(NAME, block.as_str(), Value::Int(simulated));
    });
}

fn unsupported(
    writer: &mut Writer,
    selection: &Selection,
    members: &[Member<'_>],
    scheme: &LabelScheme,
) {
    const NAME: &str = "nvml_exporter_field_unsupported";
    writer.gauge(NAME, "Selected fields that the GPU does not give.", |writer| {
        for member in members {
            let Some(reading) = member.reading() else { continue };
            let mut fields: Vec<(&str, &str)> = reading
                .unsupported
                .iter()
                .filter_map(|(row, reason)| {
                    Some((selection.rows.get(usize::from(*row))?.name.as_ref(), *reason))
                })
                .collect();
            // Rows that differ in a fixed label only are one field here.
            fields.sort_unstable();
            fields.dedup();
            let gpu = member.identity.index.to_string();
            for (field, reason) in fields {
                let labels = [
                    ("field", field),
                    ("reason", reason),
                    ("gpu", gpu.as_str()),
                    (scheme.uuid_name(), member.identity.uuid.as_str()),
                ];
                let block = Block::of(labels.into_iter().chain(scheme.host_labels()));
                writer.sample(NAME, block.as_str(), Value::Int(1));
            }
        }
    });
}

fn scalar(writer: &mut Writer, name: &str, help: &str, value: Value) {
    writer.gauge(name, help, |writer| writer.sample(name, " ", value));
}

fn seconds(time: Duration) -> Value {
    Value::Float(time.as_secs_f64())
}

fn unix(time: SystemTime) -> Value {
    seconds(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}
