//! A `libnvidia-ml.so.1` look-alike.
//!
//! The library answers at the C ABI of `nvml.h` for machines that exist only in scenario files.
//! It is loaded by the exporter (`--simulate`), by its tests, and by any other NVML client.
//!
//! One call runs like this: an exported function in `api` hands its arguments to `call`, which
//! reads new lines of the control file, applies the faults they asked for, resolves the handle, and
//! then lets the function answer from the `world`. Nothing runs between calls: every value is a
//! function of the scenario, the seed and the time.
#![expect(
    unsafe_code,
    reason = "a C library: exported symbols, raw out-parameters, and its own ELF image"
)]

mod account;
mod api;
mod call;
mod clock;
mod code;
mod control;
mod cost;
mod counters;
mod curve;
mod device;
mod events;
mod fault;
mod ffi;
mod field;
mod gpm;
mod gpu;
mod grammar;
mod handle;
mod load;
mod mig;
mod model;
mod note;
mod process;
mod scenario;
mod setting;
mod since;
mod symbols;
mod trace;
mod world;
