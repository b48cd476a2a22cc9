"""The programs that are compared, each started as a person would start it, and what their process trees cost."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
BIN = Path(sys.executable).parent
START_S = 60.0


@dataclass(frozen=True, slots=True)
class Program:
    """A running program: its port, and what it has cost."""

    process: subprocess.Popen[bytes]
    port: int
    ready_s: float
    """From exec to the first accepted connection."""

    def tree(self) -> list[int]:
        """Its process and every descendant."""
        found = [self.process.pid]
        for pid in found:
            with contextlib.suppress(OSError):
                for task in Path(f"/proc/{pid}/task").iterdir():
                    found += [int(child) for child in (task / "children").read_text().split()]
        return found

    def cpu_s(self) -> float:
        """Processor seconds of the tree so far, user and system, children that have ended included."""
        ticks = 0
        for pid in self.tree():
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += sum(int(field) for field in fields[11:15])
        return ticks * TICK_S

    def forget_peak(self) -> None:
        """Begin a new measurement of the peak."""
        for pid in self.tree():
            with contextlib.suppress(OSError):
                Path(f"/proc/{pid}/clear_refs").write_text("5")

    def memory_bytes(self, *, peak: bool) -> int:
        """Resident memory of the tree: now, or the highest since `forget_peak`."""
        kib = 0
        for pid in self.tree():
            with contextlib.suppress(OSError):
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                kib += sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:" if peak else "VmRSS:"))
        return kib * 1024


@contextlib.contextmanager
def running(command: Sequence[str | Path], port: int | None, *, log: Path, env: dict[str, str] | None = None) -> Iterator[Program]:
    """Start a program and stop it by SIGINT. With `port` None it says its port: a bare number, or a JSON line with `port`."""
    begin = time.monotonic()
    with log.open("ab") as errors:
        process = subprocess.Popen(
            list(map(str, command)), stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}
        )
    try:
        if port is None:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"{command[0]} did not start; see {log}:\n{log.read_text()[-2000:]}")
            said = json.loads(line)
            if isinstance(said, dict) and "port" not in said:
                raise RuntimeError(f"{command[0]} did not start: {said}")
            port = int(said["port"] if isinstance(said, dict) else said)
        else:
            while not accepts(port):
                if process.poll() is not None or time.monotonic() - begin > START_S:
                    raise RuntimeError(f"{command[0]} did not start; see {log}:\n{log.read_text()[-2000:]}")
                time.sleep(0.02)
        yield Program(process, port, time.monotonic() - begin)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def accepts(port: int) -> bool:
    """Whether something listens on that loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """A port that was free a moment ago; mitmdump cannot say which one it took."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Programs:
    """How each program is started in this run. Everything lives under `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "programs.log"
        self.store = folder / "store"
        self.origin_ca = folder / "origin-ca.pem"
        self.environment = {"SSL_CERT_FILE": str(self.origin_ca), "NO_PROXY": "", "PYTHONDONTWRITEBYTECODE": ""}

    def origin(self) -> contextlib.AbstractContextManager[Program]:
        """Our TLS origin."""
        return running([sys.executable, "-m", "bench.origin", str(self.folder)], None, log=self.log)

    def floor(self) -> contextlib.AbstractContextManager[Program]:
        """The least that any proxy in Python does."""
        return running([sys.executable, "-m", "bench.floor", str(self.folder)], None, log=self.log)

    def ours(self, mode: str, name: str, *more: str) -> contextlib.AbstractContextManager[Program]:
        """`secondtake proxy record|replay NAME`."""
        main: list[str | Path] = [sys.executable, "-c", "from secondtake.cli.main import main; main()"]
        command = [*main, "--store", self.store, "proxy", mode, name, "--port", "0", "--json", *more]
        return running(command, None, log=self.log, env=self.environment)

    def mitmdump(self, *options: str | Path) -> contextlib.AbstractContextManager[Program]:
        """`mitmdump`, quiet, with the settings that make it cheapest for what is measured."""
        port = free_port()
        confdir = self.folder / "mitmdump"
        command: list[str | Path] = [BIN / "mitmdump", "-q", "--listen-host", "127.0.0.1", "-p", str(port), "--set", f"confdir={confdir}"]
        command += ["--ssl-insecure", "--set", "connection_strategy=lazy", "--set", "upstream_cert=false", *options]
        return running(command, port, log=self.log, env=self.environment)
