//! From a name as typed to the rows it means, and the near names for one that means nothing.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::field::{Field, Read};
use super::fields;
use super::selection::MetricNames;

/// All rows by name. A family with fixed labels has several under one name.
static BY_NAME: LazyLock<HashMap<&'static str, Vec<&'static Field>>> = LazyLock::new(|| {
    let mut map: HashMap<_, Vec<_>> = HashMap::new();
    for field in fields() {
        map.entry(field.name).or_default().push(field);
    }
    map
});

/// Rows by further spelling.
static BY_ALIAS: LazyLock<HashMap<&'static str, &'static Field>> = LazyLock::new(|| {
    fields().flat_map(|row| row.spellings().map(move |alias| (alias, row))).collect()
});

/// What a name means.
#[derive(Debug, Clone, Copy)]
pub struct Meaning {
    /// The rows that make up the family; never empty.
    pub rows: &'static [&'static Field],
    /// The row to which DCGM 4.7 gives the name, if the name was taken in its 4.6 meaning.
    pub later: Option<&'static Field>,
}

/// Looks a name up, case-sensitively.
///
/// DCGM 4.6 gave some fields a name that 4.7 gave to another field of another unit. Under legacy
/// names such a name keeps its 4.6 meaning, so that a counters file written for it serves what it
/// always did; otherwise it has the 4.7 meaning.
#[must_use]
pub fn resolve(name: &str, names: MetricNames) -> Option<Meaning> {
    let own = BY_NAME.get(name).map(Vec::as_slice);
    let alias = BY_ALIAS.get(name).map(std::slice::from_ref);
    match names {
        MetricNames::Legacy => {
            let later = alias.and(own).and_then(|rows| rows.first().copied());
            Some(Meaning { rows: alias.or(own)?, later })
        }
        MetricNames::Dcgm47 | MetricNames::Both => {
            Some(Meaning { rows: own.or(alias)?, later: None })
        }
    }
}

/// The rows that serve a row's 4.7 name: rows of their own, or the row itself renamed.
#[must_use]
pub fn successor(field: &'static Field) -> Option<(&'static str, &'static Field)> {
    let name = field.successor?;
    let row = BY_NAME.get(name).and_then(|rows| rows.first().copied()).unwrap_or(field);
    Some((name, row))
}

/// The known name that a wrong one most likely meant.
#[must_use]
pub fn nearest(name: &str) -> Option<&'static str> {
    let upper = name.to_uppercase();
    let candidates = || BY_NAME.keys().chain(BY_ALIAS.keys()).copied();
    // A forgotten prefix, as in `GPU_TEMP`, is many edits away and yet the plainest slip.
    let suffix = format!("_{upper}");
    if let Some(found) = candidates()
        .filter(|known| upper.len() >= 4 && known.to_uppercase().ends_with(&suffix))
        .min_by_key(|known| (rank(known), known.len(), *known))
    {
        return Some(found);
    }
    // A name shares its prefix with all others; a third of what is left may be wrong.
    let distinct = upper.trim_start_matches("DCGM_").trim_start_matches("FI_").chars().count();
    let bound = (distinct / 3).max(1);
    candidates()
        .map(|known| (strsim::damerau_levenshtein(&upper, &known.to_uppercase()), known))
        .filter(|(distance, _)| *distance <= bound)
        .min_by_key(|(distance, known)| (*distance, rank(known), *known))
        .map(|(_, known)| known)
}

/// Of two names as near, one with a value is meant sooner than one without, and a row's own name
/// sooner than another spelling.
fn rank(name: &str) -> (bool, bool) {
    let row = resolve(name, MetricNames::Dcgm47).and_then(|meaning| meaning.rows.first().copied());
    let unserved = row.is_some_and(|row| matches!(row.read, Read::Unavailable(_)));
    (unserved, !BY_NAME.contains_key(name))
}

impl Field {
    /// All further spellings of the row, its 4.7 name included if no row of its own has it.
    pub fn spellings(&'static self) -> impl Iterator<Item = &'static str> {
        let renamed = self.successor.filter(|name| !BY_NAME.contains_key(name));
        self.aliases.iter().copied().chain(renamed)
    }
}
