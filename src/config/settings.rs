//! The configuration as it is meant: what the rest of the program is built from.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use super::args::Command;
use super::selector::DeviceSelector;
use crate::catalogue::MetricNames;
use crate::exposition::Show;
use crate::telemetry::log::LogSettings;
use crate::usage::By;

/// One validated configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of the command line")]
pub struct Config {
    /// What the process is asked to do.
    pub command: Command,
    /// Where the wanted rows are listed.
    pub counters: Counters,
    /// Time between two passes.
    pub interval: Duration,
    /// Which GPUs and MIG instances are exported.
    pub devices: DeviceSelector,
    /// The label that names the host.
    pub host_label: HostLabel,
    /// Whether labels have the names of dcgm-exporter 1.x.
    pub old_namespace: bool,
    /// Whether runs of white space in a model's name become one dash.
    pub replace_blanks: bool,
    /// Which generation of DCGM's names is served.
    pub metric_names: MetricNames,
    /// Whether `OpenMetrics` is answered to those who ask for it.
    pub openmetrics: bool,
    /// Whether dcgm-exporter's known mistakes are imitated.
    pub quirks: bool,
    /// Window of `DCGM_EXP_XID_ERRORS_COUNT`.
    pub xid_window: Duration,
    /// Window of `DCGM_EXP_CLOCK_EVENTS_COUNT`.
    pub clock_events_window: Duration,
    /// The HTTP server.
    pub web: Web,
    /// Which library is read.
    pub driver: Driver,
    /// The kernel log, if XIDs are to be read from it.
    pub kernel_log: Option<KernelLog>,
    /// How long the driver may be unusable before the process gives up; `None` is for ever.
    pub exit_without_driver: Option<Duration>,
    /// The log.
    pub log: LogSettings,
    /// Debugging dumps, if wanted.
    pub dump: Option<Dump>,
    /// Attribution to pods, containers, jobs.
    pub kubernetes: Kubernetes,
    /// What was accepted but will not be done as asked, one line each; for the log.
    pub warnings: Vec<String>,
}

/// Where the driver's lines about XIDs are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelLog {
    /// The file, in the form of `/dev/kmsg`.
    pub path: PathBuf,
    /// Whether it was asked for; else it is read if it can be.
    pub wanted: bool,
}

/// Where the wanted rows are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counters {
    /// A counters file.
    File {
        /// Its path.
        path: PathBuf,
        /// Whether somebody asked for it; else it is the default file, which exists.
        explicit: bool,
    },
    /// The catalogue's own selection: no file was asked for, and the default one does not exist.
    BuiltIn,
    /// Rows in the YAML configuration file.
    Inline(Vec<InlineRow>),
    /// The key `metrics` of a `ConfigMap`.
    ConfigMap {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// What is used until it can be read.
        instead: Box<Counters>,
    },
}

/// A row in the YAML configuration file: the three columns of a counters file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlineRow {
    /// The field's name.
    pub name: String,
    /// The type, as text.
    pub kind: String,
    /// The help text.
    pub help: String,
    /// `path:line`, for messages about it.
    pub at: String,
}

/// How the host label is spelt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum HostLabelName {
    /// `hostname`, as in dcgm-exporter 4.8.3 and later.
    #[default]
    #[value(name = "hostname")]
    Lower,
    /// `Hostname`, as in dcgm-exporter up to 4.8.2.
    #[value(name = "Hostname")]
    Upper,
    /// Both, for the time of a migration.
    #[value(name = "both")]
    Both,
}

/// The label that names the host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostLabel {
    /// How it is spelt.
    pub name: HostLabelName,
    /// Its value; `None` leaves the label out.
    pub value: Option<String>,
}

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// Every address of the machine, IPv6 and IPv4 (`:9400`).
    Everywhere(u16),
    /// One address.
    At(SocketAddr),
    /// A host name, to be looked up when the listener is opened.
    Named(String, u16),
}

/// The HTTP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Web {
    /// Where to listen; unused if the sockets come from systemd.
    pub listen: Vec<Listen>,
    /// Whether the sockets come from systemd.
    pub systemd_socket: bool,
    /// exporter-toolkit's web configuration file.
    pub config_file: Option<PathBuf>,
    /// Time within which a request must have been read.
    pub read_timeout: Duration,
    /// Time within which an answer must have been written.
    pub write_timeout: Duration,
    /// Scrapes answered at a time.
    pub max_concurrent_scrapes: NonZeroUsize,
}

/// Which NVML library is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Driver {
    /// The driver's own, as the loader finds it.
    #[default]
    Installed,
    /// The one at this path.
    Library(PathBuf),
    /// The simulator with this scenario: a built-in one's name, or a file's path.
    Simulated(String),
}

/// Debugging dumps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dump {
    /// Where they are written.
    pub directory: PathBuf,
    /// Age at which they are deleted; `None` keeps them.
    pub retention: Option<Duration>,
    /// Whether they are compressed.
    pub compression: bool,
}

/// How a pod's device ids name GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum GpuIdType {
    /// By UUID.
    #[default]
    Uid,
    /// By `nvidiaN`.
    DeviceName,
}

/// Attribution to pods, containers, jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of the command line")]
pub struct Kubernetes {
    /// Whether GPUs are joined with pods.
    pub enabled: bool,
    /// The node's name (`NODE_NAME`).
    pub node_name: Option<String>,
    /// Whether pod labels are copied.
    pub pod_labels: bool,
    /// Whether the pod's UID is a label.
    pub pod_uid: bool,
    /// How device ids name GPUs.
    pub gpu_id_type: GpuIdType,
    /// Regular expressions of the pod labels to copy, as typed.
    pub pod_label_allowlist: Vec<String>,
    /// Regular expressions of the pod annotations to copy, as typed.
    pub pod_annotation_allowlist: Vec<String>,
    /// Whether the pod's owner is shown.
    pub owner_labels: bool,
    /// Whether the node's name is a label.
    pub node_label: bool,
    /// Regular expressions of `namespace/pod` that never count; known to be valid.
    pub ignore_pods: Vec<String>,
    /// Where pods are shown.
    pub show: Show,
    /// Time between two questions to the kubelet, 1 s or more.
    pub poll_interval: Duration,
    /// The exporter's own pod: its name, and its namespace if that is known.
    pub own_pod: Option<(String, Option<String>)>,
    /// Whether each sharer of a GPU has its own series.
    pub virtual_gpus: bool,
    /// Whether Dynamic Resource Allocation is looked at.
    pub dra: bool,
    /// The kubelet's socket.
    pub kubelet_socket: PathBuf,
    /// Further resource names that are GPUs.
    pub resource_names: Vec<String>,
    /// Directory of job files.
    pub hpc_job_mapping: Option<PathBuf>,
    /// Whose use of GPUs is told, each kind once.
    pub usage: Vec<By>,
    /// Whether the API server is asked for pods' UIDs to tell apart those that share a GPU.
    pub usage_uids: bool,
    /// Container runtime's socket, if containers are to be named.
    pub container_runtime: Option<PathBuf>,
}
