//! The families that the counters file selects.

use std::ops::Range;
use std::time::SystemTime;

use super::device::{Device, Labels};
use super::happened::{self, Happened};
use super::labels::{Block, Insert, Style, Zone};
use super::roster::Member;
use super::sharing::Sharing;
use super::split::{Split, Whose};
use super::text::{Writer, push_value};
use crate::catalogue::{Entity, Kind, Read, Row, Selection, Value};
use crate::sampler::snapshot::{Processes, Sample};
use crate::xid;

/// Writes every selected family that has a sample, in the selection's order.
pub(super) fn write(
    writer: &mut Writer,
    selection: &Selection,
    members: &[Member<'_>],
    sharing: &Sharing<'_>,
    now: SystemTime,
) {
    let mut devices: Vec<Device<'_>> =
        members.iter().filter_map(|member| Device::new(member, selection, sharing)).collect();
    let happened = Happened::new(members, selection, (sharing, now));
    let mut start = 0;
    for rows in selection.rows.chunk_by(|a, b| a.name == b.name) {
        let range = start..start + rows.len();
        start = range.end;
        let first = &rows[0];
        if happened::is_about(first.field.read) {
            writer.family(&first.name, &first.help, first.kind, |writer| {
                happened.write(writer, &first.name, first.field.read);
            });
            continue;
        }
        // A text has the value 1, whatever type the counters file gives it.
        let kind = if first.field.is_text() { Kind::Gauge } else { first.kind };
        writer.family(&first.name, &first.help, kind, |writer| {
            let mut family = Family { writer, rows: &selection.rows, range };
            for device in &mut devices {
                family.numbers(device);
                family.texts(device);
            }
        });
    }
    happened.info(writer);
}

struct Family<'w, 'a> {
    writer: &'w mut Writer,
    /// All rows of the selection; samples refer to them by position.
    rows: &'a [Row],
    /// The rows of this family.
    range: Range<usize>,
}

impl Family<'_, '_> {
    fn numbers(&mut self, device: &mut Device<'_>) {
        let board = device.board.take_before(self.range.end);
        for sample in distinct(board) {
            let row = &self.rows[usize::from(sample.row)];
            match row.field.entity {
                Entity::Link => self.copies(row, device.link(sample.link), sample.value),
                Entity::Gpu | Entity::Node if !device.whole && !is_dcgm(row) => {
                    self.copies(row, device.labels.of(Style::Own), sample.value);
                }
                Entity::Gpu | Entity::Node | Entity::Instance if device.whole => {
                    self.device(
                        row,
                        &device.labels,
                        (device.processes, Whose::Board),
                        sample.value,
                    );
                }
                Entity::Gpu | Entity::Node | Entity::Instance => {}
            }
        }
        for instance in &mut device.instances {
            let whose = (device.processes, Whose::Instance(instance.id));
            let own = instance.samples.take_before(self.range.end);
            for sample in distinct(own) {
                let row = &self.rows[usize::from(sample.row)];
                self.device(row, &instance.labels, whose, sample.value);
            }
            for sample in distinct(board) {
                let row = &self.rows[usize::from(sample.row)];
                let has_own = own.iter().any(|own| own.row == sample.row);
                if !has_own && is_repeated(row) {
                    self.device(row, &instance.labels, whose, sample.value);
                }
            }
        }
    }

    fn texts(&mut self, device: &Device<'_>) {
        for at in self.range.clone() {
            let row = &self.rows[at];
            if !row.field.is_text() {
                continue;
            }
            let Some((_, text)) = device.texts.iter().find(|(row, _)| usize::from(*row) == at)
            else {
                continue;
            };
            if device.whole || !is_dcgm(row) {
                self.text(row, device.labels.of(style(row)), text);
            }
            if is_dcgm(row) {
                for instance in &device.instances {
                    self.text(row, instance.labels.of(style(row)), text);
                }
            }
        }
    }

    /// One value of a GPU or an instance; what can be divided among its sharers is.
    fn device(
        &mut self,
        row: &Row,
        labels: &Labels<'_>,
        (processes, whose): (Option<&Processes>, Whose),
        value: Value,
    ) {
        let (Some(undivided), Some(split)) = (&labels.whole, Split::of(&row.name)) else {
            return self.copies(row, labels.of(style(row)), value);
        };
        self.sample(row, undivided, value);
        for (uid, block) in &labels.sharers {
            if let Some(share) = processes.and_then(|processes| split.share(processes, whose, uid))
            {
                self.sample(row, block, share);
            }
        }
    }

    fn copies(&mut self, row: &Row, blocks: &[Block<'_>], value: Value) {
        for block in blocks {
            self.sample(row, block, value);
        }
    }

    fn sample(&mut self, row: &Row, block: &Block<'_>, value: Value) {
        if matches!(row.field.read, Read::LastXid) {
            self.xid(row, block, value);
        } else if let Some((name, label)) = row.field.label {
            let labels = [Insert { zone: Zone::Extra, name, value: label }];
            self.sample_with(row, block, &labels, value);
        } else {
            self.writer.sample(&row.name, block.as_str(), value);
        }
    }

    /// dcgm-exporter puts the code and its meaning beside the value.
    fn xid(&mut self, row: &Row, block: &Block<'_>, value: Value) {
        let mut code = String::new();
        push_value(&mut code, value);
        let meaning = code.parse().map_or(xid::UNKNOWN, xid::meaning);
        let labels = [
            Insert { zone: Zone::Attribute, name: "err_code", value: &code },
            Insert { zone: Zone::Attribute, name: "err_msg", value: meaning },
        ];
        self.sample_with(row, block, &labels, value);
    }

    /// A text becomes a label of a sample that is always 1.
    fn text(&mut self, row: &Row, blocks: &[Block<'_>], text: &str) {
        let name = text_label(&row.name);
        let labels = [Insert { zone: Zone::Extra, name: &name, value: text }];
        for block in blocks {
            self.sample_with(row, block, &labels, Value::Int(1));
        }
    }

    fn sample_with(&mut self, row: &Row, block: &Block<'_>, labels: &[Insert<'_>], value: Value) {
        self.writer.sample_with(&row.name, block, labels, value);
    }
}

/// Whether the row is one of DCGM's fields, which are served the way dcgm-exporter does.
fn is_dcgm(row: &Row) -> bool {
    row.field.id != 0
}

fn style(row: &Row) -> Style {
    if is_dcgm(row) { Style::Dcgm } else { Style::Own }
}

/// Whether the board's value stands on every MIG instance's row.
fn is_repeated(row: &Row) -> bool {
    is_dcgm(row) && matches!(row.field.entity, Entity::Gpu | Entity::Node)
}

/// Each row and link once, however often it was read: a page with a series twice is refused.
fn distinct(samples: &[Sample]) -> impl Iterator<Item = &Sample> {
    samples.chunk_by(|a, b| (a.row, a.link) == (b.row, b.link)).map(|same| &same[0])
}

/// `DCGM_FI_DRIVER_VERSION` -> `driver_version`.
fn text_label(name: &str) -> String {
    let short =
        name.strip_prefix("DCGM_FI_DEV_").or_else(|| name.strip_prefix("DCGM_FI_")).unwrap_or(name);
    short.to_ascii_lowercase()
}
