//! What is read of a GPU to judge its health (`crate::health`), whatever is selected.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sign_is_a_field_of_the_catalogue() {
        for sign in Sign::ALL {
            let mut fields = crate::catalogue::fields();
            assert!(fields.any(|field| field.name == sign.field()), "{}", sign.field());
        }
    }
}
