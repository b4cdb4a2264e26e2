//! The catalogue as people read it: `metrics.csv` and `docs/metrics.md`, both generated.

use std::fmt::Write as _;

use super::call::{FieldValueRead, Scope};
use super::field::{Entity, Field, Kind, Read};
use super::gpm::GpmMetric;
use super::names::{resolve, successor};
use super::selection::MetricNames;
use super::{TABLES, fields};

/// How both files are made anew; a test compares them with the catalogue.
const REGENERATE: &str = "UPDATE_EXPECT=1 cargo test -p nvml-exporter --lib catalogue";

impl Kind {
    /// The type as a counters file and the exposition spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Untyped => "untyped",
            Self::Label => "label",
        }
    }
}

/// A line of a counters file. A help text with a comma or a quote stands in quotes.
#[must_use]
pub fn counters_line(name: &str, kind: Kind, help: &str) -> String {
    let kind = kind.as_str();
    if help.contains([',', '"', '\n', '\r']) {
        format!("{name}, {kind},\"{}\"", help.replace('"', "\"\""))
    } else {
        format!("{name}, {kind}, {help}")
    }
}

/// Our own counters file: every row that is served, those that are off behind a `#`.
#[must_use]
pub fn metrics_csv() -> String {
    let mut text = format!(
        "# What this exporter serves, a metric a line: name, Prometheus type, help text.\n\
         # A # as the first character of a line turns the metric off. A help text with a comma\n\
         # is quoted, with no blank before the quote. The type `label` makes the value a label of\n\
         # all other metrics. dcgm-exporter's counters files have the same format and work as well.\n\
         # docs/metrics.md tells units, sources and other names.\n\
         #\n\
         # Generated from src/catalogue: {REGENERATE}\n"
    );
    for (title, rows) in TABLES.iter().filter(|(_, rows)| rows.iter().any(is_served)) {
        let _ = write!(text, "\n# {title}\n");
        for row in families(rows).filter(|row| means_itself(row)) {
            let off = if row.enabled { "" } else { "# " };
            let _ = writeln!(text, "{off}{}", counters_line(row.name, row.kind, row.help));
        }
    }
    text
}

/// The reference of all metrics.
#[must_use]
pub fn metrics_md() -> String {
    let mut text = format!(
        "<!-- Generated from src/catalogue: {REGENERATE} -->\n\
         # Metrics\n\n\
         Every field that a counters file may list. `metrics.csv` turns on those marked *on*. An\n\
         older or other spelling means the same row, and the metric is then called as spelled.\n\
         `--metric-names dcgm47` serves the name in the column *DCGM 4.7*; where that has a line of\n\
         its own, the unit differs.\n\n\
         *Per*: `node` values repeat on every row; `GPU` values repeat on each MIG instance of the\n\
         GPU, except those of `nvml_` metrics; `device` values are the MIG instance's own; `link`\n\
         metrics have a series for each NVLink. Field values are read with\n\
         `nvmlDeviceGetFieldValues`; ids 251 to 273 are in the numbering of drivers before 580.82.\n"
    );
    for (title, rows) in TABLES.iter().filter(|(_, rows)| rows.iter().any(is_served)) {
        let _ = write!(
            text,
            "\n## {title}\n\n\
             | Name | Meaning | Id | Type | Unit | Per | Source | Other names | DCGM 4.7 | Default |\n\
             |---|---|---|---|---|---|---|---|---|---|\n"
        );
        for row in families(rows) {
            text.push_str(&table_line(row));
        }
    }
    text.push_str(
        "\n## Known names without a value\n\n\
         These do not stop the start; the log names them once.\n",
    );
    unserved(&mut text);
    text
}

fn table_line(row: &'static Field) -> String {
    let id = if row.id == 0 { String::new() } else { row.id.to_string() };
    let names: Vec<_> = row.aliases.iter().map(|name| format!("`{name}`")).collect();
    let later = successor(row).map(|(name, _)| format!("`{name}`")).unwrap_or_default();
    let on = if row.enabled { "on" } else { "" };
    format!(
        "| `{}`{} | {} | {id} | {} | {} | {} | {} | {} | {later} | {on} |\n",
        row.name,
        row.label.map(|(label, _)| format!(" by `{label}`")).unwrap_or_default(),
        row.help,
        row.kind.as_str(),
        row.unit,
        per(row.entity),
        source(row),
        names.join(" "),
    )
}

/// The first row of each family.
fn families(rows: &'static [Field]) -> impl Iterator<Item = &'static Field> {
    let repeats = |at: usize| {
        at > 0 && rows.get(at - 1).map(|row| row.name) == rows.get(at).map(|row| row.name)
    };
    rows.iter().enumerate().filter(move |(at, _)| !repeats(*at)).map(|(_, row)| row)
}

/// Whether the name selects the row without `--metric-names`; DCGM 4.6 uses some 4.7 names for
/// other fields.
fn means_itself(row: &Field) -> bool {
    resolve(row.name, MetricNames::Legacy).is_some_and(|meaning| meaning.later.is_none())
}

const fn is_served(row: &Field) -> bool {
    !matches!(row.read, Read::Unavailable(_))
}

const fn per(entity: Entity) -> &'static str {
    match entity {
        Entity::Node => "node",
        Entity::Gpu => "GPU",
        Entity::Instance => "device",
        Entity::Link => "link",
    }
}

fn unserved(text: &mut String) {
    for (title, rows) in TABLES {
        let Some(Read::Unavailable(reason)) = rows.first().map(|row| row.read) else { continue };
        let subject = title.trim_start_matches("Not served: ");
        let _ = write!(text, "\n### {subject}\n\nReason: {reason}.\n\n");
        for row in *rows {
            let others: Vec<_> = row.aliases.iter().map(|name| format!("`{name}`")).collect();
            let others = if others.is_empty() {
                String::new()
            } else {
                format!(", also {}", others.join(", "))
            };
            let _ = writeln!(text, "- `{}` ({}){others}", row.name, row.id);
        }
    }
}

/// Where the family is read; a family of several rows names each.
fn source(row: &Field) -> String {
    if row.label.is_none() {
        return read_source(row.read);
    }
    let sources: Vec<_> = fields()
        .filter(|other| other.name == row.name)
        .map(|other| (other.label.map_or("", |(_, value)| value), read_source(other.read)))
        .collect();
    match sources.as_slice() {
        [(_, first), rest @ ..] if rest.iter().all(|(_, other)| other == first) => first.clone(),
        all => all
            .iter()
            .map(|(value, source)| format!("{value}: {source}"))
            .collect::<Vec<_>>()
            .join("; "),
    }
}

fn read_source(read: Read) -> String {
    match read {
        Read::Call(call, _) => format!("`{}`{}", call.function(), arguments(&format!("{call:?}"))),
        Read::FieldValue(FieldValueRead { id, scope, .. }, _) => {
            format!("field value {id}{}", of(scope))
        }
        Read::Rate(rate) => {
            let ids: Vec<_> = rate.counters().map(|counter| counter.id.to_string()).collect();
            format!("growth of field value {}{}", ids.join(" and "), of(rate.scope))
        }
        Read::Gpm(GpmMetric::Id(id), _) => format!("`nvmlGpmMetricsGet` ({id})"),
        Read::Gpm(each, _) => {
            let first = each.of_link(0).unwrap_or_default();
            format!("`nvmlGpmMetricsGet` ({first} and on)")
        }
        Read::Fact(fact) => format!("`{}`, read once", fact.function()),
        Read::LastXid => "`nvmlEventSetWait_v2`".into(),
        Read::History(history) if history.is_clocks() => {
            "`nvmlDeviceGetCurrentClocksEventReasons`, counted".into()
        }
        Read::History(_) => "`nvmlEventSetWait_v2` and the kernel log".into(),
        Read::Health => "judged from many".into(),
        Read::Peers => "`nvmlDeviceGetP2PStatus`".into(),
        Read::Unavailable(_) => String::new(),
    }
}

fn of(scope: Scope) -> String {
    match scope {
        Scope::Device => String::new(),
        Scope::AllLinks => " over all links".into(),
        Scope::Link(link) => format!(" of link {link}"),
        Scope::EachLink => " of each link".into(),
    }
}

/// ` (Sm)` of `ClockInfo(Sm)`.
fn arguments(call: &str) -> String {
    call.split_once('(').map(|(_, rest)| format!(" ({rest}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;

    #[test]
    fn metrics_csv_is_what_the_catalogue_says() {
        expect_file!["../../metrics.csv"].assert_eq(&metrics_csv());
    }

    #[test]
    fn metrics_md_is_what_the_catalogue_says() {
        expect_file!["../../docs/metrics.md"].assert_eq(&metrics_md());
    }
}
