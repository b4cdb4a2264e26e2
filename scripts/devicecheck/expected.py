"""Where every served field comes from: the NVML call, the conversion, and how the value moves.

Written from DCGM's field definitions and nvml.h, not from the exporter's catalogue: an error there
must show as a difference here. A served field that has no line here is a difference, too.
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Dict, NamedTuple, Optional

import pynvml as n

from . import gpm
from .nvml import ALL_LINKS, BINDING_LACKS, Answer, FieldValue, Nvml
from .page import Entity

NOT_SUPPORTED = n.NVML_ERROR_NOT_SUPPORTED
FUNCTION_NOT_FOUND = n.NVML_ERROR_FUNCTION_NOT_FOUND

MIB = 1048576


class Kind(NamedTuple):
    """How a value is judged against the passes before and after."""

    name: str
    rule: str
    reason: str
    relative: float = 0.0
    absolute: float = 0.0
    # A value that moves between two passes can lie outside of both: it differs when it does so in
    # most rounds.
    majority: bool = False


FIXED = Kind("fixed", "equal to both passes", "does not change while the driver is loaded")
SETTING = Kind("setting", "equal to one of the passes",
               "an administrator or a reset may change it at any time")
STATE = Kind("state", "equal to one of the passes, in most rounds",
             "jumps with the load: P-state, clock event reasons, link generation", majority=True)
TEMPERATURE = Kind("temperature", "between the passes, 3 C more or less, in most rounds",
                   "whole degrees, and a chip heats by a few degrees in a second",
                   absolute=3, majority=True)
POWER = Kind("power", "between the passes, 20 % and 15 W more or less, in most rounds",
             "sampled or averaged by the board at its own times; steps within milliseconds",
             relative=0.2, absolute=15, majority=True)
PERCENT = Kind("percent", "between the passes, 25 points more or less, in most rounds",
               "averages over the driver's own periods of up to a second",
               absolute=25, majority=True)
CLOCK = Kind("clock", "between the passes, 15 % more or less, in most rounds",
             "follows the load in steps, and an idle GPU wakes when it is asked",
             relative=0.15, majority=True)
MEMORY = Kind("memory", "between the passes, 2 % and 64 MiB more or less, in most rounds",
              "clients allocate and free at any time", relative=0.02, absolute=64 * MIB, majority=True)
NUMBER = Kind("number", "between the passes, 2 more or less, in most rounds",
              "processes and sessions come and go", absolute=2, majority=True)
COUNTER = Kind("counter", "not below the pass before, not above the pass after",
               "the pass before ended before NVML was asked, the pass after began later")
RATE = Kind("rate", "between the passes, 40 % more or less, in most rounds",
            "the exporter's mean over a pass beside a mean over the whole round", relative=0.4,
            absolute=500, majority=True)
THROUGHPUT = Kind("throughput", "between the passes, 60 % or 1 MiB/s more or less, in most rounds",
                  "means over other stretches of time", relative=0.6, absolute=MIB, majority=True)
EVENT = Kind("event", "present", "XIDs come as events; NVML cannot be asked for the last one")

KINDS = [FIXED, SETTING, STATE, TEMPERATURE, POWER, PERCENT, CLOCK, MEMORY, NUMBER, COUNTER, RATE, THROUGHPUT,
         EVENT]


# What the exporter counts while it runs, or judges; no call of NVML's answers it.
COUNTED = "counted or judged by the exporter from what it has seen"
OWN_FIELDS = [
    "DCGM_EXP_CLOCK_EVENTS_COUNT", "DCGM_EXP_CLOCK_EVENTS_TOTAL", "DCGM_EXP_GPU_HEALTH_STATUS",
    "DCGM_EXP_P2P_STATUS", "DCGM_EXP_XID_ERRORS_COUNT", "DCGM_EXP_XID_ERRORS_TOTAL",
    "nvml_xid_last_timestamp_seconds",
]


class Gpu:
    """One handle in one round: a whole GPU, or the lowest compute instance of a GPU instance.
    Every call is made once."""

    def __init__(self, nvml: Nvml, handle: Any, index: int, name: str, driver: tuple, links: int,
                 part_of: Optional[tuple] = None) -> None:
        self.nvml, self.handle, self.index, self.name = nvml, handle, index, name
        self.driver, self.links = driver, links
        self.memo: Dict[Any, Answer] = {}
        self.values: Dict[Any, Answer] = {}
        # GPM measures a GPU instance through the handle of its GPU.
        self.gpm = gpm.Samples(nvml, name, *(part_of or (handle,)))

    def call(self, name: str, *args: Any, raw: Any = None) -> Answer:
        """A call on the handle with plain arguments."""
        if (name, args) not in self.memo:
            self.memo[name, args] = self.nvml.call(
                self.name, name, self.handle, *args, shown=args,
                raw=None if raw is None else lambda handle, *rest: raw(handle, *rest),
            )
        return self.memo[name, args]

    def system(self, name: str) -> Answer:
        if name not in self.memo:
            self.memo[name] = self.nvml.call("system", name)
        return self.memo[name]

    def count(self, *names: str) -> Answer:
        if names not in self.memo:
            self.memo[names] = self.nvml.count(self.name, list(names), self.handle)
        return self.memo[names]

    def field_id(self, field: int) -> int:
        """Driver 580.82 renumbered 251 to 273; lines here have the older numbers."""
        if self.driver >= (580, 82) and 251 <= field <= 273:
            return field + 18 if field <= 255 else field - 5
        return field

    def field(self, field: int, scope: int = 0) -> Answer:
        key = (self.field_id(field), scope)
        if key not in self.values:
            self.values.update(self.nvml.field_values(self.name, self.handle, [key]))
        return self.values[key]

    def prefetch(self, wanted: list) -> None:
        """All field values of the round in few calls."""
        keys = sorted({(self.field_id(field), scope) for field, scope in wanted})
        self.values.update(self.nvml.field_values(self.name, self.handle, keys))


Read = Callable[..., Answer]


class Spec(NamedTuple):
    """One series of a field: where its value comes from."""

    name: str
    read: Read  # (gpu) or, for the scope `link`, (gpu, link)
    kind: Kind
    scope: str = "GPU"
    labels: Optional[Dict[str, str]] = None
    fields: tuple = ()  # (id, scope) that `read` asks of the batch
    unit: float = 1.0   # the kind's tolerance in the served unit: what one of its units is


def then(answer: Answer, convert: Callable[[Any], Any]) -> Answer:
    """Converts a value; `None` is an answer without a value."""
    if not answer.ok:
        return answer
    return answer._replace(value=convert(answer.value))


def call(name: str, *args: Any, to: Callable[[Any], Any] = lambda value: value) -> Read:
    return lambda gpu, *_: then(gpu.call(name, *args), to)


def tagged(value: FieldValue) -> Any:
    return value.tagged()


def field(number: int, scope: int = 0, to: Callable[[Any], Any] = lambda value: value,
          decode: Callable[[FieldValue], Any] = tagged) -> Read:
    return lambda gpu, *_: then(gpu.field(number, scope), lambda value: to(decode(value)))


def ecc_total(number: int) -> Read:
    """With ECC off NVML answers success and leaves the entry as it was."""
    def read(gpu: Gpu) -> Answer:
        answer = gpu.field(number)
        if answer.ok and answer.value.untouched():
            return Answer(NOT_SUPPORTED, None)
        return then(answer, FieldValue.u64)
    return read


def celsius(value: int) -> Any:
    return value if value <= 200 else None


def at(index: int) -> Callable[[Any], Any]:
    return lambda value: value[index]


# Calls that need more than the binding's function of the name.

def memory(gpu: Gpu) -> Answer:
    """Version 2 since driver 510, which tells reserved from used memory."""
    if gpu.driver >= (510,):
        return gpu.call("nvmlDeviceGetMemoryInfo_v2", raw=lambda handle: n.nvmlDeviceGetMemoryInfo(
            handle, version=n.nvmlMemory_v2))
    return gpu.call("nvmlDeviceGetMemoryInfo")


def of_memory(part: str, to: Callable[[int], Any]) -> Read:
    def read(gpu: Gpu) -> Answer:
        answer = memory(gpu)
        if answer.ok and not hasattr(answer.value, part):
            return Answer(NOT_SUPPORTED, None)
        return then(answer, lambda value: to(getattr(value, part)))
    return read


def used_share(gpu: Gpu) -> Answer:
    def share(value: Any) -> Any:
        usable = value.total - getattr(value, "reserved", 0)
        return value.used / usable if usable else None
    return then(memory(gpu), share)


def event_reasons(gpu: Gpu) -> Answer:
    answer = gpu.call("nvmlDeviceGetCurrentClocksEventReasons")
    if answer.code in (FUNCTION_NOT_FOUND, BINDING_LACKS):
        answer = gpu.call("nvmlDeviceGetCurrentClocksThrottleReasons")
    return answer


def filled(type_name: str) -> Callable[..., Any]:
    """A raw call that fills a structure of the binding and gives it back."""
    def make(function: str) -> Callable[[Any], Any]:
        def ask(handle: Any) -> Any:
            structure = getattr(n, type_name)()
            getattr(n, function)(handle, ctypes.byref(structure))
            return structure
        return ask
    return make


def struct(gpu: Gpu, function: str, *type_names: str) -> Answer:
    """The first of the structure's versions that the driver and the binding know."""
    answer = Answer(BINDING_LACKS, None)
    for type_name in type_names:
        if not hasattr(n, type_name) or not hasattr(n, function):
            continue
        key = (function, type_name)
        if key not in gpu.memo:
            gpu.memo[key] = gpu.nvml.call(
                gpu.name, function, gpu.handle, shown=(type_name,), raw=filled(type_name)(function))
        answer = gpu.memo[key]
        if answer.code not in (n.NVML_ERROR_ARGUMENT_VERSION_MISMATCH, FUNCTION_NOT_FOUND):
            break
    return answer


def fabric(to: Callable[[Any], Any]) -> Read:
    return lambda gpu: then(
        struct(gpu, "nvmlDeviceGetGpuFabricInfoV", "c_nvmlGpuFabricInfo_v3_t", "c_nvmlGpuFabricInfo_v2_t"), to)


def fabric_status(info: Any) -> Any:
    if info.state == n.NVML_GPU_FABRIC_STATE_COMPLETED:
        return 3 if info.status == 0 else 4
    return info.state


def fabric_summary(gpu: Gpu) -> Answer:
    answer = fabric(lambda info: info)(gpu)
    if answer.ok and not hasattr(answer.value, "healthSummary"):
        return Answer(NOT_SUPPORTED, None)
    return then(answer, lambda info: info.healthSummary)


def cluster_uuid(info: Any) -> Any:
    raw = bytes(info.clusterUuid).hex()
    if not raw.strip("0"):
        return None
    return "-".join((raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:]))


def platform(to: Callable[[bytes], Any]) -> Read:
    """From the bytes of version 2: the binding's text fields end at the first zero."""
    return lambda gpu: then(struct(gpu, "nvmlDeviceGetPlatformInfo", "c_nvmlPlatformInfo_v2_t"),
                            lambda info: to(bytes(info)))


def text_of(raw: bytes) -> Any:
    return raw.split(b"\0")[0].decode("ascii", "replace").strip() or None


def licensed(value: Any) -> Any:
    if not value.isGridLicenseSupported:
        return 0
    for entry in list(value.gridLicensableFeatures)[:value.licensableFeaturesCount]:
        if entry.featureCode == 1:
            return int(entry.featureState > 0)
    return None


def inforom_valid(gpu: Gpu) -> Answer:
    answer = gpu.call("nvmlDeviceValidateInforom")
    if answer.code == n.NVML_ERROR_CORRUPTED_INFOROM:
        return Answer(0, 0, answer.micros)
    return then(answer, lambda _: 1)


def retired(cause: int) -> Read:
    def ask(handle: Any, wanted: int) -> int:
        count = ctypes.c_uint(0)
        code = n._nvmlGetFunctionPointer("nvmlDeviceGetRetiredPages")(
            handle, ctypes.c_uint(wanted), ctypes.byref(count), None)
        if code not in (0, n.NVML_ERROR_INSUFFICIENT_SIZE):
            raise n.NVMLError(code)
        return count.value
    return lambda gpu: gpu.call("nvmlDeviceGetRetiredPages", cause, raw=ask)


def bit_error_rate(packed: int) -> float:
    mantissa, exponent = packed >> 8 & 0xF, packed & 0xFF
    return 0.0 if (mantissa, exponent) == (15, 255) else mantissa * 10.0 ** -exponent


def compute_mode(mode: int) -> Any:
    return {0: 0, 2: 1, 3: 2}.get(mode)


BRANDS = ["Unknown", "Quadro", "Tesla", "NVS", "Grid", "GeForce", "Titan", "NVIDIA Virtual Applications",
          "NVIDIA Virtual PC", "NVIDIA Virtual Compute Server", "NVIDIA RTX Virtual Workstation",
          "NVIDIA vGaming", "Quadro RTX", "NVIDIA RTX", "NVIDIA", "GeForce RTX", "Titan RTX"]

PROCESSES = {
    kind: [f"nvmlDeviceGet{stem}RunningProcesses{version}" for version in ("_v3", "_v2", "")]
    for kind, stem in (("compute", "Compute"), ("graphics", "Graphics"), ("mps", "MPSCompute"))
}


def processes(kind: str) -> Read:
    return lambda gpu: gpu.count(*PROCESSES[kind])


def nothing(_: Gpu) -> Answer:
    return Answer(0, None)


def table() -> list[Spec]:
    """All lines."""
    rows: list[Spec] = []

    def add(name: str, read: Read, kind: Kind = FIXED, scope: str = "GPU", unit: float = 1.0,
            fields: tuple = (), **labels: str) -> None:
        rows.append(Spec(name, read, kind, scope, labels or None, fields, unit))

    def value(name: str, number: int, kind: Kind = COUNTER, to: Callable = lambda v: v, scope: int = 0,
              decode: Callable = tagged, unit: float = 1.0, **labels: str) -> None:
        add(name, field(number, scope, to, decode), kind, unit=unit, fields=((number, scope),), **labels)

    identity(add)
    state(add, value)
    utilisation(add)
    gpm.lines(add, then, PERCENT, THROUGHPUT, COUNTER)
    framebuffer(add)
    heat_and_power(add, value)
    clocks(add, value)
    pcie(add, value)
    ecc(add, value)
    nvlink(add, value)
    fabric_and_platform(add, value)
    smoothing(value)
    return rows


def identity(add: Callable) -> None:
    def system(name: str, to: Callable = lambda v: v) -> Read:
        return lambda gpu: then(gpu.system(name), to)

    def pci(to: Callable) -> Read:
        return call("nvmlDeviceGetPciInfo_v3", to=to)

    add("DCGM_FI_DRIVER_VERSION", system("nvmlSystemGetDriverVersion"), scope="node")
    add("DCGM_FI_NVML_VERSION", system("nvmlSystemGetNVMLVersion"), scope="node")
    add("DCGM_FI_DEV_COUNT", system("nvmlDeviceGetCount"), scope="node")
    add("DCGM_FI_CUDA_DRIVER_VERSION", system("nvmlSystemGetCudaDriverVersion_v2"), scope="node")
    add("DCGM_FI_DEV_CC_MODE", system("nvmlSystemGetConfComputeState", lambda s: s.ccFeature), scope="node")
    add("DCGM_FI_DEV_NAME", call("nvmlDeviceGetName"))
    add("DCGM_FI_DEV_BRAND", call(
        "nvmlDeviceGetBrand", to=lambda b: BRANDS[b] if b < len(BRANDS) else f"Unknown({b})"))
    add("DCGM_FI_DEV_NVML_INDEX", call("nvmlDeviceGetIndex"))
    add("DCGM_FI_DEV_SERIAL", call("nvmlDeviceGetSerial"))
    add("DCGM_FI_DEV_UUID", call("nvmlDeviceGetUUID"))
    add("DCGM_FI_DEV_MINOR_NUMBER", call("nvmlDeviceGetMinorNumber"))
    for name, part in (("OEM", 0), ("ECC", 1), ("POWER", 2)):
        add(f"DCGM_FI_DEV_{name}_INFOROM_VER", call(
            "nvmlDeviceGetInforomVersion", part, to=lambda text: text or None))
    add("DCGM_FI_DEV_INFOROM_IMAGE_VER", call("nvmlDeviceGetInforomImageVersion"))
    add("DCGM_FI_DEV_INFOROM_CONFIG_CHECK", call("nvmlDeviceGetInforomConfigurationChecksum"))
    add("DCGM_FI_DEV_INFOROM_CONFIG_VALID", inforom_valid)
    add("DCGM_FI_DEV_PCI_BUSID", pci(lambda p: n_text(p.busId).upper()))
    add("DCGM_FI_DEV_PCI_COMBINED_ID", pci(lambda p: p.pciDeviceId))
    add("DCGM_FI_DEV_PCI_SUBSYS_ID", pci(lambda p: p.pciSubSystemId))
    add("DCGM_FI_DEV_CUDA_COMPUTE_CAPABILITY", call(
        "nvmlDeviceGetCudaComputeCapability", to=lambda v: v[0] << 16 | v[1]))
    add("DCGM_FI_DEV_VBIOS_VERSION", call("nvmlDeviceGetVbiosVersion"))


def n_text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else value


def state(add: Callable, value: Callable) -> None:
    add("DCGM_FI_DEV_XID_ERRORS", nothing, EVENT, scope="instance")
    value("DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", 230, SETTING)
    add("DCGM_FI_DEV_COMPUTE_MODE", call("nvmlDeviceGetComputeMode", to=compute_mode), SETTING)
    add("DCGM_FI_DEV_PERSISTENCE_MODE", call("nvmlDeviceGetPersistenceMode"), SETTING)
    add("DCGM_FI_DEV_MIG_MODE", call("nvmlDeviceGetMigMode", to=at(0)), SETTING)
    add("nvml_mig_mode_pending", call("nvmlDeviceGetMigMode", to=at(1)), SETTING)
    add("DCGM_FI_DEV_GPM_SUPPORT", call("nvmlGpmQueryDeviceSupport", to=lambda s: s.isSupportedDevice))
    add("DCGM_FI_DEV_VIRTUAL_MODE", call("nvmlDeviceGetVirtualizationMode"))
    add("DCGM_FI_DEV_VGPU_LICENSE_STATUS", call("nvmlDeviceGetGridLicensableFeatures_v4", to=licensed), SETTING)


def utilisation(add: Callable) -> None:
    # `GPU_UTIL_RATIO` is DCGM 4.6's spelling of field 203, which stayed a percentage.
    sources = {
        "GPU": (call("nvmlDeviceGetUtilizationRates", to=lambda u: u.gpu), "DCGM_FI_DEV_GPU_UTIL", None),
        "MEM": (call("nvmlDeviceGetUtilizationRates", to=lambda u: u.memory),
                "DCGM_FI_DEV_MEM_COPY_UTIL", "DCGM_FI_DEV_MEMORY_UTIL_RATIO"),
        "ENC": (call("nvmlDeviceGetEncoderUtilization", to=at(0)),
                "DCGM_FI_DEV_ENC_UTIL", "DCGM_FI_DEV_ENC_UTIL_RATIO"),
        "DEC": (call("nvmlDeviceGetDecoderUtilization", to=at(0)),
                "DCGM_FI_DEV_DEC_UTIL", "DCGM_FI_DEV_DEC_UTIL_RATIO"),
        "JPG": (call("nvmlDeviceGetJpgUtilization", to=at(0)), None, "nvml_jpg_utilization_ratio"),
        "OFA": (call("nvmlDeviceGetOfaUtilization", to=at(0)), None, "nvml_ofa_utilization_ratio"),
    }
    for read, percent, ratio in sources.values():
        if percent:
            add(percent, read, PERCENT)
        if ratio:
            add(ratio, lambda gpu, read=read: then(read(gpu), lambda v: v / 100), PERCENT, unit=0.01)
    add("DCGM_FI_DEV_GPU_UTIL_RATIO", sources["GPU"][0], PERCENT)
    for kind in PROCESSES:
        add("nvml_processes", processes(kind), NUMBER, scope="instance", type=kind)
    encoder = "nvmlDeviceGetEncoderStats"
    add("nvml_encoder_sessions", call(encoder, to=at(0)), NUMBER)
    add("nvml_encoder_fps", call(encoder, to=at(1)), PERCENT)
    add("nvml_encoder_latency_seconds", call(encoder, to=lambda s: s[2] / 1e6), PERCENT, unit=1e-3)
    capture = "nvmlDeviceGetFBCStats"
    add("nvml_fbc_sessions", call(capture, to=lambda s: s.sessionsCount), NUMBER)
    add("nvml_fbc_fps", call(capture, to=lambda s: s.averageFPS), PERCENT)
    add("nvml_fbc_latency_seconds", call(capture, to=lambda s: s.averageLatency / 1e6), PERCENT, unit=1e-3)


def framebuffer(add: Callable) -> None:
    for part, mib, raw in (("total", "TOTAL", "CAPACITY"), ("free", "FREE", "FREE"),
                           ("used", "USED", "USED"), ("reserved", "RESERVED", "RESERVED")):
        kind = MEMORY if part in ("free", "used") else SETTING
        add(f"DCGM_FI_DEV_FB_{mib}", of_memory(part, lambda b: b // MIB), kind, "instance", 1 / MIB)
        add(f"DCGM_FI_DEV_FB_{raw}_BYTES", of_memory(part, lambda b: b), kind, "instance")
    add("DCGM_FI_DEV_FB_USED_PERCENT", used_share, PERCENT, "instance", 0.001)
    for part, mib, raw in (("bar1Total", "TOTAL", "CAPACITY"), ("bar1Free", "FREE", "FREE"),
                           ("bar1Used", "USED", "USED")):
        def read(to: Callable, part: str = part) -> Read:
            return call("nvmlDeviceGetBAR1MemoryInfo", to=lambda info: to(getattr(info, part)))
        kind = SETTING if part == "bar1Total" else MEMORY
        add(f"DCGM_FI_DEV_BAR1_{mib}", read(lambda b: b // MIB), kind, "instance", 1 / MIB)
        add(f"DCGM_FI_DEV_BAR1_{raw}_BYTES", read(lambda b: b), kind, "instance")


def heat_and_power(add: Callable, value: Callable) -> None:
    add("DCGM_FI_DEV_GPU_TEMP", call("nvmlDeviceGetTemperature", 0, to=celsius), TEMPERATURE)
    value("DCGM_FI_DEV_MEMORY_TEMP", 82, TEMPERATURE, celsius, decode=FieldValue.u32)
    add("DCGM_FI_DEV_GPU_TEMP_LIMIT", call("nvmlDeviceGetMarginTemperature"), TEMPERATURE)
    for name, threshold in (("SHUTDOWN_TEMP", 0), ("SLOWDOWN_TEMP", 1), ("MEM_MAX_OP_TEMP", 2),
                            ("GPU_MAX_OP_TEMP", 3)):
        add(f"DCGM_FI_DEV_{name}", call("nvmlDeviceGetTemperatureThreshold", threshold))
    for number, threshold in ((193, "shutdown"), (194, "slowdown"), (195, "memory_max"), (196, "gpu_max")):
        value("nvml_temperature_limit_margin_celsius", number, FIXED, threshold=threshold)

    def whole(milliwatts: int) -> int:
        return milliwatts // 1000

    add("DCGM_FI_DEV_POWER_USAGE", call("nvmlDeviceGetPowerUsage", to=lambda v: v / 1000), POWER)
    value("DCGM_FI_DEV_POWER_USAGE_INSTANT", 186, POWER, lambda v: v / 1000, decode=FieldValue.u32)
    value("nvml_power_average_watts", 185, POWER, lambda v: v / 1000)
    add("DCGM_FI_DEV_POWER_MGMT_LIMIT", call("nvmlDeviceGetPowerManagementLimit", to=whole), SETTING)
    for name, index in (("MIN", 0), ("MAX", 1)):
        add(f"DCGM_FI_DEV_POWER_MGMT_LIMIT_{name}", call(
            "nvmlDeviceGetPowerManagementLimitConstraints", to=lambda v, index=index: whole(v[index])))
    add("DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", call("nvmlDeviceGetPowerManagementDefaultLimit", to=whole))
    add("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", call("nvmlDeviceGetEnforcedPowerLimit", to=whole), SETTING)
    value("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 83)
    value("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 83, to=lambda v: v / 1000)
    add("DCGM_FI_DEV_PSTATE", call("nvmlDeviceGetPerformanceState"), STATE)
    add("DCGM_FI_DEV_FAN_SPEED", call("nvmlDeviceGetFanSpeed"), PERCENT)
    add("DCGM_FI_DEV_FAN_SPEED_RATIO", call("nvmlDeviceGetFanSpeed", to=lambda v: v / 100), PERCENT, unit=0.01)


def clocks(add: Callable, value: Callable) -> None:
    graphics, sm, mem, video = 0, 1, 2, 3
    for function, kind, names in (
        ("nvmlDeviceGetClockInfo", CLOCK, {
            sm: ("DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_SM_CLOCK_HERTZ"),
            mem: ("DCGM_FI_DEV_MEM_CLOCK", "DCGM_FI_DEV_MEMORY_CLOCK_HERTZ"),
            video: ("DCGM_FI_DEV_VIDEO_CLOCK", "DCGM_FI_DEV_VIDEO_CLOCK_HERTZ"),
            graphics: (None, "nvml_graphics_clock_hertz")}),
        ("nvmlDeviceGetMaxClockInfo", SETTING, {
            sm: ("DCGM_FI_DEV_MAX_SM_CLOCK", "DCGM_FI_DEV_SM_MAX_CLOCK_HERTZ"),
            mem: ("DCGM_FI_DEV_MAX_MEM_CLOCK", "DCGM_FI_DEV_MEMORY_MAX_CLOCK_HERTZ"),
            video: ("DCGM_FI_DEV_MAX_VIDEO_CLOCK", "DCGM_FI_DEV_VIDEO_MAX_CLOCK_HERTZ"),
            graphics: (None, "nvml_graphics_clock_max_hertz")}),
        # DCGM asks for the graphics clock here: there is no application clock of the SMs.
        ("nvmlDeviceGetApplicationsClock", SETTING, {
            graphics: ("DCGM_FI_DEV_APP_SM_CLOCK", "DCGM_FI_DEV_SM_APP_CLOCK_HERTZ"),
            mem: ("DCGM_FI_DEV_APP_MEM_CLOCK", "DCGM_FI_DEV_MEMORY_APP_CLOCK_HERTZ")}),
    ):
        for clock, (megahertz, hertz) in names.items():
            if megahertz:
                add(megahertz, call(function, clock), kind)
            add(hertz, call(function, clock, to=lambda v: v * 1_000_000), kind)
    add("DCGM_FI_DEV_AUTOBOOST", call("nvmlDeviceGetAutoBoostedClocksEnabled", to=at(0)), SETTING)

    add("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", event_reasons, STATE)
    for bit, reason in enumerate(("gpu_idle", "clocks_setting", "power_cap", "hw_slowdown", "sync_boost",
                                  "sw_thermal", "hw_thermal", "hw_power_brake", "display_clocks")):
        add("nvml_clocks_event_reason",
            lambda gpu, bit=bit: then(event_reasons(gpu), lambda mask: mask >> bit & 1), STATE, reason=reason)
    for name, number in (("POWER", 74), ("THERMAL", 75), ("SYNC_BOOST", 76), ("BOARD_LIMIT", 77),
                         ("LOW_UTIL", 78), ("RELIABILITY", 79), ("TOTAL_APP_CLOCKS", 80),
                         ("TOTAL_BASE_CLOCKS", 81)):
        value(f"DCGM_FI_DEV_{name}_VIOLATION", number)
    for name, number in (("POWER", 74), ("THERMAL", 75)):
        value(f"DCGM_FI_DEV_GPU_{name}_THROTTLE_SECONDS_TOTAL", number, to=lambda v: v / 1e9)
    for name, number in (("SW_POWER_CAP", 74), ("SYNC_BOOST", 76), ("SW_THERM_SLOWDOWN", 251),
                         ("HW_THERM_SLOWDOWN", 252), ("HW_POWER_BRAKE_SLOWDOWN", 253)):
        value(f"DCGM_FI_DEV_CLOCKS_EVENT_REASON_{name}_NS", number)
    for reason, number in (("power_cap", 74), ("thermal", 75), ("sync_boost", 76), ("board_limit", 77),
                           ("low_utilization", 78), ("reliability", 79), ("app_clocks", 80),
                           ("base_clocks", 81), ("sw_thermal", 251), ("hw_thermal", 252),
                           ("hw_power_brake", 253)):
        value("nvml_clocks_event_seconds_total", number, to=lambda v: v / 1e9, reason=reason)


def pcie(add: Callable, value: Callable) -> None:
    add("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", call("nvmlDeviceGetPcieReplayCounter"), COUNTER)
    add("DCGM_FI_DEV_PCIE_MAX_LINK_GEN", call("nvmlDeviceGetMaxPcieLinkGeneration"))
    add("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", call("nvmlDeviceGetMaxPcieLinkWidth"))
    add("DCGM_FI_DEV_PCIE_LINK_GEN", call("nvmlDeviceGetCurrPcieLinkGeneration"), STATE)
    add("DCGM_FI_DEV_PCIE_LINK_WIDTH", call("nvmlDeviceGetCurrPcieLinkWidth"), STATE)
    value("DCGM_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS", 173)
    value("nvml_pcie_tx_bytes_total", 197)
    value("nvml_pcie_rx_bytes_total", 198)
    value("nvml_pcie_replay_rollovers_total", 95)
    value("nvml_pcie_link_recoveries_total", 169)
    for number, kind in enumerate(("nak_received", "receiver", "bad_tlp", "nak_sent", "bad_dllp", "non_fatal",
                                   "fatal", "unsupported_request", "lcrc", "lane"), 174):
        value("nvml_pcie_errors_total", number, type=kind)


def ecc(add: Callable, value: Callable) -> None:
    add("DCGM_FI_DEV_ECC_CURRENT", call("nvmlDeviceGetEccMode", to=at(0)), SETTING)
    add("DCGM_FI_DEV_ECC_PENDING", call("nvmlDeviceGetEccMode", to=at(1)), SETTING)
    for name, number in (("SBE_VOL", 3), ("DBE_VOL", 4), ("SBE_AGG", 5), ("DBE_AGG", 6)):
        add(f"DCGM_FI_DEV_ECC_{name}_TOTAL", ecc_total(number), COUNTER, fields=((number, 0),))
    add("DCGM_FI_DEV_THRESHOLD_SRM", lambda gpu: then(
        struct(gpu, "nvmlDeviceGetSramEccErrorStatus", "c_nvmlEccSramErrorStatus_v1_t"),
        lambda s: s.bThresholdExceeded), SETTING)
    add("DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG", call("nvmlDeviceGetUnrepairableMemoryFlag_v1"), SETTING)
    # nvmlMemoryLocation_t
    for place, location in (("L1", 0), ("L2", 1), ("DEV", 2), ("REG", 3), ("TEX", 4), ("SHM", 5),
                            ("CBU", 6), ("SRM", 7)):
        for error, bits in (("SBE", 0), ("DBE", 1)):
            for life, counter in (("VOL", 0), ("AGG", 1)):
                add(f"DCGM_FI_DEV_ECC_{error}_{life}_{place}",
                    call("nvmlDeviceGetMemoryErrorCounter", bits, counter, location), COUNTER)
    add("DCGM_FI_DEV_RETIRED_SBE", retired(0), COUNTER)
    value("DCGM_FI_DEV_RETIRED_DBE", 30)
    value("DCGM_FI_DEV_RETIRED_PENDING", 31, SETTING)
    value("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", 143)
    value("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", 142)
    value("DCGM_FI_DEV_ROW_REMAP_FAILURE", 145, SETTING)
    value("DCGM_FI_DEV_ROW_REMAP_PENDING", 144, SETTING)
    for name in ("MAX", "HIGH", "PARTIAL", "LOW", "NONE"):
        add(f"DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_{name}", call(
            "nvmlDeviceGetRowRemapperHistogram", to=lambda h, part=name.lower(): getattr(h, part)), SETTING)


TX, RX = 138, 139

# nvmlNvLinkErrorCounter_t
LINK_ERRORS = (("REPLAY", 0), ("RECOVERY", 1), ("CRC_FLIT", 2), ("CRC_DATA", 3))


def rate(scope: Optional[int], counters: tuple, factor: float) -> Read:
    """Answers the counters; the comparison makes the rate of two rounds."""
    def read(gpu: Gpu, link: Optional[int] = None) -> Answer:
        where = link if scope is None else scope
        total, latest = 0, 0
        for counter in counters:
            answer = gpu.field(counter, where)
            if not answer.ok:
                return answer
            total += answer.value.tagged()
            latest = max(latest, answer.value.timestamp)
        return Answer(0, (total, latest, factor))
    return read


def nvlink(add: Callable, value: Callable) -> None:
    for name, number in (("CRC_FLIT_ERROR_COUNT", 38), ("CRC_DATA_ERROR_COUNT", 45),
                         ("REPLAY_ERROR_COUNT", 52), ("RECOVERY_ERROR_COUNT", 59),
                         ("ECC_DATA_ERROR_COUNT", 160)):
        value(f"DCGM_FI_DEV_NVLINK_{name}_TOTAL", number)
    for name, number in (("CRC", 163), ("RECOVERY", 162), ("REPLAY", 161)):
        value(f"DCGM_FI_DEV_NVLINK_ERROR_DL_{name}", number)
    for name, error in LINK_ERRORS:
        add(f"DCGM_FI_DEV_NVLINK_{name}_ERROR_PER_LINK_TOTAL",
            lambda gpu, link, error=error: gpu.call("nvmlDeviceGetNvLinkErrorCounter", link, error),
            COUNTER, scope="link")
        for link in range(18):
            add(f"DCGM_FI_DEV_NVLINK_{name}_ERROR_COUNT_L{link}",
                call("nvmlDeviceGetNvLinkErrorCounter", link, error), COUNTER)
    add("DCGM_FI_DEV_NVLINK_GET_STATE",
        lambda gpu, link: then(gpu.field(165, link), FieldValue.u32), STATE, scope="link", fields=((165, None),))
    add("nvml_nvlink_up", lambda gpu, link: gpu.call("nvmlDeviceGetNvLinkState", link), STATE, scope="link")
    value("nvml_nvlinks", 91, FIXED)
    value("nvml_nvlink_tx_bytes_total", TX, to=lambda v: v * 1024, scope=ALL_LINKS)
    value("nvml_nvlink_rx_bytes_total", RX, to=lambda v: v * 1024, scope=ALL_LINKS)

    # DCGM's unit: thousands of KiB a second.
    ways = (("", (TX, RX)), ("TX_", (TX,)), ("RX_", (RX,)))
    for way, counters in ways:
        def both(where: Optional[int], counters: tuple = counters) -> tuple:
            return tuple((counter, where) for counter in counters)
        add(f"DCGM_FI_DEV_NVLINK_{way}BANDWIDTH_TOTAL", rate(ALL_LINKS, counters, 1e-3), RATE,
            fields=both(ALL_LINKS))
        add(f"DCGM_FI_DEV_NVLINK_{way}THROUGHPUT_PER_LINK", rate(None, counters, 1e-3), RATE,
            scope="link", fields=both(None))
        for link in range(18):
            add(f"DCGM_FI_DEV_NVLINK_{way}BANDWIDTH_L{link}", rate(link, counters, 1e-3), RATE,
                fields=both(link))
    add("DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", rate(ALL_LINKS, (TX, RX), 1024), RATE,
        unit=1024000, fields=((TX, ALL_LINKS), (RX, ALL_LINKS)))
    for link in range(18):
        add(f"DCGM_FI_DEV_NVLINK_THROUGHPUT_L{link}_BYTES_PER_SECOND", rate(link, (TX, RX), 1024), RATE,
            unit=1024000, fields=((TX, link), (RX, link)))

    # NVLink 5.
    for name, number in (("TX_PACKETS", 201), ("TX_BYTES", 202), ("RX_PACKETS", 203), ("RX_BYTES", 204),
                         ("RX_MALFORMED_PACKET_ERRORS", 206), ("RX_BUFFER_OVERRUN_ERRORS", 207),
                         ("RX_ERRORS", 208), ("RX_REMOTE_ERRORS", 209), ("RX_GENERAL_ERRORS", 210),
                         ("LOCAL_LINK_INTEGRITY_ERRORS", 211), ("TX_DISCARDS", 212),
                         ("LINK_RECOVERY_SUCCESSFUL_EVENTS", 213), ("LINK_RECOVERY_FAILED_EVENTS", 214),
                         ("LINK_RECOVERY_EVENTS", 215), ("RX_SYMBOL_ERRORS", 221),
                         ("EFFECTIVE_ERRORS", 219)):
        value(f"DCGM_FI_DEV_NVLINK_COUNT_{name}", number, scope=ALL_LINKS)
    for name, number in (("SYMBOL_BER", 222), ("EFFECTIVE_BER", 220)):
        value(f"DCGM_FI_DEV_NVLINK_COUNT_{name}", number, STATE, scope=ALL_LINKS)
        value(f"DCGM_FI_DEV_NVLINK_COUNT_{name}_FLOAT", number, STATE, bit_error_rate, ALL_LINKS)
    for symbols in range(16):
        value(f"DCGM_FI_DEV_NVLINK_COUNT_FEC_HISTORY_{symbols}", 235 + symbols, scope=ALL_LINKS)


def fabric_and_platform(add: Callable, value: Callable) -> None:
    add("DCGM_FI_DEV_FABRIC_MANAGER_STATUS", fabric(fabric_status), SETTING)
    add("DCGM_FI_DEV_FABRIC_MANAGER_ERROR_CODE", fabric(
        lambda i: i.status if i.state == n.NVML_GPU_FABRIC_STATE_COMPLETED else None), SETTING)
    add("DCGM_FI_DEV_FABRIC_CLUSTER_UUID", fabric(cluster_uuid))
    add("DCGM_FI_DEV_FABRIC_CLIQUE_ID", fabric(lambda i: i.cliqueId), SETTING)
    add("DCGM_FI_DEV_FABRIC_HEALTH_MASK", fabric(lambda i: i.healthMask), SETTING)
    add("DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY", fabric_summary, SETTING)
    value("DCGM_FI_DEV_C2C_LINK_COUNT", 170, FIXED)
    value("DCGM_FI_DEV_C2C_LINK_STATUS", 171, STATE)
    value("DCGM_FI_DEV_C2C_MAX_BANDWIDTH", 172, FIXED)
    value("DCGM_FI_DEV_C2C_LINK_ERROR_INTR", 231)
    value("DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY", 232)
    value("DCGM_FI_DEV_C2C_LINK_ERROR_REPLAY_B2B", 233)
    value("DCGM_FI_DEV_C2C_LINK_POWER_STATE", 234, STATE)
    # nvmlPlatformInfo_v2_t: version, 16 bytes GUID, 16 bytes serial number, five numbers.
    add("DCGM_FI_DEV_PLATFORM_INFINIBAND_GUID", platform(lambda raw: raw[4:20].hex()))
    add("DCGM_FI_DEV_PLATFORM_CHASSIS_SERIAL_NUMBER", platform(lambda raw: text_of(raw[20:36])))
    for offset, name in enumerate(("CHASSIS_SLOT_NUMBER", "TRAY_INDEX", "HOST_ID", "PEER_TYPE", "MODULE_ID"), 36):
        add(f"DCGM_FI_DEV_PLATFORM_{name}", platform(lambda raw, offset=offset: raw[offset]))


def smoothing(value: Callable) -> None:
    """Ids in the numbering before driver 580.82; DCGM casts most of them to doubles."""
    for number, name in enumerate((
        "ENABLED", "PRIV_LVL", "IMM_RAMP_DOWN_ENABLED", "APPLIED_TMP_CEIL", "APPLIED_TMP_FLOOR",
        "MAX_PERCENT_TMP_FLOOR_SETTING", "MIN_PERCENT_TMP_FLOOR_SETTING",
        "HW_CIRCUITRY_PERCENT_LIFETIME_REMAINING", "MAX_NUM_PRESET_PROFILES", "PROFILE_PERCENT_TMP_FLOOR",
        "PROFILE_RAMP_UP_RATE", "PROFILE_RAMP_DOWN_RATE", "PROFILE_RAMP_DOWN_HYST_VAL",
        "ACTIVE_PRESET_PROFILE", "ADMIN_OVERRIDE_PERCENT_TMP_FLOOR", "ADMIN_OVERRIDE_RAMP_UP_RATE",
        "ADMIN_OVERRIDE_RAMP_DOWN_RATE", "ADMIN_OVERRIDE_RAMP_DOWN_HYST_VAL"), 256):
        value(f"DCGM_FI_DEV_PWR_SMOOTHING_{name}", number, SETTING)


def entities(gpu: int, instances: list, spec: Spec) -> list[Entity]:
    """The rows in which a field of this GPU is served. Where a GPU has instances, DCGM's board
    values stand under each of them; families of our own give them once."""
    if spec.scope == "link":
        raise ValueError("links are counted per GPU")
    rows = [Entity(gpu, instance) for instance in instances] or [Entity(gpu)]
    if spec.scope == "instance" or spec.name.startswith("DCGM_"):
        return rows
    return [Entity(gpu)]
