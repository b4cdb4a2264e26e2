//! Who uses a device, on the page: pods, sharers, claims, jobs.

use std::collections::BTreeMap;
use std::sync::Arc;

use expect_test::{Expect, expect};
use nvml_exporter::attribution::{
    Allocations, Attribution, Claim, Container, DeviceId, Holding, Jobs, Target,
};
use nvml_exporter::exposition::{AttributionScheme, Encoding, Renderer, Settings, Show};
use nvml_exporter::sampler::snapshot::{GpuReading, Snapshot};

use crate::support::{
    FB_USED, POWER, TEMP, identity, instance, int, now, reading, selection, settings, snapshot,
    telemetry, up,
};

pub(crate) fn gpu(index: u32) -> Target {
    Target::Gpu(format!("GPU-{index:08x}"))
}

pub(crate) fn holding(
    pod: &str,
    container: &str,
    target: Target,
    replica: Option<&str>,
) -> Holding {
    Holding {
        container: Arc::new(Container {
            namespace: "ml".to_owned(),
            pod: pod.to_owned(),
            name: container.to_owned(),
        }),
        resource: "nvidia.com/gpu".into(),
        id: DeviceId { target, replica: replica.map(str::to_owned) },
        claim: None,
        since: 1,
    }
}

pub(crate) fn held(holdings: Vec<Holding>) -> Attribution {
    let allocatable = Some(BTreeMap::from([("nvidia.com/gpu".into(), 4)]));
    let allocations = Allocations { holdings, allocatable, ..Allocations::default() };
    Attribution { allocations: Some(Arc::new(allocations)), ..Attribution::default() }
}

pub(crate) fn pods() -> AttributionScheme {
    AttributionScheme { pods: true, ..AttributionScheme::default() }
}

/// Two whole GPUs and one with two instances.
fn node() -> Snapshot {
    let rows = selection(&[&TEMP, &FB_USED, &POWER], &[]);
    let mig = GpuReading {
        whole: false,
        instances: vec![instance(1, vec![int(1, 10)]), instance(2, vec![int(1, 20)])],
        ..reading(vec![int(0, 43), int(2, 300)])
    };
    snapshot(
        rows,
        vec![
            up(identity(0), reading(vec![int(0, 41), int(1, 5), int(2, 100)])),
            up(identity(1), reading(vec![int(0, 42), int(1, 6), int(2, 200)])),
            up(identity(2), mig),
        ],
    )
}

pub(crate) fn text(
    snapshot: &Snapshot,
    attribution: &Attribution,
    scheme: AttributionScheme,
) -> String {
    let settings = Settings { attribution: scheme, ..settings() };
    text_with(snapshot, attribution, &settings)
}

fn text_with(snapshot: &Snapshot, attribution: &Attribution, settings: &Settings) -> String {
    let page = Renderer::default().render((snapshot, attribution), settings, &telemetry(), now());
    String::from_utf8(page.text.encoded(Encoding::Identity).to_vec()).unwrap()
}

/// Device samples and what is said of holders, without what all of them have.
fn lines(text: &str) -> String {
    let kept = |line: &&str| {
        line.starts_with("DCGM_")
            || line.starts_with("nvml_power")
            || line.starts_with("nvml_device_pod_info")
            || line.starts_with("nvml_device_allocated")
            || line.starts_with("nvml_node")
            || line.starts_with("nvml_exporter_pod_")
            || line.starts_with("nvml_exporter_process_split")
    };
    let short = |line: &str| {
        line.replace(",device=\"nvidia0\"", "")
            .replace(",device=\"nvidia1\"", "")
            .replace(",device=\"nvidia2\"", "")
            .replace(",modelName=\"NVIDIA H200\"", "")
            .replace(",model_name=\"NVIDIA H200\"", "")
            .replace(",Hostname=\"node-a\"", "")
            .replace("GPU-0000000", "GPU-")
    };
    let mut out = String::new();
    for line in text.lines().filter(kept) {
        let line = short(line);
        let (name, rest) = line.split_once('{').unwrap_or((&line, ""));
        let labels: Vec<&str> =
            rest.split(',').filter(|label| !label.starts_with("pci_bus_id")).collect();
        out += &format!("{name}{{{}\n", labels.join(",")).replace("{\n", "\n");
    }
    out
}

pub(crate) fn shows(
    snapshot: &Snapshot,
    attribution: &Attribution,
    scheme: AttributionScheme,
    want: &Expect,
) {
    want.assert_eq(&lines(&text(snapshot, attribution, scheme)));
}

#[test]
fn devices_carry_their_pods_and_idle_ones_carry_them_empty() {
    let attribution = held(vec![
        holding("job-0", "main", gpu(0), None),
        holding("nb-0", "lab", Target::Mig("MIG-2".to_owned()), None),
    ]);
    shows(
        &node(),
        &attribution,
        pods(),
        &expect![[r#"
        DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-0",container="main",namespace="ml",pod="job-0"} 41
        DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-1",container="",namespace="",pod=""} 42
        DCGM_FI_DEV_GPU_TEMP{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="1",container="",namespace="",pod=""} 43
        DCGM_FI_DEV_GPU_TEMP{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="2",container="lab",namespace="ml",pod="nb-0"} 43
        DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-0",container="main",namespace="ml",pod="job-0"} 5
        DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-1",container="",namespace="",pod=""} 6
        DCGM_FI_DEV_FB_USED{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="1",container="",namespace="",pod=""} 10
        DCGM_FI_DEV_FB_USED{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="2",container="lab",namespace="ml",pod="nb-0"} 20
        nvml_power_watts{gpu="0",UUID="GPU-0",container="main",namespace="ml",pod="job-0"} 100
        nvml_power_watts{gpu="1",UUID="GPU-1",container="",namespace="",pod=""} 200
        nvml_power_watts{gpu="2",UUID="GPU-2",container="",namespace="",pod=""} 300
        nvml_device_allocated{gpu="0",UUID="GPU-0"} 1
        nvml_device_allocated{gpu="1",UUID="GPU-1"} 0
        nvml_device_allocated{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="1"} 0
        nvml_device_allocated{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="2"} 1
        nvml_node_allocatable_devices{resource="nvidia.com/gpu"} 4
        nvml_node_allocated_devices{resource="nvidia.com/gpu"} 2
        nvml_node_free_devices{resource="nvidia.com/gpu"} 2
        nvml_exporter_pod_resources_ids 2
        nvml_exporter_pod_resources_ids_matched 2
        nvml_exporter_pod_resources_ids_ambiguous 0
    "#]],
    );
}

#[test]
fn case_67_without_an_answer_of_the_kubelet_pods_are_empty_and_nothing_is_counted() {
    let text = text(&node(), &Attribution::default(), pods());
    assert!(text.contains(r#"container="",namespace="",pod=""} 41"#), "{text}");
    assert!(!text.contains("nvml_device_pod_info") && !text.contains("nvml_node_"), "{text}");
    assert!(!text.contains("nvml_device_allocated"), "{text}");
}

#[test]
fn a_shared_device_shows_what_its_pods_have_in_common_and_names_them_all() {
    let attribution = held(vec![
        holding("a", "main", gpu(0), Some("0")),
        holding("b", "main", gpu(0), Some("1")),
        holding("c", "main", gpu(1), Some("0")),
        holding("c", "main", gpu(1), Some("1")),
    ]);
    shows(
        &node(),
        &attribution,
        pods(),
        &expect![[r#"
            DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-0",container="",namespace="ml",pod=""} 41
            DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-1",container="main",namespace="ml",pod="c"} 42
            DCGM_FI_DEV_GPU_TEMP{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="1",container="",namespace="",pod=""} 43
            DCGM_FI_DEV_GPU_TEMP{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="2",container="",namespace="",pod=""} 43
            DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-0",container="",namespace="ml",pod=""} 5
            DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-1",container="main",namespace="ml",pod="c"} 6
            DCGM_FI_DEV_FB_USED{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="1",container="",namespace="",pod=""} 10
            DCGM_FI_DEV_FB_USED{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="2",container="",namespace="",pod=""} 20
            nvml_power_watts{gpu="0",UUID="GPU-0",container="",namespace="ml",pod=""} 100
            nvml_power_watts{gpu="1",UUID="GPU-1",container="main",namespace="ml",pod="c"} 200
            nvml_power_watts{gpu="2",UUID="GPU-2",container="",namespace="",pod=""} 300
            nvml_device_pod_info{gpu="0",UUID="GPU-0",container="main",namespace="ml",pod="a",resource="nvidia.com/gpu",vgpu="0"} 1
            nvml_device_pod_info{gpu="0",UUID="GPU-0",container="main",namespace="ml",pod="b",resource="nvidia.com/gpu",vgpu="1"} 1
            nvml_device_allocated{gpu="0",UUID="GPU-0"} 1
            nvml_device_allocated{gpu="1",UUID="GPU-1"} 1
            nvml_device_allocated{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="1"} 0
            nvml_device_allocated{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="2"} 0
            nvml_node_allocatable_devices{resource="nvidia.com/gpu"} 4
            nvml_node_allocated_devices{resource="nvidia.com/gpu"} 4
            nvml_node_free_devices{resource="nvidia.com/gpu"} 0
            nvml_exporter_pod_resources_ids 4
            nvml_exporter_pod_resources_ids_matched 4
            nvml_exporter_pod_resources_ids_ambiguous 0
        "#]],
    );
}

#[test]
fn info_leaves_device_series_alone_and_both_gives_both() {
    let attribution = held(vec![holding("a", "main", gpu(0), None)]);
    let info = text(&node(), &attribution, AttributionScheme { show: Show::Info, ..pods() });
    assert!(info.contains(r#"container="",namespace="",pod=""} 41"#), "{info}");
    let series = r#"resource="nvidia.com/gpu"} 1"#;
    assert!(info.contains(series), "{info}");
    let both = text(&node(), &attribution, AttributionScheme { show: Show::Both, ..pods() });
    assert!(both.contains(r#"container="main",namespace="ml",pod="a"} 41"#), "{both}");
    assert!(both.contains(series), "{both}");
}

#[test]
fn case_80_claims_have_their_labels_and_a_shared_one_a_series_for_each() {
    let claim = |pod: &str, device: &str, target| Holding {
        resource: "gpu.nvidia.com".into(),
        claim: Some(Arc::new(Claim {
            name: "c1".to_owned(),
            namespace: "ml".to_owned(),
            driver: "gpu.nvidia.com".to_owned(),
            pool: "node-a".to_owned(),
            device: device.to_owned(),
            share: String::new(),
        })),
        ..holding(pod, "main", target, None)
    };
    let mig = Target::MinorInstance { minor: 2, gpu_instance: 2 };
    let attribution = held(vec![
        claim("a", "gpu-0", Target::Minor(0)),
        claim("b", "gpu-0", Target::Minor(0)),
        claim("m", "gpu-2-mig-1g18gb-19-1", mig),
    ]);
    shows(
        &node(),
        &attribution,
        AttributionScheme { dra: true, ..pods() },
        &expect![[r#"
            DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-0",container="main",dra_claim_name="c1",dra_claim_namespace="ml",dra_device_name="gpu-0",dra_driver_name="gpu.nvidia.com",dra_pool_name="node-a",namespace="ml",pod="a"} 41
            DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-0",container="main",dra_claim_name="c1",dra_claim_namespace="ml",dra_device_name="gpu-0",dra_driver_name="gpu.nvidia.com",dra_pool_name="node-a",namespace="ml",pod="b"} 41
            DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-1",container="",namespace="",pod=""} 42
            DCGM_FI_DEV_GPU_TEMP{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="1",container="",namespace="",pod=""} 43
            DCGM_FI_DEV_GPU_TEMP{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="2",container="main",dra_claim_name="c1",dra_claim_namespace="ml",dra_device_name="gpu-2-mig-1g18gb-19-1",dra_driver_name="gpu.nvidia.com",dra_mig_device_uuid="MIG-2",dra_mig_profile="1g.18gb",dra_pool_name="node-a",namespace="ml",pod="m"} 43
            DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-0",container="main",dra_claim_name="c1",dra_claim_namespace="ml",dra_device_name="gpu-0",dra_driver_name="gpu.nvidia.com",dra_pool_name="node-a",namespace="ml",pod="a"} 5
            DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-0",container="main",dra_claim_name="c1",dra_claim_namespace="ml",dra_device_name="gpu-0",dra_driver_name="gpu.nvidia.com",dra_pool_name="node-a",namespace="ml",pod="b"} 5
            DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-1",container="",namespace="",pod=""} 6
            DCGM_FI_DEV_FB_USED{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="1",container="",namespace="",pod=""} 10
            DCGM_FI_DEV_FB_USED{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="2",container="main",dra_claim_name="c1",dra_claim_namespace="ml",dra_device_name="gpu-2-mig-1g18gb-19-1",dra_driver_name="gpu.nvidia.com",dra_mig_device_uuid="MIG-2",dra_mig_profile="1g.18gb",dra_pool_name="node-a",namespace="ml",pod="m"} 20
            nvml_power_watts{gpu="0",UUID="GPU-0",container="",dra_claim_name="c1",dra_claim_namespace="ml",dra_device_name="gpu-0",dra_driver_name="gpu.nvidia.com",dra_pool_name="node-a",namespace="ml",pod=""} 100
            nvml_power_watts{gpu="1",UUID="GPU-1",container="",namespace="",pod=""} 200
            nvml_power_watts{gpu="2",UUID="GPU-2",container="",namespace="",pod=""} 300
            nvml_device_allocated{gpu="0",UUID="GPU-0"} 1
            nvml_device_allocated{gpu="1",UUID="GPU-1"} 0
            nvml_device_allocated{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="1"} 0
            nvml_device_allocated{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="2"} 1
            nvml_node_allocatable_devices{resource="nvidia.com/gpu"} 4
            nvml_node_allocated_devices{resource="gpu.nvidia.com"} 2
            nvml_node_allocated_devices{resource="nvidia.com/gpu"} 0
            nvml_node_free_devices{resource="nvidia.com/gpu"} 4
            nvml_exporter_pod_resources_ids 3
            nvml_exporter_pod_resources_ids_matched 3
            nvml_exporter_pod_resources_ids_ambiguous 0
        "#]],
    );
    let text = text(&node(), &attribution, pods());
    assert!(text.contains(r#"container="",namespace="ml",pod=""} 41"#), "{text}");
    assert!(text.contains(r#"namespace="ml",pod="m"} 20"#), "{text}");
}

#[test]
fn case_82_old_names() {
    let attribution = held(vec![holding("job-0", "main", gpu(0), None)]);
    let mut settings = Settings { attribution: pods(), ..settings() };
    settings.labels.old_namespace = true;
    let text = text_with(&node(), &attribution, &settings);
    let old = r#"container_name="main",pod_name="job-0",pod_namespace="ml"} 41"#;
    assert!(text.contains(old), "{text}");
}

#[test]
fn case_84_to_86_jobs_have_a_series_each_with_and_without_pods() {
    let jobs = BTreeMap::from([
        ((0, None), vec!["4711".to_owned(), "4712".to_owned()]),
        ((2, Some(1)), vec!["9".to_owned()]),
    ]);
    let attribution = Attribution { jobs: Arc::new(Jobs(jobs)), ..Attribution::default() };
    shows(
        &node(),
        &attribution,
        AttributionScheme::default(),
        &expect![[r#"
        DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-0",hpc_job="4711"} 41
        DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-0",hpc_job="4712"} 41
        DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-1"
        DCGM_FI_DEV_GPU_TEMP{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="1",hpc_job="9"} 43
        DCGM_FI_DEV_GPU_TEMP{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="2"} 43
        DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-0",hpc_job="4711"} 5
        DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-0",hpc_job="4712"} 5
        DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-1"
        DCGM_FI_DEV_FB_USED{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="1",hpc_job="9"} 10
        DCGM_FI_DEV_FB_USED{gpu="2",UUID="GPU-2",GPU_I_PROFILE="1g.18gb",GPU_I_ID="2"} 20
        nvml_power_watts{gpu="0",UUID="GPU-0"
        nvml_power_watts{gpu="1",UUID="GPU-1"
        nvml_power_watts{gpu="2",UUID="GPU-2"
    "#]],
    );
}
