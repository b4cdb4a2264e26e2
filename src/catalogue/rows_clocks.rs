//! Clock rows.

use super::call::{Call, Clock, slot};
use super::field::{Entity, Field, Kind, Read};
use super::pick;

/// Clocks in MHz, as NVML gives them.
pub const ROWS: &[Field] = &[Field::new(
    "DCGM_FI_DEV_SM_CLOCK",
    100,
    Kind::Gauge,
    Entity::Gpu,
    Read::Call(Call::ClockInfo(Clock::Sm), |n| pick::raw(n, slot::VALUE)),
)
.doc("MHz", "SM clock frequency (in MHz).")
.alias(&["dcgm_sm_clock"])
.renamed("DCGM_FI_DEV_SM_CLOCK_HERTZ")
.on()];
