//! The fleet: whether something is broken, how much there is, who is hot, what is installed.

use super::board::{Board, Row, uid};
use super::looks::{self, CRITICAL, Level, Unit, WARNING};
use super::panel::Panel;
use super::query::{DEVICE, GPU_LABELS, Query, or_zero};
use super::table::{self, Column, Table};
use super::variable;

/// Lists end after this many.
const MOST: &str = "10";

pub(super) fn board(query: &Query<'static>) -> Board {
    Board {
        name: "overview",
        title: "Overview",
        about: "All GPUs: what is broken, how much is used, what deserves attention.",
        since: "now-1h",
        variables: variable::basic(),
        rows: vec![
            Row::new("Is something broken", broken(query)),
            Row::new("The fleet", fleet(query)),
            Row::new("Over time", over_time(query)),
            Row::new("What deserves attention", attention(query)),
            Row::new("What is installed", inventory(query)),
        ],
    }
}

/// How many alerts of a severity fire.
fn firing(severity: &str) -> String {
    or_zero(&format!(
        "count(ALERTS{{alertname=~\"(Gpu|Nvml).+\",alertstate=\"firing\",\
         severity=\"{severity}\",cluster=~\"$cluster\"}})"
    ))
}

/// Stats that are red or orange when an alert of that severity fires.
pub(super) fn broken(query: &Query<'static>) -> Vec<Panel> {
    vec![
        Panel::stat(
            "Critical alerts",
            "Alerts of severity critical that fire now, of those that come with the exporter. \
             Prometheus must have loaded its rules; the stats beside this one do not need them.",
            firing("critical"),
        )
        .steps(CRITICAL),
        Panel::stat(
            "Warnings",
            "Alerts of severity warning that fire now, of those that come with the exporter.",
            firing("warning"),
        )
        .steps(WARNING),
        Panel::stat(
            "GPUs down",
            "GPUs without readings: lost, hanging or failing. Alerts: GpuLost, GpuNotAnswering. \
             The health dashboard has the reasons.",
            or_zero(&format!(
                "sum(max by ({GPU_LABELS}) ({}))",
                query.raw("nvml_exporter_device_down", "reason!~\"starting|library\"")
            )),
        )
        .steps(CRITICAL),
        Panel::stat(
            "GPUs to recover",
            "GPUs for which the driver asks for a reset or a reboot. \
             Alert: GpuRecoveryActionRequired.",
            or_zero(&format!("count({} > 0)", query.gpu("DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION"))),
        )
        .steps(CRITICAL),
        Panel::stat(
            "Nodes without NVML",
            "Nodes whose driver is missing, broken or gone; nodes that have no GPU do not count. \
             Alerts: NvmlUnavailable, GpuDriverLibraryMismatch.",
            or_zero(&format!(
                "sum(max by (cluster, hostname) ({}))",
                query.host("nvml_down", "reason!~\"no_gpu|starting\"")
            )),
        )
        .steps(CRITICAL),
        Panel::stat(
            "Exporters down",
            "Targets that Prometheus cannot scrape. Alert: NvmlExporterDown.",
            or_zero(&format!(
                "count(max by (cluster, job, instance) ({}) == 0)",
                query.target("up", "")
            )),
        )
        .steps(WARNING),
        Panel::stat(
            "Critical XIDs",
            "XIDs of severity critical in the last 15 minutes, by GPU and code. \
             Alerts: GpuXidFatal, GpuXidUncontainedMemoryError, GpuXidRowRemapFailed.",
            or_zero(&critical_xids(query)),
        )
        .steps(CRITICAL),
        Panel::stat(
            "Slowed by heat",
            "GPUs whose clocks heat has held down for more than a tenth of the last 5 minutes. \
             Alert: GpuThermalThrottling.",
            or_zero(&format!("count({} > 0.1)", held_by_heat(query, "5m"))),
        )
        .steps(WARNING),
    ]
}

/// GPUs and codes of the last 15 minutes for which a critical alert fires.
fn critical_xids(query: &Query<'static>) -> String {
    let last = query.raw("nvml_xid_last_timestamp_seconds", "");
    let info = query.target("nvml_xid_info", "severity=\"critical\"");
    format!(
        "count(count by (cluster, hostname, gpu, UUID, xid) (\
         (time() - last_over_time({last}[15m]) < 900) \
         and on (cluster, job, instance, xid) {info}))"
    )
}

/// Share of time for which heat holds a GPU's clocks down. Boards that do not count it are asked
/// how things were at each reading.
pub(super) fn held_by_heat(query: &Query<'static>, window: &str) -> String {
    let heat = "reason=~\"thermal|sw_thermal|hw_thermal\"";
    let counted = query.raw("nvml_clocks_event_seconds_total", heat);
    let seen = query.raw("nvml_clocks_event_reason", heat);
    format!(
        "(max by ({GPU_LABELS}) (rate({counted}[{window}])) \
         or max by ({GPU_LABELS}) (avg_over_time({seen}[{window}])))"
    )
}

fn fleet(query: &Query<'static>) -> Vec<Panel> {
    let seen = query.raw("nvml_exporter_device_up", "");
    let used = query.device("DCGM_FI_DEV_FB_USED");
    let total = query.device("DCGM_FI_DEV_FB_TOTAL");
    vec![
        Panel::stat(
            "GPUs",
            "GPUs that exporters have seen since they started, those that are down included.",
            format!("count(max by ({GPU_LABELS}) ({seen}))"),
        ),
        Panel::stat(
            "Held by pods",
            "GPUs and MIG instances that a pod holds, of all that there are. \
             Needs the exporter's attribution (--kubernetes).",
            format!("avg(max by ({DEVICE}) ({}))", query.raw("nvml_device_allocated", "")),
        )
        .share(),
        Panel::stat(
            "Mean utilisation",
            "Mean over all GPUs of the share of time during which any kernel ran. MIG \
             instances count by the time during which their engines worked, from Hopper on; \
             before, NVML has no utilisation of them.",
            format!("avg({})", query.utilisation()),
        )
        .share(),
        Panel::stat(
            "Memory in use",
            "Device memory in use, of all that GPUs and MIG instances have.",
            format!("sum({used}) / sum({total})"),
        )
        .share(),
        Panel::stat(
            "Power",
            "Power that all boards draw. Each board counts once, however many MIG instances and \
             pods it has.",
            format!("sum({})", query.gpu("DCGM_FI_DEV_POWER_USAGE")),
        )
        .unit(Unit::Watts),
        Panel::stat(
            "Energy in range",
            "Energy that all boards have drawn in the range of time shown. Boards before Volta, \
             and many GeForce boards, do not count it.",
            format!(
                "sum({}) / 3600000",
                query.grown(GPU_LABELS, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")
            ),
        )
        .unit(Unit::KilowattHours)
        .decimals(1),
        Panel::stat(
            "MIG instances",
            "MIG compute instances on all GPUs.",
            or_zero(&format!(
                "count(max by (mig_uuid) ({}))",
                query.raw("nvml_mig_instance_info", "")
            )),
        ),
        Panel::stat(
            "Driver versions",
            "Versions of the driver in use. More than one for a day: alert GpuDriverVersionSkew.",
            format!("count(count by (driver_version) ({}))", query.host("nvml_driver_info", "")),
        )
        .steps(&[(None, Level::Good), (Some(2.0), Level::Info)]),
    ]
}

fn over_time(query: &Query<'static>) -> Vec<Panel> {
    let used = query.device("DCGM_FI_DEV_FB_USED");
    let total = query.device("DCGM_FI_DEV_FB_TOTAL");
    let allocated = format!(
        "max by (cluster, hostname, resource) ({})",
        query.host("nvml_node_allocated_devices", "")
    );
    let free = format!(
        "max by (cluster, hostname, resource) ({})",
        query.host("nvml_node_free_devices", "")
    );
    vec![
        Panel::lines(
            "Utilisation by host",
            "Mean over a host's GPUs of the share of time during which any kernel ran.",
        )
        .share()
        .query(format!("avg by (cluster, hostname) ({})", query.utilisation()), "{{hostname}}"),
        Panel::stacked("Power by host", "Power that a host's boards draw, each board once.")
            .unit(Unit::Watts)
            .query(
                format!("sum by (cluster, hostname) ({})", query.gpu("DCGM_FI_DEV_POWER_USAGE")),
                "{{hostname}}",
            ),
        Panel::stacked(
            "Devices held and free",
            "Devices that Kubernetes can hand out, by resource: held by pods, and free. Shares of \
             shared devices count one by one. Needs the exporter's attribution (--kubernetes).",
        )
        .query(format!("sum by (resource) ({allocated})"), "held: {{resource}}")
        .query(format!("sum by (resource) ({free})"), "free: {{resource}}"),
        Panel::lines(
            "Memory by host",
            "Device memory in use, of all that the host's GPUs and MIG instances have.",
        )
        .share()
        .query(
            format!("sum by (cluster, hostname) ({used}) / sum by (cluster, hostname) ({total})"),
            "{{hostname}}",
        ),
    ]
}

fn attention(query: &Query<'static>) -> Vec<Panel> {
    vec![
        Panel::table(
            "Hottest GPUs",
            "The ten GPUs closest to the temperature at which their hardware slows them down, \
             which each board tells of itself. Alert: GpuTemperatureHigh, from 3 °C on. \
             A click leads to the GPU.",
            hottest(query),
        )
        .size(12, 9),
        Panel::table(
            "Newest XIDs",
            "What the driver has reported in the range of time shown. XIDs of severity info are \
             as a rule the application's fault. docs/xids.md explains each code.",
            newest_xids(query),
        )
        .size(12, 9),
        Panel::lines(
            "GPUs seen by host",
            "GPUs that the host's exporter has seen. A step down is a GPU that did not come back \
             after a restart. Alert: GpuMissing.",
        )
        .query(
            format!(
                "count by (cluster, hostname) (max by ({GPU_LABELS}) ({}))",
                query.raw("nvml_exporter_device_up", "")
            ),
            "{{hostname}}",
        ),
        Panel::lines(
            "Time slowed by heat",
            "Share of time for which heat has held the clocks down, the worst ten GPUs. \
             Alert: GpuThermalThrottling, from 10 % on.",
        )
        .share()
        .query(
            format!("topk({MOST}, {})", held_by_heat(query, "$__rate_interval")),
            "{{hostname}}/{{gpu}}",
        ),
    ]
}

fn hottest(query: &Query<'static>) -> Table {
    let temperature = query.gpu("DCGM_FI_DEV_GPU_TEMP");
    let slowdown = query.gpu("DCGM_FI_DEV_SLOWDOWN_TEMP");
    let margin = format!("({slowdown} > 0) - {temperature}");
    let closest = format!("bottomk({MOST}, {margin})");
    let of_these = |expr: String| format!("{expr} and {closest}");
    Table::new(table::GPU, ("Left", false))
        .column(Column::new("Left", Unit::Celsius, closest.clone()).steps(&[
            (None, Level::Warning),
            // The alert fires at 3 °C.
            (Some(3.001), Level::Good),
        ]))
        .column(Column::new("Temperature", Unit::Celsius, of_these(temperature)))
        .column(Column::new("Slowdown", Unit::Celsius, of_these(slowdown)))
        .column(Column::new("Power", Unit::Watts, of_these(query.gpu("DCGM_FI_DEV_POWER_USAGE"))))
        .leads_to(&uid("detail", query.names()))
}

/// The labels of an XID.
pub(super) const XID: &[table::Label] = &[
    ("cluster", "Cluster"),
    ("hostname", "Host"),
    ("gpu", "GPU"),
    ("UUID", "UUID"),
    ("GPU_I_ID", "GPU instance"),
    ("xid", "XID"),
    ("name", "Name"),
    ("class", "Class"),
    ("severity", "Severity"),
    ("action", "Action"),
];

const XID_LABELS: &str =
    "cluster, hostname, gpu, UUID, GPU_I_ID, xid, name, class, severity, action";

/// XIDs with what each code means, from the exporter that reported it. One that has started anew
/// since may no longer know a code; it is shown without.
pub(super) fn explained(query: &Query<'static>, expr: &str) -> String {
    let info = query.target("nvml_xid_info", "");
    let same = "on (cluster, job, instance, xid)";
    format!(
        "max by ({XID_LABELS}) ({expr} * {same} group_left (name, class, severity, action) {info} \
         or ({expr} unless {same} {info}))"
    )
}

pub(super) fn newest_xids(query: &Query<'static>) -> Table {
    let last = query.raw("nvml_xid_last_timestamp_seconds", "");
    let time = explained(query, &format!("last_over_time({last}[$__range])"));
    Table::new(XID, ("Last", true))
        .column(Column::new("Last", Unit::Time, format!("{time} * 1000")))
        .leads_to(&uid("detail", query.names()))
}

fn inventory(query: &Query<'static>) -> Vec<Panel> {
    let info = query.raw("nvml_device_info", "");
    let drivers = format!(
        "max by (cluster, hostname, driver_version, cuda_version) ({})",
        query.host("nvml_driver_info", "")
    );
    let models = format!(
        "count by (model_name, architecture, driver_version, cuda_version) (\
         max by ({GPU_LABELS}, model_name, architecture) ({info}) \
         * on (cluster, hostname) group_left (driver_version, cuda_version) {drivers})"
    );
    let hosts = Table::new(&[("cluster", "Cluster"), ("hostname", "Host")], ("Host", false))
        .column(Column::new(
            "GPUs",
            Unit::Count,
            format!(
                "count by (cluster, hostname) (max by ({GPU_LABELS}) ({}))",
                query.raw("nvml_exporter_device_up", "")
            ),
        ))
        .column(
            Column::new(
                "Down",
                Unit::Count,
                format!(
                    "count by (cluster, hostname) (max by ({GPU_LABELS}) ({0})) \
                 - sum by (cluster, hostname) (max by ({GPU_LABELS}) ({0}))",
                    query.raw("nvml_exporter_device_up", "")
                ),
            )
            .steps(looks::INFO),
        )
        .column(Column::new(
            "Utilisation",
            Unit::Share,
            format!("avg by (cluster, hostname) ({})", query.utilisation()),
        ))
        .column(Column::new(
            "Power",
            Unit::Watts,
            format!("sum by (cluster, hostname) ({})", query.gpu("DCGM_FI_DEV_POWER_USAGE")),
        ));
    vec![
        Panel::table(
            "Models and drivers",
            "GPUs by model, and by the driver of their node.",
            Table::new(
                &[
                    ("model_name", "Model"),
                    ("architecture", "Architecture"),
                    ("driver_version", "Driver"),
                    ("cuda_version", "CUDA"),
                ],
                ("GPUs", true),
            )
            .column(Column::new("GPUs", Unit::Count, models)),
        )
        .size(12, 8),
        Panel::table("Hosts", "What each host has, and how much of it is used.", hosts).size(12, 8),
    ]
}
