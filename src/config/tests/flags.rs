//! The flags of dcgm-exporter 4.8.4, as its documentation has them: name, short form, environment
//! variable, default.

use proptest::prelude::*;

use super::super::{Origin, Typed, command, load};
use super::machine;

const FLAGS: &[(&str, &str, &str, &str)] = &[
    ("collectors", "f", "DCGM_EXPORTER_COLLECTORS", "/etc/dcgm-exporter/default-counters.csv"),
    ("address", "a", "DCGM_EXPORTER_LISTEN", ":9400"),
    ("collect-interval", "c", "DCGM_EXPORTER_INTERVAL", "30000"),
    ("kubernetes", "k", "DCGM_EXPORTER_KUBERNETES", "false"),
    ("use-old-namespace", "o", "DCGM_EXPORTER_USE_OLD_NAMESPACE", "false"),
    ("cpu-devices", "p", "DCGM_EXPORTER_CPU_DEVICES_STR", "f"),
    ("configmap-data", "m", "DCGM_EXPORTER_CONFIGMAP_DATA", "none"),
    ("remote-hostengine-info", "r", "DCGM_REMOTE_HOSTENGINE_INFO", "localhost:5555"),
    ("kubernetes-enable-pod-labels", "", "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", "false"),
    ("kubernetes-enable-pod-uid", "", "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID", "false"),
    ("kubernetes-gpu-id-type", "", "DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE", "uid"),
    (
        "kubernetes-pod-label-allowlist-regex",
        "",
        "DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX",
        "",
    ),
    ("devices", "d", "DCGM_EXPORTER_DEVICES_STR", "f"),
    ("no-hostname", "n", "DCGM_EXPORTER_NO_HOSTNAME", "false"),
    ("switch-devices", "s", "DCGM_EXPORTER_OTHER_DEVICES_STR", "f"),
    ("fake-gpus", "", "DCGM_EXPORTER_USE_FAKE_GPUS", "false"),
    ("web-config-file", "", "DCGM_EXPORTER_WEB_CONFIG_FILE", ""),
    ("xid-count-window-size", "x", "DCGM_EXPORTER_XID_COUNT_WINDOW_SIZE", "300000"),
    ("replace-blanks-in-model-name", "rbmn", "DCGM_EXPORTER_REPLACE_BLANKS_IN_MODEL_NAME", "false"),
    ("debug", "", "DCGM_EXPORTER_DEBUG", "false"),
    (
        "clock-events-count-window-size",
        "",
        "DCGM_EXPORTER_CLOCK_EVENTS_COUNT_WINDOW_SIZE",
        "300000",
    ),
    ("enable-dcgm-log", "", "DCGM_EXPORTER_ENABLE_DCGM_LOG", "false"),
    ("dcgm-log-level", "", "DCGM_EXPORTER_DCGM_LOG_LEVEL", "NONE"),
    ("log-format", "", "DCGM_EXPORTER_LOG_FORMAT", "text"),
    (
        "pod-resources-kubelet-socket",
        "",
        "DCGM_POD_RESOURCES_KUBELET_SOCKET",
        "/var/lib/kubelet/pod-resources/kubelet.sock",
    ),
    ("hpc-job-mapping-dir", "", "DCGM_HPC_JOB_MAPPING_DIR", ""),
    ("nvidia-resource-names", "", "NVIDIA_RESOURCE_NAMES", ""),
    ("kubernetes-virtual-gpus", "", "KUBERNETES_VIRTUAL_GPUS", "false"),
    ("dump-enabled", "", "DCGM_EXPORTER_DUMP_ENABLED", "false"),
    ("dump-directory", "", "DCGM_EXPORTER_DUMP_DIRECTORY", "/tmp/dcgm-exporter-debug"),
    ("dump-retention", "", "DCGM_EXPORTER_DUMP_RETENTION", "24"),
    ("dump-compression", "", "DCGM_EXPORTER_DUMP_COMPRESSION", "true"),
    ("kubernetes-enable-dra", "", "KUBERNETES_ENABLE_DRA", "false"),
    ("disable-startup-validate", "", "DISABLE_STARTUP_VALIDATE", "false"),
    ("enable-gpu-bind-unbind-watch", "", "DCGM_EXPORTER_ENABLE_GPU_BIND_UNBIND_WATCH", "false"),
    ("gpu-bind-unbind-poll-interval", "", "DCGM_EXPORTER_GPU_BIND_UNBIND_POLL_INTERVAL", "1s"),
    ("enable-pprof", "", "DCGM_EXPORTER_ENABLE_PPROF", "false"),
    ("web-systemd-socket", "", "DCGM_EXPORTER_SYSTEMD_SOCKET", "false"),
    ("config-file", "", "DCGM_EXPORTER_CONFIG_FILE", ""),
    ("web-read-timeout", "", "DCGM_EXPORTER_WEB_READ_TIMEOUT", "10s"),
    ("web-write-timeout", "", "DCGM_EXPORTER_WEB_WRITE_TIMEOUT", "30s"),
    ("container-labels", "", "DCGM_EXPORTER_CONTAINER_LABELS", "false"),
    ("container-runtime-socket", "", "DCGM_CONTAINER_RUNTIME_SOCKET", ""),
    ("max-concurrent-scrapes", "", "DCGM_EXPORTER_MAX_CONCURRENT_SCRAPES", "16"),
    ("enable-exporter-metrics", "", "DCGM_EXPORTER_ENABLE_EXPORTER_METRICS", "false"),
    ("watch-max-keep-age", "", "DCGM_EXPORTER_WATCH_MAX_KEEP_AGE", "10m"),
    ("watch-max-keep-samples", "", "DCGM_EXPORTER_WATCH_MAX_KEEP_SAMPLES", "0"),
];

#[test]
fn every_flag_of_dcgm_exporter_is_there() {
    let nowhere = machine("");
    let plain = command(&nowhere);
    for (name, short, variable, default) in FLAGS {
        let arg = plain.get_arguments().find(|arg| arg.get_long() == Some(name));
        let arg = arg.unwrap_or_else(|| panic!("{name} is not there"));
        let mut shorts: Vec<String> = arg.get_short().map(String::from).into_iter().collect();
        shorts.extend(arg.get_visible_aliases().into_iter().flatten().map(str::to_owned));
        assert!(short.is_empty() || shorts.iter().any(|it| it == short), "{name}: {shorts:?}");
        let defaults: Vec<_> = arg.get_default_values().iter().map(|it| it.to_str()).collect();
        let expected: Vec<_> =
            Some(*default).filter(|it| !it.is_empty()).map(Some).into_iter().collect();
        assert_eq!(defaults, expected, "{name}");

        // The variable's text reaches the flag, and the flag's own comes before it.
        let there = machine(&format!("{variable}=from-there"));
        let flag = format!("--{name}=typed");
        for (argv, text, origin) in [
            (vec!["x"], "from-there", Origin::Environment((*variable).to_owned())),
            (vec!["x", &flag], "typed", Origin::Flag(format!("--{name}"))),
        ] {
            let matches = command(&there).try_get_matches_from(argv).unwrap();
            let id = arg.get_id().as_str();
            let typed: Vec<Typed> = matches.get_many(id).unwrap().cloned().collect();
            assert_eq!(typed, [Typed { text: text.to_owned(), origin }], "{name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Nothing that is typed makes the process panic.
    #[test]
    fn any_command_line_is_read_or_refused(words in prop::collection::vec(word(), 0..8)) {
        let argv = std::iter::once("nvml-exporter".to_owned()).chain(words);
        if let Err(stop) = load(argv, &machine("")) {
            prop_assert!(!stop.to_string().is_empty());
        }
    }
}

/// A flag in one of its forms, or a value.
fn word() -> impl Strategy<Value = String> {
    let flag = prop::sample::select(FLAGS).prop_map(|(name, ..)| name.to_owned());
    let value =
        prop::sample::select(vec!["", "true", "0", "-1", "15s", "g:0-3+i", "a:b", "µ", "-"]);
    prop_oneof![
        flag.clone().prop_map(|name| format!("--{name}")),
        flag.clone().prop_map(|name| format!("-{name}")),
        (flag, value.clone()).prop_map(|(name, value)| format!("--{name}={value}")),
        value.prop_map(str::to_owned),
    ]
}
