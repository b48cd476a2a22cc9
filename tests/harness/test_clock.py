"""A clock that begins at the recorded start, tried on real interpreters."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from secondtake.cassettes.errors import BadInput
from secondtake.harness import clock as clocks
from secondtake.harness.clock import Clock, Time, find_library, frozen, interpreter, real_because
from secondtake.harness.tracing import traced
from tests.agents.installs import later

START = datetime(2026, 2, 28, 23, 59, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def library() -> Path:
    """Libfaketime of this machine, else of the Python index. Skips, with the reason, where it cannot be had."""
    return find_library() or Path(later()["LD_PRELOAD"])


@pytest.fixture(scope="module")
def clock(library: Path) -> Clock:
    """A clock that shows `START` now."""
    return frozen(START, os.environ, now=datetime.now(UTC), library=library)


def shown(clock: Clock, *command: str, **environment: str) -> float:
    """What a command under the clock prints, in seconds since the start."""
    env = {**os.environ, **environment, **clock.environment}
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert ran.returncode == 0, ran.stderr
    return float(ran.stdout) - START.timestamp()


ASYNC = "import asyncio, time; asyncio.run(asyncio.sleep(0.01)); time.sleep(0.01); print(time.time())"


class TestFrozen:
    def test_the_wall_clock_begins_at_the_start_and_advances(self, clock: Clock) -> None:
        """D-13: one time for all processes, whatever their time zone, and later ones see a later time."""
        first = shown(clock, "date", "+%s.%N")
        second = shown(clock, "date", "+%s.%N", TZ="Asia/Tokyo")
        assert 0 <= first < second < 600

    def test_timers_fire(self, clock: Clock) -> None:
        """D-13: asyncio, `sleep`, `timeout`, setTimeout."""
        assert 0 <= shown(clock, sys.executable, "-I", "-c", ASYNC) < 600
        assert 0 <= shown(clock, "timeout", "60", "sh", "-c", "sleep 0.01; date +%s.%N") < 600
        if shutil.which("node"):
            assert 0 <= shown(clock, "node", "-e", "setTimeout(() => console.log(Date.now() / 1000), 10)") < 600

    def test_file_times_are_left_alone(self, clock: Clock, tmp_path: Path) -> None:
        """`make` compares them with each other, and with what it has just written."""
        (tmp_path / "file").write_text("")
        real = (tmp_path / "file").stat().st_mtime - START.timestamp()
        assert abs(shown(clock, "stat", "-c", "%Y", str(tmp_path / "file")) - real) < 2

    def test_each_interpreter_that_is_there_was_tried(self, clock: Clock) -> None:
        """D-13: per-runtime results; the reason stands beside what saw the real time."""
        tried = {probe.program.name: probe for probe in clock.probes}
        assert {"date", "timeout"} <= tried.keys()
        assert tried["date"].time is Time.FAKED
        for probe in clock.probes:
            assert (probe.note != "") == (probe.time is Time.REAL)
            assert any(line.startswith(f"{probe.program}: ") for line in clock.real) == (probe.time is Time.REAL)

    def test_an_agent_under_the_tracer_has_the_clock_and_the_tracer_has_not(self, clock: Clock, tmp_path: Path) -> None:
        """D-11 beside D-13: commands keep their real times."""
        tracer = traced(tmp_path / "log", cwd=tmp_path, elapsed_us=0, environment=clock.environment)
        if tracer.refused:
            pytest.skip(tracer.refused)
        ran = subprocess.run([*tracer.prefix, "date", "+%Y"], capture_output=True, text=True, cwd=tmp_path)
        (one,) = tracer.commands()
        assert ran.stdout == f"{START.year}\n"
        assert one.started_us > 0  # the faked time is before the recording began

    def test_the_clock_can_be_given_without_a_tracer(self, clock: Clock) -> None:
        """The same, as words before the command."""
        ran = subprocess.run([*clock.prefix, "date", "-u", "+%F"], capture_output=True, text=True)
        assert ran.stdout.startswith("2026-0")

    def test_what_was_preloaded_before_is_kept(self, library: Path) -> None:
        """Somebody's own LD_PRELOAD."""
        made = frozen(START, {**os.environ, "LD_PRELOAD": str(library)}, now=datetime.now(UTC), library=library)
        assert made.environment["LD_PRELOAD"] == f"{library}:{library}"


class TestRefused:
    def test_without_the_library_it_is_said_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Issue 4: bad input says what would help."""
        monkeypatch.setattr(clocks, "find_library", lambda: None)
        with pytest.raises(BadInput) as raised:
            frozen(START, {}, now=START)
        assert raised.value.hint == "pip install libfaketime"

    def test_a_library_that_fakes_nothing_is_refused(self, tmp_path: Path) -> None:
        """One made for another machine: the linker complains, and programs run with the real time."""
        (tmp_path / "library.so").write_text("no library")
        with pytest.raises(BadInput, match="cannot be faked here"):
            frozen(START, os.environ, now=datetime.now(UTC), library=tmp_path / "library.so")
        with pytest.raises(BadInput, match="space or a colon"):
            frozen(START, os.environ, now=START, library=tmp_path / "a b.so")

    def test_timers_that_do_not_fire_are_found_before_the_run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """D-13: an agent that waits for ever would be the worse fault."""
        monkeypatch.setattr(clocks, "PATIENCE_S", 0.05)
        (tmp_path / "date").write_text("#!/bin/sh\nexec sleep 3600\n")
        (tmp_path / "date").chmod(0o755)
        with pytest.raises(BadInput, match=r"timers of .*date do not fire"):
            frozen(START, {"PATH": f"{tmp_path}:/bin:/usr/bin"}, now=START, library=tmp_path / "library.so")


def elf(tmp_path: Path, *segments: tuple[int, bytes], order: str = "<", wide: bool = True, mode: int = 0o755) -> Path:
    """A file with these program headers, and their contents behind them."""
    form = struct.Struct(order + ("IIQQQQQQ" if wide else "IIIIIIII"))
    start = 64 if wide else 52
    place = start + form.size * len(segments)
    table, contents = b"", b""
    for kind, content in segments:
        at = place + len(contents)
        fields = (kind, 0, at, 0, 0, len(content), len(content), 1) if wide else (kind, at, 0, 0, len(content), len(content), 0, 1)
        table += form.pack(*fields)
        contents += content
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    if wide:
        rest = struct.pack(order + "HHIQQQIHHHHHH", 2, 62, 1, 0, start, 0, 0, 64, form.size, len(segments), 0, 0, 0)
    else:
        rest = struct.pack(order + "HHIIIIIHHHHHH", 2, 3, 1, 0, start, 0, 0, 52, form.size, len(segments), 0, 0, 0)
    path = tmp_path / f"program-{len(list(tmp_path.iterdir()))}"
    path.write_bytes((ident + rest + table + contents).ljust(64, b"\0"))
    path.chmod(mode)
    return path


GLIBC = (3, b"/lib64/ld-linux-x86-64.so.2\0")
GO = (4, struct.pack("<III", 4, 4, 4) + b"Go\0\0" + b"abcd")


class TestPrograms:
    def test_a_program_that_does_not_ask_the_c_library_is_known_by_its_file(self, tmp_path: Path) -> None:
        """D-13: static binaries are listed as real-time."""
        assert real_because(elf(tmp_path, GLIBC)) == ""
        assert "statically linked" in real_because(elf(tmp_path, (1, b"code")))
        assert "Go program" in real_because(elf(tmp_path, GLIBC, GO))
        assert "musl" in real_because(elf(tmp_path, (3, b"/lib/ld-musl-x86_64.so.1\0")))
        assert "set-user-ID" in real_because(elf(tmp_path, GLIBC, mode=0o4755))
        assert "statically linked" in real_because(elf(tmp_path, (1, b"code"), order=">", wide=False))

    @pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not on this machine")
    def test_a_static_program_of_a_real_compiler_is_known(self, tmp_path: Path, clock: Clock) -> None:
        """And it does see the real time."""
        (tmp_path / "t.c").write_text('#include <stdio.h>\n#include <time.h>\nint main(void) { printf("%ld", (long)time(0)); }\n')
        for name, options in (("shared", []), ("static", ["-static"])):
            made = subprocess.run(["gcc", *options, "-o", tmp_path / name, tmp_path / "t.c"], capture_output=True, text=True)
            if made.returncode:
                pytest.skip(f"gcc cannot link here: {made.stderr[-200:]}")
        assert clock.seen([tmp_path / "shared", tmp_path / "static"]) == {
            str(tmp_path / "shared"): Time.FAKED,
            str(tmp_path / "static"): Time.REAL,
        }
        assert 0 <= shown(clock, str(tmp_path / "shared")) < 600
        assert shown(clock, str(tmp_path / "static")) > timedelta(days=1).total_seconds()

    def test_a_script_is_as_its_interpreter_is(self, tmp_path: Path) -> None:
        """`pip` is a script of a Python, and that is what asks for the time."""
        deep = elf(tmp_path, (1, b"code"))
        for number in range(2):
            script = tmp_path / f"script-{number}"
            script.write_bytes(b"#!" + os.fsencode(deep) + b" -x\nrest")
            deep = script
        assert "statically linked" in real_because(interpreter(deep))
        env = tmp_path / "env-script"
        env.write_text("#!/usr/bin/env -S sh -e\n")
        assert interpreter(env) == Path(shutil.which("sh") or "")
        env.write_text("#!/usr/bin/env no-such-program\n")
        assert interpreter(env) == env

    @pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 100, b"\x7fELF\x09\x09" + bytes(100), b"#!\n"])
    def test_a_file_that_is_nothing_is_no_reason(self, tmp_path: Path, content: bytes) -> None:
        """What an agent executed may be anything, and may be gone."""
        (tmp_path / "x").write_bytes(content)
        assert real_because(interpreter(tmp_path / "x")) in {"", "it is statically linked: nothing is preloaded into it"}
        assert real_because(interpreter(tmp_path / "gone")) == ""
