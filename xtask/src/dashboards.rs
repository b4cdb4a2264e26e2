//! `dashboards`: Grafana's dashboards, written from the definitions beside this file.
//!
//! DCGM 4.7 renamed fields and changed the units of some, so each dashboard exists once for each
//! set of names.

mod board;
mod detail;
mod exporter;
mod health;
mod links;
mod looks;
mod mig;
mod names;
mod overview;
mod panel;
mod pods;
mod query;
mod spent;
mod table;
#[cfg(test)]
mod tests;
mod variable;
mod workload;

use std::fs;
use std::path::Path;

use crate::alerts::fields::{Fields, Names};
use crate::shell::{Outcome, root};
use board::Board;
use query::Query;

/// Every set of names, and the folder of its dashboards.
const SCHEMES: &[(Names, &str)] = &[(Names::Legacy, ""), (Names::Dcgm47, "dcgm47/")];

/// The dashboards, in the order in which people come to them.
const BOARDS: &[fn(&Query<'static>) -> Board] =
    &[overview::board, detail::board, mig::board, workload::board, health::board, exporter::board];

const USAGE: &str = "\
usage: cargo xtask dashboards [--check]
  --check   write nothing; fail if a file in dashboards/ is not what would be written";

pub(crate) fn run(arguments: &[String]) -> Outcome {
    let check = match arguments {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => return Err(USAGE.to_owned()),
    };
    let folder = root().join("dashboards");
    for (path, text) in files()? {
        let path = folder.join(path);
        if check { current(&path, &text)? } else { write(&path, &text)? }
    }
    Ok(())
}

/// Every file, with its path below `dashboards/`.
fn files() -> Outcome<Vec<(String, String)>> {
    let path = root().join("docs/metrics.md");
    let document =
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    // Names in queries are read from it for as long as the program runs.
    let fields: &'static Fields = Box::leak(Box::new(Fields::parse(&document)?));
    let mut files = Vec::new();
    for (names, folder) in SCHEMES {
        let query = Query::new(fields, *names);
        for board in BOARDS {
            let board = board(&query);
            let json = serde_json::to_string_pretty(&board.json(&query))
                .map_err(|error| format!("{}: {error}", board.name))?;
            files.push((format!("{folder}{}.json", board.name), json + "\n"));
        }
        query.check()?;
    }
    Ok(files)
}

fn write(path: &Path, text: &str) -> Outcome {
    let problem = |error| format!("{}: {error}", path.display());
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(problem)?;
    fs::write(path, text).map_err(problem)?;
    println!("{}", path.display());
    Ok(())
}

fn current(path: &Path, text: &str) -> Outcome {
    let found = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if found == text {
        return Ok(());
    }
    Err(format!("{} is not current: cargo xtask dashboards writes it anew", path.display()))
}
