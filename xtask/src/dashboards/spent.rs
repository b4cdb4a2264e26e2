//! What pods use and spend, by the exporter's own accounts: time, energy, shares of shared GPUs.

use super::looks::Unit;
use super::panel::Panel;
use super::pods::Which;
use super::query::{DEVICE_LABELS, Query};
use super::table::{Column, Label, Table};

/// What tells the accounts of a pod apart. Each process of the exporter has its own, and may have
/// another address.
const ACCOUNT: &str = "cluster, instance, UUID, GPU_I_ID, namespace, pod";

const NAMESPACE: &str = "cluster, namespace";
const POD: &str = "cluster, namespace, pod";

const POD_COLUMNS: &[Label] = &[("cluster", "Cluster"), ("namespace", "Namespace"), ("pod", "Pod")];

const SEEN: &str = "Needs the node's processes in sight of the exporter (hostPID)";

pub(super) fn panels(query: &Query<'static>) -> Vec<Panel> {
    let mut panels = by_namespace(query);
    panels.push(by_pod(query));
    panels.extend(power(query));
    panels.extend(sharers(query));
    panels
}

/// A family about pods, of those that are chosen, under `namespace` and `pod`, whatever Prometheus
/// calls them. Every series of these families has a pod, so a target's pod is never taken for one.
fn of_pods(
    query: &Query<'static>,
    family: &'static str,
    which: Which,
    taken: impl Fn(&str) -> String,
) -> String {
    let exported = which.matchers("exported_namespace", "exported_pod");
    let exported = taken(&query.raw(family, &format!("exported_pod!=\"\"{exported}")));
    let own = which.matchers("namespace", "pod");
    let own = taken(&query.raw(family, &format!("exported_pod=\"\"{own}")));
    format!(
        "label_replace(label_replace({exported}, \
         \"namespace\", \"$1\", \"exported_namespace\", \"(.+)\"), \
         \"pod\", \"$1\", \"exported_pod\", \"(.+)\") or {own}"
    )
}

/// What the accounts have grown by in the range of time shown.
fn grown(query: &Query<'static>, family: &'static str) -> String {
    let grown = |raw: &str| format!("increase({raw}[$__range])");
    format!("max by ({ACCOUNT}) ({})", of_pods(query, family, Which::Chosen, grown))
}

fn hours(query: &Query<'static>, by: &str, family: &'static str) -> String {
    format!("sum by ({by}) ({}) / 3600", grown(query, family))
}

fn held(query: &Query<'static>, by: &str) -> String {
    hours(query, by, "nvml_pod_gpu_seconds_total")
}

fn busy(query: &Query<'static>, by: &str) -> String {
    hours(query, by, "nvml_pod_gpu_busy_seconds_total")
}

/// Busy time over time held, of devices whose busy time is known; nothing where none was held.
fn busy_share(query: &Query<'static>, by: &str) -> String {
    let busy = grown(query, "nvml_pod_gpu_busy_seconds_total");
    let held = grown(query, "nvml_pod_gpu_seconds_total");
    format!("sum by ({by}) ({busy}) / (sum by ({by}) ({held} and {busy}) > 0)")
}

fn kilowatt_hours(query: &Query<'static>, by: &str) -> String {
    format!("sum by ({by}) ({}) / 3600000", grown(query, "nvml_pod_energy_joules_total"))
}

/// What no pod is charged for, by reason.
fn unattributed(query: &Query<'static>, taken: impl Fn(&str) -> String) -> String {
    let raw = query.raw("nvml_device_unattributed_energy_joules_total", "by=\"pod\"");
    format!("sum by (reason) (max by (cluster, instance, UUID, reason) ({}))", taken(&raw))
}

fn by_namespace(query: &Query<'static>) -> Vec<Panel> {
    let nobody = unattributed(query, |raw| format!("increase({raw}[$__range])"));
    vec![
        Panel::ranking(
            "GPU-hours held and busy",
            "In the range of time shown, as the exporter counts them: held, and of that the time \
             in which the GPU worked.",
        )
        .size(8, 7)
        .query(held(query, NAMESPACE), "{{namespace}} held")
        .query(busy(query, NAMESPACE), "{{namespace}} busy"),
        Panel::ranking(
            "Energy by namespace",
            "What pods are charged for in the range of time shown.",
        )
        .size(8, 7)
        .unit(Unit::KilowattHours)
        .query(kilowatt_hours(query, NAMESPACE), "{{namespace}}"),
        Panel::ranking(
            "Energy of no pod",
            "What no pod is charged for in the range of time shown, whatever pods are chosen, by \
             reason: idle is what nobody held; not_divisible is of shared GPUs whose processes the \
             exporter does not see (hostPID).",
        )
        .size(8, 7)
        .unit(Unit::KilowattHours)
        .query(format!("{nobody} / 3600000"), "{{reason}}"),
    ]
}

fn by_pod(query: &Query<'static>) -> Panel {
    let table = Table::new(POD_COLUMNS, ("GPU-hours", true))
        .column(Column::new("GPU-hours", Unit::Count, held(query, POD)))
        .column(Column::new("Busy GPU-hours", Unit::Count, busy(query, POD)))
        .column(Column::new("Busy share", Unit::Share, busy_share(query, POD)))
        .column(Column::new("Energy", Unit::KilowattHours, kilowatt_hours(query, POD)))
        .column(Column::new("Cost", Unit::Count, format!("{} * $price", held(query, POD))));
    Panel::table(
        "What pods have spent",
        "In the range of time shown, as the exporter counts it, pods that are gone included; the cost \
         is GPU-hours times the price of one, which is typed in above. A pod that works more than \
         its part of a shared GPU is above 100 %. Busy time of sharers needs \
         the node's processes in sight of the exporter (hostPID), that of MIG instances Hopper or \
         newer.",
        table,
    )
    .size(24, 8)
}

fn power(query: &Query<'static>) -> Vec<Panel> {
    let rate = |raw: &str| format!("rate({raw}[$__rate_interval])");
    let pods = of_pods(query, "nvml_pod_energy_joules_total", Which::Chosen, rate);
    vec![
        Panel::stacked("Power by pod", "What each pod is charged for, per second.")
            .unit(Unit::Watts)
            .query(
                format!("sum by ({POD}) (max by ({ACCOUNT}) ({pods}))"),
                "{{namespace}}/{{pod}}",
            ),
        Panel::stacked(
            "Power of no pod",
            "What no pod is charged for, per second, whatever pods are chosen. With the power of \
             all pods it is that of the boards.",
        )
        .unit(Unit::Watts)
        .query(unattributed(query, rate), "{{reason}}"),
    ]
}

/// A reading of the pods on devices that several pods are on.
fn shared(query: &Query<'static>, family: &'static str) -> String {
    let of = |which| {
        let pods = of_pods(query, family, which, str::to_owned);
        format!("max by ({DEVICE_LABELS}, namespace, pod) ({pods})")
    };
    let several = format!("count by (UUID, GPU_I_ID) ({}) > 1", of(Which::All));
    format!("{} and on (UUID, GPU_I_ID) ({several})", of(Which::Chosen))
}

fn sharers(query: &Query<'static>) -> Vec<Panel> {
    const LEGEND: &str = "{{hostname}}/{{gpu}} {{GPU_I_ID}} {{namespace}}/{{pod}}";
    vec![
        Panel::stacked(
            "SM share on shared GPUs",
            format!(
                "Share of time in which kernels of each pod ran, on GPUs that several pods are on. \
                 {SEEN}. NVML does not tell it of MIG instances."
            ),
        )
        .unit(Unit::Share)
        .query(shared(query, "nvml_pod_sm_utilization_ratio"), LEGEND),
        Panel::stacked(
            "Memory on shared GPUs",
            format!(
                "Memory of each pod's processes, on GPUs and MIG instances that several pods are \
                 on. {SEEN}."
            ),
        )
        .unit(Unit::Bytes)
        .query(shared(query, "nvml_pod_memory_used_bytes"), LEGEND),
    ]
}
