//! A dashboard: rows of panels laid out on the grid, variables, links, annotations.

use serde_json::{Value, json};

use super::panel::{Panel, datasource};
use super::query::Query;
use super::variable::Variable;
use crate::alerts::fields::Names;

/// Columns of Grafana's grid.
const COLUMNS: u32 = 24;
/// Classic JSON that Grafana 10.4 and all later ones read.
const SCHEMA: u32 = 39;

/// A dashboard in the making.
pub(super) struct Board {
    /// Its file's name, and the end of its uid.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    /// How far back it looks at first.
    pub(super) since: &'static str,
    pub(super) variables: Vec<Variable>,
    pub(super) rows: Vec<Row>,
}

/// Panels under a heading.
pub(super) struct Row {
    title: &'static str,
    panels: Vec<Panel>,
}

impl Row {
    pub(super) fn new(title: &'static str, panels: Vec<Panel>) -> Self {
        Self { title, panels }
    }
}

/// The tag of all dashboards of a set of names, by which they link to one another.
const fn tag(names: Names) -> &'static str {
    match names {
        Names::Legacy => "nvml-exporter",
        Names::Dcgm47 => "nvml-exporter-dcgm47",
    }
}

/// A dashboard's uid.
pub(super) fn uid(name: &str, names: Names) -> String {
    match names {
        Names::Legacy => format!("nvml-{name}"),
        Names::Dcgm47 => format!("nvml-{name}-dcgm47"),
    }
}

impl Board {
    pub(super) fn json(&self, query: &Query) -> Value {
        let names = query.names();
        let title = match names {
            Names::Legacy => format!("NVIDIA GPU / {}", self.title),
            Names::Dcgm47 => format!("NVIDIA GPU / {} (DCGM 4.7 names)", self.title),
        };
        let variables: Vec<Value> = self.variables.iter().map(Variable::json).collect();
        json!({
            "annotations": {"list": annotations(query)},
            "description": self.about,
            "editable": false,
            "fiscalYearStartMonth": 0,
            "graphTooltip": 1,
            "id": null,
            "links": links(names),
            "panels": self.panels(),
            "refresh": "30s",
            "schemaVersion": SCHEMA,
            "tags": ["nvidia", "gpu", tag(names)],
            "templating": {"list": variables},
            "time": {"from": self.since, "to": "now"},
            "timepicker": {},
            "timezone": "browser",
            "title": title,
            "uid": uid(self.name, names),
            "version": 1,
            "weekStart": "",
        })
    }

    /// Rows from top to bottom, panels from left to right for as long as there is room.
    fn panels(&self) -> Vec<Value> {
        let mut panels = Vec::new();
        let mut y = 0;
        for row in &self.rows {
            panels.push(json!({
                "id": panels.len() + 1,
                "type": "row",
                "title": row.title,
                "collapsed": false,
                "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1},
                "panels": [],
            }));
            y += 1;
            let (mut x, mut height) = (0, 0);
            for panel in &row.panels {
                if x + panel.width > COLUMNS {
                    y += height;
                    (x, height) = (0, 0);
                }
                let id = u32::try_from(panels.len() + 1).unwrap_or(u32::MAX);
                panels.push(panel.json(id, (x, y)));
                x += panel.width;
                height = height.max(panel.height);
            }
            y += height;
        }
        panels
    }
}

fn links(names: Names) -> Value {
    json!([{
        "asDropdown": false,
        "icon": "external link",
        "includeVars": true,
        "keepTime": true,
        "tags": [tag(names)],
        "targetBlank": false,
        "title": "",
        "tooltip": "",
        "type": "dashboards",
        "url": "",
    }])
}

fn annotations(query: &Query) -> Value {
    let xids = format!(
        "max by (cluster, hostname, gpu, UUID, xid) ({}) * 1000",
        query.raw("nvml_xid_last_timestamp_seconds", "")
    );
    json!([
        {
            "datasource": datasource(),
            "enable": true,
            "expr": "ALERTS{alertname=~\"(Gpu|Nvml).+\",alertstate=\"firing\",\
                     severity=\"critical\",cluster=~\"$cluster\"}",
            "iconColor": "red",
            "name": "Alerts",
            "step": "60s",
            "textFormat": "{{hostname}} GPU {{gpu}} {{UUID}}",
            "titleFormat": "{{alertname}}",
        },
        {
            "datasource": datasource(),
            "enable": true,
            "expr": xids,
            "iconColor": "yellow",
            "name": "XIDs",
            "step": "60s",
            "textFormat": "{{hostname}} GPU {{gpu}} {{UUID}}",
            "titleFormat": "XID {{xid}}",
            "useValueForTime": "on",
        },
    ])
}
