//! Reads a counters file as dcgm-exporter does: which fields are served, under which name and
//! type, with which help text.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::field::{Entity, Field, Kind, Read};
use super::names::{Meaning, nearest, resolve, successor};
use super::records::{Fault, records};
use super::selection::{MetricNames, Row, Selection};

/// What a counters file says, and what is worth a line in the log.
#[derive(Debug, Clone, Default)]
pub struct Parsed {
    /// The rows to serve.
    pub selection: Selection,
    /// What is odd about the file, one line each.
    pub warnings: Vec<String>,
    /// Names that are known but have no value here, by reason.
    pub skipped: Vec<(&'static str, Vec<String>)>,
}

/// A line that cannot be used. All of a file's are found at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct CountersError {
    /// The file, as it is to be named to people.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Nothing at all in the file.
    #[error("the file is empty; it must list one field a line as name, type, help")]
    Empty,
    /// Too few or too many columns.
    #[error("{name:?}: expected 3 columns (name, type, help), found {found}{}", comma_hint(*found))]
    Columns {
        /// The first column.
        name: String,
        /// How many there are.
        found: usize,
    },
    /// A quote inside a column that does not start with one.
    #[error(
        "a quote inside an unquoted column; a quote must follow its comma directly, as in NAME, gauge,\"help\""
    )]
    BareQuote,
    /// Text between a closing quote and the next comma.
    #[error("text after a closing quote; a quote within a quoted column is written twice")]
    AfterQuote,
    /// A quote that is never closed.
    #[error("a quoted column is never closed")]
    OpenQuote,
    /// No field of this name.
    #[error("unknown field {name:?}{}", field_hint(name, *near))]
    UnknownField {
        /// As typed.
        name: String,
        /// What was meant, most likely.
        near: Option<&'static str>,
    },
    /// No such type, or one that needs more than one value.
    #[error(
        "{name:?}: type {found:?} cannot be served; allowed types: gauge, counter, label, untyped{}",
        type_hint(found)
    )]
    Type {
        /// The field.
        name: String,
        /// The type as typed.
        found: String,
    },
}

fn comma_hint(found: usize) -> &'static str {
    if found > 3 {
        "; a help text with a comma must be quoted, as in NAME, gauge,\"one, two\""
    } else {
        ""
    }
}

fn field_hint(name: &str, near: Option<&str>) -> String {
    match near {
        _ if name.starts_with('#') => {
            "; the # of a comment must be the first character of its line".into()
        }
        Some(near) => format!("; did you mean {near}?"),
        None => "; docs/metrics.md lists the fields".into(),
    }
}

fn type_hint(found: &str) -> String {
    let lower = found.to_lowercase();
    ["gauge", "counter", "label", "untyped"]
        .into_iter()
        .find(|known| strsim::damerau_levenshtein(known, &lower) <= 2)
        .map(|known| format!("; did you mean {known}?"))
        .unwrap_or_default()
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Bare => Self::BareQuote,
            Fault::Trailing => Self::AfterQuote,
            Fault::Open => Self::OpenQuote,
        }
    }
}

/// One usable line.
struct Entry {
    line: usize,
    name: String,
    kind: Kind,
    help: String,
    meaning: Meaning,
}

/// Reads a counters file; `file` names it in messages.
pub fn parse(text: &str, file: &str, names: MetricNames) -> Result<Parsed, Vec<CountersError>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let records = records(text);
    let mut errors = Vec::new();
    let mut report =
        |line, problem| errors.push(CountersError { file: file.to_owned(), line, problem });
    let mut entries = Vec::new();
    if text.trim().is_empty() {
        report(1, Problem::Empty);
    }
    for record in &records {
        match record.columns.as_deref() {
            Err(fault) => report(record.line, Problem::from(*fault)),
            Ok([name, kind, help]) => {
                let columns = [name, kind, help].map(|column| column.trim_matches(' '));
                match entry(record.line, columns, names) {
                    Ok(entry) => entries.push(entry),
                    Err(problems) => {
                        for problem in problems {
                            report(record.line, problem);
                        }
                    }
                }
            }
            Ok(columns) => {
                let name = columns
                    .first()
                    .map(|name| name.trim_matches(' ').to_owned())
                    .unwrap_or_default();
                report(record.line, Problem::Columns { name, found: columns.len() });
            }
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut parsed = Parsed::default();
    let entries = without_repeats(entries, file, &mut parsed.warnings);
    let served = without_unserved(entries, &mut parsed.skipped);
    warn_of_double_meanings(&served, file, &mut parsed.warnings);
    parsed.selection = select(served, names);
    if parsed.selection.rows.is_empty() {
        parsed.warnings.push(format!("{file}: none of its lines gives a metric"));
    }
    Ok(parsed)
}

fn entry(
    line: usize,
    [name, kind, help]: [&str; 3],
    names: MetricNames,
) -> Result<Entry, Vec<Problem>> {
    let mut problems = Vec::new();
    let meaning = resolve(name, names);
    if meaning.is_none() {
        problems.push(Problem::UnknownField { name: name.to_owned(), near: nearest(name) });
    }
    let kind = match kind {
        "gauge" => Some(Kind::Gauge),
        "counter" => Some(Kind::Counter),
        "untyped" => Some(Kind::Untyped),
        "label" => Some(Kind::Label),
        other => {
            problems.push(Problem::Type { name: name.to_owned(), found: other.to_owned() });
            None
        }
    };
    match (meaning, kind) {
        (Some(meaning), Some(kind)) => {
            Ok(Entry { line, name: name.to_owned(), kind, help: help.to_owned(), meaning })
        }
        _ => Err(problems),
    }
}

/// Keeps the first line of each name.
fn without_repeats(entries: Vec<Entry>, file: &str, warnings: &mut Vec<String>) -> Vec<Entry> {
    let mut first: HashMap<String, usize> = HashMap::new();
    entries
        .into_iter()
        .filter(|entry| match first.get(&entry.name) {
            None => {
                first.insert(entry.name.clone(), entry.line);
                true
            }
            Some(line) => {
                let Entry { name, line: again, .. } = entry;
                warnings.push(format!(
                    "{file}:{again}: {name} is listed already on line {line}; this line has no effect"
                ));
                false
            }
        })
        .collect()
}

/// Why a label cannot come from a family or from links.
const NOT_ONE_VALUE: &str = "a label needs one value for each device, and these have several";

/// Takes out what has no value here, collected by reason.
fn without_unserved(
    entries: Vec<Entry>,
    skipped: &mut Vec<(&'static str, Vec<String>)>,
) -> Vec<Entry> {
    let mut reasons: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    let served = entries
        .into_iter()
        .filter(|entry| match reason_to_skip(entry) {
            None => true,
            Some(reason) => {
                reasons.entry(reason).or_default().push(entry.name.clone());
                false
            }
        })
        .collect();
    skipped.extend(reasons);
    served
}

fn reason_to_skip(entry: &Entry) -> Option<&'static str> {
    let rows = entry.meaning.rows;
    rows.iter().find_map(|row| match row.read {
        Read::Unavailable(reason) => Some(reason),
        _ if entry.kind != Kind::Label => None,
        _ if rows.len() > 1 || row.entity == Entity::Link => Some(NOT_ONE_VALUE),
        _ => None,
    })
}

fn warn_of_double_meanings(entries: &[Entry], file: &str, warnings: &mut Vec<String>) {
    for Entry { line, name, meaning, .. } in entries {
        if let (Some(later), Some(row)) = (meaning.later, meaning.rows.first()) {
            warnings.push(format!(
                "{file}:{line}: {name} is served as DCGM 4.6 has it, field {} in {}; for DCGM 4.7's field {} in {} use --metric-names dcgm47",
                row.id, row.unit, later.id, later.unit
            ));
        }
    }
}

/// Lays the lines out as rows under the names of the wanted generation.
fn select(entries: Vec<Entry>, names: MetricNames) -> Selection {
    let mut families = Vec::new();
    let mut renamed = Vec::new();
    for entry in entries {
        let new = match (names, entry.meaning.rows) {
            (MetricNames::Dcgm47 | MetricNames::Both, [row]) => {
                successor(row).filter(|(name, _)| *name != entry.name)
            }
            _ => None,
        };
        if let Some((name, field)) = new {
            renamed.push(Row {
                field,
                name: name.into(),
                kind: kind_of_successor(entry.kind, field),
                help: field.help.into(),
            });
        }
        if new.is_none() || names == MetricNames::Both {
            let (name, help): (Arc<str>, Arc<str>) = (entry.name.into(), entry.help.into());
            families.extend(entry.meaning.rows.iter().map(|field| Row {
                field,
                name: Arc::clone(&name),
                kind: entry.kind,
                help: Arc::clone(&help),
            }));
        }
    }
    // A name that is typed stands before one that follows from another line.
    let mut taken: HashSet<Arc<str>> = families.iter().map(|row| Arc::clone(&row.name)).collect();
    families.extend(renamed.into_iter().filter(|row| taken.insert(Arc::clone(&row.name))));
    families.sort_by(|a, b| (&a.name, a.field.label).cmp(&(&b.name, b.field.label)));
    let (labels, rows) = families.into_iter().partition(|row| row.kind == Kind::Label);
    Selection { rows, labels, ..Selection::default() }.with_signs()
}

/// The file types the old field; of the new one we know what its value does.
fn kind_of_successor(typed: Kind, field: &Field) -> Kind {
    match typed {
        Kind::Gauge | Kind::Counter if !field.is_text() => field.kind,
        other => other,
    }
}

/// The selection of our own `metrics.csv`.
#[must_use]
pub fn default_selection(names: MetricNames) -> Selection {
    // A test holds the file to the catalogue, so that it cannot fail here.
    parse(include_str!("../../metrics.csv"), "metrics.csv", names)
        .map(|parsed| parsed.selection)
        .unwrap_or_default()
}
