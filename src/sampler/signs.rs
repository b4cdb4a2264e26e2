//! What passes tell of a GPU's health: levels, and how much counters grew in the last minute.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use super::history::age;

/// Counters are compared with what they were this long ago.
const MINUTE: Duration = Duration::from_secs(60);

/// Passes closer than this to the last one kept are compared and not kept.
const GRAIN: Duration = Duration::from_secs(5);

/// Makes the enumeration of signs and the fields that they are read from.
macro_rules! signs {
    ($($(#[doc = $doc:literal])+ $sign:ident = $field:literal,)+) => {
        /// One thing that is read of a GPU to judge its health.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Sign { $($(#[doc = $doc])+ $sign,)+ }

        impl Sign {
            /// Every one, in the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$sign,)+];

            /// The catalogue's name of the field that it is.
            #[must_use]
            pub const fn field(self) -> &'static str {
                match self { $(Self::$sign => $field,)+ }
            }
        }
    };
}

signs! {
    /// Uncorrectable memory errors since the GPU's last reset.
    DoubleBitErrors = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
    /// 1 if a row could not be remapped.
    RemapFailed = "DCGM_FI_DEV_ROW_REMAP_FAILURE",
    /// 1 if a row is remapped by the next reset.
    RemapPending = "DCGM_FI_DEV_ROW_REMAP_PENDING",
    /// 1 if pages are retired by the next reset.
    RetirementPending = "DCGM_FI_DEV_RETIRED_PENDING",
    /// Pages retired for correctable errors.
    RetiredSingleBit = "DCGM_FI_DEV_RETIRED_SBE",
    /// Pages retired for uncorrectable errors.
    RetiredDoubleBit = "DCGM_FI_DEV_RETIRED_DBE",
    /// 1 if the device has too many SRAM errors by its own word.
    SramThreshold = "DCGM_FI_DEV_THRESHOLD_SRM",
    /// `PCIe` packets sent again.
    PcieReplays = "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    /// `PCIe` lanes in use.
    PcieWidth = "DCGM_FI_DEV_PCIE_LINK_WIDTH",
    /// The most that device and slot can use.
    PcieMaxWidth = "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH",
    /// `PCIe` generation in use.
    PcieGeneration = "DCGM_FI_DEV_PCIE_LINK_GEN",
    /// The highest that device and slot can use.
    PcieMaxGeneration = "DCGM_FI_DEV_PCIE_MAX_LINK_GEN",
    /// Percent of time in which a kernel ran.
    Utilization = "DCGM_FI_DEV_GPU_UTIL",
    /// 1 for a link that is up, 0 for one that is not.
    LinkUp = "nvml_nvlink_up",
    /// `NVLink` packets sent again.
    LinkReplays = "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
    /// `NVLink` recoveries.
    LinkRecoveries = "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
    /// `NVLink` recoveries as Blackwell counts them.
    LinkRecoveryEvents = "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS",
    /// `NVLink` flow control CRC errors.
    LinkCrcFlit = "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
    /// `NVLink` data CRC errors.
    LinkCrcData = "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
    /// 0 if the `InfoROM` is damaged.
    InforomValid = "DCGM_FI_DEV_INFOROM_CONFIG_VALID",
    /// Nanoseconds for which heat held the clocks down.
    ThermalViolation = "DCGM_FI_DEV_THERMAL_VIOLATION",
    /// NVML's mask of reasons for lower clocks.
    ClockReasons = "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
    /// What the driver asks for, 0 if nothing.
    RecoveryAction = "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION",
}

const COUNT: usize = Sign::ALL.len();

/// One pass's values. A sign with a value a link has the least and the greatest of them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Signs {
    least: [Option<f64>; COUNT],
    greatest: [Option<f64>; COUNT],
    /// Growth in the last minute, or since the first pass.
    grown: [Option<f64>; COUNT],
    /// The time that growth is of.
    over: Duration,
}

impl Signs {
    /// Takes a value in.
    pub fn add(&mut self, sign: Sign, value: f64) {
        let at = sign as usize;
        self.least[at] = Some(self.least[at].map_or(value, |least| least.min(value)));
        self.greatest[at] = Some(self.greatest[at].map_or(value, |most| most.max(value)));
    }

    /// The value; the greatest of several.
    #[must_use]
    pub const fn get(&self, sign: Sign) -> Option<f64> {
        self.greatest[sign as usize]
    }

    /// The least of several values.
    #[must_use]
    pub const fn least(&self, sign: Sign) -> Option<f64> {
        self.least[sign as usize]
    }

    /// How much a counter grew in the last minute; `None` if it was not there then, or began anew.
    #[must_use]
    pub const fn grown(&self, sign: Sign) -> Option<f64> {
        self.grown[sign as usize]
    }

    /// The time in which counters grew: a minute, or less after the start.
    #[must_use]
    pub const fn over(&self) -> Duration {
        self.over
    }
}

/// The signs of the last minute.
#[derive(Debug, Default)]
pub struct Trend(VecDeque<(SystemTime, Signs)>);

impl Trend {
    /// Compares a pass's values with those of a minute ago.
    pub fn follow(&mut self, mut signs: Signs, at: SystemTime) -> Signs {
        // The oldest stays until the next is a minute old: growth is of a minute at least.
        while self.0.get(1).is_some_and(|(next, _)| age(*next, at) >= MINUTE) {
            self.0.pop_front();
        }
        if let Some((then, former)) = self.0.front() {
            signs.over = age(*then, at);
            for (index, grown) in signs.grown.iter_mut().enumerate() {
                let growth = signs.greatest[index].zip(former.greatest[index]);
                *grown = growth.map(|(now, then)| now - then).filter(|grown| *grown >= 0.0);
            }
        }
        if self.0.back().is_none_or(|(last, _)| age(*last, at) >= GRAIN) {
            self.0.push_back((at, signs));
        }
        signs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn replays(value: f64) -> Signs {
        let mut signs = Signs::default();
        signs.add(Sign::PcieReplays, value);
        signs
    }

    #[test]
    fn each_sign_is_a_field_of_the_catalogue() {
        for sign in Sign::ALL {
            let mut fields = crate::catalogue::fields();
            assert!(fields.any(|field| field.name == sign.field()), "{}", sign.field());
        }
    }

    #[test]
    fn growth_is_of_the_last_minute() {
        let mut trend = Trend::default();
        assert_eq!(trend.follow(replays(5.0), at(0)).grown(Sign::PcieReplays), None);
        let signs = trend.follow(replays(7.0), at(30));
        assert_eq!((signs.grown(Sign::PcieReplays), signs.over()), (Some(2.0), MINUTE / 2));
        let signs = trend.follow(replays(8.0), at(60));
        assert_eq!(signs.grown(Sign::PcieReplays), Some(3.0));
        let signs = trend.follow(replays(8.0), at(90));
        assert_eq!((signs.grown(Sign::PcieReplays), signs.over()), (Some(1.0), MINUTE));
        let signs = trend.follow(replays(8.0), at(150));
        assert_eq!(signs.grown(Sign::PcieReplays), Some(0.0));
    }

    #[test]
    fn many_passes_take_no_more_room_than_few() {
        let mut trend = Trend::default();
        for tenth in 0..2000 {
            let now = at(0) + Duration::from_millis(tenth * 100);
            let signs = trend.follow(replays(tenth as f64), now);
            let growth = signs.grown(Sign::PcieReplays).unwrap_or_default();
            assert!(growth <= 650.0, "{growth} in {:?}", signs.over());
        }
        assert!(trend.0.len() <= 14, "{}", trend.0.len());
    }

    #[test]
    fn a_counter_that_begins_anew_has_not_grown() {
        let mut trend = Trend::default();
        trend.follow(replays(50.0), at(0));
        assert_eq!(trend.follow(replays(3.0), at(30)).grown(Sign::PcieReplays), None);
        assert_eq!(trend.follow(Signs::default(), at(31)).grown(Sign::PcieReplays), None);
    }

    #[test]
    fn of_several_links_the_worst_and_the_best_are_known() {
        let mut signs = Signs::default();
        for up in [1.0, 0.0, 1.0] {
            signs.add(Sign::LinkUp, up);
        }
        assert_eq!((signs.least(Sign::LinkUp), signs.get(Sign::LinkUp)), (Some(0.0), Some(1.0)));
    }
}
