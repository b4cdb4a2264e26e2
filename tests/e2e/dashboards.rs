//! The dashboards in `dashboards/` beside a real Prometheus: every query has an answer on every
//! kind of machine, or a reason why it has none.

#[path = "../dashboards/boards.rs"]
#[expect(dead_code, reason = "the tests of the JSON look at more")]
mod boards;
mod empty;
mod machines;
mod pictures;
mod popular;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use boards::{Board, FOLDERS, Folder, Query, substituted};
use empty::{EMPTY, Empty};
use machines::{Machines, SCENARIOS};

use crate::support::{Prometheus, until};

/// How often a query without an answer is asked: what is not there yet may come with a scrape.
const ROUNDS: usize = 15;

/// The values of variables on one machine.
fn sent(expr: &str, job: &str, instance: &str) -> String {
    substituted(expr, |name| match name {
        "__rate_interval" => "20s".to_owned(),
        "__interval" => "2s".to_owned(),
        "__interval_ms" => "3600000".to_owned(),
        "__range" => "1m".to_owned(),
        "__range_s" => "60".to_owned(),
        "job" => job.to_owned(),
        "instance" => instance.to_owned(),
        "price" => "2.5".to_owned(),
        "cluster" | "host" | "gpu" | "namespace" | "pod" => ".*".to_owned(),
        other => panic!("no value for ${other}: {expr}"),
    })
}

fn board_name(board: &Board) -> &str {
    let file = board.path.rsplit('/').next().unwrap();
    file.strip_suffix(".json").unwrap()
}

/// A query of a dashboard on a machine.
struct Asked {
    about: String,
    sent: String,
    expected: Option<&'static Empty>,
}

fn asked(machines: &Machines) -> Vec<Asked> {
    let mut all = Vec::new();
    for board in FOLDERS.iter().flat_map(Folder::boards) {
        let name = board_name(&board);
        for query in board.queries().into_iter().chain(board.other_queries()) {
            let Query { panel, legend, expr, .. } = &query;
            all.extend(machines.instances().map(|(scenario, instance)| Asked {
                about: format!("{} | {panel} | {legend} | {scenario}", board.path),
                sent: sent(expr, "nvml-exporter", instance),
                expected: EMPTY.iter().find(|one| one.is_about(name, panel, legend, scenario)),
            }));
        }
    }
    all
}

/// Whether there are numbers in an answer; many queries are asked more than once.
fn answers(prometheus: &Prometheus, queries: &[Asked]) -> BTreeMap<String, Result<bool, String>> {
    let queries: BTreeSet<&str> = queries.iter().map(|query| query.sent.as_str()).collect();
    let numbers = |query: &str| {
        let answer = prometheus.asked(query)?;
        Ok(answer.iter().any(|(_, value)| !value.is_nan()))
    };
    queries.into_iter().map(|query| (query.to_owned(), numbers(query))).collect()
}

#[test]
fn every_query_has_an_answer_or_a_reason() {
    let machines = Machines::start(SCENARIOS, &["--metric-names=both"]);
    let prometheus = machines.prometheus();
    let mut open = asked(&machines);
    let mut offences = Vec::new();
    let mut needed = Vec::new();
    for _ in 0..ROUNDS {
        let answers = answers(&prometheus, &open);
        open.retain(|Asked { about, sent, expected }| {
            match (&answers[sent], expected) {
                (Ok(true), None) => return false,
                // What a query falls back to is there until there are enough scrapes for a rate.
                (Ok(false), None) | (Ok(true), Some(_)) => return true,
                (Ok(false), Some(empty)) => needed.push(*empty),
                (Err(problem), _) => offences.push(format!("{about}: {problem}")),
            }
            false
        });
        if open.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_secs(2));
    }
    offences.extend(open.iter().map(|Asked { about, expected, .. }| match expected {
        Some(empty) => format!("{about}: not so: {empty:?}"),
        None => format!("{about}: nothing"),
    }));
    let unused =
        EMPTY.iter().filter(|empty| !needed.iter().any(|used| std::ptr::eq(*used, *empty)));
    offences.extend(unused.map(|empty| format!("not needed: {empty:?}")));
    assert!(offences.is_empty(), "{}", offences.join("\n"));
    sums_count_each_board_once(&machines, &prometheus);
}

/// Namespaces and pods in the answers of the dashboard about workloads, by panel.
fn holders(prometheus: &Prometheus, job: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::new();
    for board in FOLDERS[0].boards().iter().filter(|board| board_name(board) == "workloads") {
        // Other variables are about the exporter itself.
        let mut variables = board.other_queries();
        variables.retain(|query| ["namespace", "pod"].contains(&query.panel.as_str()));
        for query in board.queries().into_iter().chain(variables) {
            let answer = prometheus.asked(&sent(&query.expr, job, ".+")).unwrap();
            let labels = answer.iter().map(|(labels, _)| {
                ["namespace", "pod", "owner_name"].map(|name| labels[name].to_string()).join(" ")
            });
            found.insert(format!("{} {}", query.panel, query.legend), labels.collect());
        }
    }
    found
}

/// How many series each panel's queries have.
fn sizes(prometheus: &Prometheus, job: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for board in FOLDERS[0].boards() {
        for query in board.queries() {
            let answer = prometheus.asked(&sent(&query.expr, job, ".+")).unwrap();
            let name = format!("{} {} {}", board.path, query.panel, query.legend);
            found.insert(name, answer.len());
        }
    }
    found
}

/// Whether Prometheus honours the exporter's labels or not, and whatever pod the exporter is.
#[test]
fn panels_are_the_same_however_labels_are_honoured() {
    let machines = Machines::start(&["dgx-h100"], &[]);
    let prometheus = machines.prometheus();
    let mut other = Vec::new();
    // A scrape may come between two questions.
    for _ in 0..ROUNDS {
        other.clear();
        let plain = holders(&prometheus, "nvml-exporter");
        assert!(plain["Pods GPUs"].iter().any(|pod| pod.contains("\"train-0\"")), "{plain:?}");
        assert!(plain["Owners GPUs"].iter().any(|name| name.contains("\"train\"")), "{plain:?}");
        let series = sizes(&prometheus, "nvml-exporter");
        for job in ["honoured", "exported"] {
            let found = holders(&prometheus, job).into_iter();
            let found = found.filter(|(panel, found)| plain[panel] != *found);
            other.extend(found.map(|(panel, found)| format!("{job}: {panel}: {found:?}")));
            let found = sizes(&prometheus, job).into_iter();
            let found = found.filter(|(panel, found)| series[panel] != *found);
            other.extend(found.map(|(panel, found)| format!("{job}: {panel}: {found} series")));
        }
        if other.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_secs(2));
    }
    panic!("other answers: {other:#?}");
}

/// Boards, instances and sharers add up: nothing is counted twice.
fn sums_count_each_board_once(machines: &Machines, prometheus: &Prometheus) {
    let boards = FOLDERS[0].boards();
    let ask = |board: &str, panel: &str, instance: &str| {
        let board = boards.iter().find(|one| board_name(one) == board).unwrap();
        let queries = board.queries();
        let query = queries.iter().find(|query| query.panel == panel).unwrap();
        prometheus.number(&sent(&query.expr, "nvml-exporter", instance)).unwrap()
    };
    for (scenario, instance) in machines.instances() {
        let page = machines.page(scenario);
        let gpus = page.samples("nvml_device_info").count() as f64;
        assert!((ask("overview", "GPUs", instance) - gpus).abs() < 0.1, "{scenario}");
        let limits = page.samples("DCGM_FI_DEV_ENFORCED_POWER_LIMIT");
        let highest: BTreeMap<&str, f64> =
            limits.map(|sample| (sample.label("UUID").unwrap(), sample.value)).collect();
        let power = ask("overview", "Power", instance);
        assert!(power <= highest.values().sum::<f64>() * 1.05, "{scenario}: {power} W");
        // Held boards are no more than there are, and parts of boards are parts.
        let held = ask("workloads", "GPUs held", instance);
        assert!(held > 0.0 && held <= gpus + 1e-9, "{scenario}: {held} of {gpus}");
        let whole = held.fract() < 1e-6 || held.fract() > 1.0 - 1e-6;
        let split = page.samples("nvml_mig_instance_info").next().is_some();
        assert_eq!(whole, !split, "{scenario}: {held}");
    }
}

/// What is broken is shown where it is looked for.
#[test]
fn a_lost_gpu_and_a_critical_xid_are_seen_in_the_first_row() {
    let machines = Machines::start(&["dgx-h100"], &[]);
    let prometheus = machines.prometheus();
    let ask = |board: &str, panel: &str| {
        let boards = FOLDERS[0].boards();
        let board = boards.iter().find(|one| board_name(one) == board).unwrap();
        let query = board.queries().into_iter().find(|query| query.panel == panel).unwrap();
        let sent = sent(&query.expr, "nvml-exporter", machines.instance("dgx-h100"));
        prometheus.asked(&sent).unwrap()
    };
    let stat = |panel: &str| ask("overview", panel)[0].1;
    for panel in ["GPUs down", "Critical XIDs"] {
        assert!(stat(panel).abs() < 0.5, "{panel}");
    }
    machines.control("dgx-h100", &["gpu 5 xid 79", "gpu 5 lost"]);
    for panel in ["GPUs down", "Critical XIDs"] {
        until(panel, || (stat(panel) > 0.5).then_some(()), || format!("{}", stat(panel)));
    }
    let down = ask("health", "Why GPUs are down");
    assert_eq!(down.len(), 1, "{down:?}");
    assert_eq!((&down[0].0["gpu"], &down[0].0["reason"]), (&"5".into(), &"lost".into()));
    let xids = ask("health", "XIDs by GPU and code");
    let fatal = xids.iter().find(|(labels, _)| labels["xid"] == "79").unwrap();
    assert_eq!(fatal.0["severity"], "critical");
    assert!(["name", "class", "action"].iter().all(|label| fatal.0[*label].is_string()));
}
