"""`nvidia-smi -q -x` beside the page, where it has the fact."""

from __future__ import annotations

import re
import subprocess
import xml.etree.ElementTree as Xml
from typing import List, Optional, Tuple

from .compare import Board, Verdicts
from .expected import (
    CLOCK, COUNTER, FIXED, MEMORY, MIB, PERCENT, POWER, SETTING, STATE, TEMPERATURE, Kind,
)
from .page import Entity, Page

SWITCH = {"Enabled": 1, "Disabled": 0, "Yes": 1, "No": 0}

# Field, kind, and the places of the fact; drivers have moved some. The first that is there counts.
FACTS: List[Tuple[str, Kind, float, List[str]]] = [
    ("DCGM_FI_DEV_FB_TOTAL", SETTING, 1, ["fb_memory_usage/total"]),
    ("DCGM_FI_DEV_FB_RESERVED", SETTING, 1, ["fb_memory_usage/reserved"]),
    ("DCGM_FI_DEV_FB_USED", MEMORY, 1 / MIB, ["fb_memory_usage/used"]),
    ("DCGM_FI_DEV_FB_FREE", MEMORY, 1 / MIB, ["fb_memory_usage/free"]),
    ("DCGM_FI_DEV_BAR1_TOTAL", SETTING, 1, ["bar1_memory_usage/total"]),
    ("DCGM_FI_DEV_BAR1_USED", MEMORY, 1 / MIB, ["bar1_memory_usage/used"]),
    ("DCGM_FI_DEV_GPU_TEMP", TEMPERATURE, 1, ["temperature/gpu_temp"]),
    ("DCGM_FI_DEV_GPU_TEMP_LIMIT", TEMPERATURE, 1, ["temperature/gpu_temp_tlimit"]),
    ("DCGM_FI_DEV_MEMORY_TEMP", TEMPERATURE, 1, ["temperature/memory_temp"]),
    ("DCGM_FI_DEV_SLOWDOWN_TEMP", FIXED, 1, ["temperature/gpu_temp_slow_threshold"]),
    ("DCGM_FI_DEV_SHUTDOWN_TEMP", FIXED, 1, ["temperature/gpu_temp_max_threshold"]),
    ("DCGM_FI_DEV_POWER_USAGE", POWER, 1, [
        "gpu_power_readings/average_power_draw", "gpu_power_readings/power_draw", "power_readings/power_draw"]),
    ("DCGM_FI_DEV_POWER_USAGE_INSTANT", POWER, 1, ["gpu_power_readings/instant_power_draw"]),
    ("DCGM_FI_DEV_POWER_MGMT_LIMIT", SETTING, 1, [
        "gpu_power_readings/current_power_limit", "gpu_power_readings/requested_power_limit",
        "power_readings/power_limit"]),
    ("DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", FIXED, 1, [
        "gpu_power_readings/default_power_limit", "power_readings/default_power_limit"]),
    ("DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN", FIXED, 1, [
        "gpu_power_readings/min_power_limit", "power_readings/min_power_limit"]),
    ("DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX", FIXED, 1, [
        "gpu_power_readings/max_power_limit", "power_readings/max_power_limit"]),
    ("DCGM_FI_DEV_SM_CLOCK", CLOCK, 1, ["clocks/sm_clock"]),
    ("DCGM_FI_DEV_MEM_CLOCK", CLOCK, 1, ["clocks/mem_clock"]),
    ("DCGM_FI_DEV_VIDEO_CLOCK", CLOCK, 1, ["clocks/video_clock"]),
    ("DCGM_FI_DEV_MAX_SM_CLOCK", SETTING, 1, ["max_clocks/sm_clock"]),
    ("DCGM_FI_DEV_MAX_MEM_CLOCK", SETTING, 1, ["max_clocks/mem_clock"]),
    ("DCGM_FI_DEV_MAX_VIDEO_CLOCK", SETTING, 1, ["max_clocks/video_clock"]),
    ("DCGM_FI_DEV_APP_SM_CLOCK", SETTING, 1, ["applications_clocks/graphics_clock"]),
    ("DCGM_FI_DEV_APP_MEM_CLOCK", SETTING, 1, ["applications_clocks/mem_clock"]),
    ("DCGM_FI_DEV_GPU_UTIL", PERCENT, 1, ["utilization/gpu_util"]),
    ("DCGM_FI_DEV_MEM_COPY_UTIL", PERCENT, 1, ["utilization/memory_util"]),
    ("DCGM_FI_DEV_ENC_UTIL", PERCENT, 1, ["utilization/encoder_util"]),
    ("DCGM_FI_DEV_DEC_UTIL", PERCENT, 1, ["utilization/decoder_util"]),
    ("DCGM_FI_DEV_FAN_SPEED", PERCENT, 1, ["fan_speed"]),
    ("DCGM_FI_DEV_PSTATE", STATE, 1, ["performance_state"]),
    ("DCGM_FI_DEV_PERSISTENCE_MODE", SETTING, 1, ["persistence_mode"]),
    ("DCGM_FI_DEV_MIG_MODE", SETTING, 1, ["mig_mode/current_mig"]),
    ("DCGM_FI_DEV_ECC_CURRENT", SETTING, 1, ["ecc_mode/current_ecc"]),
    ("DCGM_FI_DEV_ECC_PENDING", SETTING, 1, ["ecc_mode/pending_ecc"]),
    ("DCGM_FI_DEV_MINOR_NUMBER", FIXED, 1, ["minor_number"]),
    ("DCGM_FI_DEV_PCIE_MAX_LINK_GEN", FIXED, 1, ["pci/pci_gpu_link_info/pcie_gen/max_link_gen"]),
    ("DCGM_FI_DEV_PCIE_LINK_GEN", STATE, 1, ["pci/pci_gpu_link_info/pcie_gen/current_link_gen"]),
    ("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", FIXED, 1, ["pci/pci_gpu_link_info/link_widths/max_link_width"]),
    ("DCGM_FI_DEV_PCIE_LINK_WIDTH", STATE, 1, ["pci/pci_gpu_link_info/link_widths/current_link_width"]),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", COUNTER, 1, ["pci/replay_counter"]),
    ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", COUNTER, 1, ["remapped_rows/remapped_row_corr"]),
    ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", COUNTER, 1, ["remapped_rows/remapped_row_unc"]),
    ("DCGM_FI_DEV_ROW_REMAP_PENDING", SETTING, 1, ["remapped_rows/remapped_row_pending"]),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", SETTING, 1, ["remapped_rows/remapped_row_failure"]),
    ("DCGM_FI_DEV_ECC_SBE_VOL_DEV", COUNTER, 1, ["ecc_errors/volatile/dram_correctable"]),
    ("DCGM_FI_DEV_ECC_DBE_VOL_DEV", COUNTER, 1, ["ecc_errors/volatile/dram_uncorrectable"]),
    ("DCGM_FI_DEV_ECC_SBE_AGG_DEV", COUNTER, 1, ["ecc_errors/aggregate/dram_correctable"]),
    ("DCGM_FI_DEV_ECC_DBE_AGG_DEV", COUNTER, 1, ["ecc_errors/aggregate/dram_uncorrectable"]),
]

TEXTS: List[Tuple[str, str]] = [
    ("DCGM_FI_DEV_NAME", "product_name"),
    ("DCGM_FI_DEV_BRAND", "product_brand"),
    ("DCGM_FI_DEV_SERIAL", "serial"),
    ("DCGM_FI_DEV_UUID", "uuid"),
    ("DCGM_FI_DEV_VBIOS_VERSION", "vbios_version"),
    ("DCGM_FI_DEV_PCI_BUSID", "pci/pci_bus_id"),
    ("DCGM_FI_DEV_INFOROM_IMAGE_VER", "inforom_version/img_version"),
    ("DCGM_FI_DEV_OEM_INFOROM_VER", "inforom_version/oem_object"),
    ("DCGM_FI_DEV_ECC_INFOROM_VER", "inforom_version/ecc_object"),
    ("DCGM_FI_DEV_POWER_INFOROM_VER", "inforom_version/pwr_object"),
]


def query(command: str) -> str:
    """The XML of all GPUs."""
    done = subprocess.run([command, "-q", "-x"], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise OSError(f"{command} -q -x ended with status {done.returncode}: {done.stderr.strip()[:200]}")
    return done.stdout


def compare(verdicts: Verdicts, xml: str, before: Page, after: Page, found: List[Board]) -> Tuple[int, List[str]]:
    """How many facts were compared, and what could not be."""
    root = Xml.fromstring(xml)
    by_uuid = {board.uuid: board for board in found}
    compared, notes = 0, []
    for gpu in root.findall("gpu"):
        board = by_uuid.get((gpu.findtext("uuid") or "").strip())
        if board is None:
            verdicts.differ("nvidia-smi", gpu.get("id", ""), "a GPU that NVML does not show")
            continue
        row = Entity(board.index)
        if board.instances:
            notes.append(f"GPU {board.index} has MIG instances: nvidia-smi shows the board, and was not compared")
            continue
        for name, kind, unit, places in FACTS:
            compared += _fact(verdicts, gpu, name, kind, unit, places, row, before, after)
        for name, place in TEXTS:
            compared += _text(verdicts, gpu, name, place, row, after)
    return compared, notes


def _fact(verdicts: Verdicts, gpu: Xml.Element, name: str, kind: Kind, unit: float, places: List[str],
          row: Entity, before: Page, after: Page) -> int:
    shown = next((text.strip() for text in map(gpu.findtext, places) if text), None)
    number = _number(shown)
    samples = [page.devices(name).get(row, []) for page in (before, after)]
    if number is None or not all(samples):
        # nvidia-smi has its own reasons for "N/A"; NVML's answers decide what must be there.
        return 0
    low, high = sorted(sample[0].value for sample in samples)
    # nvidia-smi rounds to hundredths, and takes a second or two.
    slack = max(kind.absolute * unit, kind.relative * abs(high), 0.01)
    if kind is STATE:
        return 1
    if name.startswith("DCGM_FI_DEV_POWER_MGMT_LIMIT") or name == "DCGM_FI_DEV_FB_RESERVED":
        slack = 1  # whole watts and MiB, cut here and rounded there
    if not low - slack <= number <= high + slack:
        verdicts.differ(name, row, f"served {low:.10g} to {high:.10g}, nvidia-smi shows {shown!r}")
    return 1


def _text(verdicts: Verdicts, gpu: Xml.Element, name: str, place: str, row: Entity, page: Page) -> int:
    shown = (gpu.findtext(place) or "").strip()
    samples = page.devices(name).get(row, [])
    if not shown or shown.startswith(("N/A", "[")) or len(samples) != 1:
        return 0
    served = next(iter(samples[0].further.values()), "")
    if served.lower() != shown.lower():
        verdicts.differ(name, row, f"served {served!r}, nvidia-smi shows {shown!r}")
    return 1


def _number(shown: Optional[str]) -> Optional[float]:
    if shown is None:
        return None
    if shown in SWITCH:
        return SWITCH[shown]
    found = re.match(r"P?(-?\d+(?:\.\d+)?)", shown)
    return float(found[1]) if found else None
