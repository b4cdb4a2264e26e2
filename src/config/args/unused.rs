//! Flags of dcgm-exporter that mean nothing to an exporter that reads NVML itself. They are
//! accepted, so that what starts dcgm-exporter starts this, and answered with one warning each.
//! Their defaults are dcgm-exporter's: what is typed only to say the same needs no warning.

use super::super::typed::Typed;

/// Flags of dcgm-exporter that mean nothing here.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Accepted for dcgm-exporter's sake, without effect")]
pub struct UnusedArgs {
    /// DCGM host engine: there is none; outside Kubernetes its host becomes the host label
    #[arg(
        short = 'r',
        long,
        env = "DCGM_REMOTE_HOSTENGINE_INFO",
        default_value = "localhost:5555",
        value_name = "ADDRESS"
    )]
    pub remote_hostengine_info: Typed,

    /// `NVSwitches` and their `NVLinks` to export
    #[arg(
        short = 's',
        long,
        env = "DCGM_EXPORTER_OTHER_DEVICES_STR",
        default_value = "f",
        value_name = "SELECTOR"
    )]
    pub switch_devices: Typed,

    /// Grace CPUs and their cores to export
    #[arg(
        short = 'p',
        long,
        env = "DCGM_EXPORTER_CPU_DEVICES_STR",
        default_value = "f",
        value_name = "SELECTOR"
    )]
    pub cpu_devices: Typed,

    /// Also list GPUs injected into DCGM
    #[arg(long, env = "DCGM_EXPORTER_USE_FAKE_GPUS", default_value = "false")]
    pub fake_gpus: Typed,

    /// Log what DCGM logs
    #[arg(long, env = "DCGM_EXPORTER_ENABLE_DCGM_LOG", default_value = "false")]
    pub enable_dcgm_log: Typed,

    /// DCGM's own log level
    #[arg(
        long,
        env = "DCGM_EXPORTER_DCGM_LOG_LEVEL",
        default_value = "NONE",
        value_name = "LEVEL"
    )]
    pub dcgm_log_level: Typed,

    /// Skip the search for DCGM's library at start-up
    #[arg(long, env = "DISABLE_STARTUP_VALIDATE", default_value = "false")]
    pub disable_startup_validate: Typed,

    /// Notice GPUs that are attached or detached: this is always done
    #[arg(long, env = "DCGM_EXPORTER_ENABLE_GPU_BIND_UNBIND_WATCH", default_value = "false")]
    pub enable_gpu_bind_unbind_watch: Typed,

    /// How often to look for attached or detached GPUs
    #[arg(
        long,
        env = "DCGM_EXPORTER_GPU_BIND_UNBIND_POLL_INTERVAL",
        default_value = "1s",
        value_name = "DURATION"
    )]
    pub gpu_bind_unbind_poll_interval: Typed,

    /// Go's profiling pages
    #[arg(long, env = "DCGM_EXPORTER_ENABLE_PPROF", default_value = "false")]
    pub enable_pprof: Typed,

    /// Go's metrics of the exporter; this one's own metrics are always served
    #[arg(long, env = "DCGM_EXPORTER_ENABLE_EXPORTER_METRICS", default_value = "false")]
    pub enable_exporter_metrics: Typed,

    /// Age up to which DCGM keeps samples
    #[arg(
        long,
        env = "DCGM_EXPORTER_WATCH_MAX_KEEP_AGE",
        default_value = "10m",
        value_name = "DURATION"
    )]
    pub watch_max_keep_age: Typed,

    /// Number up to which DCGM keeps samples
    #[arg(
        long,
        env = "DCGM_EXPORTER_WATCH_MAX_KEEP_SAMPLES",
        default_value = "0",
        value_name = "COUNT"
    )]
    pub watch_max_keep_samples: Typed,
}
