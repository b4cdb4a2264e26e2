//! A whole page.

use std::time::SystemTime;

use bytes::Bytes;

use super::page::{Body, Page};
use super::roster::{Member, roster};
use super::scheme::Settings;
use super::text::{Format, Writer};
use super::{families, health, inventory};
use crate::sampler::snapshot::Snapshot;
use crate::telemetry::Telemetry;

/// Makes pages, one after the other, in memory that it takes back from pages no longer in use.
#[derive(Debug, Default)]
pub struct Renderer {
    text: Reuse,
    openmetrics: Reuse,
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
            text: Body::new(self.text.fill(|out| part.write(out, Format::Text))),
            openmetrics: settings.openmetrics.then(|| {
                Body::new(self.openmetrics.fill(|out| part.write(out, Format::OpenMetrics)))
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

/// The buffers of the newest page and the one before. By the time a page is made, the one before
/// the last is usually held by no scrape any more, so two buffers serve for ever.
#[derive(Debug, Default)]
struct Reuse {
    newest: Bytes,
    former: Bytes,
}

impl Reuse {
    fn fill(&mut self, write: impl FnOnce(String) -> String) -> Bytes {
        let former = std::mem::take(&mut self.former);
        let mut buffer = if former.is_unique() {
            Vec::from(former)
        } else {
            // A tenth more than last time, so that it does not grow while it is written.
            Vec::with_capacity(self.newest.len() + self.newest.len() / 10)
        };
        buffer.clear();
        let page = Bytes::from(write(String::from_utf8(buffer).unwrap_or_default()));
        self.former = std::mem::replace(&mut self.newest, page.clone());
        page
    }
}
