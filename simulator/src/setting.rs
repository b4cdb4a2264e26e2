//! Values that a control command has taken in hand.

/// What a setting is about: the GPU itself, one of its links, or one of its GPU instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Gpu,
    Link(u32),
    Instance(u32),
}

macro_rules! keys {
    ($($(#[doc = $doc:literal])* $key:ident = $name:literal,)*) => {
        /// What can be set.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Key { $($(#[doc = $doc])* $key,)* }

        impl Key {
            /// All keys with the names that control files use.
            pub(crate) const ALL: &[(&str, Key)] = &[$(($name, Key::$key)),*];
        }
    };
}

keys! {
    /// Load, 0 to 1: everything else follows it.
    Load = "load",
    /// Degrees Celsius.
    Temperature = "temperature",
    MemoryTemperature = "memory_temperature",
    /// Watts.
    Power = "power",
    PowerLimit = "power_limit",
    /// Percent.
    GpuUtilization = "utilization",
    MemoryUtilization = "memory_utilization",
    EncoderUtilization = "encoder_utilization",
    DecoderUtilization = "decoder_utilization",
    JpegUtilization = "jpeg_utilization",
    OfaUtilization = "ofa_utilization",
    FanSpeed = "fan_speed",
    /// Bytes, or with a unit.
    MemoryUsed = "memory_used",
    Bar1Used = "bar1_used",
    /// MHz.
    SmClock = "sm_clock",
    MemoryClock = "memory_clock",
    VideoClock = "video_clock",
    /// The mask of clock event reasons.
    ClockReasons = "clock_reasons",
    PerformanceState = "performance_state",
    /// Error counters.
    SbeVolatile = "ecc_sbe_volatile",
    DbeVolatile = "ecc_dbe_volatile",
    SbeAggregate = "ecc_sbe_aggregate",
    DbeAggregate = "ecc_dbe_aggregate",
    SramThresholdExceeded = "sram_threshold_exceeded",
    EccMode = "ecc_mode",
    EccPending = "ecc_pending",
    RetiredSbe = "retired_sbe",
    RetiredDbe = "retired_dbe",
    RetiredPending = "retired_pending",
    RemappedCorrectable = "remapped_correctable",
    RemappedUncorrectable = "remapped_uncorrectable",
    RemappedPending = "remapped_pending",
    RemappedFailure = "remapped_failure",
    /// PCI Express.
    PcieGeneration = "pcie_generation",
    PcieWidth = "pcie_width",
    PcieReplay = "pcie_replay",
    /// Nanoseconds below the wanted clock, by cause.
    ViolationPower = "violation_power",
    ViolationThermal = "violation_thermal",
    ViolationReliability = "violation_reliability",
    ViolationBoard = "violation_board",
    ViolationHwThermal = "violation_hw_thermal",
    ViolationPowerBrake = "violation_power_brake",
    /// Modes.
    PersistenceMode = "persistence_mode",
    ComputeMode = "compute_mode",
    InforomValid = "inforom_valid",
    RecoveryAction = "recovery_action",
    /// Fabric: `NVML_GPU_FABRIC_STATE_*`, status code, health mask and summary.
    FabricState = "fabric_state",
    FabricStatus = "fabric_status",
    FabricHealth = "fabric_health",
    FabricSummary = "fabric_summary",
    /// Link: 1 is up. Without a link number: all links.
    LinkState = "state",
    LinkReplay = "replay_errors",
    LinkRecovery = "recovery_errors",
    LinkCrcFlit = "crc_flit_errors",
    LinkCrcData = "crc_data_errors",
    LinkEcc = "ecc_errors",
}

impl Key {
    /// The key of a name.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        Self::ALL.iter().find(|(n, _)| *n == name).map(|(_, key)| *key).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|(n, _)| *n).collect();
            format!("nothing called {name} can be set; there are {}", names.join(", "))
        })
    }
}

/// What is set and what is added on a GPU. A handful of entries at most: a list is fastest.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    set: Vec<(Scope, Key, f64)>,
    added: Vec<(Scope, Key, f64)>,
}

impl Settings {
    /// Pins a value.
    pub(crate) fn set(&mut self, scope: Scope, key: Key, value: f64) {
        self.set.retain(|(s, k, _)| (*s, *k) != (scope, key));
        self.set.push((scope, key, value));
    }

    /// Adds to a value, whether it is pinned or moves.
    pub(crate) fn add(&mut self, scope: Scope, key: Key, value: f64) {
        match self.added.iter_mut().find(|(s, k, _)| (*s, *k) == (scope, key)) {
            Some((.., sum)) => *sum += value,
            None => self.added.push((scope, key, value)),
        }
    }

    /// Lets go of a value, or of all values of a scope.
    pub(crate) fn unset(&mut self, scope: Scope, key: Option<Key>) {
        let keep = |s: &Scope, k: &Key| *s != scope || key.is_some_and(|key| key != *k);
        self.set.retain(|(s, k, _)| keep(s, k));
        self.added.retain(|(s, k, _)| keep(s, k));
    }

    /// The pinned value, if there is one.
    pub(crate) fn pinned(&self, scope: Scope, key: Key) -> Option<f64> {
        if self.set.is_empty() {
            return None;
        }
        self.set.iter().find(|(s, k, _)| (*s, *k) == (scope, key)).map(|(.., value)| *value)
    }

    /// The value: what is pinned or else what `natural` says, and what was added.
    pub(crate) fn value(&self, scope: Scope, key: Key, natural: impl FnOnce() -> f64) -> f64 {
        let base = self.pinned(scope, key).unwrap_or_else(natural);
        if self.added.is_empty() {
            return base;
        }
        let added = self.added.iter().filter(|(s, k, _)| (*s, *k) == (scope, key));
        base + added.map(|(.., value)| value).sum::<f64>()
    }
}

/// Reads a value: a number, hexadecimal too, or with a unit (`40GiB`, `512MiB`, `300W`, `91C`,
/// `35%`), or a word for 0 and 1.
pub(crate) fn parse_value(text: &str) -> Option<f64> {
    match text {
        "off" | "down" | "no" => return Some(0.0),
        "on" | "up" | "yes" => return Some(1.0),
        _ => {}
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return u32::from_str_radix(hex, 16).ok().map(f64::from);
    }
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
    let factor = match &text[digits.len()..] {
        "" | "W" | "C" | "MHz" | "%" | "ns" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    digits.parse::<f64>().ok().filter(|v| v.is_finite()).map(|v| v * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_with_units() {
        assert_eq!(parse_value("91"), Some(91.0));
        assert_eq!(parse_value("0x40"), Some(64.0));
        assert_eq!(parse_value("2GiB"), Some(2_147_483_648.0));
        assert_eq!(parse_value("down"), Some(0.0));
        assert_eq!(parse_value("91F"), None);
    }

    #[test]
    fn additions_outlive_pins_and_go_with_unset() {
        let mut settings = Settings::default();
        let read = |s: &Settings| s.value(Scope::Gpu, Key::DbeVolatile, || 2.0);
        settings.add(Scope::Gpu, Key::DbeVolatile, 3.0);
        assert_eq!(read(&settings).to_bits(), 5f64.to_bits());
        settings.set(Scope::Gpu, Key::DbeVolatile, 10.0);
        assert_eq!(read(&settings).to_bits(), 13f64.to_bits());
        settings.unset(Scope::Gpu, None);
        assert_eq!(read(&settings).to_bits(), 2f64.to_bits());
    }
}
