//! What the exporter says about itself.

pub mod log;
pub mod metrics;

pub use metrics::Telemetry;
