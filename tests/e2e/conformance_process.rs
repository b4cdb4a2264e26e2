//! Conformance cases of dcgm-exporter's contract, by number: counters files, reload, the process.
//!
//! The server's cases 24, 91 to 96, 99, 101 and 103 are tested where the server is, in `tests/http`;
//! cases 37 and 41 in `errors`, 106 in `faults`, 25 and 26 in `configmap`. Not a thing here: 35 (rows in the YAML file), 90 and 100 (a collector that fails fails no scrape).

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustix::process::Signal;

use crate::support::{Page, Setup, until};

const TEMPERATURE: &str = "DCGM_FI_DEV_GPU_TEMP";

/// Names and types that a counters file enables: value rows, and label rows.
fn rows(csv: &str) -> (BTreeSet<(String, String)>, Vec<String>) {
    let mut labels = Vec::new();
    let mut values = BTreeSet::new();
    for line in csv.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let columns: Vec<&str> = line.split(',').map(str::trim).collect();
        match columns[1] {
            "label" => labels.push(columns[0].to_owned()),
            kind => drop(values.insert((columns[0].to_owned(), kind.to_owned()))),
        }
    }
    (values, labels)
}

/// Rows of dcgm-exporter's files without a value on an H100 that NVML serves.
const NO_VALUE: &[(&str, &str)] = &[
    ("NVLINK_BANDWIDTH_TOTAL", "a rate, while the clock stands still"),
    ("nvlink_bandwidth_total", "a rate, while the clock stands still"),
];

/// The three files give the names, types, labels and order of labels of dcgm-exporter's templates.
fn check_shipped_file(csv: &str, scenario: &str) {
    let (values, labels) = rows(csv);
    assert!(values.len() > 15, "{values:?}");
    let setup = Setup::simulate(scenario).frozen().counters(csv);
    let page = setup.args(["--host-label=Hostname"]).ready().until_settled();
    let served: BTreeSet<(String, String)> = page
        .families
        .iter()
        .take_while(|family| family.name != "nvml_up")
        .map(|family| (family.name.clone(), family.kind.clone()))
        .collect();
    let expected: BTreeSet<(String, String)> = values
        .into_iter()
        .filter(|(name, _)| !NO_VALUE.iter().any(|(part, _)| name.contains(part)))
        .collect();
    assert_eq!(served, expected);

    let mut gpu = vec!["gpu", "UUID", "pci_bus_id", "device", "modelName"];
    let mut instance = [&gpu[..], &["GPU_I_PROFILE", "GPU_I_ID"]].concat();
    for names in [&mut gpu, &mut instance] {
        names.push("Hostname");
        names.extend(labels.iter().map(String::as_str));
    }
    let attributes = ["err_code", "err_msg"];
    for family in page.families.iter().take_while(|family| family.name != "nvml_up") {
        for sample in &family.samples {
            let mut expected =
                if sample.label("GPU_I_ID").is_some() { instance.clone() } else { gpu.clone() };
            if family.name.to_lowercase().contains("xid") {
                expected.extend(attributes);
            }
            assert_eq!(sample.label_names(), expected, "{sample:?}");
            let gpu = sample.label("gpu").unwrap();
            assert_eq!(sample.label("device"), Some(format!("nvidia{gpu}").as_str()));
        }
    }
}

#[test]
fn the_default_file_of_dcgm_exporter() {
    check_shipped_file(include_str!("../data/counters/default.csv"), "dgx-h100");
}

#[test]
fn the_profiling_file_of_dcgm_exporter() {
    check_shipped_file(include_str!("../data/counters/dcp.csv"), "h200-mig-and-whole");
}

#[test]
fn the_file_of_dcgm_exporter_1x() {
    check_shipped_file(include_str!("../data/counters/legacy-1x.csv"), "dgx-h100");
}

fn page(csv: &str) -> Page {
    Setup::simulate("gh200").frozen().counters(csv).ready().until_settled()
}

#[test]
fn case_27_unknown_fields_are_named() {
    for name in ["DCGM_FI_DEV_NO_SUCH_FIELD", "DCGM_EXP_XID_ERRORS_COUNTXXX"] {
        let (code, _, log) =
            Setup::simulate("gh200").counters(&format!("{name}, gauge, Text.\n")).run();
        assert_eq!(code, 1);
        let last = log.lines().last().unwrap();
        assert!(last.contains(&format!("unknown field {name:?}")), "{last}");
    }
}

#[test]
fn case_28_the_unknown_field_itself() {
    let page = page("DCGM_FI_UNKNOWN, gauge, Text.\nDCGM_FI_DEV_GPU_TEMP, gauge, Text.\n");
    assert!(page.family("DCGM_FI_UNKNOWN").is_none());
    assert!(page.family(TEMPERATURE).is_some());
}

#[test]
fn cases_29_and_31_blanks_and_commas() {
    let page = page(
        "DCGM_FI_DEV_DEC_UTIL , gauge, Decoder.\n\
         DCGM_FI_DEV_GPU_TEMP,gauge,\"Temperature, in C\"\n\
         \n\
         #DCGM_FI_DEV_SM_CLOCK, gauge, Off.\n",
    );
    assert_eq!(page.family("DCGM_FI_DEV_DEC_UTIL").unwrap().help, "Decoder.");
    assert_eq!(page.family(TEMPERATURE).unwrap().help, "Temperature, in C");
    assert!(page.family("DCGM_FI_DEV_SM_CLOCK").is_none());
    let unquoted = "DCGM_FI_DEV_GPU_TEMP, gauge, Temperature, in C\n";
    let (code, _, log) = Setup::simulate("gh200").counters(unquoted).run();
    assert_eq!(code, 1);
    assert!(log.contains("a help text with a comma must be quoted"), "{log}");
}

#[test]
fn case_32_profiling_rows_of_a_gpu_without_are_told_in_one_line() {
    let exporter = Setup::simulate("geforce-3090")
        .counters(
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge, Text.\n\
             DCGM_FI_PROF_DRAM_ACTIVE, gauge, Text.\n\
             DCGM_FI_DEV_GPU_TEMP, gauge, Text.\n",
        )
        .ready();
    let page = exporter.until_settled();
    assert_eq!(page.names()[0], TEMPERATURE);
    for field in ["DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE"] {
        let why = [("field", field), ("reason", "NOT_SUPPORTED")];
        assert!(page.value("nvml_exporter_field_unsupported", &why).is_some(), "{field}");
    }
    let log = exporter.log();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("DCGM_FI_PROF_")).collect();
    assert_eq!(told.len(), 1, "{log}");
    assert!(told[0].contains("NVIDIA GeForce RTX 3090"), "{}", told[0]);
}

#[test]
fn case_33_older_names_are_kept() {
    let page = page(
        "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS, gauge, Text.\n\
         dcgm_gpu_temp, gauge, Text.\n\
         DCGM_FI_DEV_GPU_UTIL_RATIO, gauge, Text.\n",
    );
    let names =
        ["DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "DCGM_FI_DEV_GPU_UTIL_RATIO", "dcgm_gpu_temp"];
    assert_eq!(page.names()[..3], names);
}

#[test]
fn case_34_a_file_replaces_the_default_set() {
    let page = page("DCGM_FI_DEV_GPU_TEMP, gauge, Text.\n");
    assert_eq!(page.names()[..2], [TEMPERATURE, "nvml_up"]);
    let sample = page.samples(TEMPERATURE).next().unwrap();
    assert_eq!(sample.label("DCGM_FI_DRIVER_VERSION"), None);
}

#[test]
fn case_22_a_start() {
    let exporter = Setup::simulate("dgx-h100").ready();
    let page = exporter.until_settled();
    assert!(page.text.contains("# HELP ") && page.text.contains("# TYPE "));
    let health = exporter.get("/health", &[]);
    assert_eq!((health.status, health.body.as_str()), (200, "OK"));
    assert_eq!(health.header("x-registry-available"), Some("true"));
    let log = exporter.log();
    assert!(!log.contains("panic") && !log.contains(" ERROR "), "{log}");
    let landing = exporter.get("/", &[]);
    assert!(landing.body.contains("GPU Exporter"), "{}", landing.body);
    // Case 93.
    assert_eq!(exporter.get("/debug/pprof/", &[]).status, 404);
}

/// Case 96, with the flag.
#[test]
fn case_96_basic_auth() {
    let hash = bcrypt::hash("secret", 4).unwrap();
    let setup = Setup::simulate("gh200");
    let path = setup.file("web.yml", &format!("basic_auth_users:\n  ops: {hash}\n"));
    let exporter = setup.args(["--web-config-file", &path]).start();
    let right = format!("Basic {}", BASE64_STANDARD.encode("ops:secret"));
    let wrong = format!("Basic {}", BASE64_STANDARD.encode("ops:guess"));
    for path in ["/", "/metrics", "/health"] {
        let answer = exporter.get(path, &[]);
        assert_eq!((answer.status, answer.body.trim()), (401, "Unauthorized"), "{path}");
        assert_eq!(exporter.get(path, &[("Authorization", &wrong)]).status, 401, "{path}");
        assert_eq!(exporter.get(path, &[("Authorization", &right)]).status, 200, "{path}");
    }
}

#[test]
fn case_97_it_ends_when_told_to() {
    for signal in [Signal::TERM, Signal::INT, Signal::QUIT] {
        let mut exporter = Setup::simulate("dgx-h100").ready();
        exporter.signal(signal);
        assert_eq!(exporter.wait().code(), Some(0), "{signal:?}: {}", exporter.log());
    }
    // Whatever the GPUs do.
    let mut exporter = Setup::simulate("dgx-h100").ready();
    exporter.control(&["gpu * hang *"]);
    exporter.until("all down", |page| page.sum("nvml_exporter_device_up") == 0.0);
    exporter.signal(Signal::TERM);
    assert_eq!(exporter.wait().code(), Some(0), "{}", exporter.log());
}

const RELOADS: &str = "nvml_exporter_config_reloads_total";

fn reloads(page: &Page, result: &str) -> f64 {
    page.value(RELOADS, &[("result", result)]).unwrap_or_default()
}

#[test]
fn case_98_several_reloads_in_a_row() {
    let mut exporter =
        Setup::simulate("dgx-h100").counters("DCGM_FI_DEV_GPU_TEMP, gauge, Text.\n").ready();
    let page = exporter.until_settled();
    let before = reloads(&page, "success");
    let mut threads = exporter.threads();
    threads.retain(|name| !name.starts_with("look-up"));
    let handles = page.sum("process_open_fds");
    for round in 1..=5 {
        exporter.signal(Signal::HUP);
        let wanted = before + f64::from(round);
        let page = exporter.until("a reload", |page| reloads(page, "success") >= wanted);
        assert_eq!(page.samples(TEMPERATURE).count(), 8, "the page is never empty");
    }
    let page = exporter.until_passes(3);
    until(
        "the same threads",
        || (exporter.threads() == threads).then_some(()),
        || format!("{:?}, not {threads:?}", exporter.threads()),
    );
    assert!(page.sum("process_open_fds") <= handles + 2.0, "{}", page.text);
    assert!(exporter.is_running());
}

/// Rows change on SIGHUP, and without one when the file's content does.
#[test]
fn rows_are_read_again() {
    let one = "DCGM_FI_DEV_GPU_TEMP, gauge, Text.\n";
    let other = "DCGM_FI_DEV_SM_CLOCK, gauge, Other text.\n";
    let exporter = Setup::simulate("dgx-h100").counters(one).ready();
    exporter.write("counters.csv", other);
    exporter.signal(Signal::HUP);
    let page = exporter.until("other rows", |page| page.family(TEMPERATURE).is_none());
    let family = exporter
        .until("the clock", |page| page.family("DCGM_FI_DEV_SM_CLOCK").is_some())
        .family("DCGM_FI_DEV_SM_CLOCK")
        .unwrap()
        .clone();
    assert_eq!((family.help.as_str(), family.samples.len()), ("Other text.", 8));
    assert!(page.is("nvml_up", &[], 1.0));
    exporter.write("counters.csv", one);
    exporter.until("the former rows", |page| page.samples(TEMPERATURE).count() == 8);
}

#[test]
fn case_105_a_bad_file_leaves_the_rows_in_use() {
    let mut exporter =
        Setup::simulate("dgx-h100").counters("DCGM_FI_DEV_GPU_TEMP, gauge, Text.\n").ready();
    exporter.write("counters.csv", "DCGM_FI_DEV_GPU_TMP, gauge, Text.\n");
    exporter.signal(Signal::HUP);
    let page = exporter.until("a failed reload", |page| reloads(page, "failure") >= 1.0);
    assert!(page.is("nvml_exporter_config_last_reload_successful", &[], 0.0));
    assert_eq!(page.samples(TEMPERATURE).count(), 8);
    exporter.until_log("unknown field \"DCGM_FI_DEV_GPU_TMP\"; did you mean DCGM_FI_DEV_GPU_TEMP?");
    assert!(exporter.get("/", &[]).body.contains("DCGM_FI_DEV_GPU_TMP"));
    assert!(exporter.is_running());
    exporter.write("counters.csv", "DCGM_FI_DEV_SM_CLOCK, gauge, Text.\n");
    let page = exporter.until("a good file", |page| page.family("DCGM_FI_DEV_SM_CLOCK").is_some());
    assert!(page.family(TEMPERATURE).is_none());
    exporter
        .until("success", |page| page.is("nvml_exporter_config_last_reload_successful", &[], 1.0));
}

#[test]
fn case_102_debugging_dumps() {
    let setup = Setup::simulate("gh200").args(["--dump-enabled", "--dump-compression=false"]);
    let directory = format!("{}/dumps", setup.directory());
    let exporter = setup.args(["--dump-directory", &directory, "--dump-retention=0"]).ready();
    exporter.scrape();
    let files = || std::fs::read_dir(&directory).map(Iterator::count).unwrap_or_default();
    crate::support::until("a dump", || (files() > 0).then_some(()), || exporter.log());
}
