//! The real library's manners: what it checks, in what order, and how it says no.

use std::mem::zeroed;
use std::ptr::null_mut;

use crate::common::{Simulator, refusal};
use nvml_wrapper::Nvml;
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlFieldValue_t, nvmlGpuFabricInfo_v2_t, nvmlGpuFabricInfo_v3_t,
    nvmlGpuInstanceInfo_t, nvmlMemory_v2_t,
};

/// Field values as the product reads them.
fn fields(nvml: &Nvml, device: nvmlDevice_t, wanted: &[(u32, u32)]) -> Vec<nvmlFieldValue_t> {
    // SAFETY: all zeros is a valid value of the struct.
    let mut values = vec![unsafe { zeroed::<nvmlFieldValue_t>() }; wanted.len()];
    for (value, (id, scope)) in values.iter_mut().zip(wanted) {
        value.fieldId = *id;
        value.scopeId = *scope;
    }
    let call = nvml.lib().nvmlDeviceGetFieldValues.as_ref().unwrap();
    // SAFETY: the array is as long as announced.
    let code = unsafe { call(device, i32::try_from(wanted.len()).unwrap(), values.as_mut_ptr()) };
    assert_eq!(code, 0);
    values
}

/// The handle of a GPU.
fn handle(nvml: &Nvml, index: u32) -> nvmlDevice_t {
    // SAFETY: the handle is used while `nvml` lives.
    unsafe { nvml.device_by_index(index).unwrap().handle() }
}

/// The union of a field value as an integer.
fn integer(value: &nvmlFieldValue_t) -> u64 {
    // SAFETY: the union is plain numbers.
    unsafe { value.value.ullVal }
}

#[test]
fn sessions_are_counted() {
    let simulator = Simulator::play("dgx-h100");
    let (one, other) = (simulator.nvml(), simulator.nvml());
    let device = handle(&one, 0);
    one.shutdown().unwrap();
    assert_eq!(other.device_count().unwrap(), 8);
    let lib = simulator.nvml();
    lib.shutdown().unwrap();
    other.shutdown().unwrap();
    let get = simulator
        .symbol::<unsafe extern "C" fn(nvmlDevice_t, u32, *mut u32) -> u32>(
            "nvmlDeviceGetTemperature",
        )
        .unwrap();
    let mut temperature = 0;
    // SAFETY: a valid signature and a valid out-parameter.
    assert_eq!(unsafe { get(device, 0, &raw mut temperature) }, 1, "uninitialised");
    let shutdown = simulator.symbol::<unsafe extern "C" fn() -> u32>("nvmlShutdown").unwrap();
    // SAFETY: takes nothing.
    assert_eq!(unsafe { shutdown() }, 1);
}

#[test]
fn bad_arguments_are_refused() {
    let simulator = Simulator::play("dgx-h100");
    let nvml = simulator.nvml();
    let lib = nvml.lib();
    let device = handle(&nvml, 0);
    let temperature = lib.nvmlDeviceGetTemperature.as_ref().unwrap();
    let name = lib.nvmlDeviceGetName.as_ref().unwrap();
    let (mut value, mut small, mut count) = (0, [0; 4], 0);
    // SAFETY: NULL and made-up handles are what is tried here; the library does not follow them.
    unsafe {
        assert_eq!(temperature(device, 0, null_mut()), 2);
        assert_eq!(temperature(null_mut(), 0, &raw mut value), 2);
        assert_eq!(temperature(device.wrapping_byte_add(1 << 30), 0, &raw mut value), 2);
        assert_eq!(temperature(device, 7, &raw mut value), 2);
        assert_eq!(name(device, small.as_mut_ptr(), 4), 7);
        let clocks = lib.nvmlDeviceGetSupportedMemoryClocks.as_ref().unwrap();
        assert_eq!(clocks(device, &raw mut count, null_mut()), 7);
        assert_eq!(count, 2, "says how many there are");
    }
    assert_eq!(refusal(nvml.device_by_index(8)), "InvalidArg");
    assert_eq!(refusal(nvml.device_by_uuid("GPU-none")), "NotFound");
}

#[test]
fn version_words_are_checked() {
    let simulator = Simulator::play("dgx-h100");
    let nvml = simulator.nvml();
    let device = handle(&nvml, 0);
    let memory = nvml.lib().nvmlDeviceGetMemoryInfo_v2.as_ref().unwrap();
    let fabric = nvml.lib().nvmlDeviceGetGpuFabricInfoV.as_ref().unwrap();
    // SAFETY: valid structs; all zeros is a value of each.
    unsafe {
        let mut info: nvmlMemory_v2_t = zeroed();
        assert_eq!(memory(device, &raw mut info), 25);
        info.version = u32::try_from(size_of::<nvmlMemory_v2_t>()).unwrap() | 2 << 24;
        assert_eq!(memory(device, &raw mut info), 0);
        assert_eq!(info.total, info.used + info.free + info.reserved);

        let mut v3: nvmlGpuFabricInfo_v3_t = zeroed();
        assert_eq!(fabric(device, &raw mut v3), 25);
        v3.version = u32::try_from(size_of::<nvmlGpuFabricInfo_v3_t>()).unwrap() | 3 << 24;
        assert_eq!(fabric(device, &raw mut v3), 0);
        assert_eq!((v3.state, v3.healthSummary), (3, 1));
        let mut v2: nvmlGpuFabricInfo_v3_t = zeroed();
        v2.version = u32::try_from(size_of::<nvmlGpuFabricInfo_v2_t>()).unwrap() | 2 << 24;
        assert_eq!(fabric(device, &raw mut v2), 0);
        assert_eq!((v2.state, v2.healthSummary), (3, 0), "the summary is beyond version 2");
    }
}

#[test]
fn field_values_have_their_own_codes_scopes_and_types() {
    let simulator = Simulator::play("dgx-h100");
    simulator.control("gpu 0 field 83 error 999");
    simulator.control("gpu 0 link 4 set crc_flit_errors 12");
    let nvml = simulator.nvml();
    let device = handle(&nvml, 0);
    let wanted = [
        (82, 0),
        (83, 0),
        (3, 0),
        (138, 0),
        (138, 17),
        (138, u32::MAX),
        (138, 18),
        (163, 4),
        (163, u32::MAX),
        (193, 0),
        (201, 0),
        (9_999, 0),
        (30, 0),
    ];
    let values = fields(&nvml, device, &wanted);
    let codes: Vec<u32> = values.iter().map(|v| v.nvmlReturn).collect();
    assert_eq!(codes, [0, 999, 0, 0, 0, 0, 2, 0, 0, 0, 3, 2, 3]);
    let types: Vec<u32> = values.iter().map(|v| v.valueType).collect();
    assert_eq!(types[..6], [1, 0, 0, 3, 3, 3], "ECC totals keep the type they came with");
    assert_eq!(types[9], 5, "limits are signed");
    assert!(integer(&values[5]) > 17 * integer(&values[3]), "all links together");
    assert_eq!((integer(&values[7]), integer(&values[8])), (12, 12));
    assert!(values[0].timestamp > 1_700_000_000_000_000);
}

#[test]
fn ecc_totals_without_ecc_are_left_alone() {
    let simulator = Simulator::play("dgx-h100");
    simulator.control("gpu 0 set ecc_mode off");
    let nvml = simulator.nvml();
    let values = fields(&nvml, handle(&nvml, 0), &[(1, 0), (3, 0)]);
    assert_eq!((values[0].nvmlReturn, integer(&values[0])), (0, 0));
    let total = &values[1];
    assert_eq!((total.nvmlReturn, total.timestamp, total.valueType), (0, 0, 0));
}

#[test]
fn fields_were_renumbered_by_driver_580_82() {
    for (version, id, other) in [("570.133.20", 252, 270), ("580.65.06", 252, 270)] {
        let simulator = Simulator::play("dgx-h100");
        simulator.control(&format!("driver load {version}"));
        let nvml = simulator.nvml();
        let values = fields(&nvml, handle(&nvml, 0), &[(id, 0), (other, 0)]);
        assert_eq!((values[0].nvmlReturn, values[1].nvmlReturn), (0, 3), "{version}");
    }
    let simulator = Simulator::play("h200-mig-and-whole");
    let nvml = simulator.nvml();
    let values = fields(&nvml, handle(&nvml, 0), &[(252, 0), (270, 0)]);
    assert_eq!((values[0].nvmlReturn, values[1].nvmlReturn), (3, 0));
}

/// Placement of a GPU instance through its handle: code, profile, start, size.
fn placement(nvml: &Nvml, gpu: u32, instance: u32) -> Result<(u32, u32, u32), u32> {
    let lib = nvml.lib();
    let by_id = lib.nvmlDeviceGetGpuInstanceById.as_ref().unwrap();
    let info = lib.nvmlGpuInstanceGetInfo.as_ref().unwrap();
    // SAFETY: all zeros is a value of the struct, and the out-parameters are live.
    unsafe {
        let mut raw = null_mut();
        match by_id(handle(nvml, gpu), instance, &raw mut raw) {
            0 => {}
            code => return Err(code),
        }
        let mut told = zeroed::<nvmlGpuInstanceInfo_t>();
        match info(raw, &raw mut told) {
            0 => {}
            code => return Err(code),
        }
        assert_eq!(told.device, handle(nvml, gpu));
        assert_eq!(told.id, instance);
        Ok((told.profileId, told.placement.start, told.placement.size))
    }
}

#[test]
fn gpu_instances_tell_profile_and_place() {
    let simulator = Simulator::play("a100-mig-mixed");
    let nvml = simulator.nvml();
    let board = |profiles: &str, ids: &[u32]| -> Vec<(u32, u32, u32)> {
        simulator.control(&format!("gpu 0 mig {profiles}"));
        ids.iter().map(|id| placement(&nvml, 0, *id).unwrap()).collect()
    };
    assert_eq!(board("7g.80gb", &[0]), [(0, 0, 8)]);
    assert_eq!(board("4g.40gb,2g.20gb,1g.10gb", &[1, 5, 13]), [(5, 0, 4), (14, 4, 2), (19, 6, 1)]);
    assert_eq!(board("3g.40gb,3g.40gb", &[1, 2]), [(9, 0, 4), (9, 4, 4)]);
    assert_eq!(board("1g.20gb,1g.10gb+me", &[3, 9]), [(15, 0, 2), (20, 2, 1)]);
    let seven: Vec<_> = (0..7).map(|start| (19, start, 1)).collect();
    let small = ["1g.10gb"; 7].join(",");
    assert_eq!(board(&small, &[7, 8, 9, 10, 11, 12, 13]), seven);

    assert_eq!(placement(&nvml, 0, 1), Err(6), "no instance of that id");
    assert_eq!(placement(&nvml, 2, 0), Err(3), "no MIG mode");
    simulator.control("gpu 0 error nvmlDeviceGetGpuInstanceById NO_PERMISSION");
    assert_eq!(placement(&nvml, 0, 7), Err(4));
}

#[test]
fn a_gpu_instance_handle_goes_stale_with_the_layout() {
    let simulator = Simulator::play("a100-mig-mixed");
    let nvml = simulator.nvml();
    let lib = nvml.lib();
    let by_id = lib.nvmlDeviceGetGpuInstanceById.as_ref().unwrap();
    let info = lib.nvmlGpuInstanceGetInfo.as_ref().unwrap();
    // SAFETY: as in `placement`; a stale handle is only compared.
    unsafe {
        let mut raw = null_mut();
        assert_eq!(by_id(handle(&nvml, 1), 7, &raw mut raw), 0);
        let mut told = zeroed::<nvmlGpuInstanceInfo_t>();
        simulator.control("gpu 1 mig 7g.80gb");
        assert_eq!(info(raw, &raw mut told), 2);
        assert_eq!(info(null_mut(), &raw mut told), 2);
    }
}
