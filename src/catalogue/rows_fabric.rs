//! The `NVLink` fabric, the chip-to-chip link, and the place of the GPU in its rack.

use super::prelude::*;

const FABRIC: Call = Call::FabricInfo;
const PLATFORM: Call = Call::PlatformInfo;

#[rustfmt::skip]
pub(super) const ROWS: &[Field] = &[
    gauge("DCGM_FI_DEV_FABRIC_MANAGER_STATUS", 170, Gpu, call(FABRIC, pick::fabric_status))
        .doc("state", "How far the GPU has come in joining the fabric: 0 no fabric, 1 not started, 2 in progress, 3 joined, 4 failed.").on(),
    gauge("DCGM_FI_DEV_FABRIC_MANAGER_ERROR_CODE", 171, Gpu, call(FABRIC, pick::fabric_error))
        .doc("nvmlReturn_t", "NVML's code for the outcome of joining the fabric, 0 when it went well.")
        .renamed("DCGM_FI_DEV_FABRIC_MANAGER_ERROR").on(),
    label("DCGM_FI_DEV_FABRIC_CLUSTER_UUID", 172, Gpu, Fact::FabricClusterUuid)
        .doc("text", "UUID of the fabric's cluster."),
    gauge("DCGM_FI_DEV_FABRIC_CLIQUE_ID", 173, Gpu, call(FABRIC, |n| pick::raw(n, slot::FABRIC_CLIQUE)))
        .doc("id", "Number of the group of GPUs within the cluster that can reach each other over NVLink."),
    gauge("DCGM_FI_DEV_FABRIC_HEALTH_MASK", 174, Gpu, call(FABRIC, |n| pick::raw(n, slot::FABRIC_HEALTH_MASK)))
        .doc("bit mask", "Health of the fabric as NVML's bit mask.").on(),
    gauge("DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY", 175, Gpu, call(FABRIC, |n| pick::raw(n, slot::FABRIC_HEALTH_SUMMARY)))
        .doc("state", "Health of the fabric: 0 not known, 1 healthy, 2 unhealthy, 3 limited capacity.").on(),

    // The count is the device's; state and bandwidth are those of link 0, as in DCGM.
    gauge("DCGM_FI_DEV_C2C_LINK_COUNT", 285, Gpu, field(170, pick::value))
        .doc("count", "Number of chip-to-chip links of the GPU.")
        .renamed("DCGM_FI_DEV_C2C_LINK_QUANTITY"),
    gauge("DCGM_FI_DEV_C2C_LINK_STATUS", 286, Gpu, field(171, pick::value))
        .doc("0/1", "Whether the first chip-to-chip link is active (1) or not (0)."),
    gauge("DCGM_FI_DEV_C2C_MAX_BANDWIDTH", 287, Gpu, field(172, pick::value))
        .doc("MB/s", "Highest bandwidth of the first chip-to-chip link, in MB per second."),
    counter("DCGM_FI_DEV_C2C_LINK_ERROR_INTR", 1400, Gpu, field(231, pick::value))
        .doc("count", "Number of CRC errors on the chip-to-chip link."),
    counter("DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY", 1401, Gpu, field(232, pick::value))
        .doc("count", "Number of replays on the chip-to-chip link."),
    counter("DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY_B2B", 1402, Gpu, field(233, pick::value))
        .doc("count", "Number of replays on the chip-to-chip link that followed another at once."),
    gauge("DCGM_FI_DEV_C2C_LINK_POWER_STATE", 1403, Gpu, field(234, pick::value))
        .doc("state", "Power state of the chip-to-chip link: 0 full, 1 low."),

    label("DCGM_FI_DEV_PLATFORM_INFINIBAND_GUID", 571, Gpu, Fact::InfinibandGuid)
        .doc("text", "InfiniBand GUID that the platform gives the GPU."),
    label("DCGM_FI_DEV_PLATFORM_CHASSIS_SERIAL_NUMBER", 572, Gpu, Fact::ChassisSerialNumber)
        .doc("text", "Serial number of the chassis."),
    gauge("DCGM_FI_DEV_PLATFORM_CHASSIS_SLOT_NUMBER", 573, Gpu, call(PLATFORM, |n| pick::raw(n, slot::PLATFORM_SLOT)))
        .doc("number", "Number of the GPU's slot in the chassis."),
    gauge("DCGM_FI_DEV_PLATFORM_TRAY_INDEX", 574, Gpu, call(PLATFORM, |n| pick::raw(n, slot::PLATFORM_TRAY)))
        .doc("number", "Index of the GPU's tray among the compute trays of the chassis."),
    gauge("DCGM_FI_DEV_PLATFORM_HOST_ID", 575, Gpu, call(PLATFORM, |n| pick::raw(n, slot::PLATFORM_HOST)))
        .doc("number", "Number of the node within the tray."),
    gauge("DCGM_FI_DEV_PLATFORM_PEER_TYPE", 576, Gpu, call(PLATFORM, |n| pick::raw(n, slot::PLATFORM_PEER)))
        .doc("number", "Kind of device at the other end of the NVLinks, in the platform's numbering."),
    gauge("DCGM_FI_DEV_PLATFORM_MODULE_ID", 577, Gpu, call(PLATFORM, |n| pick::raw(n, slot::PLATFORM_MODULE)))
        .doc("number", "Number of the GPU's module within the node."),
];
