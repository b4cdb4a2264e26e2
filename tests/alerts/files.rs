//! Rule files and the tests that promtool runs, as far as they are looked at here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;

/// A set of metric names that rules are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Legacy,
    Dcgm47,
}

pub(crate) const SCHEMES: [Scheme; 2] = [Scheme::Legacy, Scheme::Dcgm47];

/// Files of others in the same folder.
const OTHERS: &[&str] = &["alerts/alertmanager-example.yml", "alerts/gpu-recording-rules.yml"];

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

impl Scheme {
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Legacy => "alerts/",
            Self::Dcgm47 => "alerts/dcgm47/",
        }
    }

    pub(crate) fn rule_files(self) -> Vec<String> {
        yaml_files(self.folder())
    }

    pub(crate) fn test_files(self) -> Vec<String> {
        // Only tests of this folder's own rules: others may have theirs in it.
        let mut files = yaml_files(&format!("{}tests/", self.folder()));
        files.retain(|path| root().join("alerts/src/tests").join(file_name(path)).exists());
        files
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn yaml_files(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let file = entry.unwrap().path();
        let path = format!("{folder}{}", file.file_name().unwrap().display());
        let yaml = file.extension().is_some_and(|extension| extension == "yml");
        if yaml && !OTHERS.contains(&path.as_str()) {
            found.push(path);
        }
    }
    assert!(!found.is_empty(), "no .yml in {folder}");
    found.sort();
    found
}

/// An alert of a rule file.
pub(crate) struct Alert {
    pub(crate) name: String,
    pub(crate) expr: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
}

/// A recording rule.
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) expr: String,
}

/// All rules of a scheme.
pub(crate) struct Rules {
    pub(crate) alerts: Vec<Alert>,
    pub(crate) records: Vec<Record>,
}

#[derive(Deserialize)]
struct RuleFile {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    alert: Option<String>,
    record: Option<String>,
    expr: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

fn parsed<T: for<'de> Deserialize<'de>>(path: &str) -> T {
    serde_saphyr::from_str(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

impl Rules {
    pub(crate) fn of(scheme: Scheme) -> Self {
        let mut rules = Self { alerts: Vec::new(), records: Vec::new() };
        for path in scheme.rule_files() {
            let file: RuleFile = parsed(&path);
            for rule in file.groups.into_iter().flat_map(|group| group.rules) {
                let Rule { alert, record, expr, labels, annotations } = rule;
                match (alert, record) {
                    (Some(name), None) => {
                        rules.alerts.push(Alert { name, expr, labels, annotations });
                    }
                    (None, Some(name)) => rules.records.push(Record { name, expr }),
                    _ => panic!("{path}: neither alert nor record, or both: {expr}"),
                }
            }
        }
        rules
    }
}

/// The alerts that are tested, by outcome, and the queries of which an answer is expected.
#[derive(Default)]
pub(crate) struct Tests {
    pub(crate) firing: BTreeSet<String>,
    pub(crate) silent: BTreeSet<String>,
    pub(crate) answered: Vec<String>,
}

#[derive(Deserialize)]
struct TestFile {
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    #[serde(default)]
    alert_rule_test: Vec<AlertTest>,
    #[serde(default)]
    promql_expr_test: Vec<QueryTest>,
}

#[derive(Deserialize)]
struct QueryTest {
    expr: String,
    #[serde(default)]
    exp_samples: Vec<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct AlertTest {
    alertname: String,
    exp_alerts: Vec<serde::de::IgnoredAny>,
}

impl Tests {
    pub(crate) fn of(scheme: Scheme) -> Self {
        let mut tests = Self::default();
        for path in scheme.test_files() {
            let file: TestFile = parsed(&path);
            for Test { alert_rule_test, promql_expr_test } in file.tests {
                for test in alert_rule_test {
                    let silent = test.exp_alerts.is_empty();
                    let outcome = if silent { &mut tests.silent } else { &mut tests.firing };
                    outcome.insert(test.alertname);
                }
                let queries = promql_expr_test.into_iter();
                let answered = queries.filter(|test| !test.exp_samples.is_empty());
                tests.answered.extend(answered.map(|test| test.expr));
            }
        }
        tests
    }
}
