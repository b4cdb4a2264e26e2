//! The exporter about itself.

pub mod metrics;

pub use metrics::Telemetry;
