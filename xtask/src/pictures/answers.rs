//! What Prometheus answered to a panel's queries.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::shell::Outcome;

/// A text in JSON; empty where there is none.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A list in JSON; empty where there is none.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The answers to a dashboard's queries, panel by panel.
pub(super) struct Recorded(Value);

/// The answers to a panel's queries.
pub(super) struct Answers {
    /// By query, in the panel's order.
    pub(super) queries: Vec<Vec<Series>>,
    /// The range of time, in seconds of Unix time.
    pub(super) from: f64,
    pub(super) until: f64,
}

/// A series.
#[derive(Debug, Clone)]
pub(super) struct Series {
    pub(super) labels: BTreeMap<String, String>,
    /// Times and values.
    pub(super) points: Vec<(f64, f64)>,
}

impl Series {
    fn read(series: &Value) -> Self {
        let labels = series["metric"].as_object().into_iter().flatten();
        let labels = labels.map(|(name, value)| (name.clone(), text(value).to_owned()));
        let points = list(&series["values"])
            .iter()
            .filter_map(|point| Some((point[0].as_f64()?, text(&point[1]).parse().ok()?)));
        let points = points.filter(|(_, value): &(f64, f64)| value.is_finite());
        Self { labels: labels.collect(), points: points.collect() }
    }

    /// The newest value.
    pub(super) fn last(&self) -> Option<f64> {
        self.points.last().map(|(_, value)| *value)
    }

    /// What the legend calls it.
    pub(super) fn called(&self, legend: &str) -> String {
        let mut name = String::new();
        let mut rest = legend;
        while let Some((before, after)) = rest.split_once("{{") {
            let (label, after) = after.split_once("}}").unwrap_or((after, ""));
            name.push_str(before);
            name.push_str(self.labels.get(label).map_or("", String::as_str));
            rest = after;
        }
        (name + rest).trim().to_owned()
    }
}

impl Recorded {
    pub(super) const fn new(recorded: Value) -> Self {
        Self(recorded)
    }

    /// Those to a panel, which its title tells from all others of the dashboard.
    pub(super) fn of(&self, panel: &Value) -> Outcome<Answers> {
        let until = self.0["until"].as_f64().unwrap_or_default();
        let from = until - self.0["range"].as_f64().unwrap_or_default();
        let recorded = list(&self.0["panels"]).iter().find(|one| one["title"] == panel["title"]);
        let queries = recorded.map_or(&[][..], |one| list(&one["queries"]));
        if queries.len() != list(&panel["targets"]).len() {
            return Err(format!("{}: recorded answers are of another dashboard", panel["title"]));
        }
        let read = |query: &Value| list(query).iter().map(Series::read).collect();
        Ok(Answers { queries: queries.iter().map(read).collect(), from, until })
    }
}

impl Answers {
    pub(super) fn are_empty(&self) -> bool {
        self.queries.iter().flatten().all(|series| series.points.is_empty())
    }

    /// All series with what they are called.
    pub(super) fn named<'a>(
        &'a self,
        panel: &'a Value,
    ) -> impl Iterator<Item = (String, &'a Series)> {
        let legends = list(&panel["targets"]).iter().map(|target| text(&target["legendFormat"]));
        self.queries.iter().zip(legends).flat_map(|(query, legend)| {
            query.iter().map(move |series| (series.called(legend), series))
        })
    }
}
