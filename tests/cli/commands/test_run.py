"""`run`: one sealed take of a fixture, judged."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from secondtake.cassettes.store import Store
from secondtake.cassettes.takes import decode
from secondtake.cli.commands.run import exit_of_take
from secondtake.harness.demo import Running
from secondtake.harness.fixture import load
from tests.cassettes.test_takes import TAKE
from tests.cli.models import CAREFUL, HASTY
from tests.cli.scenes import PROGRAM, Command, environment
from tests.harness.processes import Pipe
from tests.harness.seal.scenes import Host
from tests.harness.takes import with_checks

pytestmark = pytest.mark.loopback


@pytest.fixture
def fixture(command: Command, incident: Running, tmp_path: Path) -> Running:
    """The incident as the fixture `bill`, with checks; the workspace has what the hasty model left."""
    made = command("fixture", "create", "bill", "--from", "incident")
    assert made.code == 0, made.err
    with_checks(load("bill", Store(tmp_path / "store")))
    return incident


def test_one_command_says_whether_the_failure_is_there_again(command: Command, fixture: Running, here: Path) -> None:
    """Issue 6.2: outcome, evidence, signature, label and the sentence; 0 for a pass and 102 for a failure that counts."""
    left = (here / "bill" / "split.py").read_bytes()
    again = command("run", "bill", "--model", HASTY, "--route", fixture.route)
    assert again.code == 102, again.err
    assert "same failure: hasty-20260101 in bill, take bill-take-1" in again.err
    assert "does not hold acceptance the tests are green" in again.err
    assert "  controlled\n" in again.err
    assert "nothing but the proxy could be reached" in again.err
    assert (here / "bill" / "split.py").read_bytes() == left
    other = command("run", "bill", "--model", CAREFUL, "--route", fixture.route, "--json")
    assert other.code == 0, other.err
    said = json.loads(other.out)
    assert (said["outcome"], said["control"], said["tier"], said["commands_from"]) == ("pass", "controlled", "sealed", "kernel")
    assert said["resources"]["model_calls"] == 5
    played = command("diff", "bill-take-1", "bill-take-2")
    assert played.code == 103, played.err


def test_checks_that_cannot_tell_are_named_before_a_model_is_asked(command: Command, fixture: Running, tmp_path: Path) -> None:
    """Issue 5: the noise floor. A fixture that nobody edited passes whatever the agent does, and says so."""
    toml = load("bill", Store(tmp_path / "store")).root / "fixture.toml"
    kept = toml.read_text().split("[failure]")[0]
    toml.write_text(f'{kept}[failure]\n[[acceptance.check]]\nname = "no secrets"\nkind = "no-secrets"\n')
    ran = command("run", "bill", "--model", CAREFUL, "--route", fixture.route, "--quiet", "--", "true")
    assert ran.err == "warning: the fixture's checks: the acceptance holds on the untouched tree: doing nothing would pass\n"


def test_the_agent_may_be_another(command: Command, fixture: Running) -> None:
    """DESIGN 6: the command after `--` takes the place of the fixture's; that it was meant is no difference of the surroundings."""
    ran = command("run", "bill", "--model", CAREFUL, "--route", fixture.route, "--json", "--", "sh", "-c", "exit 7")
    assert ran.code == 103
    said = json.loads(ran.out)
    assert (said["agent_status"], said["invalid"]) == (7, "not asked: no model call left; the agent ended with 7")


def test_without_a_seal_the_original_is_not_acted_on(command: Command, fixture: Running, here: Path) -> None:
    """DESIGN 6: the directory is there and the copy cannot stand in its place: 105."""
    ran = command("run", "bill", "--model", CAREFUL, "--route", fixture.route, "--seal", "off")
    assert ran.code == 105
    assert str(here) in ran.err


@dataclass
class _Run:
    """One `run` in a process of its own. The pipe ends when no process of it holds it any more."""

    process: subprocess.Popen[bytes]
    pipe: Pipe

    @classmethod
    def start(cls, models: Running) -> _Run:
        pipe = Pipe()
        command = [*PROGRAM, "run", "bill", "--model", CAREFUL, "--route", models.route]
        made = cls(subprocess.Popen(command, env=environment(), stdin=subprocess.DEVNULL, stdout=pipe.writer, stderr=pipe.writer), pipe)
        pipe.close_writer()
        return made

    def killed_after(self, seconds: float) -> None:
        """Kill it so long after its start, unless it has ended by then; return when everyone is gone."""
        end_s = time.monotonic() + seconds
        while (left := end_s - time.monotonic()) > 0 and select.select([self.pipe.reader], [], [], left)[0]:
            if not os.read(self.pipe.reader, 4096):
                break
        self.process.kill()
        self.process.wait()
        self.pipe.rest()
        self.pipe.close()


def test_a_take_killed_at_any_instant_leaves_nothing_running_and_no_half_take(
    fixture: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 5: no process, no mount, no namespace; what is closed is whole; the next take sweeps the scratch folder."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    store = Store(tmp_path / "store")
    before = Host.now()
    began_s = time.monotonic()
    whole = _Run.start(fixture)
    whole.pipe.rest()
    assert whole.process.wait() == 0
    took_s = time.monotonic() - began_s
    instants = 6
    for number in range(instants):
        _Run.start(fixture).killed_after(took_s * (number + 0.5) / instants)
    last = _Run.start(fixture)
    last.pipe.rest()
    assert last.process.wait() == 0
    after = Host.now()
    assert (after.mounts, after.interfaces) == (before.mounts, before.interfaces)
    assert list(scratch.iterdir()) == []
    states = {one.name: str(one.state) for one in store.list() if one.name.startswith("bill-take")}
    assert list(states.values()).count("closed") >= 2
    for name in (name for name, state in states.items() if state == "closed"):
        with store.open(name) as cassette:
            assert decode(cassette.meta["take"]).outcome == "pass"


def test_a_take_that_could_not_be_kept_is_a_fault_of_the_store() -> None:
    """B3: a full disk is no verdict on a model, whatever the checks said."""
    assert exit_of_take(TAKE) == 102
    assert exit_of_take(TAKE, kept=False) == 104
