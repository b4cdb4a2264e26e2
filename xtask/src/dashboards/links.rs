//! Links of GPUs to hosts and to one another: down, narrow, in error.

use super::board::uid;
use super::detail::GPU;
use super::looks::{Level, Mapping, Unit};
use super::panel::Panel;
use super::query::{GPU_LABELS, Query};
use super::table::{self, Column, Table};

/// How far a GPU has come in joining the fabric.
const FABRIC: &[Mapping] = &[
    (0, "no fabric", Level::Plain),
    (1, "not started", Level::Critical),
    (2, "in progress", Level::Critical),
    (3, "joined", Level::Good),
    (4, "failed", Level::Critical),
];

/// Links of each GPU that are up. Links call the GPU's UUID `gpu_uuid`.
pub(super) fn up(query: &Query<'static>) -> String {
    format!(
        "sum by (cluster, hostname, gpu, gpu_uuid) \
         (max by (cluster, hostname, gpu, gpu_uuid, nvlink) ({}))",
        query.raw("nvml_nvlink_up", "")
    )
}

/// Errors per second, of whichever of these families the board counts: the others are 0, or not
/// there. A rate has no name, so each gets a label in its place.
fn whichever(query: &Query<'static>, fields: &[&'static str]) -> String {
    let rates: Vec<String> = fields
        .iter()
        .map(|field| {
            let raw = query.raw(field, "");
            let name = query.name(field);
            format!(
                "label_replace(rate({raw}[$__rate_interval]), \"family\", \"{name}\", \"\", \"\")"
            )
        })
        .collect();
    format!("max by ({GPU_LABELS}) ({})", rates.join(" or "))
}

/// Links in trouble, for the dashboard about health.
pub(super) fn in_trouble(query: &Query<'static>) -> Vec<Panel> {
    let mut panels = pcie(query);
    panels.extend(nvlink(query));
    panels
}

fn pcie(query: &Query<'static>) -> Vec<Panel> {
    let narrow = format!(
        "{} < {}",
        query.gpu("DCGM_FI_DEV_PCIE_LINK_WIDTH"),
        query.gpu("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH")
    );
    let narrow = Table::new(table::GPU, ("Lanes", false))
        .column(Column::new("Lanes", Unit::Count, narrow.clone()))
        .column(Column::new(
            "Could be",
            Unit::Count,
            format!("{} and ({narrow})", query.gpu("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH")),
        ))
        .leads_to(&uid("detail", query.names()));
    vec![
        Panel::lines(
            "PCIe errors",
            "Packets sent again and errors corrected, per second. Alert: GpuPcieReplaysHigh, by \
             what the link may have.",
        )
        .unit(Unit::PerSecond)
        .query(
            query.rate(GPU_LABELS, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", ""),
            format!("replays {GPU}"),
        )
        .query(
            query.rate(GPU_LABELS, "DCGM_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS", ""),
            format!("correctable {GPU}"),
        ),
        Panel::table(
            "PCIe links with too few lanes",
            "GPUs whose link has fewer lanes than GPU and slot can have; empty when none has. \
             Alert: GpuPcieLinkDegraded.",
            narrow,
        )
        .size(12, 8),
    ]
}

fn nvlink(query: &Query<'static>) -> Vec<Panel> {
    vec![
        Panel::lines(
            "NVLink errors",
            "Replays, recoveries and CRC errors per second over all links, of whichever families \
             the board counts. Alert: GpuNvlinkErrors.",
        )
        .unit(Unit::PerSecond)
        .query(
            whichever(
                query,
                &[
                    "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
                    "DCGM_FI_DEV_NVLINK_ERROR_DL_REPLAY",
                ],
            ),
            format!("replays {GPU}"),
        )
        .query(
            whichever(
                query,
                &[
                    "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
                    "DCGM_FI_DEV_NVLINK_ERROR_DL_RECOVERY",
                    "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS",
                ],
            ),
            format!("recoveries {GPU}"),
        )
        .query(
            whichever(
                query,
                &[
                    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
                    "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
                    "DCGM_FI_DEV_NVLINK_ERROR_DL_CRC",
                ],
            ),
            format!("CRC {GPU}"),
        ),
        Panel::lines(
            "NVLinks up",
            "Links that are up. Fewer than a GPU's siblings have: alert GpuNvlinkDown. Boards \
             without a bridge, and those in MIG mode, have none.",
        )
        .query(up(query), GPU),
        Panel::states(
            "NVLink fabric",
            "How far each GPU has come in joining its fabric; CUDA starts once it has. \
             Alerts: GpuFabricNotReady, GpuFabricUnhealthy.",
        )
        .size(24, 7)
        .mapped(FABRIC)
        .query(query.gpu("DCGM_FI_DEV_FABRIC_MANAGER_STATUS"), GPU),
    ]
}
