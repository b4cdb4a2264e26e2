"""Rounds of page, NVML, page; and what differs between them."""

from __future__ import annotations

import math
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .expected import EVENT, FIXED, RATE, SETTING, COUNTER, STATE, Gpu, Spec, entities
from .exporter import OWN, Exporter
from .nvml import BINDING_LACKS, CLIENT_FAILED, Answer, Nvml, plain
from .page import Entity, Page, Sample

FOLLOWED = ("nvml_nvlink_tx_bytes_total", "nvml_nvlink_rx_bytes_total",
            "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND")

Place = Tuple[str, Tuple[Tuple[str, str], ...], Entity]


class Difference(NamedTuple):
    field: str
    where: str
    what: str


class Round(NamedTuple):
    before: Page
    after: Page
    answers: Dict[Place, Tuple[Spec, Answer]]
    seconds: float  # how long the reading of NVML took
    apart: float    # from the page before to the end of that reading
    wall: float


class Board(NamedTuple):
    """One GPU as NVML names it, with its GPU instances and their lowest compute instances."""

    index: int
    handle: Any
    uuid: str
    name: str
    bus_id: str
    links: int
    instances: Dict[int, Tuple[Any, str, str]]  # id: handle, UUID of that compute instance, profile


def driver_version(nvml: Nvml) -> Tuple[int, ...]:
    answer = nvml.call("system", "nvmlSystemGetDriverVersion")
    return tuple(int(part) for part in str(answer.value or 0).split(".") if part.isdigit())


def boards(nvml: Nvml) -> List[Board]:
    """The GPUs that can be opened."""
    found = []
    for index in range(nvml.call("system", "nvmlDeviceGetCount").value or 0):
        opened = nvml.call("system", "nvmlDeviceGetHandleByIndex", index, shown=(index,))
        if not opened.ok:
            continue
        handle = opened.value
        uuid = str(nvml.call(f"GPU {index}", "nvmlDeviceGetUUID", handle).value)
        pci = nvml.call(f"GPU {index}", "nvmlDeviceGetPciInfo_v3", handle).value
        bus_id = pci.busId if pci else ""
        count = nvml.field_values(f"GPU {index}", handle, [(91, 0)])[91, 0]
        found.append(Board(
            index, handle, uuid,
            str(nvml.call(f"GPU {index}", "nvmlDeviceGetName", handle).value),
            (bus_id.decode() if isinstance(bus_id, bytes) else bus_id).upper(),
            count.value.u32() if count.ok else 0,
            instances(nvml, index, handle),
        ))
    return found


def instances(nvml: Nvml, index: int, handle: Any) -> Dict[int, Tuple[Any, str, str]]:
    device = f"GPU {index}"
    mode = nvml.call(device, "nvmlDeviceGetMigMode", handle)
    if not mode.ok or mode.value[0] != 1:
        return {}
    found: Dict[int, Tuple[int, Any, str, str]] = {}
    for slot in range(nvml.call(device, "nvmlDeviceGetMaxMigDeviceCount", handle).value or 0):
        opened = nvml.call(device, "nvmlDeviceGetMigDeviceHandleByIndex", handle, slot, shown=(slot,))
        if not opened.ok:
            continue
        mig = f"{device} MIG slot {slot}"
        group = nvml.call(mig, "nvmlDeviceGetGpuInstanceId", opened.value).value
        compute = nvml.call(mig, "nvmlDeviceGetComputeInstanceId", opened.value).value
        uuid = nvml.call(mig, "nvmlDeviceGetUUID", opened.value).value
        name = nvml.call(mig, "nvmlDeviceGetName", opened.value).value or ""
        profile = name.rpartition("MIG ")[2]
        if profile.partition(".")[0].endswith("c"):
            profile = profile.partition(".")[2]
        if group not in found or compute < found[group][0]:
            found[group] = (compute, opened.value, uuid, profile)
    return {group: rest[1:] for group, rest in found.items()}


def read(nvml: Nvml, specs: List[Spec]) -> Tuple[List[Board], Dict[Place, Tuple[Spec, Answer]]]:
    """Every line of the table on every device."""
    driver = driver_version(nvml)
    found = boards(nvml)
    answers: Dict[Place, Tuple[Spec, Answer]] = {}
    for board in found:
        gpu = Gpu(nvml, board.handle, board.index, f"GPU {board.index}", driver, board.links)
        gpu.prefetch([
            (number, link if scope is None else scope)
            for spec in specs for number, scope in spec.fields
            for link in (range(board.links) if scope is None else [0])
        ])
        parts = {
            group: Gpu(nvml, handle, board.index, f"GPU {board.index} instance {group}", driver, 0,
                       (board.handle, group))
            for group, (handle, *_) in board.instances.items()
        }
        for spec in specs:
            labels = tuple(sorted((spec.labels or {}).items()))
            if spec.scope == "link":
                for link in range(board.links):
                    place = (spec.name, labels, Entity(board.index, None, link))
                    answers[place] = (spec, spec.read(gpu, link))
                continue
            for row in entities(board.index, list(parts), spec):
                source = parts.get(row.instance, gpu) if spec.scope == "instance" else gpu
                answers[spec.name, labels, row] = (spec, spec.read(source))
    return found, answers


def next_pages(exporter: Exporter, since: float, seconds: float) -> Page:
    """A page on which every GPU was read by a pass that began after `since`: the second one that
    ended later, since the first may have been under way."""
    seen: Dict[int, set] = {}

    def both(page: Page) -> bool:
        for gpu, at in page.read_at().items():
            # The page's times are rounded; passes lie much further apart.
            if at > since and all(abs(at - other) > 0.02 for other in seen.setdefault(gpu, set())):
                seen[gpu].add(at)
        return all(len(seen.get(gpu, ())) >= 2 for gpu in page.read_at())

    return exporter.until(both, seconds, "two passes after NVML was read")


def run_round(exporter: Exporter, nvml: Nvml, specs: List[Spec]) -> Tuple[List[Board], Round]:
    before = exporter.page()
    began = time.time()
    found, answers = read(nvml, specs)
    ended = time.time()
    after = next_pages(exporter, ended, 20)
    return found, Round(before, after, answers, ended - began, ended - began, ended)


class Verdicts:
    """What the rounds came to."""

    def __init__(self) -> None:
        self.differences: List[Difference] = []
        self.unverified: Dict[str, str] = {}
        self.compared: Dict[str, int] = {}      # kind: series compared
        self.present: set = set()               # fields with a series and an answer
        self.absent: Dict[str, set] = {}        # field: codes with which NVML refused it everywhere

    def differ(self, field: str, where: Any, what: str) -> None:
        self.differences.append(Difference(field, str(where), what))


def judge(rounds: List[Round], specs: List[Spec]) -> Verdicts:
    verdicts = Verdicts()
    places: Dict[Place, Spec] = {}
    for one in rounds:
        for place, (spec, _) in one.answers.items():
            places[place] = spec
    for place, spec in places.items():
        _series(verdicts, rounds, place, spec)
    _extra(verdicts, rounds, places, {spec.name for spec in specs})
    return verdicts


def _series(verdicts: Verdicts, rounds: List[Round], place: Place, spec: Spec) -> None:
    name, labels, row = place
    outside: List[str] = []
    checked = 0
    previous: Optional[Tuple[Round, Answer]] = None
    for one in rounds:
        _, answer = one.answers.get(place, (spec, None))
        if answer is None:
            continue
        before, after = (_find(page, name, dict(labels), row, answer) for page in (one.before, one.after))
        if answer.code == BINDING_LACKS:
            verdicts.unverified[name] = "this nvidia-ml-py has no such function"
            return
        if answer.code == CLIENT_FAILED:
            verdicts.differ(name, row, f"nvidia-ml-py could not make the call: {answer.value}")
            return
        if spec.kind is EVENT:
            verdicts.unverified[name] = EVENT.reason
            if before is None or after is None:
                verdicts.differ(name, row, "no series")
            return
        if not answer.ok or answer.value is None:
            verdicts.absent.setdefault(name, set()).add(answer.name if not answer.ok else "no value")
            if before is not None or after is not None:
                shown = (before or after).value
                verdicts.differ(name, row, f"a series ({shown:g}), but NVML answers {answer.name}"
                                + (" without a value" if answer.ok else ""))
            _reason(verdicts, one.after, place, answer)
            return
        verdicts.present.add(name)
        if before is None or after is None:
            if spec.kind is RATE and before is None and after is None and _still(rounds, place):
                verdicts.unverified[name] = "the clock of the counters stands still"
                return
            verdicts.differ(name, row, f"NVML answers {_shown(answer.value)}, but there is no series")
            return
        if spec.kind is RATE:
            problem = _rate(spec, previous, one, answer, before)
            if previous is not None:
                checked += 1
            previous = (one, answer)
        else:
            problem = _value(spec, answer.value, before, after)
            checked += 1
        if problem:
            outside.append(problem)
    verdicts.compared[spec.kind.name] = verdicts.compared.get(spec.kind.name, 0) + (checked > 0)
    if len(outside) * 2 > checked if spec.kind.majority else outside:
        verdicts.differ(name, _where(row, labels), outside[0] + f"; in {len(outside)} of {checked} rounds")


def _where(row: Entity, labels: tuple) -> str:
    return " ".join([str(row), *(f"{name}={text}" for name, text in labels)])


def _shown(value: Any) -> str:
    return str(plain(value))


def _find(page: Page, name: str, labels: Dict[str, str], row: Entity, answer: Answer) -> Optional[Sample]:
    """The series; of a text, the only one."""
    samples = page.devices(name).get(row, [])
    if labels:
        samples = [sample for sample in samples if sample.further == labels]
    return samples[0] if len(samples) == 1 else None


def _value(spec: Spec, expected: Any, before: Sample, after: Sample) -> Optional[str]:
    if isinstance(expected, str):
        texts = [list(sample.further.values()) for sample in (before, after)]
        if texts == [[expected], [expected]]:
            return None
        return f"served {texts[0]} and {texts[1]}, NVML {expected!r}"
    low, high = sorted((before.value, after.value))
    text = f"served {before.value:.12g} then {after.value:.12g}, NVML {float(expected):.12g}"
    close = [math.isclose(expected, value, rel_tol=1e-9, abs_tol=1e-12) for value in (before.value, after.value)]
    if spec.kind is FIXED:
        return None if all(close) else text
    if spec.kind in (SETTING, STATE):
        return None if any(close) else text
    if spec.kind is COUNTER:
        if any(close) or before.value <= expected <= after.value:
            return None
        # A counter that wrapped in between.
        if after.value < before.value and (expected >= before.value or expected <= after.value):
            return None
        return text
    slack = max(spec.kind.absolute * spec.unit, spec.kind.relative * max(abs(high), abs(low)))
    return None if low - slack <= expected <= high + slack else text


def _still(rounds: List[Round], place: Place) -> bool:
    times = {one.answers[place][1].value[1] for one in rounds if place in one.answers
             and one.answers[place][1].ok}
    return len(times) == 1


def _rate(spec: Spec, previous: Optional[Tuple[Round, Answer]], one: Round, answer: Answer,
          before: Sample) -> Optional[str]:
    """The mean between two readings of the counters, beside what was served in between."""
    if previous is None:
        return None
    earlier, (total_before, at_before, _) = previous[0], previous[1].value
    total, at, factor = answer.value
    seconds = (at - at_before) / 1e6 if at_before else one.wall - earlier.wall
    if seconds <= 0 or total < total_before:
        return None
    expected = (total - total_before) / seconds * factor
    slack = max(spec.kind.absolute * spec.unit, spec.kind.relative * expected)
    if abs(before.value - expected) <= slack:
        return None
    return f"served {before.value:.6g}, the counters grew by {expected:.6g} a second"


def _reason(verdicts: Verdicts, page: Page, place: Place, answer: Answer) -> None:
    """The exporter's own account of why a field is missing names NVML's code."""
    name, labels, row = place
    if answer.ok or row.link is not None:
        return
    reasons = {
        sample.labels.get("reason")
        for sample in page.samples.get("nvml_exporter_field_unsupported", [])
        if sample.labels.get("field") == name and sample.labels.get("gpu") == str(row.gpu)
    }
    if reasons and answer.name not in reasons:
        verdicts.differ(name, row, f"said to be missing for {sorted(map(str, reasons))}, NVML answers {answer.name}")


def _extra(verdicts: Verdicts, rounds: List[Round], places: Dict[Place, Spec], names: set) -> None:
    """Series of the fields for which no answer was asked: a device that is not there."""
    known = {(name, row) for name, _, row in places}
    for name in names:
        for row in rounds[-1].after.devices(name):
            if (name, row) not in known:
                verdicts.differ(name, row, "a series of a device that NVML does not show")


def identities(verdicts: Verdicts, page: Page, found: List[Board]) -> int:
    """The labels that say which device a sample is of, on every sample. Gives the number checked."""
    by_index = {board.index: board for board in found}
    checked = 0
    wrong: Dict[Tuple[str, str], str] = {}
    for name, samples in page.samples.items():
        for sample in samples:
            labels = sample.labels
            board = by_index.get(int(labels["gpu"])) if labels.get("gpu", "").isdigit() else None
            if board is None:
                continue
            checked += 1
            expected = {
                "UUID": board.uuid, "gpu_uuid": board.uuid, "pci_bus_id": board.bus_id,
                "device": f"nvidia{board.index}", "modelName": board.name, "model_name": board.name,
            }
            group = labels.get("GPU_I_ID")
            if group is not None:
                expected["GPU_I_PROFILE"] = board.instances.get(int(group), ("", "", "?"))[2]
            for label, text in expected.items():
                if label in labels and labels[label] != text:
                    wrong[label, labels[label]] = f"label {label}={labels[label]!r}, NVML {text!r} (e.g. {name})"
    for (label, _), what in wrong.items():
        verdicts.differ(f"label {label}", "", what)
    return checked


def rates_follow_counters(verdicts: Verdicts, exporter: Exporter, passes: int) -> int:
    """Follows the page: the served NVLink throughput is the growth of the served byte counters over
    the time between the passes. Gives the number of comparisons."""
    history: Dict[int, Dict[float, Tuple[float, float]]] = {}
    end = time.monotonic() + 3 * passes + 5
    while time.monotonic() < end and (not history or min(map(len, history.values())) < passes):
        page = exporter.page(*OWN, *FOLLOWED)
        for gpu, at in page.read_at().items():
            sent, received, rate = (page.number(name, gpu=str(gpu)) for name in FOLLOWED)
            if sent is None or received is None or rate is None:
                continue
            if all(abs(at - other) > 0.02 for other in history.setdefault(gpu, {})):
                history[gpu][at] = (sent + received, rate)
        if not history:
            return 0
        time.sleep(0.05)
    checked = 0
    for gpu, readings in history.items():
        times = sorted(readings)
        bad = []
        for earlier, later in zip(times, times[1:]):
            checked += 1
            expected = (readings[later][0] - readings[earlier][0]) / (later - earlier)
            served = readings[later][1]
            # NVML's own times make the rate; the page knows when the pass ended.
            if abs(served - expected) > 0.1 * max(expected, served) + 1024:
                bad.append(f"served {served:.6g} bytes/s, the counters grew by {expected:.6g} a second")
        if len(bad) * 2 > len(times):
            verdicts.differ("NVLink throughput", f"GPU {gpu}", bad[0])
    return checked
