//! The device selector.

use proptest::prelude::*;

use super::super::{DeviceSelector, GpuId, InstanceId};
use super::{config, mistakes};

const ALLOWED: &str = "allowed: f, g, i, g:LIST, i:LIST, g[:LIST]+i[:LIST]; LIST is 0, 0-3, \
                       GPU-UUID, PCI bus id, MIG-UUID or GPU.INSTANCE, separated by commas";

const UUIDS: [&str; 4] = [
    "GPU-00000000-0000-0000-0000-000000000000",
    "GPU-11111111-1111-1111-1111-111111111111",
    "GPU-22222222-2222-2222-2222-222222222222",
    "GPU-33333333-3333-3333-3333-333333333333",
];
const PLACES: [&str; 4] =
    ["00000000:07:00.0", "00000000:3B:00.0", "00000001:3B:00.0", "00000000:BD:00.0"];

fn gpu(index: u32) -> GpuId<'static> {
    let slot = index as usize % 4;
    GpuId { index, uuid: UUIDS[slot], pci_bus_id: PLACES[slot] }
}

/// Instances 1 and 2 on GPU 2, and 1 on GPU 3.
fn instances() -> [InstanceId<'static>; 3] {
    let instance = |index, gpu_instance, uuid| InstanceId { gpu: gpu(index), gpu_instance, uuid };
    [instance(2, 1, "MIG-a"), instance(2, 2, "MIG-b"), instance(3, 1, "MIG-c")]
}

/// What a node of two whole GPUs (0, 1) and two with instances (2, 3) exports.
fn exported(selector: &str) -> String {
    let selector: DeviceSelector = selector.parse().unwrap();
    let gpus = (0..4).filter(|index| selector.selects_gpu(&gpu(*index), *index >= 2));
    let gpus = gpus.map(|index| index.to_string());
    let instances = instances();
    let instances = instances.iter().filter(|instance| selector.selects_instance(instance));
    let instances = instances.map(|it| format!("{}.{}", it.gpu.index, it.gpu_instance));
    gpus.chain(instances).collect::<Vec<_>>().join(" ")
}

#[test]
fn case_36_the_grammar_of_dcgm_exporter() {
    for (selector, expected) in [
        ("f", "0 1 2.1 2.2 3.1"),
        ("g", "0 1 2 3"),
        ("g:0,2", "0 2"),
        ("g:0-3", "0 1 2 3"),
        ("g:1-2,0", "0 1 2"),
        ("i", "2.1 2.2 3.1"),
        ("i:1", "2.1 3.1"),
    ] {
        assert_eq!(exported(selector), expected, "{selector}");
    }
}

#[test]
fn case_37_a_gpu_that_does_not_exist_is_told() {
    let gpus = [gpu(0), gpu(1), gpu(2), gpu(3)];
    let unmatched = |text: &str| {
        let selector: DeviceSelector = text.parse().unwrap();
        selector.unmatched(&gpus, &instances()).join(" ")
    };
    assert_eq!(exported("g:7"), "");
    assert_eq!(unmatched("g:7"), "g:7");
    assert_eq!(
        unmatched("g:0,9-12,GPU-x,0000:FF:00.0+i:1,5,2.9"),
        "g:9-12 g:GPU-x g:00000000:FF:00.0 i:5 i:2.9"
    );
    assert_eq!(unmatched("g:0-3+i:1-2"), "");
    assert_eq!(unmatched("f"), "");
}

#[test]
fn case_38_on_a_mixed_node_g_is_gpus_and_i_instances() {
    assert_eq!(exported("g"), "0 1 2 3");
    assert_eq!(exported("i"), "2.1 2.2 3.1");
    assert_eq!(exported("g+i"), "0 1 2 3 2.1 2.2 3.1");
    assert_eq!(exported("i:2+g:0"), "0 2.2");
    assert_eq!(exported("g:0+i:2"), "0 2.2");
}

#[test]
fn case_39_an_instances_number_is_its_gpu_i_id() {
    assert_eq!(exported("i:2"), "2.2");
    assert_eq!(exported("i:2.1"), "2.1");
    assert_eq!(exported("i:MIG-C"), "3.1");
}

#[test]
fn gpus_are_named_by_uuid_and_pci_bus_id_too() {
    assert_eq!(exported(&format!("g:{},3", UUIDS[1])), "1 3");
    assert_eq!(exported(&format!("g:{}", UUIDS[1].to_lowercase())), "1");
    for place in ["00000000:3B:00.0", "0000:3b:00.0", "3b:00.0"] {
        assert_eq!(exported(&format!("g:{place}")), "1", "{place}");
    }
    assert_eq!(exported("g:0001:3b:00.0"), "2");
    // All by list are the same as no list.
    assert_eq!(exported(&format!("g:{}", UUIDS.join(","))), exported("g"));
    assert_eq!(exported(&format!("g:{}", PLACES.join(","))), exported("g"));
}

#[test]
fn mistakes_say_what_is_allowed() {
    for (selector, problem) in [
        ("", "a part is empty"),
        ("x", "\"x\" is not a kind of device"),
        ("0", "\"0\" is not a kind of device"),
        ("f:0", "f stands alone"),
        ("f+g", "f stands alone"),
        ("g+g:1", "g is there twice"),
        ("g+", "a part is empty"),
        ("+i", "a part is empty"),
        ("g:", "a list has an empty item"),
        ("g:0,,2", "a list has an empty item"),
        ("g:a", "\"a\" is not a number or range"),
        ("g:-1", "\"-1\" is not a number or range"),
        ("g:+1", "a list has an empty item"),
        ("g:0-", "\"0-\" is not a number or range"),
        ("g:1:2", "\"1:2\" is not a PCI bus id"),
        ("i:1:2", "\"1:2\" is not a number or range"),
        ("i:GPU-x", "\"GPU-x\" is not a number or range"),
        ("g:5-3", "the range 5-3 is reversed"),
        ("g:0-1024", "\"0-1024\" names 1025 devices, more than 1024"),
        ("g:4294967296", "\"4294967296\" is not a number or range"),
    ] {
        let expected = format!("{problem}; {ALLOWED}");
        assert_eq!(selector.parse::<DeviceSelector>(), Err(expected), "{selector}");
    }
    assert!(config("-d g:0-1023", "").warnings.is_empty());
    assert_eq!(
        mistakes("", "DCGM_EXPORTER_DEVICES_STR=g:5-3"),
        format!("DCGM_EXPORTER_DEVICES_STR=g:5-3: the range 5-3 is reversed; {ALLOWED}")
    );
}

/// A list of ranges as typed, and the numbers in it.
fn lists() -> impl Strategy<Value = (String, Vec<u32>)> {
    prop::collection::vec((0_u32..64, 0_u32..8), 1..6).prop_map(|ranges| {
        let texts: Vec<_> = ranges
            .iter()
            .map(|(first, more)| match more {
                0 => first.to_string(),
                more => format!("{first}-{}", first + more),
            })
            .collect();
        let numbers = ranges.iter().flat_map(|(first, more)| *first..=first + more).collect();
        (texts.join(","), numbers)
    })
}

proptest! {
    #[test]
    fn a_list_selects_exactly_its_numbers((text, numbers) in lists(), index in 0_u32..80) {
        let selector: DeviceSelector = format!("g:{text}").parse().unwrap();
        prop_assert_eq!(selector.selects_gpu(&gpu(index), false), numbers.contains(&index));
        let instance = InstanceId { gpu: gpu(0), gpu_instance: index, uuid: "MIG-x" };
        prop_assert!(!selector.selects_instance(&instance));
        let selector: DeviceSelector = format!("i:{text}").parse().unwrap();
        prop_assert_eq!(selector.selects_instance(&instance), numbers.contains(&index));
        prop_assert!(!selector.selects_gpu(&gpu(index), false));
    }

    #[test]
    fn a_selector_is_written_as_it_can_be_typed((g, _) in lists(), (i, _) in lists()) {
        for text in [format!("g:{g}"), format!("i:{i}"), format!("g:{g}+i:{i}"), format!("g+i:{i},1.2")] {
            let selector: DeviceSelector = text.parse().unwrap();
            prop_assert_eq!(selector.to_string(), text);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[fgi:+,.0-9a-fGPUMI-]{0,24}") {
        if let Ok(selector) = text.parse::<DeviceSelector>() {
            prop_assert_eq!(selector.to_string().parse(), Ok(selector));
        }
    }
}
