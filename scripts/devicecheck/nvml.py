"""NVML through nvidia-ml-py. Every call is timed and kept for the record; only reading calls pass."""

from __future__ import annotations

import ctypes
import re
import time
from typing import Any, NamedTuple

import pynvml

ALL_LINKS = 0xFFFFFFFF

# What may be called. nvmlDeviceValidateInforom reads the board's flash. Registering for events
# concerns this client alone.
READING = re.compile(
    r"nvml(Init|Shutdown|System(Get|EventSet)|Device(Get|Is|OnSameBoard|ValidateInforom|RegisterEvents)"
    r"|Gpm(Query|SampleGet|SampleAlloc|SampleFree|MigSampleGet|MetricsGet)"
    r"|GpuInstanceGet|ComputeInstanceGet|EventSet|GetExcluded|UnitGet)"
)

BINDING_LACKS = -1
CLIENT_FAILED = -2

CODES = {
    value: name[len("NVML_ERROR_"):]
    for name, value in vars(pynvml).items()
    if name.startswith("NVML_ERROR_") and isinstance(value, int)
}
CODES.update({0: "SUCCESS", BINDING_LACKS: "BINDING_LACKS", CLIENT_FAILED: "CLIENT_FAILED"})

VALUE_TYPES = ["double", "u32", "ulong", "u64", "i64", "i32", "u16"]


class Answer(NamedTuple):
    """What a call said: NVML's code, the binding's value, and the time it took."""

    code: int
    value: Any
    micros: float = 0.0

    @property
    def ok(self) -> bool:
        return self.code == 0

    @property
    def name(self) -> str:
        return CODES.get(self.code, str(self.code))


class Entry:
    """A call with its arguments in the record: the last answer, and all latencies."""

    def __init__(self) -> None:
        self.answer = Answer(0, None)
        self.details: dict[str, Any] = {}
        self.micros: list[float] = []


class Nvml:
    """The library, initialised, and the record of what it has answered."""

    def __init__(self) -> None:
        self.record: dict[tuple[str, str, tuple], Entry] = {}

    def call(self, device: str, name: str, *args: Any, shown: tuple = (), raw: Any = None) -> Answer:
        """Calls the binding's function, or `raw` under the name; `shown` are the arguments that
        the record shows, handles left out."""
        if not READING.match(name):
            raise ValueError(f"{name} is not known to read only")
        function = raw or getattr(pynvml, name, None)
        began = time.perf_counter()
        if function is None:
            answer = Answer(BINDING_LACKS, None)
        else:
            try:
                value, code = function(*args), 0
            except pynvml.NVMLError as error:
                value, code = None, error.value
            except (TypeError, ValueError, AttributeError, ctypes.ArgumentError) as error:
                value, code = f"{type(error).__name__}: {error}", CLIENT_FAILED
            answer = Answer(code, value, (time.perf_counter() - began) * 1e6)
        self.note(device, name, shown, answer)
        return answer

    def note(self, device: str, name: str, shown: tuple, answer: Answer, **details: Any) -> None:
        entry = self.record.setdefault((device, name, shown), Entry())
        entry.answer, entry.details = answer, details
        entry.micros.append(answer.micros)

    def count(self, device: str, names: list[str], handle: Any) -> Answer:
        """The number of entries of a list, asked for with no room, by the newest function there is."""
        answer = Answer(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, None)
        for name in names:
            answer = self.call(device, name, shown=("count",), raw=lambda: _count(name, handle))
            if answer.code != pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
                break
        return answer

    def field_values(self, device: str, handle: Any, wanted: list[tuple[int, int]]) -> dict:
        """Many (id, scope) in calls of at most 64 entries: what each answered, as `Answer`s whose
        value is a dictionary of `type`, `raw` bytes, `timestamp` and `latency`."""
        answers: dict[tuple[int, int], Answer] = {}
        for start in range(0, len(wanted), 64):
            part = wanted[start:start + 64]
            began = time.perf_counter()
            try:
                values, code = pynvml.nvmlDeviceGetFieldValues(handle, part), 0
            except pynvml.NVMLError as error:
                values, code = [None] * len(part), error.value
            micros = (time.perf_counter() - began) * 1e6 / len(part)
            for (field, scope), value in zip(part, values):
                if value is None:
                    answer, details = Answer(code, None, micros), {}
                else:
                    answer = Answer(value.nvmlReturn, _field_value(value), micros)
                    details = {
                        "value_type": _type_name(value.valueType),
                        "latency_us": value.latencyUsec,
                        "timestamp_us": value.timestamp,
                    }
                self.note(device, "nvmlDeviceGetFieldValues", (field, scope), answer, **details)
                answers[field, scope] = answer
        return answers


class FieldValue(NamedTuple):
    """The union of a field value, undecoded."""

    kind: int
    raw: bytes
    timestamp: int
    latency: int

    def tagged(self) -> Any:
        """As the value type says."""
        return _UNIONS.get(self.kind, ctypes.c_ulonglong).from_buffer_copy(self.raw).value

    def u32(self) -> int:
        return ctypes.c_uint.from_buffer_copy(self.raw).value

    def u64(self) -> int:
        return ctypes.c_ulonglong.from_buffer_copy(self.raw).value

    def untouched(self) -> bool:
        return self.timestamp == 0 and self.latency == 0 and self.kind == 0


_UNIONS = {
    0: ctypes.c_double, 1: ctypes.c_uint, 2: ctypes.c_ulong, 3: ctypes.c_ulonglong,
    4: ctypes.c_longlong, 5: ctypes.c_int, 6: ctypes.c_ushort,
}


def _field_value(value: Any) -> FieldValue:
    return FieldValue(value.valueType, bytes(value.value), value.timestamp, value.latencyUsec)


def _type_name(kind: int) -> str:
    return VALUE_TYPES[kind] if kind < len(VALUE_TYPES) else str(kind)


def _count(name: str, handle: Any) -> int:
    count = ctypes.c_uint(0)
    code = pynvml._nvmlGetFunctionPointer(name)(handle, ctypes.byref(count), None)
    if code not in (0, pynvml.NVML_ERROR_INSUFFICIENT_SIZE):
        raise pynvml.NVMLError(code)
    return count.value


def plain(value: Any) -> Any:
    """A binding's value as JSON can hold it."""
    if isinstance(value, FieldValue):
        return {"value": plain(value.tagged()), "raw": value.raw.hex()}
    if isinstance(value, bytes):
        try:
            return value.decode("ascii")
        except UnicodeDecodeError:
            return value.hex()
    if isinstance(value, float) and value != value:
        return "NaN"
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if isinstance(value, ctypes._SimpleCData):
        return plain(value.value)
    if isinstance(value, ctypes.Array):
        return plain(list(value))
    if isinstance(value, ctypes.Union):
        return {"raw": bytes(value).hex()}
    if isinstance(value, ctypes.Structure):
        return {name: plain(getattr(value, name)) for name, *_ in value._fields_}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "__dict__"):
        return {name: plain(item) for name, item in vars(value).items()}
    return type(value).__name__


def type_name(value: Any) -> str:
    """How the record names the type of a value."""
    if isinstance(value, (ctypes.Structure, ctypes.Union)):
        return type(value).__name__
    if isinstance(value, FieldValue):
        return _type_name(value.kind)
    return {str: "text", bytes: "text", int: "integer", float: "double", list: "list"}.get(
        type(value), type(value).__name__
    )
