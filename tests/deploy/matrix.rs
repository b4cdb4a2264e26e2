//! The chart with one thing after the other turned on: what it renders to, in Kubernetes' view
//! and in the exporter's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::Value;

use crate::support::{CHART, items, judged, objects, only, said, template, text};

/// Values, and what they change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) values: &'static str,
    /// Environment variables beside those that the defaults have. `-` in front: without it.
    pub(crate) env: &'static [(&'static str, &'static str)],
    /// What the API server is asked for, as in `tests/data/rights.txt`.
    pub(crate) purposes: &'static [&'static str],
}

const fn row(
    name: &'static str,
    values: &'static str,
    env: &'static [(&'static str, &'static str)],
    purposes: &'static [&'static str],
) -> Row {
    Row { name, values, env, purposes }
}

const POD_LABELS: (&str, &str) = ("DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", "true");
const POD_UID: (&str, &str) = ("DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID", "true");
const DRA: (&str, &str) = ("KUBERNETES_ENABLE_DRA", "true");
const WEB: (&str, &str) =
    ("DCGM_EXPORTER_WEB_CONFIG_FILE", "/etc/nvml-exporter/web/web-config.yml");

pub(crate) const ROWS: &[Row] = &[
    row("defaults", "{}", &[], &[]),
    row(
        "without kubernetes",
        "kubernetes: {enabled: false, podLabels: {enabled: true}, podUid: true, virtualGpus: true}
kubernetesDRA: {enabled: true}",
        &[("-DCGM_EXPORTER_KUBERNETES", ""), ("-NVML_EXPORTER_ATTRIBUTION", "")],
        &[],
    ),
    row(
        "readings",
        "{collectInterval: 10000, devices: 'g:0-3', hostLabel: both, metricNames: dcgm47,
log: {format: json, level: debug}}",
        &[
            ("DCGM_EXPORTER_INTERVAL", "10000"),
            ("DCGM_EXPORTER_DEVICES_STR", "g:0-3"),
            ("NVML_EXPORTER_HOST_LABEL", "both"),
            ("NVML_EXPORTER_METRIC_NAMES", "dcgm47"),
            ("DCGM_EXPORTER_LOG_FORMAT", "json"),
            ("NVML_EXPORTER_LOG_LEVEL", "debug"),
        ],
        &[],
    ),
    row("info", "kubernetes: {attribution: info}", &[("NVML_EXPORTER_ATTRIBUTION", "info")], &[]),
    row(
        "virtual GPUs",
        "{kubernetes: {virtualGpus: true}, hostPID: true}",
        &[("KUBERNETES_VIRTUAL_GPUS", "true")],
        &["pods"],
    ),
    row(
        "usage by pod and process",
        "{usageBy: [pod, process], hostPID: true}",
        &[("NVML_EXPORTER_USAGE_BY", "pod,process")],
        &["pods"],
    ),
    row(
        "usage by unit",
        "{usageBy: [unit], hostPID: true}",
        &[("NVML_EXPORTER_USAGE_BY", "unit")],
        &[],
    ),
    row("no usage", "usageBy: [none]", &[("NVML_EXPORTER_USAGE_BY", "none")], &[]),
    row("pod labels", "kubernetes: {podLabels: {enabled: true}}", &[POD_LABELS], &["pods"]),
    row(
        "some pod labels",
        r"kubernetes: {podLabels: {enabled: true, allowlistRegex: ['^app\.', '^team$']}}",
        &[POD_LABELS, ("DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX", r"^app\.,^team$")],
        &["pods"],
    ),
    row("an allowlist alone", "kubernetes: {podLabels: {allowlistRegex: [a]}}", &[], &[]),
    row(
        "pod annotations",
        "kubernetes: {podAnnotations: {allowlistRegex: ['^cost/']}}",
        &[("NVML_EXPORTER_KUBERNETES_POD_ANNOTATION_ALLOWLIST_REGEX", "^cost/")],
        &["pods"],
    ),
    row("pod uid", "kubernetes: {podUid: true}", &[POD_UID], &["pods"]),
    row(
        "owners",
        "kubernetes: {ownerLabels: true}",
        &[("NVML_EXPORTER_KUBERNETES_ENABLE_OWNER_LABELS", "true")],
        &["pods"],
    ),
    row(
        "node label",
        "kubernetes: {nodeLabel: true}",
        &[("NVML_EXPORTER_KUBERNETES_ENABLE_NODE_LABEL", "true")],
        &[],
    ),
    row(
        "kubelet",
        "{kubernetes: {ignorePods: ['^kube-system/', '^gpu/'], resourceNames: [corp/gpu, corp/mig],
pollInterval: 20s}, kubeletPath: /srv/kubelet/pod-resources}",
        &[
            ("NVML_EXPORTER_KUBERNETES_IGNORE_PODS", "^kube-system/,^gpu/"),
            ("NVIDIA_RESOURCE_NAMES", "corp/gpu,corp/mig"),
            ("NVML_EXPORTER_POD_RESOURCES_INTERVAL", "20s"),
        ],
        &[],
    ),
    row("DRA", "kubernetesDRA: {enabled: true}", &[DRA], &["claims"]),
    row(
        "ConfigMap elsewhere",
        "configMapData: {name: rows, namespace: gpu}",
        &[("DCGM_EXPORTER_CONFIGMAP_DATA", "gpu:rows")],
        &["configmap"],
    ),
    row(
        "ConfigMap at home",
        "configMapData: {name: rows}\nnamespaceOverride: gpu",
        &[("DCGM_EXPORTER_CONFIGMAP_DATA", "gpu:rows")],
        &["configmap"],
    ),
    row(
        "all that asks the API server",
        "{kubernetes: {podLabels: {enabled: true}, podUid: true}, kubernetesDRA: {enabled: true},
configMapData: {name: rows, namespace: gpu}, networkPolicy: {enabled: true}}",
        &[POD_LABELS, POD_UID, DRA, ("DCGM_EXPORTER_CONFIGMAP_DATA", "gpu:rows")],
        &["pods", "claims", "configmap"],
    ),
    row(
        "custom metrics",
        "customMetrics: |\n  # one row\n  DCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (in C).\n",
        &[("DCGM_EXPORTER_COLLECTORS", "/etc/nvml-exporter/metrics/metrics.csv")],
        &[],
    ),
    row(
        "TLS from a Secret",
        "tlsServerConfig: {enabled: true, existingSecret: cert, clientAuthType: RequestClientCert}",
        &[WEB],
        &[],
    ),
    row(
        "TLS from values, with passwords",
        "tlsServerConfig: {enabled: true, cert: \"c\\nd\\n\", key: k, ca: a,
  clientAuthType: RequireAndVerifyClientCert}
basicAuth: {users: {prometheus: $2y$10$abcdefghijklmnopqrstuuJ1Zc9Jc1vYvTm0m8rXJ0jJ0k0qV1h1C}}",
        &[WEB],
        &[],
    ),
    row(
        "passwords",
        "basicAuth: {users: {prometheus: $2y$10$abcdefghijklmnopqrstuuJ1Zc9Jc1vYvTm0m8rXJ0jJ0k0qV1h1C}}",
        &[WEB],
        &[],
    ),
    row(
        "web configuration of one's own",
        "webConfig: {existingSecret: web, key: my.yml, tls: true}",
        &[("DCGM_EXPORTER_WEB_CONFIG_FILE", "/etc/nvml-exporter/web/my.yml")],
        &[],
    ),
    row(
        "jobs",
        "hpcJobMapping: {enabled: true, directory: /srv/jobs}",
        &[("DCGM_HPC_JOB_MAPPING_DIR", "/var/lib/nvml-exporter/job-mapping")],
        &[],
    ),
    row(
        "dumps",
        "debugDump: {enabled: true, retention: 2, compression: false}",
        &[
            ("DCGM_EXPORTER_DUMP_ENABLED", "true"),
            ("DCGM_EXPORTER_DUMP_DIRECTORY", "/tmp/dcgm-exporter-debug"),
            ("DCGM_EXPORTER_DUMP_RETENTION", "2"),
            ("DCGM_EXPORTER_DUMP_COMPRESSION", "false"),
        ],
        &[],
    ),
    row(
        "MIG monitor",
        "{migMonitor: {enabled: true}, kubernetes: {enabled: false}}",
        &[
            ("NVIDIA_MIG_MONITOR_DEVICES", "all"),
            ("-DCGM_EXPORTER_KUBERNETES", ""),
            ("-NVML_EXPORTER_ATTRIBUTION", ""),
        ],
        &[],
    ),
    row(
        "kernel log",
        "kernelLog: {enabled: true}",
        &[("NVML_EXPORTER_KERNEL_LOG", "/dev/kmsg")],
        &[],
    ),
    row("GKE", "gke: {enabled: true}", &[("LD_LIBRARY_PATH", "/usr/local/nvidia/lib64")], &[]),
    row("privileged", "securityContext: {privileged: true}", &[], &[]),
    row(
        "host network",
        "{hostNetwork: true, listenPort: 9500}",
        &[("DCGM_EXPORTER_LISTEN", ":9500")],
        &[],
    ),
    row(
        "ServiceMonitor",
        "serviceMonitor: {enabled: true, namespace: prometheus, additionalLabels: {release: p},
  interval: 1m, scrapeTimeout: 20s, honorLabels: false, scheme: https,
  relabelings: [{action: labeldrop, regex: endpoint}],
  metricRelabelings: [{sourceLabels: [__name__], regex: go_.*, action: drop}],
  tlsConfig: {insecureSkipVerify: true},
  basicAuth: {username: {name: s, key: u}, password: {name: s, key: p}}}",
        &[],
        &[],
    ),
    row("PodMonitor", "podMonitor: {enabled: true, additionalLabels: {release: p}}", &[], &[]),
    row(
        "rules and dashboards",
        "{prometheusRule: {enabled: true}, dashboards: {enabled: true}}",
        &[],
        &[],
    ),
    row(
        "network policy",
        "networkPolicy: {enabled: true, ingressFrom: [{namespaceSelector: {matchLabels: {a: b}}}]}",
        &[],
        &[],
    ),
    row(
        "names",
        "{nameOverride: gpu, fullnameOverride: gpu-metrics, namespaceOverride: gpu-system,
serviceAccount: {create: false, name: someone}, kubernetes: {podUid: true}}",
        &[POD_UID],
        &["pods"],
    ),
    row(
        "image",
        "{image: {repository: 'registry.example:5000/nvml-exporter', pullPolicy: Always,
digest: 'sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'},
imagePullSecrets: [{name: registry}]}",
        &[],
        &[],
    ),
    row(
        "everything of one's own",
        "arguments: [--openmetrics, '--collect-interval=20s']
extraEnv: [{name: RUST_LOG, value: info}]
initContainers: [{name: wait, image: 'busybox:1', command: ['true']}]
extraVolumes: [{name: more, emptyDir: {}}]
extraVolumeMounts: [{name: more, mountPath: /more}]
daemonSetAnnotations: {a: b}
podAnnotations: {c: d}
podLabels: {e: f}
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
  {matchExpressions: [{key: gpu, operator: Exists}]}]}}}
nodeSelector: {pool: gpu}
tolerations: [{operator: Exists}]
runtimeClassName: nvidia
priorityClassName: ''
updateStrategy: {type: OnDelete}
podSecurityContext: {fsGroup: 65534}
securityContext: {seLinuxOptions: {type: spc_t}}
livenessProbe: {tcpSocket: {port: metrics}}
resources: {limits: {cpu: 100m}}
service: {type: NodePort, annotations: {prometheus.io/scrape: 'true'}, labels: {app: null}}
serviceAccount: {annotations: {g: h}}",
        &[("RUST_LOG", "info")],
        &[],
    ),
    row(
        "on all nodes, without a Service",
        "{gpuNodesOnly: false, service: {enabled: false}}",
        &[],
        &[],
    ),
];

/// A row, rendered; nothing is wrong with its objects.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub(crate) row: &'static Row,
    pub(crate) objects: Vec<Value>,
}

static RENDERED: LazyLock<Vec<Rendered>> = LazyLock::new(|| {
    let rendered = ROWS.iter().map(|row| {
        let output = template(CHART, row.values, &[]);
        assert!(output.status.success(), "{}: {}", row.name, said(&output));
        Rendered { row, objects: objects(&String::from_utf8(output.stdout).unwrap()) }
    });
    rendered.collect()
});

/// All rows.
pub(crate) fn rendered() -> &'static [Rendered] {
    &RENDERED
}

/// The row of this name.
pub(crate) fn the(name: &str) -> &'static Rendered {
    rendered().iter().find(|rendered| rendered.row.name == name).unwrap()
}

impl Rendered {
    pub(crate) fn daemon_set(&self) -> &Value {
        only(&self.objects, "DaemonSet")
    }

    pub(crate) fn pod(&self) -> &Value {
        &self.daemon_set()["spec"]["template"]["spec"]
    }

    pub(crate) fn container(&self) -> &Value {
        &self.pod()["containers"][0]
    }

    /// Environment variables with their values; those of the downward API as a pod has them.
    pub(crate) fn env(&self) -> BTreeMap<String, String> {
        let mut env = BTreeMap::new();
        for variable in items(&self.container()["env"]) {
            let value = match variable["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
                Some("spec.nodeName") => "node-a",
                Some("metadata.name") => "nvml-exporter-x",
                Some("metadata.namespace") => "monitoring",
                Some(other) => panic!("no value for {other}"),
                None => text(&variable["value"]),
            };
            let name = text(&variable["name"]).to_owned();
            let before = env.insert(name, value.to_owned());
            assert_eq!(before, None, "{}: {variable} is given twice", self.row.name);
        }
        env
    }
}

#[test]
fn every_object_is_right_in_every_version_of_kubernetes() {
    // Rendering them has judged them.
    let kinds: BTreeSet<&str> = rendered()
        .iter()
        .flat_map(|rendered| &rendered.objects)
        .map(|object| text(&object["kind"]))
        .collect();
    let templates = [
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "DaemonSet",
        "NetworkPolicy",
        "PodMonitor",
        "Role",
        "RoleBinding",
        "Secret",
        "Service",
        "ServiceAccount",
        "ServiceMonitor",
    ];
    assert!(templates.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
}

/// Or the test above would say nothing.
#[test]
fn what_is_wrong_with_an_object_is_found() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let monitor =
        "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: a}\n";
    for (text, problem) in [
        (format!("{map}dta: {}\n", "{}"), "Kubernetes 1.27"),
        (format!("{map}dta: {}\n", "{}"), "Kubernetes 1.37"),
        (format!("{map}data: {}\n", "{a: 1}"), "data.a: 1 is not of type"),
        (format!("{map}data: {}\n", "{a: x, a: y}"), "key 'a' is given twice"),
        (map.replace("ConfigMap", "ConfigMop"), "ConfigMop a: Couldn't find schema"),
        (
            format!("{monitor}spec: {}\n", "{selector: {}, endpoints: [{prt: a}]}"),
            "'prt' was unexpected",
        ),
        (
            format!("{monitor}spec: {}\n", "{selector: {}, endpoints: [{port: a, interval: 15}]}"),
            "$.spec.endpoints[0].interval: 15 is not of type 'string'",
        ),
    ] {
        let (_, problems) = judged(&text);
        assert!(problems.iter().any(|found| found.contains(problem)), "{text}: {problems:?}");
    }
    assert_eq!(judged(map).1, [""; 0]);
}

#[test]
fn values_reach_the_exporter() {
    let defaults = the("defaults").env();
    for rendered in rendered() {
        let mut expected = defaults.clone();
        for (name, value) in rendered.row.env {
            match name.strip_prefix('-') {
                Some(name) => drop(expected.remove(name).unwrap()),
                None => drop(expected.insert((*name).to_owned(), (*value).to_owned())),
            }
        }
        assert_eq!(rendered.env(), expected, "{}", rendered.row.name);
    }
}
