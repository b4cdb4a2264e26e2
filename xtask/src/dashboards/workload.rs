//! Who uses what: namespaces, pods and owners, with idle time, energy and cost.

use super::board::{Board, Row, uid};
use super::looks::Unit;
use super::panel::Panel;
use super::pods::{self, Which};
use super::query::{Query, mean_in_range};
use super::spent;
use super::table::{Column, Label, Table};
use super::variable::{self, Variable};

/// A device below this is idle, as the alert `GpuAllocatedButIdle` has it.
const IDLE: &str = "0.01";

const NOTE: &str = "\
**Who holds a device** is what the kubelet says: the exporter needs `--kubernetes`, and \
`--kubernetes-enable-owner-labels` for owners. **Labels**: the queries work whether Prometheus \
honours the exporter's labels (`honorLabels: true`) or not, in which case it calls them \
`exported_namespace` and `exported_pod`. **Parts**: a MIG instance counts as its share of the \
memory of all instances of its board, and a device that several pods share in equal parts; \
energy, hours and cost are divided in the same way. **Utilisation and memory** are those of the \
device, also where pods share it; of MIG instances NVML tells it from Hopper on. **What pods use \
and spend** is counted by the exporter itself (`nvml_pod_…`), from second to second and by what \
each pod did: there MIG instances count by their slices, and energy of a shared device goes by use.";

pub(super) fn board(query: &Query<'static>) -> Board {
    let all = pods::held(query, Which::All);
    let mut variables = variable::of_pods(&all, &pods::held(query, Which::InNamespace));
    variables.push(Variable::Number {
        name: "price",
        label: "Price of a GPU-hour",
        about: "What a GPU costs an hour, in any currency.",
        value: "2.50",
    });
    Board {
        name: "workloads",
        title: "Workloads",
        about: "Who uses which GPUs: by namespace, pod and owner, with idle time, energy and cost.",
        since: "now-6h",
        variables,
        rows: vec![
            Row::new("In short", summary(query)),
            Row::new("By namespace", by_namespace(query)),
            Row::new("By pod", by_pod(query)),
            Row::new("What pods use and spend", spent::panels(query)),
            Row::new("Over time", over_time(query)),
            Row::new("By owner", by_owner(query)),
            Row::new("How this is counted", vec![Panel::note("How this is counted", NOTE)]),
        ],
    }
}

/// What the dashboard is made of, each for every device and holder that is chosen.
struct Held {
    /// 1.
    ones: String,
    /// How much of a board it is.
    parts: String,
    /// The same of devices that do nothing.
    idle: String,
    /// Power, by parts.
    power: String,
    utilisation: String,
}

impl Held {
    fn new(query: &Query<'static>, ones: String) -> Self {
        let parts = pods::parts(query, &ones);
        let utilisation = query.utilisation();
        let idle = format!(
            "{parts} and on (UUID, GPU_I_ID) max by (UUID, GPU_I_ID) ({utilisation}) < {IDLE}"
        );
        let power = pods::of_board(query, &parts, "DCGM_FI_DEV_POWER_USAGE");
        let utilisation = pods::of_held(&ones, &utilisation);
        Self { ones, parts, idle, power, utilisation }
    }

    fn chosen(query: &Query<'static>) -> Self {
        Self::new(query, pods::held(query, Which::Chosen))
    }
}

/// Hours in the range, of something that is counted at each moment.
fn hours(now: &str) -> String {
    format!("{} * $__range_s / 3600", mean_in_range(now))
}

/// Kilowatt-hours in the range, of watts.
fn kilowatt_hours(now: &str) -> String {
    format!("{} * $__range_s / 3600000", mean_in_range(now))
}

fn memory(query: &Query<'static>, held: &Held, by: &str) -> String {
    let of = |field| pods::of_held(&held.ones, &query.device(field));
    format!(
        "sum by ({by}) ({}) / sum by ({by}) ({})",
        of("DCGM_FI_DEV_FB_USED"),
        of("DCGM_FI_DEV_FB_TOTAL")
    )
}

fn summary(query: &Query<'static>) -> Vec<Panel> {
    let held = Held::chosen(query);
    let Held { ones, parts, idle, power, utilisation } = &held;
    let free = format!(
        "sum(max by (cluster, hostname, resource) ({}))",
        query.host("nvml_node_free_devices", "")
    );
    vec![
        Panel::stat(
            "Pods with GPUs",
            "Pods that hold a GPU, a MIG instance or a share of either.",
            format!("count(count by (cluster, namespace, pod) ({ones}))"),
        ),
        Panel::stat(
            "GPUs held",
            "Boards that these pods hold, MIG instances and shares as parts of them.",
            format!("sum({parts})"),
        )
        .decimals(2),
        Panel::stat(
            "Devices free",
            "GPUs, MIG instances and shares that nodes can still hand out, whatever is chosen \
             above.",
            free,
        ),
        Panel::stat(
            "Their utilisation",
            "Mean over the devices held of the share of time during which any kernel ran.",
            format!("avg({utilisation})"),
        )
        .share(),
        Panel::stat(
            "Held and idle",
            "Boards that are held and do nothing now, MIG instances and shares as parts of them. \
             GpuAllocatedButIdle, of severity info, names those that stay so for an hour.",
            format!("sum({idle}) or 0 * sum({parts})"),
        )
        .decimals(2),
        Panel::stat(
            "GPU-hours in range",
            "Boards held times hours held, in the range of time shown.",
            hours(&format!("sum({parts})")),
        )
        .decimals(1),
        Panel::stat(
            "Energy in range",
            "Energy that the boards held have drawn while they were held, by parts.",
            kilowatt_hours(&format!("sum({power})")),
        )
        .unit(Unit::KilowattHours)
        .decimals(2),
        Panel::stat(
            "Cost in range",
            "GPU-hours times the price of one, which is typed in above.",
            format!("{} * $price", hours(&format!("sum({parts})"))),
        )
        .decimals(2),
    ]
}

/// A row of figures for each set of labels.
fn figures(query: &Query<'static>, held: &Held, by: &str, table: Table) -> Table {
    let sum = |expr: &str| format!("sum by ({by}) ({expr})");
    let average = |expr: &str| format!("avg by ({by}) ({expr})");
    table
        .column(Column::new("GPUs", Unit::Count, sum(&held.parts)))
        .column(Column::new("Utilisation", Unit::Share, average(&held.utilisation)))
        .column(Column::new("Memory in use", Unit::Share, memory(query, held, by)))
        .column(Column::new("Power", Unit::Watts, sum(&held.power)))
        .column(Column::new("GPU-hours", Unit::Count, hours(&sum(&held.parts))))
        .column(Column::new("Idle GPU-hours", Unit::Count, hours(&sum(&held.idle))))
        .column(Column::new("Energy", Unit::KilowattHours, kilowatt_hours(&sum(&held.power))))
        .column(Column::new("Cost", Unit::Count, format!("{} * $price", hours(&sum(&held.parts)))))
}

const NAMESPACE: &[Label] = &[("cluster", "Cluster"), ("namespace", "Namespace")];
const POD: &[Label] = &[("cluster", "Cluster"), ("namespace", "Namespace"), ("pod", "Pod")];
const OWNER: &[Label] = &[
    ("cluster", "Cluster"),
    ("namespace", "Namespace"),
    ("owner_kind", "Kind"),
    ("owner_name", "Owner"),
];

const FIGURES: &str = "What is held now, and what was held, idle, drawn and to be paid in the \
                       range of time shown.";

fn by_namespace(query: &Query<'static>) -> Vec<Panel> {
    let held = Held::chosen(query);
    let table = Table::new(NAMESPACE, ("GPU-hours", true));
    let parts = format!("sum by (cluster, namespace) ({})", held.parts);
    vec![
        Panel::table("Namespaces", FIGURES, figures(query, &held, "cluster, namespace", table))
            .size(17, 8),
        Panel::ranking(
            "Cost by namespace",
            "GPU-hours in the range of time shown times the price of one, which is typed in above.",
        )
        .size(7, 8)
        .query(format!("{} * $price", hours(&parts)), "{{namespace}}"),
    ]
}

fn by_pod(query: &Query<'static>) -> Vec<Panel> {
    let held = Held::chosen(query);
    let table = Table::new(POD, ("GPU-hours", true));
    let labels = &[
        ("cluster", "Cluster"),
        ("hostname", "Host"),
        ("gpu", "GPU"),
        ("UUID", "UUID"),
        ("GPU_I_PROFILE", "MIG profile"),
        ("GPU_I_ID", "GPU instance"),
        ("namespace", "Namespace"),
        ("pod", "Pod"),
    ];
    let idle = format!("{} < {IDLE}", held.utilisation);
    let idle = Table::new(labels, ("Board", true))
        .column(Column::new("Board", Unit::Share, format!("{} and {idle}", held.parts)))
        .leads_to(&uid("detail", query.names()));
    vec![
        Panel::table("Pods", FIGURES, figures(query, &held, "cluster, namespace, pod", table))
            .size(24, 10),
        Panel::table(
            "Held and idle now",
            "Devices that a pod holds and that do nothing, with the part of the board that they \
             are. GpuAllocatedButIdle, of severity info, names those that stay so for an hour.",
            idle,
        )
        .size(24, 7),
    ]
}

fn over_time(query: &Query<'static>) -> Vec<Panel> {
    let held = Held::chosen(query);
    let sum = |expr: &str| format!("sum by (cluster, namespace) ({expr})");
    vec![
        Panel::stacked(
            "GPUs held by namespace",
            "Boards held, MIG instances and shares as parts of them.",
        )
        .query(sum(&held.parts), "{{namespace}}"),
        Panel::stacked("Idle GPUs by namespace", "Boards that are held and do nothing.")
            .query(sum(&held.idle), "{{namespace}}"),
        Panel::lines(
            "Utilisation by pod",
            "Mean over the pod's devices of the share of time during which any kernel ran.",
        )
        .share()
        .query(
            format!("avg by (cluster, namespace, pod) ({})", held.utilisation),
            "{{namespace}}/{{pod}}",
        ),
        Panel::lines("Memory by pod", "Memory in use, of all that the pod's devices have.")
            .share()
            .query(memory(query, &held, "cluster, namespace, pod"), "{{namespace}}/{{pod}}"),
        Panel::stacked("Power by namespace", "Power of the boards held, by parts.")
            .unit(Unit::Watts)
            .query(sum(&held.power), "{{namespace}}"),
        Panel::stacked(
            "Devices free by resource",
            "GPUs, MIG instances and shares that nodes can still hand out.",
        )
        .query(
            format!(
                "sum by (resource) (max by (cluster, hostname, resource) ({}))",
                query.host("nvml_node_free_devices", "")
            ),
            "{{resource}}",
        ),
    ]
}

fn by_owner(query: &Query<'static>) -> Vec<Panel> {
    let held = Held::new(query, pods::held_by_owner(query));
    let by = "cluster, namespace, owner_kind, owner_name";
    let table = Table::new(OWNER, ("GPU-hours", true));
    vec![
        Panel::table(
            "Owners",
            "The same by the Deployment, Job or StatefulSet that owns the pods. Needs \
             --kubernetes-enable-owner-labels; without, a namespace's pods are one row.",
            figures(query, &held, by, table),
        )
        .size(24, 8),
    ]
}
