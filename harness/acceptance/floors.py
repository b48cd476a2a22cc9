"""The noise floor: what the checks say before anything was done, and of a tree that is known to be good.

Without it a check that always passes, always fails, or passes by chance would be taken for the model's doing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from secondtake.harness.acceptance.judging import judge_fully
from secondtake.harness.acceptance.scene import Floor

if TYPE_CHECKING:
    from secondtake.cassettes.takes import Checked
    from secondtake.harness.acceptance.scene import Scene
    from secondtake.harness.acceptance.schema import Acceptance, Failure


async def floor(acceptance: Acceptance, failure: Failure, untouched: Scene, known_good: Scene | None = None) -> Floor:
    """Judge the untouched tree, then the known-good one against it. Commands run in their workspaces: give scratch copies.

    `untouched.start` and `untouched.final` are the same tree; `known_good.start` is that tree too.
    """
    first = await judge_fully(failure, acceptance, untouched, is_floor=True)
    made = Floor(
        untouched=tuple(one.checked for one in first),
        findings={one.checked.name: one.said.findings for one in first if one.said.findings is not None},
        passing={one.checked.name: one.said.passing for one in first if one.said.passing is not None},
    )
    good: tuple[Checked, ...] | None = None
    if known_good is not None:
        second = await judge_fully(failure, acceptance, replace(known_good, floor=made))
        good = tuple(one.checked for one in second)
    return replace(made, known_good=good, problems=tuple(problems(made.untouched, good)), notes=tuple(notes(made.untouched, good)))


def problems(untouched: Sequence[Checked], known_good: Sequence[Checked] | None) -> Iterator[str]:
    """Why the checks cannot tell a failure from a success."""
    asked = [one for one in untouched if one.section == "acceptance"]
    if not asked:
        yield "there is no acceptance check: nothing can pass"
    elif all(one.held is True for one in asked):
        yield "the acceptance holds on the untouched tree: doing nothing would pass"
    for one in untouched:
        if one.held is None:
            yield f"`{one.name}` cannot be judged on the untouched tree: {one.evidence}"
    for one in known_good or ():
        if one.section == "acceptance" and one.held is not True:
            what = "does not hold" if one.held is False else "cannot be judged"
            yield f"`{one.name}` {what} on the tree that is known to be good: {one.evidence}"


def notes(untouched: Sequence[Checked], known_good: Sequence[Checked] | None) -> Iterator[str]:
    """What a person should know: where the failure comes from, and that a good tree shows it too."""
    for one in untouched:
        if one.section == "failure" and one.held is False:
            yield f"the failure's `{one.name}` is not there before the agent runs, so it is what the agent does: {one.evidence}"
    conditions = [one for one in known_good or () if one.section == "failure"]
    if conditions and all(one.held is True for one in conditions):
        yield "the failure's checks hold on the tree that is known to be good, too: they do not tell it from the incident"
    if known_good is None:
        yield "there is no tree that is known to be good: that these checks can pass at all is not shown"
