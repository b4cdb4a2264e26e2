//! Answers recorded from a real kubelet (`tests/data/kubelet`): what the product's messages read
//! of them, that the scripted kubelet answers in the same shape, and what the page makes of them.

use std::fs;
use std::path::{Path, PathBuf};

use nvml_exporter::attribution::kubelet::messages::{
    AllocatableResourcesResponse, ContainerDevices, ContainerResources, ListPodResourcesResponse,
    PodResources,
};
use prost::Message as _;

use crate::support::Page;
use crate::support::kubelet::{Kubelet, device};
use crate::support::pods::{TEMP, beside_a_kubelet};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/kubelet").join(name)
}

fn list(moment: &str) -> ListPodResourcesResponse {
    let bytes = fs::read(file(&format!("{moment}.list.bin"))).unwrap();
    ListPodResourcesResponse::decode(bytes.as_slice()).unwrap()
}

fn allocatable(moment: &str) -> AllocatableResourcesResponse {
    let bytes = fs::read(file(&format!("{moment}.allocatable.bin"))).unwrap();
    AllocatableResourcesResponse::decode(bytes.as_slice()).unwrap()
}

/// The text that Kubernetes' own types gave, built as the scripted kubelet's answers are.
fn scripted(text: &str) -> (Vec<PodResources>, Vec<ContainerDevices>) {
    let (mut pods, mut devices) = (Vec::<PodResources>::new(), Vec::new());
    for line in text.lines() {
        match *line.split(' ').collect::<Vec<_>>() {
            ["allocatable", resource, id, _] => devices.push(device(resource, id)),
            ["list", namespace, pod, container, resource, id, _] => {
                if pods
                    .last()
                    .is_none_or(|last| (&*last.namespace, &*last.name) != (namespace, pod))
                {
                    let (name, namespace) = (pod.to_owned(), namespace.to_owned());
                    pods.push(PodResources { name, namespace, containers: Vec::new() });
                }
                let containers = &mut pods.last_mut().unwrap().containers;
                if containers.last().is_none_or(|last| last.name != container) {
                    let name = container.to_owned();
                    containers.push(ContainerResources { name, ..ContainerResources::default() });
                }
                let held = &mut containers.last_mut().unwrap().devices;
                held.extend((id != "-").then(|| device(resource, id)));
            }
            ref other => panic!("not a line of a recording: {other:?}"),
        }
    }
    (pods, devices)
}

#[test]
fn recorded_answers_are_read_as_kubernetes_reads_them_and_the_scripted_kubelet_answers_alike() {
    let files = fs::read_dir(file("")).unwrap();
    let names = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let moments: Vec<String> =
        names.filter_map(|name| name.strip_suffix(".txt").map(str::to_owned)).collect();
    assert!(moments.len() >= 10, "{moments:?}");
    for moment in moments {
        let text = fs::read_to_string(file(&format!("{moment}.txt"))).unwrap();
        let (pods, devices) = scripted(&text);
        assert_eq!(list(&moment).pod_resources, pods, "{moment}");
        assert_eq!(allocatable(&moment).devices, devices, "{moment}");
    }
}

/// `namespace/pod` of each device that a pod holds.
fn held(page: &Page) -> Vec<String> {
    let held = page.samples(TEMP).filter(|sample| sample.label("pod") != Some(""));
    let mut held: Vec<String> = held
        .map(|sample| {
            let part = |name| sample.label(name).unwrap_or("-");
            let (gpu, instance) = (part("gpu"), part("GPU_I_ID"));
            format!("{gpu} {instance} {}/{}/{}", part("namespace"), part("pod"), part("container"))
        })
        .collect();
    held.sort();
    held
}

#[test]
fn a_real_kubelets_answers_are_shown_moment_by_moment() {
    let (setup, path) = beside_a_kubelet("h200-mig-and-whole");
    let kubelet = Kubelet::start(&path);
    let exporter = setup.args(["--kubernetes-virtual-gpus"]).ready();
    let trainer = "0 - training/trainer-gpu-node/main";
    let evaluator = "0 - research/evaluator-gpu-node/main";
    let alice = "1 - notebooks/alice-gpu-node/notebook";
    let bob = "1 - notebooks/bob-gpu-node/notebook";
    for (moment, expected) in [
        ("pods", vec![trainer, alice, bob, "2 9 serving/llm-gpu-node/server"]),
        ("pods-deleted", vec![trainer, bob]),
        // Over its restart the kubelet announces nothing, and goes on listing.
        ("kubelet-restarted", vec![trainer, bob]),
        ("whole-free", vec![bob]),
        ("handed-on", vec![evaluator, bob, "3 9 serving/llm-gpu-node/server"]),
    ] {
        kubelet.lists(list(moment).pod_resources);
        kubelet.can_hand_out(allocatable(moment).devices);
        exporter.until(moment, |page| held(page) == expected);
    }
}
