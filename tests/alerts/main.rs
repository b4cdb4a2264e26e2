//! The alerts and recording rules in `alerts/`, for both sets of names: promtool takes them and
//! passes their tests, every alert is tested both ways and has its runbook, and all that a rule
//! names is there to be had.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test ends where it fails")]

mod cost;
mod files;
mod labels;
mod series;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use files::{Alert, Rules, SCHEMES, Tests, read, root};
use labels::{Scope, named_labels};
use series::Series;

const SEVERITIES: &[&str] = &["critical", "warning", "info"];
const RUNBOOKS: &str = "https://github.com/nvml-exporter/nvml-exporter/blob/main/docs/runbooks/";

fn nothing(rule: &str, offences: &[String]) {
    assert!(offences.is_empty(), "{rule}:\n  {}", offences.join("\n  "));
}

/// Runs promtool over files of `alerts/`.
fn promtool(command: &[&str], files: &[String]) {
    let result = Command::new("promtool").args(command).args(files).current_dir(root()).output();
    let output = result.unwrap_or_else(|error| {
        panic!("promtool: {error}: `cargo xtask test` installs it, as do Debian's prometheus")
    });
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "promtool {}:\n{said}", command.join(" "));
}

#[test]
fn promtool_takes_the_rules() {
    for scheme in SCHEMES {
        promtool(&["check", "rules"], &scheme.rule_files());
    }
}

#[test]
fn promtool_passes_their_tests() {
    for scheme in SCHEMES {
        promtool(&["test", "rules"], &scheme.test_files());
    }
}

#[test]
fn every_alert_is_tested_both_ways() {
    let mut untested = Vec::new();
    for scheme in SCHEMES {
        let tests = Tests::of(scheme);
        for Alert { name, .. } in Rules::of(scheme).alerts {
            if !tests.firing.contains(&name) {
                untested.push(format!("{}{name}: no test in which it fires", scheme.folder()));
            }
            if !tests.silent.contains(&name) {
                untested.push(format!("{}{name}: no test in which it does not", scheme.folder()));
            }
        }
    }
    nothing("alerts have a test in which they fire and one in which they do not", &untested);
}

#[test]
fn every_alert_says_what_it_must() {
    let index = read("docs/runbooks/README.md");
    let mut offences = Vec::new();
    for scheme in SCHEMES {
        for alert in Rules::of(scheme).alerts {
            let name = &alert.name;
            let mut offence = |problem: &str| offences.push(format!("{name}: {problem}"));
            let severity = alert.labels.get("severity").map_or("", String::as_str);
            if !SEVERITIES.contains(&severity) {
                offence("severity is none of critical, warning, info");
            }
            for annotation in ["summary", "description"] {
                if alert.annotations.get(annotation).is_none_or(|text| text.trim().is_empty()) {
                    offence(&format!("no {annotation}"));
                }
            }
            if alert.annotations.get("runbook_url") != Some(&format!("{RUNBOOKS}{name}.md")) {
                offence("runbook_url does not lead to its page");
            }
            if !root().join(format!("docs/runbooks/{name}.md")).exists() {
                offence("docs/runbooks has no page of it");
            }
            if !index.contains(&format!("[{name}]({name}.md)")) {
                offence("docs/runbooks/README.md does not list it");
            }
        }
    }
    nothing("alerts have severity, texts and runbook", &offences);
}

#[test]
fn names_are_unique_and_runbooks_have_their_alert() {
    let alerts = Rules::of(SCHEMES[0]).alerts;
    let names: BTreeSet<&str> = alerts.iter().map(|alert| alert.name.as_str()).collect();
    assert_eq!(names.len(), alerts.len(), "two alerts share a name");
    let mut orphans = Vec::new();
    for entry in std::fs::read_dir(root().join("docs/runbooks")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let page = name.strip_suffix(".md").unwrap_or(&name);
        if page != "README" && !names.contains(page) {
            orphans.push(name);
        }
    }
    nothing("pages in docs/runbooks are those of alerts", &orphans);
}

#[test]
fn both_sets_of_names_have_the_same_rules() {
    let names = |scheme| {
        let rules = Rules::of(scheme);
        let alerts = rules.alerts.into_iter().map(|alert| alert.name);
        alerts.chain(rules.records.into_iter().map(|record| record.name)).collect::<Vec<_>>()
    };
    assert_eq!(names(SCHEMES[0]), names(SCHEMES[1]));
}

#[test]
fn rules_use_series_and_labels_that_there_are() {
    let mut offences = Vec::new();
    for scheme in SCHEMES {
        let rules = Rules::of(scheme);
        let mut scope = Scope { series: Series::served(scheme), records: BTreeMap::new() };
        for record in &rules.records {
            if let Err(problem) = scope.record(&record.name, &record.expr) {
                offences.push(format!("{}: {problem}", record.name));
            }
        }
        for Alert { name, expr, labels, annotations } in &rules.alerts {
            let mut known = match scope.labels(expr) {
                Ok(known) => known,
                Err(problem) => {
                    offences.push(format!("{name}: {problem}"));
                    continue;
                }
            };
            known.extend(labels.keys().cloned());
            for text in annotations.values() {
                let unknown = named_labels(text).filter(|label| !known.contains(*label));
                offences.extend(unknown.map(|label| format!("{name}: no label {label}: {text}")));
            }
        }
    }
    nothing("rules name series and labels that the exporter serves by default", &offences);
}

/// The rules, and what queries beside them may name.
fn recorded() -> (Rules, Scope) {
    let mut scope = Scope { series: Series::served(SCHEMES[0]), records: BTreeMap::new() };
    let rules = Rules::of(SCHEMES[0]);
    for record in &rules.records {
        scope.record(&record.name, &record.expr).unwrap();
    }
    (rules, scope)
}

#[test]
fn runbooks_ask_what_can_be_answered() {
    let (rules, scope) = recorded();
    let mut offences = Vec::new();
    for alert in &rules.alerts {
        let page = read(&format!("docs/runbooks/{}.md", alert.name));
        let queries = page.split("```promql\n").nth(1).and_then(|rest| rest.split("```").next());
        let queries = queries.unwrap_or_default();
        if queries.trim().is_empty() {
            offences.push(format!("{}: no PromQL", alert.name));
        }
        let problems = queries.lines().filter_map(|query| scope.labels(query).err());
        offences.extend(problems.map(|problem| format!("{}: {problem}", alert.name)));
    }
    nothing("runbooks name series and labels that the exporter serves by default", &offences);
}

#[test]
fn the_alertmanager_example_names_alerts_that_there_are() {
    let alerts = Rules::of(SCHEMES[0]).alerts;
    let names: BTreeSet<&str> = alerts.iter().map(|alert| alert.name.as_str()).collect();
    let example = read("alerts/alertmanager-example.yml");
    let lines = example.lines().filter(|line| line.contains("_matchers: "));
    let words = lines.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric()));
    let mentioned =
        words.filter(|word| ["Gpu", "GPU", "Nvml"].iter().any(|at| word.starts_with(at)));
    // `Gpu.+` stands for many.
    let unknown = mentioned.filter(|word| *word != "Gpu" && !names.contains(word));
    let unknown: Vec<String> = unknown.map(str::to_owned).collect();
    nothing("the example for Alertmanager names alerts that there are", &unknown);
}

#[test]
fn the_readme_lists_every_threshold() {
    let readme = read("alerts/README.md");
    let thresholds = read("alerts/src/thresholds.yml");
    let lines = thresholds.lines().filter(|line| !line.starts_with('#'));
    let missing = lines.filter_map(|line| line.split_once(": ")).filter(|(name, value)| {
        !readme.contains(&format!("| `{name}` | `{}` |", value.trim_matches('"')))
    });
    let missing: Vec<String> = missing.map(|(name, value)| format!("{name}: {value}")).collect();
    nothing("alerts/README.md lists thresholds with their defaults", &missing);
}

#[test]
fn records_are_named_level_metric_operation() {
    let rules = Rules::of(SCHEMES[0]);
    let odd = rules.records.iter().filter(|record| record.name.split(':').count() != 3);
    let odd: Vec<String> = odd.map(|record| record.name.clone()).collect();
    nothing("recording rules are named level:metric:operation", &odd);
}
