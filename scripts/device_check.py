"""The Python half of scripts/device-check.sh, which sets up its environment."""

from __future__ import annotations

import argparse
import gzip
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata

import pynvml

from devicecheck import compare, record, smi
from devicecheck.expected import COUNTED, OWN_FIELDS, table
from devicecheck.exporter import OWN, Exporter, Failed, once
from devicecheck.nvml import Nvml
from devicecheck.page import Page
from devicecheck.report import Report

# One second between two passes while values are compared.
INTERVAL = "1s"
# The shortest interval that the exporter takes, for the endurance run.
SHORT_INTERVAL = "100ms"
# More than the scrapes at a time, so that none is turned away.
SCRAPES = 20
# SIGTERM must end the exporter within a second.
STOP_WITHIN = 1.0
# Growth of the resident set between the first passes of the endurance run, in which buffers find
# their size, and its end: this much, or a tenth. Fewer passes say nothing.
FIRST_PASSES = 30
GROWTH_KIB = 2048
PASSES_THAT_SAY = 50

FIELD = re.compile(r"(\S+)\s+(?:\d+\s+)?(counter|gauge|untyped|label)\s+.+?\s+(?:node|GPU|instance|link)\s")


class OutOfTime(Exception):
    """The time limit is reached."""


def main() -> int:
    arguments = parse()
    check = Check(arguments)

    def late(*_: object) -> None:
        raise OutOfTime

    signal.signal(signal.SIGALRM, late)
    signal.alarm(arguments.time_limit)
    try:
        check.run()
    except OutOfTime:
        check.report.stopped = f"the time limit of {arguments.time_limit} s was reached while {check.step}"
    except (Failed, OSError, pynvml.NVMLError, subprocess.SubprocessError) as error:
        check.report.stopped = f"{check.step}: {error}"
    finally:
        signal.alarm(0)
        check.close()
    return check.finish()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("binary", "simulate", "nvml-library", "nvidia-smi", "out", "work"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("rounds", "passes", "time-limit"):
        parser.add_argument(f"--{name}", type=int, required=True)
    return parser.parse_args()


class Check:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.step = "starting"
        self.began = time.monotonic()
        self.report = Report()
        self.verdicts = compare.Verdicts()
        self.nvml: Nvml | None = None
        self.found: list[compare.Board] = []
        self.exporter: Exporter | None = None
        self.log = open(os.path.join(arguments.out, "exporter.log"), "wb")
        self.report.simulated = arguments.simulate
        self.driver = [arguments.binary]

    def run(self) -> None:
        for step, what in (
            (self.facts, "looking at the machine"),
            (self.look, "running the exporter's check and fields"),
            (self.serve, "starting the exporter"),
            (self.rounds, "comparing with NVML"),
            (self.nvidia_smi, "comparing with nvidia-smi"),
            (self.together, "scraping in parallel"),
            (self.reload, "sending SIGHUP"),
            # Last: pages are compressed ahead for a while once somebody has asked for that.
            (self.formats, "scraping each format"),
            (self.stop, "sending SIGTERM"),
            (self.answers, "recording NVML's answers"),
            (self.endure, "the endurance run"),
        ):
            self.step = what
            print(f"[{time.monotonic() - self.began:6.1f} s] {what}", flush=True)
            step()

    def path(self, name: str, content: str) -> str:
        """A file of the report."""
        self.report.files.append((f"`{name}`", content))
        return os.path.join(self.arguments.out, name)

    def save(self, name: str, content: str, text: str) -> None:
        with open(self.path(name, content), "w") as file:
            file.write(text)

    # The machine.

    def facts(self) -> None:
        self.nvml = Nvml()
        for name in ("nvmlInit", "nvmlDeviceGetCount"):
            count = self.nvml.call("system", name)
            if not count.ok:
                raise Failed(f"NVML is not to be had: {name} answers {count.name}")
        self.found = compare.boards(self.nvml)
        system = {
            name: self.nvml.call("system", f"nvmlSystemGet{name}").value
            for name in ("DriverVersion", "NVMLVersion", "CudaDriverVersion_v2")
        }
        try:
            binding = metadata.version("nvidia-ml-py")
        except metadata.PackageNotFoundError:
            binding = "of unknown version"
        facts = self.report.machine
        facts.append(("Made", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())))
        facts.append(("Driver", system["DriverVersion"]))
        facts.append(("NVML", system["NVMLVersion"]))
        facts.append(("CUDA", system["CudaDriverVersion_v2"]))
        facts.append(("nvidia-ml-py", binding))
        facts.append(("Kernel", f"{platform.system()} {platform.release()} {platform.machine()}"))
        facts.append(("Processors", os.cpu_count()))
        facts.append(("Exporter", once([*self.driver, "--version"])[1].strip()))
        facts.append(("GPUs", f"{len(self.found)} of {count.value} can be opened"))
        for board in self.found:
            inside = ", ".join(f"{group}: {profile}" for group, (_, _, profile) in board.instances.items())
            facts.append((f"GPU {board.index}", f"{board.name}, {board.bus_id}, {board.links} NVLinks"
                          + (f", instances {inside}" if inside else "")))
        for name, value in facts:
            print(f"  {name}: {value}", flush=True)

    # The exporter's own account.

    def command(self, *more: str) -> list[str]:
        command = [*self.driver, *more]
        if self.arguments.simulate:
            command += ["--simulate", self.arguments.simulate]
        elif self.arguments.nvml_library:
            command += ["--nvml-library", self.arguments.nvml_library]
        return command

    def look(self) -> None:
        status, listing = once(self.command("fields"))
        if status != 0:
            raise Failed(f"fields ended with status {status}: {listing.strip()[-300:]}")
        self.fields, unreadable = {}, []
        for line in listing.partition("\nNAME ")[2].splitlines()[1:]:
            if " not served: " in line:
                continue
            found = FIELD.match(line)
            if found:
                self.fields[found[1]] = found[2]
            else:
                unreadable.append(line)
        if unreadable:
            self.verdicts.differ("fields", "", f"cannot be read: {unreadable[0]!r}")
        self.specs = [spec for spec in table() if spec.name in self.fields]
        known = {spec.name for spec in table()}
        for name in sorted(set(self.fields) - known - set(OWN_FIELDS)):
            self.verdicts.differ(name, "", "served, but devicecheck/expected.py does not know it")
        for name in sorted(known - set(self.fields)):
            self.verdicts.differ(name, "", "in devicecheck/expected.py, but the exporter does not serve it")

        # Texts as series of their own, so that each can be compared.
        rows = [f"{name}, {'gauge' if kind == 'label' else kind}, {name}\n"
                for name, kind in self.fields.items()]
        self.counters = self.path("counters.csv", "every field that is served")
        with open(self.counters, "w") as file:
            file.writelines(rows)
        status, text = once(self.command("check", "--collectors", self.counters))
        self.report.measured.append(("Status of `check`", status))
        # 2: the configuration is right, and this machine has nothing to export.
        if status != (0 if self.found else 2):
            self.verdicts.differ("check", "", f"ended with status {status}: {text.strip()[-200:]}")
        self.save("fields.txt", "what `fields` and `check` say here", f"{listing}\n{text}")

    # The run in which values are compared.

    def start(self, interval: str) -> Exporter:
        self.exporter = Exporter(self.command(
            "serve", "--collectors", self.counters, "--collect-interval", interval, "--openmetrics",
            "--max-concurrent-scrapes", str(SCRAPES * 2)), self.log)
        return self.exporter

    def serve(self) -> None:
        exporter = self.start(INTERVAL)
        ready = exporter.ready(60)
        first = exporter.until(lambda page: len(page.read_at()) == len(self.found), 60, "a page with all GPUs")
        seconds = time.monotonic() - exporter.began
        # Rates need a second pass.
        exporter.until(lambda page: page.passes() >= 2 * len(self.found), 60, "a second pass")
        measured = self.report.measured
        measured.append(("Start to ready", f"{ready * 1000:.0f} ms"))
        measured.append(("Start to the first page with all GPUs", f"{seconds * 1000:.0f} ms"))
        measured.append(("Samples on the page", sum(map(len, first.samples.values()))))
        self.pass_times(first)

    def pass_times(self, page: Page) -> None:
        total = page.number("nvml_exporter_pass_duration_seconds_sum") or 0.0
        if page.passes():
            self.report.measured.append((
                "Duration of a pass over one GPU, first passes", f"{total / page.passes() * 1000:.1f} ms"))

    def formats(self) -> None:
        exporter = self.exporter
        status, headers, plain = exporter.get()
        page = Page(plain.decode())
        self.save("page.txt", "the page in text format", plain.decode())
        expect = self.verdicts.differ
        for path, wanted in (("/", 200), ("/health", 200), ("/livez", 200), ("/readyz", 200), ("/none", 404)):
            found = exporter.get(path)[0]
            if found != wanted:
                expect(path, "", f"status {found}")
        if status != 200 or headers.get("content-type") != "text/plain; version=0.0.4; charset=utf-8":
            expect("text page", "", f"status {status}, content type {headers.get('content-type')!r}")
        for line in page.malformed[:3]:
            expect("text page", "", f"no sample: {line!r}")
        status, headers, packed = exporter.get(Accept_Encoding="gzip")
        if headers.get("content-encoding") != "gzip" or Page(gzip.decompress(packed).decode()).malformed:
            expect("gzip page", "", f"status {status}, content encoding {headers.get('content-encoding')!r}")
        status, headers, opened = exporter.get(Accept="application/openmetrics-text;version=1.0.0")
        kind = headers.get("content-type", "")
        if not kind.startswith("application/openmetrics-text") or not opened.endswith(b"# EOF\n"):
            expect("OpenMetrics page", "", f"status {status}, content type {kind!r}")
        self.save("page.openmetrics.txt", "the page in OpenMetrics format", opened.decode())
        self.report.measured.append(("Page", f"{len(plain)} bytes, {len(packed)} with gzip"))
        checked = compare.identities(self.verdicts, page, self.found)
        self.report.notes.append(f"The labels of {checked} samples were compared with NVML's names.")

    def rounds(self) -> None:
        rounds, identity = [], [board[2:] for board in self.found]
        for number in range(self.arguments.rounds):
            found, one = compare.run_round(self.exporter, self.nvml, self.specs)
            rounds.append(one)
            print(f"  round {number + 1}: NVML read in {one.seconds * 1000:.0f} ms", flush=True)
        if [board[2:5] for board in found] != [names[:3] for names in identity]:
            self.report.notes.append("GPUs have changed during the check.")
        judged = compare.judge(rounds, self.specs)
        judged.differences = self.verdicts.differences + judged.differences
        judged.unverified.update(dict.fromkeys(OWN_FIELDS, COUNTED))
        self.verdicts = judged
        slowest = max(one.seconds for one in rounds)
        self.report.measured.append(("NVML read by Python for one comparison, at most", f"{slowest * 1000:.0f} ms"))
        served = {spec.name for spec in self.specs}
        self.report.complete = (
            f"{len(served)} fields are served; {len(judged.present)} have a value on at least one device here, "
            f"{len(set(judged.absent) - judged.present)} have none on any, "
            f"{len(judged.unverified)} could not be asked for. "
            f"{sum(judged.compared.values())} series were compared in {len(rounds)} rounds. A field that NVML "
            "answers without a series, and a series without an answer, are among the differences.")
        followed = compare.rates_follow_counters(self.verdicts, self.exporter, 4) if self.found else 0
        self.report.notes.append(
            f"{followed} NVLink rates were compared with the growth of the byte counters beside them.")

    def nvidia_smi(self) -> None:
        wanted = self.arguments.nvidia_smi
        command = None if wanted == "none" else shutil.which(wanted or "nvidia-smi")
        if command is None:
            self.report.smi = ("The GPUs are simulated: there is nothing that nvidia-smi could show."
                               if self.report.simulated else "nvidia-smi is not on this machine.")
            return
        before = self.exporter.page()
        try:
            xml = smi.query(command)
        except (OSError, subprocess.SubprocessError) as error:
            self.verdicts.differ("nvidia-smi", "", str(error))
            return
        after = compare.next_pages(self.exporter, time.time(), 20)
        self.save("nvidia-smi.xml", "`nvidia-smi -q -x`", xml)
        compared, notes = smi.compare(self.verdicts, xml, before, after, self.found)
        self.report.smi = f"{compared} facts of `nvidia-smi -q -x` were compared."
        self.report.notes += notes

    # What must not disturb it.

    def together(self) -> None:
        with ThreadPoolExecutor(SCRAPES) as pool:
            began = time.monotonic()
            answers = list(pool.map(lambda _: self.exporter.get(), range(SCRAPES)))
            seconds = time.monotonic() - began
        good = sum(status == 200 and Page(body.decode(), OWN).passes() > 0 for status, _, body in answers)
        self.report.robust.append((f"{SCRAPES} scrapes at a time", f"{good} answered, {seconds * 1000:.0f} ms"))
        if good != SCRAPES and self.found:
            self.verdicts.differ("scrapes in parallel", "", f"{good} of {SCRAPES} were answered")

    def reload(self) -> None:
        name, labels = "nvml_exporter_config_reloads_total", {"result": "success"}
        before = self.exporter.page()
        self.exporter.process.send_signal(signal.SIGHUP)
        began = time.monotonic()
        after = self.exporter.until(
            lambda page: (page.number(name, **labels) or 0) > (before.number(name, **labels) or 0),
            10, "a reload after SIGHUP")
        self.report.robust.append(("SIGHUP", f"reloaded within {(time.monotonic() - began) * 1000:.0f} ms"))
        # Rates need two passes again.
        after = compare.next_pages(self.exporter, time.time(), 20) if self.found else after
        lost = sorted(set(before.samples) - set(after.samples))
        if lost:
            self.verdicts.differ("SIGHUP", "", f"families are missing after the reload: {', '.join(lost[:5])}")

    def stop(self) -> None:
        self.measure("one-second passes")
        self.end("SIGTERM")

    def end(self, name: str) -> None:
        seconds = self.exporter.stop()
        self.exporter = None
        self.report.robust.append((name, f"ended with status 0 after {seconds * 1000:.0f} ms"))
        if seconds > STOP_WITHIN:
            self.verdicts.differ(name, "", f"took {seconds:.2f} s")

    def measure(self, when: str) -> None:
        """Memory, threads and processor time of the exporter as it runs."""
        page, exporter = self.exporter.page(*OWN), self.exporter
        passes = page.passes() // max(len(self.found), 1)
        measured = self.report.measured
        measured.append((f"Resident memory, {when}", f"{exporter.status('VmRSS') / 1024:.1f} MiB"))
        measured.append((f"Threads, {when}", exporter.status("Threads")))
        if passes:
            measured.append((f"Processor time per pass over all GPUs, {when}, scrapes included",
                             f"{exporter.cpu() / passes * 1000:.1f} ms"))
            total = page.number("nvml_exporter_pass_duration_seconds_sum") or 0.0
            measured.append((f"Mean duration of a pass over one GPU, {when}",
                             f"{total / page.passes() * 1000:.2f} ms"))

    def answers(self) -> None:
        deadline = self.began + self.arguments.time_limit * 0.6
        whole = record.everything(self.nvml, self.found, deadline)
        if not whole:
            self.report.notes.append("NVML's answers were not recorded for all GPUs: there was no time.")
        record.write(
            self.path("nvml-answers.json", "what NVML answers, call by call"), self.nvml, self.found,
            {"made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
             "simulated": self.arguments.simulate or None,
             "machine": {name: value for name, value in self.report.machine}})

    def endure(self) -> None:
        """Many passes in short order: memory must not grow."""
        exporter = self.start(SHORT_INTERVAL)
        exporter.ready(60)
        gpus = len(self.found)
        # A slow machine makes fewer passes: whatever fits into the time left counts.
        end = min(self.began + self.arguments.time_limit - 15, time.monotonic() + 0.25 * self.arguments.passes)
        early, passes = 0, 0
        while passes < self.arguments.passes and time.monotonic() < end:
            time.sleep(0.5)
            passes = exporter.page(*OWN).passes() // gpus if gpus else int((time.monotonic() - exporter.began) * 10)
            if not early and passes >= min(FIRST_PASSES, self.arguments.passes // 2):
                early, since = exporter.settled(), passes
        if not early:
            raise Failed(f"only {passes} passes at {SHORT_INTERVAL}")
        late = exporter.settled()
        self.report.robust.append((f"Resident memory after {since} and after {passes} passes",
                                   f"{early / 1024:.1f} and {late / 1024:.1f} MiB"))
        if passes - since >= PASSES_THAT_SAY and late - early > max(GROWTH_KIB, early / 10):
            self.verdicts.differ("memory", "", f"grew by {(late - early) / 1024:.1f} MiB in {passes - since} passes")
        if gpus:
            fresh = max(time.time() - at for at in exporter.page(*OWN).read_at().values())
            self.report.robust.append(("Age of the oldest reading then", f"{fresh * 1000:.0f} ms"))
        self.measure("shortest passes")
        self.end("SIGTERM in mid-pass")

    # The end.

    def close(self) -> None:
        if self.exporter is not None:
            self.exporter.kill()
        self.log.close()
        self.report.files.append(("`exporter.log`", "what the exporter wrote to its log"))

    def finish(self) -> int:
        report = os.path.join(self.arguments.out, "hardware-report.md")
        self.report.measured.append(("The whole check", f"{time.monotonic() - self.began:.0f} s"))
        summary = self.report.write(report, self.verdicts, self.nvml)
        for difference in self.verdicts.differences[:20]:
            print(f"  {difference.field} {difference.where}: {difference.what}")
        print(f"{summary}\nreport: {report}", flush=True)
        if self.report.stopped:
            return 2
        return 1 if self.verdicts.differences else 0


if __name__ == "__main__":
    sys.exit(main())
