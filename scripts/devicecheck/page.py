"""The exporter's page: samples by name, entity and further labels."""

from __future__ import annotations

import re
from typing import Dict, NamedTuple, Optional, Tuple

_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")

# Labels that say which device a sample belongs to; all others tell samples of one device apart.
_IDENTITY = {
    "gpu", "UUID", "gpu_uuid", "pci_bus_id", "device", "modelName", "model_name", "hostname",
    "GPU_I_PROFILE", "GPU_I_ID", "nvlink", "err_code", "err_msg",
}


class Entity(NamedTuple):
    """A row's device: a GPU, a GPU instance of it, or an NVLink of it (counted from 0)."""

    gpu: int
    instance: Optional[int] = None
    link: Optional[int] = None

    def __str__(self) -> str:
        text = f"GPU {self.gpu}"
        if self.instance is not None:
            text += f" instance {self.instance}"
        if self.link is not None:
            text += f" link {self.link}"
        return text


Key = Tuple[str, Entity]


class Sample(NamedTuple):
    value: float
    labels: Dict[str, str]

    @property
    def further(self) -> Dict[str, str]:
        return {name: text for name, text in self.labels.items() if name not in _IDENTITY}


class Page:
    """A parsed page in text format, or the families of it whose names begin so."""

    def __init__(self, text: str, only: tuple = ()) -> None:
        self.text = text
        self.samples: dict[str, list[Sample]] = {}
        self.types: dict[str, str] = {}
        self.malformed: list[str] = []
        for line in text.splitlines():
            if only and not line.startswith(only):
                continue
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ", 3)
                self.types[name] = kind
            elif line and not line.startswith("#"):
                self._sample(line)

    def _sample(self, line: str) -> None:
        found = _SAMPLE.match(line)
        if not found:
            self.malformed.append(line)
            return
        labels = {
            name: _ESCAPE.sub(lambda m: {"n": "\n"}.get(m[1], m[1]), text)
            for name, text in _LABEL.findall(found[2] or "")
        }
        self.samples.setdefault(found[1], []).append(Sample(float(found[3]), labels))

    def number(self, name: str, **labels: str) -> float | None:
        """The only sample with the labels."""
        for sample in self.samples.get(name, []):
            if labels.items() <= sample.labels.items():
                return sample.value
        return None

    def devices(self, name: str) -> dict[Entity, list[Sample]]:
        """The samples of a family by the device they belong to."""
        found: dict[Entity, list[Sample]] = {}
        for sample in self.samples.get(name, []):
            if "gpu" in sample.labels:
                found.setdefault(entity(sample.labels), []).append(sample)
        return found

    def read_at(self) -> dict[int, float]:
        """When each GPU was read, in Unix time."""
        made = self.number("nvml_exporter_page_timestamp_seconds") or 0.0
        ages = self.samples.get("nvml_exporter_reading_age_seconds", [])
        return {int(sample.labels["gpu"]): made - sample.value for sample in ages}

    def passes(self) -> int:
        """How many passes over one GPU there have been, over all GPUs."""
        return int(self.number("nvml_exporter_pass_duration_seconds_count") or 0)


def entity(labels: dict[str, str]) -> Entity:
    link = labels.get("nvlink")
    instance = labels.get("GPU_I_ID")
    return Entity(
        int(labels["gpu"]),
        int(instance) if instance else None,
        int(link) - 1 if link else None,
    )
