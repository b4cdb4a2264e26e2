//! GPU performance monitoring: what lies between two samples.

use nvml_wrapper::Nvml;
use nvml_wrapper_sys::bindings as sys;

use crate::common::{Simulator, refusal};

#[test]
fn monitoring_gives_the_mean_between_two_samples() {
    let simulator = Simulator::play("h200-mig-and-whole");
    simulator.control("gpu 0 set load 0.5");
    simulator.control("gpu 2 gi 2 set load 0.25");
    let nvml = simulator.nvml();
    let device = nvml.device_by_index(0).unwrap();
    let first = device.gpm_sample().unwrap();
    simulator.control("clock advance 10s");
    simulator.control("gpu 0 set load 1");
    simulator.control("clock advance 10s");
    let second = device.gpm_sample().unwrap();
    let read = |first, second| {
        use nvml_wrapper::enums::gpm::GpmMetricId::{GraphicsUtil, PcieTxPerSec};
        let wanted = [GraphicsUtil, PcieTxPerSec];
        nvml_wrapper::gpm::gpm_metrics_get(&nvml, first, second, &wanted).unwrap()
    };
    let values = read(&first, &second);
    let activity = values[0].as_ref().unwrap().value;
    assert!((activity - 0.75 * 99.0).abs() < 1e-6, "{activity}");
    assert!(values[1].as_ref().unwrap().value > 0.0);

    let board = nvml.device_by_index(2).unwrap();
    let first = board.gpm_mig_sample(2).unwrap();
    simulator.control("clock advance 1s");
    let second = board.gpm_mig_sample(2).unwrap();
    let values = read(&first, &second);
    let activity = values[0].as_ref().unwrap().value;
    assert!((activity - 0.25 * 99.0).abs() < 1e-6, "{activity}");
    assert_eq!(refusal(values[1].as_ref()), "NotSupported", "an instance has no PCIe link");
    simulator.control("gpu 2 gpm 1 set nan");
    simulator.control("gpu 2 gpm 20 error 999");
    let values = read(&first, &second);
    assert!(values[0].as_ref().unwrap().value.is_nan());
    assert_eq!(refusal(values[1].as_ref()), "Unknown");
    assert!(board.gpm_mig_sample(13).is_err());
}

#[test]
fn monitoring_refreshes_its_counters_every_100_ms() {
    use nvml_wrapper::enums::gpm::GpmMetricId::{GraphicsUtil, PcieTxPerSec};
    let simulator = Simulator::play("h200-mig-and-whole");
    simulator.control("clock freeze");
    simulator.control("gpu 0 set load 1");
    let nvml = simulator.nvml();
    let device = nvml.device_by_index(0).unwrap();
    let read = |gap: u64| {
        let first = device.gpm_sample().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(gap));
        let second = device.gpm_sample().unwrap();
        let wanted = [GraphicsUtil, PcieTxPerSec];
        let values = nvml_wrapper::gpm::gpm_metrics_get(&nvml, &first, &second, &wanted).unwrap();
        (values[0].as_ref().unwrap().value, values[1].as_ref().unwrap().value)
    };
    let (share, rate) = read(110);
    assert!((share - 99.0).abs() < 1e-6 && rate > 0.0, "{share} {rate}");
    // A machine that is very busy may take longer between the two.
    let nothing = (0..50).map(|_| read(0)).find(|(share, _)| share.is_nan());
    assert!(nothing.is_some_and(|(_, rate)| rate.abs() < 1e-9), "{nothing:?}");
}

/// What counts grows with the load, and is there since driver 590.
#[test]
fn monitoring_counts_too() {
    let simulator = Simulator::play("dgx-b200");
    simulator.control("clock freeze");
    let count = || {
        let nvml = simulator.nvml();
        let (first, second) = (gpm_sample(&nvml), gpm_sample(&nvml));
        gpm_metrics(&nvml, first, second, &[248, 249, 255])
    };
    assert!(count().iter().all(|(code, _)| *code == 3), "{:?}", count());
    simulator.control("driver load 590.44.01");
    simulator.control("gpu 0 set load 0.5");
    let before = count();
    simulator.control("clock advance 10s");
    let grown: Vec<f64> =
        count().iter().zip(before).map(|((_, after), (_, before))| after - before).collect();
    assert!((grown[1] / grown[0] - 0.5 * 0.91).abs() < 1e-6, "{grown:?}");
    assert!(grown[2] > 1e9, "{grown:?}");
}

/// A sample of GPU 0, which the end of the session frees.
fn gpm_sample(nvml: &Nvml) -> sys::nvmlGpmSample_t {
    let lib = nvml.lib();
    let mut sample = std::ptr::null_mut();
    // SAFETY: both functions get what their signatures ask for, from this session.
    unsafe {
        assert_eq!(lib.nvmlGpmSampleAlloc(&raw mut sample), 0);
        assert_eq!(lib.nvmlGpmSampleGet(nvml.device_by_index(0).unwrap().handle(), sample), 0);
    }
    sample
}

/// Code and value of each metric.
fn gpm_metrics(
    nvml: &Nvml,
    first: sys::nvmlGpmSample_t,
    second: sys::nvmlGpmSample_t,
    metrics: &[u32],
) -> Vec<(u32, f64)> {
    // SAFETY: integers, doubles and pointers, for all of which zeros are a value.
    let mut asked: sys::nvmlGpmMetricsGet_t = unsafe { std::mem::zeroed() };
    asked.version = 1;
    asked.numMetrics = u32::try_from(metrics.len()).unwrap();
    (asked.sample1, asked.sample2) = (first, second);
    for (slot, metric) in asked.metrics.iter_mut().zip(metrics) {
        slot.metricId = *metric;
    }
    // SAFETY: the struct of the call, with samples of this session.
    assert_eq!(unsafe { nvml.lib().nvmlGpmMetricsGet(&raw mut asked) }, 0);
    asked.metrics[..metrics.len()].iter().map(|metric| (metric.nvmlReturn, metric.value)).collect()
}
