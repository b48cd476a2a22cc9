"""What several models chose in one recorded decision."""

from __future__ import annotations

from collections.abc import Iterator

from secondtake.cli.render.escape import visible_line
from secondtake.cli.render.retake import used_fields, used_line
from secondtake.cli.render.summary import problem_fields, problem_lines
from secondtake.cli.render.words import count
from secondtake.harness.results import Arm, Choice, Probed

HEADINGS = ("model", "class", ">times", ">of", "chose")

SHOWN_CHARACTERS = 100


def rows(result: Probed) -> Iterator[list[str]]:
    """Yield the rows of the table: for each model its choices, the most frequent first."""
    for arm in result.arms:
        for choice in arm.choices:
            mark = " (as recorded)" if choice.as_recorded else ""
            yield [arm.model, arm.pin_class, str(len(choice.exchanges)), str(arm.answered), f"{chosen(choice.calls)}{mark}"]
        for number, what in (
            (arm.refused, "refused by the provider"),
            (arm.infrastructure, "infrastructure"),
            (arm.mismatches, "MISMATCH"),
        ):
            if number:
                yield [arm.model, arm.pin_class, str(number), "-", f"({what})"]
        if not arm.sent:
            yield [arm.model, arm.pin_class, "0", "-", "(not asked)"]


def chosen(calls: tuple[tuple[str, str], ...] | None) -> str:
    """Return a decision on one line."""
    if calls is None:
        return "no answer"
    line = "; ".join(f"{tool} {arguments}" for tool, arguments in calls) or "no tool"
    return line if len(line) <= SHOWN_CHARACTERS else line[: SHOWN_CHARACTERS - 1] + "…"


def head_lines(result: Probed) -> Iterator[str]:
    """Yield what was asked, and what was chosen then."""
    yield visible_line(f"exchange {result.seq} of {result.parent} (model call {result.step}), recorded with {result.requested or '?'}")
    yield visible_line(f"  then       {chosen(result.recorded)}")
    yield ""


def tail_lines(result: Probed, *, again: str) -> Iterator[str]:
    """Yield where it is kept and what went not as asked."""
    sent = sum(arm.sent for arm in result.arms)
    labels = f" ({', '.join(result.labels)})" if result.labels else ""
    yield ""
    yield used_line(result.used)
    yield visible_line(f"{count(sent, 'call')}, kept as {result.name}{labels}: secondtake show {result.name}{again}")
    yield from problem_lines(result.problems)


def fields(result: Probed) -> dict[str, object]:
    """Return the object that `probe --json` prints."""
    return {
        "name": result.name,
        "parent": result.parent,
        "root": result.root,
        "verdict": str(result.verdict),
        "seq": result.seq,
        "step": result.step,
        "requested": result.requested,
        "recorded": None if result.recorded is None else _calls(result.recorded),
        "arms": [_arm(arm) for arm in result.arms],
        "stopped": result.stopped,
        "used": used_fields(result.used),
        "labels": list(result.labels),
        "problems": [problem_fields(problem) for problem in result.problems],
    }


def _arm(arm: Arm) -> dict[str, object]:
    return {
        "model": arm.model,
        "class": arm.pin_class,
        "sent": arm.sent,
        "answered": arm.answered,
        "refused": arm.refused,
        "infrastructure": arm.infrastructure,
        "mismatches": arm.mismatches,
        "choices": [_choice(choice) for choice in arm.choices],
    }


def _choice(choice: Choice) -> dict[str, object]:
    return {
        "calls": _calls(choice.calls),
        "count": len(choice.exchanges),
        "as_recorded": choice.as_recorded,
        "exchanges": list(choice.exchanges),
    }


def _calls(calls: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
    return [{"tool": tool, "arguments": arguments} for tool, arguments in calls]
