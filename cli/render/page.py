"""A matrix's report as one page for a browser: nothing is fetched, nothing runs, and what a stranger wrote is text.

Figures are laid out in percent of their width and not drawn, so that their words keep their size on a telephone; only the marks are SVG.
Every mark has a shape of its own beside its colour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from secondtake.cassettes.outcomes import labelled
from secondtake.cassettes.takes import Outcome
from secondtake.cli.render import report as words
from secondtake.cli.render.escape import visible
from secondtake.cli.render.words import count, duration
from secondtake.harness.comparison import Finding, points
from secondtake.harness.report import QUARTILES, Report, Row

if TYPE_CHECKING:
    from secondtake.harness.matrix.cells import Named

TEMPLATES = Path(__file__).parent / "templates"

MARKS: Mapping[str, str] = {
    Outcome.PASS: "pass",
    Outcome.SAME: "same",
    Outcome.OTHER: "other",
    Outcome.CONTAMINATED: "contaminated",
    Outcome.INFRASTRUCTURE: "infrastructure",
    "invalid": "invalid",
}
"""Each column's shape and colour, by the name that the style sheet knows it by."""

STACK_PERCENT = 3.4
"""Takes nearer to each other than this share of the width are stacked."""


@dataclass(frozen=True, slots=True)
class Dot:
    """One take in a figure."""

    mark: str
    title: str
    anchor: str
    at: float
    """Percent from the left."""
    level: int
    """How many others stand below it."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One arm's part of a bar. `share`: percent of the longest bar."""

    arm: str
    tone: int
    count: int
    share: float


@dataclass(frozen=True, slots=True)
class Bar:
    """One failure signature over all arms."""

    id: str
    text: str
    count: int
    recorded: bool
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Listed:
    """One take in the list."""

    anchor: str
    name: str
    arm: str
    repeat: str
    mark: str
    column: str
    calls: str
    tokens: str
    time: str
    cost: str
    control: str
    reason: str
    signature: str


def page(report: Report) -> str:
    """Return the whole page as HTML."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,  # Markup, which is ours, stays
        trim_blocks=True,
        lstrip_blocks=True,
    )
    anchors = {one.name: f"take-{number}" for number, one in enumerate((one for row in report.rows for one in row.takes), 1)}
    top = _ceiling(max((one.take.resources.model_calls for row in report.rows for one in row.takes), default=1))
    seen = {MARKS[one.take.column] for row in report.rows for one in row.takes}
    return environment.get_template("report.html").render(
        report=report,
        words=words,
        label=words.label(report),
        spent=words.spent(report),
        takes=count(report.takes, "take"),
        agents=" and ".join(dict.fromkeys(agent for row in report.rows for agent, _ in row.agents)),
        arms=count(len(report.rows), "arm"),
        repeats=max((row.planned for row in report.rows), default=0),
        legend=[(mark, name) for name, mark in MARKS.items() if mark in seen],
        tones={row.arm: number % 6 for number, row in enumerate(report.rows)},
        findings={Finding.BETTER: "better", Finding.WORSE: "worse", Finding.OPEN: "open"},
        base=next((row.rate.value * 100 for row in report.rows if row.baseline and row.rate.value is not None), None),
        ticks=[(step * 100 / 4, f"{top * step / 4:,.0f}") for step in range(5)],
        dots={row.arm: _dots(row, anchors, top) for row in report.rows},
        medians={row.arm: row.used.model_calls.median * 100 / top for row in report.rows if row.used.model_calls is not None},
        bars=_bars(report),
        listed=[_listed(row, one, anchors) for row in report.rows for one in row.takes],
        anchors=anchors,
        marks=MARKS,
        labelled=labelled,
        points=points,
        quartiles=QUARTILES,
    )


def _ceiling(value: int) -> int:
    """The end of an axis: the next number above `value` that four parts divide evenly."""
    step = 1
    while True:
        for factor in (4, 8, 12, 20, 40):
            if factor * step >= value * 1.04:
                return factor * step
        step *= 10


def _dots(row: Row, anchors: Mapping[str, str], top: int) -> tuple[Dot, ...]:
    """The takes of an arm by their model calls. Near ones are stacked, so that none hides another."""
    placed: list[Dot] = []
    for one in sorted(row.takes, key=lambda one: (one.take.resources.model_calls, one.take.repeat, one.take.attempts)):
        at = one.take.resources.model_calls * 100 / top
        near = [dot.level for dot in placed if abs(dot.at - at) < STACK_PERCENT]
        level = next(level for level in range(len(near) + 1) if level not in near)
        placed.append(Dot(MARKS[one.take.column], _title(row, one), anchors[one.name], at, level))
    return tuple(placed)


def _title(row: Row, one: Named) -> str:
    return f"{row.arm}, {_repeat(one)}: {one.take.column}, {count(one.take.resources.model_calls, 'model call')}"


def _repeat(one: Named) -> str:
    again = f", attempt {one.take.attempts}" if one.take.attempts > 1 else ""
    return f"repeat {one.take.repeat}{again}"


def _bars(report: Report) -> tuple[Bar, ...]:
    """Signatures over all arms, the most frequent first."""
    found: dict[str, list[tuple[Row, int, bool, str]]] = {}
    for row in report.rows:
        for failure in row.failures:
            found.setdefault(failure.id, []).append((row, failure.count, failure.recorded, failure.text))
    numbers = {row.arm: number % 6 for number, row in enumerate(report.rows)}
    longest = max((sum(number for _, number, _, _ in ones) for ones in found.values()), default=1)
    bars = [
        Bar(
            identity,
            ones[0][3],
            sum(number for _, number, _, _ in ones),
            any(recorded for _, _, recorded, _ in ones),
            tuple(Segment(row.arm, numbers[row.arm], number, number * 100 / longest) for row, number, _, _ in ones),
        )
        for identity, ones in found.items()
    ]
    return tuple(sorted(bars, key=lambda bar: (-bar.count, not bar.recorded, bar.text)))


def _listed(row: Row, one: Named, anchors: Mapping[str, str]) -> Listed:
    take, used = one.take, one.take.resources
    return Listed(
        anchors[one.name],
        one.name,
        row.arm,
        _repeat(one).removeprefix("repeat "),
        MARKS[take.column],
        take.column,
        words.figure(used.model_calls),
        words.NONE if used.tokens is None else words.figure(used.tokens),
        duration(round(used.seconds * 1_000_000)),
        words.NONE if used.cost is None else words.figure(used.cost, "cost"),
        labelled(take.control, take.live),
        take.invalid or take.reason,
        take.signature.text if take.signature is not None else "",
    )
