//! Names and units of fields under each set of names, as `docs/metrics.md` tells them.
//!
//! Dashboards think in base units. What a reading is multiplied by to get there follows from the
//! unit that the document gives, so that one source serves both sets.

use std::collections::BTreeMap;

use crate::shell::Outcome;

/// A set of names, as `--metric-names` chooses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// DCGM's names up to 4.6.
    Legacy,
    /// Those of DCGM 4.7.
    Dcgm47,
}

/// What each field is called.
pub(super) struct Fields(BTreeMap<String, Field>);

struct Field {
    unit: String,
    later_name: String,
    later_unit: String,
}

/// A field under one set of names.
#[derive(Debug, PartialEq)]
pub(super) struct Named<'a> {
    pub(super) name: &'a str,
    /// What makes the base unit of its readings, as PromQL; nothing where they have it.
    pub(super) conversion: &'static str,
}

/// Units that are no base units.
const CONVERSIONS: &[(&str, &str)] = &[
    ("%", " / 100"),
    ("MiB", " * 1048576"),
    ("MHz", " * 1000000"),
    ("mJ", " / 1000"),
    ("ns", " / 1000000000"),
    ("1000 KiB/s", " * 1024000"),
];

/// What NVML has no call for; their names are those of both sets and their unit is a ratio.
const PROFILING: &str = "DCGM_FI_PROF_";

impl Fields {
    /// Reads the tables of `docs/metrics.md`.
    pub(super) fn parse(document: &str) -> Outcome<Self> {
        let bare = |cell: &str| cell.trim().trim_matches('`').to_owned();
        let mut rows = Vec::new();
        for line in document.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<String> = line.trim_matches('|').split('|').map(bare).collect();
            if let [name, _, _, _, unit, _, _, _, later, _] = cells.as_slice() {
                // `name` by `label`
                let name = name.split('`').next().unwrap_or(name).to_owned();
                rows.push((name, unit.clone(), later.clone()));
            }
        }
        if rows.is_empty() {
            return Err("docs/metrics.md: no table of fields is in it".to_owned());
        }
        let units: BTreeMap<&str, &str> =
            rows.iter().map(|(name, unit, _)| (name.as_str(), unit.as_str())).collect();
        let fields = rows.iter().map(|(name, unit, later)| {
            let later_name = if later.is_empty() { name } else { later };
            let later_unit = units.get(later_name.as_str()).copied().unwrap_or(unit);
            let field = Field {
                unit: unit.clone(),
                later_name: later_name.clone(),
                later_unit: later_unit.to_owned(),
            };
            (name.clone(), field)
        });
        Ok(Self(fields.collect()))
    }

    /// What a field is called, by its legacy name. Names that the exporter always serves stand
    /// for themselves; the tests look them up.
    pub(super) fn named<'a>(&'a self, legacy: &'a str, names: Names) -> Outcome<Named<'a>> {
        if !legacy.starts_with("DCGM_FI_") || legacy.starts_with(PROFILING) {
            return Ok(Named { name: legacy, conversion: "" });
        }
        let field =
            self.0.get(legacy).ok_or_else(|| format!("docs/metrics.md has no field {legacy}"))?;
        let (name, unit) = match names {
            Names::Legacy => (legacy, &field.unit),
            Names::Dcgm47 => (field.later_name.as_str(), &field.later_unit),
        };
        let conversion = CONVERSIONS.iter().find(|(known, _)| known == unit);
        Ok(Named { name, conversion: conversion.map_or("", |(_, conversion)| conversion) })
    }
}

#[cfg(test)]
mod tests {
    use super::{Fields, Named, Names};

    const DOCUMENT: &str = "\
| `DCGM_FI_DEV_SM_CLOCK` | Clock. | 100 | gauge | MHz | GPU | `call` |  | `DCGM_FI_DEV_SM_CLOCK_HERTZ` | on |
| `DCGM_FI_DEV_SM_CLOCK_HERTZ` | Clock. | 1 | gauge | hertz | GPU | `call` |  |  |  |
| `DCGM_FI_DEV_THRESHOLD_SRM` | Flag. | 1 | gauge | 0/1 | GPU | `call` |  | `DCGM_FI_DEV_SRAM_EXCEEDED` | on |
";

    #[test]
    fn a_name_comes_with_what_makes_its_base_unit() {
        let fields = Fields::parse(DOCUMENT).unwrap();
        let named = |legacy, names| fields.named(legacy, names).unwrap();
        let legacy = named("DCGM_FI_DEV_SM_CLOCK", Names::Legacy);
        assert_eq!(legacy, Named { name: "DCGM_FI_DEV_SM_CLOCK", conversion: " * 1000000" });
        let later = named("DCGM_FI_DEV_SM_CLOCK", Names::Dcgm47);
        assert_eq!(later, Named { name: "DCGM_FI_DEV_SM_CLOCK_HERTZ", conversion: "" });
        // A new name without a line of its own has the old unit.
        let later = named("DCGM_FI_DEV_THRESHOLD_SRM", Names::Dcgm47);
        assert_eq!(later, Named { name: "DCGM_FI_DEV_SRAM_EXCEEDED", conversion: "" });
        assert!(fields.named("DCGM_FI_DEV_NO_SUCH", Names::Legacy).is_err());
    }
}
