"""`matrix` killed at any instant, and gone on with: real takes, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from secondtake.cassettes.cassette import State
from secondtake.cassettes.store import Store
from secondtake.cassettes.takes import Take, decode
from secondtake.harness.demo import Running
from secondtake.harness.fixture import load
from secondtake.harness.matrix.state import Matrices
from tests.cli.models import CAREFUL, HASTY
from tests.cli.scenes import PROGRAM, Command, environment
from tests.harness.processes import Pipe
from tests.harness.seal.scenes import Host
from tests.harness.takes import with_checks

pytestmark = pytest.mark.loopback

ARMS, REPEATS = (HASTY, CAREFUL), 2

KILLS = (b"matrix ", 3, b"/4] ", 6, 2)
"""When: as soon as it says that, or when its provider has answered so many calls since it began."""


@pytest.fixture
def bill(command: Command, incident: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    """The incident as the fixture `bill`, with checks; scratch folders have a place of their own."""
    made = command("fixture", "create", "bill", "--from", "incident")
    assert made.code == 0, made.err
    with_checks(load("bill", Store(tmp_path / "store")))
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    return incident


def asked(made: Running, label: str) -> tuple[str, ...]:
    models = [word for arm in ARMS for word in ("--model", arm)]
    bounds = ("--repeats", str(REPEATS), "--jobs", "2", "--no-warm-up", "--as", label)
    return ("matrix", "bill", *models, *bounds, "--route", made.route, "--yes", "--json")


def play(made: Running, *arguments: str, until: int | bytes | None = None) -> tuple[int, bytes]:
    """One `matrix` in a process of its own, killed at an instant; returns its exit code and what it said, when everyone is gone."""
    pipe = Pipe()
    process = subprocess.Popen([*PROGRAM, *arguments], env=environment(), stdin=subprocess.DEVNULL, stdout=pipe.writer, stderr=pipe.writer)
    answered = 0

    def watch(_seen: object) -> None:
        nonlocal answered
        answered += 1
        if answered == until:
            process.kill()

    made.provider.watch = watch
    try:
        pipe.close_writer()
        said = b""
        if isinstance(until, bytes):
            said = pipe.until(until)
            process.kill()
        said += pipe.rest()
    finally:
        made.provider.watch = lambda _seen: None
        process.kill()
        code = process.wait()
        pipe.close()
    return code, said


def table(said: dict[str, Any]) -> dict[str, Any]:
    """A report without what differs from run to run: names, times, the design, and that takes were cut off."""
    told = {
        name: said[name] for name in ("headline", "study", "label", "live", "takes", "complete", "outlook", "reproduced", "model_calls")
    }
    rows = []
    for row in said["rows"]:
        used = {name: value for name, value in row["used"].items() if name != "seconds"}
        failures = [{**failure, "takes": len(failure["takes"])} for failure in row["failures"]]
        takes = [{name: value for name, value in take.items() if name not in {"name", "seconds"}} for take in row["takes"]]
        rows.append({**row, "used": used, "failures": failures, "takes": takes})
    return {**told, "rows": rows}


def closed(store: Store, label: str) -> dict[str, Take]:
    """The takes that have their last record."""
    found = {}
    for summary in store.list():
        if summary.name.startswith(f"{label}-") and summary.state is State.CLOSED:
            with store.open(summary.name) as cassette:
                found[summary.name] = decode(cassette.meta["take"])
    return found


def left_running(scratch: Path) -> list[int]:
    """Processes that were given this folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                given = (entry / "environ").read_bytes()
            except OSError:
                continue
            found += [int(entry.name)] if os.fsencode(scratch) in given else []
    return found


def test_a_matrix_killed_at_any_instant_goes_on_and_ends_with_the_same_table(command: Command, bill: Running, tmp_path: Path) -> None:
    """Issue 6: real takes; nothing is run twice, nothing is lost, no process, mount or scratch folder is left."""
    store, scratch = Store(tmp_path / "store"), tmp_path / "scratch"
    before = Host.now()
    code, out = play(bill, *asked(bill, "whole"))
    assert code == 0, out
    kept: dict[str, Take] = {}
    for instant in KILLS:
        sealed = any(matrix.startswith("killed-") for matrix in Matrices(store.root).ids())
        resumed = ("--resume",) if sealed else ()
        code, out = play(bill, *asked(bill, "killed"), *resumed, until=instant)
        assert code == -signal.SIGKILL, out
        now = closed(store, "killed")
        assert {name: now.get(name) for name in kept} == kept
        kept = now
    assert 0 < len(kept) < len(ARMS) * REPEATS
    code, out = play(bill, *asked(bill, "killed"), "--resume")
    assert code == 0, out
    made = closed(store, "killed")
    assert {name: made.get(name) for name in kept} == kept
    cells = sorted((take.arm, take.repeat) for take in made.values())
    assert cells == sorted((arm, repeat) for arm in ARMS for repeat in range(1, REPEATS + 1))
    whole, killed = (json.loads(command("report", label, "--json").out) for label in ("whole", "killed"))
    assert table(killed) == table(whole)
    assert any("cut off before the end and run again" in note for note in killed["notes"])
    assert left_running(scratch) == []
    assert list(scratch.iterdir()) == []
    after = Host.now()
    assert (after.mounts, after.interfaces) == (before.mounts, before.interfaces)
