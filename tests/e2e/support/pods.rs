//! What the tests of pods have in common.

use std::path::PathBuf;

use super::kubelet::socket;
use super::{Exporter, Page, Setup};

pub(crate) const TEMP: &str = "DCGM_FI_DEV_GPU_TEMP";
pub(crate) const GPU: &str = "nvidia.com/gpu";

/// Three rows, beside a kubelet whose socket is not there yet.
pub(crate) fn beside_a_kubelet(scenario: &str) -> (Setup, PathBuf) {
    let setup = Setup::simulate(scenario).counters(
        "DCGM_FI_DEV_GPU_TEMP, gauge, Temperature.\nDCGM_FI_DEV_FB_USED, gauge, Memory.\n\
         DCGM_FI_DEV_GPU_UTIL, gauge, Utilisation.",
    );
    let path = socket(&setup.directory());
    let flag = format!("--pod-resources-kubelet-socket={}", path.display());
    (setup.args(["--kubernetes", &flag]), path)
}

/// UUIDs by index.
pub(crate) fn uuids(page: &Page) -> Vec<String> {
    let mut gpus: Vec<_> = page
        .samples("nvml_device_info")
        .map(|gpu| (gpu.label("gpu").unwrap().parse::<u32>().unwrap(), gpu.label("UUID").unwrap()))
        .collect();
    gpus.sort_unstable();
    gpus.into_iter().map(|(_, uuid)| uuid.to_owned()).collect()
}

/// Pods on the temperature of a GPU, or of an instance of it.
pub(crate) fn pods_of(page: &Page, gpu: &str, instance: Option<&str>) -> Vec<String> {
    let mut pods: Vec<String> = page
        .samples(TEMP)
        .filter(|sample| sample.label("gpu") == Some(gpu) && sample.label("GPU_I_ID") == instance)
        .map(|sample| sample.label("pod").unwrap_or("no label").to_owned())
        .collect();
    pods.sort();
    pods
}

pub(crate) fn until_pods(exporter: &Exporter, gpu: &str, expected: &[&str]) -> Page {
    exporter
        .until(&format!("{expected:?} on GPU {gpu}"), |page| pods_of(page, gpu, None) == expected)
}
