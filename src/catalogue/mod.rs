//! The table of fields, and the selection of rows from a counters file. Pure: reads nothing.
//!
//! Everything the product knows about a field stands in one row. Adding a field is adding a row
//! to one of the tables listed in [`TABLES`].

pub mod call;
pub mod counters;
pub mod docs;
pub mod field;
mod field_value;
mod functions;
pub mod gpm;
mod meter;
pub mod names;
pub mod pick;
pub mod plan;
mod prelude;
mod records;
mod rows_clocks;
mod rows_ecc;
mod rows_fabric;
mod rows_history;
mod rows_identity;
mod rows_memory;
mod rows_nvlink;
mod rows_pcie;
mod rows_power;
mod rows_profiling;
mod rows_state;
mod rows_throttling;
mod rows_unserved;
mod rows_utilisation;
pub mod selection;
mod sign;

pub use call::{Call, Fact, FieldValueRead, Number, Numbers, RateRead, Scope};
pub use counters::{CountersError, Parsed, default_selection, parse};
pub use field::{Entity, Field, History, Kind, Read, Value};
pub use gpm::GpmMetric;
pub use meter::Meter;
pub use plan::Plan;
pub use selection::{MetricNames, Row, Selection};
pub use sign::Sign;

/// All tables of rows with their titles, in the order of docs/metrics.md and metrics.csv.
pub const TABLES: &[(&str, &[Field])] = &[
    ("Identity", rows_identity::ROWS),
    ("Errors, modes and licences", rows_state::ROWS),
    ("What happened, and health", rows_history::ROWS),
    ("Utilisation", rows_utilisation::ROWS),
    ("Profiling", rows_profiling::ROWS),
    ("Profiling: video engines, optical flow", rows_profiling::ENGINES),
    ("Memory", rows_memory::ROWS),
    ("Temperature, power, energy, fan", rows_power::ROWS),
    ("Clocks", rows_clocks::ROWS),
    ("Why and how long clocks were held down", rows_throttling::ROWS),
    ("Memory health", rows_ecc::ROWS),
    ("PCIe", rows_pcie::ROWS),
    ("NVLink", rows_nvlink::ROWS),
    ("NVLink 5 counters", rows_nvlink::NVLINK5),
    ("NVLink fabric, chip-to-chip link, platform", rows_fabric::ROWS),
    ("ECC errors by place", rows_ecc::LOCATIONS),
    ("NVLink errors by link: flow control CRC", rows_nvlink::CRC_FLIT_BY_LINK),
    ("NVLink errors by link: data CRC", rows_nvlink::CRC_DATA_BY_LINK),
    ("NVLink errors by link: replays", rows_nvlink::REPLAY_BY_LINK),
    ("NVLink errors by link: recoveries", rows_nvlink::RECOVERY_BY_LINK),
    ("NVLink throughput by link: both ways", rows_nvlink::RATE_BY_LINK),
    ("NVLink throughput by link: both ways, bytes", rows_nvlink::BYTE_RATE_BY_LINK),
    ("NVLink throughput by link: sent", rows_nvlink::TX_RATE_BY_LINK),
    ("NVLink throughput by link: received", rows_nvlink::RX_RATE_BY_LINK),
    ("Profiling: NVLink by link", rows_profiling::LINKS),
    ("NVLink corrections by number of symbols", rows_nvlink::FEC),
    ("Power smoothing", rows_power::SMOOTHING),
    ("Not served: PCIe rates", rows_unserved::PCIE_RATE),
    ("Not served: NVSwitch", rows_unserved::NVSWITCH),
    ("Not served: CPU", rows_unserved::CPU),
    ("Not served: ConnectX", rows_unserved::CONNECTX),
    ("Not served: vGPU guests", rows_unserved::VGPU),
    ("Not served: IMEX", rows_unserved::IMEX),
    ("Not served: diagnostics", rows_unserved::DIAG),
    ("Not served: link registers", rows_unserved::PRM),
    ("Not served: structures", rows_unserved::BINARY),
    ("Not served: affinity", rows_unserved::AFFINITY),
    ("Not served: DCGM's own", rows_unserved::INTERNAL),
];

/// All rows.
pub fn fields() -> impl Iterator<Item = &'static Field> {
    TABLES.iter().flat_map(|(_, rows)| rows.iter())
}
