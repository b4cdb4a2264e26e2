//! Messages of the kubelet, made into allocations.

use super::super::messages::ClaimResource;
use super::*;
use crate::attribution::Target;

const UUID: &str = "4cf8db2d-06c0-7d70-1a51-e59b25b2c16c";

fn pod(namespace: &str, name: &str, containers: Vec<ContainerResources>) -> PodResources {
    PodResources { name: name.to_owned(), namespace: namespace.to_owned(), containers }
}

fn container(name: &str, devices: &[(&str, &[&str])]) -> ContainerResources {
    let entry = |(resource, ids): &(&str, &[&str])| ContainerDevices {
        resource_name: (*resource).to_owned(),
        device_ids: ids.iter().map(|&id| id.to_owned()).collect(),
    };
    ContainerResources {
        name: name.to_owned(),
        devices: devices.iter().map(entry).collect(),
        dynamic_resources: Vec::new(),
    }
}

fn claimed(name: &str, devices: &[(&str, &str, Option<&str>)]) -> ContainerResources {
    let device = |(driver, device, share): &(&str, &str, Option<&str>)| ClaimResource {
        driver_name: (*driver).to_owned(),
        pool_name: "node-1".to_owned(),
        device_name: (*device).to_owned(),
        share_id: share.map(str::to_owned),
    };
    let claim = DynamicResource {
        claim_name: name.to_owned(),
        claim_namespace: "ml".to_owned(),
        claim_resources: devices.iter().map(device).collect(),
    };
    let name = "main".to_owned();
    ContainerResources { name, devices: Vec::new(), dynamic_resources: vec![claim] }
}

fn list(pod_resources: Vec<PodResources>) -> ListPodResourcesResponse {
    ListPodResourcesResponse { pod_resources }
}

/// A line for each holding.
fn shown(answer: &Answer) -> Vec<String> {
    let line = |holding: &Holding| {
        let Container { namespace, pod, name } = &*holding.container;
        let share = holding.id.replica.as_ref().map(|share| format!(" share {share}"));
        let claim = holding.claim.as_ref().map(|claim| {
            format!(" claim {}/{} {} {}", claim.namespace, claim.name, claim.device, claim.share)
        });
        let target = match &holding.id.target {
            Target::Gpu(uuid) => uuid.replace(UUID, "U"),
            Target::Minor(minor) => format!("minor {minor}"),
            other => format!("{other:?}"),
        };
        let (share, claim) = (share.unwrap_or_default(), claim.unwrap_or_default());
        format!("{namespace}/{pod}/{name} {} {target}{share}{claim}", holding.resource)
    };
    answer.allocations.holdings.iter().map(line).collect()
}

#[test]
fn ids_in_one_entry_or_in_several_are_the_same() {
    let grouped = container("main", &[("nvidia.com/gpu", &["GPU-b", "GPU-a"])]);
    let single =
        container("main", &[("nvidia.com/gpu", &["GPU-a"]), ("nvidia.com/gpu", &["GPU-b"])]);
    let read = |container| convert(&list(vec![pod("ml", "a", vec![container])]), None, &rules());
    assert_eq!(read(grouped.clone()), read(single));
    assert_eq!(
        shown(&read(grouped)),
        ["ml/a/main nvidia.com/gpu GPU-a", "ml/a/main nvidia.com/gpu GPU-b"]
    );
}

fn rules() -> Rules {
    Rules::default()
}

#[test]
fn holdings_are_sorted_and_each_is_there_once() {
    let main = container("main", &[("nvidia.com/gpu", &["GPU-a::1", "GPU-a::0", "GPU-a::1"])]);
    let side = container("side", &[("nvidia.com/gpu", &["GPU-a::2"])]);
    let answer = convert(
        &list(vec![pod("z", "z", vec![main.clone()]), pod("a", "a", vec![side, main])]),
        None,
        &rules(),
    );
    assert_eq!(
        shown(&answer),
        [
            "a/a/main nvidia.com/gpu GPU-a share 0",
            "a/a/main nvidia.com/gpu GPU-a share 1",
            "a/a/side nvidia.com/gpu GPU-a share 2",
            "z/z/main nvidia.com/gpu GPU-a share 0",
            "z/z/main nvidia.com/gpu GPU-a share 1",
        ]
    );
    assert_eq!((answer.seen.pods, answer.seen.containers, answer.seen.ids), (2, 3, 7));
}

#[test]
fn other_resources_are_counted_and_unknown_forms_told() {
    let main = container(
        "main",
        &[
            ("nvidia.com/gpu", &["card-7", "GPU-a", "card-7"]),
            ("nvidia.com/hostdev", &["0000:3b:00.0", "0000:3b:00.1"]),
            ("cloud.example/gpu", &[&format!("GPU-{UUID}")]),
        ],
    );
    let answer = convert(&list(vec![pod("ml", "a", vec![main])]), None, &rules());
    assert_eq!(
        shown(&answer),
        ["ml/a/main cloud.example/gpu GPU-U", "ml/a/main nvidia.com/gpu GPU-a"]
    );
    assert_eq!(answer.allocations.unknown, [("nvidia.com/gpu".into(), "card-7".to_owned())]);
    assert_eq!(answer.seen.other, BTreeMap::from([("nvidia.com/hostdev".to_owned(), 2)]));
}

#[test]
fn claims_of_nvidias_driver_count_and_no_others() {
    let main = claimed(
        "claim",
        &[
            ("gpu.nvidia.com", "gpu-1", Some("share-1")),
            ("gpu.nvidia.com", "gpu-1", None),
            ("gpu.nvidia.com", "card-7", None),
            ("gpu.example.com", "gpu-0", None),
        ],
    );
    let answer = convert(&list(vec![pod("ml", "a", vec![main])]), None, &rules());
    assert_eq!(
        shown(&answer),
        [
            "ml/a/main gpu.nvidia.com minor 1 claim ml/claim gpu-1 ",
            "ml/a/main gpu.nvidia.com minor 1 claim ml/claim gpu-1 share-1",
        ]
    );
    assert_eq!(answer.allocations.unknown, [("gpu.nvidia.com".into(), "card-7".to_owned())]);
    assert_eq!(answer.claims, BTreeSet::from([("ml".to_owned(), "claim".to_owned())]));
    assert_eq!(answer.seen.other, BTreeMap::from([("gpu.example.com".to_owned(), 1)]));
}

#[test]
fn the_exporters_own_pod_and_ignored_pods_hold_nothing() {
    let holder = |namespace: &str, name: &str| {
        pod(namespace, name, vec![container("main", &[("nvidia.com/gpu", &["GPU-a"])])])
    };
    let pods = list(vec![
        holder("monitoring", "exporter"),
        holder("ml", "exporter"),
        holder("gpu-operator", "validator-x"),
        pod("ml", "own", vec![claimed("claim", &[("gpu.nvidia.com", "gpu-0", None)])]),
    ]);
    let own = |namespace: Option<&str>, name: &str| {
        let namespace = namespace.map(str::to_owned);
        Some(OwnPod { namespace, name: name.to_owned() })
    };
    let ignore = vec![Regex::new("^gpu-operator/validator-").unwrap()];
    let read =
        |own_pod| convert(&pods, None, &Rules { own_pod, ignore: ignore.clone(), ..rules() });
    let exporter = read(own(Some("monitoring"), "exporter"));
    assert_eq!(
        shown(&exporter),
        [
            "ml/exporter/main nvidia.com/gpu GPU-a",
            "ml/own/main gpu.nvidia.com minor 0 claim ml/claim gpu-0 ",
        ]
    );
    assert_eq!(shown(&read(own(None, "exporter"))).len(), 1);
    let without_claim = read(own(Some("ml"), "own"));
    assert!(without_claim.claims.is_empty());
    assert_eq!(without_claim.seen.pods, 4);
}

#[test]
fn what_can_be_handed_out_is_counted_by_resource() {
    let entry = |resource: &str, ids: &[&str]| container("", &[(resource, ids)]).devices.remove(0);
    let devices = vec![
        entry("nvidia.com/gpu.shared", &["GPU-a::0"]),
        entry("nvidia.com/gpu.shared", &["GPU-a::1"]),
        entry("nvidia.com/gpu", &["GPU-b", "card-7"]),
        entry("nvidia.com/hostdev", &["0000:3b:00.0"]),
    ];
    let answer =
        convert(&list(Vec::new()), Some(&AllocatableResourcesResponse { devices }), &rules());
    let expected =
        BTreeMap::from([("nvidia.com/gpu".into(), 2), ("nvidia.com/gpu.shared".into(), 2)]);
    assert_eq!(answer.allocations.allocatable, Some(expected));
    assert_eq!(convert(&list(Vec::new()), None, &rules()).allocations.allocatable, None);
}
