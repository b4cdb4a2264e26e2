//! A whole page.

use std::time::SystemTime;

use bytes::Bytes;

use super::format::Format;
use super::page::{Body, Page};
use super::roster::{Member, roster};
use super::scheme::Settings;
use super::sharing::Sharing;
use super::text::Writer;
use super::usage::Accounts;
use super::{families, health, holders, inventory, usage};
use crate::attribution::{Attribution, assign};
use crate::sampler::snapshot::Snapshot;
use crate::telemetry::Telemetry;
use crate::usage::{Ledger, Usage};

/// Makes pages, one after the other.
#[derive(Debug, Default)]
pub struct Renderer {
    /// Lengths of the last page, in bytes.
    text: usize,
    openmetrics: usize,
    /// Counters go on from page to page.
    ledger: Ledger,
}

impl Renderer {
    /// The page of one snapshot, with what is known of the devices' users, as of `now`.
    #[must_use]
    pub fn render(
        &mut self,
        (snapshot, attribution): (&Snapshot, &Attribution),
        settings: &Settings,
        telemetry: &Telemetry,
        now: SystemTime,
    ) -> Page {
        let assignment = &assign(snapshot, attribution);
        let sharing = Sharing { settings, assignment, attribution };
        let members = &roster(snapshot, settings, now);
        let usage = &Usage::of(snapshot, (assignment, attribution), &settings.usage);
        self.ledger.charge(snapshot, usage, settings.max_age);
        let accounts = Accounts { usage, ledger: &self.ledger };
        let part = Part { snapshot, settings, sharing, accounts, telemetry, now, members };
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
    sharing: Sharing<'a>,
    accounts: Accounts<'a>,
    telemetry: &'a Telemetry,
    now: SystemTime,
    members: &'a [Member<'a>],
}

impl Part<'_> {
    fn write(&self, out: String, format: Format) -> String {
        let Self { snapshot, settings, members, .. } = *self;
        let labels = &settings.labels;
        let mut writer = Writer::new(out, format);
        families::write(&mut writer, &snapshot.selection, members, &self.sharing, self.now);
        inventory::write(&mut writer, snapshot, members, labels);
        holders::write(&mut writer, members, &self.sharing, self.accounts.usage);
        usage::write(&mut writer, members, self.accounts, settings);
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
