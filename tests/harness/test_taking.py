"""Takes: a fixture's scene put back, sealed, played by another model, and judged."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from secondtake.cassettes import takes
from secondtake.cassettes.event import EventKind
from secondtake.cassettes.exchange import Answered, Channel
from secondtake.cassettes.run_events import log_of
from secondtake.cassettes.stages import staged as stage_in
from secondtake.cassettes.takes import Control, Outcome
from secondtake.harness.demo import CAREFUL, HASTY
from secondtake.harness.results import SealBroken
from secondtake.harness.seal import Tier
from secondtake.harness.taking import Conditions
from tests.harness.retakes import agent
from tests.harness.takes import CHECKS, Staged, staged


def played(folder: Path, test: Callable[[Staged], Awaitable[None]], **how: object) -> None:
    """Run a test on a staged incident."""

    async def whole() -> None:
        async with staged(folder, **how) as made:  # type: ignore[arg-type]
            await test(made)

    asyncio.run(whole())


def test_the_recorded_model_fails_as_recorded_and_another_one_passes(tmp_path: Path) -> None:
    """Issue 5.4, 6.2: restore, seal, play, judge. The original workspace and HOME are as they were, and both takes replay offline."""

    async def test(made: Staged) -> None:
        before = sorted(path for path in made.scene.stage.cwd.rglob("*") if ".git" not in path.parts)
        again, other = await made.take(HASTY), await made.take(CAREFUL)
        assert (again.take.outcome, other.take.outcome) == (Outcome.SAME, Outcome.PASS), (again.take.reason, other.take.reason)
        for taken in (again, other):
            assert (taken.take.control, taken.take.live) == (Control.CONTROLLED, ())
            assert (taken.take.tier, taken.take.commands_from) == (str(Tier.SEALED), "kernel")
            assert taken.retaken.answered[Answered.LIVE] == taken.take.resources.model_calls == len(taken.retaken.calls)
            with made.scene.stage.store.open(taken.name) as kept:
                assert takes.decode(kept.meta["take"]) == taken.take
                stage = stage_in(kept)
                assert stage is not None
                assert (stage.workspace, stage.final) == (taken.take.start_tree, taken.take.final_tree)
        assert again.take.start_tree == other.take.start_tree != again.take.final_tree
        assert sorted(path for path in made.scene.stage.cwd.rglob("*") if ".git" not in path.parts) == before
        assert made.fixture.digest == again.take.fixture_digest

    played(tmp_path, test)


def test_commands_are_those_the_kernel_saw(tmp_path: Path) -> None:
    """D-11: argv and exit codes of every program, in the take."""

    async def test(made: Staged) -> None:
        from secondtake.cassettes import execs

        taken = await made.take(CAREFUL)
        with made.scene.stage.store.open(taken.name) as kept:
            (log,) = [kept.artifact(one.digest) for one in kept.artifacts if one.kind == "exec"]
        ran = [(command.argv, command.exit_code) for command in execs.decode(log)]
        checks = [code for argv, code in ran if argv[:2] == ("python3", "check.py")]
        assert checks == [1, 0]

    played(tmp_path, test)


def test_a_take_that_cannot_be_sealed_as_required_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D-01: `require` means it; no take, no scratch folder."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.setattr("secondtake.harness.seal.sealing._SCRIPT", tmp_path / "absent.py")

    async def test(made: Staged) -> None:
        names = made.scene.names
        with pytest.raises(SealBroken):
            await made.take(CAREFUL, conditions=Conditions(wire=made.scene.rules, seal="require"))
        assert made.scene.names == names
        assert list(scratch.iterdir()) == []

    played(tmp_path, test)


def test_an_attempt_to_leave_is_an_escape_and_is_counted(tmp_path: Path) -> None:
    """D-04: by IP, by a name; nothing leaves, each is told."""

    async def test(made: Staged) -> None:
        tries = 'python3 -c "import socket; s = socket.socket(); s.settimeout(1); s.connect((\'192.0.2.7\', 9418))"; exec "$@"'
        taken = await made.take(CAREFUL, command=["sh", "-c", tries, "sh", *agent()])
        assert [(one.kind, one.address, one.port) for one in taken.attempts] == [("tcp", "192.0.2.7", 9418)]
        assert taken.take.refused_attempts == 1
        assert taken.take.outcome is Outcome.PASS
        assert [problem.kind for problem in taken.retaken.problems] == ["escape"]
        with made.scene.stage.store.open(taken.name) as kept:
            log = [one for one in log_of(kept) if one.event is EventKind.ESCAPE]
        assert made.scene.stage.store.verify(taken.name).faults == ()
        assert [(one.data["kind"], one.data["address"], one.data["port"]) for one in log] == [("tcp", "192.0.2.7", 9418)]

    played(tmp_path, test)


def test_the_checks_see_what_the_agent_left_beside_the_workspace_and_the_machine_does_not(tmp_path: Path) -> None:
    """Issue 5, "a replay cannot hurt": an installed tool, say. Acceptance runs in a start of its own, on the same layer."""
    beside = tmp_path.parent / f"{tmp_path.name}-beside"  # not in HOME, which is a scratch copy
    beside.mkdir()
    installed = f'[[acceptance.check]]\nname = "installed"\nkind = "command"\nrun = ["test", "-f", "{beside}/tool"]\n\n'

    async def test(made: Staged) -> None:
        taken = await made.take(CAREFUL, command=["sh", "-c", f'touch {beside}/tool; exec "$@"', "sh", *agent()])
        assert [each.held for each in taken.take.checks if each.name == "installed"] == [True], taken.take.checks
        assert list(beside.iterdir()) == []

    played(tmp_path, test, checks=CHECKS.replace("[stop]", f"{installed}[stop]"))


def test_a_channel_that_stays_live_takes_the_label_away_and_is_named(tmp_path: Path) -> None:
    """Issue 6: with one extra live channel it is `partially controlled`, and says which; what came is kept on the take."""

    async def test(made: Staged) -> None:
        rules = replace(made.scene.rules, live=("web",))
        taken = await made.take(CAREFUL, conditions=Conditions(wire=rules))
        assert (taken.take.outcome, taken.take.control) == (Outcome.PASS, Control.PARTIALLY)
        assert taken.take.live == ("web (1 request) answered live",)
        with made.scene.stage.store.open(taken.name) as kept:
            assert [row.channel for row in kept.rows if row.channel is not Channel.MODEL] == [Channel.WEB]

    played(tmp_path, test)


def test_an_agent_that_does_not_end_in_time_is_ended_and_the_take_names_the_rule(tmp_path: Path) -> None:
    """Issue 6: `[stop] seconds` reached by an agent that hangs is no plain failure: the rule is in outcome, signature and problems."""

    async def test(made: Staged) -> None:
        taken = await made.take(CAREFUL, command=["python3", "-c", "import time; time.sleep(600)"])
        assert taken.take.stopped == "--max-seconds 2: the agent was ended, it had not ended by itself"
        assert taken.take.signature is not None
        assert dict(taken.take.signature.parts)["stop"] == "max-seconds"
        assert taken.take.reason.startswith("stopped by --max-seconds 2: ")
        assert "stopped" in [problem.kind for problem in taken.retaken.problems]

    played(tmp_path, test, checks=CHECKS.replace("seconds = 60", "seconds = 2"))
