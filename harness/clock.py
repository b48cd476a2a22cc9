"""`clock = "recorded"` and `--freeze-clock`: an agent's wall clock begins at the recorded start and goes on from there (SECURITY D3, D-13).

libfaketime is preloaded into the agent and what it starts, with an offset, so that every process has the same time and it advances;
monotonic clocks and file times are left alone, so that timers fire and `make` is not misled. Nothing is preloaded without the flag.

What does not ask the C library for the time sees the real one: statically linked programs, Go's (they ask the kernel's page
directly), set-user-ID ones. Which those are is told by looking at each program that ran; the interpreters are tried before the run.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
import struct
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import chain
from pathlib import Path

from secondtake.cassettes.errors import BadInput

TOLERANCE_S = 60
"""How far a probe's time may be from the start: it takes a moment, and so does a busy machine."""

PATIENCE_S = 10
"""For a timer of ten milliseconds, and the start of an interpreter."""

WITHOUT = 'leave out --freeze-clock, or set `clock = "real"` in fixture.toml: the real clock is recorded then'


class Time(StrEnum):
    """Which wall clock a program sees."""

    FAKED = "faked"
    REAL = "real"


@dataclass(frozen=True, slots=True)
class Probe:
    """An interpreter that was tried before the run, with a timer."""

    program: Path
    time: Time
    note: str = ""
    """Why it is the real one."""


@dataclass(frozen=True, slots=True)
class Clock:
    """A faked clock that was tried."""

    start: datetime
    library: Path
    environment: Mapping[str, str]
    """Changes for the agent alone: a tracer or a seal around it keeps the real clock (`tracing.traced(environment=…)`, or `prefix`)."""
    probes: tuple[Probe, ...]
    real: tuple[str, ...]
    """Programs known to see the real time, each with the reason: those among `programs` that were given."""

    @property
    def prefix(self) -> tuple[str, ...]:
        """Words directly before the agent's command that give it the clock, where no tracer does."""
        return ("env", *(f"{name}={value}" for name, value in self.environment.items()))

    def real_in(self, programs: Iterable[str]) -> str:
        """Say which of the programs that ran saw the real time, for a take's list of what was not held; empty where none did."""
        times = self.seen(map(Path, dict.fromkeys(programs)))
        names = sorted({Path(program).name for program, seen in times.items() if seen is Time.REAL})
        return f"the real time was seen by {', '.join(names[:8])}{' and others' if len(names) > 8 else ''}" if names else ""

    def seen(self, programs: Iterable[Path]) -> dict[str, Time]:
        """Say for each program that ran which time it saw. A probed one is as probed; of others the file is looked at."""
        probed = {probe.program.resolve(): probe.time for probe in self.probes}
        times: dict[str, Time] = {}
        for program in programs:
            at = interpreter(program)
            times[str(program)] = probed.get(at.resolve()) or (Time.REAL if real_because(at) else Time.FAKED)
        return times


def frozen(
    start: datetime,
    environ: Mapping[str, str],
    programs: Sequence[Path] = (),
    *,
    now: datetime | None = None,
    library: Path | None = None,
) -> Clock:
    """Make a clock that shows `start` at the instant `now`, and try it on the interpreters in the agent's PATH.

    `programs`: what else will run, as far as it is known (the agent itself). `now`: by the machine's clock, which the library takes the
    offset to; None is this instant. `library`: libfaketime, None looks for it.

    Raises:
        BadInput: there is no libfaketime, it does not load here, or it would stop the timers of a program.
    """
    found = library or find_library()
    if found is None:
        raise BadInput("the clock cannot be faked: libfaketime is not installed", hint="pip install libfaketime")
    if any(character in str(found) for character in ": \t\n"):
        raise BadInput(f"the dynamic linker takes no library from a path with a space or a colon: {found}", hint="install it elsewhere")
    now = now or datetime.now(UTC)
    preloaded = environ.get("LD_PRELOAD", "")
    environment = {
        "LD_PRELOAD": f"{found}:{preloaded}" if preloaded else str(found),
        "FAKETIME": f"{(start - now).total_seconds():+.6f}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }
    begun_s, start_s = time.monotonic(), start.timestamp()

    def tried(found: tuple[str, Path]) -> Probe:
        return _probed(*found, {**environ, **environment}, lambda: start_s + time.monotonic() - begun_s)

    with ThreadPoolExecutor() as together:
        probes = tuple(together.map(tried, _interpreters(environ.get("PATH", os.defpath))))
    if probes and not any(probe.time is Time.FAKED for probe in probes):
        raise BadInput(f"the clock cannot be faked here: {probes[0].note}", hint=WITHOUT)
    reasons = ((program, real_because(interpreter(program))) for program in programs)
    said = chain(
        (f"{probe.program}: {probe.note}" for probe in probes if probe.time is Time.REAL),
        (f"{program}: {reason}" for program, reason in reasons if reason),
    )
    return Clock(start, found, environment, probes, tuple(dict.fromkeys(said)))


def find_library() -> Path | None:
    """Look for libfaketime: in the package of that name, else where Debian and Fedora put it."""
    try:
        spec = importlib.util.find_spec("libfaketime")
    except (ImportError, ValueError):
        spec = None
    folders = [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec is not None else []
    places = chain(
        chain.from_iterable(sorted(folder.rglob("libfaketime.so.1")) for folder in folders),
        sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")),
        (Path("/usr/lib64/faketime/libfaketime.so.1"), Path("/usr/lib/faketime/libfaketime.so.1")),
    )
    return next((place for place in places if place.is_file()), None)


_PYTHON = """
import select, sys, threading, time
time.sleep(0.01); threading.Event().wait(0.01); select.select([], [], [], 0.01)
print(time.time())
"""
_TRIALS: Mapping[str, Sequence[str]] = {
    "date": ("+%s",),
    "timeout": ("5", "sh", "-c", "sleep 0.01; date +%s"),
    "bash": ("--norc", "--noprofile", "-c", "read -t 0.01 </dev/zero; printf '%(%s)T\\n' -1"),
    "python3": ("-I", "-S", "-c", _PYTHON),
    "node": ("-e", "setTimeout(() => console.log(Date.now() / 1000), 10)"),
    "perl": ("-e", "select(undef, undef, undef, 0.01); print time"),
    "ruby": ("-e", "sleep 0.01; puts Time.now.to_f"),
}
"""Each prints the time in seconds since 1970, after a timer has fired."""


def _interpreters(path: str) -> list[tuple[str, Path]]:
    found = ((name, shutil.which(name, path=path)) for name in _TRIALS)
    return [(name, Path(program)) for name, program in found if program is not None]


def _probed(name: str, program: Path, environ: Mapping[str, str], expected_s: Callable[[], float]) -> Probe:
    """Try one.

    Raises:
        BadInput: its timer does not fire.
    """
    command = [str(program), *_TRIALS[name]]
    try:
        ran = subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=False)
    except subprocess.TimeoutExpired as late:
        raise BadInput(f"with the faked clock, timers of {program} do not fire", hint=WITHOUT) from late
    except OSError as error:
        return Probe(program, Time.REAL, f"it cannot be started: {error.strerror}")
    complaint = ran.stderr.decode(errors="replace").strip().partition("\n")[0][:200]
    try:
        told_s = float(ran.stdout)
    except ValueError:
        return Probe(program, Time.REAL, complaint or f"it ended with {ran.returncode}")
    if abs(told_s - expected_s()) <= TOLERANCE_S:
        return Probe(program, Time.FAKED)
    return Probe(program, Time.REAL, complaint or "it does not ask the C library for the time")


_HEAD_BYTES = 64 * 1024
_PT_INTERP, _PT_NOTE = 3, 4


def real_because(program: Path) -> str:
    """Say why a program sees the real time; empty where its C library is asked, or where the file is no ELF file that can be read."""
    try:
        with program.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            head = file.read(_HEAD_BYTES)
            segments = _segments(head)
            if segments is None:
                return ""
            if mode & (stat.S_ISUID | stat.S_ISGID):
                return "it has set-user-ID or set-group-ID rights: nothing is preloaded into it"

            def content(kind: int) -> list[bytes]:
                held = []
                for segment, offset, size in segments:
                    if segment == kind and size <= _HEAD_BYTES:
                        file.seek(offset)
                        held.append(file.read(size))
                return held

            return _unlinked(content)
    except OSError:
        return ""


def _unlinked(content: Callable[[int], list[bytes]]) -> str:
    linkers = content(_PT_INTERP)
    if any(b"\x04\0\0\0" in note and b"Go\0\0" in note for note in content(_PT_NOTE)):
        return "it is a Go program: it reads the kernel's page"
    if not linkers:
        return "it is statically linked: nothing is preloaded into it"
    if any(b"musl" in linker for linker in linkers):
        return "it is linked to musl, which this library is not made for"
    return ""


def _segments(head: bytes) -> list[tuple[int, int, int]] | None:
    """The program headers of an ELF file: type, offset, size. None where it is none."""
    if head[:4] != b"\x7fELF" or len(head) < 64 or head[4] not in (1, 2) or head[5] not in (1, 2):
        return None
    order = "<" if head[5] == 1 else ">"
    wide = head[4] == 2
    (table,) = struct.unpack_from(order + ("Q" if wide else "I"), head, 32 if wide else 28)
    size, count = struct.unpack_from(order + "HH", head, 54 if wide else 42)
    form = struct.Struct(order + ("IIQQQQ" if wide else "IIIIII"))
    if size < form.size:
        return None
    found = []
    for at in range(table, table + size * min(count, 128), size):
        if at + form.size > len(head):
            break
        fields = form.unpack_from(head, at)
        found.append((fields[0], fields[2], fields[5]) if wide else (fields[0], fields[1], fields[4]))
    return found


def interpreter(program: Path) -> Path:
    """Return the program that runs a script, through up to four `#!` lines; another file is itself."""
    at = program
    for _ in range(4):
        try:
            with at.open("rb") as file:
                first = file.read(256).partition(b"\n")[0]
        except OSError:
            return at
        if not first.startswith(b"#!"):
            return at
        words = os.fsdecode(first[2:]).split()
        if not words:
            return at
        if words[0].endswith("/env"):
            names = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
            named = shutil.which(names[0]) if names else None
            if named is None:
                return at
            at = Path(named)
        else:
            at = Path(words[0])
    return at
