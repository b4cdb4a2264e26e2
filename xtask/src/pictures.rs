//! `pictures`: drawings of the dashboards, without Grafana's code.
//!
//! A test records what a real Prometheus answers to every panel's query after a short run of
//! simulated nodes. Here panels are drawn from the committed JSON, at their places on the grid.

mod answers;
mod numbers;
mod series;
mod svg;
mod table;
mod tiles;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::needs::{self, PROMETHEUS};
use crate::shell::{self, Outcome, cargo};
use answers::{Recorded, list, text};
use svg::{Area, Drawing};

/// A column and a line of Grafana's grid, in pixels.
const COLUMN: f64 = 56.0;
const LINE: f64 = 34.0;
/// Between panels.
const GAP: f64 = 6.0;

/// The test that records.
const TEST: &str = "dashboards::pictures::record";
/// Tells it where to.
const FOLDER: &str = "NVML_EXPORTER_PICTURES";

pub(crate) fn run(arguments: &[String]) -> Outcome {
    let again = match arguments {
        [] => false,
        [flag] if flag == "--again" => true,
        _ => return Err("usage: cargo xtask pictures [--again]".to_owned()),
    };
    let recorded = shell::target().join("pictures");
    if !again {
        record(&recorded)?;
    }
    let dashboards = shell::root().join("dashboards");
    let pictures = dashboards.join("pictures");
    fs::create_dir_all(&pictures).map_err(|error| format!("{}: {error}", pictures.display()))?;
    for board in boards(&dashboards)? {
        let name = board.file_name().unwrap_or_default();
        let answers = Recorded::new(read(&recorded.join(name))?);
        let drawing = draw(&read(&board)?, &answers)?;
        let path = pictures.join(name).with_extension("svg");
        fs::write(&path, drawing).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}

fn record(folder: &Path) -> Outcome {
    needs::packages(&[PROMETHEUS])?;
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    shell::run(&mut cargo(&["build", "--workspace"]))?;
    let mut test = cargo(&["test", "--test", "e2e", "--", "--ignored", "--exact", TEST]);
    shell::run(test.env(FOLDER, folder))
}

fn boards(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let problem = |error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(problem)?;
    let paths: Result<Vec<PathBuf>, _> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(problem)?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Outcome<Value> {
    let problem = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let content = fs::read_to_string(path).map_err(|error| problem(&error))?;
    serde_json::from_str(&content).map_err(|error| problem(&error))
}

fn draw(board: &Value, recorded: &Recorded) -> Outcome<String> {
    let panels = list(&board["panels"]);
    let side = |panel: &Value, side: &str| panel["gridPos"][side].as_f64().unwrap_or_default();
    let bottom = panels.iter().map(|panel| side(panel, "y") + side(panel, "h"));
    let height = bottom.fold(0.0, f64::max) * LINE + 44.0;
    let mut drawing = Drawing::new(24.0 * COLUMN + 16.0, height);
    drawing.heading(text(&board["title"]));
    for panel in panels {
        let area = Area {
            x: 8.0 + side(panel, "x") * COLUMN,
            y: 40.0 + side(panel, "y") * LINE,
            width: side(panel, "w") * COLUMN - GAP,
            height: side(panel, "h") * LINE - GAP,
        };
        match text(&panel["type"]) {
            "row" => drawing.row(&area, text(&panel["title"])),
            "text" => {
                let inner = drawing.panel(&area, text(&panel["title"]));
                tiles::note(&mut drawing, &inner, text(&panel["options"]["content"]));
            }
            kind => {
                let inner = drawing.panel(&area, text(&panel["title"]));
                let answers = recorded.of(panel)?;
                if answers.are_empty() {
                    drawing.centred(&inner, "No data");
                    continue;
                }
                match kind {
                    "stat" => tiles::stat(&mut drawing, &inner, panel, &answers),
                    "bargauge" => tiles::bars(&mut drawing, &inner, panel, &answers),
                    "table" => table::table(&mut drawing, &inner, panel, &answers),
                    "state-timeline" => series::states(&mut drawing, &inner, panel, &answers),
                    _ => series::lines(&mut drawing, &inner, panel, &answers),
                }
            }
        }
    }
    Ok(drawing.finish())
}
