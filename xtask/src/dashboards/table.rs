//! Tables: a row for each set of labels, a column for each label and each query.

use serde_json::{Map, Value, json};

use super::looks::{self, Mapping, Steps, Unit};
use super::panel::datasource;

/// Where a click on a GPU leads: the detail dashboard, with all that is chosen, on that GPU.
const TO_GPU: &str = "?${datasource:queryparam}&${cluster:queryparam}&${job:queryparam}\
                      &var-host=${__data.fields.Host}&var-gpu=${__data.fields.GPU}\
                      &${__url_time_range}";

/// A table in the making.
pub(super) struct Table {
    labels: &'static [Label],
    columns: Vec<Column>,
    sort: (&'static str, bool),
    /// Whether values say nothing, and labels all.
    facts: bool,
    /// The dashboard that a row about a GPU leads to.
    detail: Option<String>,
}

/// A label, and the title of its column.
pub(super) type Label = (&'static str, &'static str);

/// The labels of a GPU.
pub(super) const GPU: &[Label] =
    &[("cluster", "Cluster"), ("hostname", "Host"), ("gpu", "GPU"), ("UUID", "UUID")];

/// A column of values. Its query must aggregate by the table's labels, all of them and no other.
pub(super) struct Column {
    title: &'static str,
    expr: String,
    unit: Unit,
    steps: Option<Steps>,
    mappings: &'static [Mapping],
}

impl Column {
    pub(super) const fn new(title: &'static str, unit: Unit, expr: String) -> Self {
        Self { title, expr, unit, steps: None, mappings: &[] }
    }

    /// Coloured by level.
    pub(super) const fn steps(mut self, steps: Steps) -> Self {
        self.steps = Some(steps);
        self
    }

    /// Words in place of numbers, coloured by their level.
    pub(super) const fn mapped(mut self, mappings: &'static [Mapping]) -> Self {
        self.steps = Some(looks::PLAIN);
        self.mappings = mappings;
        self
    }
}

impl Table {
    pub(super) const fn new(labels: &'static [Label], sort: (&'static str, bool)) -> Self {
        Self { labels, columns: Vec::new(), sort, facts: false, detail: None }
    }

    /// A row for each series of a query, without its value.
    pub(super) fn facts(labels: &'static [Label], sort: &'static str, expr: String) -> Self {
        let mut table = Self::new(labels, (sort, false));
        table.facts = true;
        table.column(Column::new("Value", Unit::Count, expr))
    }

    pub(super) fn column(mut self, column: Column) -> Self {
        self.columns.push(column);
        self
    }

    /// Rows lead to the GPU on this dashboard.
    pub(super) fn leads_to(mut self, uid: &str) -> Self {
        self.detail = Some(format!("/d/{uid}{TO_GPU}"));
        self
    }

    fn lettered(&self) -> impl Iterator<Item = (&Column, char)> {
        self.columns.iter().zip('A'..='Z')
    }

    pub(super) fn targets(&self) -> Vec<Value> {
        self.lettered()
            .map(|(column, letter)| {
                json!({
                    "datasource": datasource(),
                    "editorMode": "code",
                    "expr": column.expr,
                    "format": "table",
                    "instant": true,
                    "range": false,
                    "legendFormat": column.title,
                    "refId": letter.to_string(),
                })
            })
            .collect()
    }

    /// One row for each set of labels, columns in the order given.
    pub(super) fn transformations(&self) -> Value {
        let (mut order, mut names) = (Map::new(), Map::new());
        let labels = self.labels.iter().map(|(label, title)| ((*label).to_owned(), *title));
        // A single query's column has no letter.
        let values = self.lettered().map(|(column, letter)| match self.columns.len() {
            1 => ("Value".to_owned(), column.title),
            _ => (format!("Value #{letter}"), column.title),
        });
        for (index, (name, title)) in labels.chain(values).enumerate() {
            order.insert(name.clone(), index.into());
            names.insert(name, title.into());
        }
        json!([
            {"id": "merge", "options": {}},
            {"id": "organize", "options": {
                "excludeByName": {"Time": true, "Value": self.facts},
                "indexByName": order,
                "renameByName": names,
            }},
        ])
    }

    pub(super) fn options(&self) -> Value {
        json!({
            "cellHeight": "sm",
            "footer": {"countRows": false, "fields": "", "reducer": ["sum"], "show": false},
            "showHeader": true,
            "sortBy": [{"displayName": self.sort.0, "desc": self.sort.1}],
        })
    }

    pub(super) fn field_config(&self) -> Value {
        let mut overrides: Vec<Value> = self.columns.iter().map(formatted).collect();
        if let Some(url) = &self.detail {
            let links = json!([{"title": "Show this GPU", "url": url}]);
            overrides.push(json!({
                "matcher": {"id": "byRegexp", "options": "/^(GPU|UUID)$/"},
                "properties": [{"id": "links", "value": links}],
            }));
        }
        json!({
            "defaults": {
                "color": {"mode": "thresholds"},
                "custom": {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": true},
                "mappings": [],
                "thresholds": looks::steps(looks::PLAIN),
                "unit": Unit::Text.id(),
            },
            "overrides": overrides,
        })
    }
}

fn formatted(column: &Column) -> Value {
    let mut properties = vec![json!({"id": "unit", "value": column.unit.id()})];
    if let Some(steps) = column.steps {
        let cell = json!({"type": "color-text"});
        properties.push(json!({"id": "custom.cellOptions", "value": cell}));
        properties.push(json!({"id": "thresholds", "value": looks::steps(steps)}));
    }
    if !column.mappings.is_empty() {
        let mappings = looks::mappings(column.mappings);
        properties.push(json!({"id": "mappings", "value": mappings}));
    }
    json!({
        "matcher": {"id": "byName", "options": column.title},
        "properties": properties,
    })
}
