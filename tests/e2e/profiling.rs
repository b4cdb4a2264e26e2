//! `DCGM_FI_PROF_*`: means between two passes, measured by GPM.

use crate::support::Setup;

const ACTIVE: &str = "DCGM_FI_PROF_GR_ENGINE_ACTIVE";

/// What the simulator's GPMs answer of graphics activity at full load.
const FULL: f64 = 0.99;

fn close(found: Option<f64>, expected: f64) -> bool {
    found.is_some_and(|found| (found - expected).abs() < 1e-9)
}

#[test]
fn a_value_is_the_mean_between_two_passes() {
    let exporter = Setup::simulate("dgx-h100")
        .counters(&format!("{ACTIVE}, gauge, Active."))
        .control(&["gpu 0 set load 0.5", "gpu 1 set load 0"])
        .ready();
    exporter.until("half", |page| close(page.of_gpu(ACTIVE, "0"), 0.5 * FULL));
    exporter.until("nothing", |page| close(page.of_gpu(ACTIVE, "1"), 0.0));
}
