"""The exporter as a process: start, scrape, measure, stop."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import time
from typing import IO, Callable

from .page import Page

TICKS = os.sysconf("SC_CLK_TCK")


# What the exporter says of itself.
OWN = ("nvml_exporter_",)


class Failed(Exception):
    """The exporter did not do what it must; the text says what."""


class Exporter:
    """One run of `nvml-exporter serve` on a loopback port."""

    def __init__(self, command: list[str], log: IO[bytes]) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.command = [*command, "--address", f"127.0.0.1:{self.port}"]
        self.began = time.monotonic()
        self.process = subprocess.Popen(self.command, stdout=log, stderr=log)

    def get(self, path: str = "/metrics", **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, found, answer.read()
        finally:
            connection.close()

    def page(self, *only: str) -> Page:
        """A scrape; of a large page that is looked at often, only the families named."""
        return Page(self.text(), only)

    def text(self) -> str:
        status, _, body = self.get()
        if status != 200:
            raise Failed(f"/metrics answers {status}")
        return body.decode()

    def until(self, done: Callable[[Page], bool], seconds: float, what: str) -> Page:
        """Scrapes until `done(page)`, which is shown the exporter's own families alone; a connection
        that is refused is tried again."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise Failed(f"the exporter has exited with status {self.process.returncode}")
            try:
                text = self.text()
                if done(Page(text, OWN)):
                    return Page(text)
            except (ConnectionError, http.client.HTTPException):
                pass
            time.sleep(0.02)
        raise Failed(f"{what}: not within {seconds:g} s")

    def ready(self, seconds: float) -> float:
        """Seconds from the start to /readyz answering 200."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise Failed(f"the exporter has exited with status {self.process.returncode}")
            try:
                if self.get("/readyz")[0] == 200:
                    return time.monotonic() - self.began
            except (ConnectionError, http.client.HTTPException):
                pass
            time.sleep(0.002)
        raise Failed(f"not ready within {seconds:g} s")

    def status(self, name: str) -> int:
        """A number of /proc/PID/status: VmRSS in KiB, Threads."""
        with open(f"/proc/{self.process.pid}/status") as file:
            for line in file:
                if line.startswith(name + ":"):
                    return int(line.split()[1])
        return 0

    def settled(self) -> int:
        """The least resident memory in a second, in KiB: a page that is being made or sent, which
        for many GPUs is megabytes, is not of it."""
        least = self.status("VmRSS")
        for _ in range(20):
            time.sleep(0.05)
            least = min(least, self.status("VmRSS"))
        return least

    def cpu(self) -> float:
        """Processor seconds used so far."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def stop(self) -> float:
        """Seconds from SIGTERM to the end; the end must be status 0."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed("SIGTERM did not end the exporter within 10 s") from None
        if status != 0:
            raise Failed(f"after SIGTERM the exporter ended with status {status}")
        return time.monotonic() - began

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def once(command: list[str]) -> tuple[int, str]:
    """A command of the exporter that ends by itself: its status, and what it said: standard output,
    or the log if there is none."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout or done.stderr
