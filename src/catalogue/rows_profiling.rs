//! How much of a GPU works, measured by GPM: means since the pass before.

use super::prelude::*;

/// A share of time, which GPM has in percent, of the GPU or of each GPU instance.
const fn share(name: &'static str, id: u16, metric: u16) -> Field {
    gauge(name, id, Instance, gpm(metric, pick::gpm_ratio))
}

#[rustfmt::skip]
pub(super) const ROWS: &[Field] = &[
    share("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1001, 1)
        .doc("ratio", "Share of time during which the graphics or compute engine worked, as a ratio from 0 to 1.")
        .renamed("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO").alias(&["dcgm_fi_prof_gr_engine_active"]).on(),
];
