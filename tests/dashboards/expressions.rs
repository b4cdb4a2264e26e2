//! What queries ask for: expressions that parse, series and labels that there are, counters and
//! gauges each in its way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, Mutex};

use promql_parser::parser::{self, Expr, VectorSelector};

use crate::boards::{Board, FOLDERS, Folder, Query, substituted};
use crate::files::{Scheme, read};
use crate::labels::Scope;
use crate::nothing;
use crate::series::{Labels, OF_PODS, Series, UNATTRIBUTED};

/// Series that the exporter does not serve, with their labels, and why dashboards ask for them.
const FOREIGN: &[(&str, &[&str], &str)] = &[
    (
        "ALERTS",
        &["alertname", "alertstate", "severity", "hostname", "gpu", "UUID"],
        "Prometheus' own: alerts that fire",
    ),
    ("scrape_duration_seconds", &[], "Prometheus' own: how long a scrape took"),
    ("scrape_samples_scraped", &[], "Prometheus' own: how many samples a page had"),
];

/// Selectors without job and instance: alerts carry what their rule left.
const NO_TARGET: &[&str] = &["ALERTS"];

/// What Prometheus makes of labels that a target has as well, unless it honours them.
const EXPORTED: &[&str] = &["exported_namespace", "exported_pod", "exported_container"];

/// What the exporter adds when told to (`--kubernetes-enable-owner-labels`).
const OWNER: &[&str] = &["owner_kind", "owner_name"];

/// Reading an expression takes its time, and many queries are asked twice.
static READ: LazyLock<Mutex<BTreeMap<String, Arc<Expr>>>> = LazyLock::new(Mutex::default);

/// A query as Prometheus reads it. Variables in matchers stay, to be looked for.
fn expression(query: &Query) -> Result<Arc<Expr>, String> {
    let sent = substituted(&query.expr, |name| match name {
        "__rate_interval" | "__interval" | "__range" => "1m".to_owned(),
        "__range_s" | "__interval_ms" | "price" => "1".to_owned(),
        name => format!("${name}"),
    });
    if let Some(read) = READ.lock().unwrap().get(&sent) {
        return Ok(Arc::clone(read));
    }
    let read = parser::parse(&sent).map_err(|problem| format!("{problem}: {sent}"))?;
    let read = Arc::new(read);
    READ.lock().unwrap().insert(sent, Arc::clone(&read));
    Ok(read)
}

fn scope(folder: &Folder) -> Scope {
    let scheme = if folder.names == "legacy" { Scheme::Legacy } else { Scheme::Dcgm47 };
    let series = Series::served(scheme);
    let mut records: BTreeMap<String, Labels> = BTreeMap::new();
    let owned =
        |labels: &[&str]| labels.iter().map(|label| (*label).to_owned()).collect::<Labels>();
    for (name, labels, _) in FOREIGN {
        records.entry((*name).to_owned()).or_insert_with(|| owned(labels));
    }
    // Before the first XID of an instance no page shows all labels of these.
    for name in ["DCGM_EXP_XID_ERRORS_TOTAL", "nvml_xid_last_timestamp_seconds"] {
        let mut labels = series.labels(name).unwrap().clone();
        labels.extend(owned(&["xid", "GPU_I_ID", "GPU_I_PROFILE"]));
        records.insert(name.to_owned(), labels);
    }
    // The labels of pods have two names, as Prometheus is configured.
    for name in ["DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_USED_BYTES", "nvml_device_pod_info"] {
        if let Some(labels) = series.labels(name) {
            let mut labels = labels.clone();
            labels.extend(owned(EXPORTED).into_iter().chain(owned(OWNER)));
            records.insert(name.to_owned(), labels);
        }
    }
    // A target that is a pod.
    let own = series.labels("nvml_exporter_build_info").unwrap();
    let own = own.iter().cloned().chain(owned(&["namespace", "pod"])).collect();
    records.insert("nvml_exporter_build_info".to_owned(), own);
    Scope { series, records }
}

fn every_query(rule: &str, check: impl Fn(&Folder, &Board, &Query) -> Vec<String>) {
    let mut offences = Vec::new();
    for folder in &FOLDERS {
        for board in folder.boards() {
            for query in board.queries().into_iter().chain(board.other_queries()) {
                let found = check(folder, &board, &query).into_iter();
                offences.extend(found.map(|problem| {
                    format!("{}: {} ({}): {problem}", board.path, query.panel, query.legend)
                }));
            }
        }
    }
    nothing(rule, &offences);
}

/// target-promql-rule, and more: all that is named is there to be had.
#[test]
fn queries_parse_and_name_series_and_labels_that_there_are() {
    let scopes: BTreeMap<&str, Scope> =
        FOLDERS.iter().map(|folder| (folder.names, scope(folder))).collect();
    every_query("queries name series and labels that there are", |folder, _, query| {
        let labels = expression(query).and_then(|expr| scopes[folder.names].of(&expr));
        labels.err().into_iter().collect()
    });
}

/// Foreign series are asked for; one that is not has no place in the list.
#[test]
fn foreign_series_are_asked_for() {
    let json: String = FOLDERS[0].boards().iter().map(|board| board.json.to_string()).collect();
    for (name, _, reason) in FOREIGN {
        assert!(json.contains(name), "{name} ({reason}) is not asked for");
    }
}

/// All selectors in an expression, each with whether a rate is taken of it.
fn selectors<'a>(expr: &'a Expr, rate: bool, found: &mut Vec<(&'a VectorSelector, bool)>) {
    match expr {
        Expr::Aggregate(aggregate) => selectors(&aggregate.expr, rate, found),
        Expr::Binary(binary) => {
            selectors(&binary.lhs, rate, found);
            selectors(&binary.rhs, rate, found);
        }
        Expr::Unary(unary) => selectors(&unary.expr, rate, found),
        Expr::Paren(paren) => selectors(&paren.expr, rate, found),
        Expr::Subquery(subquery) => selectors(&subquery.expr, rate, found),
        Expr::VectorSelector(selector) => found.push((selector, rate)),
        Expr::MatrixSelector(selector) => found.push((&selector.vs, rate)),
        Expr::Call(call) => {
            let rate = rate || ["rate", "irate", "increase"].contains(&call.func.name);
            for argument in &call.args.args {
                selectors(argument, rate, found);
            }
        }
        _ => {}
    }
}

/// The names of a selector.
fn names(selector: &VectorSelector) -> Vec<String> {
    match &selector.name {
        Some(name) => vec![name.clone()],
        None => selector
            .matchers
            .matchers
            .iter()
            .filter(|matcher| matcher.name == "__name__")
            .flat_map(|matcher| matcher.value.split('|').map(str::to_owned))
            .collect(),
    }
}

/// target-job-rule and target-instance-rule, and the same for clusters.
#[test]
fn selectors_ask_for_the_chosen_targets() {
    every_query("selectors have cluster, job and instance", |_, _, query| {
        // Variables narrow what comes after them: the first of them have nothing to go by.
        if ["cluster", "job", "instance"].contains(&query.panel.as_str()) {
            return Vec::new();
        }
        let expr = expression(query).unwrap();
        let mut found = Vec::new();
        selectors(&expr, false, &mut found);
        let lacks = |selector: &VectorSelector| {
            let matchers = &selector.matchers.matchers;
            let wanted = [("cluster", "$cluster"), ("job", "$job"), ("instance", "$instance")];
            wanted.into_iter().find(|(name, value)| {
                !matchers.iter().any(|matcher| matcher.name == *name && matcher.value == *value)
            })
        };
        found
            .into_iter()
            .filter(|(selector, _)| !NO_TARGET.contains(&names(selector)[0].as_str()))
            .filter_map(|(selector, _)| lacks(selector).map(|(name, _)| (selector, name)))
            .map(|(selector, name)| format!("no {name} in {selector}"))
            .collect()
    });
}

/// The series that are counters, by the documents and by what pods use.
fn counters() -> BTreeSet<String> {
    let used = OF_PODS.iter().copied().chain([UNATTRIBUTED]);
    let used = used.filter(|name| name.ends_with("_total")).map(str::to_owned);
    let mut counters: BTreeSet<String> = used.collect();
    for document in ["docs/metrics.md", "docs/own-metrics.md"] {
        for row in read(document).lines().filter(|line| line.starts_with("| `")) {
            if row.split('|').any(|cell| cell.trim() == "counter") {
                let name = row.split('`').nth(1).unwrap();
                counters.insert(name.to_owned());
                let cells: Vec<&str> = row.split('|').collect();
                counters.extend(
                    cells.get(9).and_then(|cell| cell.split('`').nth(1)).map(str::to_owned),
                );
            }
            if row.contains("| histogram |") {
                let name = row.split('`').nth(1).unwrap();
                counters.extend(["_bucket", "_sum", "_count"].map(|end| format!("{name}{end}")));
            }
        }
    }
    assert!(counters.len() > 50);
    counters
}

/// target-counter-agg-rule for names that do not say what they are. Numbers may show what
/// a counter has come to; lines of counters that only grow say nothing.
#[test]
fn counters_are_rated_and_gauges_are_not() {
    let counters = counters();
    let totals = ["stat", "table"];
    every_query("rates are of counters, and lines of counters are rates", |_, _, query| {
        let expr = expression(query).unwrap();
        let mut found = Vec::new();
        selectors(&expr, false, &mut found);
        let named = found
            .into_iter()
            .flat_map(|(selector, rate)| names(selector).into_iter().map(move |name| (name, rate)));
        named
            .filter_map(|(name, rate)| match (counters.contains(&name), rate) {
                (false, true) => Some(format!("{name} is a gauge")),
                (true, false) if !totals.contains(&query.kind.as_str()) => {
                    Some(format!("{name} is a counter"))
                }
                _ => None,
            })
            .collect()
    });
}

/// target-rate-interval-rule: windows that do not follow the panel's resolution miss samples
/// when it is coarse. Stats say in their title or text which time they are about.
#[test]
fn rates_over_time_use_the_rate_interval() {
    every_query("rates drawn over time use $__rate_interval", |_, _, query| {
        let drawn = ["timeseries", "state-timeline"].contains(&query.kind.as_str());
        let rates = ["rate(", "increase("].iter().any(|call| query.expr.contains(call));
        let fits = query.expr.contains("[$__rate_interval]");
        (drawn && rates && !fits).then(|| query.expr.clone()).into_iter().collect()
    });
}

/// A legend must tell two nodes' GPUs apart.
#[test]
fn legends_name_the_host_of_a_gpu() {
    every_query("legends that name a GPU name its host", |_, _, query| {
        let (gpu, host) = (query.legend.contains("{{gpu}}"), query.legend.contains("{{hostname}}"));
        (gpu && !host).then(|| query.legend.clone()).into_iter().collect()
    });
}

/// The values of a label on the recorded pages.
fn seen(label: &str) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for entry in std::fs::read_dir(crate::files::root().join("tests/golden")).unwrap() {
        let page = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let opening = format!("{label}=\"");
        let values = page.split(&opening).skip(1);
        seen.extend(values.filter_map(|rest| rest.split('"').next()).map(str::to_owned));
    }
    seen
}

/// A matcher for what no page has hides nothing, or everything, and nobody is told.
#[test]
fn reasons_and_severities_that_queries_choose_exist() {
    let labels = ["reason", "severity"].map(|label| (label, seen(label)));
    // Those of GPUs and drivers that are down, which pages of healthy machines do not have.
    let own = read("docs/own-metrics.md");
    every_query("matchers name values that there are", |_, _, query| {
        let expr = expression(query).unwrap();
        let mut found = Vec::new();
        selectors(&expr, false, &mut found);
        let matchers = found.iter().flat_map(|(selector, _)| &selector.matchers.matchers);
        let mut unknown = Vec::new();
        for matcher in matchers {
            let known = labels.iter().find(|(label, _)| matcher.name == *label);
            let Some((label, known)) = known else { continue };
            let values = matcher.value.split('|');
            let values = values.filter(|value| !known.contains(*value));
            let values = values.filter(|value| !own.contains(&format!("`{value}`")));
            unknown.extend(values.map(|value| format!("{label} {value}")));
        }
        unknown
    });
}
