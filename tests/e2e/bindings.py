"""What NVIDIA's own bindings read, in DCGM's units, as JSON.

One row for each row of the exporter's page: {"gpu", "instance", "uuid", "values"}. A value that
NVML does not give is null. Nothing here is shared with the exporter, conversions least of all.
"""

import json
import time

import pynvml as nvml

MIB = 1024 * 1024

THRESHOLDS = {
    "DCGM_FI_DEV_SHUTDOWN_TEMP": nvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN,
    "DCGM_FI_DEV_SLOWDOWN_TEMP": nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN,
    "DCGM_FI_DEV_MEM_MAX_OP_TEMP": nvml.NVML_TEMPERATURE_THRESHOLD_MEM_MAX,
    "DCGM_FI_DEV_GPU_MAX_OP_TEMP": nvml.NVML_TEMPERATURE_THRESHOLD_GPU_MAX,
}

FIELDS = {
    "DCGM_FI_DEV_MEMORY_TEMP": nvml.NVML_FI_DEV_MEMORY_TEMP,
    "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION": nvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION,
    "DCGM_FI_DEV_POWER_VIOLATION": nvml.NVML_FI_DEV_PERF_POLICY_POWER,
    "DCGM_FI_DEV_THERMAL_VIOLATION": nvml.NVML_FI_DEV_PERF_POLICY_THERMAL,
    "DCGM_FI_DEV_SYNC_BOOST_VIOLATION": nvml.NVML_FI_DEV_PERF_POLICY_SYNC_BOOST,
    "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION": nvml.NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT,
    "DCGM_FI_DEV_LOW_UTIL_VIOLATION": nvml.NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION,
    "DCGM_FI_DEV_RELIABILITY_VIOLATION": nvml.NVML_FI_DEV_PERF_POLICY_RELIABILITY,
    "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS": nvml.NVML_FI_DEV_PERF_POLICY_POWER,
    "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_NS": nvml.NVML_FI_DEV_PERF_POLICY_SYNC_BOOST,
    "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS":
        nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN,
    "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS":
        nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN,
    "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS":
        nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN,
    "DCGM_FI_DEV_RETIRED_DBE": nvml.NVML_FI_DEV_RETIRED_DBE,
    "DCGM_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS": nvml.NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS,
    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL":
        nvml.NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL,
    "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL":
        nvml.NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL,
    "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL":
        nvml.NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL,
    "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL":
        nvml.NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL,
    "DCGM_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL":
        nvml.NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL,
    "DCGM_FI_DEV_NVLINK_ERROR_DL_CRC": nvml.NVML_FI_DEV_NVLINK_ERROR_DL_CRC,
    "DCGM_FI_DEV_NVLINK_ERROR_DL_RECOVERY": nvml.NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY,
    "DCGM_FI_DEV_NVLINK_ERROR_DL_REPLAY": nvml.NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY,
    "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS":
        nvml.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS,
    "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS":
        nvml.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS,
    "DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS":
        nvml.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS,
    "nvml_pcie_tx_bytes_total": nvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES,
    "nvml_pcie_rx_bytes_total": nvml.NVML_FI_DEV_PCIE_COUNT_RX_BYTES,
}

# Metrics of GPM, of a device and of a board alone.
SHARES = {
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": nvml.NVML_GPM_METRIC_GRAPHICS_UTIL,
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": nvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL,
    "DCGM_FI_PROF_DRAM_ACTIVE": nvml.NVML_GPM_METRIC_DRAM_BW_UTIL,
}
RATES = {
    "DCGM_FI_PROF_PCIE_TX_BYTES": nvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC,
    "DCGM_FI_PROF_PCIE_RX_BYTES": nvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC,
}

# Samples of GPM lie further apart than this, in seconds.
APART = 0.11

# Link by link since Blackwell; the sum elsewhere is not asked for by a scope.
ALL_LINKS = 0xFFFFFFFF


def asked(read):
    """What `read` answers, or None for any of NVML's errors."""
    try:
        return read()
    except nvml.NVMLError:
        return None


def of(value, convert):
    return None if value is None else convert(value)


def driver():
    version = nvml.nvmlSystemGetDriverVersion()
    return tuple(int(part) for part in version.split("."))


def field(handle, number, scope=0):
    """One field value. The bindings number some fields as drivers from 580.82 on do."""
    if 269 <= number <= 273 and driver() < (580, 82):
        number -= 18
    values = asked(lambda: nvml.nvmlDeviceGetFieldValues(handle, [(number, scope)]))
    if values is None or values[0].nvmlReturn != nvml.NVML_SUCCESS:
        return None
    value = values[0].value
    return value.uiVal if values[0].valueType == nvml.NVML_VALUE_TYPE_UNSIGNED_INT else value.ullVal


def memory(handle):
    v2 = driver() >= (510,)
    info = asked(lambda: nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2)
                 if v2 else nvml.nvmlDeviceGetMemoryInfo(handle))
    return {
        "DCGM_FI_DEV_FB_TOTAL": of(info, lambda i: i.total // MIB),
        "DCGM_FI_DEV_FB_FREE": of(info, lambda i: i.free // MIB),
        "DCGM_FI_DEV_FB_USED": of(info, lambda i: i.used // MIB),
        "DCGM_FI_DEV_FB_RESERVED": of(info, lambda i: i.reserved // MIB) if v2 else None,
    }


def fabric(handle):
    info = nvml.c_nvmlGpuFabricInfo_v3_t()
    if asked(lambda: nvml.nvmlDeviceGetGpuFabricInfoV(handle, nvml.byref(info))) is None:
        info = None
    supported = info is not None and info.state != 0
    return {
        "DCGM_FI_DEV_FABRIC_MANAGER_STATUS": of(info, lambda i: i.state),
        "DCGM_FI_DEV_FABRIC_MANAGER_ERROR_CODE": of(info if supported else None,
                                                    lambda i: i.status),
        "DCGM_FI_DEV_FABRIC_HEALTH_MASK": of(info, lambda i: i.healthMask),
        "DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY": of(info, lambda i: i.healthSummary),
    }


def board(handle):
    """What is the board's, and stands on each of its instances' rows."""
    watts = lambda milliwatts: milliwatts // 1000
    mig = asked(lambda: nvml.nvmlDeviceGetMigMode(handle))
    ecc = asked(lambda: nvml.nvmlDeviceGetEccMode(handle))
    use = asked(lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
    rows = asked(lambda: nvml.nvmlDeviceGetRemappedRows(handle))
    reasons = asked(lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    if reasons is None:
        reasons = asked(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))

    def errors(kind, counter):
        return asked(lambda: nvml.nvmlDeviceGetTotalEccErrors(handle, kind, counter))

    corrected, uncorrected = nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, \
        nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
    volatile, aggregate = nvml.NVML_VOLATILE_ECC, nvml.NVML_AGGREGATE_ECC
    values = {
        "DCGM_FI_DEV_PERSISTENCE_MODE": asked(lambda: nvml.nvmlDeviceGetPersistenceMode(handle)),
        # It answers with success, or not at all.
        "DCGM_FI_DEV_INFOROM_CONFIG_VALID": asked(lambda: (nvml.nvmlDeviceValidateInforom(handle), 1)[1]),
        "DCGM_FI_DEV_MIG_MODE": of(mig, lambda m: m[0]),
        "DCGM_FI_DEV_GPU_UTIL": of(use, lambda u: u.gpu),
        "DCGM_FI_DEV_MEM_COPY_UTIL": of(use, lambda u: u.memory),
        "DCGM_FI_DEV_ENC_UTIL": of(
            asked(lambda: nvml.nvmlDeviceGetEncoderUtilization(handle)), lambda u: u[0]),
        "DCGM_FI_DEV_DEC_UTIL": of(
            asked(lambda: nvml.nvmlDeviceGetDecoderUtilization(handle)), lambda u: u[0]),
        "DCGM_FI_DEV_GPU_TEMP": asked(
            lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        "DCGM_FI_DEV_GPU_TEMP_LIMIT": asked(lambda: nvml.nvmlDeviceGetMarginTemperature(handle)),
        "DCGM_FI_DEV_POWER_USAGE": of(
            asked(lambda: nvml.nvmlDeviceGetPowerUsage(handle)), lambda mw: mw / 1000.0),
        "DCGM_FI_DEV_POWER_MGMT_LIMIT": of(
            asked(lambda: nvml.nvmlDeviceGetPowerManagementLimit(handle)), watts),
        "DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF": of(
            asked(lambda: nvml.nvmlDeviceGetPowerManagementDefaultLimit(handle)), watts),
        "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": of(
            asked(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle)), watts),
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": asked(
            lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle)),
        "DCGM_FI_DEV_PSTATE": asked(lambda: nvml.nvmlDeviceGetPerformanceState(handle)),
        "DCGM_FI_DEV_SM_CLOCK": asked(
            lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
        "DCGM_FI_DEV_MEM_CLOCK": asked(
            lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
        "DCGM_FI_DEV_MAX_SM_CLOCK": asked(
            lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)),
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": reasons,
        "DCGM_FI_DEV_ECC_CURRENT": of(ecc, lambda e: e[0]),
        "DCGM_FI_DEV_ECC_PENDING": of(ecc, lambda e: e[1]),
        "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": errors(corrected, volatile),
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": errors(uncorrected, volatile),
        "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL": errors(corrected, aggregate),
        "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL": errors(uncorrected, aggregate),
        "DCGM_FI_DEV_RETIRED_SBE": of(
            asked(lambda: nvml.nvmlDeviceGetRetiredPages(
                handle, nvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS)), len),
        "DCGM_FI_DEV_RETIRED_PENDING": asked(
            lambda: nvml.nvmlDeviceGetRetiredPagesPendingStatus(handle)),
        "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": of(rows, lambda r: r[0]),
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": of(rows, lambda r: r[1]),
        "DCGM_FI_DEV_ROW_REMAP_PENDING": of(rows, lambda r: r[2]),
        "DCGM_FI_DEV_ROW_REMAP_FAILURE": of(rows, lambda r: r[3]),
        "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE": of(
            asked(lambda: nvml.nvmlDeviceGetRowRemapperHistogram(handle)), lambda h: h.none),
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": asked(
            lambda: nvml.nvmlDeviceGetPcieReplayCounter(handle)),
        "DCGM_FI_DEV_PCIE_MAX_LINK_GEN": asked(
            lambda: nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle)),
        "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH": asked(
            lambda: nvml.nvmlDeviceGetMaxPcieLinkWidth(handle)),
        "DCGM_FI_DEV_PCIE_LINK_GEN": asked(
            lambda: nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle)),
        "DCGM_FI_DEV_PCIE_LINK_WIDTH": asked(lambda: nvml.nvmlDeviceGetCurrPcieLinkWidth(handle)),
    }
    for name, threshold in THRESHOLDS.items():
        values[name] = asked(lambda: nvml.nvmlDeviceGetTemperatureThreshold(handle, threshold))
    for name, number in FIELDS.items():
        if name.startswith("DCGM_"):
            values[name] = field(handle, number)
    return values | fabric(handle)


def sample(handle, instance=None):
    """A sample of GPM, or None."""
    def take():
        buffer = nvml.nvmlGpmSampleAlloc()
        if instance is None:
            return nvml.nvmlGpmSampleGet(handle, buffer)
        return nvml.nvmlGpmMigSampleGet(handle, instance, buffer)
    return asked(take)


def metrics(names, first, second, convert):
    """What lies between two samples."""
    values = dict.fromkeys(names)
    if first is None or second is None:
        return values
    request = nvml.c_nvmlGpmMetricsGet_t()
    request.version = nvml.NVML_GPM_METRICS_GET_VERSION
    request.numMetrics = len(names)
    request.sample1, request.sample2 = first, second
    for slot, number in zip(request.metrics, names.values()):
        slot.metricId = number
    nvml.nvmlGpmMetricsGet(request)
    for slot, name in zip(request.metrics, names):
        if slot.nvmlReturn == nvml.NVML_SUCCESS:
            values[name] = convert(slot.value)
    return values


def profiling(board, device):
    """Pairs of samples of the board and of the device that has a row: itself or an instance."""
    return metrics(SHARES, *device, lambda percent: percent / 100) | \
        metrics(RATES, *board, lambda rate: int(rate * MIB))


def own(handle):
    """Families of our own: the board's, and only once."""
    kib = lambda number: of(field(handle, number, ALL_LINKS), lambda n: n * 1024)
    mig = asked(lambda: nvml.nvmlDeviceGetMigMode(handle))
    return {
        "nvml_mig_mode_pending": of(mig, lambda m: m[1]),
        "nvml_pcie_tx_bytes_total": field(handle, nvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES),
        "nvml_pcie_rx_bytes_total": field(handle, nvml.NVML_FI_DEV_PCIE_COUNT_RX_BYTES),
        "nvml_nvlink_tx_bytes_total": kib(nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX),
        "nvml_nvlink_rx_bytes_total": kib(nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX),
    }


def instances(handle):
    """GPU instance ids, each with the handle of its first compute instance."""
    current = of(asked(lambda: nvml.nvmlDeviceGetMigMode(handle)), lambda m: m[0])
    found = {}
    for slot in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle) if current else 0):
        mig = asked(lambda: nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, slot))
        if mig is None:
            continue
        number = nvml.nvmlDeviceGetGpuInstanceId(mig)
        part = nvml.nvmlDeviceGetComputeInstanceId(mig)
        if number not in found or part < found[number][0]:
            found[number] = (part, mig)
    return {number: mig for number, (_, mig) in sorted(found.items())}


def migs(handle):
    """GPU instance, compute instance and UUID of each MIG device."""
    current = of(asked(lambda: nvml.nvmlDeviceGetMigMode(handle)), lambda m: m[0])
    slots = range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle) if current else 0)
    devices = [asked(lambda: nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, n)) for n in slots]
    return [
        [str(nvml.nvmlDeviceGetGpuInstanceId(mig)), str(nvml.nvmlDeviceGetComputeInstanceId(mig)),
         nvml.nvmlDeviceGetUUID(mig)]
        for mig in devices if mig is not None
    ]


def links(handle):
    states = {}
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        state = asked(lambda: nvml.nvmlDeviceGetNvLinkState(handle, link))
        if state is not None:
            states[link + 1] = state
    return states


def main():
    nvml.nvmlInitWithFlags(nvml.NVML_INIT_FLAG_NO_GPUS)
    rows = []
    handles = [nvml.nvmlDeviceGetHandleByIndex(gpu) for gpu in range(nvml.nvmlDeviceGetCount())]

    def samples():
        return {
            (gpu, number): sample(handle, number)
            for gpu, handle in enumerate(handles) for number in [None, *instances(handle)]
        }

    first = samples()
    time.sleep(APART)
    second = samples()
    pairs = {device: (first[device], second[device]) for device in first}
    for gpu, handle in enumerate(handles):
        whole = pairs[gpu, None]
        row = {
            "gpu": gpu,
            "uuid": nvml.nvmlDeviceGetUUID(handle),
            "pci_bus_id": nvml.nvmlDeviceGetPciInfo(handle).busId,
            "model": nvml.nvmlDeviceGetName(handle),
            "driver": nvml.nvmlSystemGetDriverVersion(),
        }
        info = {
            "minor_number": asked(lambda: str(nvml.nvmlDeviceGetMinorNumber(handle))),
            "serial": asked(lambda: nvml.nvmlDeviceGetSerial(handle)),
            "vbios_version": asked(lambda: nvml.nvmlDeviceGetVbiosVersion(handle)),
            "board_part_number": asked(lambda: nvml.nvmlDeviceGetBoardPartNumber(handle)),
        }
        parts = instances(handle)
        for number, mig in parts.items():
            rows.append(row | {"instance": number, "values": board(handle) | memory(mig)
                               | profiling(whole, pairs[gpu, number])})
        if not parts:
            rows.append(row | {"instance": None, "values": board(handle) | memory(handle)
                               | profiling(whole, whole)})
        rows.append(row | {"instance": None, "own": own(handle), "links": links(handle),
                           "info": info, "migs": migs(handle)})
    print(json.dumps(rows))


main()
