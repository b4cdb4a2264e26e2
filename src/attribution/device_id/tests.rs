//! Every form of id, and what is none.

use proptest::prelude::*;

use super::*;

const UUID: &str = "4cf8db2d-06c0-7d70-1a51-e59b25b2c16c";

fn gpu() -> Target {
    Target::Gpu(format!("GPU-{UUID}"))
}

fn mig() -> Target {
    Target::Mig(format!("MIG-{UUID}"))
}

fn old_mig(gpu_instance: u32, compute_instance: u32) -> Target {
    Target::MigOf { gpu: format!("GPU-{UUID}"), gpu_instance, compute_instance }
}

fn parsed(text: &str) -> Option<(Target, Option<String>)> {
    DeviceId::parse(text).map(|id| (id.target, id.replica))
}

/// Every form that reaches the kubelet; also dcgm-exporter's cases 62, 63, 65 and 66.
#[test]
fn every_known_form_is_read() {
    let instance = Target::MinorInstance { minor: 0, gpu_instance: 3 };
    let pci = |address: &str| Target::Pci(address.to_owned());
    for (text, target, replica) in [
        (format!("GPU-{UUID}"), gpu(), None),
        (format!("GPU-{UUID}::3"), gpu(), Some("3")),
        (format!("GPU-{UUID}::"), gpu(), Some("")),
        (format!("GPU-{UUID}-4"), gpu(), Some("4")),
        (format!("MIG-{UUID}"), mig(), None),
        (format!("MIG-{UUID}::4"), mig(), Some("4")),
        (format!("MIG-{UUID}::5"), mig(), Some("5")),
        (format!("MIG-GPU-{UUID}/7/0"), old_mig(7, 0), None),
        (format!("MIG-GPU-{UUID}/7/1::2"), old_mig(7, 1), Some("2")),
        ("nvidia0".to_owned(), Target::Minor(0), None),
        ("nvidia15".to_owned(), Target::Minor(15), None),
        ("nvidia0/vgpu1".to_owned(), Target::Minor(0), Some("1")),
        ("nvidia0/gi3".to_owned(), instance.clone(), None),
        ("nvidia0/gi3/vgpu2".to_owned(), instance, Some("2")),
        ("0000:3b:00.0".to_owned(), pci("0000:3b:00.0"), None),
        ("00000000:3B:00.0".to_owned(), pci("00000000:3B:00.0"), None),
        (UUID.to_owned(), Target::Mdev(UUID.to_owned()), None),
        ("all".to_owned(), Target::All, None),
        ("tegra".to_owned(), Target::Tegra, None),
        ("tegra::1".to_owned(), Target::Tegra, Some("1")),
    ] {
        assert_eq!(parsed(&text), Some((target, replica.map(str::to_owned))), "{text}");
    }
}

/// dcgm-exporter's case 70 among them.
#[test]
fn case_70_what_no_plugin_writes_is_not_guessed_at() {
    for text in [
        "",
        "::",
        "::1",
        "GPU-",
        "MIG-",
        "gpu-0",
        "GPU 0",
        "17",
        "nvidia",
        "nvidia-1",
        "nvidia+1",
        "nvidia01",
        "nvidia99999999999",
        "nvidia0/gi",
        "nvidia0/gi1/2",
        "nvidia0/vgpu",
        "nvidia0/vgpux",
        "nvidia0/vgpu1::2",
        "ALL",
        "0000:3b:00",
        "0000.3b.00:0",
        "0000:3b:00.0.0",
        "0000:3g:00.0",
        "4cf8db2d06c07d701a51e59b25b2c16c",
        &format!("GPU-{UUID}::x"),
        &format!("GPU-{UUID}-"),
        &format!("GPU-{UUID}-x"),
        &format!("GPU-{UUID}/0"),
        &format!("MIG-GPU-{UUID}"),
        &format!("MIG-GPU-{UUID}/1"),
        &format!("MIG-GPU-{UUID}/x/0"),
        &format!("MIG-GPU-{UUID}/1/x"),
        &format!("MIG-GPU-{UUID}/1/0/0"),
        &format!("MIG-GPU-{UUID}//0"),
        "MIG-GPU-/1/0",
        &format!("GIM-GPU-{UUID}/1/0"),
    ] {
        // A HAMi share that is no number leaves a name, which is not a full UUID.
        let id = DeviceId::parse(text);
        assert!(id.as_ref().is_none_or(|id| !id.is_full_uuid()), "{text}: {id:?}");
        assert!(id.is_none(), "{text}: {id:?}");
    }
}

/// dcgm-exporter's case 69.
#[test]
fn case_63_and_69_a_share_is_cut_off_whatever_is_before_it() {
    for (text, device) in [("MIG-x::7", "MIG-x"), ("x::", "x"), ("", ""), ("x::1::2", "x")] {
        assert_eq!(split_replica(text).0, device, "{text}");
    }
}

#[test]
fn only_whole_uuids_count_as_such() {
    let full = |text: &str| DeviceId::parse(text).unwrap().is_full_uuid();
    for text in [format!("GPU-{UUID}::1"), format!("MIG-{UUID}"), format!("MIG-GPU-{UUID}/1/0")] {
        assert!(full(&text), "{text}");
    }
    for text in ["GPU-0", "MIG-x", "MIG-GPU-0/1/0", "nvidia0", "all", UUID] {
        assert!(!full(text), "{text}");
    }
}

/// An id as a plugin would write it.
fn written(id: &DeviceId, hami: bool) -> Option<String> {
    let target = match &id.target {
        Target::Gpu(name) | Target::Mig(name) | Target::Pci(name) | Target::Mdev(name) => {
            name.clone()
        }
        Target::MigOf { gpu, gpu_instance, compute_instance } => {
            format!("MIG-{gpu}/{gpu_instance}/{compute_instance}")
        }
        Target::Minor(minor) => format!("nvidia{minor}"),
        Target::MinorInstance { minor, gpu_instance } => format!("nvidia{minor}/gi{gpu_instance}"),
        Target::All => "all".to_owned(),
        Target::Tegra => "tegra".to_owned(),
        Target::Placed { .. } | Target::Vfio(_) => return None,
    };
    let gke = matches!(id.target, Target::Minor(_) | Target::MinorInstance { .. });
    Some(match &id.replica {
        None => target,
        Some(replica) if gke && !replica.is_empty() => format!("{target}/vgpu{replica}"),
        Some(replica) if hami && !replica.is_empty() && matches!(id.target, Target::Gpu(_)) => {
            format!("{target}-{replica}")
        }
        Some(replica) => format!("{target}::{replica}"),
    })
}

fn any_target() -> impl Strategy<Value = Target> {
    let uuid = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";
    prop_oneof![
        uuid.prop_map(|uuid| Target::Gpu(format!("GPU-{uuid}"))),
        uuid.prop_map(|uuid| Target::Mig(format!("MIG-{uuid}"))),
        (uuid, any::<u32>(), any::<u32>()).prop_map(|(uuid, gpu_instance, compute_instance)| {
            Target::MigOf { gpu: format!("GPU-{uuid}"), gpu_instance, compute_instance }
        }),
        any::<u32>().prop_map(Target::Minor),
        (any::<u32>(), any::<u32>())
            .prop_map(|(minor, gpu_instance)| Target::MinorInstance { minor, gpu_instance }),
        "[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]".prop_map(Target::Pci),
        uuid.prop_map(Target::Mdev),
        Just(Target::All),
        Just(Target::Tegra),
    ]
}

proptest! {
    #[test]
    fn a_written_id_is_read_back(
        target in any_target(),
        replica in proptest::option::of("[0-9]{0,3}"),
        hami in any::<bool>(),
    ) {
        let id = DeviceId { target, replica };
        let text = written(&id, hami).unwrap();
        prop_assert_eq!(DeviceId::parse(&text), Some(id), "{}", text);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        let _ = DeviceId::parse(&text);
    }

    #[test]
    fn no_text_that_looks_like_an_id_makes_the_parser_panic(
        text in "(GPU-|MIG-|nvidia|gpu-)?[0-9a-fg:/.-]{0,50}(::|/vgpu|/gi|-)?[0-9]{0,12}",
    ) {
        if let Some(id) = DeviceId::parse(&text)
            && let Some(replica) = &id.replica
        {
            prop_assert!(text.ends_with(replica.as_str()));
        }
    }
}
