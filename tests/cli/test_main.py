"""The group, the error boundary, and what `--help` costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from secondtake.cassettes.store import Store
from secondtake.cli.main import COMPLETION_VARIABLE, run
from tests.cli.scenes import PROGRAM, Command, environment


def test_an_internal_fault_is_one_line_and_code_70(command: Command, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """DESIGN 7: internal error 70 from every command; the traceback only with SECONDTAKE_DEBUG=1."""

    def broken(_self: Store) -> list[object]:
        raise RuntimeError("a\nb")

    monkeypatch.setattr(Store, "list", broken)
    ran = command("ls")
    assert (ran.code, ran.err.splitlines()[0]) == (70, "error: internal fault: RuntimeError: a\\nb")
    assert "Traceback" not in ran.err
    monkeypatch.setenv("SECONDTAKE_DEBUG", "1")
    assert "Traceback" in command("ls").err


def test_a_reader_that_leaves_is_no_error(store: Store) -> None:
    """`secondtake show NAME --json | head -1` ends quietly."""
    command = [*PROGRAM, "show", "incident", "--json"]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, env=environment())
    finally:
        os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, b"")


def test_help_is_quick_because_it_loads_nothing_heavy(here: Path) -> None:
    """The proxy, the crypto library, rich and asyncio are loaded by the commands that need them."""
    code = "import sys\nfrom secondtake.cli.main import run\nrun(['--help'])\nprint(','.join(m for m in sys.modules if '.' not in m))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
    loaded = set(ran.stdout.splitlines()[-1].split(","))
    assert not loaded & {"mitmproxy", "cryptography", "rich", "asyncio", "zstandard", "msgpack", "brotli", "h2", "jinja2", "aiohttp"}


def test_run_is_callable_twice_in_one_process(store: Store) -> None:
    """No state is left behind by a command."""
    assert [run(["ls", "-q"]), run(["ls", "-q"])] == [0, 0]


@pytest.mark.parametrize("words", ["show in", "replay in", "retake in", "calibrate in", "events in"])
def test_names_are_completed_where_no_agent_stands_yet(
    store: Store, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], words: str
) -> None:
    """DESIGN 7: shell completion; a command that wants `-- AGENT` is asked for names before there is one."""
    assert store.list()
    monkeypatch.setenv(COMPLETION_VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"secondtake {words}")
    monkeypatch.setenv("COMP_CWORD", "2")
    with pytest.raises(SystemExit):
        run([])
    assert capfd.readouterr() == ("plain,incident\n", "")
