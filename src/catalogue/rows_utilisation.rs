//! How busy the engines are, and with what.

use super::prelude::*;

const RATES: Call = Call::UtilizationRates;

/// Whole percent in DCGM's older fields, ratios elsewhere. NVML gives none of these while MIG is
/// on.
#[rustfmt::skip]
pub(super) const ROWS: &[Field] = &[
    gauge("DCGM_FI_DEV_GPU_UTIL", 203, Gpu, call(RATES, |n| pick::raw(n, slot::GPU)))
        .doc("%", "Share of time during which any kernel ran, in percent.")
        .alias(&["dcgm_gpu_utilization", "DCGM_FI_DEV_GPU_UTIL_RATIO"])
        .renamed("DCGM_FI_DEV_GPU_UTIL_RATIO").on(),
    gauge("DCGM_FI_DEV_MEM_COPY_UTIL", 204, Gpu, call(RATES, |n| pick::raw(n, slot::MEMORY)))
        .doc("%", "Share of time during which device memory was read or written, in percent.")
        .alias(&["dcgm_mem_copy_utilization"]).renamed("DCGM_FI_DEV_MEMORY_UTIL_RATIO").on(),
    gauge("DCGM_FI_DEV_ENC_UTIL", 206, Gpu, plain(Call::EncoderUtilization))
        .doc("%", "Share of time during which the video encoder worked, in percent.")
        .alias(&["dcgm_enc_utilization"]).renamed("DCGM_FI_DEV_ENC_UTIL_RATIO").on(),
    gauge("DCGM_FI_DEV_DEC_UTIL", 207, Gpu, plain(Call::DecoderUtilization))
        .doc("%", "Share of time during which the video decoder worked, in percent.")
        .alias(&["dcgm_dec_utilization"]).renamed("DCGM_FI_DEV_DEC_UTIL_RATIO").on(),
    gauge("DCGM_FI_DEV_GPU_UTIL_RATIO", 1613, Gpu, call(RATES, |n| pick::divided(n, slot::GPU, 1e2)))
        .doc("ratio", "Share of time during which any kernel ran, as a ratio from 0 to 1."),
    gauge("DCGM_FI_DEV_MEMORY_UTIL_RATIO", 1614, Gpu, call(RATES, |n| pick::divided(n, slot::MEMORY, 1e2)))
        .doc("ratio", "Share of time during which device memory was read or written, as a ratio from 0 to 1."),
    gauge("DCGM_FI_DEV_ENC_UTIL_RATIO", 1615, Gpu, call(Call::EncoderUtilization, pick::ratio))
        .doc("ratio", "Share of time during which the video encoder worked, as a ratio from 0 to 1."),
    gauge("DCGM_FI_DEV_DEC_UTIL_RATIO", 1616, Gpu, call(Call::DecoderUtilization, pick::ratio))
        .doc("ratio", "Share of time during which the video decoder worked, as a ratio from 0 to 1."),
    gauge("nvml_jpg_utilization_ratio", 0, Gpu, call(Call::JpgUtilization, pick::ratio))
        .doc("ratio", "Share of time during which the JPEG decoder worked, as a ratio from 0 to 1."),
    gauge("nvml_ofa_utilization_ratio", 0, Gpu, call(Call::OfaUtilization, pick::ratio))
        .doc("ratio", "Share of time during which the optical flow engine worked, as a ratio from 0 to 1."),

    gauge("nvml_processes", 0, Instance, plain(Call::ComputeProcesses))
        .doc("count", "Number of processes that hold a context of the type on the device.")
        .with("type", "compute"),
    gauge("nvml_processes", 0, Instance, plain(Call::GraphicsProcesses))
        .doc("count", "Number of processes that hold a context of the type on the device.")
        .with("type", "graphics"),
    gauge("nvml_processes", 0, Instance, plain(Call::MpsProcesses))
        .doc("count", "Number of processes that hold a context of the type on the device.")
        .with("type", "mps"),

    gauge("nvml_encoder_sessions", 0, Gpu, call(Call::EncoderStats, |n| pick::raw(n, slot::SESSIONS)))
        .doc("count", "Number of video encoder sessions open."),
    gauge("nvml_encoder_fps", 0, Gpu, call(Call::EncoderStats, |n| pick::raw(n, slot::FPS)))
        .doc("1/s", "Mean frames per second over all video encoder sessions."),
    gauge("nvml_encoder_latency_seconds", 0, Gpu, call(Call::EncoderStats, |n| pick::divided(n, slot::LATENCY, 1e6)))
        .doc("s", "Mean time to encode a frame over all video encoder sessions, in seconds."),
    gauge("nvml_fbc_sessions", 0, Gpu, call(Call::FbcStats, |n| pick::raw(n, slot::SESSIONS)))
        .doc("count", "Number of framebuffer capture sessions open."),
    gauge("nvml_fbc_fps", 0, Gpu, call(Call::FbcStats, |n| pick::raw(n, slot::FPS)))
        .doc("1/s", "Mean frames per second over all framebuffer capture sessions."),
    gauge("nvml_fbc_latency_seconds", 0, Gpu, call(Call::FbcStats, |n| pick::divided(n, slot::LATENCY, 1e6)))
        .doc("s", "Mean time to capture a frame over all framebuffer capture sessions, in seconds."),
];
