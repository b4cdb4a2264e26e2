//! Variables: data source, what is selected, and what a GPU costs.

use serde_json::{Value, json};

use super::panel::datasource;

/// A variable of a dashboard.
pub(super) enum Variable {
    Datasource,
    /// Values of a label, all of them to begin with.
    Labels {
        name: &'static str,
        label: &'static str,
        query: String,
        /// What "all" matches: `.*` where series may lack the label. Empty: there is no "all".
        all: &'static str,
        hidden: bool,
        /// What is taken out of each result, where `query` is no `label_values`.
        regex: &'static str,
    },
    /// A number that is typed in.
    Number {
        name: &'static str,
        label: &'static str,
        about: &'static str,
        value: &'static str,
    },
}

const SOURCE: &str = "nvml_exporter_build_info";
const DEVICES: &str = "nvml_exporter_device_up";
const TARGET: &str = r#"cluster=~"$cluster",job=~"$job",instance=~"$instance""#;

/// Those of every dashboard. Values come from series that are always there, also while a GPU is
/// down: never from a reading.
pub(super) fn basic() -> Vec<Variable> {
    let labels = |name, label, query: String, all| Variable::Labels {
        name,
        label,
        query,
        all,
        hidden: name == "instance",
        regex: "",
    };
    vec![
        Variable::Datasource,
        labels("cluster", "Cluster", format!("label_values({SOURCE}, cluster)"), ".*"),
        labels("job", "Job", format!("label_values({SOURCE}{{cluster=~\"$cluster\"}}, job)"), ".+"),
        labels(
            "instance",
            "Instance",
            format!("label_values({SOURCE}{{cluster=~\"$cluster\",job=~\"$job\"}}, instance)"),
            ".+",
        ),
        // Absent with --host-label=Hostname, as a GPU's index is where it cannot say it.
        labels("host", "Host", format!("label_values(nvml_up{{{TARGET}}}, hostname)"), ".*"),
        labels(
            "gpu",
            "GPU",
            format!("label_values({DEVICES}{{{TARGET},hostname=~\"$host\"}}, gpu)"),
            ".*",
        ),
    ]
}

/// The same where a host is looked at: one or a few, which All is not.
pub(super) fn of_host() -> Vec<Variable> {
    let mut variables = basic();
    for variable in &mut variables {
        if let Variable::Labels { name: "host", all, .. } = variable {
            *all = "";
        }
    }
    variables
}

/// Those of dashboards about pods. `pods` gives all that hold a device, `in_namespace` those of
/// the namespaces that are chosen.
pub(super) fn of_pods(pods: &str, in_namespace: &str) -> Vec<Variable> {
    let among = |name: &'static str, label, pods: &str, regex| Variable::Labels {
        name,
        label,
        query: format!("query_result(group by ({name}) ({pods}))"),
        all: ".*",
        hidden: false,
        regex,
    };
    let mut variables = basic();
    variables.push(among("namespace", "Namespace", pods, r#"/namespace="([^"]+)"/"#));
    variables.push(among("pod", "Pod", in_namespace, r#"/pod="([^"]+)"/"#));
    variables
}

impl Variable {
    pub(super) fn json(&self) -> Value {
        match self {
            Self::Datasource => json!({
                "current": {},
                "hide": 0,
                "includeAll": false,
                "label": "Data source",
                "multi": false,
                "name": "datasource",
                "options": [],
                "query": "prometheus",
                "refresh": 1,
                "regex": "",
                "skipUrlSync": false,
                "type": "datasource",
            }),
            Self::Labels { name, label, query, all, hidden, regex } => json!({
                "allValue": all,
                "current": if all.is_empty() { json!({}) } else { everything() },
                "datasource": datasource(),
                "definition": query,
                "hide": if *hidden { 2 } else { 0 },
                "includeAll": !all.is_empty(),
                "label": label,
                "multi": true,
                "name": name,
                "options": [],
                "query": query,
                "refresh": 2,
                "regex": regex,
                "skipUrlSync": false,
                // Numbers by size: 10 comes after 9.
                "sort": 3,
                "type": "query",
            }),
            Self::Number { name, label, about, value } => json!({
                "current": {"selected": true, "text": value, "value": value},
                "description": about,
                "hide": 0,
                "label": label,
                "name": name,
                "options": [{"selected": true, "text": value, "value": value}],
                "query": value,
                "skipUrlSync": false,
                "type": "textbox",
            }),
        }
    }
}

fn everything() -> Value {
    json!({"selected": true, "text": ["All"], "value": ["$__all"]})
}
