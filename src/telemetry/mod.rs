//! What the exporter says about itself.

pub mod log;
