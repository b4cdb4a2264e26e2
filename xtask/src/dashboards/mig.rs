//! MIG: which instances there are, who holds them, how full they are.

use super::board::{Board, Row, uid};
use super::detail::{DEVICE, GPU, by_device};
use super::looks::{self, FLAG_WARNING, Unit, WARNING};
use super::panel::Panel;
use super::pods;
use super::query::{GPU_LABELS, Query, or_zero};
use super::table::{Column, Table};
use super::variable;

/// Only MIG instances.
const INSTANCE: &str = "GPU_I_ID!=\"\"";

const NOTE: &str = "\
A MIG instance has readings of its own for memory, and for XIDs that the driver attributes to it. \
Temperature, power, clocks, ECC and links are the board's: the exporter repeats them on each \
instance, as dcgm-exporter does, and the panels here show each board once. Utilisation of \
instances is the time during which their engines worked, which NVML tells from Hopper on; of A100 \
and A30 it has none. Sums of power over instances, as other dashboards have them, count a board up to seven \
times.";

pub(super) fn board(query: &Query<'static>) -> Board {
    Board {
        name: "mig",
        title: "MIG",
        about: "GPUs that are split into MIG instances: layout, holders, memory.",
        since: "now-1h",
        variables: variable::basic(),
        rows: vec![
            Row::new("Now", now(query)),
            Row::new("Instances", instances(query)),
            Row::new("Over time", over_time(query)),
            Row::new("Their boards", boards(query)),
            Row::new("What is whose", vec![Panel::note("What instances have of their own", NOTE)]),
        ],
    }
}

fn all_instances(query: &Query<'static>) -> String {
    format!(
        "max by ({GPU_LABELS}, GPU_I_PROFILE, GPU_I_ID, mig_uuid) ({})",
        query.raw("nvml_mig_instance_info", "")
    )
}

/// GPUs on which MIG is to be switched, and is not.
fn pending(query: &Query<'static>) -> String {
    format!("{} != {}", query.gpu("nvml_mig_mode_pending"), query.gpu("DCGM_FI_DEV_MIG_MODE"))
}

fn now(query: &Query<'static>) -> Vec<Panel> {
    let allocated = query.raw("nvml_device_allocated", INSTANCE);
    let used = query.max("UUID, GPU_I_ID", "DCGM_FI_DEV_FB_USED", INSTANCE);
    let total = query.max("UUID, GPU_I_ID", "DCGM_FI_DEV_FB_TOTAL", INSTANCE);
    vec![
        Panel::stat(
            "GPUs in MIG mode",
            "GPUs on which MIG is on.",
            or_zero(&format!("count({} == 1)", query.gpu("DCGM_FI_DEV_MIG_MODE"))),
        )
        .size(4, 4),
        Panel::stat(
            "Instances",
            "Compute instances on all GPUs.",
            or_zero(&format!("count({})", all_instances(query))),
        )
        .size(4, 4),
        Panel::stat(
            "MIG without instances",
            "MIG is on, and nothing was made of it: nobody can use such a GPU.",
            or_zero(&format!(
                "count({} == 1 unless on (UUID) {})",
                query.gpu("DCGM_FI_DEV_MIG_MODE"),
                all_instances(query)
            )),
        )
        .steps(looks::INFO)
        .size(4, 4),
        Panel::stat(
            "Held by pods",
            "MIG instances that a pod holds, of all. Needs the exporter's attribution \
             (--kubernetes).",
            format!("avg(max by (UUID, GPU_I_ID) ({allocated}))"),
        )
        .share()
        .size(4, 4),
        Panel::stat(
            "Memory in use",
            "Memory in use, of all that instances have.",
            format!("sum({used}) / sum({total})"),
        )
        .share()
        .size(4, 4),
        Panel::stat(
            "Changes that wait",
            "GPUs on which MIG is to be switched on or off with the next reset. \
             Alert: GpuMigModePending.",
            or_zero(&format!("count({})", pending(query))),
        )
        .steps(WARNING)
        .size(4, 4),
    ]
}

fn instances(query: &Query<'static>) -> Vec<Panel> {
    let device =
        |field| query.max("cluster, hostname, gpu, UUID, GPU_I_PROFILE, GPU_I_ID", field, INSTANCE);
    let labels = &[
        ("cluster", "Cluster"),
        ("hostname", "Host"),
        ("gpu", "GPU"),
        ("UUID", "UUID"),
        ("GPU_I_PROFILE", "Profile"),
        ("GPU_I_ID", "GPU instance"),
    ];
    let table = Table::new(labels, ("Host", false))
        .column(Column::new("Memory", Unit::Bytes, device("DCGM_FI_DEV_FB_TOTAL")))
        .column(Column::new("In use", Unit::Bytes, device("DCGM_FI_DEV_FB_USED")))
        .column(Column::new(
            "Share",
            Unit::Share,
            format!("{} / {}", device("DCGM_FI_DEV_FB_USED"), device("DCGM_FI_DEV_FB_TOTAL")),
        ))
        .column(Column::new("Utilisation", Unit::Share, device("DCGM_FI_PROF_GR_ENGINE_ACTIVE")))
        .column(Column::new(
            "Compute instances",
            Unit::Count,
            format!(
                "count by (cluster, hostname, gpu, UUID, GPU_I_PROFILE, GPU_I_ID) ({})",
                all_instances(query)
            ),
        ))
        .column(
            Column::new(
                "Held",
                Unit::Text,
                by_device(&query.raw("nvml_device_allocated", INSTANCE)),
            )
            .mapped(looks::HELD),
        )
        .leads_to(&uid("detail", query.names()));
    vec![
        Panel::table(
            "Every instance",
            "Every MIG instance with its memory and whether a pod holds it.",
            table,
        )
        .size(24, 10),
        pods::holders(query, INSTANCE),
    ]
}

fn over_time(query: &Query<'static>) -> Vec<Panel> {
    let device =
        |field| query.max("cluster, hostname, gpu, UUID, GPU_I_PROFILE, GPU_I_ID", field, INSTANCE);
    let allocated = |state: &str| {
        format!(
            "count by (GPU_I_PROFILE) (max by (UUID, GPU_I_PROFILE, GPU_I_ID) ({}) == {state})",
            query.raw("nvml_device_allocated", INSTANCE)
        )
    };
    vec![
        Panel::lines("Memory in use by instance", "Of the memory that the instance has.")
            .share()
            .query(
                format!("{} / {}", device("DCGM_FI_DEV_FB_USED"), device("DCGM_FI_DEV_FB_TOTAL")),
                DEVICE,
            ),
        Panel::lines(
            "Utilisation by instance",
            "Share of time during which the instance's engines worked, from Hopper on; of A100 \
             and A30 NVML has none.",
        )
        .share()
        .query(device("DCGM_FI_PROF_GR_ENGINE_ACTIVE"), DEVICE),
        Panel::stacked("Instances by profile", "GPU instances, by the profile they were made of.")
            .query(
                format!(
                    "count by (GPU_I_PROFILE) (max by (UUID, GPU_I_PROFILE, GPU_I_ID) ({}))",
                    query.raw("nvml_mig_instance_info", "")
                ),
                "{{GPU_I_PROFILE}}",
            ),
        Panel::stacked(
            "Held and free by profile",
            "MIG instances that a pod holds, and those that nobody holds. Needs the exporter's \
             attribution (--kubernetes).",
        )
        .query(allocated("1"), "held: {{GPU_I_PROFILE}}")
        .query(allocated("0"), "free: {{GPU_I_PROFILE}}"),
    ]
}

/// A reading of boards in MIG mode, each once.
fn of_split(query: &Query<'static>, field: &'static str) -> String {
    format!("{} and on (UUID) {} == 1", query.gpu(field), query.gpu("DCGM_FI_DEV_MIG_MODE"))
}

fn boards(query: &Query<'static>) -> Vec<Panel> {
    vec![
        Panel::lines(
            "Power of boards in MIG mode",
            "Power that the whole board draws, once for each board. What each instance draws is \
             not known.",
        )
        .unit(Unit::Watts)
        .size(8, 8)
        .query(of_split(query, "DCGM_FI_DEV_POWER_USAGE"), GPU)
        .limit(of_split(query, "DCGM_FI_DEV_ENFORCED_POWER_LIMIT"), "power", GPU),
        Panel::lines(
            "Temperature of boards in MIG mode",
            "Temperature of the whole GPU, below the temperature at which hardware slows it down.",
        )
        .unit(Unit::Celsius)
        .free_scale()
        .size(8, 8)
        .query(of_split(query, "DCGM_FI_DEV_GPU_TEMP"), GPU)
        .limit(of_split(query, "DCGM_FI_DEV_SLOWDOWN_TEMP"), "slowdown", GPU),
        Panel::states(
            "MIG changes that wait",
            "Whether MIG is to be switched on or off with the next reset. \
             Alert: GpuMigModePending, after 15 minutes.",
        )
        .size(8, 8)
        .mapped(FLAG_WARNING)
        .query(
            format!(
                "{} != bool {}",
                query.gpu("nvml_mig_mode_pending"),
                query.gpu("DCGM_FI_DEV_MIG_MODE")
            ),
            GPU,
        ),
    ]
}
