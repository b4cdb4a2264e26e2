//! Every form of id on one node, and who of several pods has a device.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::*;
use crate::attribution::DeviceId;
use crate::catalogue::Selection;
use crate::sampler::snapshot::{
    Gpu, GpuIdentity, GpuReading, InstanceIdentity, InstanceReading, Library, Placement, Status,
};

/// GPU 0 whole with minor 3; GPU 1 with minor 2 and instances 1 and 2.
fn snapshot() -> Snapshot {
    let gpu = |index: u32, minor, instances| Gpu {
        identity: Arc::new(GpuIdentity {
            index,
            uuid: format!("GPU-{index}"),
            pci_bus_id: format!("00000000:{:02X}:00.0", 0x3b + index),
            minor: Some(minor),
            ..GpuIdentity::default()
        }),
        status: Status::Up,
        reading: Some(Arc::new(GpuReading {
            read_at: SystemTime::UNIX_EPOCH,
            took: Duration::ZERO,
            whole: true,
            board: Vec::new(),
            labels: Vec::new(),
            texts: Vec::new(),
            instances,
            mig_slices: None,
            unsupported: Vec::new(),
            processes: None,
            accounting: Vec::new(),
            signs: None,
            peers: Vec::new(),
        })),
        last_read: None,
        known: Arc::default(),
        history: Arc::default(),
    };
    let instance = |id: u32, profile: &str, placement| InstanceReading {
        identity: Arc::new(InstanceIdentity {
            gpu_instance: id,
            profile: profile.to_owned(),
            uuids: vec![(0, format!("MIG-{id}a")), (1, format!("MIG-{id}b"))],
            placement,
        }),
        samples: Vec::new(),
    };
    let placed = Placement { profile_id: 19, start: 4, size: 1 };
    Snapshot {
        taken: SystemTime::UNIX_EPOCH,
        selection: Arc::new(Selection::default()),
        library: Library::Starting,
        gpus: vec![
            gpu(0, 3, Vec::new()),
            gpu(1, 2, vec![instance(1, "1g.18gb", Some(placed)), instance(2, "3g.71gb+me", None)]),
        ],
    }
}

fn holding(pod: &str, target: Target, since: u64) -> Holding {
    Holding {
        container: Arc::new(Container {
            namespace: "ml".to_owned(),
            pod: pod.to_owned(),
            name: "main".to_owned(),
        }),
        resource: "nvidia.com/gpu".into(),
        id: DeviceId { target, replica: None },
        claim: None,
        since,
    }
}

fn attribution(holdings: Vec<Holding>) -> Attribution {
    let allocations = Allocations { holdings, ..Allocations::default() };
    Attribution { allocations: Some(Arc::new(allocations)), ..Attribution::default() }
}

fn pods(assignment: &Assignment<'_>, gpu: u32, instance: Option<u32>) -> Vec<String> {
    let holders = assignment.of(DeviceKey { gpu, instance });
    holders.iter().map(|holder| holder.container.pod.clone()).collect()
}

#[test]
fn each_form_finds_its_device() {
    let gpu = |name: &str| Target::Gpu(name.to_owned());
    let placed = |profile_id, start, profile: &str| Target::Placed {
        minor: 2,
        profile_id,
        start,
        profile: profile.to_owned(),
    };
    for (target, device) in [
        (gpu("GPU-0"), Some((0, None))),
        (gpu("GPU-1"), Some((1, None))),
        (gpu("GPU-9"), None),
        (Target::Mig("MIG-1b".to_owned()), Some((1, Some(1)))),
        (
            Target::MigOf { gpu: "GPU-1".to_owned(), gpu_instance: 2, compute_instance: 0 },
            Some((1, Some(2))),
        ),
        (Target::MigOf { gpu: "GPU-0".to_owned(), gpu_instance: 2, compute_instance: 0 }, None),
        (Target::Minor(3), Some((0, None))),
        (Target::Minor(0), None),
        (Target::MinorInstance { minor: 2, gpu_instance: 1 }, Some((1, Some(1)))),
        (placed(19, 4, "1g18gb"), Some((1, Some(1)))),
        (placed(19, 4, ""), Some((1, Some(1)))),
        (placed(19, 5, "1g18gb"), None),
        (placed(9, 0, "3g71gb-me"), Some((1, Some(2)))),
        (placed(9, 0, ""), None),
        (Target::Pci("0000:3c:00.0".to_owned()), Some((1, None))),
        (Target::Pci("0000:3d:00.0".to_owned()), None),
        (Target::Mdev("0f".to_owned()), None),
        (Target::Tegra, None),
    ] {
        let attribution = attribution(vec![holding("p", target.clone(), 1)]);
        let snapshot = snapshot();
        let assignment = assign(&snapshot, &attribution);
        let found: Vec<_> = assignment.iter().map(|(key, _)| (key.gpu, key.instance)).collect();
        assert_eq!(found, Vec::from_iter(device), "{target:?}");
        assert_eq!(assignment.ids.matched, found.len(), "{target:?}");
    }
}

#[test]
fn what_finds_none_is_counted_by_its_reason() {
    let mut attribution = attribution(vec![
        holding("a", Target::Gpu("GPU-9".to_owned()), 1),
        holding("b", Target::Pci("0000:3d:00.0".to_owned()), 1),
        holding("c", Target::Mdev("0f".to_owned()), 1),
    ]);
    let mut allocations = Allocations::clone(attribution.allocations.as_deref().unwrap());
    allocations.unknown = vec![("nvidia.com/gpu".into(), "what".to_owned())];
    attribution.allocations = Some(Arc::new(allocations));
    let snapshot = snapshot();
    let ids = assign(&snapshot, &attribution).ids;
    assert_eq!((ids.seen, ids.matched, ids.ambiguous), (4, 0, 0));
    let reasons = [(NO_SUCH_DEVICE, 1), (PASSTHROUGH, 1), (UNKNOWN_FORM, 1), (VGPU, 1)];
    assert_eq!(ids.unmatched, BTreeMap::from(reasons));
}

#[test]
fn a_device_handed_on_is_the_later_pods_alone() {
    let gpu = || Target::Gpu("GPU-0".to_owned());
    let snapshot = snapshot();
    let attribution = attribution(vec![holding("old", gpu(), 3), holding("new", gpu(), 7)]);
    let assignment = assign(&snapshot, &attribution);
    assert_eq!(pods(&assignment, 0, None), ["new"]);
    assert_eq!(assignment.ids.ambiguous, 0);
}

#[test]
fn of_two_that_were_there_from_the_first_look_none_is_chosen() {
    let gpu = || Target::Gpu("GPU-0".to_owned());
    let snapshot = snapshot();
    let mut attribution = attribution(vec![holding("a", gpu(), 1), holding("b", gpu(), 1)]);
    let assignment = assign(&snapshot, &attribution);
    assert_eq!(pods(&assignment, 0, None), ["a", "b"]);
    assert_eq!(assignment.ids.ambiguous, 2);

    let mut table = PodTable::default();
    table.insert("ml", "a", PodFacts { finished: true, ..PodFacts::default() });
    attribution.pods = Arc::new(table);
    let assignment = assign(&snapshot, &attribution);
    assert_eq!(pods(&assignment, 0, None), ["b"]);
    assert_eq!(assignment.ids.ambiguous, 0);
}

#[test]
fn sharers_of_a_device_are_all_kept_in_order() {
    let share = |pod: &str, replica: &str, since| {
        let mut holding = holding(pod, Target::Gpu("GPU-0".to_owned()), since);
        holding.id.replica = Some(replica.to_owned());
        holding
    };
    let snapshot = snapshot();
    let attribution = attribution(vec![share("b", "1", 2), share("a", "3", 1), share("a", "0", 1)]);
    let assignment = assign(&snapshot, &attribution);
    let shares: Vec<_> = assignment
        .of(DeviceKey { gpu: 0, instance: None })
        .iter()
        .map(|holder| (holder.container.pod.as_str(), holder.replica))
        .collect();
    assert_eq!(shares, [("a", Some("0")), ("a", Some("3")), ("b", Some("1"))]);
}

#[test]
fn all_is_every_gpu() {
    let snapshot = snapshot();
    let attribution = attribution(vec![holding("wsl", Target::All, 1)]);
    let assignment = assign(&snapshot, &attribution);
    assert_eq!(assignment.iter().count(), 2);
    assert_eq!(assignment.ids.matched, 1);
}
