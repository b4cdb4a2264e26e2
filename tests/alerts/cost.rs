//! The queries of `docs/cost.md`: they name what there is, and promtool has seen what comes out.

use crate::files::{SCHEMES, Tests, read};
use crate::{nothing, recorded};

const PAGE: &str = "docs/cost.md";

/// Its queries, without line ends and what else is blank.
fn queries() -> Vec<String> {
    let page = read(PAGE);
    let blocks = page.split("```promql\n").skip(1).filter_map(|rest| rest.split("```").next());
    let queries: Vec<String> = blocks.map(str::to_owned).collect();
    assert!(queries.len() > 10, "{PAGE} has {} queries", queries.len());
    queries
}

fn dense(query: &str) -> String {
    query.split_whitespace().collect()
}

#[test]
fn queries_about_cost_name_series_and_labels_that_there_are() {
    let (_, mut scope) = recorded();
    // A label that pods may have (`--kubernetes-enable-pod-labels`).
    let counter = "nvml_pod_gpu_seconds_total";
    let mut labels = scope.series.labels(counter).unwrap().clone();
    labels.insert("team".to_owned());
    scope.records.insert(counter.to_owned(), labels);
    let problems = queries().into_iter().filter_map(|query| scope.labels(&query).err());
    nothing("docs/cost.md names series and labels that there are", &problems.collect::<Vec<_>>());
}

#[test]
fn queries_about_cost_are_tested_for_what_comes_out() {
    let tested: Vec<String> =
        Tests::of(SCHEMES[0]).answered.iter().map(|query| dense(query)).collect();
    let mut untested = queries();
    // A test may round.
    untested.retain(|query| !tested.iter().any(|tested| tested.contains(&dense(query))));
    nothing("promtool has a test with an answer for each query of docs/cost.md", &untested);
}

#[test]
fn recording_rules_about_cost_are_tested_for_what_comes_out() {
    let file = read("alerts/gpu-cost-rules.yml");
    let names = file.lines().filter_map(|line| line.trim().strip_prefix("- record: "));
    let answered = Tests::of(SCHEMES[0]).answered;
    let mut untested: Vec<String> = names.map(str::to_owned).collect();
    assert!(!untested.is_empty());
    untested.retain(|name| !answered.iter().any(|query| query.contains(name)));
    nothing("promtool has a test with an answer for each recording rule about cost", &untested);
}
