//! Prometheus exporter for NVIDIA GPUs.
