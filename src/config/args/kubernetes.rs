//! Flags: who holds a GPU (Kubernetes pods, containers, HPC jobs).

use super::super::typed::Typed;

/// Who holds a GPU.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Kubernetes, containers, jobs")]
pub struct KubernetesArgs {
    // Outside Kubernetes there is no kubelet to ask.
    /// Say which pod holds a GPU
    #[arg(short = 'k', long, env = "DCGM_EXPORTER_KUBERNETES", default_value = "false")]
    pub kubernetes: Typed,

    // Pod labels cost series and an API client.
    /// Copy pod labels onto samples
    #[arg(long, env = "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", default_value = "false")]
    pub kubernetes_enable_pod_labels: Typed,

    // A UID makes a new series of each new pod.
    /// Add the label `pod_uid`
    #[arg(long, env = "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID", default_value = "false")]
    pub kubernetes_enable_pod_uid: Typed,

    // dcgm-exporter's.
    /// How pods name their GPUs: uid or device-name
    #[arg(
        long,
        env = "DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE",
        default_value = "uid",
        value_name = "TYPE"
    )]
    pub kubernetes_gpu_id_type: Typed,

    // No default: every pod label, once pod labels are on.
    /// Regular expressions of pod labels to copy; repeatable, or a comma list
    #[arg(
        long,
        env = "DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX",
        value_name = "REGEX",
        action = clap::ArgAction::Append
    )]
    pub kubernetes_pod_label_allowlist_regex: Vec<Typed>,

    // No default: annotations can be long and change often.
    /// Regular expressions of pod annotations to copy; repeatable, or a comma list
    #[arg(
        long,
        env = "NVML_EXPORTER_KUBERNETES_POD_ANNOTATION_ALLOWLIST_REGEX",
        value_name = "REGEX",
        action = clap::ArgAction::Append
    )]
    pub kubernetes_pod_annotation_allowlist_regex: Vec<Typed>,

    // Needs the API server, as pod labels do.
    /// Add the labels `owner_kind` and `owner_name`: the pod's Deployment, Job and so on
    #[arg(long, env = "NVML_EXPORTER_KUBERNETES_ENABLE_OWNER_LABELS", default_value = "false")]
    pub kubernetes_enable_owner_labels: Typed,

    // The host label says the same; a relabeling can too.
    /// Add the label `node`: the node's name in Kubernetes
    #[arg(long, env = "NVML_EXPORTER_KUBERNETES_ENABLE_NODE_LABEL", default_value = "false")]
    pub kubernetes_enable_node_label: Typed,

    // No default: the exporter's own pod is left out by itself.
    /// Regular expressions of NAMESPACE/POD that never count as users of a GPU; repeatable, or a
    /// comma list
    #[arg(
        long,
        env = "NVML_EXPORTER_KUBERNETES_IGNORE_PODS",
        value_name = "REGEX",
        action = clap::ArgAction::Append
    )]
    pub kubernetes_ignore_pods: Vec<Typed>,

    // As dcgm-exporter shows them.
    /// Where the pods of a GPU are shown: labels (on its series), info (`nvml_device_pod_info`) or
    /// both
    #[arg(long, env = "NVML_EXPORTER_ATTRIBUTION", default_value = "labels", value_name = "WHERE")]
    pub attribution: Typed,

    // No default: once each pass.
    /// Time between two questions to the kubelet, 1s or more
    #[arg(long, env = "NVML_EXPORTER_POD_RESOURCES_INTERVAL", value_name = "DURATION")]
    pub pod_resources_interval: Option<Typed>,

    // Unless GPUs are shared, one series a GPU is what is wanted.
    /// One series for each pod that shares a GPU
    #[arg(long, env = "KUBERNETES_VIRTUAL_GPUS", default_value = "false")]
    pub kubernetes_virtual_gpus: Typed,

    // The labels are many, and admin access takes rights on the API server to be seen.
    /// Add labels of Dynamic Resource Allocation's claims, and leave claims with admin access out
    #[arg(long, env = "KUBERNETES_ENABLE_DRA", default_value = "false")]
    pub kubernetes_enable_dra: Typed,

    // Where the kubelet puts it unless its root directory is moved.
    /// Socket of the kubelet's pod-resources service
    #[arg(
        long,
        env = "DCGM_POD_RESOURCES_KUBELET_SOCKET",
        default_value = "/var/lib/kubelet/pod-resources/kubelet.sock",
        value_name = "SOCKET"
    )]
    pub pod_resources_kubelet_socket: Typed,

    // No default: the names of NVIDIA's device plugin are known.
    /// Further resource names that are GPUs; repeatable, or a comma list
    #[arg(
        long,
        env = "NVIDIA_RESOURCE_NAMES",
        value_name = "NAME",
        action = clap::ArgAction::Append
    )]
    pub nvidia_resource_names: Vec<Typed>,

    // No default: off.
    /// Directory of files that say which job runs on which GPU
    #[arg(long, env = "DCGM_HPC_JOB_MAPPING_DIR", value_name = "DIRECTORY")]
    pub hpc_job_mapping_dir: Option<Typed>,

    // No default: pods with --kubernetes, else none.
    /// Whose use of a GPU is told: pod, container, user, unit (of systemd), slurm-job, process; a
    /// comma list, or none. Processes have to be visible (in a pod: `hostPID`). With pod typed
    /// here, the API server is asked for pods' UIDs, which tell apart those that share a GPU
    #[arg(long, env = "NVML_EXPORTER_USAGE_BY", value_name = "KINDS")]
    pub usage_by: Option<Typed>,

    // Needs the container runtime's socket.
    /// Name the containers that use a GPU, outside Kubernetes
    #[arg(long, env = "DCGM_EXPORTER_CONTAINER_LABELS", default_value = "false")]
    pub container_labels: Typed,

    // No default: runtimes differ.
    /// Docker-compatible socket for --container-labels
    #[arg(long, env = "DCGM_CONTAINER_RUNTIME_SOCKET", value_name = "SOCKET")]
    pub container_runtime_socket: Option<Typed>,
}
