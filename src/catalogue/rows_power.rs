//! Temperatures, power, energy, fan, performance state, power smoothing.

use super::prelude::*;

const LIMITS: Call = Call::PowerManagementLimitConstraints;

/// NVML gives mW and mJ. DCGM's power limits are whole watts, its draw keeps the milliwatts.
#[rustfmt::skip]
pub(super) const ROWS: &[Field] = &[
    // NVML tags the memory temperature wrongly on some drivers.
    gauge("DCGM_FI_DEV_MEMORY_TEMP", 140, Gpu, decoded(82, Decode::U32, pick::temperature))
        .doc("C", "Temperature of the device memory, in degrees Celsius.")
        .alias(&["dcgm_memory_temp"]).renamed("DCGM_FI_DEV_MEMORY_TEMP_CELSIUS").on(),
    gauge("DCGM_FI_DEV_GPU_TEMP", 150, Gpu, call(Call::Temperature, pick::temperature))
        .doc("C", "Temperature of the GPU core, in degrees Celsius.")
        .alias(&["dcgm_gpu_temp"]).renamed("DCGM_FI_DEV_GPU_TEMP_CELSIUS").on(),
    gauge("DCGM_FI_DEV_MEM_MAX_OP_TEMP", 151, Gpu, plain(Call::TemperatureThreshold(Threshold::MemoryMax)))
        .doc("C", "Memory temperature from which software slows the clocks, in degrees Celsius.")
        .renamed("DCGM_FI_DEV_MEMORY_MAX_OP_TEMP_CELSIUS").on(),
    gauge("DCGM_FI_DEV_GPU_MAX_OP_TEMP", 152, Gpu, plain(Call::TemperatureThreshold(Threshold::GpuMax)))
        .doc("C", "GPU temperature from which software slows the clocks, in degrees Celsius.")
        .renamed("DCGM_FI_DEV_GPU_MAX_OP_TEMP_CELSIUS").on(),
    gauge("DCGM_FI_DEV_GPU_TEMP_LIMIT", 153, Gpu, plain(Call::MarginTemperature))
        .doc("C", "Degrees Celsius left until the GPU slows down, negative once past that point.")
        .renamed("DCGM_FI_DEV_GPU_TEMP_MARGIN_CELSIUS").on(),
    gauge("DCGM_FI_DEV_SLOWDOWN_TEMP", 158, Gpu, plain(Call::TemperatureThreshold(Threshold::Slowdown)))
        .doc("C", "GPU temperature from which hardware slows the clocks, in degrees Celsius.")
        .renamed("DCGM_FI_DEV_GPU_TEMP_SLOWDOWN_CELSIUS").on(),
    gauge("DCGM_FI_DEV_SHUTDOWN_TEMP", 159, Gpu, plain(Call::TemperatureThreshold(Threshold::Shutdown)))
        .doc("C", "GPU temperature at which the GPU shuts down, in degrees Celsius.")
        .renamed("DCGM_FI_DEV_GPU_TEMP_SHUTDOWN_CELSIUS").on(),
    // Signed margins: boards since Hopper state their thresholds this way.
    gauge("nvml_temperature_limit_margin_celsius", 0, Gpu, field(193, pick::value))
        .doc("C", "Margin below the temperature limit at which the threshold acts, in degrees Celsius.")
        .with("threshold", "shutdown"),
    gauge("nvml_temperature_limit_margin_celsius", 0, Gpu, field(194, pick::value))
        .doc("C", "Margin below the temperature limit at which the threshold acts, in degrees Celsius.")
        .with("threshold", "slowdown"),
    gauge("nvml_temperature_limit_margin_celsius", 0, Gpu, field(195, pick::value))
        .doc("C", "Margin below the temperature limit at which the threshold acts, in degrees Celsius.")
        .with("threshold", "memory_max"),
    gauge("nvml_temperature_limit_margin_celsius", 0, Gpu, field(196, pick::value))
        .doc("C", "Margin below the temperature limit at which the threshold acts, in degrees Celsius.")
        .with("threshold", "gpu_max"),

    gauge("DCGM_FI_DEV_POWER_USAGE", 155, Gpu, call(Call::PowerUsage, pick::thousandths))
        .doc("W", "Power that the board draws, in watts, on newer boards as a mean over one second.")
        .alias(&["dcgm_power_usage"]).renamed("DCGM_FI_DEV_BOARD_POWER_WATTS").on(),
    gauge("DCGM_FI_DEV_POWER_USAGE_INSTANT", 157, Gpu, decoded(186, Decode::U32, pick::thousandths))
        .doc("W", "Power that the board draws at this instant, in watts.")
        .renamed("DCGM_FI_DEV_BOARD_POWER_RAW_WATTS"),
    gauge("DCGM_FI_DEV_POWER_MGMT_LIMIT", 160, Gpu, call(Call::PowerManagementLimit, pick::watts_cut))
        .doc("W", "Power limit that was asked for, in whole watts.")
        .renamed("DCGM_FI_DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS").on(),
    gauge("DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN", 161, Gpu, call(LIMITS, |n| pick::whole_watts(n, slot::MIN)))
        .doc("W", "Lowest power limit that can be asked for, in whole watts.")
        .renamed("DCGM_FI_DEV_BOARD_POWER_LIMIT_MIN_WATTS"),
    gauge("DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX", 162, Gpu, call(LIMITS, |n| pick::whole_watts(n, slot::MAX)))
        .doc("W", "Highest power limit that can be asked for, in whole watts.")
        .renamed("DCGM_FI_DEV_BOARD_POWER_LIMIT_MAX_WATTS"),
    gauge("DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", 163, Gpu, call(Call::PowerManagementDefaultLimit, pick::watts_cut))
        .doc("W", "Power limit with which the board starts, in whole watts.")
        .renamed("DCGM_FI_DEV_BOARD_POWER_LIMIT_DEFAULT_WATTS").on(),
    gauge("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", 164, Gpu, call(Call::EnforcedPowerLimit, pick::watts_cut))
        .doc("W", "Power limit in force, the lowest of all limiters, in whole watts.")
        .renamed("DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS").on(),
    gauge("nvml_power_average_watts", 0, Gpu, field(185, pick::thousandths))
        .doc("W", "Power that the board draws as a mean over one second, in watts."),

    counter("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 156, Gpu, field(83, pick::value))
        .doc("mJ", "Energy that the board has drawn since the driver was loaded, in millijoules.")
        .alias(&["dcgm_total_energy_consumption"])
        .renamed("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL").on(),
    counter("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 1611, Gpu, field(83, pick::thousandths))
        .doc("J", "Energy that the board has drawn since the driver was loaded, in joules."),

    gauge("DCGM_FI_DEV_PSTATE", 190, Gpu, plain(Call::PerformanceState))
        .doc("P-state", "Performance state from 0 (highest) to 15, or 32 when unknown.")
        .renamed("DCGM_FI_DEV_GPU_PSTATE").on(),
    gauge("DCGM_FI_DEV_FAN_SPEED", 191, Gpu, plain(Call::FanSpeed))
        .doc("%", "Speed that the fan is told to run at, in percent of its maximum.")
        .renamed("DCGM_FI_DEV_FAN_SPEED_RATIO"),
    gauge("DCGM_FI_DEV_FAN_SPEED_RATIO", 1612, Gpu, call(Call::FanSpeed, pick::ratio))
        .doc("ratio", "Speed that the fan is told to run at, as a ratio of its maximum."),
];

/// Blackwell's smoothing of power swings; ids in the numbering of drivers before 580.82.
#[rustfmt::skip]
pub(super) const SMOOTHING: &[Field] = &[
    gauge("DCGM_FI_DEV_PWR_SMOOTHING_ENABLED", 1425, Gpu, field(256, pick::value))
        .doc("0/1", "Whether power smoothing is on (1) or off (0)."),
    gauge("DCGM_FI_DEV_PWR_SMOOTHING_PRIV_LVL", 1426, Gpu, field(257, pick::value))
        .doc("level", "Privilege level at which power smoothing may be set now."),
    gauge("DCGM_FI_DEV_PWR_SMOOTHING_IMM_RAMP_DOWN_ENABLED", 1427, Gpu, field(258, pick::value))
        .doc("0/1", "Whether power may ramp down at once (1) or not (0)."),
    gauge("DCGM_FI_DEV_PWR_SMOOTHING_APPLIED_TMP_CEIL", 1428, Gpu, field(259, pick::double))
        .doc("W", "Ceiling of total module power in force, in watts."),
    gauge("DCGM_FI_DEV_PWR_SMOOTHING_APPLIED_TMP_FLOOR", 1429, Gpu, field(260, pick::double))
        .doc("W", "Floor of total module power in force, in watts."),
    gauge("DCGM_FI_DEV_PWR_SMOOTHING_MAX_PERCENT_TMP_FLOOR_SETTING", 1430, Gpu, field(261, pick::double))
        .doc("%", "Highest floor of total module power that can be set, in percent."),
    gauge("DCGM_FI_DEV_PWR_SMOOTHING_MIN_PERCENT_TMP_FLOOR_SETTING", 1431, Gpu, field(262, pick::double))
        .doc("%", "Lowest floor of total module power that can be set, in percent."),
    gauge("DCGM_FI_DEV_PWR_SMOOTHING_HW_CIRCUITRY_PERCENT_LIFETIME_REMAINING", 1432, Gpu, field(263, pick::double))
        .doc("%", "Life left in the power smoothing circuit, in percent."),
    gauge("DCGM_FI_DEV_PWR_SMOOTHING_MAX_NUM_PRESET_PROFILES", 1433, Gpu, field(264, pick::value))
        .doc("count", "Number of preset power smoothing profiles."),
    gauge("DCGM_FI_DEV_PWR_SMOOTHING_PROFILE_PERCENT_TMP_FLOOR", 1434, Gpu, field(265, pick::double))
        .doc("%", "Floor of total module power in the profile, in percent."),
    gauge("DCGM_FI_DEV_PWR_SMOOTHING_PROFILE_RAMP_UP_RATE", 1435, Gpu, field(266, pick::double))
        .doc("mW/s", "Rate at which the profile lets power rise, in milliwatts per second."),
    gauge("DCGM_FI_DEV_PWR_SMOOTHING_PROFILE_RAMP_DOWN_RATE", 1436, Gpu, field(267, pick::double))
        .doc("mW/s", "Rate at which the profile lets power fall, in milliwatts per second."),
    gauge("DCGM_FI_DEV_PWR_SMOOTHING_PROFILE_RAMP_DOWN_HYST_VAL", 1437, Gpu, field(268, pick::value))
        .doc("ms", "Time that the profile waits before power may fall, in milliseconds."),
    gauge("DCGM_FI_DEV_PWR_SMOOTHING_ACTIVE_PRESET_PROFILE", 1438, Gpu, field(269, pick::value))
        .doc("number", "Number of the preset power smoothing profile in force."),
    gauge("DCGM_FI_DEV_PWR_SMOOTHING_ADMIN_OVERRIDE_PERCENT_TMP_FLOOR", 1439, Gpu, field(270, pick::double))
        .doc("%", "Floor of total module power that the administrator has set, in percent."),
    gauge("DCGM_FI_DEV_PWR_SMOOTHING_ADMIN_OVERRIDE_RAMP_UP_RATE", 1440, Gpu, field(271, pick::double))
        .doc("mW/s", "Rate of power rise that the administrator has set, in milliwatts per second."),
    gauge("DCGM_FI_DEV_PWR_SMOOTHING_ADMIN_OVERRIDE_RAMP_DOWN_RATE", 1441, Gpu, field(272, pick::double))
        .doc("mW/s", "Rate of power fall that the administrator has set, in milliwatts per second."),
    gauge("DCGM_FI_DEV_PWR_SMOOTHING_ADMIN_OVERRIDE_RAMP_DOWN_HYST_VAL", 1442, Gpu, field(273, pick::value))
        .doc("ms", "Wait before power may fall that the administrator has set, in milliseconds."),
];
