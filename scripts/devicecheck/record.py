"""The NVML answers of this machine, call by call, as JSON: what the simulator is corrected from.

Calls that the exporter does not make yet are among them. The format: docs/device-check.md.
"""

from __future__ import annotations

import ctypes
import json
import time
from typing import Any, List

import pynvml as n

from .compare import Board
from .expected import PROCESSES, filled
from .nvml import ALL_LINKS, Answer, Nvml, plain, type_name

# Without arguments but the handle.
SYSTEM = """nvmlSystemGetDriverVersion nvmlSystemGetNVMLVersion nvmlSystemGetCudaDriverVersion
nvmlSystemGetCudaDriverVersion_v2 nvmlSystemGetDriverBranch nvmlSystemGetHicVersion nvmlDeviceGetCount
nvmlSystemGetConfComputeCapabilities nvmlSystemGetConfComputeState nvmlSystemGetConfComputeGpusReadyState
nvmlSystemGetNvlinkBwMode nvmlGetExcludedDeviceCount nvmlUnitGetCount""".split()

DEVICE = """nvmlDeviceGetName nvmlDeviceGetUUID nvmlDeviceGetSerial nvmlDeviceGetIndex
nvmlDeviceGetMinorNumber nvmlDeviceGetBrand nvmlDeviceGetBoardId nvmlDeviceGetBoardPartNumber
nvmlDeviceGetMultiGpuBoard nvmlDeviceGetModuleId nvmlDeviceGetArchitecture nvmlDeviceGetBusType
nvmlDeviceGetIrqNum nvmlDeviceGetNumGpuCores nvmlDeviceGetNumaNodeId nvmlDeviceGetAddressingMode
nvmlDeviceGetPowerSource nvmlDeviceGetMemoryBusWidth nvmlDeviceGetPcieLinkMaxSpeed nvmlDeviceGetPcieSpeed
nvmlDeviceGetGpuMaxPcieLinkGeneration nvmlDeviceGetAdaptiveClockInfoStatus nvmlDeviceGetDynamicPstatesInfo
nvmlDeviceGetSupportedPerformanceStates nvmlDeviceGetPerformanceModes nvmlDeviceGetCurrentClockFreqs
nvmlDeviceGetPerformanceState nvmlDeviceGetPowerState nvmlDeviceGetPowerManagementMode
nvmlDeviceGetPowerUsage nvmlDeviceGetTotalEnergyConsumption nvmlDeviceGetGpuOperationMode
nvmlDeviceGetMemoryInfo nvmlDeviceGetBAR1MemoryInfo nvmlDeviceGetComputeMode nvmlDeviceGetEccMode
nvmlDeviceGetDefaultEccMode nvmlDeviceGetDisplayMode nvmlDeviceGetDisplayActive
nvmlDeviceGetPersistenceMode nvmlDeviceGetUtilizationRates nvmlDeviceGetEncoderUtilization
nvmlDeviceGetDecoderUtilization nvmlDeviceGetJpgUtilization nvmlDeviceGetOfaUtilization
nvmlDeviceGetFanSpeed nvmlDeviceGetFanSpeedRPM nvmlDeviceGetNumFans nvmlDeviceGetMinMaxFanSpeed
nvmlDeviceGetCoolerInfo nvmlDeviceGetMarginTemperature nvmlDeviceGetSupportedMemoryClocks
nvmlDeviceGetSupportedClocksEventReasons nvmlDeviceGetSupportedClocksThrottleReasons
nvmlDeviceGetCurrentClocksEventReasons nvmlDeviceGetCurrentClocksThrottleReasons
nvmlDeviceGetSupportedEventTypes nvmlDeviceGetAutoBoostedClocksEnabled nvmlDeviceGetPcieReplayCounter
nvmlDeviceGetPciInfo nvmlDeviceGetPciInfo_v3 nvmlDeviceGetInforomImageVersion nvmlDeviceGetLastBBXFlushTime
nvmlDeviceGetInforomConfigurationChecksum nvmlDeviceValidateInforom nvmlDeviceGetVbiosVersion
nvmlDeviceGetBridgeChipInfo nvmlDeviceGetRetiredPagesPendingStatus nvmlDeviceGetRemappedRows
nvmlDeviceGetRowRemapperHistogram nvmlDeviceGetUnrepairableMemoryFlag_v1 nvmlDeviceGetRepairStatus
nvmlDeviceGetVirtualizationMode nvmlDeviceGetGridLicensableFeatures_v4 nvmlDeviceGetGspFirmwareVersion
nvmlDeviceGetGspFirmwareMode nvmlDeviceGetEncoderStats nvmlDeviceGetEncoderSessions nvmlDeviceGetFBCStats
nvmlDeviceGetFBCSessions nvmlDeviceGetAccountingMode nvmlDeviceGetAccountingPids
nvmlDeviceGetAccountingBufferSize nvmlDeviceGetMigMode nvmlDeviceGetMaxMigDeviceCount
nvmlDeviceIsMigDeviceHandle nvmlDeviceGetGpuInstanceId nvmlDeviceGetComputeInstanceId
nvmlDeviceGetAttributes nvmlDeviceGetCudaComputeCapability nvmlDeviceGetComputeRunningProcesses_v2
nvmlDeviceGetComputeRunningProcesses_v3 nvmlDeviceGetGraphicsRunningProcesses_v2
nvmlDeviceGetGraphicsRunningProcesses_v3 nvmlDeviceGetMPSComputeRunningProcesses_v2
nvmlDeviceGetMPSComputeRunningProcesses_v3 nvmlDeviceGetConfComputeMemSizeInfo
nvmlDeviceGetConfComputeProtectedMemoryUsage nvmlDeviceGetDramEncryptionMode nvmlDeviceGetC2cModeInfoV
nvmlDeviceGetPdi nvmlDeviceGetHostname_v1 nvmlDeviceGetClkMonStatus nvmlDeviceGetPowerManagementLimit
nvmlDeviceGetPowerManagementLimitConstraints nvmlDeviceGetPowerManagementDefaultLimit
nvmlDeviceGetEnforcedPowerLimit nvmlDeviceGetCurrPcieLinkGeneration nvmlDeviceGetCurrPcieLinkWidth
nvmlDeviceGetMaxPcieLinkGeneration nvmlDeviceGetMaxPcieLinkWidth nvmlGpmQueryDeviceSupport
nvmlGpmQueryIfStreamingEnabled""".split()

# With plain arguments.
ARGUMENTS = {
    "nvmlDeviceGetClockInfo": [(clock,) for clock in range(4)],
    "nvmlDeviceGetMaxClockInfo": [(clock,) for clock in range(4)],
    "nvmlDeviceGetApplicationsClock": [(clock,) for clock in range(4)],
    "nvmlDeviceGetDefaultApplicationsClock": [(clock,) for clock in range(4)],
    "nvmlDeviceGetMaxCustomerBoostClock": [(clock,) for clock in range(4)],
    "nvmlDeviceGetClock": [(clock, which) for clock in range(4) for which in range(4)],
    "nvmlDeviceGetTemperature": [(0,), (1,)],
    "nvmlDeviceGetTemperatureV": [(0,)],
    "nvmlDeviceGetTemperatureThreshold": [(threshold,) for threshold in range(8)],
    "nvmlDeviceGetThermalSettings": [(15,)],
    "nvmlDeviceGetInforomVersion": [(part,) for part in range(3)],
    "nvmlDeviceGetTotalEccErrors": [(bits, counter) for bits in range(2) for counter in range(2)],
    "nvmlDeviceGetMemoryErrorCounter": [
        (bits, counter, location) for bits in range(2) for counter in range(2) for location in range(8)],
    "nvmlDeviceGetRetiredPages": [(0,), (1,)],
    "nvmlDeviceGetViolationStatus": [(policy,) for policy in (0, 1, 2, 3, 4, 5, 10, 11)],
    "nvmlDeviceGetAPIRestriction": [(0,), (1,)],
    "nvmlDeviceGetEncoderCapacity": [(0,), (1,), (2,)],
    "nvmlDeviceGetPcieThroughput": [(0,), (1,)],
    "nvmlDeviceGetFanSpeed_v2": [(0,)],
    "nvmlDeviceGetTargetFanSpeed": [(0,)],
    "nvmlDeviceGetSamples": [(kind, 0) for kind in range(8)],
    "nvmlDeviceGetProcessUtilization": [(0,)],
    "nvmlDeviceGetTopologyNearestGpus": [(level,) for level in (0, 10, 20, 30, 40, 50)],
    "nvmlDeviceGetCpuAffinity": [(4,)],
    "nvmlDeviceGetMemoryAffinity": [(1, 0)],
    "nvmlDeviceGetGpuInstanceProfileInfo": [(profile,) for profile in range(16)],
}

# Functions that fill a structure: each version that the binding has.
STRUCTURES = {
    "nvmlDeviceGetGpuFabricInfo": ["c_nvmlGpuFabricInfo_t"],
    "nvmlDeviceGetGpuFabricInfoV": ["c_nvmlGpuFabricInfo_v2_t", "c_nvmlGpuFabricInfo_v3_t"],
    "nvmlDeviceGetPlatformInfo": ["c_nvmlPlatformInfo_v1_t", "c_nvmlPlatformInfo_v2_t"],
    "nvmlDeviceGetSramEccErrorStatus": ["c_nvmlEccSramErrorStatus_v1_t"],
    "nvmlDeviceGetNvLinkInfo": ["c_nvmlNvLinkInfo_v1_t", "c_nvmlNvLinkInfo_v2_t"],
    "nvmlDeviceGetNvlinkSupportedBwModes": ["c_nvmlNvlinkSupportedBwModes_v1_t"],
    "nvmlDeviceGetNvlinkBwMode": ["c_nvmlNvlinkGetBwMode_v1_t"],
}

MIG_DEVICE = """nvmlDeviceGetName nvmlDeviceGetUUID nvmlDeviceGetIndex nvmlDeviceGetAttributes
nvmlDeviceGetMemoryInfo nvmlDeviceGetBAR1MemoryInfo nvmlDeviceGetComputeMode nvmlDeviceIsMigDeviceHandle
nvmlDeviceGetGpuInstanceId nvmlDeviceGetComputeInstanceId nvmlDeviceGetUtilizationRates
nvmlDeviceGetPowerUsage nvmlDeviceGetMigMode nvmlDeviceGetEccMode nvmlDeviceGetPerformanceState
nvmlDeviceGetComputeRunningProcesses_v3 nvmlDeviceGetPciInfo_v3 nvmlDeviceGetMinorNumber
nvmlDeviceGetSerial nvmlDeviceGetEncoderUtilization nvmlDeviceGetCurrentClocksEventReasons
nvmlGpmQueryDeviceSupport""".split()

FIELDS = range(1, 340)
# Asked for the sum over all links and for each link as well.
LINK_FIELDS = [138, 139, 140, 141, 164, 165, 166, 167, 168, *range(170, 173), *range(199, 225),
               *range(231, 251), 274, 275, 276]
GPM_METRICS = range(1, 334)
GPM_INTERVAL = 0.25
P2P_INDICES = range(5)
LINK_CAPABILITIES = range(6)


def everything(nvml: Nvml, found: List[Board], until: float) -> bool:
    """Makes every call once. False when the time ran out before the last GPU."""
    for name in SYSTEM:
        nvml.call("system", name)
    for board in found:
        if time.monotonic() > until:
            return False
        device(nvml, board)
    pairs(nvml, found, until)
    return True


def device(nvml: Nvml, board: Board) -> None:
    at, handle = f"GPU {board.index}", board.handle
    for name in DEVICE:
        nvml.call(at, name, handle)
    for name, all_arguments in ARGUMENTS.items():
        for arguments in all_arguments:
            nvml.call(at, name, handle, *arguments, shown=arguments)
    for name, types in STRUCTURES.items():
        for kind in types:
            if hasattr(n, kind) and hasattr(n, name):
                nvml.call(at, name, handle, shown=(kind,), raw=filled(kind)(name))
    nvml.call(at, "nvmlDeviceGetMemoryInfo_v2", handle,
              raw=lambda h: n.nvmlDeviceGetMemoryInfo(h, version=n.nvmlMemory_v2))
    for kind in PROCESSES:
        for name in PROCESSES[kind]:
            nvml.count(at, [name], handle)
    clocks = nvml.call(at, "nvmlDeviceGetSupportedMemoryClocks", handle)
    for clock in clocks.value or [] if clocks.ok else []:
        nvml.call(at, "nvmlDeviceGetSupportedGraphicsClocks", handle, clock, shown=(clock,))
    for link in range(max(board.links, 1)):
        links(nvml, at, handle, link)
    wanted = [(field, 0) for field in FIELDS]
    wanted += [(field, scope) for field in LINK_FIELDS for scope in (ALL_LINKS, *range(1, board.links))]
    nvml.field_values(at, handle, wanted)
    mig(nvml, board)
    gpm(nvml, at, lambda sample: n.nvmlGpmSampleGet(handle, sample))
    events(nvml, at, handle)


def links(nvml: Nvml, at: str, handle: Any, link: int) -> None:
    for name in ("nvmlDeviceGetNvLinkState", "nvmlDeviceGetNvLinkVersion",
                 "nvmlDeviceGetNvLinkRemotePciInfo", "nvmlDeviceGetNvLinkRemoteDeviceType"):
        nvml.call(at, name, handle, link, shown=(link,))
    for error in range(5):
        nvml.call(at, "nvmlDeviceGetNvLinkErrorCounter", handle, link, error, shown=(link, error))
    for capability in LINK_CAPABILITIES:
        nvml.call(at, "nvmlDeviceGetNvLinkCapability", handle, link, capability, shown=(link, capability))


def mig(nvml: Nvml, board: Board) -> None:
    at = f"GPU {board.index}"
    for profile in range(16):
        info = nvml.call(at, "nvmlDeviceGetGpuInstanceProfileInfo", board.handle, profile, shown=(profile,))
        if info.ok:
            nvml.call(at, "nvmlDeviceGetGpuInstanceRemainingCapacity", board.handle, info.value.id,
                      shown=(info.value.id,))
    for group, (handle, _, _) in board.instances.items():
        name = f"{at} instance {group}"
        for call in MIG_DEVICE:
            nvml.call(name, call, handle)
        nvml.call(name, "nvmlDeviceGetMemoryInfo_v2", handle,
                  raw=lambda h: n.nvmlDeviceGetMemoryInfo(h, version=n.nvmlMemory_v2))
        nvml.field_values(name, handle, [(82, 0), (83, 0), (143, 0), (186, 0)])
        gpm(nvml, name, lambda sample, group=group: n.nvmlGpmMigSampleGet(board.handle, group, sample))


def gpm(nvml: Nvml, at: str, take: Any) -> None:
    """Two samples, and every metric between them."""
    samples = []
    try:
        for _ in range(2):
            allocated = nvml.call(at, "nvmlGpmSampleAlloc")
            if not allocated.ok:
                return
            samples.append(allocated.value)
        for number, sample in enumerate(samples, 1):
            name = "nvmlGpmMigSampleGet" if "instance" in at else "nvmlGpmSampleGet"
            if not nvml.call(at, name, sample, shown=(number,), raw=take).ok:
                return
            if number == 1:
                time.sleep(GPM_INTERVAL)
        room = len(n.c_nvmlGpmMetricsGet_t().metrics)
        metrics = list(GPM_METRICS)
        for start in range(0, len(metrics), min(room, 64)):
            _metrics(nvml, at, samples, metrics[start:start + min(room, 64)])
    finally:
        for sample in samples:
            nvml.call(at, "nvmlGpmSampleFree", sample)


def _metrics(nvml: Nvml, at: str, samples: List[Any], wanted: List[int]) -> None:
    request = n.c_nvmlGpmMetricsGet_t()
    request.version = n.NVML_GPM_METRICS_GET_VERSION
    request.numMetrics = len(wanted)
    request.sample1, request.sample2 = samples
    for slot, metric in zip(request.metrics, wanted):
        slot.metricId = metric
    began = time.perf_counter()
    outer = nvml.call(at, "nvmlGpmMetricsGet", request, shown=(f"{wanted[0]}-{wanted[-1]}",),
                      raw=lambda r: n.nvmlGpmMetricsGet(r) and None)
    micros = (time.perf_counter() - began) * 1e6 / len(wanted)
    for slot, metric in zip(request.metrics, wanted) if outer.ok else ():
        nvml.note(at, "nvmlGpmMetricsGet", (metric,),
                  Answer(slot.nvmlReturn, slot.value if slot.nvmlReturn == 0 else None, micros))


def events(nvml: Nvml, at: str, handle: Any) -> None:
    """Which event types can be registered, each on a set of its own, and what an idle wait says."""
    types = nvml.call(at, "nvmlDeviceGetSupportedEventTypes", handle)
    for bit in range(16):
        wanted = 1 << bit
        if not types.ok or (wanted not in (0x8, 0x100) and not types.value & wanted):
            continue
        created = nvml.call("system", "nvmlEventSetCreate")
        if not created.ok:
            return
        nvml.call(at, "nvmlDeviceRegisterEvents", handle, wanted, created.value, shown=(wanted,))
        nvml.call(at, "nvmlEventSetWait_v2", created.value, 1, shown=(wanted, 1))
        nvml.call("system", "nvmlEventSetFree", created.value)


def pairs(nvml: Nvml, found: List[Board], until: float) -> None:
    for one in found:
        for other in found:
            if one.index == other.index or time.monotonic() > until:
                continue
            at = f"GPU {one.index}"
            for index in P2P_INDICES:
                nvml.call(at, "nvmlDeviceGetP2PStatus", one.handle, other.handle, index,
                          shown=(f"GPU {other.index}", index))
            nvml.call(at, "nvmlDeviceGetTopologyCommonAncestor", one.handle, other.handle,
                      shown=(f"GPU {other.index}",))


def write(path: str, nvml: Nvml, found: List[Board], head: dict) -> None:
    answers = []
    for (at, name, shown), entry in nvml.record.items():
        answer = entry.answer
        line = {
            "device": at, "call": name, "args": list(shown), "code": answer.code, "name": answer.name,
            "times": len(entry.micros), "micros": round(sorted(entry.micros)[len(entry.micros) // 2], 1),
            "micros_max": round(max(entry.micros), 1),
        }
        if answer.ok and answer.value is not None and "GetHandle" not in name and "HandleByIndex" not in name:
            line["type"], line["value"] = type_name(answer.value), _short(plain(answer.value))
            if isinstance(answer.value, ctypes.Structure) and ctypes.sizeof(answer.value) <= 512:
                line["raw"] = bytes(answer.value).hex()
        line.update(entry.details)
        answers.append(line)
    devices = [
        {"index": board.index, "uuid": board.uuid, "name": board.name, "bus_id": board.bus_id,
         "links": board.links,
         "instances": {group: {"uuid": uuid, "profile": profile}
                       for group, (_, uuid, profile) in board.instances.items()}}
        for board in found
    ]
    with open(path, "w") as file:
        head_text = json.dumps({"format": 1, **head, "devices": devices}, indent=1, default=str)
        lines = ",\n".join(json.dumps(line, default=str) for line in answers)
        file.write(f'{head_text[:-2]},\n "answers": [\n{lines}\n]}}\n')


def _short(value: Any) -> Any:
    """Long lists are cut: their length and their ends say enough."""
    if isinstance(value, list):
        if len(value) > 64:
            return {"length": len(value), "first": value[:8], "last": value[-4:]}
        return [_short(item) for item in value]
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    return value
