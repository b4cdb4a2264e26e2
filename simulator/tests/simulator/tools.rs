//! What the environment can ask for: a control file, a trace, missing symbols.

use std::io::Write as _;

use crate::common::{Simulator, in_child, refusal};

/// Every symbol that an R450 driver lacks and a client may well look for.
const LATER: [&str; 5] = [
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlGpmSampleGet",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetGpuFabricInfo",
];

#[test]
fn what_a_driver_lacks_is_not_found() {
    let simulator = Simulator::play("v100-old-driver");
    let found = |name| simulator.symbol::<unsafe extern "C" fn()>(name).is_some();
    assert!(LATER.iter().all(|name| !found(name)));
    assert!(found("nvmlDeviceGetMemoryInfo") && found("nvmlEventSetWait"));
    let nvml = simulator.nvml();
    let device = nvml.device_by_index(0).unwrap();
    assert!(refusal(device.memory_info()).contains("FailedToLoadSymbol"));
    drop(nvml);
    assert_eq!(simulator.choose("dgx-h100"), 0);
    assert!(LATER.iter().all(|name| found(name)), "another scenario has them again");
    assert!(simulator.nvml().device_by_index(0).unwrap().memory_info().is_ok());
}

#[test]
fn any_symbol_can_be_hidden() {
    let hidden = [("NVML_SIM_HIDE", "nvmlDeviceGetName,nvmlDeviceGetFieldValues")];
    if in_child("tools::any_symbol_can_be_hidden", &hidden) {
        let simulator = Simulator::play("dgx-h100");
        let nvml = simulator.nvml();
        let device = nvml.device_by_index(0).unwrap();
        assert!(refusal(device.name()).contains("FailedToLoadSymbol"));
        assert!(refusal(device.field_values_for(&[])).contains("FailedToLoadSymbol"));
        assert!(device.uuid().is_ok());
    }
}

#[test]
fn the_control_file_is_followed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("control");
    if in_child(
        "tools::the_control_file_is_followed",
        &[("NVML_SIM_CONTROL", path.to_str().unwrap()), ("NVML_SIM_CLOCK", "frozen")],
    ) {
        let path = std::env::var("NVML_SIM_CONTROL").unwrap();
        std::fs::write(&path, "driver unload\n").unwrap();
        let simulator = Simulator::load();
        assert_eq!(refusal(simulator.try_nvml()), "DriverNotLoaded");
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        writeln!(file, "driver load\ngpu 2 set power 123").unwrap();
        let nvml = simulator.nvml();
        let device = nvml.device_by_index(2).unwrap();
        assert_eq!(device.power_usage().unwrap(), 123_000);
        writeln!(file, "this is no command\ngpu 2 unset *").unwrap();
        assert_ne!(device.power_usage().unwrap(), 123_000);
        assert_eq!(device.power_usage().unwrap(), device.power_usage().unwrap(), "frozen");
    }
}

#[test]
fn calls_are_traced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    if in_child("tools::calls_are_traced", &[("NVML_SIM_TRACE", path.to_str().unwrap())]) {
        let simulator = Simulator::play("a100-mig-mixed");
        let nvml = simulator.nvml();
        let device = nvml.device_by_index(1).unwrap();
        device.name().unwrap();
        device.mig_device_by_index(3).unwrap().uuid().unwrap();
        device.field_values_for(&[nvml_wrapper::structs::device::FieldId(83)]).unwrap();
        let trace = std::fs::read_to_string(std::env::var("NVML_SIM_TRACE").unwrap()).unwrap();
        let calls: Vec<String> = trace
            .lines()
            .map(|line| line.split(' ').skip(2).collect::<Vec<_>>().join(" "))
            .collect();
        for wanted in [
            "nvmlInit_v2 - = 0",
            "nvmlDeviceGetHandleByIndex_v2 - 1 = 0",
            "nvmlDeviceGetMigDeviceHandleByIndex gpu1 3 = 0",
            "nvmlDeviceGetUUID gpu1/gi10/ci0 96 = 0",
            "nvmlDeviceGetFieldValues gpu1 83 = 0",
        ] {
            assert!(calls.iter().any(|call| call == wanted), "{wanted} is not in {calls:#?}");
        }
    }
}

#[test]
fn the_seed_makes_another_machine_of_the_same_kind() {
    let uuid = || Simulator::play("dgx-h100").nvml().device_by_index(0).unwrap().uuid().unwrap();
    let unseeded = uuid();
    let hint = [("NVML_SIM_SEED", "7"), ("UNSEEDED", unseeded.as_str())];
    if in_child("tools::the_seed_makes_another_machine_of_the_same_kind", &hint) {
        assert_ne!(uuid(), std::env::var("UNSEEDED").unwrap());
        assert_eq!(uuid(), uuid());
    }
}
