//! Who uses a device, on the page: pods, sharers, claims, jobs.

use std::collections::BTreeMap;
use std::sync::Arc;

use expect_test::{Expect, expect};
use nvml_exporter::attribution::{
    Allocations, Attribution, Claim, Container, DeviceId, Holding, Jobs, PodFacts, PodTable, Target,
};
use nvml_exporter::exposition::{AttributionScheme, Encoding, Renderer, Settings, Show};
use nvml_exporter::sampler::snapshot::{
    GpuReading, ProcessMemory, ProcessUtilization, Processes, Snapshot,
};

use crate::support::{
    FB_USED, POWER, TEMP, UTIL, identity, instance, int, now, reading, selection, settings,
    snapshot, telemetry, up,
};

fn gpu(index: u32) -> Target {
    Target::Gpu(format!("GPU-{index:08x}"))
}

fn holding(pod: &str, container: &str, target: Target, replica: Option<&str>) -> Holding {
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

fn held(holdings: Vec<Holding>) -> Attribution {
    let allocatable = Some(BTreeMap::from([("nvidia.com/gpu".into(), 4)]));
    let allocations = Allocations { holdings, allocatable, ..Allocations::default() };
    Attribution { allocations: Some(Arc::new(allocations)), ..Attribution::default() }
}

fn pods() -> AttributionScheme {
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

fn text(snapshot: &Snapshot, attribution: &Attribution, scheme: AttributionScheme) -> String {
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

fn shows(snapshot: &Snapshot, attribution: &Attribution, scheme: AttributionScheme, want: &Expect) {
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

/// GPU 0 shared by two pods with processes; GPU 1 idle.
fn shared() -> (Snapshot, Attribution) {
    let uid = |pod: &str| Some(format!("uid-{pod}").into());
    let processes = Processes {
        running: Ok(vec![ProcessMemory {
            pid: 7,
            pod_uid: uid("a"),
            used_bytes: Some(3 << 20),
            gpu_instance: None,
        }]),
        utilization: Ok(vec![ProcessUtilization { pid: 7, pod_uid: uid("a"), sm_percent: 60 }]),
        visible: 1,
    };
    let busy = GpuReading {
        processes: Some(processes),
        ..reading(vec![int(0, 41), int(1, 99), int(2, 8), int(3, 300)])
    };
    let idle = reading(vec![int(0, 40), int(1, 0), int(2, 0), int(3, 90)]);
    let rows = selection(&[&TEMP, &UTIL, &FB_USED, &POWER], &[]);
    let node = snapshot(rows, vec![up(identity(0), busy), up(identity(1), idle)]);
    let mut table = PodTable::default();
    for pod in ["a", "b"] {
        let labels = vec![("app".to_owned(), format!("app-{pod}"))];
        let facts = PodFacts { uid: format!("uid-{pod}"), labels, ..PodFacts::default() };
        table.insert("ml", pod, facts);
    }
    let holdings =
        vec![holding("a", "main", gpu(0), Some("0")), holding("b", "main", gpu(0), Some("1"))];
    (node, Attribution { pods: Arc::new(table), ..held(holdings) })
}

#[test]
fn case_65_and_68_each_sharer_has_a_series_and_an_idle_gpu_its_plain_one() {
    let (node, attribution) = shared();
    let scheme = AttributionScheme { split: true, ..pods() };
    shows(
        &node,
        &attribution,
        scheme,
        &expect![[r#"
            DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-0",app="app-a",container="main",namespace="ml",pod="a",vgpu="0"} 41
            DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-0",app="app-b",container="main",namespace="ml",pod="b",vgpu="1"} 41
            DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-1",container="",namespace="",pod=""} 40
            DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0",container="",namespace="",pod=""} 99
            DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0",app="app-a",container="main",namespace="ml",pod="a",pod_uid="uid-a",vgpu="0"} 60
            DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0",app="app-b",container="main",namespace="ml",pod="b",pod_uid="uid-b",vgpu="1"} 0
            DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-1",container="",namespace="",pod=""} 0
            DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-0",container="",namespace="",pod=""} 8
            DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-0",app="app-a",container="main",namespace="ml",pod="a",pod_uid="uid-a",vgpu="0"} 3
            DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-0",app="app-b",container="main",namespace="ml",pod="b",pod_uid="uid-b",vgpu="1"} 0
            DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-1",container="",namespace="",pod=""} 0
            nvml_power_watts{gpu="0",UUID="GPU-0",container="",namespace="ml",pod=""} 300
            nvml_power_watts{gpu="1",UUID="GPU-1",container="",namespace="",pod=""} 90
            nvml_device_allocated{gpu="0",UUID="GPU-0"} 1
            nvml_device_allocated{gpu="1",UUID="GPU-1"} 0
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
fn processes_that_cannot_be_told_apart_leave_the_whole_and_a_reason() {
    let (mut node, attribution) = shared();
    let busy = GpuReading::clone(node.gpus[0].reading.as_deref().unwrap());
    let processes = Processes { visible: 0, ..busy.processes.clone().unwrap() };
    node.gpus[0].reading = Some(Arc::new(GpuReading { processes: Some(processes), ..busy }));
    let text = text(&node, &attribution, AttributionScheme { split: true, ..pods() });
    assert_eq!(text.matches("\nDCGM_FI_DEV_GPU_UTIL{gpu=\"0\"").count(), 1, "{text}");
    assert_eq!(text.matches("\nDCGM_FI_DEV_GPU_TEMP{gpu=\"0\"").count(), 2, "{text}");
    let reason = "family=\"DCGM_FI_DEV_FB_USED\",reason=\"processes_not_visible\"} 1";
    assert!(text.contains(reason), "{text}");
}

#[test]
fn pods_without_a_known_uid_leave_the_whole_and_a_reason() {
    let (node, attribution) = shared();
    let attribution = Attribution { pods: Arc::default(), ..attribution };
    let text = text(&node, &attribution, AttributionScheme { split: true, ..pods() });
    for family in ["GPU_UTIL", "FB_USED"] {
        let series = format!("\nDCGM_FI_DEV_{family}{{gpu=\"0\"");
        assert_eq!(text.matches(&series).count(), 1, "{text}");
        let reason = format!("family=\"DCGM_FI_DEV_{family}\",reason=\"pod_uid_unknown\"}} 1");
        assert!(text.contains(&reason), "{text}");
    }
    assert!(text.contains(r#"pod="b",vgpu="1"} 41"#), "{text}");
}

#[test]
fn case_75_pod_uids_and_labels_stand_beside_the_pod() {
    let (node, attribution) = shared();
    let alone =
        held(vec![holding("a", "main", gpu(0), None), holding("new", "main", gpu(1), None)]);
    let attribution = Attribution { pods: attribution.pods, ..alone };
    let scheme = AttributionScheme { pod_uid: true, node: Some("n1".to_owned()), ..pods() };
    let text = text(&node, &attribution, scheme);
    let full =
        r#"app="app-a",container="main",namespace="ml",node="n1",pod="a",pod_uid="uid-a"} 41"#;
    assert!(text.contains(full), "{text}");
    let unknown = r#"container="main",namespace="ml",node="n1",pod="new",pod_uid=""} 40"#;
    assert!(text.contains(unknown), "{text}");
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

#[test]
fn a_sum_over_a_shared_gpus_own_families_is_the_boards() {
    let (node, attribution) = shared();
    let text = text(&node, &attribution, AttributionScheme { split: true, ..pods() });
    assert_eq!(text.matches("\nnvml_power_watts{gpu=\"0\"").count(), 1, "{text}");
}
