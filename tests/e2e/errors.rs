//! What is wrong is said in one line for each mistake, with what is allowed; the exit code is 1.

use std::net::TcpListener;

use expect_test::{Expect, expect};

use crate::support::{Page, Setup, get};

/// The exporter ends with this code, and says this beside the log, on standard error.
fn ends(setup: Setup, code: i32, expected: &Expect) {
    let directory = setup.directory();
    let (status, output, log) = setup.run();
    let said: String = log
        .lines()
        .filter_map(|line| line.strip_prefix("nvml-exporter: "))
        .flat_map(|line| [line, "\n"])
        .collect();
    expected.assert_eq(&said.replace(&directory, "DIR"));
    assert_eq!((status, output.as_str()), (code, ""), "{log}");
    assert!(!log.contains("panicked"), "{log}");
}

#[test]
fn every_bad_line_of_a_counters_file_is_named_at_once() {
    let csv = "DCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature.\n\
               DCGM_FI_DEV_GPU_TMP, gauge, GPU temperature.\n\
               DCGM_FI_DEV_FB_USED, guage, Used.\n\
               # a comment\n\
               DCGM_FI_DEV_FB_FREE, gauge\n\
               DCGM_FI_DEV_SM_CLOCK, gauge, SM clock, in MHz.\n\
               NOTHING_LIKE_IT, histogram, Both are wrong.\n";
    ends(
        Setup::simulate("gh200").counters(csv),
        1,
        &expect![[r#"
        DIR/counters.csv:2: unknown field "DCGM_FI_DEV_GPU_TMP"; did you mean DCGM_FI_DEV_GPU_TEMP?
        DIR/counters.csv:3: "DCGM_FI_DEV_FB_USED": type "guage" cannot be served; allowed types: gauge, counter, label, untyped; did you mean gauge?
        DIR/counters.csv:5: "DCGM_FI_DEV_FB_FREE": expected 3 columns (name, type, help), found 2
        DIR/counters.csv:6: "DCGM_FI_DEV_SM_CLOCK": expected 3 columns (name, type, help), found 4; a help text with a comma must be quoted, as in NAME, gauge,"one, two"
        DIR/counters.csv:7: unknown field "NOTHING_LIKE_IT"; docs/metrics.md lists the fields
        DIR/counters.csv:7: "NOTHING_LIKE_IT": type "histogram" cannot be served; allowed types: gauge, counter, label, untyped
    "#]],
    );
}

#[test]
fn a_counters_file_that_is_not_text_at_all() {
    ends(
        Setup::simulate("gh200").counters("\u{0}\"\n\"a,b"),
        1,
        &expect![[r#"
        DIR/counters.csv:1: a quote inside an unquoted column; a quote must follow its comma directly, as in NAME, gauge,"help"
        DIR/counters.csv:2: a quoted column is never closed
    "#]],
    );
}

#[test]
fn missing_collectors_file() {
    let setup = Setup::simulate("gh200").args(["--collectors=/nowhere/counters.csv"]);
    ends(
        setup,
        1,
        &expect![[r#"
        --collectors=/nowhere/counters.csv: there is no such file; allowed: a counters file (CSV)
    "#]],
    );
    let setup = Setup::simulate("gh200").env("DCGM_EXPORTER_COLLECTORS", "/nowhere/counters.csv");
    ends(
        setup,
        1,
        &expect![[r#"
        DCGM_EXPORTER_COLLECTORS=/nowhere/counters.csv: there is no such file; allowed: a counters file (CSV)
    "#]],
    );
}

#[test]
fn bad_flag() {
    let (code, output, log) = Setup::new().args(["--colectors=/a.csv"]).run();
    assert_eq!((code, output.as_str()), (1, ""));
    expect![[r#"
        nvml-exporter: unexpected argument '--colectors' found; a similar argument exists: '--collectors'; --help lists all flags
    "#]].assert_eq(&log);
}

/// Case 41, and every other choice: all mistakes of a command line at once.
#[test]
fn bad_values_are_all_named_at_once() {
    let setup = Setup::bare().args([
        "--address=here",
        "--collect-interval=soon",
        "--devices=g:3-1",
        "--log-format=xml",
        "--dcgm-log-level=LOUD",
        "--openmetrics=maybe",
        "--host-label=host",
        "--metric-names=new",
        "--max-concurrent-scrapes=0",
        "--configmap-data=a:b:c",
        "--exit-without-driver=never",
    ]);
    ends(
        setup,
        1,
        &expect![[r#"
            --collect-interval=soon: is not a time; allowed: a whole number of milliseconds, or a number with a unit of ns, us, ms, s, m, h, such as 15s, 500ms, 1h30m
            --configmap-data=a:b:c: is not a ConfigMap; allowed: NAMESPACE:NAME, or none
            --devices=g:3-1: the range 3-1 is reversed; allowed: f, g, i, g:LIST, i:LIST, g[:LIST]+i[:LIST]; LIST is 0, 0-3, GPU-UUID, PCI bus id, MIG-UUID or GPU.INSTANCE, separated by commas
            --host-label=host: is unknown; allowed: hostname, Hostname, both
            --metric-names=new: is unknown; allowed: legacy, dcgm47, both
            --openmetrics=maybe: is neither true nor false; allowed: 1, t, T, true, TRUE, True, 0, f, F, false, FALSE, False
            --address=here: "here" has no port; allowed: :PORT, ADDRESS:PORT, [IPV6]:PORT, NAME:PORT
            --max-concurrent-scrapes=0: is not a count; allowed: 1 or more
            --exit-without-driver=never: is not a time; allowed: true, false, a number with a unit of ns, us, ms, s, m, h, such as 15s, 500ms, 1h30m
            --log-format=xml: is unknown; allowed: text, json
            --dcgm-log-level=LOUD: is unknown; allowed: NONE, FATAL, ERROR, WARN, INFO, DEBUG, VERB
        "#]],
    );
}

#[test]
fn bad_environment() {
    let setup = Setup::bare()
        .env("DCGM_EXPORTER_INTERVAL", "soon")
        .env("DCGM_EXPORTER_LISTEN", "here")
        .env("DCGM_EXPORTER_USE_OLD_NAMESPACE", "perhaps")
        .env("DCGM_EXPORTER_DEVICES_STR", "x");
    ends(
        setup,
        1,
        &expect![[r#"
        DCGM_EXPORTER_INTERVAL=soon: is not a time; allowed: a whole number of milliseconds, or a number with a unit of ns, us, ms, s, m, h, such as 15s, 500ms, 1h30m
        DCGM_EXPORTER_DEVICES_STR=x: "x" is not a kind of device; allowed: f, g, i, g:LIST, i:LIST, g[:LIST]+i[:LIST]; LIST is 0, 0-3, GPU-UUID, PCI bus id, MIG-UUID or GPU.INSTANCE, separated by commas
        DCGM_EXPORTER_USE_OLD_NAMESPACE=perhaps: is neither true nor false; allowed: 1, t, T, true, TRUE, True, 0, f, F, false, FALSE, False
        DCGM_EXPORTER_LISTEN=here: "here" has no port; allowed: :PORT, ADDRESS:PORT, [IPV6]:PORT, NAME:PORT
    "#]],
    );
}

/// What another program's environment may hold is no reason not to start.
#[test]
fn bad_rust_log_is_a_warning() {
    let exporter = Setup::simulate("gh200").env("RUST_LOG", "===").ready();
    let log = exporter.log();
    let warning = log.lines().find(|line| line.contains("RUST_LOG")).unwrap();
    assert!(warning.contains(" WARN ") && warning.contains("ignored"), "{warning}");
}

#[test]
fn port_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let setup = Setup::bare().args(["--simulate=gh200", &format!("--address={address}")]);
    let (code, _, log) = setup.run();
    assert_eq!(code, 1);
    let said = log.lines().last().unwrap().replace(&address.to_string(), "ADDRESS");
    expect!["nvml-exporter: cannot listen on ADDRESS: the port is in use"].assert_eq(&said);
}

#[test]
fn simulator_and_library_exclude_each_other() {
    let setup = Setup::simulate("gh200").args(["--nvml-library=/nowhere/libnvidia-ml.so.1"]);
    ends(
        setup,
        1,
        &expect![[r#"
        --simulate=gh200: and --nvml-library exclude each other
    "#]],
    );
}

/// Every way for NVML not to be there is a state that is served, and says what to do. With
/// `--exit-without-driver` it is the end.
#[test]
fn no_nvml_is_a_served_state_with_a_reason() {
    let simulated = |commands: &[&str]| Setup::simulate("dgx-h100").control(commands);
    let cases: [(Setup, &str, &Expect); 5] = [
        (
            Setup::new().args(["--nvml-library=/nowhere/libnvidia-ml.so.1"]),
            "library_not_found",
            &expect![[
                r#"no NVML library could be loaded (/nowhere/libnvidia-ml.so.1: cannot open shared object file: No such file or directory); is the NVIDIA driver installed, and in a container: is the nvidia runtime class set and NVIDIA_DRIVER_CAPABILITIES=utility? reason="library_not_found""#
            ]],
        ),
        (
            simulated(&["driver unload"]),
            "driver_not_loaded",
            &expect![[
                r#"SIMULATOR: nvmlInit failed: DRIVER_NOT_LOADED; load the nvidia kernel module; retrying reason="driver_not_loaded""#
            ]],
        ),
        (
            simulated(&["driver mismatch"]),
            "driver_library_mismatch",
            &expect![[
                r#"SIMULATOR: nvmlInit failed: LIB_RM_VERSION_MISMATCH; the driver was updated: its kernel module and library differ; reboot or reload the module; retrying reason="driver_library_mismatch""#
            ]],
        ),
        (
            simulated(&["system error nvmlInitWithFlags NO_PERMISSION"]),
            "no_permission",
            &expect![[
                r#"SIMULATOR: nvmlInit failed: NO_PERMISSION; give the process access to /dev/nvidiactl and /dev/nvidia*; retrying reason="no_permission""#
            ]],
        ),
        (
            simulated(&["system error nvmlInitWithFlags UNKNOWN"]),
            "init_failed",
            &expect![[r#"SIMULATOR: nvmlInit failed: UNKNOWN; retrying reason="init_failed""#]],
        ),
    ];
    for (setup, reason, expected) in cases {
        let exporter = setup.start();
        exporter
            .until("the reason", |page| page.value("nvml_down", &[("reason", reason)]).is_some());
        assert_eq!(exporter.get("/health", &[]).status, 200);
        let log = exporter.log();
        let said = log.lines().find_map(|line| line.split_once("NVML is down: ")).unwrap().1;
        let simulator = crate::support::simulator().display().to_string();
        expected.assert_eq(&said.replace(&simulator, "SIMULATOR"));
    }
}

#[test]
fn an_unknown_scenario() {
    let (code, _, log) = Setup::simulate("nowhere").run();
    assert_eq!(code, 1);
    let said = log.lines().find(|line| line.starts_with("nvml-exporter: ")).unwrap();
    expect!["nvml-exporter: --simulate=nowhere: no such scenario, or its file is wrong (INVALID_ARGUMENT); built in: dgx-h100, dgx-b200, a100-mig-mixed, h200-mig-and-whole, t4-l4-mixed, geforce-3090, gh200, v100-old-driver, no-gpus, dense-16x7"].assert_eq(said);
}

#[test]
fn without_driver_it_ends_if_asked_to() {
    let args = ["--nvml-library=/nowhere/libnvidia-ml.so.1", "--exit-without-driver=true"];
    ends(
        Setup::new().args(args),
        1,
        &expect![[r#"
            NVML is not usable, and --exit-without-driver=0 s is over
        "#]],
    );
}

/// Case 37: a device that is not there is no reason to end, for it may come.
#[test]
fn case_37_a_device_that_is_not_there() {
    let exporter = Setup::simulate("gh200").args(["--devices=g:0,7,GPU-nobody"]).ready();
    for name in ["g:7", "g:GPU-nobody"] {
        let line = format!("--devices: no device {name} on this node; it has no series");
        exporter.until_log(&line);
        assert_eq!(exporter.log().matches(&line).count(), 1, "once, not once a pass");
    }
    assert!(!exporter.log().contains("g:0 "), "{}", exporter.log());
    let page = exporter.scrape();
    assert_eq!(page.samples("DCGM_FI_DEV_GPU_TEMP").count(), 1);
    let page = Setup::simulate("gh200").args(["--devices=g:7"]).ready().until_settled();
    assert_eq!(page.samples("DCGM_FI_DEV_GPU_TEMP").count(), 0);
    assert!(page.is("nvml_exporter_device_up", &[("gpu", "0")], 1.0));
}

#[test]
fn help_and_version_are_no_errors() {
    let (code, output, log) = Setup::bare().args(["--version"]).run();
    assert_eq!((code, log.as_str()), (0, ""));
    assert!(output.starts_with("nvml-exporter version "), "{output}");
    let (code, output, log) = Setup::bare().args(["--help"]).run();
    assert_eq!((code, log.as_str()), (0, ""));
    for flag in ["--collectors", "--address", "--devices", "--simulate", "--nvml-library"] {
        assert!(output.contains(flag), "{flag}: {output}");
    }
}

/// A library that a driver container is still copying would kill the process when it is mapped.
#[test]
fn a_library_that_is_not_complete() {
    let whole = std::fs::read(crate::support::simulator()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("libnvidia-ml.so.1");
    std::fs::write(&path, &whole[..5000]).unwrap();
    let exporter = Setup::new().args([format!("--nvml-library={}", path.display())]).start();
    exporter.until("the reason", |page| {
        page.value("nvml_down", &[("reason", "library_not_found")]).is_some()
    });
    assert!(exporter.log().contains("not complete; is it being copied?"), "{}", exporter.log());
    std::fs::write(&path, &whole).unwrap();
    exporter.until("NVML", |page| page.value("nvml_up", &[]) == Some(1.0));
}

/// A log on a full disk must not change what is served.
#[test]
fn a_log_that_cannot_be_written() {
    use std::process::{Command, Stdio};

    let directory = tempfile::tempdir().unwrap();
    let control = directory.path().join("control");
    std::fs::write(&control, "").unwrap();
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_nvml-exporter"))
        .args(["--simulate=t4-l4-mixed", "--collect-interval=100ms"])
        .arg(format!("--address={address}"))
        .env("NVML_SIM_CONTROL", &control)
        .stderr(Stdio::from(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap()))
        .spawn()
        .unwrap();
    let value = |name: &str| {
        std::net::TcpStream::connect(address).ok()?;
        let page = Page::parse(&get(address, "/metrics", &[]).body).unwrap();
        page.value(name, &[("gpu", "1")])
    };
    let until = |what: &str, wanted: f64| {
        crate::support::until(
            what,
            || (value("nvml_exporter_device_up") == Some(wanted)).then_some(()),
            String::new,
        );
    };
    until("GPU 1 up", 1.0);
    std::fs::write(&control, "gpu 1 lost\n").unwrap();
    until("GPU 1 down", 0.0);
    child.kill().unwrap();
    child.wait().unwrap();
}
