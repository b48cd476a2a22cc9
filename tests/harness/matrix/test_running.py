"""Each arm becomes the part that its take plays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from secondtake.harness.matrix.cells import Cell
from secondtake.harness.matrix.design import Arm, Axis, Change
from secondtake.harness.matrix.running import Playhouse, command_of, done_of, models_of, part_of, rules_of
from secondtake.harness.matrix.schedule import RunCell
from secondtake.harness.plan import Recast
from secondtake.harness.results import LiveCall, Retaken
from secondtake.harness.taking import Taken
from tests.harness.matrix.scenes import TAKE

SHARED = Recast((), rules=("drop-sampling",), credential_env="REAL_KEY")


def arm(axis: Axis, value: list[str]) -> Arm:
    return Arm("b with it", "b-1", change=Change(axis, "it", list(value)))


def test_a_cell_is_told_to_its_take_in_full() -> None:
    """Issue 6: matrix, arm, repeat, attempt and warm-up go into the take, by which it is found again."""
    cell = Cell("m-1", Arm("b", "b-1"), 3, attempt=2, name="m-1-2-3-try2")
    part = part_of(cell, SHARED, {"AGENTS.md": Path("old.md")})
    assert (part.matrix, part.arm, part.repeat, part.attempts, part.warm_up) == ("m-1", "b", 3, 2, False)
    assert part.recast == Recast(("b-1",), name="m-1-2-3-try2", rules=("drop-sampling",), credential_env="REAL_KEY")
    assert (part.files, part.command) == ({"AGENTS.md": Path("old.md")}, None)
    assert part_of(Cell("m-1", Arm("b", "b-1"), 0, warm_up=True), SHARED, {}).warm_up


def test_one_thing_is_changed_in_an_arm() -> None:
    """DESIGN 6: parameters and tools by rules, the agent by its command."""
    assert rules_of(arm(Axis.PARAMETERS, ["temperature=0.2"])) == ("set:temperature=0.2",)
    assert rules_of(arm(Axis.TOOLS, ["read_file", "run"])) == ("only-tools:read_file,run",)
    assert command_of(arm(Axis.AGENT, ["codex", "exec", "fix it"])) == ("codex", "exec", "fix it")
    assert rules_of(arm(Axis.AGENT, ["codex"])) == ()
    assert command_of(arm(Axis.TOOLS, ["run"])) is None


def test_an_arm_may_have_a_pin_for_each_model_that_is_asked() -> None:
    """Agents use several models."""
    assert models_of(Arm("x", "main=big-1, small=little-1")) == ("main=big-1", "small=little-1")
    assert models_of(Arm("x", "big-1")) == ("big-1",)


def test_the_playhouse_is_what_the_scheduler_runs() -> None:
    """The seam: held by the type checker."""
    _: type[RunCell] = Playhouse


def test_how_long_a_provider_asks_to_wait_reaches_the_scheduler() -> None:
    """Issue 6.3: pacing per provider; the longest wait that any call of a take was told."""
    first = LiveCall(
        seq=1,
        step=1,
        adapter="anthropic",
        requested=("m",),
        forwarded="m",
        served=(),
        proof="unverified",
        verified=False,
        status=429,
        mismatch=False,
        infrastructure="429 from the provider",
        incomplete=False,
        retired=False,
        incompatible=None,
        retry_after_s=7.0,
    )
    retaken = Retaken("t", "p", None, 1, 2, {}, (first, replace(first, retry_after_s=3.0)), (), None, (), (), (), 1)
    done = done_of(Taken(retaken, TAKE, (), 0, "", None, "bill/cassette.take"))
    assert (done.throttled, done.retry_after_s, done.hopeless) == (True, 7.0, "")
    gone = replace(retaken, calls=(replace(first, status=404, retired=True, retry_after_s=None),))
    done = done_of(Taken(gone, TAKE, (), 0, "", None, "bill/cassette.take"))
    assert (done.throttled, done.retry_after_s) == (False, None)
    assert done.hopeless
