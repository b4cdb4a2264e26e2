//! What dcgm-exporter does not have.

use std::path::PathBuf;
use std::time::Duration;

use super::super::{Command, Driver, HostLabelName, Listen, Stop};
use super::{config, machine, mistakes};
use crate::catalogue::MetricNames;
use crate::telemetry::log::LogFormat;

#[test]
fn the_version_names_the_revision() {
    let Err(stop) = machine("").load("--version") else { panic!("no answer") };
    assert_eq!(stop.exit_code(), 0);
    let expected = format!("nvml-exporter version {} (unknown)\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(stop.to_string(), expected);
    for words in ["-v", "-version", "-h", "--help", "-help"] {
        let Err(stop) = machine("").load(words) else { panic!("no answer") };
        assert_eq!(stop.exit_code(), 0, "{words}");
        assert!(matches!(stop, Stop::Usage(_)));
    }
}

#[test]
fn commands_share_the_flags() {
    assert_eq!(config("", "").command, Command::Serve);
    assert_eq!(config("check -d g:0", "").command, Command::Check);
    assert_eq!(config("-k fields", "").command, Command::Fields);
    let found = mistakes("frobnicate", "");
    assert!(found.contains("invalid value 'frobnicate'"), "{found}");
}

#[test]
fn own_flags_have_own_variables() {
    let config = config(
        "",
        "NVML_EXPORTER_METRIC_NAMES=both NVML_EXPORTER_HOST_LABEL=Hostname \
         NVML_EXPORTER_OPENMETRICS=1 NVML_EXPORTER_DCGM_QUIRKS=true \
         NVML_EXPORTER_SIMULATE=h100x8 NVML_EXPORTER_LOG_LEVEL=trace DCGM_EXPORTER_LOG_FORMAT=json",
    );
    assert_eq!(config.metric_names, MetricNames::Both);
    assert_eq!(config.host_label.name, HostLabelName::Upper);
    assert!(config.openmetrics && config.quirks);
    assert_eq!(config.driver, Driver::Simulated("h100x8".to_owned()));
    assert_eq!((config.log.directives.as_str(), config.log.format), ("trace", LogFormat::Json));
}

#[test]
fn the_library_is_the_drivers_unless_another_is_named() {
    assert_eq!(config("", "").driver, Driver::Installed);
    let library = Driver::Library(PathBuf::from("/lib/x.so"));
    assert_eq!(config("--nvml-library /lib/x.so", "").driver, library);
    assert_eq!(
        mistakes("--nvml-library /lib/x.so --simulate a100", ""),
        "--simulate=a100: and --nvml-library exclude each other"
    );
}

#[test]
fn a_bare_interval_is_of_milliseconds_and_is_pointed_out() {
    let cases = [
        ("30000", 30_000, None),
        ("15s", 15_000, None),
        ("500ms", 500, None),
        ("1m30s", 90_000, None),
        ("1000", 1000, None),
        ("999", 999, Some("a bare number is of milliseconds; write 15s for seconds")),
        (
            "15",
            100,
            Some(
                "shorter than 100ms (a bare number is of milliseconds; write 15s for seconds); \
                 100ms is used",
            ),
        ),
        (
            "0",
            100,
            Some(
                "shorter than 100ms (a bare number is of milliseconds; write 15s for seconds); \
                 100ms is used",
            ),
        ),
        ("50ms", 100, Some("shorter than 100ms; 100ms is used")),
    ];
    for (text, milliseconds, warning) in cases {
        let config = config(&format!("-c {text}"), "");
        assert_eq!(config.interval, Duration::from_millis(milliseconds), "{text}");
        let expected: Vec<_> =
            warning.iter().map(|warning| format!("--collect-interval={text}: {warning}")).collect();
        assert_eq!(config.warnings, expected, "{text}");
    }
}

#[test]
fn several_addresses_are_listened_on() {
    let local = Listen::At("127.0.0.1:9400".parse().unwrap());
    let six = Listen::At("[::1]:9400".parse().unwrap());
    let both = [local.clone(), six.clone()];
    assert_eq!(config("-a 127.0.0.1:9400 -a [::1]:9400", "").web.listen, both);
    assert_eq!(config("-a 127.0.0.1:9400,[::1]:9400", "").web.listen, both);
    let environment = "DCGM_EXPORTER_LISTEN=127.0.0.1:9400,[::1]:9400";
    assert_eq!(config("", environment).web.listen, both);
    assert_eq!(config("-a [::1]:9400", environment).web.listen, [six]);
    let twice = config("-a 127.0.0.1:9400 -a 127.0.0.1:9400", "");
    assert_eq!(twice.web.listen, [local]);
    assert_eq!(twice.warnings, ["--address=127.0.0.1:9400: 127.0.0.1:9400 is there twice"]);
    let none = "--address: no address to listen on; allowed: :9400 and the like";
    assert_eq!(mistakes("--address=,", ""), none);
}

#[test]
fn the_web_configuration_has_exporter_toolkits_name_too() {
    for words in ["--web-config-file /w.yml", "--web.config.file=/w.yml", "-web-config-file /w.yml"]
    {
        assert_eq!(config(words, "").web.config_file, Some(PathBuf::from("/w.yml")), "{words}");
    }
    assert_eq!(config("--web-config-file=", "").web.config_file, None);
}

#[test]
fn giving_up_without_a_driver_is_asked_for() {
    for (words, expected) in [
        ("", None),
        ("--exit-without-driver", Some(0)),
        ("--exit-without-driver=true", Some(0)),
        ("--exit-without-driver=false", None),
        ("--exit-without-driver=5m", Some(300)),
    ] {
        assert_eq!(config(words, "").exit_without_driver, expected.map(Duration::from_secs));
    }
    assert!(mistakes("--exit-without-driver=soon", "").contains("allowed: true, false, a number"));
}

#[test]
fn the_log_level_has_an_order_of_precedence() {
    for (words, environment, expected) in [
        ("", "", "info"),
        ("", "RUST_LOG=hyper=debug,warn", "hyper=debug,warn"),
        ("--debug", "RUST_LOG=warn", "debug"),
        ("", "DCGM_EXPORTER_DEBUG=true", "debug"),
        ("--log-level warn --debug", "RUST_LOG=trace", "warn"),
    ] {
        assert_eq!(config(words, environment).log.directives, expected, "{words} {environment}");
    }
    let config = config("", "RUST_LOG=a=b=c");
    assert_eq!(config.log.directives, "info");
    assert!(config.warnings[0].starts_with("RUST_LOG=a=b=c: ignored: "), "{:?}", config.warnings);
}

#[test]
fn dumps_have_an_age() {
    let dump = config("--dump-enabled --dump-retention 0 --dump-compression=false", "").dump;
    let dump = dump.unwrap();
    assert_eq!(dump.directory, PathBuf::from("/tmp/dcgm-exporter-debug"));
    assert_eq!((dump.retention, dump.compression), (None, false));
    let dump = config("--dump-enabled", "").dump.unwrap();
    assert_eq!((dump.retention, dump.compression), (Some(Duration::from_secs(86_400)), true));
}
