"""Takes and designs for tests of matrices, and a runner that makes takes in a real store without running anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from secondtake.cassettes.store import Store
from secondtake.cassettes.takes import Control, Outcome, Resources, Signature, Take, encode
from secondtake.harness.matrix.cells import Cell, Named
from secondtake.harness.matrix.design import Arm, Design
from secondtake.harness.matrix.schedule import TakeDone

RED = Signature.of((("exit", "failed"), ("test", "tests/test_money.py::test_rounds_half_up"), ("tool", "edit")))
LOST = Signature.of((("exit", "timeout"), ("tool", "run"), ("stop", "max-calls")))

TAKE = Take(
    fixture="rounding",
    fixture_digest="f" * 64,
    model="sonnet-20260101",
    pin_class="snapshot",
    arm="sonnet-20260101",
    repeat=1,
    outcome=Outcome.PASS,
    signature=None,
    checks=(),
    control=Control.CONTROLLED,
    live=(),
    tier="sealed",
    refused_attempts=0,
    holes=(),
    clock="real",
    commands_from="kernel",
    resources=Resources(12, 20, 30_000, 0.12, 61.5),
    agent="claude-code",
    agent_version="2.1.0",
    agent_status=0,
    stopped=None,
    envelope="e" * 64,
    envelope_differs=(),
    start_tree="a" * 64,
    final_tree="b" * 64,
    reason="all acceptance held",
    matrix="m",
)


def take(**changes: Any) -> Take:
    """A take that passed under full control, with `changes`; a failure gets a signature if none is given."""
    if changes.get("outcome") in {Outcome.SAME, Outcome.OTHER}:
        changes.setdefault("signature", RED if changes["outcome"] is Outcome.SAME else LOST)
    if "calls" in changes:
        changes["resources"] = replace(TAKE.resources, model_calls=changes.pop("calls"))
    return replace(TAKE, **changes)


def arm_takes(arm: str, outcomes: str, **changes: Any) -> list[Named]:
    """One take per letter: p(ass), s(ame), o(ther), c(ontaminated), i(nfrastructure)."""
    letters = {outcome.value[0]: outcome for outcome in Outcome}
    made = [
        take(**{"arm": arm, "model": arm, "repeat": repeat, "outcome": letters[letter], "calls": 8 + 3 * repeat % 7, **changes})
        for repeat, letter in enumerate(outcomes, 1)
    ]
    return [Named(f"m-{arm}-{one.repeat}", one) for one in made]


def design(**changes: Any) -> Design:
    """Three arms, four repeats."""
    made = {
        "label": "rounding",
        "fixture": "rounding",
        "fixture_digest": "f" * 64,
        "arms": (
            Arm("old", "old-20260101", "api.provider.example", "snapshot", control=True),
            Arm("new", "new-20260601", "api.provider.example", "snapshot"),
            Arm("other", "other-20260601", "api.other.example", "snapshot"),
        ),
        "looks": (4,),
        "seed": 7,
        "jobs": 3,
    }
    return Design(**{**made, **changes})


def outcome_of(cell: Cell) -> Outcome:
    """What a cell comes to: always the same for one attempt, infrastructure only at first."""
    number = sum(map(ord, cell.arm.name)) * 7 + cell.repeat * 5 + cell.attempt * 3
    found = (Outcome.PASS, Outcome.SAME, Outcome.INFRASTRUCTURE, Outcome.OTHER, Outcome.PASS, Outcome.CONTAMINATED)[number % 6]
    return found if cell.attempt < 3 or found is not Outcome.INFRASTRUCTURE else Outcome.SAME


def take_of(cell: Cell, outcome: Outcome, **changes: Any) -> Take:
    """The take of a cell."""
    return take(
        matrix=cell.matrix,
        arm=cell.arm.name,
        model=cell.arm.model,
        repeat=cell.repeat,
        warm_up=cell.warm_up,
        attempts=cell.attempt,
        outcome=outcome,
        calls=10 + cell.repeat + len(cell.arm.name),
        **changes,
    )


@dataclass(slots=True)
class FakeRunner:
    """Writes the take of a cell into a real store, without running anything."""

    store: Store
    told: Callable[[str, Cell], None] = lambda _what, _cell: None
    of: Callable[[Cell], Outcome] = outcome_of
    cells: list[Cell] = field(default_factory=list)

    async def __call__(self, cell: Cell) -> TakeDone:
        self.cells.append(cell)
        self.told("begin", cell)
        writer = self.store.create(cell.name, meta={"kind": "take", "created": "2026-11-30"})
        self.told("made", cell)
        made = take_of(cell, self.of(cell))
        self.told("closing", cell)
        writer.close(meta={"take": encode(made)})
        self.told("closed", cell)
        return TakeDone(cell.name, made, throttled=made.outcome is Outcome.INFRASTRUCTURE)


@dataclass(slots=True)
class FakeClock:
    """Time that passes only when it is slept."""

    seconds: float = 0.0
    slept: list[float] = field(default_factory=list)

    def now_s(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds
