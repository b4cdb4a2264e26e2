//! The rows that the operator wants: what a counters file selects from the catalogue.

use std::sync::Arc;

use super::field::{Field, Kind, Read};
use super::fields;
use super::meter::Meter;
use super::sign::Sign;

/// Which generation of DCGM's names is served (`--metric-names`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum MetricNames {
    /// The names as typed in the counters file; the classic ones in ours.
    #[default]
    Legacy,
    /// Every row that DCGM 4.7 renamed is served under its new name and unit.
    Dcgm47,
    /// Both.
    Both,
}

/// One family's row, or one of several rows that make up a family (`Field::label` differs).
#[derive(Debug, Clone)]
pub struct Row {
    /// What is read and how it is converted.
    pub field: &'static Field,
    /// The name as typed in the counters file: this is the metric's name.
    pub name: Arc<str>,
    /// The type as typed in the counters file.
    pub kind: Kind,
    /// The help text as typed in the counters file.
    pub help: Arc<str>,
}

/// The rows selected, in the order in which families are served.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Rows that are families, sorted by name, then by fixed label. Samples refer to them by
    /// position.
    pub rows: Vec<Row>,
    /// Rows of type `label`, sorted by name.
    pub labels: Vec<Row>,
    /// Fields that are read for a judgement and not served, in the order of `Sign::ALL`. Samples
    /// refer to them by positions behind those of `rows`.
    pub signs: Vec<&'static Field>,
    /// Fields that are read for the accounts of devices' users and not served, in the order of
    /// `Meter::ALL`, with positions behind those of `signs`.
    pub meters: Vec<&'static Field>,
}

impl Selection {
    /// The field of a sample, served or not.
    #[must_use]
    pub fn field(&self, at: u16) -> Option<&'static Field> {
        let at = usize::from(at);
        let served = self.rows.get(at).map(|row| row.field);
        served.or_else(|| self.unserved().nth(at.checked_sub(self.rows.len())?))
    }

    /// Fields that are read and not served, in the order of their positions.
    pub(super) fn unserved(&self) -> impl Iterator<Item = &'static Field> {
        self.signs.iter().chain(&self.meters).copied()
    }

    /// What a sample is read for, if for accounts.
    #[must_use]
    pub fn meter(&self, at: u16) -> Option<Meter> {
        let served = self.rows.len() + self.signs.len();
        let at = usize::from(at).checked_sub(served)?;
        Meter::ALL.get(at).copied().filter(|_| !self.meters.is_empty())
    }

    /// Adds what is read for accounts.
    #[must_use]
    pub fn with_meters(mut self) -> Self {
        self.meters = named(Meter::ALL.iter().map(|meter| meter.field()));
        self
    }

    /// Whether the health of GPUs is to be judged.
    #[must_use]
    pub fn has_health(&self) -> bool {
        !self.signs.is_empty()
    }

    /// Adds the signs, if a row asks for them.
    #[must_use]
    pub(super) fn with_signs(mut self) -> Self {
        if self.rows.iter().any(|row| matches!(row.field.read, Read::Health)) {
            self.signs = named(Sign::ALL.iter().map(|sign| sign.field()));
        }
        self
    }
}

fn named(names: impl Iterator<Item = &'static str>) -> Vec<&'static Field> {
    names.filter_map(|name| fields().find(|field| field.name == name)).collect()
}
