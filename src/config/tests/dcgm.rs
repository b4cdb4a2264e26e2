//! Command lines and environments written for dcgm-exporter. Numbers of cases are those of the
//! project's list of conformance cases.

use std::path::PathBuf;
use std::time::Duration;

use super::super::{Config, Counters, Kubernetes, Listen};
use super::{config, machine, mistakes};

/// What no flag and no variable gives.
fn defaults() -> Config {
    config("", "")
}

#[test]
fn defaults_are_those_of_dcgm_exporter() {
    let config = defaults();
    assert_eq!(config.counters, Counters::BuiltIn);
    assert_eq!(config.web.listen, [Listen::Everywhere(9400)]);
    assert_eq!(config.interval, Duration::from_secs(30));
    assert_eq!(config.xid_window, Duration::from_secs(300));
    assert_eq!(config.clock_events_window, Duration::from_secs(300));
    assert_eq!(config.web.read_timeout, Duration::from_secs(10));
    assert_eq!(config.web.write_timeout, Duration::from_secs(30));
    assert_eq!(config.web.max_concurrent_scrapes.get(), 16);
    assert_eq!(config.host_label.value.as_deref(), Some("box"));
    assert_eq!(config.dump, None);
    assert_eq!(config.log.directives, "info");
    assert_eq!(config.warnings, [""; 0]);
    let socket = PathBuf::from("/var/lib/kubelet/pod-resources/kubelet.sock");
    assert_eq!(
        config.kubernetes,
        Kubernetes {
            kubelet_socket: socket,
            poll_interval: Duration::from_secs(30),
            ..Kubernetes::default()
        }
    );
}

#[test]
fn one_dash_or_two_short_or_long_are_the_same() {
    let machine = machine("").with("/a.csv", "");
    let expected = machine.config("--collectors /a.csv --devices g:0 --use-old-namespace");
    for words in [
        "-collectors /a.csv -devices g:0 -use-old-namespace",
        "-collectors=/a.csv -devices=g:0 -use-old-namespace=true",
        "-f /a.csv -d g:0 -o",
        "-f=/a.csv -d=g:0 -o=1",
        "--f /a.csv --d=g:0 --o",
        "-o true -d g:0 -f /a.csv",
        "-d i -d g:0 -f /b.csv -f /a.csv -o=false -o",
    ] {
        assert_eq!(machine.config(words), expected, "{words}");
    }
    for words in ["-rbmn", "--rbmn", "-rbmn=true", "--replace-blanks-in-model-name"] {
        assert!(config(words, "").replace_blanks, "{words}");
    }
}

#[test]
fn the_word_after_a_flag_is_its_value_whatever_it_looks_like() {
    let expected = "--devices=-n: \"-n\" is not a kind of device";
    assert!(mistakes("-d -n", "").starts_with(expected), "{}", mistakes("-d -n", ""));
}

#[test]
fn booleans_are_gos() {
    for text in ["1", "t", "T", "true", "TRUE", "True"] {
        assert!(config(&format!("-o={text}"), "").old_namespace, "{text}");
        let environment = format!("DCGM_EXPORTER_USE_OLD_NAMESPACE={text}");
        assert!(config("", &environment).old_namespace, "{text}");
        assert!(!config("-o=false", &environment).old_namespace, "{text}");
    }
    for text in ["0", "f", "F", "false", "FALSE", "False"] {
        let environment = format!("DCGM_EXPORTER_USE_OLD_NAMESPACE={text}");
        assert!(!config("", &environment).old_namespace, "{text}");
    }
    assert_eq!(
        mistakes("", "DCGM_EXPORTER_USE_OLD_NAMESPACE=yes"),
        "DCGM_EXPORTER_USE_OLD_NAMESPACE=yes: is neither true nor false; allowed: 1, t, T, true, \
         TRUE, True, 0, f, F, false, FALSE, False"
    );
}

#[test]
fn the_environment_counts_only_where_the_flag_is_absent() {
    assert_eq!(config("", "DCGM_EXPORTER_INTERVAL=15000").interval, Duration::from_secs(15));
    assert_eq!(config("-c 5s", "DCGM_EXPORTER_INTERVAL=x").interval, Duration::from_secs(5));
    assert_eq!(config("", "DCGM_EXPORTER_INTERVAL=").interval, Duration::from_secs(30));
}

#[test]
fn the_operators_environment_starts_the_exporter() {
    let machine = machine(
        "DCGM_EXPORTER_LISTEN=:9400 DCGM_EXPORTER_KUBERNETES=true \
         DCGM_EXPORTER_COLLECTORS=/etc/dcgm-exporter/dcp-metrics-included.csv NODE_NAME=node-7 \
         DCGM_REMOTE_HOSTENGINE_INFO=nvidia-dcgm:5555 \
         DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS=true \
         DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID=true \
         DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX=^app$,^team \
         DCGM_HPC_JOB_MAPPING_DIR=/var/lib/dcgm-exporter/job-mapping KUBERNETES_ENABLE_DRA=true",
    )
    .with("/etc/dcgm-exporter/dcp-metrics-included.csv", "");
    let config = machine.config("");
    let path = PathBuf::from("/etc/dcgm-exporter/dcp-metrics-included.csv");
    assert_eq!(config.counters, Counters::File { path, explicit: true });
    assert_eq!(config.host_label.value.as_deref(), Some("node-7"));
    assert_eq!(config.kubernetes.node_name.as_deref(), Some("node-7"));
    assert!(config.kubernetes.enabled && config.kubernetes.pod_labels && config.kubernetes.pod_uid);
    assert!(config.kubernetes.dra);
    assert_eq!(config.kubernetes.pod_label_allowlist, ["^app$", "^team"]);
    assert_eq!(
        config.warnings,
        ["DCGM_REMOTE_HOSTENGINE_INFO=nvidia-dcgm:5555: there is no DCGM host engine: the GPUs \
             of this machine are read through NVML",]
    );
}

#[test]
fn case_41_values_that_dcgm_exporter_refuses_are_refused() {
    for (words, expected) in [
        ("--log-format xml", "--log-format=xml: is unknown; allowed: text, json"),
        (
            "--dcgm-log-level LOUD",
            "--dcgm-log-level=LOUD: is unknown; allowed: NONE, FATAL, ERROR, WARN, INFO, DEBUG, \
             VERB",
        ),
        (
            "-m a:b:c",
            "--configmap-data=a:b:c: is not a ConfigMap; allowed: NAMESPACE:NAME, or none",
        ),
        (
            "-c soon",
            "--collect-interval=soon: is not a time; allowed: a whole number of milliseconds, or \
             a number with a unit of ns, us, ms, s, m, h, such as 15s, 500ms, 1h30m",
        ),
        (
            "--max-concurrent-scrapes=0",
            "--max-concurrent-scrapes=0: is not a count; allowed: 1 or more",
        ),
        (
            "--dump-retention=-1",
            "--dump-retention=-1: is not a number of hours; allowed: 0 or more",
        ),
        (
            "--watch-max-keep-age=0 --watch-max-keep-samples=0",
            "--watch-max-keep-age=0: and --watch-max-keep-samples are both 0; allowed: one of them",
        ),
        (
            "--watch-max-keep-samples 2147483648",
            "--watch-max-keep-samples=2147483648: is not a count; allowed: 0 to 2147483647",
        ),
        ("--container-labels", "--container-labels=true: needs --container-runtime-socket"),
        (
            "--kubernetes-gpu-id-type=foo",
            "--kubernetes-gpu-id-type=foo: is unknown; allowed: uid, device-name",
        ),
        (
            "-f /missing.csv",
            "--collectors=/missing.csv: there is no such file; allowed: a counters file (CSV)",
        ),
        (
            "-a 9400",
            "--address=9400: \"9400\" has no port; allowed: :PORT, ADDRESS:PORT, [IPV6]:PORT, \
             NAME:PORT",
        ),
    ] {
        assert_eq!(mistakes(words, ""), expected, "{words}");
    }
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let found = mistakes("--log-format xml -d x -c -1", "DCGM_EXPORTER_DEBUG=maybe");
    let at: Vec<_> = found.lines().map(|line| line.split_once(": ").unwrap().0).collect();
    let expected =
        ["--collect-interval=-1", "--devices=x", "--log-format=xml", "DCGM_EXPORTER_DEBUG=maybe"];
    assert_eq!(at, expected);
}

#[test]
fn an_unknown_flag_is_a_mistake_of_status_1() {
    let found = mistakes("--no-such-flag", "");
    assert!(found.contains("unexpected argument '--no-such-flag'"), "{found}");
}

#[test]
fn case_42_node_name_is_the_host_label() {
    assert_eq!(config("", "NODE_NAME=n1").host_label.value.as_deref(), Some("n1"));
    assert_eq!(config("-k", "NODE_NAME=n1").host_label.value.as_deref(), Some("n1"));
}

#[test]
fn case_43_without_node_name_the_operating_system_names_the_host() {
    assert_eq!(config("", "NODE_NAME=").host_label.value.as_deref(), Some("box"));
    let mut nameless = machine("");
    nameless.nameless = true;
    assert_eq!(
        nameless.mistakes(""),
        "host name: it is empty; set NODE_NAME, or leave the label out with --no-hostname"
    );
    assert_eq!(nameless.config("-n").host_label.value, None);
    assert_eq!(nameless.config("-r engine:5555").host_label.value.as_deref(), Some("engine"));
}

#[test]
fn case_44_a_remote_engine_names_the_host_outside_kubernetes() {
    let host = |words, environment| config(words, environment).host_label.value;
    assert_eq!(host("-r engine:5555", "NODE_NAME=n1").as_deref(), Some("engine"));
    assert_eq!(host("-r engine:5555 -k", "NODE_NAME=n1").as_deref(), Some("n1"));
    assert_eq!(host("-r localhost:5555", "NODE_NAME=n1").as_deref(), Some("n1"));
    assert_eq!(host("--remote-hostengine-info=", ""), None);
    assert_eq!(host("", "DCGM_REMOTE_HOSTENGINE_INFO=engine:5555").as_deref(), Some("engine"));
}

#[test]
fn what_has_no_effect_is_said_once_and_only_when_asked_for() {
    let words = "--fake-gpus=false -s f -p f --dcgm-log-level NONE --enable-pprof=0";
    assert_eq!(config(words, "").warnings, [""; 0]);
    let cases = [
        ("--fake-gpus", "--fake-gpus=true: "),
        ("-s g:0", "--switch-devices=g:0: NVSwitches are not exported"),
        ("-p i", "--cpu-devices=i: CPUs are not exported"),
        ("--enable-dcgm-log", "--enable-dcgm-log=true: "),
        ("--dcgm-log-level DEBUG", "--dcgm-log-level=DEBUG: "),
        ("--disable-startup-validate", "--disable-startup-validate=true: "),
        ("--enable-gpu-bind-unbind-watch", "--enable-gpu-bind-unbind-watch=true: "),
        ("--gpu-bind-unbind-poll-interval 2s", "--gpu-bind-unbind-poll-interval=2s: "),
        ("--gpu-bind-unbind-poll-interval x", "--gpu-bind-unbind-poll-interval=x: is not a"),
        ("--enable-pprof", "--enable-pprof=true: "),
        ("--enable-exporter-metrics", "--enable-exporter-metrics=true: "),
        ("--watch-max-keep-age 5m", "--watch-max-keep-age=5m: "),
        ("--watch-max-keep-samples 9", "--watch-max-keep-samples=9: "),
        ("-r tcp://engine:5555", "--remote-hostengine-info=tcp://engine:5555: "),
        ("-k --container-labels", "--container-labels=true: ignored, for --kubernetes is on"),
        (
            "--container-labels --container-runtime-socket /s",
            "--container-labels=true: container labels are not served yet",
        ),
        ("--web-read-timeout 0", "--web-read-timeout=0: 10s is used; "),
        ("--web-write-timeout soon", "--web-write-timeout=soon: 30s is used; "),
    ];
    for (words, start) in cases {
        let warnings = config(words, "").warnings;
        let flag = start.split_once('=').unwrap().0;
        let of_flag: Vec<_> = warnings.iter().filter(|text| text.starts_with(flag)).collect();
        assert!(of_flag.len() == 1 && of_flag[0].starts_with(start), "{words}: {warnings:?}");
    }
}

#[test]
fn a_mistake_is_reported_once() {
    for words in ["--kubernetes=x", "--container-labels=x", "--dump-enabled=x", "--fake-gpus=x"] {
        let found = mistakes(words, "");
        let expected = format!("{words}: is neither true nor false; ");
        assert!(found.starts_with(&expected) && found.lines().count() == 1, "{found}");
    }
}

#[test]
fn a_config_map_comes_before_a_file() {
    let machine = machine("").with("/a.csv", "");
    let map = Counters::ConfigMap {
        namespace: "gpu".to_owned(),
        name: "rows".to_owned(),
        instead: Box::new(Counters::File { path: PathBuf::from("/a.csv"), explicit: false }),
    };
    assert_eq!(machine.config("-m gpu:rows -f /a.csv").counters, map);
    let file = Counters::File { path: PathBuf::from("/a.csv"), explicit: true };
    assert_eq!(machine.config("-m none -f /a.csv").counters, file);
}

#[test]
fn the_default_file_is_used_where_it_exists() {
    let path = "/etc/dcgm-exporter/default-counters.csv";
    let file = |explicit| Counters::File { path: PathBuf::from(path), explicit };
    assert_eq!(machine("").with(path, "").config("").counters, file(false));
    let words = format!("-f {path}");
    assert_eq!(machine("").with(path, "").config(&words).counters, file(true));
    assert!(mistakes(&words, "").contains("there is no such file"));
}
