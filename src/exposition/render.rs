//! A whole page.

use std::time::SystemTime;

use bytes::Bytes;

use super::format::Format;
use super::page::{Body, Page};
use super::roster::{Member, roster};
use super::scheme::Settings;
use super::text::Writer;
use super::{families, health, inventory};
use crate::sampler::snapshot::Snapshot;
use crate::telemetry::Telemetry;

/// Makes pages, one after the other.
#[derive(Debug, Default)]
pub struct Renderer {
    /// Lengths of the last page, in bytes.
    text: usize,
    openmetrics: usize,
}

impl Renderer {
    /// The page of one snapshot as of `now`.
    #[must_use]
    pub fn render(
        &mut self,
        snapshot: &Snapshot,
        settings: &Settings,
        telemetry: &Telemetry,
        now: SystemTime,
    ) -> Page {
        let part =
            Part { snapshot, settings, telemetry, now, members: &roster(snapshot, settings, now) };
        Page {
            text: Body::new(fill(&mut self.text, |out| part.write(out, Format::Text))),
            openmetrics: settings.openmetrics.then(|| {
                Body::new(fill(&mut self.openmetrics, |out| part.write(out, Format::OpenMetrics)))
            }),
        }
    }
}

struct Part<'a> {
    snapshot: &'a Snapshot,
    settings: &'a Settings,
    telemetry: &'a Telemetry,
    now: SystemTime,
    members: &'a [Member<'a>],
}

impl Part<'_> {
    fn write(&self, out: String, format: Format) -> String {
        let Self { snapshot, settings, members, .. } = *self;
        let labels = &settings.labels;
        let mut writer = Writer::new(out, format);
        families::write(&mut writer, &snapshot.selection, members, labels);
        inventory::write(&mut writer, snapshot, members, labels);
        health::write(&mut writer, snapshot, members, labels, self.now);
        match format {
            Format::Text => self.telemetry.encode_text(writer.text()),
            Format::OpenMetrics => self.telemetry.encode_openmetrics(writer.text()),
        }
        writer.into_string()
    }
}

/// Writes into memory of its own, as much as the last page took and a little more. A buffer kept
/// from page to page was measured to save no time, and would be held between pages.
fn fill(last: &mut usize, write: impl FnOnce(String) -> String) -> Bytes {
    let text = write(String::with_capacity(*last + *last / 16));
    *last = text.len();
    Bytes::from(text)
}
