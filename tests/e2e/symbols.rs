//! Older drivers lack functions. Each that is missing costs the rows that need it, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use expect_test::expect;

use crate::support::{Page, Setup};

const SCENARIO: &str = "h200-mig-and-whole";

/// What no driver that can be served lacks: without these there is no NVML, or no GPU.
const NEEDED: &[&str] =
    &["nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID"];

/// Readings as the lines of the page, by name and labels.
fn readings(page: &Page) -> BTreeMap<String, String> {
    page.families
        .iter()
        .filter(|family| !family.name.starts_with("nvml_exporter_"))
        .filter(|family| !family.name.starts_with("process_"))
        // Time that goes by, whatever the scenario's clock does.
        .filter(|family| !family.name.starts_with("nvml_process_gpu_"))
        .flat_map(|family| &family.samples)
        .map(|sample| (format!("{} {:?}", sample.name, sample.labels), sample.digits.clone()))
        .collect()
}

fn names(series: &BTreeMap<String, String>) -> BTreeSet<&str> {
    series.keys().map(|series| series.split(' ').next().unwrap()).collect()
}

/// The functions that the exporter calls here, beside those that it needs.
fn called(setup: fn() -> Setup) -> BTreeSet<String> {
    let exporter = setup().ready();
    exporter.until_settled();
    let trace = exporter.trace();
    // A call that waits for an event may not have returned yet.
    let waits = ["nvmlEventSetWait_v2".to_owned()];
    let functions = trace.into_iter().map(|call| call.function).chain(waits);
    functions.filter(|function| !NEEDED.contains(&function.as_str())).collect()
}

/// The page without a function, against the page with it.
fn without(setup: fn() -> Setup, function: &str, whole: &BTreeMap<String, String>) -> String {
    let exporter = setup().env("NVML_SIM_HIDE", function).ready();
    let page = exporter.until_settled();
    assert!(page.is("nvml_up", &[], 1.0), "{function}");
    assert_eq!(page.sum("nvml_exporter_device_up").to_bits(), 4f64.to_bits(), "{function}");
    assert!(exporter.trace().iter().all(|call| call.function != function), "{function}");
    let rest = readings(&page);
    let changed: BTreeSet<&str> = rest
        .iter()
        .filter(|(series, value)| whole.get(*series).is_some_and(|before| before != *value))
        .map(|(series, _)| series.split(' ').next().unwrap())
        .collect();
    let new = rest.keys().filter(|series| !whole.contains_key(*series)).count();
    let fewer = whole.len() + new - rest.len();
    let lost: Vec<&str> = names(whole).difference(&names(&rest)).copied().collect();
    let lost = lost.join(" ");
    let changed: Vec<&str> = changed.into_iter().collect();
    let changed = changed.join(" ");
    match (changed.is_empty(), lost.is_empty()) {
        (true, true) => format!("{function}: -{fewer} +{new}\n"),
        (true, false) => format!("{function}: -{fewer} +{new} {lost}\n"),
        _ => format!("{function}: -{fewer} +{new} {lost}; other values: {changed}\n"),
    }
}

fn plain() -> Setup {
    Setup::simulate(SCENARIO).frozen()
}

/// Asked who uses the GPUs, one of which accounts for that.
fn with_users() -> Setup {
    let own = std::process::id();
    let counters = "DCGM_FI_DEV_GPU_TEMP, gauge, Temperature.\n";
    plain()
        .counters(counters)
        .args(["--usage-by=process"])
        .control(&[&format!("gpu * processes {own}:1GiB:5"), "gpu 0 accounting on"])
}

/// By function: how many series go, and how many come in their place with other labels; the
/// families that go altogether.
#[test]
fn each_function_that_is_missing_costs_its_own_rows() {
    let whole = readings(&plain().ready().until_settled());
    let table: String =
        called(plain).iter().map(|function| without(plain, function, &whole)).collect();
    expect![[r#"
        nvmlDeviceGetArchitecture: -4 +4
        nvmlDeviceGetBoardPartNumber: -4 +4
        nvmlDeviceGetBrand: -4 +4
        nvmlDeviceGetClockInfo: -16 +0 DCGM_FI_DEV_MEM_CLOCK DCGM_FI_DEV_SM_CLOCK
        nvmlDeviceGetComputeInstanceId: -409 +134 nvml_mig_instance_info
        nvmlDeviceGetCudaComputeCapability: -4 +4
        nvmlDeviceGetCurrPcieLinkGeneration: -8 +0 DCGM_FI_DEV_PCIE_LINK_GEN
        nvmlDeviceGetCurrPcieLinkWidth: -8 +0 DCGM_FI_DEV_PCIE_LINK_WIDTH
        nvmlDeviceGetCurrentClocksEventReasons: -0 +0
        nvmlDeviceGetDecoderUtilization: -2 +0 DCGM_FI_DEV_DEC_UTIL
        nvmlDeviceGetEccMode: -16 +0 DCGM_FI_DEV_ECC_CURRENT DCGM_FI_DEV_ECC_PENDING
        nvmlDeviceGetEncoderUtilization: -2 +0 DCGM_FI_DEV_ENC_UTIL
        nvmlDeviceGetEnforcedPowerLimit: -8 +0 DCGM_FI_DEV_ENFORCED_POWER_LIMIT
        nvmlDeviceGetFieldValues: -350 +0 DCGM_FI_DEV_BOARD_LIMIT_VIOLATION DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS DCGM_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_NS DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS DCGM_FI_DEV_ECC_DBE_AGG_TOTAL DCGM_FI_DEV_ECC_DBE_VOL_TOTAL DCGM_FI_DEV_ECC_SBE_AGG_TOTAL DCGM_FI_DEV_ECC_SBE_VOL_TOTAL DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION DCGM_FI_DEV_LOW_UTIL_VIOLATION DCGM_FI_DEV_MEMORY_TEMP DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL DCGM_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL DCGM_FI_DEV_NVLINK_ERROR_DL_CRC DCGM_FI_DEV_NVLINK_ERROR_DL_RECOVERY DCGM_FI_DEV_NVLINK_ERROR_DL_REPLAY DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL DCGM_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS DCGM_FI_DEV_POWER_VIOLATION DCGM_FI_DEV_RELIABILITY_VIOLATION DCGM_FI_DEV_ROW_REMAP_FAILURE DCGM_FI_DEV_ROW_REMAP_PENDING DCGM_FI_DEV_SYNC_BOOST_VIOLATION DCGM_FI_DEV_THERMAL_VIOLATION DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS nvml_clocks_event_seconds_total nvml_nvlink_rx_bytes_total nvml_nvlink_tx_bytes_total nvml_nvlink_up nvml_pcie_rx_bytes_total nvml_pcie_tx_bytes_total
        nvmlDeviceGetGpuFabricInfoV: -32 +0 DCGM_FI_DEV_FABRIC_HEALTH_MASK DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY DCGM_FI_DEV_FABRIC_MANAGER_ERROR_CODE DCGM_FI_DEV_FABRIC_MANAGER_STATUS
        nvmlDeviceGetGpuInstanceId: -409 +134 nvml_mig_instance_info
        nvmlDeviceGetGridLicensableFeatures_v4: -8 +0 DCGM_FI_DEV_VGPU_LICENSE_STATUS
        nvmlDeviceGetInforomImageVersion: -4 +4
        nvmlDeviceGetMarginTemperature: -8 +0 DCGM_FI_DEV_GPU_TEMP_LIMIT
        nvmlDeviceGetMaxClockInfo: -8 +0 DCGM_FI_DEV_MAX_SM_CLOCK
        nvmlDeviceGetMaxMigDeviceCount: -409 +134 nvml_mig_instance_info
        nvmlDeviceGetMaxPcieLinkGeneration: -8 +0 DCGM_FI_DEV_PCIE_MAX_LINK_GEN
        nvmlDeviceGetMaxPcieLinkWidth: -8 +0 DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH
        nvmlDeviceGetMemoryInfo_v2: -8 +0 DCGM_FI_DEV_FB_RESERVED; other values: DCGM_FI_DEV_FB_USED
        nvmlDeviceGetMigDeviceHandleByIndex: -409 +134 nvml_mig_instance_info
        nvmlDeviceGetMigMode: -415 +132 DCGM_FI_DEV_MIG_MODE nvml_mig_instance_info nvml_mig_mode_pending
        nvmlDeviceGetMinorNumber: -4 +4
        nvmlDeviceGetName: -1001 +726 nvml_mig_instance_info
        nvmlDeviceGetNvLinkState: -76 +0 nvml_nvlink_up
        nvmlDeviceGetPciInfo_v3: -994 +994
        nvmlDeviceGetPcieReplayCounter: -8 +0 DCGM_FI_DEV_PCIE_REPLAY_COUNTER
        nvmlDeviceGetPerformanceState: -8 +0 DCGM_FI_DEV_PSTATE
        nvmlDeviceGetPersistenceMode: -8 +0 DCGM_FI_DEV_PERSISTENCE_MODE
        nvmlDeviceGetPowerManagementDefaultLimit: -8 +0 DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF
        nvmlDeviceGetPowerManagementLimit: -8 +0 DCGM_FI_DEV_POWER_MGMT_LIMIT
        nvmlDeviceGetPowerUsage: -8 +0 DCGM_FI_DEV_POWER_USAGE
        nvmlDeviceGetRetiredPages: -0 +0
        nvmlDeviceGetRowRemapperHistogram: -8 +0 DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE
        nvmlDeviceGetSerial: -4 +4
        nvmlDeviceGetSramEccErrorStatus: -8 +0 DCGM_FI_DEV_THRESHOLD_SRM
        nvmlDeviceGetTemperature: -8 +0 DCGM_FI_DEV_GPU_TEMP
        nvmlDeviceGetTemperatureThreshold: -32 +0 DCGM_FI_DEV_GPU_MAX_OP_TEMP DCGM_FI_DEV_MEM_MAX_OP_TEMP DCGM_FI_DEV_SHUTDOWN_TEMP DCGM_FI_DEV_SLOWDOWN_TEMP
        nvmlDeviceGetUtilizationRates: -4 +0 DCGM_FI_DEV_GPU_UTIL DCGM_FI_DEV_MEM_COPY_UTIL
        nvmlDeviceGetVbiosVersion: -4 +4
        nvmlDeviceRegisterEvents: -295 +0 DCGM_EXP_XID_ERRORS_TOTAL DCGM_FI_DEV_XID_ERRORS nvml_xid_info
        nvmlDeviceValidateInforom: -12 +0 DCGM_FI_DEV_INFOROM_CONFIG_VALID
        nvmlEventSetCreate: -295 +0 DCGM_EXP_XID_ERRORS_TOTAL DCGM_FI_DEV_XID_ERRORS nvml_xid_info
        nvmlEventSetWait_v2: -0 +0
        nvmlGpmMetricsGet: -40 +0 DCGM_FI_PROF_DRAM_ACTIVE DCGM_FI_PROF_GR_ENGINE_ACTIVE DCGM_FI_PROF_PCIE_RX_BYTES DCGM_FI_PROF_PCIE_TX_BYTES DCGM_FI_PROF_PIPE_TENSOR_ACTIVE
        nvmlGpmMigSampleGet: -18 +0
        nvmlGpmQueryDeviceSupport: -40 +0 DCGM_FI_PROF_DRAM_ACTIVE DCGM_FI_PROF_GR_ENGINE_ACTIVE DCGM_FI_PROF_PCIE_RX_BYTES DCGM_FI_PROF_PCIE_TX_BYTES DCGM_FI_PROF_PIPE_TENSOR_ACTIVE
        nvmlGpmSampleAlloc: -40 +0 DCGM_FI_PROF_DRAM_ACTIVE DCGM_FI_PROF_GR_ENGINE_ACTIVE DCGM_FI_PROF_PCIE_RX_BYTES DCGM_FI_PROF_PCIE_TX_BYTES DCGM_FI_PROF_PIPE_TENSOR_ACTIVE
        nvmlGpmSampleGet: -22 +0 DCGM_FI_PROF_PCIE_RX_BYTES DCGM_FI_PROF_PCIE_TX_BYTES
        nvmlInitWithFlags: -0 +0
        nvmlSystemGetCudaDriverVersion_v2: -1 +1
        nvmlSystemGetDriverVersion: -991 +955 DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS
        nvmlSystemGetNVMLVersion: -1 +1
    "#]].assert_eq(&table);
}

/// The same of what is asked of a GPU's users. Samples come from another function where one is
/// missing.
#[test]
fn each_function_that_tells_of_users_costs_its_own_families() {
    let whole = readings(&with_users().ready().until_settled());
    let mut functions = called(with_users);
    functions.retain(|name| name.contains("Process") || name.contains("Accounting"));
    let table: String =
        functions.iter().map(|function| without(with_users, function, &whole)).collect();
    expect![[r#"
        nvmlDeviceGetAccountingBufferSize: -0 +0
        nvmlDeviceGetAccountingMode: -3 +0 nvml_process_accounted_max_memory_bytes nvml_process_accounted_memory_copy_utilization_ratio nvml_process_accounted_sm_utilization_ratio
        nvmlDeviceGetAccountingPids: -3 +0 nvml_process_accounted_max_memory_bytes nvml_process_accounted_memory_copy_utilization_ratio nvml_process_accounted_sm_utilization_ratio
        nvmlDeviceGetAccountingStats: -3 +0 nvml_process_accounted_max_memory_bytes nvml_process_accounted_memory_copy_utilization_ratio nvml_process_accounted_sm_utilization_ratio
        nvmlDeviceGetComputeRunningProcesses_v3: -0 +0
        nvmlDeviceGetGraphicsRunningProcesses_v3: -0 +0
        nvmlDeviceGetMPSComputeRunningProcesses_v3: -0 +0
        nvmlDeviceGetProcessUtilization: -0 +0
    "#]].assert_eq(&table);
}
