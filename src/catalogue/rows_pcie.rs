//! The `PCIe` link: width, generation, traffic, errors.

use super::prelude::*;

/// Kinds of `PCIe` errors for which DCGM has no field.
macro_rules! pcie_errors {
    ($id:literal, $type:literal) => {
        counter("nvml_pcie_errors_total", 0, Gpu, field($id, pick::value))
            .doc("count", "Number of PCIe errors of the type since the driver was loaded.")
            .with("type", $type)
    };
}

/// `nvmlDeviceGetPcieThroughput` is not among the sources: it blocks for 20 ms and answers a rate
/// over that window alone.
#[rustfmt::skip]
pub(super) const ROWS: &[Field] = &[
    counter("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 202, Gpu, plain(Call::PcieReplayCounter))
        .doc("count", "Number of PCIe packets sent again since the driver was loaded.")
        .alias(&["dcgm_pcie_replay_counter"]).renamed("DCGM_FI_DEV_PCIE_REPLAY_TOTAL").on(),
    gauge("DCGM_FI_DEV_PCIE_MAX_LINK_GEN", 235, Gpu, plain(Call::MaxPcieLinkGeneration))
        .doc("generation", "Highest PCIe generation that GPU and slot can agree on.").on(),
    gauge("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", 236, Gpu, plain(Call::MaxPcieLinkWidth))
        .doc("lanes", "Largest number of PCIe lanes that GPU and slot can agree on.").on(),
    gauge("DCGM_FI_DEV_PCIE_LINK_GEN", 237, Gpu, plain(Call::CurrPcieLinkGeneration))
        .doc("generation", "PCIe generation at which the link runs now.").on(),
    gauge("DCGM_FI_DEV_PCIE_LINK_WIDTH", 238, Gpu, plain(Call::CurrPcieLinkWidth))
        .doc("lanes", "Number of PCIe lanes in use now.").on(),
    counter("DCGM_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS", 1501, Gpu, field(173, pick::value))
        .doc("count", "Number of correctable PCIe errors since the driver was loaded.")
        .renamed("DCGM_FI_DEV_PCIE_CORRECTABLE_ERROR_TOTAL").on(),

    counter("nvml_pcie_tx_bytes_total", 0, Gpu, field(197, pick::value))
        .doc("bytes", "Bytes that the GPU has sent over PCIe; the driver's counter may wrap around.").on(),
    counter("nvml_pcie_rx_bytes_total", 0, Gpu, field(198, pick::value))
        .doc("bytes", "Bytes that the GPU has received over PCIe; the driver's counter may wrap around.").on(),

    counter("nvml_pcie_replay_rollovers_total", 0, Gpu, field(95, pick::value))
        .doc("count", "Number of times that the PCIe replay number has rolled over."),
    counter("nvml_pcie_link_recoveries_total", 0, Gpu, field(169, pick::value))
        .doc("count", "Number of times that the PCIe link has gone from L0 to recovery."),
    pcie_errors!(174, "nak_received"),
    pcie_errors!(175, "receiver"),
    pcie_errors!(176, "bad_tlp"),
    pcie_errors!(177, "nak_sent"),
    pcie_errors!(178, "bad_dllp"),
    pcie_errors!(179, "non_fatal"),
    pcie_errors!(180, "fatal"),
    pcie_errors!(181, "unsupported_request"),
    pcie_errors!(182, "lcrc"),
    pcie_errors!(183, "lane"),
];
