//! Flags: what is exported, and how it is named.

use super::super::typed::Typed;

/// What is exported, and how it is named.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Metrics")]
pub struct MetricsArgs {
    // dcgm-exporter's path, so that its images' layout works; absent there, our own selection does.
    /// CSV file of the fields to export; if the default file is absent, the built-in selection
    #[arg(
        short = 'f',
        long,
        env = "DCGM_EXPORTER_COLLECTORS",
        default_value = "/etc/dcgm-exporter/default-counters.csv",
        value_name = "FILE"
    )]
    pub collectors: Typed,

    // dcgm-exporter's word for "no ConfigMap": the CSV file is used.
    /// NAMESPACE:NAME of a `ConfigMap` whose key `metrics` replaces the CSV file
    #[arg(
        short = 'm',
        long,
        env = "DCGM_EXPORTER_CONFIGMAP_DATA",
        default_value = "none",
        value_name = "NAMESPACE:NAME"
    )]
    pub configmap_data: Typed,

    // dcgm-exporter's 30 s: dashboards' rate windows are made for it.
    /// Time between two readings of the GPUs: milliseconds, or with a unit (15s, 500ms); at least
    /// 100 ms
    #[arg(
        short = 'c',
        long,
        env = "DCGM_EXPORTER_INTERVAL",
        default_value = "30000",
        value_name = "MS|DURATION"
    )]
    pub collect_interval: Typed,

    // Everything there is: on a MIG GPU its instances, else the GPU.
    /// GPUs and MIG instances to export: f, or g[:LIST], i[:LIST] or both joined by +
    #[arg(
        short = 'd',
        long,
        env = "DCGM_EXPORTER_DEVICES_STR",
        default_value = "f",
        value_name = "SELECTOR"
    )]
    pub devices: Typed,

    // The label names of today, not of dcgm-exporter 1.x.
    /// Use the label names of dcgm-exporter 1.x (uuid, `pod_name`, `pod_namespace`,
    /// `container_name`)
    #[arg(short = 'o', long, env = "DCGM_EXPORTER_USE_OLD_NAMESPACE", default_value = "false")]
    pub use_old_namespace: Typed,

    // The model as the driver says it.
    /// Replace runs of white space in modelName by one dash (-rbmn)
    #[arg(
        long,
        visible_alias = "rbmn",
        env = "DCGM_EXPORTER_REPLACE_BLANKS_IN_MODEL_NAME",
        default_value = "false"
    )]
    pub replace_blanks_in_model_name: Typed,

    // Several nodes behind one scrape job are told apart by it.
    /// Leave the host label out
    #[arg(short = 'n', long, env = "DCGM_EXPORTER_NO_HOSTNAME", default_value = "false")]
    pub no_hostname: Typed,

    // The spelling of dcgm-exporter 4.8.3 and later.
    /// Spelling of the host label: hostname, Hostname (dcgm-exporter up to 4.8.2) or both
    #[arg(
        long,
        env = "NVML_EXPORTER_HOST_LABEL",
        default_value = "hostname",
        value_name = "SPELLING"
    )]
    pub host_label: Typed,

    // The names that dashboards and alerts in use know.
    /// Names of the fields that DCGM 4.7 renamed: legacy, dcgm47 or both
    #[arg(
        long,
        env = "NVML_EXPORTER_METRIC_NAMES",
        default_value = "legacy",
        value_name = "GENERATION"
    )]
    pub metric_names: Typed,

    // OpenMetrics wants counters to end in _total, which DCGM's do not: only on request.
    /// Answer in `OpenMetrics` format if the scraper asks for it
    #[arg(long, env = "NVML_EXPORTER_OPENMETRICS", default_value = "false")]
    pub openmetrics: Typed,

    // What is wrong in dcgm-exporter's output is not worth imitating unless a rule relies on it.
    /// Imitate dcgm-exporter's output also where it is known to be wrong
    #[arg(long, env = "NVML_EXPORTER_DCGM_QUIRKS", default_value = "false")]
    pub dcgm_quirks: Typed,

    // dcgm-exporter's 5 minutes.
    /// Window of `DCGM_EXP_XID_ERRORS_COUNT`: milliseconds, or with a unit
    #[arg(
        short = 'x',
        long,
        env = "DCGM_EXPORTER_XID_COUNT_WINDOW_SIZE",
        default_value = "300000",
        value_name = "MS|DURATION"
    )]
    pub xid_count_window_size: Typed,

    // dcgm-exporter's 5 minutes.
    /// Window of `DCGM_EXP_CLOCK_EVENTS_COUNT`: milliseconds, or with a unit
    #[arg(
        long,
        env = "DCGM_EXPORTER_CLOCK_EVENTS_COUNT_WINDOW_SIZE",
        default_value = "300000",
        value_name = "MS|DURATION"
    )]
    pub clock_events_count_window_size: Typed,
}
