//! Why the clocks are below their maximum, and for how long they have been.

use super::prelude::*;

/// Only this reason's bit of the mask.
macro_rules! reason {
    ($bit:literal, $reason:literal) => {
        gauge(
            "nvml_clocks_event_reason",
            0,
            Gpu,
            call(Call::ClocksEventReasons, |n| pick::bit(n, slot::VALUE, $bit)),
        )
        .doc("0/1", "Whether the reason holds the clocks down now (1) or not (0).")
        .with("reason", $reason)
        .on()
    };
}

/// Time during which a reason held, from a nanosecond counter.
macro_rules! held {
    ($id:literal, $reason:literal) => {
        counter("nvml_clocks_event_seconds_total", 0, Gpu, field($id, pick::seconds))
            .doc(
                "s",
                "Time for which the reason has held the clocks down, in seconds; reasons overlap.",
            )
            .with("reason", $reason)
            .on()
    };
}

/// The counters are nanoseconds since the driver was loaded. Ids 251 to 253 are in the numbering
/// of drivers before 580.82.
#[rustfmt::skip]
pub(super) const ROWS: &[Field] = &[
    gauge("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 112, Gpu, plain(Call::ClocksEventReasons))
        .doc("bit mask", "Reasons why the clocks are below their maximum now, as NVML's bit mask.")
        .alias(&["DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"]).on(),

    counter("DCGM_FI_DEV_POWER_VIOLATION", 240, Gpu, field(74, pick::value))
        .doc("ns", "Time for which the power limit has held the clocks down, in nanoseconds.")
        .alias(&["dcgm_power_violation"])
        .renamed("DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL").on(),
    counter("DCGM_FI_DEV_THERMAL_VIOLATION", 241, Gpu, field(75, pick::value))
        .doc("ns", "Time for which temperature has held the clocks down, in nanoseconds.")
        .alias(&["dcgm_thermal_violation"])
        .renamed("DCGM_FI_DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL").on(),
    counter("DCGM_FI_DEV_SYNC_BOOST_VIOLATION", 242, Gpu, field(76, pick::value))
        .doc("ns", "Time for which a sync boost group has held the clocks down, in nanoseconds.")
        .alias(&["dcgm_sync_boost_violation"]).on(),
    counter("DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", 243, Gpu, field(77, pick::value))
        .doc("ns", "Time for which the board's limit has held the clocks down, in nanoseconds.")
        .alias(&["dcgm_board_limit_violation"]).on(),
    counter("DCGM_FI_DEV_LOW_UTIL_VIOLATION", 244, Gpu, field(78, pick::value))
        .doc("ns", "Time for which lack of work has held the clocks down, in nanoseconds.")
        .alias(&["dcgm_low_util_violation"]).on(),
    counter("DCGM_FI_DEV_RELIABILITY_VIOLATION", 245, Gpu, field(79, pick::value))
        .doc("ns", "Time for which the voltage reliability limit has held the clocks down, in nanoseconds.")
        .alias(&["dcgm_reliability_violation"]).on(),
    counter("DCGM_FI_DEV_TOTAL_APP_CLOCKS_VIOLATION", 246, Gpu, field(80, pick::value))
        .doc("ns", "Time for which the clocks have been below the application clocks, in nanoseconds."),
    counter("DCGM_FI_DEV_TOTAL_BASE_CLOCKS_VIOLATION", 247, Gpu, field(81, pick::value))
        .doc("ns", "Time for which the clocks have been below the base clocks, in nanoseconds."),
    counter("DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL", 1617, Gpu, field(74, pick::seconds))
        .doc("s", "Time for which the power limit has held the clocks down, in seconds."),
    counter("DCGM_FI_DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL", 1618, Gpu, field(75, pick::seconds))
        .doc("s", "Time for which temperature has held the clocks down, in seconds."),

    counter("DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS", 1420, Gpu, field(74, pick::value))
        .doc("ns", "Time for which the software power cap has held the clocks down, in nanoseconds.").on(),
    counter("DCGM_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_NS", 1421, Gpu, field(76, pick::value))
        .doc("ns", "Time for which the clocks have followed a sync boost group, in nanoseconds.").on(),
    counter("DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS", 1422, Gpu, field(251, pick::value))
        .doc("ns", "Time for which software has slowed the clocks to cool GPU or memory, in nanoseconds.").on(),
    counter("DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS", 1423, Gpu, field(252, pick::value))
        .doc("ns", "Time for which hardware has at least halved the clocks because of heat, in nanoseconds.").on(),
    counter("DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS", 1424, Gpu, field(253, pick::value))
        .doc("ns", "Time for which the external power brake has at least halved the clocks, in nanoseconds.").on(),

    reason!(0, "gpu_idle"),
    reason!(1, "clocks_setting"),
    reason!(2, "power_cap"),
    reason!(3, "hw_slowdown"),
    reason!(4, "sync_boost"),
    reason!(5, "sw_thermal"),
    reason!(6, "hw_thermal"),
    reason!(7, "hw_power_brake"),
    reason!(8, "display_clocks"),

    held!(74, "power_cap"),
    held!(75, "thermal"),
    held!(76, "sync_boost"),
    held!(77, "board_limit"),
    held!(78, "low_utilization"),
    held!(79, "reliability"),
    held!(80, "app_clocks"),
    held!(81, "base_clocks"),
    held!(251, "sw_thermal"),
    held!(252, "hw_thermal"),
    held!(253, "hw_power_brake"),
];
