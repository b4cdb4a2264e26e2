//! NVIDIA's own Python bindings, and a monitor built on them, run on the simulator as they do on
//! the driver; and the exporter serves what they read.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{Page, Python, SCENARIOS, Setup};

/// Families that the bindings cannot be asked about.
const NOT_COMPARED: &[(&str, &str)] = &[
    ("DCGM_FI_DEV_XID_ERRORS", "an event, and not a value to be read"),
    ("DCGM_FI_DEV_VGPU_LICENSE_STATUS", "the bindings read an older struct"),
    ("DCGM_FI_DEV_THRESHOLD_SRM", "the bindings have no such call"),
    ("DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG", "the bindings have no such call"),
    ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "a rate, for which two readings are needed"),
    ("nvml_clocks_event_reason", "bits of DCGM_FI_DEV_CLOCKS_EVENT_REASONS"),
    ("nvml_clocks_event_seconds_total", "the violations in another unit"),
];

fn readings(scenario: &str) -> Vec<Value> {
    let output = Python::new("python").simulate(scenario).args(["tests/e2e/bindings.py"]).run("");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{scenario}: {errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Whether both are one value. Of a ratio `serde_json` does not read the last digit exactly.
fn same(served: Option<f64>, read: Option<f64>) -> bool {
    let ratio = |(served, read): (f64, f64)| read.abs() < 1.0 && (served - read).abs() < 1e-15;
    served == read || served.zip(read).is_some_and(ratio)
}

/// Compares one reading with the page; what was compared.
fn compare(page: &Page, row: &Value, name: &str, value: &Value) -> Result<(), String> {
    let gpu = row["gpu"].to_string();
    let instance = row["instance"].as_u64().map(|number| number.to_string());
    let mut found = page.samples(name).filter(|sample| {
        sample.label("gpu") == Some(&gpu) && sample.label("GPU_I_ID") == instance.as_deref()
    });
    let sample = found.next();
    assert!(found.next().is_none(), "{name} of {gpu}, {instance:?}");
    let served = sample.map(|sample| sample.value);
    if !same(served, value.as_f64()) {
        return Err(format!(
            "{name}, GPU {gpu}, instance {instance:?}: {served:?} is served, {value} is read"
        ));
    }
    if let Some(sample) = sample {
        let model = if name.starts_with("DCGM_") { "modelName" } else { "model_name" };
        for (label, key) in [
            ("UUID", "uuid"),
            ("pci_bus_id", "pci_bus_id"),
            (model, "model"),
            ("DCGM_FI_DRIVER_VERSION", "driver"),
        ] {
            assert_eq!(sample.label(label), row[key].as_str(), "{name}: {label}");
        }
    }
    Ok(())
}

/// What the info series say of a board and its MIG devices.
fn check_facts(page: &Page, board: &Value) {
    let gpu = board["gpu"].to_string();
    let info = page.sample("nvml_device_info", &[("gpu", &gpu)]).unwrap();
    for (label, fact) in board["info"].as_object().unwrap() {
        assert_eq!(info.label(label), fact.as_str(), "GPU {gpu}: {label}");
    }
    let read: BTreeSet<Vec<&str>> = board["migs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mig| mig.as_array().unwrap().iter().map(|part| part.as_str().unwrap()).collect())
        .collect();
    let served: BTreeSet<Vec<&str>> = page
        .samples("nvml_mig_instance_info")
        .filter(|sample| sample.label("gpu") == Some(&gpu))
        .map(|sample| {
            let labels = ["GPU_I_ID", "compute_instance", "mig_uuid"];
            labels.map(|label| sample.label(label).unwrap()).to_vec()
        })
        .collect();
    assert_eq!(served, read, "GPU {gpu}");
}

fn check(scenario: &str) {
    let rows = readings(scenario);
    let page = Setup::simulate(scenario).frozen().ready().until_settled();
    let mut compared = BTreeSet::new();
    let mut different = Vec::new();
    for row in &rows {
        for values in [&row["values"], &row["own"]] {
            for (name, value) in values.as_object().into_iter().flatten() {
                different.extend(compare(&page, row, name, value).err());
                compared.insert(name.as_str());
            }
        }
        for (link, state) in row["links"].as_object().into_iter().flatten() {
            let labels = [("gpu", &*row["gpu"].to_string()), ("nvlink", link)];
            let served = page.value("nvml_nvlink_up", &labels);
            if served != state.as_f64() {
                different.push(format!("{labels:?}: {served:?} is served, {state} is read"));
            }
            compared.insert("nvml_nvlink_up");
        }
    }
    assert!(different.is_empty(), "{scenario}: {different:#?}");
    let boards = rows.iter().filter(|row| row.get("own").is_some());
    boards.for_each(|board| check_facts(&page, board));
    for sample in page.readings() {
        let name = sample.name.as_str();
        assert!(
            compared.contains(name) || NOT_COMPARED.iter().any(|(known, _)| *known == name),
            "{scenario}: {name} is compared with nothing"
        );
    }
    let served = page.readings().filter(|sample| compared.contains(sample.name.as_str())).count();
    assert_eq!(served > 40, scenario != "no-gpus", "{scenario}: {served} values compared");
}

macro_rules! scenarios {
    ($($name:ident: $scenario:literal;)*) => {
        $(#[test] fn $name() { check($scenario); })*
    };
}

scenarios! {
    a100_mig_mixed: "a100-mig-mixed";
    dense_16x7: "dense-16x7";
    dgx_b200: "dgx-b200";
    dgx_h100: "dgx-h100";
    geforce_3090: "geforce-3090";
    gh200: "gh200";
    h200_mig_and_whole: "h200-mig-and-whole";
    no_gpus: "no-gpus";
    t4_l4_mixed: "t4-l4-mixed";
    v100_old_driver: "v100-old-driver";
}

#[test]
fn nvitop_shows_the_gpus_of_every_scenario() {
    for scenario in SCENARIOS {
        let gpus = readings(scenario).iter().filter(|row| row.get("own").is_some()).count();
        let output =
            Python::new("nvitop").simulate(scenario).args(["--once", "--no-unicode"]).run("");
        let (text, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if gpus == 0 {
            assert!(!text.contains("MiB"), "{scenario}: {text}");
            continue;
        }
        assert!(output.status.success(), "{scenario}: {text}{errors}");
        assert!(errors.is_empty(), "{scenario}: {errors}");
        for gpu in 0..gpus {
            let shown = text.lines().any(|line| {
                line.trim_start_matches(['|', ' ']).split(' ').next() == Some(&gpu.to_string())
            });
            assert!(shown, "{scenario}: GPU {gpu} is not in\n{text}");
        }
    }
}
