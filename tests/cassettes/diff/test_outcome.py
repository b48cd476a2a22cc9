"""Acceptance side by side; what a run took is shown and makes no difference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from secondtake.cassettes.diff.outcome import Account, compare
from secondtake.cassettes.takes import Checked, Control, Outcome, Resources, Signature, Take

PLAIN = Account(("m",), 0, "end", 3, 2, 100, 1.5)


def check(name: str = "tests", *, held: bool | None = True) -> Checked:
    return Checked(name, "command", "acceptance", held, "3 passed", 10)


def take(outcome: Outcome = Outcome.PASS, *checks: Checked, **more: Any) -> Account:
    signature = None if outcome is Outcome.PASS else Signature.of([("test", "test_y")])
    made = Take(
        fixture="red",
        fixture_digest="ab" * 32,
        model="hasty-20260101",
        pin_class="snapshot",
        arm="hasty",
        repeat=1,
        outcome=outcome,
        signature=signature,
        checks=checks or (check(),),
        control=Control.CONTROLLED,
        live=(),
        tier="sealed",
        refused_attempts=0,
        holes=(),
        clock="real",
        commands_from="kernel",
        resources=Resources(3, 2, 100, None, 1.5),
        agent="agent",
        agent_version=None,
        agent_status=0,
        stopped=None,
        envelope="cd" * 32,
        envelope_differs=(),
        start_tree="",
        final_tree="",
        reason="green",
    )
    return replace(PLAIN, take=replace(made, **more))


def names(a: Account, b: Account) -> list[str]:
    return [fact.name for fact in compare(a, b).facts if fact.judged and fact.differs]


def test_resources_are_shown_and_make_no_difference() -> None:
    """Two runs of the same never take the same time."""
    made = compare(PLAIN, replace(PLAIN, seconds=9.0, tokens=None, model_calls=7, cost=0.25))
    assert not made.differs
    told = {fact.name: (fact.a, fact.b) for fact in made.facts if fact.differs}
    assert told == {"model calls": ("3", "7"), "tokens": ("100", None), "seconds": ("1.5", "9.0"), "cost": (None, "0.2500")}


def test_of_plain_recordings_only_how_the_agent_left_is_compared() -> None:
    """Issue 6.4: for plain cassettes, what there is."""
    made = compare(PLAIN, replace(PLAIN, agent_status=1))
    assert made.differs
    assert not made.judged
    assert names(PLAIN, replace(PLAIN, agent_status=1)) == ["agent status"]


def test_outcome_signature_and_control_make_a_difference() -> None:
    """Issue 6.4: outcome, signature, control label."""
    assert names(take(), take(Outcome.SAME)) == ["outcome", "signature"]
    assert names(take(), take(control=Control.PARTIALLY, live=("web",))) == ["control"]
    assert names(take(), take(stopped="calls")) == ["stopped"]
    assert names(take(), take(invalid="another model answered")) == ["outcome"]
    assert names(take(), take(model="careful-20260101", tier="fenced", attempts=3)) == []


def test_a_take_beside_a_plain_recording_is_not_judged() -> None:
    """An outcome that one side never had is no difference of outcomes."""
    made = compare(take(Outcome.SAME), PLAIN)
    assert not made.judged
    assert not made.differs
    assert ("outcome", "same failure", None) in [(fact.name, fact.a, fact.b) for fact in made.facts]


def test_each_check_stands_beside_its_own() -> None:
    """Issue 6.4: each check side by side."""
    a = take(Outcome.PASS, check("tests"), check("lint"), check("lint", held=None))
    b = take(Outcome.PASS, check("tests", held=False), check("lint"), check("files"))
    made = compare(a, b)
    assert [(one.name, one.a is not None, one.b is not None, one.differs) for one in made.checks] == [
        ("tests", True, True, True),
        ("lint", True, True, False),
        ("lint", True, False, True),
        ("files", False, True, True),
    ]
    assert made.differs
    assert not compare(a, a).differs
