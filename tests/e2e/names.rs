//! `--metric-names`: the generations of DCGM's names, with their units.

use crate::support::{Page, Setup};

const COUNTERS: &str = "\
DCGM_FI_DRIVER_VERSION, label, Driver.
DCGM_FI_DEV_SM_CLOCK, gauge, MHz.
DCGM_FI_DEV_GPU_UTIL, gauge, Percent.
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, counter, mJ.
DCGM_FI_DEV_FB_USED, gauge, MiB.
DCGM_FI_DEV_FAN_SPEED, gauge, Percent.
DCGM_FI_DEV_PCIE_REPLAY_COUNTER, counter, Count.
";

/// Legacy name, DCGM 4.7's, and what the value is multiplied by.
const RENAMED: &[(&str, &str, f64)] = &[
    ("DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_SM_CLOCK_HERTZ", 1e6),
    ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO", 0.01),
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 1e-3),
    ("DCGM_FI_DEV_FAN_SPEED", "DCGM_FI_DEV_FAN_SPEED_RATIO", 0.01),
];

fn page(names: &str) -> Page {
    let setup = Setup::simulate("geforce-3090").frozen().counters(COUNTERS);
    setup.args([format!("--metric-names={names}")]).ready().until_settled()
}

/// What the page has of both names.
fn both<'a>(page: &'a Page, legacy: &'a str, newer: &'a str) -> (Option<f64>, Option<f64>) {
    (page.of_gpu(legacy, "0"), page.of_gpu(newer, "0"))
}

#[test]
fn each_generation_has_its_names_and_units() {
    let pages = [page("legacy"), page("dcgm47"), page("both")];
    for (legacy, newer, factor) in RENAMED {
        let [old, new, all] = pages.each_ref().map(|page| both(page, legacy, newer));
        let (old, none) = (old.0.unwrap(), old.1);
        assert_eq!((none, new.0), (None, None), "{legacy}");
        let new = new.1.unwrap();
        assert!((new - old * factor).abs() <= new.abs() * 1e-9, "{legacy}: {old}, {newer}: {new}");
        assert_eq!(all, (Some(old), Some(new)), "{legacy}");
    }
}

/// Bytes are not cut to whole MiB.
#[test]
fn memory_in_bytes_keeps_what_mebibytes_cut_off() {
    let page = page("both");
    let (mebibytes, bytes) = both(&page, "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_USED_BYTES");
    let cut_off = bytes.unwrap() / 1_048_576.0 - mebibytes.unwrap();
    assert!((0.0..1.0).contains(&cut_off), "{cut_off} MiB");
}

#[test]
fn the_drivers_label_has_the_name_of_its_generation() {
    for (names, labels) in [
        ("legacy", vec!["DCGM_FI_DRIVER_VERSION"]),
        ("dcgm47", vec!["DCGM_FI_SYSTEM_DRIVER_VERSION"]),
        ("both", vec!["DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION"]),
    ] {
        let page = page(names);
        let replays = page.samples("DCGM_FI_DEV_PCIE_REPLAY_COUNTER");
        let sample = replays.chain(page.samples("DCGM_FI_DEV_PCIE_REPLAY_TOTAL")).next().unwrap();
        let found: Vec<_> =
            sample.label_names().into_iter().filter(|name| name.contains("DRIVER")).collect();
        assert_eq!(found, labels, "{names}");
    }
}
