//! Health: what is broken, XIDs, memory, throttling, links.

use super::board::{Board, Row, uid};
use super::detail::{GPU, held_by_reason};
use super::links;
use super::looks::{self, CRITICAL, FLAG_CRITICAL, FLAG_WARNING, RECOVERY, Unit, WARNING};
use super::overview::{self, explained};
use super::panel::Panel;
use super::query::{GPU_LABELS, Query, or_zero};
use super::table::{self, Column, Table};
use super::variable;

pub(super) fn board(query: &Query<'static>) -> Board {
    Board {
        name: "health",
        title: "Health",
        about: "What is broken or about to break: XIDs, memory errors, throttling, links.",
        since: "now-24h",
        variables: variable::basic(),
        rows: vec![
            Row::new("Is something broken", broken(query)),
            Row::new("XIDs", xids(query)),
            Row::new("GPUs that are down or to be recovered", down(query)),
            Row::new("Memory", memory(query)),
            Row::new("Clocks held down", throttling(query)),
            Row::new("Links", links::in_trouble(query)),
        ],
    }
}

/// GPUs of which a flag is set.
fn flagged(query: &Query<'static>, fields: &[&'static str]) -> String {
    let flags: Vec<String> =
        fields.iter().map(|field| format!("{} > 0", query.gpu(field))).collect();
    or_zero(&format!("count({})", flags.join(" or ")))
}

fn broken(query: &Query<'static>) -> Vec<Panel> {
    let mut panels: Vec<Panel> = overview::broken(query).into_iter().take(4).collect();
    panels.extend([
        Panel::stat(
            "Uncorrectable ECC",
            "GPUs that have had uncorrectable memory errors since their driver was loaded. Alert: GpuEccUncorrectable.",
            flagged(query, &["DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"]),
        )
        .steps(CRITICAL),
        Panel::stat(
            "Boards to return",
            "GPUs that could not remap a row, have too many SRAM errors, or memory that cannot be \
             repaired. Alerts: GpuRowRemapFailed, GpuSramEccThresholdExceeded, \
             GpuMemoryUnrepairable.",
            flagged(
                query,
                &[
                    "DCGM_FI_DEV_ROW_REMAP_FAILURE",
                    "DCGM_FI_DEV_THRESHOLD_SRM",
                    "DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG",
                ],
            ),
        )
        .steps(CRITICAL),
        Panel::stat(
            "Waiting for a reset",
            "GPUs that need a reset to remap a row or retire a page; work on them may go on. \
             Alerts: GpuRowRemapPending, GpuPageRetirementPending.",
            flagged(query, &["DCGM_FI_DEV_ROW_REMAP_PENDING", "DCGM_FI_DEV_RETIRED_PENDING"]),
        )
        .steps(WARNING),
        Panel::stat(
            "Outside the fabric",
            "GPUs that have not joined their NVLink fabric, or whose fabric is unhealthy. CUDA \
             does not start there. Alerts: GpuFabricNotReady, GpuFabricUnhealthy.",
            or_zero(&format!(
                "count({} > 0 != 3 or {} == 2)",
                query.gpu("DCGM_FI_DEV_FABRIC_MANAGER_STATUS"),
                query.gpu("DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY")
            )),
        )
        .steps(CRITICAL),
    ]);
    panels
}

/// GPUs and codes whose newest XID is in the step that a bar stands for. A counter's first
/// sample is no increase, and most codes begin with their first XID, so times are compared.
fn reported(query: &Query<'static>) -> String {
    let last = query.raw("nvml_xid_last_timestamp_seconds", "");
    explained(query, &format!("({last} > time() - $__interval_ms / 1000)"))
}

fn xids(query: &Query<'static>) -> Vec<Panel> {
    let last = query.raw("nvml_xid_last_timestamp_seconds", "");
    let counted = query.raw("DCGM_EXP_XID_ERRORS_TOTAL", "");
    let table = Table::new(overview::XID, ("Last", true))
        .column(Column::new(
            "Last",
            Unit::Time,
            format!("{} * 1000", explained(query, &format!("last_over_time({last}[$__range])"))),
        ))
        .column(Column::new("Count", Unit::Count, explained(query, &format!("({counted} > 0)"))))
        .leads_to(&uid("detail", query.names()));
    vec![
        Panel::bars(
            "XIDs by class",
            "When XIDs were reported: each bar counts GPUs and codes whose newest XID is in the \
             time it stands for. Classes are those of docs/xids.md: hardware, memory, nvlink, \
             driver, application and others.",
        )
        .query(format!("count by (class) ({})", reported(query)), "{{class}}"),
        Panel::bars("XIDs by code", "The same by code, with its name and what to do.").query(
            format!("count by (xid, name, action) ({})", reported(query)),
            "{{xid}} {{name}}: {{action}}",
        ),
        Panel::table(
            "XIDs by GPU and code",
            "Every code that a GPU has reported, newest first; the count is since its exporter \
             started. docs/xids.md explains codes, classes and actions. Severity critical and \
             warning fire alerts of that severity, GpuXidFatal and its like.",
            table,
        )
        .size(24, 9),
    ]
}

const REASON: &[table::Label] = &[
    ("cluster", "Cluster"),
    ("hostname", "Host"),
    ("gpu", "GPU"),
    ("UUID", "UUID"),
    ("reason", "Reason"),
];

const PART: &[table::Label] = &[
    ("cluster", "Cluster"),
    ("hostname", "Host"),
    ("gpu", "GPU"),
    ("UUID", "UUID"),
    ("health_watch", "Part"),
    ("health_error_code", "Because of"),
];

fn down(query: &Query<'static>) -> Vec<Panel> {
    let reasons =
        format!("max by ({GPU_LABELS}, reason) ({})", query.raw("nvml_exporter_device_down", ""));
    let by = format!("{GPU_LABELS}, health_watch, health_error_code");
    let verdicts = query.max(&by, "DCGM_EXP_GPU_HEALTH_STATUS", "");
    let parts = Table::new(PART, ("Verdict", true))
        .column(
            Column::new("Verdict", Unit::Text, format!("{verdicts} > 0")).mapped(looks::VERDICT),
        )
        .leads_to(&uid("detail", query.names()));
    vec![
        Panel::table(
            "Why GPUs are down",
            "Why each GPU that is down has no reading; empty when all have. \
             Alerts: GpuLost, GpuNotAnswering.",
            Table::facts(REASON, "Host", reasons),
        )
        .size(8, 8),
        Panel::table(
            "Parts that are not well",
            "Parts of GPUs that the exporter judges to be failing, or worth a warning, as DCGM \
             would; empty when all are well. Alert: GpuHealthCheckFailed.",
            parts,
        )
        .size(8, 8),
        Panel::states(
            "What the driver asks for",
            "Recovery action of each GPU: none, or what it needs before it works again, or works \
             safely. Alert: GpuRecoveryActionRequired.",
        )
        .size(8, 8)
        .mapped(RECOVERY)
        .query(query.gpu("DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION"), GPU),
    ]
}

/// Errors of each GPU in one row, for the detail dashboard.
pub(super) fn summary(query: &Query<'static>) -> Vec<Panel> {
    vec![
        Panel::table("XIDs", "Codes that these GPUs have reported in the range of time shown.", {
            overview::newest_xids(query)
        })
        .size(12, 8),
        Panel::table(
            "Memory errors",
            "Memory errors since the driver was loaded, and rows or pages taken out of use. The \
             health dashboard has more. Alerts: GpuEccUncorrectable, GpuRowRemapPending.",
            memory_errors(query),
        )
        .size(12, 8),
    ]
}

fn memory_errors(query: &Query<'static>) -> Table {
    let count = |title, field| Column::new(title, Unit::Count, query.gpu(field));
    Table::new(table::GPU, ("Uncorrected", true))
        .column(count("Corrected", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"))
        .column(count("Uncorrected", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL").steps(CRITICAL))
        .column(count("Rows remapped", "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"))
        .column(
            Column::new("Remap waits", Unit::Text, query.gpu("DCGM_FI_DEV_ROW_REMAP_PENDING"))
                .mapped(FLAG_WARNING),
        )
}

fn memory(query: &Query<'static>) -> Vec<Panel> {
    let count = |title, field| Column::new(title, Unit::Count, query.gpu(field));
    let flag =
        |title, field, mapping| Column::new(title, Unit::Text, query.gpu(field)).mapped(mapping);
    let table = memory_errors(query)
        .column(count("Corrected, for life", "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL"))
        .column(count("Uncorrected, for life", "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL"))
        .column(count("Rows remapped early", "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"))
        .column(flag("Remap failed", "DCGM_FI_DEV_ROW_REMAP_FAILURE", FLAG_CRITICAL))
        .column(
            count("Banks without spares", "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE").steps(WARNING),
        )
        .column(flag("SRAM threshold", "DCGM_FI_DEV_THRESHOLD_SRM", FLAG_CRITICAL))
        .column(count("Pages retired, corrected", "DCGM_FI_DEV_RETIRED_SBE"))
        .column(count("Pages retired, uncorrected", "DCGM_FI_DEV_RETIRED_DBE"))
        .column(flag("Retirement waits", "DCGM_FI_DEV_RETIRED_PENDING", FLAG_WARNING))
        .leads_to(&uid("detail", query.names()));
    vec![
        Panel::table(
            "Memory errors and repairs",
            "Errors since the driver was loaded and over the life of the board; rows remapped \
             (Ampere and newer) and pages retired (before). Alerts: GpuEccUncorrectable, \
             GpuRowRemapFailed, GpuRowRemapPending, GpuRowRemapSparesExhausted, \
             GpuSramEccThresholdExceeded, GpuPageRetirementPending.",
            table,
        )
        .size(24, 9),
        Panel::lines(
            "Corrected memory errors",
            "Errors per second that ECC has corrected, by GPU. They do no harm; a GPU with ever \
             more of them is ageing: GpuEccCorrectableHigh, of severity info.",
        )
        .unit(Unit::PerSecond)
        .query(query.rate(GPU_LABELS, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", ""), GPU),
        Panel::states(
            "ECC",
            "Whether ECC is on; where it is off, memory errors are neither seen nor corrected.",
        )
        .mapped(looks::ON_OFF)
        .query(query.gpu("DCGM_FI_DEV_ECC_CURRENT"), GPU),
    ]
}

fn throttling(query: &Query<'static>) -> Vec<Panel> {
    let heat = "reason=~\"thermal|sw_thermal|hw_thermal\"";
    let power = "reason=~\"power_cap|hw_power_brake\"";
    let legend = format!("{GPU} {{{{reason}}}}");
    vec![
        Panel::lines(
            "Held down by heat",
            "Share of time; empty while nothing is. Alerts: GpuThermalThrottling from 10 % on, GpuHardwareSlowdown for \
             hw_thermal.",
        )
        .share()
        .query(held_by_reason(query, heat), legend.clone()),
        Panel::lines(
            "Held down by power",
            "Share of time; empty while nothing is. A board at its limit is no fault; hw_power_brake is: alert \
             GpuPowerBrake.",
        )
        .share()
        .query(held_by_reason(query, power), legend),
    ]
}
