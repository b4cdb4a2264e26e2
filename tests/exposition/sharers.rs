//! A GPU that pods share, with a series for each: what is divided among them, and what cannot be.

use std::sync::Arc;

use expect_test::expect;
use nvml_exporter::attribution::{Attribution, PodFacts, PodTable};
use nvml_exporter::exposition::AttributionScheme;
use nvml_exporter::sampler::owners::Owner;
use nvml_exporter::sampler::snapshot::{
    GpuReading, ProcessMemory, ProcessUtilization, Processes, Snapshot,
};

use crate::attribution::{gpu, held, holding, pods, shows, text};
use crate::support::{FB_USED, POWER, TEMP, UTIL, identity, int, reading, selection, snapshot, up};

/// GPU 0 shared by two pods with processes; GPU 1 idle.
fn shared() -> (Snapshot, Attribution) {
    let owner = |pod: &str| {
        let uid = format!("uid-{pod}").into();
        Some(Arc::new(Owner { pod_uid: Some(uid), ..Owner::default() }))
    };
    let processes = Processes {
        running: Ok(vec![ProcessMemory {
            pid: 7,
            owner: owner("a"),
            used_bytes: Some(3 << 20),
            gpu_instance: None,
        }]),
        utilization: Ok(vec![ProcessUtilization {
            pid: 7,
            owner: owner("a"),
            sm_percent: 60,
            memory_percent: 0,
            encoder_percent: 0,
            decoder_percent: 0,
        }]),
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
fn a_sum_over_a_shared_gpus_own_families_is_the_boards() {
    let (node, attribution) = shared();
    let text = text(&node, &attribution, AttributionScheme { split: true, ..pods() });
    assert_eq!(text.matches("\nnvml_power_watts{gpu=\"0\"").count(), 1, "{text}");
}
