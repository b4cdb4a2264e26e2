//! The committed dashboards, as Grafana would load them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The dashboards of one set of names.
pub(crate) struct Folder {
    /// As `--metric-names` calls the set.
    pub(crate) names: &'static str,
    path: &'static str,
}

pub(crate) const FOLDERS: [Folder; 2] = [
    Folder { names: "legacy", path: "dashboards" },
    Folder { names: "dcgm47", path: "dashboards/dcgm47" },
];

/// A dashboard.
pub(crate) struct Board {
    pub(crate) path: String,
    pub(crate) json: Value,
}

/// A query of a dashboard.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    /// The panel's title, or what else asks.
    pub(crate) panel: String,
    /// What the series, or the column, is called.
    pub(crate) legend: String,
    pub(crate) kind: String,
    pub(crate) expr: String,
}

impl Folder {
    pub(crate) fn boards(&self) -> Vec<Board> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(self.path);
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let mut paths: Vec<PathBuf> =
            entries.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
        paths.sort();
        assert!(!paths.is_empty(), "{} has no dashboard", self.path);
        let board = |path: &PathBuf| Board {
            path: format!("{}/{}", self.path, path.file_name().unwrap().display()),
            json: serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap(),
        };
        paths.iter().map(board).collect()
    }
}

/// A text in JSON; empty where there is none.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A list in JSON; empty where there is none.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

impl Board {
    /// All panels, rows included.
    pub(crate) fn panels(&self) -> &[Value] {
        list(&self.json["panels"])
    }

    /// Panels that ask for data.
    pub(crate) fn data_panels(&self) -> impl Iterator<Item = &Value> {
        self.panels().iter().filter(|panel| !["row", "text"].contains(&text(&panel["type"])))
    }

    pub(crate) fn variables(&self) -> &[Value] {
        list(&self.json["templating"]["list"])
    }

    /// What panels ask.
    pub(crate) fn queries(&self) -> Vec<Query> {
        let mut queries = Vec::new();
        for panel in self.data_panels() {
            queries.extend(list(&panel["targets"]).iter().map(|target| Query {
                panel: text(&panel["title"]).to_owned(),
                legend: text(&target["legendFormat"]).to_owned(),
                kind: text(&panel["type"]).to_owned(),
                expr: text(&target["expr"]).to_owned(),
            }));
        }
        queries
    }

    /// What annotations and variables ask.
    pub(crate) fn other_queries(&self) -> Vec<Query> {
        let annotations = list(&self.json["annotations"]["list"]);
        let annotations = annotations.iter().map(|one| (text(&one["name"]), text(&one["expr"])));
        let variables = self.variables().iter().filter(|one| text(&one["type"]) == "query");
        let variables = variables.map(|one| (text(&one["name"]), asked(text(&one["query"]))));
        let query = |(name, expr): (&str, &str)| Query {
            panel: name.to_owned(),
            legend: String::new(),
            kind: "other".to_owned(),
            expr: expr.to_owned(),
        };
        annotations.chain(variables).map(query).collect()
    }
}

/// The query in `label_values(expr, label)` or `query_result(expr)`.
fn asked(query: &str) -> &str {
    let inner = query.split_once('(').map_or("", |(_, rest)| rest);
    let inner = inner.strip_suffix(')').unwrap_or(inner);
    if query.starts_with("label_values(") {
        inner.rsplit_once(',').map_or(inner, |(expr, _)| expr)
    } else {
        inner
    }
}

/// A query as Grafana sends it: `value` gives the values of variables.
pub(crate) fn substituted(expr: &str, value: impl Fn(&str) -> String) -> String {
    let mut sent = String::new();
    let mut rest = expr;
    while let Some((before, after)) = rest.split_once('$') {
        sent.push_str(before);
        let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let name = &after[..end.unwrap_or(after.len())];
        // `"$1"` of label_replace is none.
        if name.is_empty() || name.bytes().all(|byte| byte.is_ascii_digit()) {
            sent.push('$');
            sent.push_str(name);
        } else {
            sent.push_str(&value(name));
        }
        rest = &after[name.len()..];
    }
    sent + rest
}
