//! One row of the catalogue: everything the product knows about a field.

use super::call::{Call, Fact, FieldValueRead, Numbers, RateRead};
use super::gpm::GpmMetric;

/// How a family is typed in the exposition, or that the field is a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A count that only grows while the driver stays loaded.
    Counter,
    /// A value that goes both ways.
    Gauge,
    /// `untyped`: the counters file says nothing about how the value behaves.
    Untyped,
    /// Not a family: the value becomes a label on every other sample of the same entity.
    Label,
}

/// What a field is a property of; it decides which handle is read and on which rows it appears.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Entity {
    /// The whole node (driver version, device count): repeated on every row, as DCGM does.
    Node,
    /// The physical GPU: on a MIG GPU its value is repeated on each instance's row.
    Gpu,
    /// The instance's own value on a MIG instance's row, the GPU's on a whole GPU's row.
    Instance,
    /// One `NVLink` of a GPU: one sample a link, with the link's own labels.
    Link,
}

/// A reading in the unit in which the family is served.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// An exact integer.
    Int(i64),
    /// An exact integer above `i64::MAX`, as some NVML counters may be.
    Uint(u64),
    /// A floating point number, always finite.
    Float(f64),
}

impl Value {
    /// As a float; integers beyond 2^53 lose their last digits.
    #[must_use]
    pub const fn as_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Uint(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

/// The values of one call or fact, converted to one field's value; `None` is "no series".
pub type Pick = fn(&Numbers) -> Option<Value>;

/// Where a field's value comes from.
#[derive(Clone, Copy)]
pub enum Read {
    /// One of the numbers that an NVML call answers.
    Call(Call, Pick),
    /// One entry of the GPU's single `nvmlDeviceGetFieldValues` batch.
    FieldValue(FieldValueRead, Pick),
    /// The growth of `NVLink` byte counters between two passes.
    Rate(RateRead),
    /// A metric of GPM between the samples of two passes (`nvmlGpmMetricsGet`).
    Gpm(GpmMetric, Pick),
    /// A fact read once when the device is found, not on every pass.
    Fact(Fact),
    /// The last XID seen by the event thread (`nvmlEventSetWait_v2`).
    LastXid,
    /// What happened to the GPU since the process began.
    History(History),
    /// A judgement of the GPU's health (`crate::health`).
    Health,
    /// How the GPU reaches each other one (`nvmlDeviceGetP2PStatus`).
    Peers,
    /// A known field that this exporter does not serve; the text says why and what to use instead.
    Unavailable(&'static str),
}

/// A view of what happened to a GPU: XIDs from NVML's events and the kernel log, clock events from
/// `nvmlDeviceGetCurrentClocksEventReasons` on each pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// XIDs in a window of time, by code.
    XidWindow,
    /// XIDs since the process began, by code.
    XidTotal,
    /// When the last XID of each code was reported.
    XidTime,
    /// Samples in a window of time that show a reason for lower clocks, by reason.
    ClockWindow,
    /// How often such a reason appeared since the process began, by reason.
    ClockTotal,
}

impl History {
    /// Whether it is made of clock events.
    #[must_use]
    pub const fn is_clocks(self) -> bool {
        matches!(self, Self::ClockWindow | Self::ClockTotal)
    }
}

/// One catalogue row. Units and ranges of the value stand in `unit`, the source in `read`.
#[derive(Clone, Copy)]
pub struct Field {
    /// The family's name: DCGM's legacy name (the one dashboards use), or our own (`nvml_…`).
    pub name: &'static str,
    /// DCGM's field id (`dcgm_fields.h`); 0 for families of our own.
    pub id: u16,
    /// Other spellings that a counters file may use: DCGM 4.6's name unless `successor` says it,
    /// 1.x's, deprecated ones.
    pub aliases: &'static [&'static str],
    /// The type that our own `metrics.csv` gives it.
    pub kind: Kind,
    /// The value's unit as served: `MHz`, `W`, `MiB`, `ns`, `0/1`, `count`, …
    pub unit: &'static str,
    /// What it is a property of.
    pub entity: Entity,
    /// Where it is read.
    pub read: Read,
    /// The sentence in our own `metrics.csv` and in docs/metrics.md.
    pub help: &'static str,
    /// Its name in DCGM 4.7's naming (`--metric-names dcgm47`), if that differs: another row of
    /// its own id and unit, or else, if no row has this name, a further spelling of this row.
    pub successor: Option<&'static str>,
    /// A fixed extra label, for families that have several rows (`reason="hw_slowdown"`).
    pub label: Option<(&'static str, &'static str)>,
    /// Whether our own `metrics.csv` enables it.
    pub enabled: bool,
}

impl Field {
    /// A row with the usual defaults: no aliases, no successor, no fixed label, not enabled.
    #[must_use]
    pub const fn new(name: &'static str, id: u16, kind: Kind, entity: Entity, read: Read) -> Self {
        Self {
            name,
            id,
            aliases: &[],
            kind,
            unit: "",
            entity,
            read,
            help: "",
            successor: None,
            label: None,
            enabled: false,
        }
    }

    /// Sets the unit and the help sentence.
    #[must_use]
    pub const fn doc(mut self, unit: &'static str, help: &'static str) -> Self {
        self.unit = unit;
        self.help = help;
        self
    }

    /// Sets the other spellings.
    #[must_use]
    pub const fn alias(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Sets the name in DCGM 4.7's naming.
    #[must_use]
    pub const fn renamed(mut self, successor: &'static str) -> Self {
        self.successor = Some(successor);
        self
    }

    /// Gives the row a fixed extra label.
    #[must_use]
    pub const fn with(mut self, label: &'static str, value: &'static str) -> Self {
        self.label = Some((label, value));
        self
    }

    /// Enables the row in our own `metrics.csv`.
    #[must_use]
    pub const fn on(mut self) -> Self {
        self.enabled = true;
        self
    }

    /// Whether the value is text, so that the row is either a label or an info series.
    #[must_use]
    pub const fn is_text(&self) -> bool {
        matches!(self.read, Read::Fact(fact) if fact.is_text())
    }
}

impl std::fmt::Debug for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Field")
            .field("name", &self.name)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
