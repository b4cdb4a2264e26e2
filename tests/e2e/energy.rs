//! A day of a node on which pods come and go: what is charged to them and what is charged to
//! nobody is what the boards used.

use crate::support::kubelet::{Kubelet, pod};
use crate::support::pods::{GPU, beside_a_kubelet, uuids};
use crate::support::{Exporter, Page};

const BOARD: &str = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION";
const PODS: &str = "nvml_pod_energy_joules_total";
const NOBODY: &str = "nvml_device_unattributed_energy_joules_total";
const HELD: &str = "nvml_device_pod_info";

/// Joules of a GPU by three words: the board's, the pods', nobody's.
fn joules(page: &Page, gpu: &str) -> [f64; 3] {
    let sum = |family: &str| -> f64 {
        let own = page.samples(family).filter(|sample| sample.label("gpu") == Some(gpu));
        own.map(|sample| sample.value).sum()
    };
    // On a GPU with instances the board's value stands on the row of each.
    let board = page.samples(BOARD).find(|sample| sample.label("gpu") == Some(gpu));
    [board.unwrap().value / 1e3, sum(PODS), sum(NOBODY)]
}

/// Lets time pass, and waits until all GPUs have been read again.
fn pass(exporter: &Exporter, time: &str) -> Page {
    exporter.control(&[&format!("clock advance {time}")]);
    exporter.until_passes(2)
}

#[test]
fn a_days_energy_of_pods_and_of_nobody_is_the_boards() {
    let (setup, path) = beside_a_kubelet("h200-mig-and-whole");
    let kubelet = Kubelet::start(&path);
    let exporter = setup
        .frozen()
        .counters(&format!("{BOARD}, counter, Energy.\nDCGM_FI_DEV_FB_USED, gauge, Memory."))
        .args(["--collect-interval=100", "--attribution=both"])
        .ready();
    let start = exporter.until_settled();
    let all = uuids(&start);
    let instances: Vec<String> = start
        .samples("nvml_mig_instance_info")
        .filter(|one| one.label("gpu") == Some("2"))
        .map(|one| one.label("mig_uuid").unwrap().to_owned())
        .collect();
    assert_eq!(instances.len(), 4);
    let before = ["0", "1", "2", "3"].map(|gpu| joules(&start, gpu));
    let mut page = start;
    for hour in 0..24 {
        // A GPU of one pod for some hours, one shared by two of three, and instances in turn.
        let mut pods = vec![pod("shared-a", &[(GPU, &format!("{}::0", all[1]))])];
        if hour % 5 < 3 {
            pods.push(pod(&format!("job-{}", hour / 5), &[(GPU, &all[0])]));
        }
        if hour % 3 > 0 {
            pods.push(pod("shared-b", &[(GPU, &format!("{}::1", all[1]))]));
        }
        for (at, instance) in instances.iter().enumerate().filter(|(at, _)| (hour + at) % 4 < 2) {
            pods.push(pod(&format!("mig-{at}"), &[("nvidia.com/mig-1g.18gb", instance)]));
        }
        let names: Vec<String> = pods.iter().map(|pod| pod.name.clone()).collect();
        kubelet.lists(pods);
        exporter.until("the hour's pods", |page| {
            let held: Vec<&str> = page.samples(HELD).filter_map(|one| one.label("pod")).collect();
            held.len() == names.len() && names.iter().all(|name| held.contains(&name.as_str()))
        });
        for _ in 0..4 {
            page = pass(&exporter, "15m");
        }
    }
    for (gpu, before) in ["0", "1", "2", "3"].iter().zip(before) {
        let after = joules(&page, gpu);
        let [board, pods, nobody] = [0, 1, 2].map(|at| after[at] - before[at]);
        // Some kilowatt-hours.
        assert!(board > 5e6, "GPU {gpu}: {board} J");
        let off = (pods + nobody - board).abs() / board;
        assert!(off < 0.001, "GPU {gpu}: {pods} J and {nobody} J, not {board} J");
        assert_eq!(pods > 0.0, *gpu != "3", "GPU {gpu}: {pods} J of pods");
        assert!(nobody > 0.0, "GPU {gpu}: {nobody} J of nobody");
    }
}
