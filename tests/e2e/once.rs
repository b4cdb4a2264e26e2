//! `nvml-exporter once`: the page on standard output, then the end.

use crate::support::kubelet::{Kubelet, pod};
use crate::support::pods::{GPU, TEMP, beside_a_kubelet, uuids};
use crate::support::{Page, Setup};

/// Without an address and an interval, which are of no use here.
fn once(setup: Setup) -> (i32, Page, String) {
    let (code, out, log) = setup.args(["once"]).run();
    (code, Page::parse(&out).unwrap_or_else(|error| panic!("{error}\n{out}\n{log}")), log)
}

#[test]
fn the_page_is_what_a_scrape_gets() {
    let (code, page, log) = once(Setup::simulate("dgx-h100").frozen());
    assert_eq!(code, 0, "{log}");
    let exporter = Setup::simulate("dgx-h100").frozen().ready();
    let served = exporter.until_settled();
    let families = |page: &Page| -> Vec<String> {
        let own = page.families.iter().filter(|family| !family.name.starts_with("process_"));
        own.map(|family| family.name.clone()).filter(|name| !name.contains("scrapes")).collect()
    };
    assert_eq!(families(&page), families(&served));
    let name = "DCGM_FI_DEV_GPU_TEMP";
    let values = |page: &Page| page.samples(name).map(|s| s.digits.clone()).collect::<Vec<_>>();
    assert_eq!(values(&page), values(&served));
}

#[test]
fn rates_are_there_and_so_are_labels_and_the_selection() {
    let csv = "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL, gauge, Rate.\n";
    let (code, page, _) =
        once(Setup::simulate("dgx-h100").counters(csv).args(["--host-label=Hostname"]));
    assert_eq!(code, 0);
    assert_eq!(page.samples("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL").count(), 8);
    assert!(page.samples("DCGM_FI_DEV_GPU_TEMP").next().is_none());
    let sample = page.samples("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL").next().unwrap();
    assert_eq!(sample.label("Hostname"), Some("node-a"));
}

#[test]
fn pods_are_told() {
    let (setup, path) = beside_a_kubelet("t4-l4-mixed");
    let kubelet = Kubelet::start(&path);
    let uuid = uuids(&Setup::simulate("t4-l4-mixed").ready().until_ready())[0].clone();
    kubelet.lists(vec![pod("job-0", &[(GPU, &uuid)])]);
    let (code, page, log) = once(setup);
    assert_eq!(code, 0, "{log}");
    assert!(page.sample(TEMP, &[("gpu", "0"), ("pod", "job-0")]).is_some());
    drop(kubelet);
    let (setup, path) = beside_a_kubelet("t4-l4-mixed");
    let (code, page, log) = once(setup);
    assert_eq!(code, 0, "{log}");
    assert!(page.sample(TEMP, &[("gpu", "0")]).is_some());
    assert!(log.contains(&path.display().to_string()), "{log}");
}

#[test]
fn a_node_without_anything_says_so_and_a_mistake_is_one() {
    let (code, page, _) = once(Setup::simulate("no-gpus"));
    assert_eq!(code, 2);
    assert!(page.sample("nvml_up", &[]).is_some());
    let setup = Setup::new().args(["--nvml-library=/nowhere/libnvidia-ml.so.1"]);
    let (code, page, _) = once(setup);
    assert_eq!(code, 2);
    assert!(page.is("nvml_down", &[("reason", "library_not_found")], 1.0));
    let (code, out, log) = Setup::simulate("dgx-h100").args(["once", "-f", "/nowhere.csv"]).run();
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(log.contains("/nowhere.csv"), "{log}");
}
