"""Profiling metrics: what GPM answers between two samples of a round.

Metric numbers are those of nvml.h (`nvmlGpmMetricId_t`), field names those of dcgm_fields.h.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterable, List, Optional

import pynvml as n

from .nvml import Answer, Nvml

# The driver refreshes its counters every 100 ms; two samples lie further apart.
GAP = 0.15
# The binding's struct has room for more, but this is what older headers had.
ROOM = 64

MIB = 1048576

# Per GPU instance, or of the GPU as a whole: percent, served as a ratio.
SHARES = {
    "GR_ENGINE_ACTIVE": 1, "SM_ACTIVE": 2, "SM_OCCUPANCY": 3, "PIPE_INT_ACTIVE": 4,
    "PIPE_TENSOR_ACTIVE": 5, "PIPE_TENSOR_DFMA_ACTIVE": 6, "PIPE_TENSOR_HMMA_ACTIVE": 7,
    "PIPE_TENSOR_IMMA_ACTIVE": 9, "DRAM_ACTIVE": 10, "PIPE_FP64_ACTIVE": 11, "PIPE_FP32_ACTIVE": 12,
    "PIPE_FP16_ACTIVE": 13,
}

# Of the GPU as a whole: percent, served as a ratio.
ENGINES = {
    **{f"NVDEC{engine}_ACTIVE": 30 + engine for engine in range(8)},
    **{f"NVJPG{engine}_ACTIVE": 40 + engine for engine in range(8)},
    **{f"NVOFA{engine}_ACTIVE": 50 + engine for engine in range(2)},
}

# MiB a second, served in bytes a second. Receiving comes before sending, but for C2C and PCIe.
RATES = {
    "PCIE_TX_BYTES": 20, "PCIE_RX_BYTES": 21, "NVLINK_RX_BYTES": 60, "NVLINK_TX_BYTES": 61,
    "C2C_TX_ALL_BYTES": 100, "C2C_RX_ALL_BYTES": 101, "C2C_TX_DATA_BYTES": 102, "C2C_RX_DATA_BYTES": 103,
    **{f"NVLINK_L{link}_RX_BYTES": 62 + 2 * link for link in range(18)},
    **{f"NVLINK_L{link}_TX_BYTES": 63 + 2 * link for link in range(18)},
}

# Percent, served as whole percent.
PERCENTAGES = {
    "HOSTMEM_CACHE_HIT": 160, "HOSTMEM_CACHE_MISS": 161, "PEERMEM_CACHE_HIT": 162, "PEERMEM_CACHE_MISS": 163,
}

COUNTS = {
    "SM_CYCLES_ELAPSED_TOTAL": 248, "SM_CYCLES_ACTIVE_TOTAL": 249, "MMA_CYCLES_ACTIVE_TOTAL": 250,
    "DMMA_CYCLES_ACTIVE_TOTAL": 251, "HMMA_CYCLES_ACTIVE_TOTAL": 252, "IMMA_CYCLES_ACTIVE_TOTAL": 253,
    "DFMA_CYCLES_ACTIVE_TOTAL": 254, "PCIE_TX_BYTES_TOTAL": 255, "PCIE_RX_BYTES_TOTAL": 256,
    "INT_CYCLES_ACTIVE_TOTAL": 257, "FP64_CYCLES_ACTIVE_TOTAL": 258, "FP32_CYCLES_ACTIVE_TOTAL": 259,
    "FP16_CYCLES_ACTIVE_TOTAL": 260,
}


def of_link(link: int, sends: bool) -> int:
    """The ranges of links 0 to 17 and 18 to 35 lie apart."""
    first = 62 + 2 * link if link < 18 else 212 + 2 * (link - 18)
    return first + sends


WANTED = sorted({
    *SHARES.values(), *ENGINES.values(), *RATES.values(), *PERCENTAGES.values(), *COUNTS.values(),
    *(of_link(link, sends) for link in range(18, 36) for sends in (False, True)),
})


class Samples:
    """Two samples of one device in one round."""

    def __init__(self, nvml: Nvml, at: str, handle: Any, instance: Optional[int] = None) -> None:
        self.nvml, self.at, self.handle, self.instance = nvml, at, handle, instance
        self.buffers: List[Any] = []
        self.answers: Optional[Dict[int, Answer]] = None
        self.began = time.monotonic()
        self.failed = self.take()

    def take(self) -> Optional[Answer]:
        """Takes a sample; what went wrong, if anything."""
        allocated = self.nvml.call(self.at, "nvmlGpmSampleAlloc")
        if not allocated.ok:
            return allocated
        self.buffers.append(allocated.value)
        if self.instance is None:
            taken = self.nvml.call(self.at, "nvmlGpmSampleGet", allocated.value, shown=(),
                                   raw=lambda sample: n.nvmlGpmSampleGet(self.handle, sample))
        else:
            taken = self.nvml.call(self.at, "nvmlGpmMigSampleGet", allocated.value, shown=(),
                                   raw=lambda s: n.nvmlGpmMigSampleGet(self.handle, self.instance, s))
        return None if taken.ok else taken

    def metric(self, number: int) -> Answer:
        """A metric; a value that is not a number is none."""
        if self.answers is None:
            self.answers = self.finish()
        return self.answers[number]

    def finish(self) -> Dict[int, Answer]:
        try:
            if self.failed is None:
                time.sleep(max(0.0, self.began + GAP - time.monotonic()))
                self.failed = self.take()
            if self.failed is not None:
                return dict.fromkeys(WANTED, self.failed)
            answers: Dict[int, Answer] = {}
            for start in range(0, len(WANTED), ROOM):
                answers.update(self.ask(WANTED[start:start + ROOM]))
            return answers
        finally:
            for buffer in self.buffers:
                self.nvml.call(self.at, "nvmlGpmSampleFree", buffer)

    def ask(self, wanted: Iterable[int]) -> Dict[int, Answer]:
        wanted = list(wanted)
        request = n.c_nvmlGpmMetricsGet_t()
        request.version = n.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(wanted)
        request.sample1, request.sample2 = self.buffers
        for slot, metric in zip(request.metrics, wanted):
            slot.metricId = metric
        outer = self.nvml.call(self.at, "nvmlGpmMetricsGet", request, shown=(f"{wanted[0]}-{wanted[-1]}",),
                               raw=lambda r: n.nvmlGpmMetricsGet(r) and None)
        if not outer.ok:
            return dict.fromkeys(wanted, outer)
        return {
            metric: Answer(slot.nvmlReturn,
                           slot.value if slot.nvmlReturn == 0 and slot.value == slot.value else None)
            for slot, metric in zip(request.metrics, wanted)
        }


def lines(add: Callable, then: Callable, percent: Any, throughput: Any, counter: Any) -> None:
    """The lines of the table; the kinds are the table's."""

    def metric(number: int, to: Callable[[float], Any]) -> Callable:
        return lambda gpu, *_: then(gpu.gpm.metric(number), lambda v: None if v is None else to(v))

    def link(sends: bool) -> Callable:
        return lambda gpu, number: then(
            gpu.gpm.metric(of_link(number, sends)), lambda v: None if v is None else int(v * MIB))

    def of_board(gpu: Any, *_: Any) -> Answer:
        """An instance's engine time by its slices of the board's."""
        active = gpu.gpm.metric(SHARES["GR_ENGINE_ACTIVE"])
        if gpu.gpm.instance is None:
            return then(active, lambda v: None if v is None else v / 100)
        own = gpu.call("nvmlDeviceGetAttributes")
        board = gpu.nvml.call(gpu.name, "nvmlDeviceGetMaxMigDeviceCount", gpu.gpm.handle)
        if not (own.ok and board.ok):
            return board if own.ok else own
        share = own.value.gpuInstanceSliceCount / board.value
        return then(active, lambda v: None if v is None else v / 100 * share)

    add("nvml_gr_engine_active_board_ratio", of_board, percent, "instance", 0.01)
    for names, scope in ((SHARES, "instance"), (ENGINES, "GPU")):
        for name, number in names.items():
            add(f"DCGM_FI_PROF_{name}", metric(number, lambda v: v / 100), percent, scope, 0.01)
    for name, number in RATES.items():
        add(f"DCGM_FI_PROF_{name}", metric(number, lambda v: int(v * MIB)), throughput)
    for name, number in PERCENTAGES.items():
        add(f"DCGM_FI_PROF_{name}", metric(number, int), percent)
    for name, number in COUNTS.items():
        add(f"DCGM_FI_PROF_{name}", metric(number, int), counter)
    add("DCGM_FI_PROF_NVLINK_TX_BYTES_PER_LINK", link(True), throughput, "link")
    add("DCGM_FI_PROF_NVLINK_RX_BYTES_PER_LINK", link(False), throughput, "link")
