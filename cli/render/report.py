"""A matrix's report for a terminal, as Markdown and as JSON. The page for a browser is in `page.py`; all four say the same."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from enum import Enum

from secondtake.cassettes.canonical import Json
from secondtake.cassettes.outcomes import labelled
from secondtake.cli.render.escape import visible_line
from secondtake.cli.render.words import count, duration
from secondtake.harness.matrix.cells import Named
from secondtake.harness.report import Counts, Failure, Rate, Report, Row
from secondtake.harness.statistics import Spread

HEADINGS = ("model", ">repeats", ">pass rate", ">median calls", "failure signature")
"""DESIGN 6."""

COLUMNS = (
    "model", ">passed", ">same failure", ">other failure", ">contaminated", ">infrastructure", ">invalid", ">rate with those as failures",
)  # fmt: skip

USED = ("model", ">tool calls", ">tokens", ">time", ">cost", ">pass^k")

SIGNATURE_CHARACTERS = 64
NONE = "–"


def marked(row: Row) -> str:
    """An arm's name with what must be known of it."""
    marks = [word for word, on in (("baseline", row.baseline), ("control", row.control), ("unpinned", row.unpinned)) if on]
    return f"{row.arm} ({', '.join(marks)})" if marks else row.arm


def repeats(row: Row) -> str:
    """How many of the planned repeats are settled."""
    return str(row.repeats) if row.repeats == row.planned else f"{row.repeats} of {row.planned}"


def rate(one: Rate) -> str:
    """`3/5  60 % [23–88]`."""
    if one.value is None:
        return "0/0"
    return f"{one.passed}/{one.runs}  {percent(one.value)} [{one.interval.low * 100:.0f}–{one.interval.high * 100:.0f}]"


def percent(share: float) -> str:
    """`60 %`; a share that is not all or nothing is never shown as such."""
    shown = round(share * 100)
    if shown == 100 and share < 1:
        return "> 99 %"
    if shown == 0 and share > 0:
        return "< 1 %"
    return f"{shown} %"


def middle(one: Spread | None, unit: str = "") -> str:
    """`12 (10–14)`: the median and, where they differ from it, the quartiles."""
    if one is None:
        return NONE
    median, low, high = (figure(value, unit) for value in (one.median, one.low, one.high))
    return median if low == high == median else f"{median} ({low}–{high})"


def figure(value: float, unit: str = "") -> str:
    """A number as people read it. Units: `s` for seconds, `cost`, else a count."""
    if unit == "s":
        return duration(round(value * 1_000_000))
    if unit == "cost":
        return f"{value:.4f}" if value < 0.1 else f"{value:.2f}"
    if value >= 10_000:
        return f"{value / 1000:,.0f}k"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def infrastructure(row: Row) -> str:
    """`3 (2 run again)`."""
    again = row.infrastructure - row.given_up
    return f"{row.infrastructure} ({again} run again)" if again else str(row.infrastructure)


def top(row: Row) -> str:
    """The most frequent signature, and how many others there are."""
    if not row.failures:
        return NONE
    more = f" +{len(row.failures) - 1}" if len(row.failures) > 1 else ""
    return f"{row.failures[0].count}× {short(row.failures[0].text)}{more}"


def times(failure: Failure) -> str:
    """`3×`, with a mark where it is the incident's own."""
    return f"{failure.count}×{' (as recorded)' if failure.recorded else ''}"


def short(text: str) -> str:
    """A signature that fits a table."""
    line = visible_line(text)
    return line if len(line) <= SIGNATURE_CHARACTERS else line[: SIGNATURE_CHARACTERS - 1] + "…"


def power(row: Row) -> str:
    """pass^k of the largest k, which is what several runs in a row come to."""
    if not row.pass_powers:
        return NONE
    return f"pass^{len(row.pass_powers)} {percent(row.pass_powers[-1])}"


def rows(report: Report) -> Iterator[list[str]]:
    """The table of the design."""
    for row in report.rows:
        yield [marked(row), repeats(row), rate(row.rate), middle(row.used.model_calls), top(row)]


def column_rows(report: Report) -> Iterator[list[str]]:
    """Where each take went."""
    for row in report.rows:
        numbers = [row.rate.passed, row.same, row.other, row.contaminated]
        yield [row.arm, *map(str, numbers), infrastructure(row), str(row.invalid), rate(row.strict)]


def used_rows(report: Report) -> Iterator[list[str]]:
    """What takes used."""
    for row in report.rows:
        used = row.used
        yield [
            row.arm, middle(used.tool_calls), middle(used.tokens), middle(used.seconds, "s"), middle(used.cost, "cost"), power(row),
        ]  # fmt: skip


def head_lines(report: Report) -> Iterator[str]:
    """What was run, and the headline."""
    yield visible_line(f"{report.headline}  ·  {label(report)}")
    if report.study:
        yield visible_line(report.study)
    yield ""


def label(report: Report) -> str:
    """The control label with what was not held."""
    if report.label is None:
        return "no take counts" if report.complete else "no take counts yet"
    return labelled(report.label, [phrase for phrase, _ in report.live])


def unlabelled(row: Row) -> str:
    """What stands in the place of a label."""
    return "no take counts yet" if row.repeats < row.planned else "no take counts"


def tail_lines(report: Report, *, again: str) -> Iterator[str]:
    """How sure we are, every signature, what each arm held, notes, and where it came from."""
    yield from sure_lines(report)
    failures = [(row, failure) for row in report.rows for failure in row.failures]
    if failures:
        yield ""
        yield "failure signatures"
        for row, failure in failures:
            yield visible_line(f"  {failure.count:>3}×  {row.arm}  {failure.text}{'  (as recorded)' if failure.recorded else ''}")
    yield ""
    yield "held"
    for row in report.rows:
        said = labelled(row.label, [f"{phrase} (in {number})" for phrase, number in row.live]) if row.label else unlabelled(row)
        yield visible_line(f"  {row.arm}  {said}; seal {counted(row.tiers) or NONE}; clock {counted(row.clocks) or NONE}")
    if report.notes:
        yield ""
        yield from (visible_line(f"note: {note}") for note in report.notes)
    yield ""
    yield visible_line(f"{count(report.takes, 'take')}, {count(report.warm_ups, 'warm-up')}; {spent(report)}")
    yield visible_line(f"design {report.sealed or 'not sealed'}")
    yield visible_line(f"again: secondtake report {report.matrix}{again}")


def sure_lines(report: Report) -> Iterator[str]:
    """How sure it is that arms differ; nothing where there is one only."""
    sentences = [row.comparison.sentence for row in report.rows if row.comparison is not None]
    if sentences:
        yield ""
        yield "how sure"
        yield from (visible_line(f"  {sentence}") for sentence in [*sentences, *filter(None, [report.outlook])])


def spent(report: Report) -> str:
    """What the whole matrix used."""
    cost = "cost unknown" if report.cost is None else f"cost {figure(report.cost, 'cost')}"
    return f"{count(report.model_calls, 'model call')}, {duration(round(report.seconds * 1_000_000))} of runs, {cost}"


def counted(phrases: Counts) -> str:
    """`sealed`, or `sealed 4, observed 1` where there are several."""
    if len(phrases) == 1:
        return phrases[0][0]
    return ", ".join(f"{phrase} {number}" for phrase, number in phrases)


# --- Markdown


_SPECIAL = re.compile(r"([\\`*_{}\[\]#|~>])")


def markdown_text(text: str) -> str:
    """Text of a stranger within Markdown: no mark-up, no HTML, no mention, no link, no new line, no new cell."""
    line = visible_line(text).replace("&", "&amp;").replace("<", "&lt;").replace("@", "&#64;").replace("://", "&#58;//")
    return _SPECIAL.sub(r"\\\1", line)


def markdown(report: Report) -> str:
    """The report as Markdown: tables as GitHub and GitLab read them."""
    return "\n".join(_markdown_lines(report)) + "\n"


def _markdown_lines(report: Report) -> Iterator[str]:
    text = markdown_text
    yield f"## {text(report.fixture)}: {text(report.headline)}"
    yield ""
    yield f"**{text(label(report))}**"
    if report.study:
        yield ""
        yield text(report.study)
    yield ""
    yield from _table(HEADINGS, rows(report))
    sentences = [row.comparison.sentence for row in report.rows if row.comparison is not None]
    if sentences:
        yield ""
        yield from (f"- {text(sentence)}" for sentence in sentences)
    yield ""
    yield "<details><summary>Every column, what was used, every signature</summary>"
    yield ""
    yield from _table(COLUMNS, column_rows(report))
    yield ""
    yield from _table(USED, used_rows(report))
    yield ""
    failures = [[row.arm, times(failure), failure.id, failure.text] for row in report.rows for failure in row.failures]
    if failures:
        yield from _table(("model", ">takes", "signature", "what"), failures)
        yield ""
    yield from (f"- {text(note)}" for note in report.notes)
    yield ""
    yield "</details>"
    yield ""
    yield f"{text(spent(report))}. Matrix {text(report.matrix)}, design {text(report.sealed or 'not sealed')}."


def _table(headings: Sequence[str], cells: Iterator[list[str]] | list[list[str]]) -> Iterator[str]:
    yield "| " + " | ".join(markdown_text(heading.removeprefix(">")) for heading in headings) + " |"
    yield "|" + "|".join("---:" if heading.startswith(">") else "---" for heading in headings) + "|"
    for row in cells:
        yield "| " + " | ".join(map(markdown_text, row)) + " |"


# --- JSON


def fields(report: Report) -> dict[str, object]:
    """The object that `matrix --json` and `report --json` print. `report_version` is that of the report's own values."""
    made = plain(report)
    assert isinstance(made, dict)
    return {"report_version": made.pop("version"), **made}


def plain(value: object) -> Json:
    """A report's values as JSON knows them: records become objects by their fields, a take becomes what a reader of a table asks of it."""
    match value:
        case Named():
            return _take(value)
        case Enum():
            return str(value)
        case None | bool() | int() | float() | str():
            return value
        case tuple() | list():
            return [plain(one) for one in value]
        case _ if dataclasses.is_dataclass(value):
            return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        case _:
            raise TypeError(f"not a value of a report: {type(value).__name__}")


def _take(named: Named) -> dict[str, Json]:
    take = named.take
    return {
        "name": named.name,
        "repeat": take.repeat,
        "attempts": take.attempts,
        "column": take.column,
        "outcome": str(take.outcome),
        "reason": take.reason,
        "invalid": take.invalid,
        "signature": take.signature.id if take.signature is not None else None,
        "control": str(take.control),
        "live": list(take.live),
        "tier": take.tier,
        "model_calls": take.resources.model_calls,
        "tool_calls": take.resources.tool_calls,
        "tokens": take.resources.tokens,
        "cost": take.resources.cost,
        "seconds": take.resources.seconds,
        "stopped": take.stopped,
        "agent_status": take.agent_status,
        "failed_checks": [check.name for check in take.checks if check.held is False],
    }
