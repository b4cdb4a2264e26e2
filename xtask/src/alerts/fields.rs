//! The names and units of fields under each scheme, as `docs/metrics.md` tells them.

use std::collections::BTreeMap;

use crate::shell::Outcome;

/// A set of metric names, as `--metric-names` chooses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// DCGM's names up to 4.6.
    Legacy,
    /// Those of DCGM 4.7.
    Dcgm47,
}

/// The fields by legacy name.
pub(crate) struct Fields(BTreeMap<String, Field>);

struct Field {
    unit: String,
    later_name: String,
    later_unit: String,
}

impl Fields {
    /// Reads the tables of `docs/metrics.md`.
    pub(crate) fn parse(document: &str) -> Outcome<Self> {
        let bare = |cell: &str| cell.trim().trim_matches('`').to_owned();
        let mut rows = Vec::new();
        for line in document.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<String> = line.trim_matches('|').split('|').map(bare).collect();
            if let [name, _, _, _, unit, _, _, _, later, _] = cells.as_slice() {
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

    /// What a field is called.
    pub(crate) fn name(&self, legacy: &str, names: Names) -> Outcome<&str> {
        let (name, field) = self.known(legacy)?;
        Ok(match names {
            Names::Legacy => name,
            Names::Dcgm47 => &field.later_name,
        })
    }

    /// The unit that a field has.
    pub(crate) fn unit(&self, legacy: &str, names: Names) -> Outcome<&str> {
        let (_, field) = self.known(legacy)?;
        Ok(match names {
            Names::Legacy => &field.unit,
            Names::Dcgm47 => &field.later_unit,
        })
    }

    /// Whether a field has the same unit under all names.
    pub(crate) fn keeps_its_unit(&self, legacy: &str) -> Outcome<bool> {
        self.known(legacy).map(|(_, field)| field.unit == field.later_unit)
    }

    fn known(&self, legacy: &str) -> Outcome<(&str, &Field)> {
        let found = self.0.get_key_value(legacy);
        found
            .map(|(name, field)| (name.as_str(), field))
            .ok_or_else(|| format!("docs/metrics.md has no field {legacy}"))
    }
}

/// How many of a unit a base unit has: what a value is divided by to have it in the base unit.
pub(crate) fn per_base_unit(unit: &str, base: &str) -> Outcome<f64> {
    if unit == base {
        return Ok(1.0);
    }
    match (unit, base) {
        ("%", "ratio") => Ok(100.0),
        ("mJ", "J") => Ok(1000.0),
        ("ns", "s") => Ok(1e9),
        _ => Err(format!("nothing tells how {unit} becomes {base}")),
    }
}
