"""A take, for people and for programs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from secondtake.cassettes.outcomes import labelled, study
from secondtake.cassettes.takes import Control, encode
from secondtake.cli.render.escape import visible_line
from secondtake.cli.render.retake import used_line
from secondtake.cli.render.summary import miss_fields, miss_lines, problem_fields, problem_lines, seal_lines
from secondtake.cli.render.words import count, duration

if TYPE_CHECKING:
    from secondtake.cassettes.takes import Checked
    from secondtake.harness.taking import Taken

_MARKS = {True: "holds", False: "does not hold", None: "not judged"}


def taken_lines(taken: Taken, *, again: str | None) -> Iterator[str]:
    """Yield what a person wants to know of a take that ended.

    `again` are the options that lead to its store, for the line about what to do next; None leaves that out.
    """
    take, retaken = taken.take, taken.retaken
    yield ""
    took = duration(retaken.elapsed_us)
    yield visible_line(f"{take.column}: {take.model} in {take.fixture}, take {taken.name}, {took}")
    yield visible_line(f"  {take.invalid or take.reason}")
    for check in take.checks:
        yield visible_line(f"  {check_line(check)}")
    if take.signature is not None:
        yield visible_line(f"  signature {take.signature.id}  {take.signature.text}")
    yield visible_line(f"  {labelled(take.control, take.live)}")
    yield from seal_lines(take.tier)
    used = take.resources
    yield visible_line(f"  {count(used.model_calls, 'model call')}, {count(used.tool_calls, 'tool call')}, {used_line(retaken.used)}")
    yield visible_line(f"  {_commands(taken)}")
    if taken.kept is not None:
        yield visible_line(f"  the scratch folder is kept: {taken.kept}")
    yield from miss_lines(retaken.misses)
    yield from problem_lines(retaken.problems)
    if take.control is not Control.CONTROLLED:
        yield ""
        yield visible_line(study([take]))
    if again is not None:
        yield ""
        yield visible_line(f"next: secondtake diff {shlex.quote(taken.recording)} {taken.name}{again}")


def check_line(check: Checked) -> str:
    """Return one check on one line."""
    evidence = f": {check.evidence}" if check.evidence and check.held is not True else ""
    return f"{_MARKS[check.held]:<13} {check.section} {check.name}{evidence}"


def _commands(taken: Taken) -> str:
    if taken.why_untraced:
        return f"commands: from {taken.take.commands_from} only ({taken.why_untraced})"
    return f"commands: {taken.commands} seen by the kernel"


def taken_fields(taken: Taken) -> dict[str, object]:
    """Return the object that `run --json` prints."""
    retaken = taken.retaken
    return {
        "name": taken.name,
        "recording": taken.recording,
        "root": retaken.root,
        **encode(taken.take),
        "column": taken.take.column,
        "counts": taken.take.counts,
        "label": labelled(taken.take.control, taken.take.live),
        "study": study([taken.take]) if taken.take.control is not Control.CONTROLLED else None,
        "escapes": [str(attempt) for attempt in taken.attempts],
        "commands": taken.commands,
        "untraced": taken.why_untraced or None,
        "misses": miss_fields(retaken.misses),
        "kept": str(taken.kept) if taken.kept is not None else None,
        "problems": [problem_fields(problem) for problem in retaken.problems],
    }
