"""What is said after a run: on standard error for a person, as one object for a program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from secondtake.cassettes.divergence import Divergence
from secondtake.cassettes.exchange import Answered
from secondtake.cassettes.stages import Staged
from secondtake.cli.render.escape import visible_line
from secondtake.cli.render.words import count, duration, size
from secondtake.harness.results import Missed, Problem, Recorded, Replayed, Unplayed, Verdict

SHOWN_PLACES = 3
"""How many places of a divergence are shown side by side."""

LISTED = 10
"""How many misses or unplayed exchanges are listed before `… and N more`."""


def recorded_lines(result: Recorded, *, again: str | None) -> Iterator[str]:
    """Yield what a person wants to know of a recording that ended.

    `again` are the options that lead to its store, for the line about what to do next; None leaves that out.
    """
    yield ""
    yield visible_line(f"recorded {result.name}: {count(result.total, 'exchange')} in {duration(result.elapsed_us)}")
    for channel, number in sorted(result.exchanges.items(), key=lambda item: (-item[1], item[0])):
        yield f"  {channel:<10} {number:>7,}"
    if result.total:
        yield f"  sent {size(result.sent_bytes)}, received {size(result.received_bytes)}"
    if result.root:
        yield f"  root {result.root}"
    yield from stage_lines(result.staged)
    yield from seal_lines(result.seal)
    yield from problem_lines(result.problems)
    if again is not None and result.verdict is Verdict.CLEAN:
        yield ""
        yield visible_line(f"next: secondtake show {result.name}{again}")


def seal_lines(tier: str) -> Iterator[str]:
    """Yield the seal's tier, where there was one."""
    if tier and tier != "cooperative":
        yield f"  {tier}: {TIERS.get(tier, 'see docs/seal.md')}"


TIERS = {
    "sealed": "nothing but the proxy could be reached",
    "sealed-root": "nothing but the proxy could be reached",
    "fenced": "TCP could reach the proxy's port only",
    "observed": "a bypass would have been seen",
}


def stage_lines(staged: Staged | None) -> Iterator[str]:
    """Yield what the capture of the workspace holds, what it took, and what is not in it."""
    if staged is None:
        return
    if staged.workspace is not None:
        changed = f", changed after {count(len(staged.turns), 'turn')}" if staged.turns else ""
        yield f"  stage {count(staged.files, 'file')}, {size(staged.size_bytes)} in {duration(round(staged.seconds * 1_000_000))}{changed}"
    for line in staged.not_captured[:LISTED]:
        yield visible_line(f"  not captured: {line}")
    if len(staged.not_captured) > LISTED:
        yield f"  … and {count(len(staged.not_captured) - LISTED, 'more line')} of what was not captured"


def stage_fields(staged: Staged | None) -> Mapping[str, object] | None:
    """Return the captured workspace as an object; None where nothing was captured."""
    return None if staged is None else staged.packed() or None


def recorded_fields(result: Recorded) -> dict[str, object]:
    """Return the object that `record --json` prints."""
    return {
        "name": result.name,
        "root": result.root,
        "verdict": str(result.verdict),
        "agent_status": result.agent_status,
        "exchanges": {str(channel): number for channel, number in sorted(result.exchanges.items())},
        "sent_bytes": result.sent_bytes,
        "received_bytes": result.received_bytes,
        "elapsed_us": result.elapsed_us,
        "seal": result.seal,
        "stage": stage_fields(result.staged),
        "problems": [problem_fields(problem) for problem in result.problems],
    }


def replayed_lines(result: Replayed) -> Iterator[str]:
    """Yield what a person wants to know of a replay that ended."""
    yield ""
    yield visible_line(f"replayed {result.name}: {count(result.requests, 'request')} in {duration(result.elapsed_us)}")
    for kind in Answered:
        if number := result.answered.get(kind, 0):
            yield f"  {kind:<10} {number:>7,}"
    yield from seal_lines(result.seal)
    if result.ran_in:
        yield visible_line(f"  ran in a scratch copy: {result.ran_in}")
    yield from divergence_lines(result.divergence)
    yield from miss_lines(result.misses)
    if result.unplayed:
        yield ""
        yield f"not asked for this time: {count(len(result.unplayed), 'recorded exchange')}"
        for row in result.unplayed[:LISTED]:
            yield visible_line(f"  {row.seq} {row.method} {row.url}")
        yield from _more(len(result.unplayed), "exchange", "exchanges")
    yield from problem_lines(result.problems)


def replayed_fields(result: Replayed) -> dict[str, object]:
    """Return the object that `replay --json` prints."""
    return {
        "name": result.name,
        "verdict": str(result.verdict),
        "agent_status": result.agent_status,
        "requests": result.requests,
        "answered": {str(kind): result.answered.get(kind, 0) for kind in Answered},
        "divergence": divergence_fields(result.divergence),
        "misses": miss_fields(result.misses),
        "unplayed": unplayed_fields(result.unplayed),
        "seal": result.seal,
        "ran_in": str(result.ran_in) if result.ran_in else None,
        "elapsed_us": result.elapsed_us,
        "problems": [problem_fields(problem) for problem in result.problems],
    }


def divergence_lines(left: Divergence | None) -> Iterator[str]:
    """Yield where a replay first left the recording, both values of the first place, and what became of the rest."""
    if left is None:
        return
    which = f"model call {left.call} (request {left.request})" if left.call is not None else f"request {left.request} ({left.channel})"
    against = f"; closest: exchange {left.seq}" if left.seq else ""
    yield ""
    yield visible_line(f"left the recording at {which}: {left.method} {left.url}{against}")
    for item in left.differences[:SHOWN_PLACES]:
        yield visible_line(f"  {item.where} {item.path}".rstrip())
        yield visible_line(f"    recorded  {_side(item.recorded)}")
        yield visible_line(f"    now       {_side(item.live)}")
    rest = len(left.differences) + left.more - SHOWN_PLACES
    if rest > 0:
        yield f"  … and {count(rest, 'more place')}"
    told = ", ".join(f"{number:,} {kind}" for kind in Answered if (number := left.followed.get(kind, 0)))
    how = "answered by its position" if left.answered is Answered.POSITIONAL else f"a miss ({left.kind})"
    yield f"  {how}; asked afterwards: {told or 'nothing'}"


def _side(value: str | None) -> str:
    return "(absent)" if value is None else value


def divergence_fields(left: Divergence | None) -> Mapping[str, object] | None:
    """Return where a replay left the recording as an object."""
    if left is None:
        return None
    return {
        "request": left.request,
        "call": left.call,
        "answered": str(left.answered),
        "kind": left.kind,
        "method": left.method,
        "url": left.url,
        "channel": str(left.channel),
        "seq": left.seq,
        "differences": [
            {"where": item.where, "place": item.path, "recorded": item.recorded, "live": item.live} for item in left.differences
        ],
        "more": left.more,
        "rule": left.rule,
        "followed": {str(kind): left.followed.get(kind, 0) for kind in Answered},
    }


def miss_lines(misses: Sequence[Missed]) -> Iterator[str]:
    """Yield each miss with the closest recorded exchange."""
    for miss in misses[:LISTED]:
        yield ""
        yield visible_line(f"miss ({miss.kind}): {miss.method} {miss.url}")
        if miss.nearest_seq is not None:
            differs = f"; differs in {', '.join(miss.differs)}" if miss.differs else ""
            yield visible_line(f"  closest: exchange {miss.nearest_seq}{differs}")
    yield from _more(len(misses), "miss", "misses")


def miss_fields(misses: Sequence[Missed]) -> list[Mapping[str, object]]:
    """Return misses as objects."""
    return [
        {
            "kind": miss.kind,
            "method": miss.method,
            "url": miss.url,
            "channel": str(miss.channel),
            "nearest_seq": miss.nearest_seq,
            "differs": list(miss.differs),
            "message": miss.message,
            "at_us": miss.at_us,
        }
        for miss in misses
    ]


def unplayed_fields(rows: Sequence[Unplayed]) -> list[Mapping[str, object]]:
    """Return recorded exchanges that nobody asked for as objects."""
    return [{"seq": row.seq, "method": row.method, "url": row.url, "channel": str(row.channel)} for row in rows]


def problem_fields(problem: Problem) -> Mapping[str, object]:
    """Return a problem as an object."""
    return {"kind": problem.kind, "message": problem.message, "hint": problem.hint, "verdict": str(problem.verdict)}


def problem_lines(problems: tuple[Problem, ...]) -> Iterator[str]:
    """Yield each problem, with its hint; notes first say that they are notes."""
    for problem in problems:
        yield ""
        yield visible_line(f"{'note' if problem.verdict is Verdict.CLEAN else 'not clean'}: {problem.message}")
        if problem.hint:
            yield visible_line(f"  hint: {problem.hint}")


def _more(total: int, one: str, many: str) -> Iterator[str]:
    if total > LISTED:
        yield f"  … and {count(total - LISTED, f'more {one}', f'more {many}')}"


def announced_lines(calls: tuple[str, ...]) -> Iterator[str]:
    """Yield what the recorded tool calls will do, before an agent runs in place."""
    yield f"the recorded model asks for {count(len(calls), 'tool call')}, which this agent will run here:"
    for call in calls:
        yield f"  {visible_line(call)}"
