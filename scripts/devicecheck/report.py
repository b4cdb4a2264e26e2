"""The report, in Markdown."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, Dict, List, Tuple

from .compare import Difference, Verdicts
from .expected import KINDS
from .nvml import Nvml


class Report:
    """Collects what the steps say; written once, at the end."""

    def __init__(self) -> None:
        self.machine: List[Tuple[str, Any]] = []
        self.measured: List[Tuple[str, Any]] = []
        self.robust: List[Tuple[str, Any]] = []
        self.notes: List[str] = []
        self.smi = "nvidia-smi was not run."
        self.simulated = ""
        self.stopped = ""
        self.complete = ""
        self.files: List[Tuple[str, str]] = []

    def write(self, path: str, verdicts: Verdicts, nvml: Nvml | None) -> str:
        """Writes the report; gives the line that sums it up."""
        fields = {difference.field for difference in verdicts.differences}
        if self.stopped:
            summary = f"Not finished: {self.stopped}"
        elif verdicts.differences:
            summary = f"{len(verdicts.differences)} differences in {len(fields)} fields"
        else:
            summary = f"No difference: {sum(verdicts.compared.values())} series agree with NVML"
        out = ["# Hardware report", ""]
        if self.simulated:
            out += [f"**Simulated:** scenario `{self.simulated}`. This says nothing about a real GPU.", ""]
        out += [f"**{summary}.**", ""]
        out += ["## Machine", "", *_table(("Fact", "Value"), self.machine)]
        out += ["## Differences", ""]
        out += _differences(verdicts.differences)
        out += ["## Completeness", "", self.complete or "Not reached.", ""]
        out += _absent(verdicts)
        out += ["## Not verified", ""]
        out += [f"* {len(names)} fields: {why} ({_names(names)})"
                for why, names in _by_reason(verdicts.unverified).items()] or ["Nothing."]
        out += ["", "## nvidia-smi", "", self.smi, ""]
        out += ["## How values were compared", "",
                "A page, then NVML, then a page of a later pass. In most rounds: more than half of them.", "",
                *_table(("Kind", "Series", "Rule", "Why"),
                        [(kind.name, verdicts.compared.get(kind.name, 0), kind.rule, kind.reason)
                         for kind in KINDS])]
        out += ["## Measurements", "", *_table(("What", "Value"), self.measured)]
        out += ["## Robustness", "", *_table(("What", "Result"), self.robust)]
        if nvml is not None:
            out += ["## NVML's answers", "", *_answers(nvml)]
        if self.notes:
            out += ["## Notes", "", *(f"* {note}" for note in self.notes), ""]
        out += ["## Files", "", *_table(("File", "Content"), self.files)]
        with open(path, "w") as file:
            file.write("\n".join(out).rstrip() + "\n")
        return summary


def _table(head: Tuple[str, ...], rows: List[Tuple]) -> List[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        lines.append("| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in row) + " |")
    return [*lines, ""]


def _names(names: List[str], most: int = 8) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def _differences(differences: List[Difference]) -> List[str]:
    """One line a field: the first place of each, and how many more there are."""
    if not differences:
        return ["None.", ""]
    by_field: Dict[str, List[Difference]] = defaultdict(list)
    for difference in differences:
        by_field[difference.field].append(difference)
    rows = []
    for field, found in sorted(by_field.items()):
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        rows.append((f"`{field}`", found[0].where + more, found[0].what))
    return _table(("Field", "Where", "What"), rows)


def _by_reason(reasons: Dict[str, str]) -> Dict[str, List[str]]:
    found: Dict[str, List[str]] = defaultdict(list)
    for name, why in sorted(reasons.items()):
        found[why].append(name)
    return found


def _absent(verdicts: Verdicts) -> List[str]:
    """Fields that no device gives, by what NVML says of them."""
    found: Dict[str, List[str]] = defaultdict(list)
    for name, codes in sorted(verdicts.absent.items()):
        if name not in verdicts.present:
            found[", ".join(sorted(codes))].append(name)
    return [f"* {len(names)} fields: NVML answers {codes} ({_names(names)})"
            for codes, names in sorted(found.items())] + [""]


def _answers(nvml: Nvml) -> List[str]:
    codes = Counter(entry.answer.name for entry in nvml.record.values())
    calls: Dict[str, List[float]] = defaultdict(list)
    for (_, name, _), entry in nvml.record.items():
        calls[name].extend(entry.micros)
    slowest = sorted(calls.items(), key=lambda item: -max(item[1]))[:15]
    lines = [f"{len(nvml.record)} different calls. By code: "
             + ", ".join(f"{name} {count}" for name, count in codes.most_common()) + ".", "",
             "The slowest functions, as a Python client sees them:", ""]
    return lines + _table(("Function", "Calls", "Median µs", "Longest µs"), [
        (f"`{name}`", len(micros), f"{sorted(micros)[len(micros) // 2]:.0f}", f"{max(micros):.0f}")
        for name, micros in slowest])
