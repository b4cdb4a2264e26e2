//! Every scenario, through the eyes of nvml-wrapper.

use crate::common::{Simulator, refusal};
use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{Brand, Clock, TemperatureSensor};

/// MIG devices of a GPU, in all their slots.
fn mig_names(nvml: &Nvml, index: u32) -> Vec<String> {
    let device = nvml.device_by_index(index).unwrap();
    let slots = device.mig_device_count().unwrap_or(0);
    let devices = (0..slots).filter_map(|slot| device.mig_device_by_index(slot).ok());
    devices.map(|d| d.name().unwrap()).collect()
}

#[test]
fn every_scenario_can_be_enumerated_and_read() {
    let simulator = Simulator::load();
    for name in simulator.scenarios() {
        assert_eq!(simulator.choose(&name), 0, "{name}");
        let nvml = simulator.nvml();
        let count = nvml.device_count().unwrap();
        assert_eq!(count == 0, name == "no-gpus");
        let mut uuids = std::collections::BTreeSet::new();
        for index in 0..count {
            let device = nvml.device_by_index(index).unwrap();
            assert!(uuids.insert(device.uuid().unwrap()), "{name}: UUIDs are unique");
            assert_eq!(device.index().unwrap(), index);
            let temperature = device.temperature(TemperatureSensor::Gpu).unwrap();
            assert!((20..95).contains(&temperature), "{name}: {temperature}");
            assert!(device.power_usage().unwrap() <= device.enforced_power_limit().unwrap());
            assert!(device.total_energy_consumption().unwrap() > 0);
            let (now, max) = (device.clock_info(Clock::SM), device.max_clock_info(Clock::SM));
            assert!(now.unwrap() <= max.unwrap(), "{name}");
            let pci = device.pci_info().unwrap();
            assert_eq!(nvml.device_by_pci_bus_id(pci.bus_id).unwrap().index().unwrap(), index);
            let by_uuid = nvml.device_by_uuid(device.uuid().unwrap()).unwrap();
            assert_eq!(by_uuid.minor_number().unwrap(), device.minor_number().unwrap());
        }
        drop(nvml);
    }
}

/// Calls methods of a device, and gives the errors that are neither "not supported" nor "this
/// driver does not have it".
macro_rules! odd_answers {
    ($device:ident: $($method:ident($($argument:expr),*)),* $(,)?) => {{
        let mut odd = Vec::new();
        $(
            let answer = refusal($device.$method($($argument),*));
            let fine = ["nothing", "NotSupported", "FailedToLoadSymbol"];
            if !fine.iter().any(|f| answer.starts_with(f)) {
                odd.push(format!("{}: {answer}", stringify!($method)));
            }
        )*
        odd
    }};
}

#[test]
fn nvml_wrapper_understands_every_answer() {
    use nvml_wrapper::enum_wrappers::device::{
        EccCounter, MemoryError, MemoryLocation, PerformancePolicy, RetirementCause,
        TemperatureThreshold, TopologyLevel,
    };
    let simulator = Simulator::load();
    for name in simulator.scenarios() {
        assert_eq!(simulator.choose(&name), 0);
        let nvml = simulator.nvml();
        for index in 0..nvml.device_count().unwrap() {
            let whole = nvml.device_by_index(index).unwrap();
            let slots = 0..whole.mig_device_count().unwrap_or(0);
            let parts: Vec<_> = slots.filter_map(|s| whole.mig_device_by_index(s).ok()).collect();
            for device in std::iter::once(&whole).chain(&parts) {
                let odd = odd_answers!(device:
                    brand(), name(), uuid(), serial(), index(), minor_number(), pci_info(),
                    architecture(), board_id(), board_part_number(), vbios_version(),
                    info_rom_image_version(), validate_info_rom(), cuda_compute_capability(),
                    is_multi_gpu_board(), num_cores(), num_fans(), fan_speed(0), bus_type(),
                    clock_info(Clock::Graphics), max_clock_info(Clock::Video),
                    applications_clock(Clock::Memory), supported_memory_clocks(),
                    current_throttle_reasons(), supported_throttle_reasons(),
                    performance_state(), violation_status(PerformancePolicy::Power),
                    temperature(TemperatureSensor::Gpu),
                    temperature_threshold(TemperatureThreshold::MemoryMax),
                    power_usage(), total_energy_consumption(), enforced_power_limit(),
                    power_management_limit_constraints(), power_source(),
                    utilization_rates(), encoder_utilization(), decoder_utilization(),
                    encoder_stats(), encoder_sessions(), fbc_stats(), fbc_sessions_info(),
                    memory_info(), bar1_memory_info(), is_ecc_enabled(),
                    total_ecc_errors(MemoryError::Corrected, EccCounter::Aggregate),
                    memory_error_counter(
                        MemoryError::Uncorrected, EccCounter::Volatile, MemoryLocation::Device
                    ),
                    retired_pages(RetirementCause::DoubleBitEccError),
                    are_pages_pending_retired(), current_pcie_link_gen(), max_pcie_link_width(),
                    pcie_replay_counter(), max_pcie_link_speed(), is_in_persistent_mode(),
                    is_display_active(), compute_mode(), virtualization_mode(),
                    running_compute_processes(), running_graphics_processes(),
                    cpu_affinity(4), topology_nearest_gpus(TopologyLevel::Node),
                    supported_event_types(), mig_mode(), attributes(), gpm_support(),
                    is_accounting_enabled(), irq_num(), memory_bus_width(),
                );
                assert!(odd.is_empty(), "{name} {index} {}: {odd:#?}", device.name().unwrap());
            }
        }
        drop(nvml);
    }
}

#[test]
fn values_are_the_same_for_two_clients() {
    let (one, other) = (Simulator::play("dgx-h100"), Simulator::play("dgx-h100"));
    let read = |s: &Simulator| {
        let nvml = s.nvml();
        let device = nvml.device_by_index(2).unwrap();
        let memory = device.memory_info();
        (
            device.uuid().unwrap(),
            device.serial().unwrap(),
            device.total_energy_consumption().unwrap(),
            device.power_usage().unwrap(),
            memory.map(|m| (m.used, m.free, m.total)).unwrap_or_default(),
        )
    };
    assert_eq!(read(&one), read(&other));
}

#[test]
fn energy_is_the_integral_of_power() {
    let simulator = Simulator::play("dgx-h100");
    let nvml = simulator.nvml();
    for index in [0, 6, 7] {
        let device = nvml.device_by_index(index).unwrap();
        let before = device.total_energy_consumption().unwrap();
        let mut joules = 0.0;
        for _ in 0..6_000 {
            simulator.control("clock advance 50ms");
            joules += f64::from(device.power_usage().unwrap()) / 1e3 * 0.05;
            simulator.control("clock advance 50ms");
            joules += f64::from(device.power_usage().unwrap()) / 1e3 * 0.05;
        }
        let counted = (device.total_energy_consumption().unwrap() - before) as f64 / 1e3;
        assert!((counted - joules).abs() < joules * 1e-3, "{counted} {joules}");
    }
}

#[test]
fn instances_are_named_and_numbered_as_the_driver_does() {
    let simulator = Simulator::play("a100-mig-mixed");
    let nvml = simulator.nvml();
    assert_eq!(
        mig_names(&nvml, 0),
        ["3g.40gb", "2g.20gb", "1g.10gb"].map(|p| format!("NVIDIA A100-SXM4-80GB MIG {p}"))
    );
    assert_eq!(mig_names(&nvml, 1).len(), 7);
    assert!(mig_names(&nvml, 2).is_empty());
    let parent = nvml.device_by_index(0).unwrap();
    assert_eq!(refusal(parent.utilization_rates()), "NotSupported");
    assert!(parent.power_usage().is_ok());
    let part = parent.mig_device_by_index(0).unwrap();
    assert!(part.uuid().unwrap().starts_with("MIG-"));
    assert_eq!(refusal(part.power_usage()), "NotSupported");
    assert_eq!(part.memory_info().unwrap().total, 40_192 << 20);
    assert_eq!(part.attributes().unwrap().gpu_instance_slice_count, 3);
    assert_eq!(part.mig_parent_device().unwrap().uuid().unwrap(), parent.uuid().unwrap());
    let found = nvml.device_by_uuid(part.uuid().unwrap()).unwrap();
    assert_eq!(found.name().unwrap(), part.name().unwrap());
}

#[test]
fn slots_may_be_sparse_and_instances_shared_or_unused() {
    let simulator = Simulator::play("h200-mig-and-whole");
    let nvml = simulator.nvml();
    let device = nvml.device_by_index(2).unwrap();
    assert_eq!(refusal(device.mig_device_by_index(1)), "NotFound");
    assert_eq!(mig_names(&nvml, 2).len(), 4);
    let names = mig_names(&nvml, 3);
    assert!(names.contains(&"NVIDIA H200 MIG 1c.3g.71gb".to_owned()), "{names:?}");
    assert_eq!(names.len(), 3, "the 2g instance has no compute instance");
    assert_eq!(mig_names(&nvml, 0).len(), 0);
    assert_ne!(nvml.device_by_index(0).unwrap().minor_number().unwrap(), 0);
}

#[test]
fn boards_without_a_trait_say_so() {
    let simulator = Simulator::play("geforce-3090");
    let nvml = simulator.nvml();
    let device = nvml.device_by_index(0).unwrap();
    assert_eq!(device.brand().unwrap(), Brand::GeForce);
    assert_eq!(refusal(device.serial()), "NotSupported");
    assert_eq!(refusal(device.is_ecc_enabled()), "NotSupported");
    assert_eq!(refusal(device.mig_mode()), "NotSupported");
    assert!(!device.gpm_support().unwrap());
    assert!(device.fan_speed(0).is_ok());
    assert_eq!(refusal(device.fan_speed(7)), "InvalidArg");
    assert!(!device.link_wrapper_for(0).is_active().unwrap(), "no second board");

    assert_eq!(simulator.choose("t4-l4-mixed"), 19, "in use while there is a session");
    drop(nvml);
    assert_eq!(simulator.choose("t4-l4-mixed"), 0);
    let nvml = simulator.nvml();
    let device = nvml.device_by_index(0).unwrap();
    assert_eq!(refusal(device.link_wrapper_for(0).is_active()), "NotSupported");
    assert!(device.decoder_utilization().unwrap().utilization > 0, "media is at work");
}

#[test]
fn a_file_can_be_played_and_a_wrong_one_is_named() {
    let simulator = Simulator::load();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine.toml");
    let text = "[driver]\nversion = \"555.1\"\ncuda = \"12.5\"\n\
                [[gpu]]\nmodel = \"l4\"\nwork = \"full\"\ncount = 3\n";
    std::fs::write(&path, text).unwrap();
    assert_eq!(simulator.choose(path.to_str().unwrap()), 0);
    assert_eq!(simulator.nvml().device_count().unwrap(), 3);
    assert_eq!(simulator.choose("no-such-scenario"), 2);
    assert_eq!(simulator.nvml().device_count().unwrap(), 3, "a wrong name changes nothing");
    std::fs::write(&path, "[driver]\nversion = 5\n").unwrap();
    assert_eq!(simulator.choose(path.to_str().unwrap()), 999);
    assert!(simulator.try_nvml().is_err());
    assert_eq!(simulator.choose("gh200"), 0);
    assert_eq!(simulator.nvml().device_count().unwrap(), 1);
}

#[test]
fn a_wrong_scenario_in_the_environment_fails_init() {
    if crate::common::in_child(
        "scenarios::a_wrong_scenario_in_the_environment_fails_init",
        &[("NVML_SIM_SCENARIO", "dgx-h1000")],
    ) {
        assert_eq!(refusal(Simulator::load().try_nvml()), "Unknown");
    }
}
