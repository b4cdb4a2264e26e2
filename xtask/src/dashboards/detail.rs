//! A node's GPUs one by one: use, heat, power, clocks, links, and who holds them.

use super::board::{Board, Row};
use super::health;
use super::links;
use super::looks::{Level, Mapping, Unit};
use super::panel::Panel;
use super::pods;
use super::query::{DEVICE_LABELS, GPU_LABELS, Query};
use super::table::Table;
use super::variable;

/// A GPU, and a GPU or MIG instance, in a legend.
pub(super) const GPU: &str = "{{hostname}}/{{gpu}}";
pub(super) const DEVICE: &str = "{{hostname}}/{{gpu}} {{GPU_I_PROFILE}} {{GPU_I_ID}}";

/// Reasons for lower clocks other than that there is nothing to do.
const NOT_IDLE: &str = "reason!~\"gpu_idle|low_utilization\"";

/// A reason for lower clocks is there or not.
const HELD: &[Mapping] = &[(0, "no", Level::Good), (1, "yes", Level::Info)];

pub(super) fn board(query: &Query<'static>) -> Board {
    Board {
        name: "detail",
        title: "Node and GPU",
        about: "The GPUs of a node one by one. Choose a host, then a GPU.",
        since: "now-1h",
        variables: variable::of_host(),
        rows: vec![
            Row::new("Which GPUs these are", identity(query)),
            Row::new("Use", usage(query)),
            Row::new("Heat and power", heat(query)),
            Row::new("Clocks", clocks(query)),
            Row::new("Links", traffic(query)),
            Row::new("Errors", health::summary(query)),
            Row::new("Who holds them", vec![pods::holders(query, "")]),
        ],
    }
}

fn identity(query: &Query<'static>) -> Vec<Panel> {
    let facts = "cluster, hostname, gpu, UUID, model_name, pci_bus_id, serial, \
                 board_part_number, vbios_version, inforom_image_version";
    let drivers = format!(
        "max by (cluster, hostname, driver_version) ({})",
        query.host("nvml_driver_info", "")
    );
    let expr = format!(
        "max by ({facts}) ({}) * on (cluster, hostname) group_left (driver_version) {drivers}",
        query.raw("nvml_device_info", "")
    );
    let columns = &[
        ("cluster", "Cluster"),
        ("hostname", "Host"),
        ("gpu", "GPU"),
        ("model_name", "Model"),
        ("UUID", "UUID"),
        ("pci_bus_id", "PCI address"),
        ("serial", "Serial"),
        ("board_part_number", "Part number"),
        ("driver_version", "Driver"),
        ("vbios_version", "VBIOS"),
        ("inforom_image_version", "InfoROM"),
    ];
    vec![
        Panel::table(
            "GPUs",
            "What each GPU says of itself; what it does not say is left empty.",
            Table::facts(columns, "GPU", expr),
        )
        .size(24, 8),
    ]
}

fn usage(query: &Query<'static>) -> Vec<Panel> {
    let engines = |field| query.gpu(field);
    vec![
        Panel::lines(
            "Utilisation",
            "Share of time during which any kernel ran. 100 % does not mean that all of the GPU \
             was busy. Of MIG instances it is the time during which their engines worked, from \
             Hopper on; before, NVML has none.",
        )
        .share()
        .query(query.utilisation(), DEVICE),
        Panel::lines("Memory in use", "Device memory in use, below what there is.")
            .unit(Unit::Bytes)
            .query(query.device("DCGM_FI_DEV_FB_USED"), DEVICE)
            .limit(query.device("DCGM_FI_DEV_FB_TOTAL"), "size", DEVICE),
        Panel::lines(
            "Memory traffic",
            "Share of time during which device memory was read or written.",
        )
        .share()
        .size(8, 8)
        .query(query.gpu("DCGM_FI_DEV_MEM_COPY_UTIL"), GPU),
        Panel::lines(
            "Tensor cores and memory",
            "Share of cycles in which tensor cores worked, and in which device memory sent or \
             received data: how well a busy GPU is used. From Hopper on, MIG instances too.",
        )
        .share()
        .size(8, 8)
        .query(query.device("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"), format!("tensor {DEVICE}"))
        .query(query.device("DCGM_FI_PROF_DRAM_ACTIVE"), format!("memory {DEVICE}")),
        Panel::lines(
            "Video engines",
            "Share of time during which the video encoder and decoder worked.",
        )
        .share()
        .size(8, 8)
        .query(engines("DCGM_FI_DEV_ENC_UTIL"), format!("encoder {GPU}"))
        .query(engines("DCGM_FI_DEV_DEC_UTIL"), format!("decoder {GPU}")),
    ]
}

fn heat(query: &Query<'static>) -> Vec<Panel> {
    let known = |field| format!("{} > 0", query.gpu(field));
    vec![
        Panel::lines(
            "Temperature",
            "Temperature of the GPU core. The dashed lines are what this board tells of itself: \
             from the one on software slows the clocks, from the other hardware does. \
             Alert: GpuTemperatureHigh, 3 °C below the slowdown.",
        )
        .unit(Unit::Celsius)
        .free_scale()
        .query(query.gpu("DCGM_FI_DEV_GPU_TEMP"), GPU)
        .limit(known("DCGM_FI_DEV_GPU_MAX_OP_TEMP"), "operating", GPU)
        .limit(known("DCGM_FI_DEV_SLOWDOWN_TEMP"), "slowdown", GPU),
        Panel::lines(
            "Memory temperature",
            "Temperature of the device memory, on boards that measure it, below the one from \
             which the board slows its clocks. Alert: GpuMemoryTemperatureHigh.",
        )
        .unit(Unit::Celsius)
        .free_scale()
        .query(query.gpu("DCGM_FI_DEV_MEMORY_TEMP"), GPU)
        .limit(known("DCGM_FI_DEV_MEM_MAX_OP_TEMP"), "operating", GPU),
        Panel::lines(
            "Power",
            "Power that the board draws, and the limit in force. A board at its limit runs as \
             fast as that allows: GpuPowerCapped is of severity info.",
        )
        .unit(Unit::Watts)
        .query(query.gpu("DCGM_FI_DEV_POWER_USAGE"), GPU)
        .limit(query.gpu("DCGM_FI_DEV_ENFORCED_POWER_LIMIT"), "power", GPU),
        Panel::lines(
            "Distance to slowdown",
            "Degrees left until hardware slows the clocks: the board's own slowdown temperature \
             less its temperature, or the distance that newer boards tell.",
        )
        .unit(Unit::Celsius)
        .free_scale()
        .query(
            format!(
                "({}) - {} or {} > 0",
                known("DCGM_FI_DEV_SLOWDOWN_TEMP"),
                query.gpu("DCGM_FI_DEV_GPU_TEMP"),
                query.gpu("DCGM_FI_DEV_GPU_TEMP_LIMIT")
            ),
            GPU,
        ),
    ]
}

/// Share of time for which each reason holds the clocks down, of those that do. Boards that do not count it are
/// asked how things were at each reading.
pub(super) fn held_by_reason(query: &Query<'static>, reasons: &str) -> String {
    let by = format!("{GPU_LABELS}, reason");
    let counted = query.rate(&by, "nvml_clocks_event_seconds_total", reasons);
    let seen = query.raw("nvml_clocks_event_reason", reasons);
    format!("({counted} or max by ({by}) (avg_over_time({seen}[$__rate_interval]))) > 0")
}

fn clocks(query: &Query<'static>) -> Vec<Panel> {
    let by = format!("{GPU_LABELS}, reason");
    let reason = query.raw("nvml_clocks_event_reason", NOT_IDLE);
    vec![
        Panel::lines("SM clock", "Frequency of the streaming multiprocessors, and the highest.")
            .unit(Unit::Hertz)
            .query(query.gpu("DCGM_FI_DEV_SM_CLOCK"), GPU)
            .limit(query.gpu("DCGM_FI_DEV_MAX_SM_CLOCK"), "highest", GPU),
        Panel::lines("Memory clock", "Frequency of the device memory.")
            .unit(Unit::Hertz)
            .query(query.gpu("DCGM_FI_DEV_MEM_CLOCK"), GPU),
        Panel::states(
            "Why clocks are held down",
            "Reasons for lower clocks that the GPU gave at some time in the range shown, idleness \
             aside. Alerts look at how much of the time a reason holds: GpuThermalThrottling, \
             GpuHardwareSlowdown, GpuPowerBrake.",
        )
        .mapped(HELD)
        .query(
            format!(
                "max by ({by}) ({reason}) and on (cluster, hostname, gpu, UUID, reason) \
                 (max by ({by}) (max_over_time({reason}[$__range])) > 0)"
            ),
            format!("{GPU} {{{{reason}}}}"),
        ),
        Panel::lines(
            "Time held down, by reason",
            "Share of time for which each reason has held the clocks down, idleness aside; empty \
             while none does. Reasons overlap, so shares may add up to more than 100 %.",
        )
        .share()
        .query(held_by_reason(query, NOT_IDLE), format!("{GPU} {{{{reason}}}}")),
    ]
}

fn traffic(query: &Query<'static>) -> Vec<Panel> {
    let moved = |name| query.rate(GPU_LABELS, name, "");
    vec![
        Panel::lines("PCIe traffic", "Data that the GPU sends and receives over PCIe.")
            .unit(Unit::BytesPerSecond)
            .query(moved("nvml_pcie_tx_bytes_total"), format!("sent {GPU}"))
            .query(moved("nvml_pcie_rx_bytes_total"), format!("received {GPU}")),
        Panel::lines("NVLink traffic", "Data that the GPU sends and receives over all NVLinks.")
            .unit(Unit::BytesPerSecond)
            .query(moved("nvml_nvlink_tx_bytes_total"), format!("sent {GPU}"))
            .query(moved("nvml_nvlink_rx_bytes_total"), format!("received {GPU}")),
        Panel::lines(
            "PCIe link",
            "Lanes and generation of the link now. An idle GPU may step down to an older \
             generation; fewer lanes than the slot has are a fault. Alert: GpuPcieLinkDegraded.",
        )
        .query(query.gpu("DCGM_FI_DEV_PCIE_LINK_WIDTH"), format!("lanes {GPU}"))
        .query(query.gpu("DCGM_FI_DEV_PCIE_LINK_GEN"), format!("generation {GPU}"))
        .limit(query.gpu("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH"), "lanes", GPU)
        .limit(query.gpu("DCGM_FI_DEV_PCIE_MAX_LINK_GEN"), "generation", GPU),
        Panel::lines(
            "NVLinks up",
            "Links that are up. Fewer than its siblings have: alert GpuNvlinkDown.",
        )
        .query(links::up(query), GPU),
        Panel::lines(
            "PCIe packets sent again",
            "Packets per second that were sent again because of bit errors. \
             Alert: GpuPcieReplaysHigh, by what the link may have.",
        )
        .unit(Unit::PerSecond)
        .query(query.rate(GPU_LABELS, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", ""), GPU),
        Panel::lines("Performance state", "From 0, the highest, to 15; 32 when unknown.")
            .query(query.gpu("DCGM_FI_DEV_PSTATE"), GPU),
    ]
}

/// A list of devices by label, for panels of other dashboards.
pub(super) fn by_device(expr: &str) -> String {
    format!("max by ({DEVICE_LABELS}) ({expr})")
}
