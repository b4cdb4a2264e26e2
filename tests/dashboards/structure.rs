//! What Grafana and Grafana's dashboard-linter ask of the JSON.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::boards::{Board, FOLDERS, list, text};
use crate::nothing;

/// Panels that Grafana has had since version 10, without plugins.
const KINDS: &[&str] =
    &["bargauge", "row", "stat", "state-timeline", "table", "text", "timeseries"];

/// Units that Grafana knows.
const UNITS: &[&str] = &[
    "Bps",
    "bytes",
    "celsius",
    "cps",
    "dateTimeAsIso",
    "h",
    "hertz",
    "kwatth",
    "none",
    "percentunit",
    "s",
    "short",
    "watt",
];

fn every_board(rule: &str, check: impl Fn(&Board, &mut dyn FnMut(String))) {
    let mut offences = Vec::new();
    for board in FOLDERS.iter().flat_map(crate::boards::Folder::boards) {
        check(&board, &mut |offence| offences.push(format!("{}: {offence}", board.path)));
    }
    nothing(rule, &offences);
}

/// A check of each panel but rows.
fn every_panel(rule: &str, check: impl Fn(&Value) -> Option<String>) {
    every_board(rule, |board, offence| {
        for panel in board.panels().iter().filter(|panel| text(&panel["type"]) != "row") {
            if let Some(problem) = check(panel) {
                offence(format!("{}: {problem}", panel["title"]));
            }
        }
    });
}

#[test]
fn dashboards_can_be_imported_and_provisioned() {
    let mut uids = BTreeSet::new();
    let mut titles = BTreeSet::new();
    for board in FOLDERS.iter().flat_map(crate::boards::Folder::boards) {
        let json = &board.json;
        assert_eq!(json["id"], Value::Null, "{}", board.path);
        assert_eq!(json["schemaVersion"], 39, "{}", board.path);
        assert_eq!(json["editable"], false, "{}", board.path);
        // A file that asks for inputs loads from the page for imports only.
        assert!(json.get("__inputs").is_none() && json.get("__requires").is_none());
        let uid = text(&json["uid"]);
        assert!(!uid.is_empty() && uid.len() <= 40, "{}: {uid}", board.path);
        assert!(uids.insert(uid.to_owned()), "{uid} twice");
        assert!(titles.insert(text(&json["title"]).to_owned()), "{} twice", json["title"]);
        assert!(!text(&json["description"]).is_empty(), "{}", board.path);
    }
}

#[test]
fn both_sets_of_names_have_the_same_dashboards() {
    let outline = |folder: &crate::boards::Folder| -> Vec<String> {
        let boards = folder.boards();
        boards
            .iter()
            .flat_map(|board| board.panels().iter().map(|panel| panel["title"].to_string()))
            .collect()
    };
    assert_eq!(outline(&FOLDERS[0]), outline(&FOLDERS[1]));
}

/// template-datasource-rule, template-job-rule, template-instance-rule and
/// template-on-time-change-reload-rule.
#[test]
fn variables_are_there_and_let_all_through() {
    every_board("variables are those of every dashboard", |board, offence| {
        let names: Vec<&str> = board.variables().iter().map(|one| text(&one["name"])).collect();
        let basic = ["datasource", "cluster", "job", "instance", "host", "gpu"];
        if names[..basic.len()] != basic {
            offence(format!("begin with {names:?}"));
        }
        for variable in board.variables() {
            let name = text(&variable["name"]);
            match text(&variable["type"]) {
                "datasource" => {
                    if variable["query"] != "prometheus" || variable["label"] != "Data source" {
                        offence(format!("{name} chooses {}", variable["query"]));
                    }
                }
                "query" => {
                    // On one dashboard a host is to be chosen.
                    let one = name == "host" && text(&board.json["uid"]).contains("detail");
                    let any = match name {
                        "job" | "instance" => ".+",
                        _ if one => "",
                        _ => ".*",
                    };
                    let all = variable["multi"] == true && variable["includeAll"] == !one;
                    if !all || variable["allValue"] != any {
                        offence(format!("{name} does not let all through"));
                    }
                    if variable["refresh"] != 2 {
                        offence(format!("{name} is not asked again when the time changes"));
                    }
                    if variable["datasource"]["uid"] != "${datasource}" {
                        offence(format!("{name} asks another data source"));
                    }
                }
                "textbox" => {}
                other => offence(format!("{name} is of type {other}")),
            }
        }
    });
}

/// Every variable in a query is one that the dashboard has, or Grafana's own.
#[test]
fn queries_use_variables_that_there_are() {
    let own = ["__rate_interval", "__interval", "__interval_ms", "__range", "__range_s"];
    every_board("queries use variables that there are", |board, offence| {
        let names: Vec<&str> = board.variables().iter().map(|one| text(&one["name"])).collect();
        for query in board.queries().into_iter().chain(board.other_queries()) {
            let unknown = std::cell::RefCell::new(Vec::new());
            crate::boards::substituted(&query.expr, |name| {
                if !names.contains(&name) && !own.contains(&name) {
                    unknown.borrow_mut().push(name.to_owned());
                }
                String::new()
            });
            for name in unknown.into_inner() {
                offence(format!("{}: ${name}", query.panel));
            }
        }
    });
}

/// panel-datasource-rule, panel-no-targets-rule.
#[test]
fn panels_ask_the_chosen_data_source() {
    let chosen = json!({"type": "prometheus", "uid": "${datasource}"});
    every_panel("panels and their queries use the variable datasource", |panel| {
        if text(&panel["type"]) == "text" {
            return None;
        }
        let targets = list(&panel["targets"]);
        let mut ids: Vec<&str> = targets.iter().map(|target| text(&target["refId"])).collect();
        ids.dedup();
        let wrong = panel["datasource"] != chosen
            || targets.iter().any(|target| target["datasource"] != chosen)
            || ids.len() != targets.len();
        (wrong || targets.is_empty()).then(|| format!("{} queries", targets.len()))
    });
}

/// panel-title-description-rule.
#[test]
fn panels_have_titles_and_descriptions() {
    every_panel("panels have titles and descriptions", |panel| {
        let empty = |field: &str| text(&panel[field]).trim().is_empty();
        (empty("title") || empty("description")).then(|| "empty".to_owned())
    });
}

/// panel-units-rule.
#[test]
fn panels_have_units() {
    every_panel("panels have units that Grafana knows", |panel| {
        let kind = text(&panel["type"]);
        if kind == "text" {
            return None;
        }
        let defaults = &panel["fieldConfig"]["defaults"];
        let columns = list(&panel["fieldConfig"]["overrides"]).iter();
        let columns = columns.flat_map(|one| list(&one["properties"]));
        let columns = columns.filter(|one| one["id"] == "unit").map(|one| text(&one["value"]));
        let mut units = vec![text(&defaults["unit"])];
        units.extend(columns);
        let unknown = units.iter().find(|unit| !UNITS.contains(unit));
        let unmapped = kind == "state-timeline" && list(&defaults["mappings"]).is_empty();
        unknown
            .map(|unit| format!("unit {unit}"))
            .or_else(|| unmapped.then(|| "states without names".to_owned()))
    });
}

/// In a table with several queries each must have a column of its own that is named.
#[test]
fn table_columns_are_named() {
    every_panel("columns of tables have titles", |panel| {
        if text(&panel["type"]) != "table" {
            return None;
        }
        let organize =
            list(&panel["transformations"]).iter().find(|one| one["id"] == "organize")?;
        let names = &organize["options"]["renameByName"];
        let targets = list(&panel["targets"]);
        let columns = targets.iter().map(|target| match targets.len() {
            1 => "Value".to_owned(),
            _ => format!("Value #{}", text(&target["refId"])),
        });
        let missing = columns.filter(|column| text(&names[column]).is_empty()).collect::<Vec<_>>();
        let sorted = text(&panel["options"]["sortBy"][0]["displayName"]);
        let titles: Vec<&str> = names.as_object()?.values().map(text).collect();
        let unsorted = (!titles.contains(&sorted)).then(|| format!("sorted by {sorted}"));
        (!missing.is_empty()).then(|| format!("{missing:?}")).or(unsorted)
    });
}

#[test]
fn panels_are_of_kinds_that_grafana_10_to_12_have() {
    every_board("panels are of known kinds", |board, offence| {
        for panel in board.panels().iter().filter(|panel| !KINDS.contains(&text(&panel["type"]))) {
            offence(format!("{}: {}", panel["title"], panel["type"]));
        }
    });
}

#[test]
fn panels_have_ids_titles_and_places_of_their_own() {
    every_board("panels have ids and places of their own", |board, offence| {
        let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
        let mut titles = BTreeSet::new();
        for panel in board.panels() {
            if !ids.insert(panel["id"].as_u64().unwrap()) {
                offence(format!("id {} twice", panel["id"]));
            }
            if text(&panel["type"]) != "row" && !titles.insert(text(&panel["title"])) {
                offence(format!("{} twice", panel["title"]));
            }
            let at = |side: &str| panel["gridPos"][side].as_u64().unwrap();
            let (x, y, w, h) = (at("x"), at("y"), at("w"), at("h"));
            if w == 0 || h == 0 || x + w > 24 {
                offence(format!("{}: {}", panel["title"], panel["gridPos"]));
            }
            for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
                if !cells.insert(cell) {
                    offence(format!("{}: something is at {cell:?} already", panel["title"]));
                }
            }
        }
    });
}

/// What is seen without scrolling: a first row of numbers over the whole width.
#[test]
fn the_first_row_says_whether_something_is_broken() {
    for board in FOLDERS.iter().flat_map(crate::boards::Folder::boards) {
        if !["overview", "health"].iter().any(|name| text(&board.json["uid"]).contains(name)) {
            continue;
        }
        let first: Vec<&Value> = board
            .panels()
            .iter()
            .skip(1)
            .take_while(|panel| text(&panel["type"]) != "row")
            .collect();
        assert!(first.len() >= 6, "{}", board.path);
        for panel in first {
            assert_eq!(panel["type"], "stat", "{}: {}", board.path, panel["title"]);
            assert_eq!(panel["gridPos"]["y"], 1, "{}: {}", board.path, panel["title"]);
            assert_eq!(panel["options"]["colorMode"], "background", "{}", panel["title"]);
        }
    }
}

/// Links by tag lead to the dashboards of the same set of names, and keep what is chosen.
#[test]
fn links_lead_to_dashboards_that_there_are() {
    for folder in &FOLDERS {
        let boards = folder.boards();
        let uids: Vec<&str> = boards.iter().map(|board| text(&board.json["uid"])).collect();
        for board in &boards {
            for link in list(&board.json["links"]) {
                let tag = &link["tags"][0];
                for other in &boards {
                    let tags = list(&other.json["tags"]);
                    assert!(tags.contains(tag), "{}: {tag}", other.path);
                }
                assert_eq!((&link["includeVars"], &link["keepTime"]), (&json!(true), &json!(true)));
            }
            let json = board.json.to_string();
            for link in json.split("\"/d/").skip(1) {
                let uid = link.split('?').next().unwrap();
                assert!(uids.contains(&uid), "{}: a link to {uid}", board.path);
                assert!(link.contains("${__url_time_range}"), "{}: {link:.200}", board.path);
            }
        }
        let links = |folder: &str| {
            let tagged = |board: &Board| board.json["links"][0]["tags"][0] == folder;
            boards.iter().filter(|board| tagged(board)).count()
        };
        let tag = if folder.names == "legacy" { "nvml-exporter" } else { "nvml-exporter-dcgm47" };
        assert_eq!(links(tag), boards.len());
    }
}
