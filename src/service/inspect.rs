//! `check` and `fields`: one look at this node through the same sampler that serves, as text.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::reload::Source;
use super::{ServeError, build_telemetry, loader};
use crate::catalogue::{Entity, Field, Kind, Plan, Read, Row, Selection, fields};
use crate::config::{Config, DeviceSelector};
use crate::nvml::reader::Request;
use crate::sampler::snapshot::{Gpu, GpuReading, Library, Snapshot, Status};
use crate::sampler::{PASS_DEADLINE, ProcRoot, Sampler, Settings};
use crate::telemetry::Telemetry;

mod pods;
mod processes;

/// How long a look may take: the library's start and one pass. A GPU that takes longer is listed
/// as not answering.
const LOOK: Duration = Duration::from_secs(2 * PASS_DEADLINE.as_secs() + 5);

/// How long the second pass may take to come.
const SECOND_PASS: Duration = Duration::from_secs(3);

/// How a look ended, for the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// There is something to export.
    Fine,
    /// The configuration is right, but this node has nothing to export now.
    NothingHere,
}

/// `check`: what this configuration exports on this node, and why rows are missing.
pub fn check(config: &Config) -> Result<(String, Verdict), ServeError> {
    let mut source = Source::new(config);
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(source.connect());
    let parsed = source.parse().map_err(|errors| ServeError::Counters(errors.join("\n")))?;
    let mut out = format!("counters: {}\n", source.label());
    for warning in config.warnings.iter().chain(&parsed.warnings) {
        line(&mut out, format_args!("warning: {warning}"));
    }
    for (reason, names) in &parsed.skipped {
        line(&mut out, format_args!("skipped: {}: {reason}", names.join(", ")));
    }
    let selection = Arc::new(parsed.selection);
    let snapshot = look(config, &selection, config.devices.clone())?;
    node(&mut out, &snapshot);
    let rows = tally(&snapshot, &selection);
    let given = rows.iter().filter(|row| row.given > 0).count();
    line(&mut out, format_args!("families: {given} of {} give values here", rows.len()));
    for row in rows.iter().filter(|row| row.given < row.asked) {
        line(&mut out, format_args!("missing: {}: {}", row.name, row.why()));
    }
    if !config.kubernetes.usage.is_empty() {
        processes::report(&mut out, &snapshot);
    }
    let matched = pods::report(&mut out, &config.kubernetes, &snapshot);
    let fine = given > 0 && matched;
    Ok((out, if fine { Verdict::Fine } else { Verdict::NothingHere }))
}

/// `fields`: every field, its unit, type and scope, and whether this node gives it.
pub fn list(config: &Config) -> Result<String, ServeError> {
    let selection = Arc::new(everything());
    let snapshot = look(config, &selection, DeviceSelector::Flexible)?;
    let mut here: BTreeMap<&str, String> = BTreeMap::new();
    for row in tally(&snapshot, &selection) {
        here.insert(row.name, row.verdict(&snapshot));
    }
    let mut out = String::new();
    node(&mut out, &snapshot);
    let width = fields().map(|field| field.name.len()).max().unwrap_or_default();
    line(
        &mut out,
        format_args!(
            "{:<width$} {:>5} {:<8} {:<12} {:<9} HERE",
            "NAME", "ID", "TYPE", "UNIT", "SCOPE"
        ),
    );
    let mut last = "";
    for field in fields().filter(|field| std::mem::replace(&mut last, field.name) != field.name) {
        let verdict = match field.read {
            Read::Unavailable(why) => format!("not served: {why}"),
            _ => here.get(field.name).cloned().unwrap_or_default(),
        };
        let id = if field.id == 0 { String::new() } else { field.id.to_string() };
        let (kind, scope) = (kind(field), scope(field.entity));
        line(
            &mut out,
            format_args!(
                "{:<width$} {id:>5} {kind:<8} {:<12} {scope:<9} {verdict}",
                field.name, field.unit
            ),
        );
    }
    Ok(out)
}

/// One family or label row on this node.
struct Tally<'a> {
    name: &'a str,
    /// Devices that were asked.
    asked: usize,
    /// Devices that answered.
    given: usize,
    /// Codes of those that did not, with the GPUs' indices.
    refused: BTreeMap<&'static str, Vec<u32>>,
}

impl Tally<'_> {
    fn why(&self) -> String {
        if self.refused.is_empty() {
            return format!("no value on {} of {} GPUs", self.asked - self.given, self.asked);
        }
        let reasons = self.refused.iter().map(|(code, gpus)| {
            if gpus.len() == self.asked {
                return format!("{code} on every GPU");
            }
            let gpus: Vec<_> = gpus.iter().map(ToString::to_string).collect();
            format!("{code} on GPU {}", gpus.join(", "))
        });
        reasons.collect::<Vec<_>>().join("; ")
    }

    fn verdict(&self, snapshot: &Snapshot) -> String {
        match snapshot.library {
            Library::Up(_) if self.asked == 0 => "unknown: no GPU answers".to_owned(),
            Library::Up(_) if self.given == self.asked => "yes".to_owned(),
            Library::Up(_) if self.given == 0 => format!("no: {}", self.why()),
            Library::Up(_) => format!("on {} of {}: {}", self.given, self.asked, self.why()),
            _ => "unknown: NVML is down".to_owned(),
        }
    }
}

/// Counts, for each family, on how many of the answering GPUs it has a value.
fn tally<'a>(snapshot: &Snapshot, selection: &'a Selection) -> Vec<Tally<'a>> {
    let readings: Vec<_> = snapshot
        .gpus
        .iter()
        .filter_map(|gpu| Some((gpu.identity.index, gpu.reading.as_deref()?)))
        .collect();
    let mut rows: Vec<Tally<'a>> = Vec::new();
    for (position, row) in (0_u16..).zip(&selection.rows) {
        if rows.last().is_none_or(|last| last.name != &*row.name) {
            let name = &row.name;
            rows.push(Tally { name, asked: readings.len(), given: 0, refused: BTreeMap::new() });
        }
        let Some(tally) = rows.last_mut() else { continue };
        // Of a family with several rows, the first stands for all.
        if tally.given + tally.refused.values().map(Vec::len).sum::<usize>() >= readings.len() {
            continue;
        }
        for (index, reading) in &readings {
            let given = reading.board.iter().any(|sample| sample.row == position)
                || reading.texts.iter().any(|(row, _)| *row == position)
                || reading
                    .instances
                    .iter()
                    .any(|instance| instance.samples.iter().any(|sample| sample.row == position));
            let code = reading.unsupported.iter().find(|(row, _)| *row == position);
            let given = given || code.is_none() && is_computed(row.field.read, reading);
            match (given, code) {
                (true, _) => tally.given += 1,
                (false, Some((_, code))) => tally.refused.entry(code).or_default().push(*index),
                (false, None) => {}
            }
        }
    }
    rows
}

/// Whether a row has its series without a sample: what is counted or judged from what happened.
fn is_computed(read: Read, reading: &GpuReading) -> bool {
    match read {
        Read::History(_) => true,
        Read::Health => reading.signs.is_some(),
        Read::Peers => !reading.peers.is_empty(),
        _ => false,
    }
}

/// One snapshot of this node in which every GPU has answered or been given up.
fn look(
    config: &Config,
    selection: &Arc<Selection>,
    devices: DeviceSelector,
) -> Result<Arc<Snapshot>, ServeError> {
    let request = Arc::new(Request {
        plan: Plan::new(selection),
        selection: Arc::clone(selection),
        devices,
        quirks: config.quirks,
        placements: config.kubernetes.enabled,
        processes: !config.kubernetes.usage.is_empty(),
        accounting: false,
    });
    look_for(config, request, build_telemetry(false))
}

/// The same for what a request asks; passes are counted in the metrics given.
pub(super) fn look_for(
    config: &Config,
    request: Arc<Request>,
    telemetry: Telemetry,
) -> Result<Arc<Snapshot>, ServeError> {
    loader(&config.driver).verify()?;
    let sampler = Sampler::start(
        Settings {
            loader: loader(&config.driver),
            interval: LOOK,
            request,
            give_up_after: None,
            proc_root: ProcRoot::default(),
            keep: LOOK,
            kernel_log: None,
        },
        telemetry,
    )?;
    let until = Instant::now() + LOOK;
    let (mut seen, mut snapshot) = sampler.latest.get();
    while !snapshot.is_decided() && Instant::now() < until {
        let left = until.saturating_duration_since(Instant::now());
        (seen, snapshot) = sampler.latest.wait(seen, left);
    }
    // Rates need a second pass, which follows the first at once, and so do XIDs.
    let first = read_times(&snapshot);
    let until = (Instant::now() + SECOND_PASS).min(until);
    while read_times(&snapshot) == first && !first.is_empty() && Instant::now() < until {
        let left = until.saturating_duration_since(Instant::now());
        (seen, snapshot) = sampler.latest.wait(seen, left);
    }
    sampler.stop();
    Ok(snapshot)
}

fn read_times(snapshot: &Snapshot) -> Vec<SystemTime> {
    let readings = snapshot.gpus.iter().filter_map(|gpu| gpu.reading.as_ref());
    readings.map(|reading| reading.read_at).collect()
}

fn node(out: &mut String, snapshot: &Snapshot) {
    match &snapshot.library {
        Library::Starting => line(out, format_args!("NVML: does not answer")),
        Library::Down { detail, .. } => line(out, format_args!("NVML: down: {detail}")),
        Library::Up(facts) => {
            line(
                out,
                format_args!(
                    "NVML: {} from {}, driver {}, CUDA {}",
                    facts.nvml_version, facts.path, facts.driver_version, facts.cuda_version
                ),
            );
            if let Some(scenario) = &facts.simulated {
                line(out, format_args!("SIMULATED: scenario {scenario}"));
            }
            if snapshot.gpus.is_empty() {
                line(out, format_args!("GPUs: none"));
            }
        }
    }
    for gpu in &snapshot.gpus {
        device(out, gpu);
    }
}

fn device(out: &mut String, gpu: &Gpu) {
    let identity = &gpu.identity;
    let state = match gpu.status {
        Status::Up => "up",
        Status::Starting => "does not answer",
        Status::Down(reason) => reason,
    };
    line(
        out,
        format_args!(
            "GPU {}: {} {} {} {state}",
            identity.index, identity.model, identity.uuid, identity.pci_bus_id
        ),
    );
    let Some(reading) = &gpu.reading else { return };
    for instance in &reading.instances {
        let instance = &instance.identity;
        let uuids: Vec<_> = instance.uuids.iter().map(|(_, uuid)| uuid.as_str()).collect();
        line(
            out,
            format_args!(
                "  instance {}: {} {}",
                instance.gpu_instance,
                instance.profile,
                uuids.join(" ")
            ),
        );
    }
    if !reading.whole && reading.instances.is_empty() {
        line(out, format_args!("  not selected by --devices"));
    }
}

/// A selection of every row that is served, texts as info series.
fn everything() -> Selection {
    let mut rows: Vec<Row> = fields()
        .filter(|field| !matches!(field.read, Read::Unavailable(_)))
        .map(|field| Row {
            field,
            name: field.name.into(),
            kind: if field.kind == Kind::Label { Kind::Gauge } else { field.kind },
            help: field.help.into(),
        })
        .collect();
    rows.sort_by(|one, other| (&one.name, one.field.label).cmp(&(&other.name, other.field.label)));
    Selection { rows, ..Selection::default() }
}

fn kind(field: &Field) -> &'static str {
    match field.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Untyped => "untyped",
        Kind::Label => "label",
    }
}

fn scope(entity: Entity) -> &'static str {
    match entity {
        Entity::Node => "node",
        Entity::Gpu => "GPU",
        Entity::Instance => "instance",
        Entity::Link => "link",
    }
}

fn line(out: &mut String, text: fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{text}");
}
