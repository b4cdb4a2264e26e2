//! How much of a GPU works, measured by GPM: means over the time since the pass before, and
//! counts that only grow. docs/profiling.md tells what each means.

use super::prelude::*;

/// A share of time, which GPM has in percent, of the GPU or of each of its instances.
const fn share(name: &'static str, id: u16, metric: u16) -> Field {
    gauge(name, id, Instance, gpm(metric, pick::gpm_ratio))
}

/// Bytes per second, which GPM has in MiB, of the GPU as a whole: its instances share the link.
const fn rate(name: &'static str, id: u16, metric: u16) -> Field {
    gauge(name, id, Gpu, gpm(metric, pick::gpm_bytes))
}

/// A share that DCGM serves as whole percent.
const fn percent(name: &'static str, id: u16, metric: u16) -> Field {
    gauge(name, id, Gpu, gpm(metric, pick::gpm_whole))
}

/// A count of the GPU since it was started.
const fn count(name: &'static str, id: u16, metric: u16) -> Field {
    counter(name, id, Gpu, gpm(metric, pick::gpm_whole))
}

#[rustfmt::skip]
pub(super) const ROWS: &[Field] = &[
    share("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1001, 1)
        .doc("ratio", "Share of time during which the graphics or compute engine worked, as a ratio from 0 to 1.")
        .renamed("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO").alias(&["dcgm_fi_prof_gr_engine_active"]).on(),
    share("DCGM_FI_PROF_SM_ACTIVE", 1002, 2)
        .doc("ratio", "Share of time during which an SM had a warp to run, as a ratio from 0 to 1, mean of all SMs.")
        .renamed("DCGM_FI_PROF_SM_UTIL_RATIO").alias(&["dcgm_fi_prof_sm_active"]),
    share("DCGM_FI_PROF_SM_OCCUPANCY", 1003, 3)
        .doc("ratio", "Warps on the SMs as a share of those for which there is room, as a ratio from 0 to 1.")
        .renamed("DCGM_FI_PROF_SM_OCCUPANCY_RATIO").alias(&["dcgm_fi_prof_sm_occupancy"]),
    share("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 1004, 5)
        .doc("ratio", "Share of cycles in which any tensor core pipe worked, as a ratio from 0 to 1.")
        .renamed("DCGM_FI_PROF_TENSOR_UTIL_RATIO").alias(&["dcgm_fi_prof_pipe_tensor_active"]).on(),
    share("DCGM_FI_PROF_DRAM_ACTIVE", 1005, 10)
        .doc("ratio", "Share of cycles in which device memory sent or received data, as a ratio from 0 to 1.")
        .renamed("DCGM_FI_PROF_DRAM_UTIL_RATIO").alias(&["dcgm_fi_prof_dram_active"]).on(),
    share("DCGM_FI_PROF_PIPE_FP64_ACTIVE", 1006, 11)
        .doc("ratio", "Share of cycles in which the FP64 pipe worked, as a ratio from 0 to 1.")
        .renamed("DCGM_FI_PROF_FP64_UTIL_RATIO"),
    share("DCGM_FI_PROF_PIPE_FP32_ACTIVE", 1007, 12)
        .doc("ratio", "Share of cycles in which the FP32 pipe worked, as a ratio from 0 to 1.")
        .renamed("DCGM_FI_PROF_FP32_UTIL_RATIO"),
    share("DCGM_FI_PROF_PIPE_FP16_ACTIVE", 1008, 13)
        .doc("ratio", "Share of cycles in which the FP16 pipe worked, tensor cores not counted, as a ratio from 0 to 1.")
        .renamed("DCGM_FI_PROF_FP16_UTIL_RATIO"),
    share("DCGM_FI_PROF_PIPE_INT_ACTIVE", 1016, 4)
        .doc("ratio", "Share of cycles in which the integer pipe worked, as a ratio from 0 to 1.")
        .renamed("DCGM_FI_PROF_INT_UTIL_RATIO"),
    share("DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE", 1013, 9)
        .doc("ratio", "Share of cycles in which tensor cores multiplied integers, as a ratio from 0 to 1.")
        .renamed("DCGM_FI_PROF_IMMA_UTIL_RATIO"),
    share("DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE", 1014, 7)
        .doc("ratio", "Share of cycles in which tensor cores multiplied half precision numbers, as a ratio from 0 to 1.")
        .renamed("DCGM_FI_PROF_HMMA_UTIL_RATIO"),
    share("DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE", 1015, 6)
        .doc("ratio", "Share of cycles in which tensor cores multiplied double precision numbers, as a ratio from 0 to 1.")
        .renamed("DCGM_FI_PROF_DFMA_UTIL_RATIO"),

    rate("DCGM_FI_PROF_PCIE_TX_BYTES", 1009, 20)
        .doc("bytes/s", "Data that the GPU sends over PCIe, headers included, in bytes per second.")
        .alias(&["dcgm_fi_prof_pcie_tx_bytes"]).on(),
    rate("DCGM_FI_PROF_PCIE_RX_BYTES", 1010, 21)
        .doc("bytes/s", "Data that the GPU receives over PCIe, headers included, in bytes per second.")
        .alias(&["dcgm_fi_prof_pcie_rx_bytes"]).on(),
    rate("DCGM_FI_PROF_NVLINK_TX_BYTES", 1011, 61)
        .doc("bytes/s", "Data that the GPU sends over all NVLinks, headers not counted, in bytes per second."),
    rate("DCGM_FI_PROF_NVLINK_RX_BYTES", 1012, 60)
        .doc("bytes/s", "Data that the GPU receives over all NVLinks, headers not counted, in bytes per second."),
    rate("DCGM_FI_PROF_C2C_TX_ALL_BYTES", 1076, 100)
        .doc("bytes/s", "Data that the GPU sends to the processor over NVLink-C2C, headers included, in bytes per second."),
    rate("DCGM_FI_PROF_C2C_TX_DATA_BYTES", 1077, 102)
        .doc("bytes/s", "Data that the GPU sends to the processor over NVLink-C2C, headers not counted, in bytes per second."),
    rate("DCGM_FI_PROF_C2C_RX_ALL_BYTES", 1078, 101)
        .doc("bytes/s", "Data that the GPU receives from the processor over NVLink-C2C, headers included, in bytes per second."),
    rate("DCGM_FI_PROF_C2C_RX_DATA_BYTES", 1079, 103)
        .doc("bytes/s", "Data that the GPU receives from the processor over NVLink-C2C, headers not counted, in bytes per second."),

    percent("DCGM_FI_PROF_HOSTMEM_CACHE_HIT", 1080, 160)
        .doc("%", "Accesses to memory of the host that the cache answered, in percent."),
    percent("DCGM_FI_PROF_HOSTMEM_CACHE_MISS", 1081, 161)
        .doc("%", "Accesses to memory of the host that the cache did not answer, in percent."),
    percent("DCGM_FI_PROF_PEERMEM_CACHE_HIT", 1082, 162)
        .doc("%", "Accesses to memory of other GPUs that the cache answered, in percent."),
    percent("DCGM_FI_PROF_PEERMEM_CACHE_MISS", 1083, 163)
        .doc("%", "Accesses to memory of other GPUs that the cache did not answer, in percent."),

    count("DCGM_FI_PROF_SM_CYCLES_ELAPSED_TOTAL", 1084, 248)
        .doc("cycles", "SM cycles that have passed since boot."),
    count("DCGM_FI_PROF_SM_CYCLES_ACTIVE_TOTAL", 1085, 249)
        .doc("cycles", "SM cycles with a warp to run, since boot."),
    count("DCGM_FI_PROF_MMA_CYCLES_ACTIVE_TOTAL", 1086, 250)
        .doc("cycles", "Cycles in which any tensor core pipe worked, since boot."),
    count("DCGM_FI_PROF_DMMA_CYCLES_ACTIVE_TOTAL", 1087, 251)
        .doc("cycles", "Cycles in which tensor cores multiplied matrices of double precision numbers (DMMA), since boot."),
    count("DCGM_FI_PROF_HMMA_CYCLES_ACTIVE_TOTAL", 1088, 252)
        .doc("cycles", "Cycles in which tensor cores multiplied matrices of half precision numbers (HMMA), since boot."),
    count("DCGM_FI_PROF_IMMA_CYCLES_ACTIVE_TOTAL", 1089, 253)
        .doc("cycles", "Cycles in which tensor cores multiplied matrices of integers (IMMA), since boot."),
    count("DCGM_FI_PROF_DFMA_CYCLES_ACTIVE_TOTAL", 1090, 254)
        .doc("cycles", "Cycles in which the DFMA pipe worked, since boot."),
    count("DCGM_FI_PROF_INT_CYCLES_ACTIVE_TOTAL", 1093, 257)
        .doc("cycles", "Cycles in which the integer pipe worked, since boot."),
    count("DCGM_FI_PROF_FP64_CYCLES_ACTIVE_TOTAL", 1094, 258)
        .doc("cycles", "Cycles in which the FP64 pipe worked, since boot."),
    count("DCGM_FI_PROF_FP32_CYCLES_ACTIVE_TOTAL", 1095, 259)
        .doc("cycles", "Cycles in which the FP32 pipe worked, since boot."),
    count("DCGM_FI_PROF_FP16_CYCLES_ACTIVE_TOTAL", 1096, 260)
        .doc("cycles", "Cycles in which the FP16 pipe worked, since boot."),
    count("DCGM_FI_PROF_PCIE_TX_BYTES_TOTAL", 1091, 255)
        .doc("bytes", "Bytes that the GPU has sent over PCIe since boot."),
    count("DCGM_FI_PROF_PCIE_RX_BYTES_TOTAL", 1092, 256)
        .doc("bytes", "Bytes that the GPU has received over PCIe since boot."),
];

/// One engine of several of its kind, of the GPU as a whole.
macro_rules! engine {
    ($name:literal, $id:literal, $metric:literal, $later:literal, $help:literal) => {
        gauge($name, $id, Gpu, gpm($metric, pick::gpm_ratio))
            .doc(
                "ratio",
                concat!("Share of time during which ", $help, " worked, as a ratio from 0 to 1."),
            )
            .renamed($later)
    };
}

#[rustfmt::skip]
pub(super) const ENGINES: &[Field] = &[
    engine!("DCGM_FI_PROF_NVDEC0_ACTIVE", 1017, 30, "DCGM_FI_PROF_NVDEC_UTIL_0_RATIO", "video decoder 0"),
    engine!("DCGM_FI_PROF_NVDEC1_ACTIVE", 1018, 31, "DCGM_FI_PROF_NVDEC_UTIL_1_RATIO", "video decoder 1"),
    engine!("DCGM_FI_PROF_NVDEC2_ACTIVE", 1019, 32, "DCGM_FI_PROF_NVDEC_UTIL_2_RATIO", "video decoder 2"),
    engine!("DCGM_FI_PROF_NVDEC3_ACTIVE", 1020, 33, "DCGM_FI_PROF_NVDEC_UTIL_3_RATIO", "video decoder 3"),
    engine!("DCGM_FI_PROF_NVDEC4_ACTIVE", 1021, 34, "DCGM_FI_PROF_NVDEC_UTIL_4_RATIO", "video decoder 4"),
    engine!("DCGM_FI_PROF_NVDEC5_ACTIVE", 1022, 35, "DCGM_FI_PROF_NVDEC_UTIL_5_RATIO", "video decoder 5"),
    engine!("DCGM_FI_PROF_NVDEC6_ACTIVE", 1023, 36, "DCGM_FI_PROF_NVDEC_UTIL_6_RATIO", "video decoder 6"),
    engine!("DCGM_FI_PROF_NVDEC7_ACTIVE", 1024, 37, "DCGM_FI_PROF_NVDEC_UTIL_7_RATIO", "video decoder 7"),
    engine!("DCGM_FI_PROF_NVJPG0_ACTIVE", 1025, 40, "DCGM_FI_PROF_NVJPG_UTIL_0_RATIO", "JPEG decoder 0"),
    engine!("DCGM_FI_PROF_NVJPG1_ACTIVE", 1026, 41, "DCGM_FI_PROF_NVJPG_UTIL_1_RATIO", "JPEG decoder 1"),
    engine!("DCGM_FI_PROF_NVJPG2_ACTIVE", 1027, 42, "DCGM_FI_PROF_NVJPG_UTIL_2_RATIO", "JPEG decoder 2"),
    engine!("DCGM_FI_PROF_NVJPG3_ACTIVE", 1028, 43, "DCGM_FI_PROF_NVJPG_UTIL_3_RATIO", "JPEG decoder 3"),
    engine!("DCGM_FI_PROF_NVJPG4_ACTIVE", 1029, 44, "DCGM_FI_PROF_NVJPG_UTIL_4_RATIO", "JPEG decoder 4"),
    engine!("DCGM_FI_PROF_NVJPG5_ACTIVE", 1030, 45, "DCGM_FI_PROF_NVJPG_UTIL_5_RATIO", "JPEG decoder 5"),
    engine!("DCGM_FI_PROF_NVJPG6_ACTIVE", 1031, 46, "DCGM_FI_PROF_NVJPG_UTIL_6_RATIO", "JPEG decoder 6"),
    engine!("DCGM_FI_PROF_NVJPG7_ACTIVE", 1032, 47, "DCGM_FI_PROF_NVJPG_UTIL_7_RATIO", "JPEG decoder 7"),
    engine!("DCGM_FI_PROF_NVOFA0_ACTIVE", 1033, 50, "DCGM_FI_PROF_NVOFA_UTIL_0_RATIO", "optical flow engine 0"),
    engine!("DCGM_FI_PROF_NVOFA1_ACTIVE", 1034, 51, "DCGM_FI_PROF_NVOFA_UTIL_1_RATIO", "optical flow engine 1"),
];

/// Data over one link.
macro_rules! link {
    ($name:literal, $id:literal, $metric:literal, $what:literal) => {
        rate($name, $id, $metric)
            .doc("bytes/s", concat!("Data that the GPU ", $what, ", in bytes per second."))
    };
}

#[rustfmt::skip]
pub(super) const LINKS: &[Field] = &[
    gauge("DCGM_FI_PROF_NVLINK_TX_BYTES_PER_LINK", 1532, Link, Read::Gpm(GpmMetric::EachLinkTx, pick::gpm_bytes))
        .doc("bytes/s", "Data that the GPU sends over the link, in bytes per second."),
    gauge("DCGM_FI_PROF_NVLINK_RX_BYTES_PER_LINK", 1533, Link, Read::Gpm(GpmMetric::EachLinkRx, pick::gpm_bytes))
        .doc("bytes/s", "Data that the GPU receives over the link, in bytes per second."),
    link!("DCGM_FI_PROF_NVLINK_L0_TX_BYTES", 1040, 63, "sends over NVLink 0"),
    link!("DCGM_FI_PROF_NVLINK_L0_RX_BYTES", 1041, 62, "receives over NVLink 0"),
    link!("DCGM_FI_PROF_NVLINK_L1_TX_BYTES", 1042, 65, "sends over NVLink 1"),
    link!("DCGM_FI_PROF_NVLINK_L1_RX_BYTES", 1043, 64, "receives over NVLink 1"),
    link!("DCGM_FI_PROF_NVLINK_L2_TX_BYTES", 1044, 67, "sends over NVLink 2"),
    link!("DCGM_FI_PROF_NVLINK_L2_RX_BYTES", 1045, 66, "receives over NVLink 2"),
    link!("DCGM_FI_PROF_NVLINK_L3_TX_BYTES", 1046, 69, "sends over NVLink 3"),
    link!("DCGM_FI_PROF_NVLINK_L3_RX_BYTES", 1047, 68, "receives over NVLink 3"),
    link!("DCGM_FI_PROF_NVLINK_L4_TX_BYTES", 1048, 71, "sends over NVLink 4"),
    link!("DCGM_FI_PROF_NVLINK_L4_RX_BYTES", 1049, 70, "receives over NVLink 4"),
    link!("DCGM_FI_PROF_NVLINK_L5_TX_BYTES", 1050, 73, "sends over NVLink 5"),
    link!("DCGM_FI_PROF_NVLINK_L5_RX_BYTES", 1051, 72, "receives over NVLink 5"),
    link!("DCGM_FI_PROF_NVLINK_L6_TX_BYTES", 1052, 75, "sends over NVLink 6"),
    link!("DCGM_FI_PROF_NVLINK_L6_RX_BYTES", 1053, 74, "receives over NVLink 6"),
    link!("DCGM_FI_PROF_NVLINK_L7_TX_BYTES", 1054, 77, "sends over NVLink 7"),
    link!("DCGM_FI_PROF_NVLINK_L7_RX_BYTES", 1055, 76, "receives over NVLink 7"),
    link!("DCGM_FI_PROF_NVLINK_L8_TX_BYTES", 1056, 79, "sends over NVLink 8"),
    link!("DCGM_FI_PROF_NVLINK_L8_RX_BYTES", 1057, 78, "receives over NVLink 8"),
    link!("DCGM_FI_PROF_NVLINK_L9_TX_BYTES", 1058, 81, "sends over NVLink 9"),
    link!("DCGM_FI_PROF_NVLINK_L9_RX_BYTES", 1059, 80, "receives over NVLink 9"),
    link!("DCGM_FI_PROF_NVLINK_L10_TX_BYTES", 1060, 83, "sends over NVLink 10"),
    link!("DCGM_FI_PROF_NVLINK_L10_RX_BYTES", 1061, 82, "receives over NVLink 10"),
    link!("DCGM_FI_PROF_NVLINK_L11_TX_BYTES", 1062, 85, "sends over NVLink 11"),
    link!("DCGM_FI_PROF_NVLINK_L11_RX_BYTES", 1063, 84, "receives over NVLink 11"),
    link!("DCGM_FI_PROF_NVLINK_L12_TX_BYTES", 1064, 87, "sends over NVLink 12"),
    link!("DCGM_FI_PROF_NVLINK_L12_RX_BYTES", 1065, 86, "receives over NVLink 12"),
    link!("DCGM_FI_PROF_NVLINK_L13_TX_BYTES", 1066, 89, "sends over NVLink 13"),
    link!("DCGM_FI_PROF_NVLINK_L13_RX_BYTES", 1067, 88, "receives over NVLink 13"),
    link!("DCGM_FI_PROF_NVLINK_L14_TX_BYTES", 1068, 91, "sends over NVLink 14"),
    link!("DCGM_FI_PROF_NVLINK_L14_RX_BYTES", 1069, 90, "receives over NVLink 14"),
    link!("DCGM_FI_PROF_NVLINK_L15_TX_BYTES", 1070, 93, "sends over NVLink 15"),
    link!("DCGM_FI_PROF_NVLINK_L15_RX_BYTES", 1071, 92, "receives over NVLink 15"),
    link!("DCGM_FI_PROF_NVLINK_L16_TX_BYTES", 1072, 95, "sends over NVLink 16"),
    link!("DCGM_FI_PROF_NVLINK_L16_RX_BYTES", 1073, 94, "receives over NVLink 16"),
    link!("DCGM_FI_PROF_NVLINK_L17_TX_BYTES", 1074, 97, "sends over NVLink 17"),
    link!("DCGM_FI_PROF_NVLINK_L17_RX_BYTES", 1075, 96, "receives over NVLink 17"),
    gauge("nvml_gr_engine_active_board_ratio", 0, Instance, gpm(1, pick::gpm_of_board))
        .doc("ratio", "Share of the whole board's engine time during which the GPU or instance worked, as a ratio from 0 to 1."),
];
