//! `DCGM_EXP_GPU_HEALTH_STATUS` and `DCGM_EXP_P2P_STATUS`, as dcgm-exporter shows DCGM's.

use crate::support::{Exporter, Page, Setup};
use crate::watched::is_down;

const HEALTH: &str = "DCGM_EXP_GPU_HEALTH_STATUS";
const P2P: &str = "DCGM_EXP_P2P_STATUS";

const WATCHES: [&str; 11] =
    ["PCIE", "NVLINK", "PMU", "MCU", "MEM", "SM", "INFOROM", "THERMAL", "POWER", "DRIVER", "ALL"];

fn exporter(scenario: &str) -> Exporter {
    let csv = format!("{HEALTH}, gauge, Health.\nDCGM_FI_DEV_GPU_TEMP, gauge, Temperature.\n");
    let calm = ["gpu * set clock_reasons 0", "gpu * set pcie_replay 0"];
    let exporter = Setup::simulate(scenario).counters(&csv).control(&calm).ready();
    exporter.until("health", |page| page.samples(HEALTH).count() > 0);
    exporter
}

fn until(exporter: &Exporter, watch: &str, code: &str, value: f64) -> Page {
    exporter.until(code, |page| {
        let labels = [("gpu", "2"), ("health_watch", watch), ("health_error_code", code)];
        page.is(HEALTH, &labels, value)
    })
}

/// What is said of GPU 2 and of all others.
fn others_are_well(page: &Page) {
    for sample in page.samples(HEALTH).filter(|sample| sample.label("gpu") != Some("2")) {
        assert!(sample.has(&[("health_error_code", "DCGM_FR_OK")]), "{sample:?}");
    }
}

#[test]
fn case_55_eleven_parts_are_well() {
    let page = exporter("dgx-h100").until_settled();
    for gpu in 0..8 {
        let gpu = gpu.to_string();
        let of_gpu = page.samples(HEALTH).filter(|sample| sample.label("gpu") == Some(&gpu));
        let of_gpu: Vec<_> = of_gpu.collect();
        let watches: Vec<_> =
            of_gpu.iter().map(|sample| sample.label("health_watch").unwrap()).collect();
        assert_eq!(watches, WATCHES);
        for sample in of_gpu {
            assert_eq!(sample.label("health_error_code"), Some("DCGM_FR_OK"), "{sample:?}");
            assert_eq!(sample.digits, "0");
        }
    }
    // What is read for the judgement alone is not served.
    assert_eq!(page.samples("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL").count(), 0);
}

#[test]
fn what_is_wrong_has_its_part_and_reason_and_passes() {
    let exporter = exporter("dgx-h100");
    for (set, unset, watch, code, value) in [
        ("ecc_dbe_volatile 2", "0", "MEM", "DCGM_FR_VOLATILE_DBE_DETECTED", 20.0),
        ("remapped_failure 1", "0", "MEM", "DCGM_FR_ROW_REMAP_FAILURE", 20.0),
        ("remapped_pending 1", "0", "MEM", "DCGM_FR_PENDING_ROW_REMAP", 10.0),
        ("pcie_width 8", "16", "PCIE", "DCGM_FR_PCIE_WIDTH", 10.0),
        ("clock_reasons 0x48", "0", "THERMAL", "DCGM_FR_CLOCKS_EVENT_THERMAL", 10.0),
        ("clock_reasons 0x88", "0", "POWER", "DCGM_FR_CLOCKS_EVENT_POWER", 10.0),
        ("recovery_action 1", "0", "DRIVER", "DCGM_FR_GPU_RECOVERY_RESET", 20.0),
    ] {
        exporter.control(&[&format!("gpu 2 set {set}")]);
        until(&exporter, watch, code, value);
        let page = until(&exporter, "ALL", code, value);
        others_are_well(&page);
        let key = set.split(' ').next().unwrap();
        exporter.control(&[&format!("gpu 2 set {key} {unset}")]);
        until(&exporter, "ALL", "DCGM_FR_OK", 0.0);
    }
    exporter.control(&["gpu 2 link 5 set state down"]);
    others_are_well(&until(&exporter, "NVLINK", "DCGM_FR_NVLINK_DOWN", 20.0));
    exporter.control(&["gpu 2 link 5 set state up"]);
    until(&exporter, "ALL", "DCGM_FR_OK", 0.0);
    exporter.control(&["gpu 2 add pcie_replay 100"]);
    others_are_well(&until(&exporter, "PCIE", "DCGM_FR_PCI_REPLAY_RATE", 10.0));
    exporter.control(&["gpu 2 xid 95"]);
    others_are_well(&until(&exporter, "MEM", "DCGM_FR_UNCONTAINED_ERROR", 20.0));
}

#[test]
fn case_57_a_gpu_that_is_gone_fails_and_nothing_crashes() {
    let exporter = exporter("dgx-h100");
    exporter.control(&["gpu 2 lost"]);
    exporter.until("GPU 2 is lost", |page| {
        page.is(HEALTH, &[("gpu", "2"), ("health_watch", "ALL")], 20.0)
    });
    let page = until(&exporter, "DRIVER", "DCGM_FR_FALLEN_OFF_BUS", 20.0);
    assert!(page.sample(HEALTH, &[("gpu", "2"), ("health_watch", "MEM")]).is_none());
    others_are_well(&page);
    exporter.control(&["gpu 2 restore"]);
    until(&exporter, "DRIVER", "DCGM_FR_OK", 0.0);
    let csv = format!("{HEALTH}, gauge, Health.\n");
    let exporter = Setup::simulate("dgx-h100").counters(&csv).args(["-d", "g:0"]).ready();
    exporter.control(&["gpu 2 lost"]);
    let page = exporter.until("GPU 2 is lost", |page| is_down(page, "2", "lost"));
    assert!(page.samples(HEALTH).all(|sample| sample.label("gpu") == Some("0")));
}

/// Parts of which this board says nothing are not said to be well.
#[test]
fn what_a_board_does_not_show_is_not_judged() {
    let page = exporter("t4-l4-mixed").until_settled();
    assert!(page.sample(HEALTH, &[("gpu", "0"), ("health_watch", "ALL")]).is_some());
    assert!(page.sample(HEALTH, &[("gpu", "0"), ("health_watch", "NVLINK")]).is_none());
}

#[test]
fn case_54_each_pair_of_gpus_and_no_diagonal() {
    let csv = format!("{P2P}, gauge, Peers.\n");
    let exporter = Setup::simulate("t4-l4-mixed").counters(&csv).ready();
    let page = exporter.until("peers", |page| page.samples(P2P).count() > 0);
    let gpus = page.samples("nvml_exporter_device_up").count();
    assert_eq!(page.samples(P2P).count(), gpus * (gpus - 1));
    for sample in page.samples(P2P) {
        assert_ne!(sample.label("gpu"), sample.label("peer_gpu"));
        assert_eq!(
            (sample.label("link_status"), sample.digits.as_str()),
            (Some("NotSupported"), "5")
        );
    }
    let exporter = Setup::simulate("dgx-h100").counters(&csv).ready();
    let page = exporter.until("peers", |page| page.samples(P2P).count() == 56);
    assert!(page.samples(P2P).all(|s| s.has(&[("link_status", "OK")]) && s.digits == "0"));
}
