//! Debugging dumps (`--dump-enabled`): each new snapshot as JSON, in files that name their time.
//!
//! dcgm-exporter writes its dumps on every scrape; here nothing happens on a scrape, so a dump
//! is written for every pass.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value as Json, json};

use crate::catalogue::Value;
use crate::config::Dump;
use crate::sampler::Latest;
use crate::sampler::snapshot::{Gpu, GpuReading, Library, Sample, Snapshot, Status};

/// Files past their retention are looked for this often.
const CLEAN_EVERY: Duration = Duration::from_secs(3600);

/// How long the thread sleeps when no snapshot comes.
const IDLE: Duration = Duration::from_secs(60);

/// The beginnings of the names of our own files: no other file is ever deleted.
const PREFIXES: [&str; 2] = ["metrics-gpu-", "deviceinfo-gpu-"];

/// Starts the thread that writes dumps. It ends with the process.
pub(super) fn start(dump: Dump, latest: Arc<Latest<Snapshot>>) -> io::Result<()> {
    fs::create_dir_all(&dump.directory)?;
    thread::Builder::new().name("dump".into()).spawn(move || run(&dump, &latest))?;
    Ok(())
}

fn run(dump: &Dump, latest: &Latest<Snapshot>) {
    let (mut seen, mut cleaned) = (0, None::<Instant>);
    let mut failing = false;
    loop {
        let (number, snapshot) = latest.wait(seen, IDLE);
        if number != seen {
            seen = number;
            let written = write(dump, number, &snapshot);
            if let (Err(error), false) = (&written, failing) {
                let directory = dump.directory.display();
                tracing::error!(%directory, %error, "cannot write dumps; said once");
            }
            failing = written.is_err();
        }
        if cleaned.is_none_or(|at| at.elapsed() >= CLEAN_EVERY) {
            cleaned = Some(Instant::now());
            if let Some(retention) = dump.retention {
                clean(&dump.directory, retention);
            }
        }
    }
}

fn write(dump: &Dump, number: u64, snapshot: &Snapshot) -> io::Result<()> {
    let samples: Vec<Json> = snapshot.gpus.iter().flat_map(|gpu| samples(snapshot, gpu)).collect();
    let devices: Vec<Json> = snapshot.gpus.iter().map(device).collect();
    let contents = [json!(samples), json!({ "library": library(snapshot), "devices": devices })];
    for (prefix, content) in PREFIXES.iter().zip(contents) {
        let mut name = format!("{prefix}{}-{number:08x}.json", stamp(snapshot.taken));
        let mut bytes = serde_json::to_vec(&content)?;
        if dump.compression {
            name.push_str(".gz");
            let level = flate2::Compression::default();
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            encoder.write_all(&bytes)?;
            bytes = encoder.finish()?;
        }
        fs::write(dump.directory.join(name), bytes)?;
    }
    Ok(())
}

/// Deletes our own files that are older than the retention.
fn clean(directory: &Path, retention: Duration) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let ours = PREFIXES.iter().any(|prefix| name.to_string_lossy().starts_with(prefix));
        let age =
            entry.metadata().and_then(|file| file.modified()).ok().and_then(|at| at.elapsed().ok());
        if ours && age.is_some_and(|age| age > retention) {
            // Whatever keeps it from being deleted now may be gone next time.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn library(snapshot: &Snapshot) -> Json {
    match &snapshot.library {
        Library::Starting => json!({ "state": "starting" }),
        Library::Down { reason, detail } => {
            json!({ "state": "down", "reason": reason, "detail": detail })
        }
        Library::Up(facts) => json!({
            "state": "up",
            "path": facts.path,
            "driver": facts.driver_version,
            "nvml": facts.nvml_version,
            "simulated": facts.simulated,
        }),
    }
}

fn device(gpu: &Gpu) -> Json {
    let identity = &gpu.identity;
    let state = match gpu.status {
        Status::Up => "up",
        Status::Starting => "starting",
        Status::Down(reason) => reason,
    };
    let instances = gpu.reading.iter().flat_map(|reading| &reading.instances).map(|instance| {
        let uuids: Vec<_> = instance.identity.uuids.iter().map(|(_, uuid)| uuid).collect();
        json!({
            "gpu_instance": instance.identity.gpu_instance,
            "profile": instance.identity.profile,
            "uuids": uuids,
        })
    });
    json!({
        "gpu": identity.index,
        "uuid": identity.uuid,
        "pci_bus_id": identity.pci_bus_id,
        "model": identity.model,
        "minor": identity.minor,
        "state": state,
        "instances": instances.collect::<Vec<_>>(),
    })
}

fn samples(snapshot: &Snapshot, gpu: &Gpu) -> Vec<Json> {
    let Some(reading) = gpu.reading.as_deref() else { return Vec::new() };
    let board = reading.board.iter().map(|sample| (None, sample));
    let instances = instance_samples(reading);
    board
        .chain(instances)
        .filter_map(|(instance, sample)| {
            let row = snapshot.selection.rows.get(usize::from(sample.row))?;
            Some(json!({
                "name": &*row.name,
                "label": row.field.label.map(|(name, value)| json!({ name: value })),
                "gpu": gpu.identity.index,
                "uuid": gpu.identity.uuid,
                "gpu_instance": instance,
                "link": sample.link,
                "value": number(sample.value),
            }))
        })
        .collect()
}

fn instance_samples(reading: &GpuReading) -> impl Iterator<Item = (Option<u32>, &Sample)> {
    reading.instances.iter().flat_map(|instance| {
        let id = instance.identity.gpu_instance;
        instance.samples.iter().map(move |sample| (Some(id), sample))
    })
}

fn number(value: Value) -> Json {
    match value {
        Value::Int(value) => json!(value),
        Value::Uint(value) => json!(value),
        Value::Float(value) => json!(value),
    }
}

/// `20261130-093015` in UTC, as dcgm-exporter's files are named.
fn stamp(at: SystemTime) -> String {
    jiff::Timestamp::try_from(at).unwrap_or_default().strftime("%Y%m%d-%H%M%S").to_string()
}
