//! dcgm-exporter's configuration file (`--config-file`), versions 1 and 2.
//!
//! It is strict, as there: unknown keys, keys given twice and further documents are mistakes. What
//! can be had is taken over: the wanted fields, the time between two passes, the number of scrapes
//! at a time. The rest concerns DCGM, and is answered with a warning.
//!
//! dcgm-exporter can read groups of fields at different times. Here all are read at once, at the
//! shortest of the times: nothing is staler than was asked for.

mod file;
mod schema;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::DeserializeOwned;

use self::file::{File, Group, Keep, Place, typed};
use self::schema::{Header, Metrics, V1, V2};
use super::duration::{self, Nanoseconds, parse_go};
use super::findings::Findings;
use super::settings::InlineRow;
use super::typed::Typed;

/// What the file says, where no flag and no variable says otherwise.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FileSettings {
    /// Where the wanted rows are listed.
    pub(super) counters: Option<FileCounters>,
    /// The time between two passes.
    pub(super) interval: FileInterval,
    /// Scrapes answered at a time.
    pub(super) max_concurrent_scrapes: Option<Typed>,
}

/// Where the wanted rows are listed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileCounters {
    /// In a counters file.
    File(Typed),
    /// Here.
    Inline(Vec<InlineRow>),
}

/// The times between two passes that the file asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FileInterval {
    /// For fields that are in no group.
    pub(super) base: Option<(Duration, Typed)>,
    /// For the fields of each group.
    pub(super) groups: Vec<(Duration, Typed)>,
}

/// Reads the file's text. Mistakes of form end the reading; all others are gathered.
pub(super) fn read(path: &str, text: &str, found: &mut Findings) -> FileSettings {
    match parse(path, text) {
        Ok(file) => understood(path, file, found),
        Err((at, problem)) => {
            found.refuse(at, problem);
            FileSettings::default()
        }
    }
}

type Mistake = (String, String);

fn parse(path: &str, text: &str) -> Result<File, Mistake> {
    const ALLOWED: &str = "allowed: version: 1, version: 2";
    let header: Header = deserialize(path, text)?;
    let Some(version) = header.version else {
        return Err((path.to_owned(), format!("names no version; {ALLOWED}")));
    };
    match version.value.as_str() {
        "1" => Ok(File::from_v1(path, deserialize::<V1>(path, text)?)),
        "2" => Ok(File::from_v2(path, deserialize::<V2>(path, text)?)),
        _ => {
            let version = typed(path, "version", &version);
            Err((version.to_string(), format!("is unknown; {ALLOWED}")))
        }
    }
}

fn deserialize<T: DeserializeOwned>(path: &str, text: &str) -> Result<T, Mistake> {
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let line = error.location().map_or(1, |location| location.line());
        let text = match error.without_snippet() {
            serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => {
                format!("{key} is there twice")
            }
            serde_saphyr::Error::MultipleDocuments { .. } => {
                "a further document starts; allowed: one".to_owned()
            }
            // The text goes on with the place, and at times over several lines.
            other => {
                let text = other.to_string();
                let line = text.lines().next().unwrap_or_default();
                line.split(" at line ").next().unwrap_or_default().replace('`', "")
            }
        };
        (format!("{path}:{line}"), text)
    })
}

fn understood(path: &str, file: File, found: &mut Findings) -> FileSettings {
    let counters = file.metrics.and_then(|(at, metrics)| check_metrics(path, &at, &metrics, found));
    if let Some(at) = &file.no_collections {
        found.refuse(at.origin(), "is empty; allowed: one collection or more");
    }
    let base = file.interval.and_then(|base| Some((every(&base, found)?, base)));
    let interval = check_groups(base, &file.groups, found);
    if let Some(keep) = &file.keep {
        check_keep(keep, false, found);
    }
    if let Some(detect) = &file.detect {
        found.warn(detect, "GPUs that come and go are always noticed");
    }
    if let Some(interval) = &file.poll_interval {
        check_poll_interval(interval, found);
    }
    FileSettings { counters, interval, max_concurrent_scrapes: file.max_concurrent_scrapes }
}

fn check_metrics(
    path: &str,
    at: &Place,
    metrics: &Metrics,
    found: &mut Findings,
) -> Option<FileCounters> {
    if let Some(enabled) = metrics.of_exporter.as_ref().filter(|enabled| enabled.value) {
        let why = "the exporter's own metrics are always served; there are no go_* metrics";
        found.warn(typed(path, "metrics.enableExporterMetrics", enabled), why);
    }
    let file = metrics.file.as_ref().filter(|file| !file.value.trim().is_empty());
    let fields = metrics.fields.as_ref().filter(|fields| !fields.is_empty());
    match (file, fields) {
        (Some(file), None) => {
            let mut file = typed(path, "metrics.file", file);
            file.text = file.text.trim().to_owned();
            Some(FileCounters::File(file))
        }
        (None, Some(fields)) => {
            let mut rows = Vec::new();
            let mut first: BTreeMap<String, u64> = BTreeMap::new();
            for (index, field) in fields.iter().enumerate() {
                let key = format!("metrics.fields[{index}]");
                let at = Place::new(path, field.referenced, key);
                let line = at.line;
                let row = InlineRow {
                    name: field.value.name.trim().to_owned(),
                    kind: field.value.prometheus_type.trim().to_owned(),
                    help: field.value.help.trim().to_owned(),
                    at: format!("{path}:{line}"),
                };
                check_row(&row, &at, found);
                if let Some(line) = first.insert(row.name.clone(), line) {
                    let name = &row.name;
                    found.refuse(
                        at.origin(),
                        format!("{name} is there twice, first in line {line}"),
                    );
                }
                rows.push(row);
            }
            Some(FileCounters::Inline(rows))
        }
        (Some(_), Some(_)) => {
            found.refuse(at.origin(), "has both file and fields; allowed: one of them");
            None
        }
        (None, None) => {
            if metrics.of_exporter.is_none() {
                found.refuse(at.origin(), "is empty; allowed: file, fields, enableExporterMetrics");
            }
            None
        }
    }
}

fn check_row(row: &InlineRow, at: &Place, found: &mut Findings) {
    let columns = [("name", &row.name), ("prometheusType", &row.kind), ("help", &row.help)];
    for (key, text) in columns {
        if text.is_empty() {
            found.refuse(at.origin(), format!("has no {key}; allowed: name, prometheusType, help"));
        }
    }
}

fn check_groups(
    mut base: Option<(Duration, Typed)>,
    groups: &[Group],
    found: &mut Findings,
) -> FileInterval {
    let mut names: BTreeMap<&str, u64> = BTreeMap::new();
    let mut of_groups = Vec::new();
    let mut everything: Option<&Group> = None;
    for group in groups {
        check_group(group, &mut names, found);
        let Some(typed) = &group.every else { continue };
        let Some(length) = every(typed, found) else { continue };
        // Version 2 has its base in the collection of everything.
        if group.keys.0 == "every" && group.fields == ["*"] {
            if let Some(first) = everything.replace(group) {
                let name = first.name.trim();
                found.refuse(group.at.origin(), format!("is of all fields, as {name} is"));
            }
            base = Some((length, typed.clone()));
        } else {
            of_groups.push((length, typed.clone()));
        }
    }
    FileInterval { base, groups: of_groups }
}

fn check_group<'a>(group: &'a Group, names: &mut BTreeMap<&'a str, u64>, found: &mut Findings) {
    let at = group.at.origin();
    let name = group.name.trim();
    if name.is_empty() {
        found.refuse(&at, "has no name");
    } else if let Some(line) = names.insert(name, group.at.line) {
        found.refuse(&at, format!("{name} is there twice, first in line {line}"));
    }
    let (every, fields) = group.keys;
    if group.every.is_none() {
        found.refuse(&at, format!("has no {every}"));
    }
    if group.fields.is_empty() || group.fields.iter().any(|field| field.trim().is_empty()) {
        found.refuse(&at, format!("has an empty {fields}; allowed: names of fields"));
    }
    if let Some(keep) = &group.keep {
        check_keep(keep, true, found);
    }
}

/// A time between two passes: more than 0, and of whole milliseconds.
fn every(typed: &Typed, found: &mut Findings) -> Option<Duration> {
    let length = parse_go(typed.text.trim())
        .and_then(Nanoseconds::to_duration)
        .filter(|length| !length.is_zero() && length.subsec_nanos() % 1_000_000 == 0);
    if length.is_none() {
        let allowed = duration::ALLOWED;
        found.refuse(typed, format!("is not a time of whole milliseconds; allowed: {allowed}"));
    }
    length
}

fn check_poll_interval(typed: &Typed, found: &mut Findings) {
    let length = parse_go(typed.text.trim()).and_then(Nanoseconds::to_duration);
    if typed.text.trim().is_empty() {
        return;
    }
    if length.is_some_and(|length| !length.is_zero()) {
        found.warn(typed, "GPUs that come and go are noticed at each reading");
    } else {
        found.refuse(typed, format!("is not more than 0; allowed: {}", duration::ALLOWED));
    }
}

fn check_keep(keep: &Keep, of_group: bool, found: &mut Findings) {
    let mistakes = found.mistakes.len();
    let age = keep.age.as_ref().map(|age| {
        let length = parse_go(age.text.trim()).and_then(Nanoseconds::to_duration);
        length.unwrap_or_else(|| {
            found.refuse(age, format!("is not 0 or more; allowed: {}", duration::ALLOWED));
            Duration::ZERO
        })
    });
    let samples = keep.samples.as_ref().map(|samples| {
        let count = samples.text.parse().ok().filter(|count| i32::try_from(*count).is_ok());
        count.unwrap_or_else(|| {
            found.refuse(samples, format!("is not a count; allowed: 0 to {}", i32::MAX));
            0_u32
        })
    });
    if mistakes < found.mistakes.len() {
        return;
    }
    if of_group && age == Some(Duration::ZERO) && samples == Some(0) {
        found.refuse(keep.at.origin(), "keeps nothing: both are 0; allowed: one of them");
    } else {
        found.warn(keep.at.origin(), "there is no DCGM that keeps samples");
    }
}
