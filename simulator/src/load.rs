//! What happens when the library is loaded.

use std::sync::OnceLock;
use std::time::Instant;

use crate::world::{self, Environment};
use crate::{cost, trace};

static LOADED: OnceLock<Instant> = OnceLock::new();

/// Runs before the client can look up the first symbol.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = on_load;

extern "C" fn on_load() {
    LOADED.get_or_init(Instant::now);
    let read = |name: &str| std::env::var(name).ok();
    if let Some(path) = read("NVML_SIM_TRACE").filter(|p| !p.is_empty()) {
        trace::open(&path);
    }
    if let Some(path) = read("NVML_SIM_COST").filter(|p| !p.is_empty()) {
        cost::open(&path);
    }
    world::load(Environment {
        scenario: read("NVML_SIM_SCENARIO").filter(|s| !s.is_empty()),
        seed: read("NVML_SIM_SEED"),
        clock: read("NVML_SIM_CLOCK"),
        control: read("NVML_SIM_CONTROL"),
        hide: read("NVML_SIM_HIDE"),
    });
}

/// Runs when the last client has closed the library, and at the end of the process.
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = on_unload;

extern "C" fn on_unload() {
    world::unload();
    trace::close();
}

/// Milliseconds since the library was loaded.
pub(crate) fn millis() -> f64 {
    LOADED.get_or_init(Instant::now).elapsed().as_secs_f64() * 1e3
}
