//! Flags: HTTP server, driver, log, configuration file, dumps.

use super::super::typed::Typed;

/// The HTTP server.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "HTTP server")]
pub struct WebArgs {
    // dcgm-exporter's port, on every address of the node: what its charts and probes expect.
    /// Address to listen on (`:9400`, `127.0.0.1:9400`, `[::1]:9400`); repeatable, or a comma list
    #[arg(
        short = 'a',
        long,
        env = "DCGM_EXPORTER_LISTEN",
        default_value = ":9400",
        value_name = "ADDRESS",
        action = clap::ArgAction::Append
    )]
    pub address: Vec<Typed>,

    // A socket unit hands its sockets over only where it is told to.
    /// Take the listening sockets from systemd
    #[arg(long, env = "DCGM_EXPORTER_SYSTEMD_SOCKET", default_value = "false")]
    pub web_systemd_socket: Typed,

    // No default: plain HTTP, as in dcgm-exporter.
    /// Web configuration file of Prometheus' exporter-toolkit (TLS, basic auth)
    #[arg(
        long,
        visible_alias = "web.config.file",
        env = "DCGM_EXPORTER_WEB_CONFIG_FILE",
        value_name = "FILE"
    )]
    pub web_config_file: Option<Typed>,

    // dcgm-exporter's 10 s: a request line takes no longer.
    /// Time within which a request must have been read
    #[arg(
        long,
        env = "DCGM_EXPORTER_WEB_READ_TIMEOUT",
        default_value = "10s",
        value_name = "DURATION"
    )]
    pub web_read_timeout: Typed,

    // dcgm-exporter's 30 s (since 4.8.3): longer than any scrape time-out in use.
    /// Time within which an answer must have been written
    #[arg(
        long,
        env = "DCGM_EXPORTER_WEB_WRITE_TIMEOUT",
        default_value = "30s",
        value_name = "DURATION"
    )]
    pub web_write_timeout: Typed,

    // dcgm-exporter's 16: more scrapers at a time than that are a mistake.
    /// Scrapes answered at a time; more are answered 503
    #[arg(
        long,
        env = "DCGM_EXPORTER_MAX_CONCURRENT_SCRAPES",
        default_value = "16",
        value_name = "COUNT"
    )]
    pub max_concurrent_scrapes: Typed,
}

/// Driver, log, configuration file.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Process")]
pub struct ProcessArgs {
    // No default: everything has one already.
    /// YAML configuration file of dcgm-exporter (versions 1 and 2)
    #[arg(long, env = "DCGM_EXPORTER_CONFIG_FILE", value_name = "FILE")]
    pub config_file: Option<Typed>,

    // No default: libnvidia-ml.so.1, then libnvidia-ml.so, as the loader finds them.
    /// NVML library to load instead of the driver's libnvidia-ml.so.1
    #[arg(long, env = "NVML_EXPORTER_NVML_LIBRARY", value_name = "FILE")]
    pub nvml_library: Option<Typed>,

    // No default: real GPUs.
    /// Read simulated GPUs: the name of a built-in scenario, or a scenario file
    #[arg(long, env = "NVML_EXPORTER_SIMULATE", value_name = "SCENARIO")]
    pub simulate: Option<Typed>,

    // It helps where it can be had; a container has it only if it is mounted and privileged.
    /// Kernel log to read the driver's XIDs from, beside NVML's events, in the form of `/dev/kmsg`;
    /// auto is that file if it may be read
    #[arg(
        long,
        env = "NVML_EXPORTER_KERNEL_LOG",
        default_value = "auto",
        value_name = "auto|none|FILE"
    )]
    pub kernel_log: Typed,

    // A node whose driver comes later (or whose GPU is being reset) must not crash-loop.
    /// Exit if the driver cannot be used: at once, or once that has lasted for a time (5m)
    #[arg(
        long,
        env = "NVML_EXPORTER_EXIT_WITHOUT_DRIVER",
        default_value = "false",
        value_name = "BOOL|DURATION"
    )]
    pub exit_without_driver: Typed,

    // People read logs more often than machines do.
    /// Format of the log: text or json
    #[arg(long, env = "DCGM_EXPORTER_LOG_FORMAT", default_value = "text", value_name = "FORMAT")]
    pub log_format: Typed,

    // No default of its own: `--debug`, then `RUST_LOG`, then info.
    /// Least severe level that is logged: error, warn, info, debug or trace
    #[arg(long, env = "NVML_EXPORTER_LOG_LEVEL", value_name = "LEVEL")]
    pub log_level: Option<Typed>,

    // Debug lines are for the one who looks for a mistake.
    /// Short for --log-level debug
    #[arg(long, env = "DCGM_EXPORTER_DEBUG", default_value = "false")]
    pub debug: Typed,
}

/// Debugging dumps.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Debugging dumps")]
#[expect(clippy::struct_field_names, reason = "the fields are named as the flags are")]
pub struct DumpArgs {
    // They fill a disk.
    /// Write what each pass has read to files
    #[arg(long, env = "DCGM_EXPORTER_DUMP_ENABLED", default_value = "false")]
    pub dump_enabled: Typed,

    // dcgm-exporter's directory.
    /// Directory of the dumps
    #[arg(
        long,
        env = "DCGM_EXPORTER_DUMP_DIRECTORY",
        default_value = "/tmp/dcgm-exporter-debug",
        value_name = "DIRECTORY"
    )]
    pub dump_directory: Typed,

    // dcgm-exporter's day.
    /// Hours after which dumps are deleted; 0 keeps them for ever
    #[arg(long, env = "DCGM_EXPORTER_DUMP_RETENTION", default_value = "24", value_name = "HOURS")]
    pub dump_retention: Typed,

    // JSON of many like rows shrinks to a tenth.
    /// Compress the dumps with gzip
    #[arg(long, env = "DCGM_EXPORTER_DUMP_COMPRESSION", default_value = "true")]
    pub dump_compression: Typed,
}
