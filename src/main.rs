//! Prometheus exporter for NVIDIA GPUs.
fn main() {}
