//! Conformance cases of dcgm-exporter's contract, by number, as far as the page shows them: what is
//! on it, and how. Cases about files, flags and the process are in `conformance_process`.
//!
//! Cases about what is not served here: 3 (`NVSwitch`), 5 (Grace CPUs), 21 (Kubernetes).

use crate::support::{Exporter, Page, Sample, Setup, until};

const TEMPERATURE: &str = "DCGM_FI_DEV_GPU_TEMP";
const GPU_LABELS: [&str; 6] = ["gpu", "UUID", "pci_bus_id", "device", "modelName", "hostname"];

/// One gauge, and nothing else.
const ONE: &str = "DCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (in C).\n";

fn with(scenario: &str, counters: &str) -> Setup {
    Setup::simulate(scenario).frozen().counters(counters)
}

fn page_of(setup: Setup) -> Page {
    setup.ready().until_settled()
}

fn samples<'a>(page: &'a Page, name: &'a str) -> Vec<&'a Sample> {
    page.samples(name).collect()
}

/// The lines of the page that the counters file brings about.
fn selected(page: &Page) -> &str {
    page.text.split("# HELP nvml_up ").next().unwrap()
}

#[test]
fn case_01_one_gpu_one_gauge() {
    let page = page_of(with("gh200", ONE).control(&["gpu 0 set temperature 41"]));
    let uuid = page.samples(TEMPERATURE).next().unwrap().label("UUID").unwrap();
    let expected = format!(
        "# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).\n\
         # TYPE DCGM_FI_DEV_GPU_TEMP gauge\n\
         DCGM_FI_DEV_GPU_TEMP{{gpu=\"0\",UUID=\"{uuid}\",pci_bus_id=\"00000009:01:00.0\",\
         device=\"nvidia0\",modelName=\"NVIDIA GH200 480GB\",hostname=\"node-a\"}} 41\n"
    );
    assert_eq!(selected(&page), expected);
}

#[test]
fn case_02_pci_bus_id_is_printed_when_unknown() {
    let setup = with("gh200", ONE).control(&["gpu 0 error nvmlDeviceGetPciInfo_v3 UNKNOWN"]);
    let page = page_of(setup);
    let sample = page.samples(TEMPERATURE).next().unwrap();
    assert_eq!((sample.label("pci_bus_id"), sample.label_names()), (Some(""), GPU_LABELS.into()));
}

#[test]
fn case_04_links_have_labels_of_their_own() {
    let csv = "nvml_nvlink_up, gauge, Up.\n";
    let page = page_of(with("dgx-h100", csv));
    let links = samples(&page, "nvml_nvlink_up");
    assert_eq!(links.len(), 8 * 18);
    assert_eq!(
        links[0].label_names(),
        ["nvlink", "gpu", "gpu_uuid", "pci_bus_id", "device", "model_name", "hostname"]
    );
    // Counted from 1.
    assert_eq!((links[0].label("nvlink"), links[17].label("nvlink")), (Some("1"), Some("18")));
    let page =
        page_of(with("dgx-h100", csv).control(&["gpu * error nvmlDeviceGetPciInfo_v3 UNKNOWN"]));
    assert_eq!(
        page.samples("nvml_nvlink_up").next().unwrap().label_names(),
        ["nvlink", "gpu", "gpu_uuid", "device", "model_name", "hostname"],
        "what is empty is left out"
    );
}

/// DCGM marks what is unknown by a value, which is dropped; so a genuine value of that size is lost
/// there. Here the unknown has no value at all, and what is known is served.
#[test]
fn case_06_what_is_unknown_has_no_sample() {
    let csv = "DCGM_FI_DEV_MEMORY_TEMP, gauge, Memory temperature.\n\
               DCGM_FI_DEV_ECC_SBE_VOL_TOTAL, counter, SBE.\n\
               DCGM_FI_DEV_GPU_TEMP, gauge, Temperature.\n";
    // A T4 has no sensor at its memory.
    let page = page_of(with("t4-l4-mixed", csv));
    assert!(page.family("DCGM_FI_DEV_MEMORY_TEMP").is_none(), "{}", selected(&page));
    assert!(!page.text.contains("# HELP DCGM_FI_DEV_MEMORY_TEMP"));
    assert_eq!(samples(&page, TEMPERATURE).len(), 4);
    // DCGM's own marks, as values: 32 bits wide, 64 bits wide, and as a double.
    for value in ["2147483632", "2147483635", "140737488355328"] {
        let command = format!("gpu 0 set ecc_sbe_volatile {value}");
        let page = page_of(with("gh200", csv).control(&[&command]));
        let sample = page.sample("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", &[]).unwrap();
        assert_eq!(sample.digits, value);
    }
}

#[test]
fn case_07_integers_are_printed_exactly() {
    let csv =
        "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL, counter, SBE.\nDCGM_FI_DEV_GPU_TEMP_LIMIT, gauge, Left.\n";
    let exporter = with("gh200", csv).ready();
    for value in ["0", "42", "999999", "1000000", "1234567", "9007199254740992"] {
        exporter.control(&[&format!("gpu 0 set ecc_sbe_volatile {value}")]);
        exporter.until(value, |page| {
            page.sample("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", &[]).is_some_and(|s| s.digits == value)
        });
    }
    exporter.control(&["gpu 0 set temperature 120"]);
    exporter.until("a negative margin", |page| {
        page.sample("DCGM_FI_DEV_GPU_TEMP_LIMIT", &[]).is_some_and(|s| s.digits.starts_with('-'))
    });
}

#[test]
fn case_09_xid_has_code_and_meaning() {
    const XID: &str = "DCGM_FI_DEV_XID_ERRORS";
    let csv = "DCGM_FI_DEV_XID_ERRORS, gauge, Last XID.\nDCGM_FI_DRIVER_VERSION, label, Driver.\n";
    let exporter = with("dgx-h100", csv).ready();
    let page = exporter.until_settled();
    for sample in page.samples(XID) {
        assert_eq!(sample.digits, "0");
        let names = [&GPU_LABELS[..], &["DCGM_FI_DRIVER_VERSION", "err_code", "err_msg"]].concat();
        assert_eq!(sample.label_names(), names);
        assert!(sample.has(&[("err_code", "0"), ("err_msg", "No Error")]), "{sample:?}");
    }
    for (xid, known) in [("42", true), ("255", false)] {
        exporter.control(&[&format!("gpu 3 xid {xid}")]);
        let page = exporter
            .until(xid, |page| page.sample(XID, &[("gpu", "3"), ("err_code", xid)]).is_some());
        let sample = page.sample(XID, &[("gpu", "3")]).unwrap();
        assert_eq!(sample.digits, xid);
        assert_eq!(sample.label("err_msg") != Some("Unknown Error"), known, "{sample:?}");
        assert_eq!(page.sample(XID, &[("gpu", "2")]).unwrap().digits, "0");
    }
}

/// XIDs that the driver attributes to an instance are on its row only; others on all of the GPU.
#[test]
fn case_09_xid_of_an_instance() {
    const XID: &str = "DCGM_FI_DEV_XID_ERRORS";
    let exporter = with("a100-mig-mixed", "DCGM_FI_DEV_XID_ERRORS, gauge, Last XID.\n").ready();
    exporter.until_settled();
    exporter.control(&["gpu 0 xid 94 gi 3 ci 0"]);
    let page = exporter.until("94", |page| page.sum(XID) > 0.0);
    let of_gpu_0: Vec<_> = page
        .samples(XID)
        .filter(|sample| sample.label("gpu") == Some("0"))
        .map(|sample| (sample.label("GPU_I_ID").unwrap(), sample.digits.as_str()))
        .collect();
    assert_eq!(of_gpu_0, [("2", "0"), ("3", "94"), ("9", "0")]);
}

#[test]
fn cases_10_and_11_blanks_in_model_names() {
    let model = |setup: Setup| {
        let page = page_of(setup);
        page.samples(TEMPERATURE).next().unwrap().label("modelName").unwrap().to_owned()
    };
    assert_eq!(model(with("dgx-h100", ONE)), "NVIDIA H100 80GB HBM3");
    for flag in ["-rbmn", "--replace-blanks-in-model-name"] {
        assert_eq!(model(with("dgx-h100", ONE).args([flag])), "NVIDIA-H100-80GB-HBM3", "{flag}");
    }
}

#[test]
fn case_12_old_namespace() {
    for flag in ["-o", "--use-old-namespace"] {
        let page = page_of(with("dgx-h100", ONE).args([flag]));
        for sample in page.samples(TEMPERATURE) {
            let names = ["gpu", "uuid", "pci_bus_id", "device", "modelName", "hostname"];
            assert_eq!(sample.label_names(), names);
        }
    }
}

#[test]
fn case_13_label_rows_are_on_all_samples() {
    // Rows before and after it, and labels out of order.
    let csv = "DCGM_FI_DEV_SM_CLOCK, gauge, SM clock.\n\
               DCGM_FI_DRIVER_VERSION, label, Driver.\n\
               DCGM_FI_DEV_BRAND, label, Brand.\n\
               DCGM_FI_DEV_GPU_TEMP, gauge, Temperature.\n";
    for scenario in ["dgx-h100", "a100-mig-mixed"] {
        let page = page_of(with(scenario, csv));
        for name in ["DCGM_FI_DEV_SM_CLOCK", TEMPERATURE] {
            for sample in page.samples(name) {
                let labels = sample.label_names();
                let last = &labels[labels.len() - 3..];
                assert_eq!(last, ["hostname", "DCGM_FI_DEV_BRAND", "DCGM_FI_DRIVER_VERSION"]);
            }
        }
        assert!(page.family("DCGM_FI_DRIVER_VERSION").is_none());
        assert!(page.family("DCGM_FI_DEV_BRAND").is_none());
    }
}

#[test]
fn case_16_two_scrapes_have_one_order() {
    let exporter = Setup::simulate("h200-mig-and-whole").ready();
    let series = |page: &Page| -> Vec<_> {
        let lines = selected(page).lines();
        lines.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
    };
    let first = exporter.until_settled();
    let second = exporter.until_passes(3);
    assert_ne!(selected(&first), selected(&second), "values go on");
    assert_eq!(series(&first), series(&second));
    // By name, then GPU, then instance.
    let names = first.names();
    let dcgm: Vec<_> = names.iter().filter(|name| name.starts_with("DCGM_")).collect();
    assert!(dcgm.is_sorted(), "{dcgm:?}");
    let order: Vec<(u32, u32)> = first
        .samples(TEMPERATURE)
        .map(|sample| {
            let number = |name| sample.label(name).unwrap_or("0").parse().unwrap();
            (number("gpu"), number("GPU_I_ID"))
        })
        .collect();
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn cases_17_and_18_mig_instances() {
    let exporter = Setup::simulate("a100-mig-mixed").frozen().ready();
    let page = exporter.until_settled();
    let parents: Vec<_> = samples(&page, "nvml_exporter_device_up");
    let identity = [
        "gpu",
        "UUID",
        "pci_bus_id",
        "device",
        "modelName",
        "GPU_I_PROFILE",
        "GPU_I_ID",
        "hostname",
    ];
    let mut instances = 0;
    for sample in page.readings().filter(|sample| sample.name.starts_with("DCGM_")) {
        let gpu = sample.label("gpu").unwrap();
        let parent = parents.iter().find(|parent| parent.label("gpu") == Some(gpu)).unwrap();
        assert_eq!(sample.label("UUID"), parent.label("UUID"));
        assert_eq!(sample.label("GPU_I_PROFILE").is_some(), sample.label("GPU_I_ID").is_some());
        assert_eq!(sample.label("GPU_I_ID").is_some(), gpu != "2", "{sample:?}");
        if gpu != "2" {
            assert_eq!(&sample.label_names()[..8], &identity);
            instances += 1;
        }
    }
    assert!(instances > 100, "{instances}");
}

/// The families that dcgm-exporter has on by default, and that NVML gives on a data centre board.
const BASELINE: [(&str, &str); 14] = [
    ("DCGM_FI_DEV_SM_CLOCK", "gauge"),
    ("DCGM_FI_DEV_MEM_CLOCK", "gauge"),
    ("DCGM_FI_DEV_MEMORY_TEMP", "gauge"),
    ("DCGM_FI_DEV_GPU_TEMP", "gauge"),
    ("DCGM_FI_DEV_POWER_USAGE", "gauge"),
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter"),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter"),
    ("DCGM_FI_DEV_GPU_UTIL", "gauge"),
    ("DCGM_FI_DEV_MEM_COPY_UTIL", "gauge"),
    ("DCGM_FI_DEV_ENC_UTIL", "gauge"),
    ("DCGM_FI_DEV_DEC_UTIL", "gauge"),
    ("DCGM_FI_DEV_XID_ERRORS", "gauge"),
    ("DCGM_FI_DEV_FB_FREE", "gauge"),
    ("DCGM_FI_DEV_FB_USED", "gauge"),
];

#[test]
fn case_19_the_default_set() {
    let page = page_of(Setup::simulate("dgx-h100"));
    for (name, kind) in BASELINE {
        let family = page.family(name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(family.kind, kind, "{name}");
        assert_eq!(family.samples.len(), 8, "{name}");
        for sample in &family.samples {
            for label in ["gpu", "UUID", "device", "modelName"] {
                assert!(sample.label(label).is_some_and(|value| !value.is_empty()), "{sample:?}");
            }
            assert!(sample.value >= 0.0, "{sample:?}");
        }
    }
}

#[test]
fn case_20_no_hostname() {
    let all = page_of(Setup::simulate("h200-mig-and-whole").frozen());
    let without = page_of(Setup::simulate("h200-mig-and-whole").frozen().args(["--no-hostname"]));
    for sample in without.families.iter().flat_map(|family| &family.samples) {
        assert!(sample.labels.iter().all(|(name, _)| !name.eq_ignore_ascii_case("hostname")));
    }
    // Everything else is as it was.
    let expected = selected(&all).replace(",hostname=\"node-a\"", "");
    assert_eq!(selected(&without), expected);
}

/// A rate is there from the second reading on, in thousands of KiB a second.
#[test]
fn nvlink_bandwidth_is_what_the_byte_counters_grow_by() {
    const RATE: &str = "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL";
    let csv = "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL, counter, Rate.\n\
               nvml_nvlink_tx_bytes_total, counter, Sent.\n\
               nvml_nvlink_rx_bytes_total, counter, Received.\n";
    let exporter = with("geforce-3090", csv).ready();
    let bytes = |page: &Page| {
        page.sum("nvml_nvlink_tx_bytes_total") + page.sum("nvml_nvlink_rx_bytes_total")
    };
    let mut before = exporter.until_settled();
    assert!(before.family(RATE).is_none(), "the clock stands still");
    let (before, after) = until(
        "a rate",
        || {
            exporter.control(&["clock advance 10s"]);
            let page = exporter.until("more bytes", |page| bytes(page) > bytes(&before));
            // The next reading has no rate again, for then nothing has grown in no time.
            let former = std::mem::replace(&mut before, page.clone());
            page.family(RATE).is_some().then_some((former, page))
        },
        || exporter.log(),
    );
    let expected = ((bytes(&after) - bytes(&before)) / 1024.0 / 10.0 / 1000.0).trunc();
    assert_eq!(after.sum(RATE).to_bits(), expected.to_bits());
}

/// A row's GPU, and its instance if it is one's.
type Device = (String, Option<String>);

fn devices(exporter: &Exporter) -> Vec<Device> {
    let page = exporter.until_settled();
    page.samples(TEMPERATURE)
        .map(|sample| {
            let instance = sample.label("GPU_I_ID").map(str::to_owned);
            (sample.label("gpu").unwrap().to_owned(), instance)
        })
        .collect()
}

/// Cases 36, 38 and 39: GPU 0 has instances 2, 3 and 9; GPU 1 has 7 to 13; GPU 2 is whole.
#[test]
fn cases_36_38_39_device_selectors() {
    let gpu = |gpu: &str| (gpu.to_owned(), None);
    let mig = |gpu: &str, ids: &[&str]| -> Vec<Device> {
        ids.iter().map(|id| (gpu.to_owned(), Some((*id).to_owned()))).collect()
    };
    let of_0 = || mig("0", &["2", "3", "9"]);
    let of_1 = || mig("1", &["7", "8", "9", "10", "11", "12", "13"]);
    let cases: Vec<(&str, Vec<Device>)> = vec![
        ("f", [of_0(), of_1(), vec![gpu("2")]].concat()),
        ("g", vec![gpu("0"), gpu("1"), gpu("2")]),
        ("g:0,2", vec![gpu("0"), gpu("2")]),
        ("g:0-1", vec![gpu("0"), gpu("1")]),
        ("i", [of_0(), of_1()].concat()),
        ("i:9", [mig("0", &["9"]), mig("1", &["9"])].concat()),
        ("i:0.9", mig("0", &["9"])),
        ("g:2+i:0.2", [mig("0", &["2"]), vec![gpu("2")]].concat()),
        ("g+i", [vec![gpu("0")], of_0(), vec![gpu("1")], of_1(), vec![gpu("2")]].concat()),
    ];
    for (selector, expected) in cases {
        let exporter = with("a100-mig-mixed", ONE).args(["--devices", selector]).ready();
        assert_eq!(devices(&exporter), expected, "{selector}");
    }
}

#[test]
fn cases_42_43_44_host_label() {
    let label = |setup: Setup| {
        let page = page_of(setup);
        let sample = page.samples(TEMPERATURE).next().unwrap().clone();
        sample.label("hostname").map(str::to_owned)
    };
    let host = gethostname::gethostname().into_string().unwrap();
    let one = || with("gh200", ONE);
    assert_eq!(label(one().env("NODE_NAME", "node-7")).as_deref(), Some("node-7"));
    assert_eq!(label(one().without_env("NODE_NAME")), Some(host));
    for (engine, expected) in [("far:5555", "far"), ("[2001:db8::1]:5555", "2001:db8::1")] {
        let setup = one().args(["--remote-hostengine-info", engine]);
        assert_eq!(label(setup).as_deref(), Some(expected));
    }
    let both = page_of(one().args(["--host-label=both"]));
    let names = both.samples(TEMPERATURE).next().unwrap().label_names();
    assert_eq!(names[5..], ["Hostname", "hostname"]);
}
