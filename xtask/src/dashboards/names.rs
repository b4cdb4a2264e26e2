//! What a field is called, and how its readings become base units.
//!
//! Dashboards think in base units. What a reading is multiplied by to get there follows from the
//! unit that `docs/metrics.md` gives, so that one source serves both sets of names.

use crate::alerts::fields::{Fields, Names};
use crate::shell::Outcome;

/// A field under one set of names.
#[derive(Debug, PartialEq)]
pub(super) struct Named<'a> {
    pub(super) name: &'a str,
    /// What makes the base unit of its readings, in a query; nothing where they have it.
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

/// What is in base units, or has none.
const BASE_UNITS: &[&str] = &[
    "0/1",
    "C",
    "Hz",
    "J",
    "P-state",
    "W",
    "action",
    "banks",
    "bytes",
    "bytes/s",
    "count",
    "generation",
    "lanes",
    "pages",
    "ratio",
    "rows",
    "s",
    "state",
];

/// What a field is called, by its legacy name. Names of what the exporter serves beside fields
/// stand for themselves; the tests look them up.
pub(super) fn named<'a>(fields: &'a Fields, legacy: &'a str, names: Names) -> Outcome<Named<'a>> {
    if !legacy.starts_with("DCGM_FI_") {
        return Ok(Named { name: legacy, conversion: "" });
    }
    let (name, unit) = (fields.name(legacy, names)?, fields.unit(legacy, names)?);
    let conversion = CONVERSIONS.iter().find(|(known, _)| *known == unit);
    match conversion {
        Some((_, conversion)) => Ok(Named { name, conversion }),
        None if BASE_UNITS.contains(&unit) => Ok(Named { name, conversion: "" }),
        None => Err(format!("{legacy}: nothing tells how {unit} is shown")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Named, named};
    use crate::alerts::fields::{Fields, Names};

    const DOCUMENT: &str = "\
| `DCGM_FI_DEV_SM_CLOCK` | Clock. | 100 | gauge | MHz | GPU | `call` |  | `DCGM_FI_DEV_SM_CLOCK_HERTZ` | on |
| `DCGM_FI_DEV_SM_CLOCK_HERTZ` | Clock. | 1 | gauge | Hz | GPU | `call` |  |  |  |
| `DCGM_FI_DEV_THRESHOLD_SRM` | Flag. | 1 | gauge | 0/1 | GPU | `call` |  | `DCGM_FI_DEV_SRAM_EXCEEDED` | on |
| `DCGM_FI_DEV_XID_ERRORS` | Code. | 1 | gauge | XID | GPU | `call` |  |  | on |
";

    #[test]
    fn a_name_comes_with_what_makes_its_base_unit() {
        let fields = Fields::parse(DOCUMENT).unwrap();
        let named = |legacy, names| named(&fields, legacy, names);
        for (legacy, names, name, conversion) in [
            ("DCGM_FI_DEV_SM_CLOCK", Names::Legacy, "DCGM_FI_DEV_SM_CLOCK", " * 1000000"),
            ("DCGM_FI_DEV_SM_CLOCK", Names::Dcgm47, "DCGM_FI_DEV_SM_CLOCK_HERTZ", ""),
            // A new name without a line of its own has the old unit.
            ("DCGM_FI_DEV_THRESHOLD_SRM", Names::Dcgm47, "DCGM_FI_DEV_SRAM_EXCEEDED", ""),
        ] {
            assert_eq!(named(legacy, names), Ok(Named { name, conversion }));
        }
        assert!(named("DCGM_FI_DEV_NO_SUCH", Names::Legacy).is_err());
        assert!(named("DCGM_FI_DEV_XID_ERRORS", Names::Legacy).unwrap_err().contains("XID"));
    }
}
