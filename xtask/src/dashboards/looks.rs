//! Units, levels and value mappings: how values are shown.

use serde_json::{Value, json};

/// A unit, as Grafana calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// A plain number.
    Count,
    /// A ratio shown in percent.
    Share,
    Bytes,
    BytesPerSecond,
    Watts,
    KilowattHours,
    Celsius,
    Hertz,
    Seconds,
    PerSecond,
    /// Milliseconds of Unix time.
    Time,
    /// Text from value mappings.
    Text,
}

impl Unit {
    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::Count => "short",
            Self::Share => "percentunit",
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "Bps",
            Self::Watts => "watt",
            Self::KilowattHours => "kwatth",
            Self::Celsius => "celsius",
            Self::Hertz => "hertz",
            Self::Seconds => "s",
            Self::PerSecond => "cps",
            Self::Time => "dateTimeAsIso",
            Self::Text => "none",
        }
    }
}

/// How bad a value is. A colour is an alert's severity and nothing else: where no alert would
/// fire, nothing is orange or red.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// Nothing to see here.
    Good,
    /// Neither good nor bad.
    Plain,
    /// Worth knowing; an alert of severity `info` at most.
    Info,
    /// An alert of severity `warning` fires.
    Warning,
    /// An alert of severity `critical` fires.
    Critical,
}

impl Level {
    pub(super) const fn colour(self) -> &'static str {
        match self {
            Self::Good => "green",
            Self::Plain => "blue",
            Self::Info => "yellow",
            Self::Warning => "orange",
            Self::Critical => "red",
        }
    }
}

/// The level from a value on; the first has no value.
pub(super) type Steps = &'static [(Option<f64>, Level)];

/// Plain numbers.
pub(super) const PLAIN: Steps = &[(None, Level::Plain)];

/// Anything but 0 fires a critical alert.
pub(super) const CRITICAL: Steps = &[(None, Level::Good), (Some(1.0), Level::Critical)];

/// Anything but 0 fires a warning.
pub(super) const WARNING: Steps = &[(None, Level::Good), (Some(1.0), Level::Warning)];

/// Anything but 0 is worth a look.
pub(super) const INFO: Steps = &[(None, Level::Good), (Some(1.0), Level::Info)];

pub(super) fn steps(steps: Steps) -> Value {
    let steps: Vec<Value> = steps
        .iter()
        .map(|(value, level)| json!({"color": level.colour(), "value": value}))
        .collect();
    json!({"mode": "absolute", "steps": steps})
}

/// A value's name and level.
pub(super) type Mapping = (u32, &'static str, Level);

pub(super) fn mappings(mappings: &[Mapping]) -> Value {
    if mappings.is_empty() {
        return json!([]);
    }
    let options: serde_json::Map<String, Value> = mappings
        .iter()
        .enumerate()
        .map(|(index, (value, text, level))| {
            let shown = json!({"text": text, "color": level.colour(), "index": index});
            (value.to_string(), shown)
        })
        .collect();
    json!([{"type": "value", "options": options}])
}

/// What the driver asks for.
pub(super) const RECOVERY: &[Mapping] = &[
    (0, "none", Level::Good),
    (1, "reset GPU", Level::Critical),
    (2, "reboot node", Level::Critical),
    (3, "drain P2P", Level::Critical),
    (4, "drain and reset", Level::Critical),
    (5, "recover IMEX", Level::Critical),
    (6, "reset bus", Level::Critical),
    (7, "reboot system", Level::Critical),
];

/// A verdict on a part of a GPU.
pub(super) const VERDICT: &[Mapping] =
    &[(0, "well", Level::Good), (10, "warning", Level::Info), (20, "failure", Level::Warning)];

/// Flags that fire a critical alert.
pub(super) const FLAG_CRITICAL: &[Mapping] = &[(0, "no", Level::Good), (1, "yes", Level::Critical)];

/// Flags that fire a warning.
pub(super) const FLAG_WARNING: &[Mapping] = &[(0, "no", Level::Good), (1, "yes", Level::Warning)];

/// Whether a pod holds something.
pub(super) const HELD: &[Mapping] = &[(0, "no", Level::Plain), (1, "yes", Level::Good)];

/// Whether something is on.
pub(super) const ON_OFF: &[Mapping] = &[(0, "off", Level::Info), (1, "on", Level::Good)];
