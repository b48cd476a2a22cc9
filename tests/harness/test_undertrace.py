"""The script between a launcher and a traced agent: it tries first, and the agent runs in either case."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from secondtake.harness.tracing import UNDER


def run(log: Path, tracer: list[str], *agent: str, given: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-I", "-S", str(UNDER), str(log), str(len(tracer)), *tracer, "--", *given, "--", *agent]
    return subprocess.run(words, capture_output=True, text=True, timeout=60)


def tracer(tmp_path: Path, body: str) -> list[str]:
    """A program in a tracer's place. `$log` is the log; `"$@"` what to trace."""
    program = tmp_path / "tracer"
    program.write_text(f'#!/bin/sh\nlog=$1; shift\n[ "$1" = -E ] && {{ export "$2"; shift 2; }}\n{body}\n')
    program.chmod(0o755)
    return [str(program), str(tmp_path / "log")]


class TestTracer:
    def test_the_agent_runs_under_a_tracer_that_works(self, tmp_path: Path) -> None:
        """D-11. What the trial wrote is gone from the log."""
        words = tracer(tmp_path, 'echo "saw $*" >>"$log"; exec "$@"')
        ran = run(tmp_path / "log", words, "sh", "-c", "echo $A; exit 3", given=("A=1=2",))
        assert (ran.returncode, ran.stdout, ran.stderr) == (3, "1=2\n", "")
        assert (tmp_path / "log").read_text() == "saw sh -c echo $A; exit 3\n"
        assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            ("echo 'no: not permitted' >&2; echo more >&2; exit 1", "no: not permitted"),
            ("echo 'works, but: not as asked' >&2; echo x >>\"$log\"; exec \"$@\"", "works, but: not as asked"),
            ("exit 4", "a traced program ended with 4"),
            ('exec "$@"', "the tracer runs, and sees nothing"),
        ],
        ids=["refuses", "complains", "fails silently", "sees nothing"],
    )
    def test_without_a_tracer_that_works_the_agent_runs_and_the_reason_is_left(self, tmp_path: Path, body: str, reason: str) -> None:
        """D-12: never silently, and never instead of the agent."""
        ran = run(tmp_path / "log", tracer(tmp_path, body), "sh", "-c", "echo $A; exit 3", given=("A=1",))
        assert (ran.returncode, ran.stdout, ran.stderr) == (3, "1\n", "")
        assert (tmp_path / "log.refused").read_text() == reason

    def test_a_tracer_that_hangs_is_ended(self, tmp_path: Path) -> None:
        """The agent must not wait for a tracer for ever. The patience is shortened, in a copy of the script."""
        under = tmp_path / "under.py"
        under.write_text(UNDER.read_text().replace("PATIENCE_S = 5.0", "PATIENCE_S = 0.05"))
        words = tracer(tmp_path, "exec sleep 3600")
        command = [sys.executable, "-I", "-S", str(under), str(tmp_path / "log"), "2", *words, "--", "--", "true"]
        assert subprocess.run(command, timeout=60).returncode == 0
        assert "did not end" in (tmp_path / "log.refused").read_text()

    def test_a_log_that_cannot_be_written_is_a_reason(self, tmp_path: Path) -> None:
        """A link in its place is somebody's trick; a folder that is not there is a seal that hides it."""
        (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
        words = tracer(tmp_path, 'exec "$@"')
        assert run(tmp_path / "link", words, "true").returncode == 0
        assert "cannot be written" in (tmp_path / "link.refused").read_text()
        assert not (tmp_path / "elsewhere").exists()
        assert run(tmp_path / "hidden/log", words, "sh", "-c", "exit 3").returncode == 3

    @pytest.mark.parametrize(("agent", "status"), [("no-such-program", 127), ("./file", 126), ("/no/such", 127)])
    def test_an_agent_that_is_not_there_ends_with_the_shell_s_status(self, tmp_path: Path, agent: str, status: int) -> None:
        """D-06: not with the tracer's."""
        (tmp_path / "file").write_text("")
        words = tracer(tmp_path, 'echo x >>"$log"; exec "$@"')
        ran = run(tmp_path / "log", words, agent.replace("./", f"{tmp_path}/"))
        assert ran.returncode == status
        assert "cannot start" in ran.stderr
