//! XIDs: counted by code, GPU and instance, from NVML's events and from the kernel log, each once.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::{Exporter, Page, Setup};
use crate::watched::is_down;

const TOTAL: &str = "DCGM_EXP_XID_ERRORS_TOTAL";
const COUNT: &str = "DCGM_EXP_XID_ERRORS_COUNT";
const TIME: &str = "nvml_xid_last_timestamp_seconds";
const INFO: &str = "nvml_xid_info";
const LOG_UP: &str = "nvml_exporter_kernel_log_up";
const LOG: &str = "kmsg";

fn total(page: &Page, gpu: &str, xid: &str) -> Option<f64> {
    page.value(TOTAL, &[("gpu", gpu), ("xid", xid)])
}

fn until_total(exporter: &Exporter, gpu: &str, xid: &str, wanted: f64) -> Page {
    exporter.until(&format!("{wanted} XIDs {xid}"), |page| {
        page.is(TOTAL, &[("gpu", gpu), ("xid", xid)], wanted)
    })
}

/// With a kernel log that only the test writes.
fn logged(scenario: &str) -> Exporter {
    let setup = Setup::simulate(scenario);
    let log = setup.file(LOG, "6,1,1,-;NVRM: Xid (PCI:0000:1b:00): 62, before the exporter\n");
    let exporter = setup.args(["--kernel-log", &log]).ready();
    exporter.until_settled();
    exporter
}

/// The driver writes a line, as `/dev/kmsg` gives it.
fn log(exporter: &Exporter, message: &str) {
    let mut file = OpenOptions::new().append(true).open(exporter.path(LOG)).unwrap();
    writeln!(file, "3,2000,123456789,-;{message}").unwrap();
}

/// As the driver writes it: no function, lower case, a domain of four digits.
fn address(page: &Page, gpu: &str) -> String {
    let sample = page.sample("nvml_exporter_device_up", &[("gpu", gpu)]).unwrap();
    let address = sample.label("pci_bus_id").unwrap().to_lowercase();
    address.strip_prefix("0000").unwrap().split('.').next().unwrap().to_owned()
}

#[test]
fn codes_that_matter_start_at_zero_and_others_with_their_first() {
    let exporter = Setup::simulate("dgx-h100").ready();
    let page = exporter.until_settled();
    for gpu in ["0", "7"] {
        for xid in ["48", "79", "94", "119", "145"] {
            assert_eq!(total(&page, gpu, xid), Some(0.0), "{gpu} {xid}");
        }
        assert_eq!(total(&page, gpu, "31"), None);
    }
    assert_eq!(page.samples(TIME).count(), 0);
    let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    exporter.control(&["gpu 3 xid 31", "gpu 3 xid 31", "gpu 3 xid 79"]);
    let page = until_total(&exporter, "3", "79", 1.0);
    assert_eq!(total(&page, "3", "31"), Some(2.0));
    assert_eq!(total(&page, "2", "79"), Some(0.0));
    let time = page.value(TIME, &[("gpu", "3"), ("xid", "79")]).unwrap();
    assert!(time >= before, "{time} is before {before}");
    assert_eq!(page.samples(TIME).count(), 2);
    let info = page.sample(INFO, &[("xid", "79")]).unwrap();
    assert!(info.has(&[
        ("class", "hardware"),
        ("severity", "critical"),
        ("action", "restart_node")
    ]));
    assert!(page.sample(INFO, &[("xid", "31"), ("class", "application")]).is_some());
}

#[test]
fn a_code_of_no_catalogue_counts_too() {
    let exporter = Setup::simulate("t4-l4-mixed").ready();
    exporter.until_settled();
    exporter.control(&["gpu 1 xid 4711"]);
    let page = until_total(&exporter, "1", "4711", 1.0);
    assert!(page.sample(INFO, &[("xid", "4711"), ("class", "unknown")]).is_some());
}

#[test]
fn an_instance_has_xids_of_its_own() {
    let exporter = Setup::simulate("a100-mig-mixed").ready();
    exporter.until_settled();
    exporter.control(&["gpu 0 xid 94 gi 3 ci 0", "gpu 0 xid 95"]);
    let page = until_total(&exporter, "0", "95", 1.0);
    let of_instance =
        page.sample(TOTAL, &[("gpu", "0"), ("xid", "94"), ("GPU_I_ID", "3")]).unwrap();
    assert!(of_instance.label("GPU_I_PROFILE").is_some_and(|profile| !profile.is_empty()));
    assert_eq!(of_instance.digits, "1");
    let of_board = |xid: &str| {
        let mut all =
            page.samples(TOTAL).filter(|sample| sample.has(&[("gpu", "0"), ("xid", xid)]));
        all.find(|sample| sample.label("GPU_I_ID").is_none()).map(|sample| sample.digits.clone())
    };
    assert_eq!(of_board("94").as_deref(), Some("0"));
    assert_eq!(of_board("95").as_deref(), Some("1"));
}

/// A GPU that fell off its bus gives no readings, but says why; so do those of a driver that is
/// loaded again.
#[test]
fn what_happened_outlives_the_gpu_and_the_driver() {
    let exporter = Setup::simulate("dgx-h100").ready();
    let before = exporter.until_settled();
    let labels = before.sample(TOTAL, &[("gpu", "5"), ("xid", "48")]).unwrap().label_names();
    exporter.control(&["gpu 5 xid 79", "gpu 5 lost"]);
    let page = exporter.until("GPU 5 is lost", |page| is_down(page, "5", "lost"));
    assert_eq!(total(&page, "5", "79"), Some(1.0));
    assert!(page.sample(TIME, &[("gpu", "5"), ("xid", "79")]).is_some());
    assert_eq!(page.sample(TOTAL, &[("gpu", "5"), ("xid", "48")]).unwrap().label_names(), labels);
    exporter.control(&["driver unload"]);
    let page = exporter.until("no driver", |page| page.is("nvml_up", &[], 0.0));
    assert_eq!(total(&page, "5", "79"), Some(1.0));
    exporter.control(&["driver load", "gpu 5 restore", "gpu 5 xid 79"]);
    exporter.until("the driver", |page| page.is("nvml_up", &[], 1.0));
    until_total(&exporter, "5", "79", 1.0);
    exporter.until_passes(2);
    exporter.control(&["gpu 5 xid 79"]);
    until_total(&exporter, "5", "79", 2.0);
}

#[test]
fn the_kernel_log_tells_of_xids_that_nvml_does_not() {
    let exporter = logged("dgx-h100");
    let page = exporter.until("the log", |page| page.is(LOG_UP, &[], 1.0));
    let of = |gpu| address(&page, gpu);
    log(&exporter, &format!("NVRM: GPU at PCI:{}: GPU-1", of("2")));
    log(&exporter, &format!("NVRM: Xid (PCI:{}): 119, pid=7, name=x, Timeout", of("2")));
    log(&exporter, "NVRM: Xid (PCI:0000:ff:1f): 62, of no GPU here");
    log(&exporter, &format!("NVRM: Xid (PCI:{}): 145, RLW_CTRL Fatal XC0 i0 Link 03", of("4")));
    log(&exporter, &format!("NVRM: Xid (PCI:{}): 145, a second line of it", of("4")));
    let page = until_total(&exporter, "4", "145", 1.0);
    assert_eq!(total(&page, "2", "119"), Some(1.0));
    assert_eq!(page.samples(TOTAL).map(|sample| sample.value).sum::<f64>().to_string(), "2");
    exporter.until_log("0000:ff:1f");
}

#[test]
fn an_xid_that_both_tell_of_counts_once() {
    let exporter = logged("dgx-h100");
    let page = exporter.until("the log", |page| page.is(LOG_UP, &[], 1.0));
    exporter.control(&["gpu 1 xid 48"]);
    log(&exporter, &format!("NVRM: Xid (PCI:{}): 48, pid=7, name=x, DBE", address(&page, "1")));
    // What comes last is told last: then the 48 has been seen.
    log(&exporter, &format!("NVRM: Xid (PCI:{}): 62, halted", address(&page, "1")));
    let page = until_total(&exporter, "1", "62", 1.0);
    assert_eq!(total(&page, "1", "48"), Some(1.0));
}

#[test]
fn what_a_process_writes_to_the_log_is_nothing() {
    let exporter = logged("dgx-h100");
    let page = exporter.until("the log", |page| page.is(LOG_UP, &[], 1.0));
    let mut file = OpenOptions::new().append(true).open(exporter.path(LOG)).unwrap();
    writeln!(file, "12,1,1,-;NVRM: Xid (PCI:{}): 79, forged", address(&page, "0")).unwrap();
    log(&exporter, &format!("NVRM: Xid (PCI:{}): 62, halted", address(&page, "0")));
    let page = until_total(&exporter, "0", "62", 1.0);
    assert_eq!(total(&page, "0", "79"), Some(0.0));
}

/// Whatever is written, and however much: an XID is one, and the exporter goes on.
#[test]
fn a_storm_in_the_log_is_one_xid_and_costs_nothing() {
    let exporter = logged("dgx-h100");
    let page = exporter.until("the log", |page| page.is(LOG_UP, &[], 1.0));
    let address = address(&page, "0");
    let xid = format!("3,1,1,-;NVRM: Xid (PCI:{address}): 62, halted\n");
    let noise = ["x".repeat(40_000), "\u{0}\n\n;;;\n".to_owned(), " SUBSYSTEM=pci\n".to_owned()];
    let mut file = OpenOptions::new().append(true).open(exporter.path(LOG)).unwrap();
    for round in 0..5_000 {
        file.write_all(xid.as_bytes()).unwrap();
        if round % 500 == 0 {
            for noise in &noise {
                file.write_all(noise.as_bytes()).unwrap();
            }
            file.write_all(b"\n").unwrap();
        }
    }
    log(&exporter, &format!("NVRM: Xid (PCI:{address}): 119, Timeout"));
    let page = until_total(&exporter, "0", "119", 1.0);
    assert_eq!(total(&page, "0", "62"), Some(1.0));
}

/// A board that is cut anew is the same board.
#[test]
fn xids_are_heard_after_a_new_layout() {
    let exporter = Setup::simulate("a100-mig-mixed").ready();
    exporter.until_settled();
    exporter.control(&["gpu 0 mig 1g.10gb,2g.20gb"]);
    let instances = |page: &Page| {
        let of_gpu = page.samples("nvml_mig_instance_info").filter(|s| s.label("gpu") == Some("0"));
        of_gpu.count()
    };
    exporter.until("the new layout", |page| instances(page) == 2);
    exporter.control(&["gpu 0 xid 95"]);
    let page = until_total(&exporter, "0", "95", 1.0);
    assert_eq!(instances(&page), 2);
}

#[test]
fn a_log_that_is_not_there_is_said_and_one_that_is_not_wanted_is_not() {
    let exporter = Setup::simulate("no-gpus").args(["--kernel-log=/nowhere/kmsg"]).ready();
    let page = exporter.until("the metric", |page| page.sample(LOG_UP, &[]).is_some());
    assert!(page.is(LOG_UP, &[], 0.0));
    exporter.until_log("/nowhere/kmsg");
    let exporter = Setup::simulate("no-gpus").args(["--kernel-log=none"]).ready();
    assert!(exporter.until_ready().sample(LOG_UP, &[]).is_none());
}

fn windowed(scenario: &str, window: &str) -> Exporter {
    let csv = format!("{COUNT}, gauge, Window.\n{COUNT}, counter, Twice.\n");
    let window = format!("--xid-count-window-size={window}");
    Setup::simulate(scenario).counters(&csv).args([window]).ready()
}

#[test]
fn cases_46_47_49_50_and_53_a_window_of_xids() {
    let exporter = windowed("dgx-h100", "300000");
    let page = exporter.until_settled();
    // 47 and 50: no XID in the window.
    assert_eq!(page.samples(COUNT).count(), 8);
    for sample in page.samples(COUNT) {
        assert_eq!((sample.digits.as_str(), sample.label("xid")), ("0", None));
        assert_eq!(sample.label("window_size_in_ms"), Some("300000"));
    }
    // 53: the first row's type and help.
    assert!(page.text.contains(&format!("# HELP {COUNT} Window.\n# TYPE {COUNT} gauge\n")));
    let counts = |page: &Page| -> Vec<(String, String)> {
        let of_gpu = page.samples(COUNT).filter(|sample| sample.has(&[("gpu", "6")]));
        of_gpu.map(|s| (s.label("xid").unwrap_or("-").to_owned(), s.digits.clone())).collect()
    };
    let wanted = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(xid, count)| ((*xid).to_owned(), (*count).to_owned())).collect()
    };
    exporter.control(&["gpu 6 xid 42", "gpu 6 xid 42", "gpu 6 xid 46"]);
    exporter.until("46", |page| counts(page) == wanted(&[("42", "2"), ("46", "1")]));
    exporter.control(&["gpu 6 xid 19"]);
    exporter.until("19", |page| counts(page) == wanted(&[("19", "1"), ("42", "2"), ("46", "1")]));
}

#[test]
fn case_49_xids_of_gpus_that_are_not_monitored() {
    let csv = format!("{COUNT}, gauge, Window.\n");
    let exporter = Setup::simulate("dgx-h100").counters(&csv).args(["-d", "g:0,1"]).ready();
    exporter.until_settled();
    exporter.control(&["gpu 5 xid 42", "gpu 1 xid 42"]);
    let page = exporter.until("42", |page| page.sample(COUNT, &[("xid", "42")]).is_some());
    let gpus: Vec<_> = page.samples(COUNT).map(|sample| sample.label("gpu").unwrap()).collect();
    assert_eq!(gpus, ["0", "1"]);
}

#[test]
fn what_is_older_than_the_window_counts_no_more() {
    let exporter = windowed("t4-l4-mixed", "2s");
    exporter.until_settled();
    exporter.control(&["gpu 0 xid 42"]);
    exporter.until("42", |page| page.sample(COUNT, &[("xid", "42")]).is_some());
    let page = exporter.until("none", |page| page.sample(COUNT, &[("xid", "42")]).is_none());
    assert!(page.is(COUNT, &[("gpu", "0"), ("window_size_in_ms", "2000")], 0.0));
}
