//! What is read of a device to account what its users spend (`crate::usage`), whatever is selected.

/// One thing that is read of a device for its accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meter {
    /// Millijoules since the driver was loaded; the board's.
    Energy,
    /// Watts; the board's. Stands in for energy where the board does not count it.
    Power,
    /// Percent of time in which a kernel ran; not in MIG mode.
    Utilization,
    /// Share of time in which the engine had work: all that there is of a MIG instance.
    Engine,
}

impl Meter {
    /// Every one, in the order in which their fields are read.
    pub const ALL: [Self; 4] = [Self::Energy, Self::Power, Self::Utilization, Self::Engine];

    /// The catalogue's name of the field that it is.
    #[must_use]
    pub const fn field(self) -> &'static str {
        match self {
            Self::Energy => "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
            Self::Power => "DCGM_FI_DEV_POWER_USAGE",
            Self::Utilization => "DCGM_FI_DEV_GPU_UTIL",
            Self::Engine => "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_meter_is_a_field_of_the_catalogue() {
        for meter in Meter::ALL {
            let mut fields = crate::catalogue::fields();
            assert!(fields.any(|field| field.name == meter.field()), "{}", meter.field());
        }
    }
}
