//! The table of fields, and the selection of rows from a counters file. Pure: reads nothing.
//!
//! Everything the product knows about a field stands in one row. Adding a field is adding a row
//! to one of the tables listed in [`TABLES`].

pub mod call;
pub mod field;
pub mod pick;
pub mod plan;
mod rows_clocks;
pub mod selection;

pub use call::{Call, Fact, FieldValueRead, Number, Numbers, RateRead, Scope};
pub use field::{Entity, Field, Kind, Read, Value};
pub use selection::{MetricNames, Row, Selection};

/// All tables of rows, in the order of docs/metrics.md.
pub const TABLES: &[(&str, &[Field])] = &[("Clocks", rows_clocks::ROWS)];

/// All rows.
pub fn fields() -> impl Iterator<Item = &'static Field> {
    TABLES.iter().flat_map(|(_, rows)| rows.iter())
}
