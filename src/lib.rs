//! `nvml-exporter`: reads NVIDIA GPUs and MIG instances through NVML and serves DCGM-named
//! metrics to Prometheus. ARCHITECTURE.md says how the parts hang together.

pub mod attribution;
pub mod catalogue;
pub mod cluster;
pub mod config;
pub mod exposition;
pub mod health;
pub mod http;
pub mod nvml;
pub mod publisher;
pub mod sampler;
pub mod service;
pub mod telemetry;
pub mod usage;
pub mod xid;
