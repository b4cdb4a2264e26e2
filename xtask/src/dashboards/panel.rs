//! Panels: what each kind has in Grafana's classic JSON.

use serde_json::{Map, Value, json};

use super::looks::{self, Mapping, Steps, Unit};
use super::table::Table;

/// A panel.
pub(super) struct Panel {
    title: &'static str,
    about: String,
    pub(super) width: u32,
    pub(super) height: u32,
    kind: Kind,
    unit: Unit,
    steps: Steps,
    mappings: &'static [Mapping],
    decimals: Option<u8>,
    min: Option<f64>,
    max: Option<f64>,
    targets: Vec<Target>,
}

enum Kind {
    /// A number; `coloured` by its level.
    Stat {
        coloured: bool,
    },
    /// Lines, or stacked areas, or bars.
    Series(Draw),
    /// A bar for each series.
    BarGauge,
    /// Bands of states over time.
    States,
    Table(Table),
    /// Markdown.
    Note,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Draw {
    Lines,
    Stacked,
    Bars,
}

struct Target {
    expr: String,
    legend: String,
    instant: bool,
}

/// Series of this legend are limits: dashed and grey.
const LIMIT: &str = "limit";

/// The panels' options are those of this version, and load in newer ones.
const PLUGIN_VERSION: &str = "10.4.0";

/// Into how many steps numbers and tables cut the range that they sum over; by the width of the
/// panel it would be a thousand, which is more work and no other number.
const STEPS: u32 = 240;

/// Where every panel gets its data.
pub(super) fn datasource() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

impl Panel {
    fn new(title: &'static str, about: impl Into<String>, kind: Kind, size: (u32, u32)) -> Self {
        Self {
            title,
            about: about.into(),
            width: size.0,
            height: size.1,
            kind,
            unit: Unit::Count,
            steps: looks::PLAIN,
            mappings: &[],
            decimals: None,
            min: None,
            max: None,
            targets: Vec::new(),
        }
    }

    /// A number of the newest readings.
    pub(super) fn stat(title: &'static str, about: impl Into<String>, expr: String) -> Self {
        let mut panel = Self::new(title, about, Kind::Stat { coloured: false }, (3, 4));
        panel.targets.push(Target { expr, legend: String::new(), instant: true });
        panel
    }

    /// Lines over time.
    pub(super) fn lines(title: &'static str, about: impl Into<String>) -> Self {
        Self::new(title, about, Kind::Series(Draw::Lines), (12, 8)).zero_based()
    }

    /// Areas on top of one another.
    pub(super) fn stacked(title: &'static str, about: impl Into<String>) -> Self {
        Self::new(title, about, Kind::Series(Draw::Stacked), (12, 8)).zero_based()
    }

    /// Stacked bars over time.
    pub(super) fn bars(title: &'static str, about: impl Into<String>) -> Self {
        Self::new(title, about, Kind::Series(Draw::Bars), (12, 8)).zero_based()
    }

    /// A bar for each series of the newest readings.
    pub(super) fn ranking(title: &'static str, about: impl Into<String>) -> Self {
        Self::new(title, about, Kind::BarGauge, (12, 8)).zero_based()
    }

    /// Bands over time.
    pub(super) fn states(title: &'static str, about: impl Into<String>) -> Self {
        let mut panel = Self::new(title, about, Kind::States, (12, 8));
        panel.unit = Unit::Text;
        panel
    }

    /// Rows and columns.
    pub(super) fn table(title: &'static str, about: impl Into<String>, table: Table) -> Self {
        Self::new(title, about, Kind::Table(table), (24, 8))
    }

    /// A text that stays in sight.
    pub(super) fn note(title: &'static str, text: impl Into<String>) -> Self {
        Self::new(title, text, Kind::Note, (24, 4))
    }

    /// In columns, of which there are 24, and lines.
    pub(super) const fn size(mut self, width: u32, height: u32) -> Self {
        self.width = width;
        self.height = height;
        self
    }

    pub(super) const fn unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    pub(super) const fn decimals(mut self, decimals: u8) -> Self {
        self.decimals = Some(decimals);
        self
    }

    /// A scale from 0 to 100 %.
    pub(super) const fn share(mut self) -> Self {
        self.unit = Unit::Share;
        self.min = Some(0.0);
        self.max = Some(1.0);
        self
    }

    const fn zero_based(mut self) -> Self {
        self.min = Some(0.0);
        self
    }

    /// A scale that fits its values.
    pub(super) const fn free_scale(mut self) -> Self {
        self.min = None;
        self
    }

    /// Levels, by which a stat is coloured.
    pub(super) const fn steps(mut self, steps: Steps) -> Self {
        self.steps = steps;
        if let Kind::Stat { coloured } = &mut self.kind {
            *coloured = true;
        }
        self
    }

    pub(super) const fn mapped(mut self, mappings: &'static [Mapping]) -> Self {
        self.mappings = mappings;
        self
    }

    /// A query, and what its series are called.
    pub(super) fn query(mut self, expr: String, legend: impl Into<String>) -> Self {
        let instant = matches!(self.kind, Kind::BarGauge | Kind::Stat { .. });
        self.targets.push(Target { expr, legend: legend.into(), instant });
        self
    }

    /// A line that the others should not reach; `of` says whose, and may be empty.
    pub(super) fn limit(self, expr: String, name: &str, of: &str) -> Self {
        let legend = format!("{name} {LIMIT} {of}");
        self.query(expr, legend.trim_end())
    }

    pub(super) fn json(&self, id: u32, position: (u32, u32)) -> Value {
        let mut panel = json!({
            "id": id,
            "type": self.type_name(),
            "title": self.title,
            "gridPos": {"x": position.0, "y": position.1, "w": self.width, "h": self.height},
        });
        if let Kind::Note = self.kind {
            panel["description"] = self.title.into();
            panel["options"] = json!({"mode": "markdown", "content": self.about});
            return panel;
        }
        panel["description"] = self.about.clone().into();
        panel["datasource"] = datasource();
        panel["pluginVersion"] = PLUGIN_VERSION.into();
        if !matches!(self.kind, Kind::Series(_) | Kind::States) {
            panel["maxDataPoints"] = STEPS.into();
        }
        panel["options"] = self.options();
        panel["fieldConfig"] = self.field_config();
        panel["targets"] = self.targets().into();
        if let Kind::Table(table) = &self.kind {
            panel["transformations"] = table.transformations();
        }
        panel
    }

    const fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Stat { .. } => "stat",
            Kind::Series(_) => "timeseries",
            Kind::BarGauge => "bargauge",
            Kind::States => "state-timeline",
            Kind::Table(_) => "table",
            Kind::Note => "text",
        }
    }

    fn targets(&self) -> Vec<Value> {
        if let Kind::Table(table) = &self.kind {
            return table.targets();
        }
        let targets = self.targets.iter().zip('A'..='Z');
        targets
            .map(|(target, letter)| {
                json!({
                    "datasource": datasource(),
                    "editorMode": "code",
                    "expr": target.expr,
                    "format": "time_series",
                    "instant": target.instant,
                    "range": !target.instant,
                    "legendFormat": target.legend,
                    "refId": letter.to_string(),
                })
            })
            .collect()
    }

    fn options(&self) -> Value {
        let newest = json!({"calcs": ["lastNotNull"], "fields": "", "values": false});
        match &self.kind {
            Kind::Stat { coloured } => json!({
                "colorMode": if *coloured { "background" } else { "value" },
                "graphMode": "none",
                "justifyMode": "auto",
                "orientation": "auto",
                "reduceOptions": newest,
                "textMode": "auto",
                "wideLayout": true,
            }),
            Kind::Series(_) => json!({
                "legend": {
                    "calcs": ["lastNotNull", "max"],
                    "displayMode": "table",
                    "placement": "bottom",
                    "showLegend": true,
                    "sortBy": "Max",
                    "sortDesc": true,
                },
                "tooltip": {"mode": "multi", "sort": "desc"},
            }),
            Kind::BarGauge => json!({
                "displayMode": "basic",
                "orientation": "horizontal",
                "reduceOptions": newest,
                "showUnfilled": true,
                "valueMode": "color",
                "minVizHeight": 16,
                "minVizWidth": 8,
            }),
            Kind::States => json!({
                "alignValue": "left",
                "legend": {"displayMode": "list", "placement": "bottom", "showLegend": false},
                "mergeValues": true,
                "rowHeight": 0.85,
                "showValue": "auto",
                "tooltip": {"mode": "single", "sort": "none"},
            }),
            Kind::Table(table) => table.options(),
            Kind::Note => Value::Null,
        }
    }

    fn field_config(&self) -> Value {
        if let Kind::Table(table) = &self.kind {
            return table.field_config();
        }
        let mut defaults = Map::new();
        let by_level = !matches!(self.kind, Kind::Series(_));
        let mode = if by_level { "thresholds" } else { "palette-classic" };
        defaults.insert("color".into(), json!({"mode": mode}));
        defaults.insert("mappings".into(), looks::mappings(self.mappings));
        defaults.insert("thresholds".into(), looks::steps(self.steps));
        defaults.insert("unit".into(), self.unit.id().into());
        for (name, value) in [("min", self.min), ("max", self.max)] {
            if let Some(value) = value {
                defaults.insert(name.into(), value.into());
            }
        }
        if let Some(decimals) = self.decimals {
            defaults.insert("decimals".into(), decimals.into());
        }
        let mut overrides = Vec::new();
        match self.kind {
            Kind::Series(draw) => {
                defaults.insert("custom".into(), drawn(draw));
                overrides.push(limits());
            }
            Kind::States => {
                defaults.insert("custom".into(), json!({"fillOpacity": 80, "lineWidth": 0}));
            }
            _ => {}
        }
        json!({"defaults": defaults, "overrides": overrides})
    }
}

fn drawn(draw: Draw) -> Value {
    let stacking = if draw == Draw::Lines { "none" } else { "normal" };
    let (style, fill) = match draw {
        Draw::Lines => ("line", 0),
        Draw::Stacked => ("line", 30),
        Draw::Bars => ("bars", 80),
    };
    json!({
        "drawStyle": style,
        "fillOpacity": fill,
        "lineWidth": 1,
        "lineInterpolation": "linear",
        "showPoints": "never",
        "spanNulls": false,
        "stacking": {"group": "A", "mode": stacking},
    })
}

/// Limits are dashed and grey, and no part of a stack.
fn limits() -> Value {
    json!({
        "matcher": {"id": "byRegexp", "options": format!("/ {LIMIT}( |$)/")},
        "properties": [
            {"id": "color", "value": {"fixedColor": "text", "mode": "fixed"}},
            {"id": "custom.lineStyle", "value": {"dash": [10, 10], "fill": "dash"}},
            {"id": "custom.fillOpacity", "value": 0},
            {"id": "custom.stacking", "value": {"group": "A", "mode": "none"}},
        ],
    })
}
