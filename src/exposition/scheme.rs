//! How devices are labelled, and what else the operator decides about a page.

use std::time::Duration;

use crate::usage::By;

/// The spelling of the host label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HostLabel {
    /// `hostname`, as dcgm-exporter from 4.8.3.
    #[default]
    Lower,
    /// `Hostname`, as dcgm-exporter until 4.8.2; on links `hostname`, as there.
    Upper,
    /// `Hostname` and `hostname`.
    Both,
}

impl HostLabel {
    /// The names on GPU and MIG rows.
    pub(super) const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Lower => &["hostname"],
            Self::Upper => &["Hostname"],
            Self::Both => &["Hostname", "hostname"],
        }
    }

    /// The names on link rows: dcgm-exporter always wrote those in lower case.
    pub(super) const fn link_names(self) -> &'static [&'static str] {
        match self {
            Self::Lower | Self::Upper => &["hostname"],
            Self::Both => &["Hostname", "hostname"],
        }
    }
}

/// Names and values of identity labels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelScheme {
    /// The node's name; no host label when `None` or empty.
    pub host: Option<String>,
    /// How the host label is spelt.
    pub host_label: HostLabel,
    /// `uuid` instead of `UUID` on GPU and MIG rows (`--use-old-namespace`); links keep
    /// `gpu_uuid`.
    pub old_namespace: bool,
    /// White-space runs in `modelName` become `-` (`--replace-blanks-in-model-name`); links
    /// keep `model_name` as it is.
    pub replace_blanks: bool,
}

impl LabelScheme {
    /// The label that holds the GPU's UUID on GPU and MIG rows.
    pub(super) const fn uuid_name(&self) -> &'static str {
        if self.old_namespace { "uuid" } else { "UUID" }
    }

    /// The host labels of a GPU or MIG row.
    pub(super) fn host_labels(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let host = self.host.as_deref().filter(|host| !host.is_empty());
        host.into_iter().flat_map(|host| self.host_label.names().iter().map(move |n| (*n, host)))
    }

    /// The labels of container, namespace and pod; they are in this order when sorted.
    pub(super) const fn pod_names(&self) -> [&'static str; 3] {
        if self.old_namespace {
            ["container_name", "pod_namespace", "pod_name"]
        } else {
            ["container", "namespace", "pod"]
        }
    }

    /// The host labels of a link row.
    pub(super) fn link_host_labels(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let host = self.host.as_deref().filter(|host| !host.is_empty());
        host.into_iter()
            .flat_map(|host| self.host_label.link_names().iter().map(move |n| (*n, host)))
    }
}

/// Where the pods that hold a device are shown (`--attribution`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Show {
    /// On the device's series, as dcgm-exporter does.
    #[default]
    Labels,
    /// In `nvml_device_pod_info`, to join on.
    Info,
    /// Both.
    Both,
}

/// How the users of devices are shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of the command line")]
pub struct AttributionScheme {
    /// Whether pods are asked for (`--kubernetes`): idle devices then carry empty labels.
    pub pods: bool,
    /// Where they are shown.
    pub show: Show,
    /// A series for each sharer of a device (`--kubernetes-virtual-gpus`).
    pub split: bool,
    /// Labels of DRA claims (`--kubernetes-enable-dra`).
    pub dra: bool,
    /// The label `pod_uid` (`--kubernetes-enable-pod-uid`).
    pub pod_uid: bool,
    /// The label `node`, if wanted.
    pub node: Option<String>,
}

/// All that a page depends on beside the snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How devices are labelled.
    pub labels: LabelScheme,
    /// How the users of devices are shown.
    pub attribution: AttributionScheme,
    /// Whose use of devices is told, each once.
    pub usage: Vec<By>,
    /// Whether the `OpenMetrics` page is made too (`--openmetrics`).
    pub openmetrics: bool,
    /// A GPU whose reading is older has no device series and counts as down, reason `stale`.
    pub max_age: Duration,
    /// Window of `DCGM_EXP_XID_ERRORS_COUNT`.
    pub xid_window: Duration,
    /// Window of `DCGM_EXP_CLOCK_EVENTS_COUNT`.
    pub clock_window: Duration,
}
