//! Where the rows wanted come from, and reading them again while the process runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::catalogue::{CountersError, MetricNames, Parsed, Plan, default_selection, parse};
use crate::cluster::configmap::{self, Text};
use crate::config::{Config, Counters, DeviceSelector, InlineRow};
use crate::exposition;
use crate::http::{ConfigStatus, WebConfig};
use crate::nvml::reader::Request;
use crate::sampler::Sampler;
use crate::telemetry::Telemetry;
use crate::usage::By;

/// The counters file's content is compared this often. By content, since a `ConfigMap` mount is
/// swapped by a link that no watch on the file itself notices.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The start waits this long for a `ConfigMap`.
const MAP_WAIT: Duration = Duration::from_secs(10);

/// Where the rows wanted come from, and how they are to be read.
#[derive(Debug, Clone)]
pub(super) struct Source {
    counters: Counters,
    /// The `ConfigMap`'s text, once it is asked for.
    map: Option<watch::Receiver<Text>>,
    names: MetricNames,
    devices: DeviceSelector,
    quirks: bool,
    /// Whether pods are asked for, whose devices can be named by where they lie.
    placements: bool,
    processes: Processes,
    /// Whether single processes are told of, and so what the driver has accounted of them.
    accounting: bool,
}

/// What processes are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Processes {
    Nothing,
    /// To divide families among the sharers of a GPU, if any that can be is selected.
    Split,
    /// To tell who uses a GPU how much.
    Usage,
}

/// A selection ready for the sampler.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) request: Arc<Request>,
    pub(super) status: ConfigStatus,
}

impl Source {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            counters: config.counters.clone(),
            map: None,
            names: config.metric_names,
            devices: config.devices.clone(),
            quirks: config.quirks,
            placements: config.kubernetes.enabled,
            processes: match &config.kubernetes {
                all if !all.usage.is_empty() => Processes::Usage,
                all if all.enabled && all.virtual_gpus => Processes::Split,
                _ => Processes::Nothing,
            },
            accounting: config.kubernetes.usage.contains(&By::Process),
        }
    }

    /// Asks for the `ConfigMap`, if that is the source, and waits a while for it. Without it, the
    /// source is what stands in for it.
    pub(super) async fn connect(&mut self) {
        let Counters::ConfigMap { namespace, name, .. } = &self.counters else { return };
        let mut map = configmap::watch(namespace, name);
        let known = map.wait_for(|text| *text != Text::Unknown);
        let why = match tokio::time::timeout(MAP_WAIT, known).await {
            Ok(Ok(text)) => match &*text {
                Text::Missing(why) => why.clone(),
                Text::Is(_) | Text::Unknown => String::new(),
            },
            Ok(Err(_)) | Err(_) => "the API server does not answer".to_owned(),
        };
        if !why.is_empty() {
            tracing::error!(
                "{}: {why}; until it can be read, the counters are: {}",
                self.label(),
                self.stand_in().map_or_else(String::new, counters_label)
            );
        }
        self.map = Some(map);
    }

    fn stand_in(&self) -> Option<&Counters> {
        match &self.counters {
            Counters::ConfigMap { instead, .. } => Some(instead),
            _ => None,
        }
    }

    fn map_text(&self) -> Text {
        self.map.as_ref().map_or(Text::Unknown, |map| map.borrow().clone())
    }

    /// Reads and checks the rows; every mistake is one line.
    pub(super) fn load(&self) -> Result<Loaded, Vec<String>> {
        let parsed = self.parse()?;
        for warning in &parsed.warnings {
            tracing::warn!("{warning}");
        }
        for (reason, names) in &parsed.skipped {
            tracing::warn!("{}: {reason}", names.join(", "));
        }
        let rows = parsed.selection.rows.len();
        tracing::info!(source = self.label(), rows, "counters loaded");
        let is_divided = parsed.selection.rows.iter().any(|row| exposition::is_divided(&row.name));
        let mut selection = parsed.selection;
        if self.processes == Processes::Usage {
            selection = selection.with_meters();
        }
        let selection = Arc::new(selection);
        Ok(Loaded {
            request: Arc::new(Request {
                plan: Plan::new(&selection),
                selection,
                devices: self.devices.clone(),
                quirks: self.quirks,
                placements: self.placements,
                processes: match self.processes {
                    Processes::Nothing => false,
                    Processes::Split => is_divided,
                    Processes::Usage => true,
                },
                accounting: self.accounting,
            }),
            status: ConfigStatus { source: self.label(), reloading: false, error: None },
        })
    }

    /// The rows, without saying anything in the log.
    pub(super) fn parse(&self) -> Result<Parsed, Vec<String>> {
        match (self.stand_in(), self.map_text()) {
            (Some(_), Text::Is(text)) => self.rows(&text, &self.label()),
            (Some(counters), Text::Missing(_) | Text::Unknown) => self.parse_from(counters),
            (None, _) => self.parse_from(&self.counters),
        }
    }

    fn parse_from(&self, counters: &Counters) -> Result<Parsed, Vec<String>> {
        match counters {
            Counters::BuiltIn => {
                Ok(Parsed { selection: default_selection(self.names), ..Parsed::default() })
            }
            Counters::File { path, .. } => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    vec![format!("{}: cannot read the counters file: {error}", path.display())]
                })?;
                self.rows(&text, &path.display().to_string())
            }
            Counters::Inline(rows) => self.rows(&inline(rows), "metrics.fields"),
            Counters::ConfigMap { instead, .. } => self.parse_from(instead),
        }
    }

    fn rows(&self, text: &str, source: &str) -> Result<Parsed, Vec<String>> {
        parse(text, source, self.names).map_err(|errors: Vec<CountersError>| {
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        })
    }

    pub(super) fn label(&self) -> String {
        counters_label(&self.counters)
    }

    fn file(&self) -> Option<&PathBuf> {
        match &self.counters {
            Counters::File { path, .. } => Some(path),
            _ => None,
        }
    }
}

fn counters_label(counters: &Counters) -> String {
    match counters {
        Counters::BuiltIn => "built-in".to_owned(),
        Counters::File { path, .. } => path.display().to_string(),
        Counters::Inline(_) => "configuration file".to_owned(),
        Counters::ConfigMap { namespace, name, .. } => format!("ConfigMap {namespace}:{name}"),
    }
}

/// Rows of the YAML file as a counters file.
fn inline(rows: &[InlineRow]) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let line =
        |row: &InlineRow| [&row.name, &row.kind, &row.help].map(|text| quoted(text)).join(",");
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Reads the rows again on SIGHUP and when the file's content changes. A mistake leaves the rows
/// in use as they are.
pub(super) struct Reloader {
    source: Source,
    sampler: Arc<Sampler>,
    telemetry: Telemetry,
    status: Arc<ArcSwap<ConfigStatus>>,
    hangup: Signal,
    content: Option<Vec<u8>>,
    web: Arc<WebConfig>,
    /// Whether the newest counters, and the newest web configuration, are in use.
    in_use: [bool; 2],
}

/// Positions in `Reloader::in_use`.
const COUNTERS: usize = 0;
const WEB: usize = 1;

impl Reloader {
    pub(super) fn new(
        source: Source,
        sampler: Arc<Sampler>,
        telemetry: Telemetry,
        status: Arc<ArcSwap<ConfigStatus>>,
        web: Arc<WebConfig>,
    ) -> std::io::Result<Self> {
        let content = source.file().and_then(|path| std::fs::read(path).ok());
        let hangup = signal(SignalKind::hangup())?;
        let in_use = [true; 2];
        Ok(Self { source, sampler, telemetry, status, hangup, content, web, in_use })
    }

    pub(super) async fn run(mut self) {
        let mut look = tokio::time::interval(LOOK_EVERY);
        let mut map = self.source.map.clone();
        if map.is_some() && !matches!(self.source.map_text(), Text::Is(_)) {
            self.record(COUNTERS, false);
        }
        loop {
            tokio::select! {
                () = changed(&mut map) => self.look_at_map(),
                _ = self.hangup.recv() => {
                    // Or the file would look changed against what was in use before.
                    self.content = self.source.file().and_then(|path| std::fs::read(path).ok());
                    self.reload("SIGHUP");
                }
                _ = look.tick() => {
                    self.look_at_web();
                    self.look_at_file().await;
                }
            }
        }
    }

    /// The server reads the web configuration again by itself; here it is told what came of it.
    fn look_at_web(&mut self) {
        let good = self.web.error().is_none();
        if good != self.in_use[WEB] {
            self.record(WEB, good);
        }
    }

    fn look_at_map(&mut self) {
        match self.source.map_text() {
            Text::Is(_) => self.reload("the ConfigMap changed"),
            Text::Missing(why) => {
                tracing::error!("{}: {why}; the counters in use are kept", self.source.label());
                self.record(COUNTERS, false);
            }
            Text::Unknown => {}
        }
    }

    async fn look_at_file(&mut self) {
        let Some(path) = self.source.file() else { return };
        // A file that is gone for a moment is being replaced.
        let Ok(content) = tokio::fs::read(path).await else { return };
        if self.content.as_ref() != Some(&content) {
            self.content = Some(content);
            self.reload("the file changed");
        }
    }

    fn reload(&mut self, why: &'static str) {
        tracing::info!(why, source = self.source.label(), "reading the counters again");
        match self.source.load() {
            Ok(loaded) => {
                self.record(COUNTERS, true);
                self.status.store(Arc::new(loaded.status));
                self.sampler.replace(loaded.request);
            }
            Err(errors) => {
                for error in &errors {
                    tracing::error!("{error}");
                }
                tracing::error!("the counters in use are kept");
                self.record(COUNTERS, false);
                let former = (**self.status.load()).clone();
                let error = Some(errors.join("; "));
                self.status.store(Arc::new(ConfigStatus { error, ..former }));
            }
        }
    }

    fn record(&mut self, part: usize, good: bool) {
        self.in_use[part] = good;
        self.telemetry.record_reload(good, self.in_use == [true; 2]);
    }
}

/// Resolves when there is another text; never without a `ConfigMap`, or when its watch has ended.
async fn changed(map: &mut Option<watch::Receiver<Text>>) {
    let ended = match map {
        Some(map) => map.changed().await.is_err(),
        None => true,
    };
    if ended {
        std::future::pending::<()>().await;
    }
}
