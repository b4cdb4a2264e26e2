//! Tables: a row for each set of labels, as the panel's transformations have it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::answers::{Answers, list, text};
use super::numbers::{level, mapped, shown};
use super::svg::{Area, Drawing, INK, Style, width};

const LINE: f64 = 20.0;
const SIZE: f64 = 11.0;

/// A cell: what is written, its colour, and what rows are sorted by.
struct Cell {
    words: String,
    colour: &'static str,
    value: Option<f64>,
}

/// A column's name in the data, and its title.
struct Column {
    name: String,
    title: String,
}

fn columns(panel: &Value) -> Vec<Column> {
    let organize = list(&panel["transformations"]).iter().find(|one| one["id"] == "organize");
    let Some(options) = organize.map(|one| &one["options"]) else { return Vec::new() };
    let mut columns: Vec<(u64, Column)> = options["renameByName"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| options["excludeByName"][name.as_str()] != true)
        .map(|(name, title)| {
            let at = options["indexByName"][name].as_u64().unwrap_or(u64::MAX);
            (at, Column { name: name.clone(), title: text(title).to_owned() })
        })
        .collect();
    columns.sort_by_key(|(at, _)| *at);
    columns.into_iter().map(|(_, column)| column).collect()
}

/// What is set for a column of values.
fn property<'a>(panel: &'a Value, title: &str, id: &str) -> &'a Value {
    let overrides = list(&panel["fieldConfig"]["overrides"]).iter();
    let found = overrides.filter(|one| one["matcher"]["options"] == title);
    let mut properties = found.flat_map(|one| list(&one["properties"]));
    properties.find(|one| one["id"] == id).map_or(&Value::Null, |one| &one["value"])
}

fn cell(panel: &Value, title: &str, value: f64) -> Cell {
    let unit = text(property(panel, title, "unit"));
    let thresholds = property(panel, title, "thresholds");
    let (words, colour) = match mapped(value, property(panel, title, "mappings")) {
        Some((name, colour)) => (name.to_owned(), colour),
        None if thresholds.is_null() => (shown(value, unit, None), INK),
        None => (shown(value, unit, None), level(value, thresholds)),
    };
    Cell { words, colour, value: Some(value) }
}

/// The rows: cells by the name of their column.
fn rows(panel: &Value, answers: &Answers) -> Vec<BTreeMap<String, Cell>> {
    let mut rows: BTreeMap<Vec<(String, String)>, BTreeMap<String, Cell>> = BTreeMap::new();
    let columns = columns(panel);
    for (series, letter) in answers.queries.iter().zip('A'..='Z') {
        let name = if answers.queries.len() == 1 {
            "Value".to_owned()
        } else {
            format!("Value #{letter}")
        };
        let title = columns.iter().find(|column| column.name == name);
        for one in series {
            let Some(value) = one.last() else { continue };
            let key = one.labels.clone().into_iter().collect();
            let row = rows.entry(key).or_insert_with(|| {
                let words = one.labels.iter();
                words
                    .map(|(label, words)| {
                        (label.clone(), Cell { words: words.clone(), colour: INK, value: None })
                    })
                    .collect()
            });
            if let Some(column) = title {
                row.insert(name.clone(), cell(panel, &column.title, value));
            }
        }
    }
    rows.into_values().collect()
}

pub(super) fn table(drawing: &mut Drawing, area: &Area, panel: &Value, answers: &Answers) {
    let mut rows = rows(panel, answers);
    let mut columns = columns(panel);
    // What no row has stays out, as an empty column would only take room.
    columns.retain(|column| {
        rows.iter().any(|row| row.get(&column.name).is_some_and(|cell| !cell.words.is_empty()))
    });
    let sort = &panel["options"]["sortBy"][0];
    if let Some(by) = columns.iter().find(|column| sort["displayName"] == column.title) {
        let key = |row: &BTreeMap<String, Cell>| {
            row.get(&by.name).map_or((f64::MIN, String::new()), |cell| {
                (cell.value.unwrap_or_default(), cell.words.clone())
            })
        };
        rows.sort_by(|one, other| {
            let (one, other) = (key(one), key(other));
            one.0.total_cmp(&other.0).then_with(|| one.1.cmp(&other.1))
        });
        if sort["desc"] == true {
            rows.reverse();
        }
    }
    let widths = widths(area, &columns, &rows);
    let mut x = area.x;
    for (column, width) in columns.iter().zip(&widths) {
        let style = Style::new(SIZE).bold().faint().within(width - 8.0);
        drawing.text((x, area.y + 12.0), &column.title, &style);
        let mut y = area.y + 12.0 + LINE;
        for row in &rows {
            if y > area.bottom() {
                break;
            }
            if let Some(cell) = row.get(&column.name) {
                let style = Style::new(SIZE).coloured(cell.colour).within(width - 8.0);
                drawing.text((x, y), &cell.words, &style);
            }
            y += LINE;
        }
        x += width;
    }
}

/// Each column as wide as its content asks, all together as wide as the panel.
fn widths(area: &Area, columns: &[Column], rows: &[BTreeMap<String, Cell>]) -> Vec<f64> {
    let wanted: Vec<f64> = columns
        .iter()
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(&column.name));
            let widest = cells.map(|cell| width(&cell.words, SIZE));
            widest.fold(width(&column.title, SIZE) * 1.14, f64::max) + 14.0
        })
        .collect();
    let all: f64 = wanted.iter().sum();
    // Long columns give way first.
    let most = if all > area.width { area.width / columns.len() as f64 * 1.6 } else { all };
    let cut: Vec<f64> = wanted.iter().map(|width| width.min(most)).collect();
    let factor = (area.width / cut.iter().sum::<f64>()).min(1.25);
    cut.iter().map(|width| width * factor).collect()
}
