"""What is said after a retake: which model calls left, as what, and who answered."""

from __future__ import annotations

from collections.abc import Iterator

from secondtake.cassettes.exchange import Answered
from secondtake.cli.render.escape import visible_line
from secondtake.cli.render.summary import LISTED, miss_fields, miss_lines, problem_fields, problem_lines, seal_lines, unplayed_fields
from secondtake.cli.render.words import count, duration
from secondtake.harness.results import LiveCall, Retaken, Used, Verdict


def started_line(name: str, parent: str, labels: tuple[str, ...]) -> str:
    """Return what is said before the agent starts."""
    return visible_line(f"retake of {parent}, kept as {name}{_labelled(labels)}")


def announced_lines(calls: tuple[str, ...]) -> Iterator[str]:
    """Yield what the recorded tool calls did, before another model may ask an agent in place for others."""
    asked = count(len(calls), "tool call")
    yield f"the recorded model asked for {asked}; another one may ask for others, and this agent will run them here:"
    for call in calls[:LISTED]:
        yield visible_line(f"  {call}")
    if len(calls) > LISTED:
        yield f"  … and {len(calls) - LISTED} more"


def retaken_lines(result: Retaken, *, again: str) -> Iterator[str]:
    """Yield what a person wants to know of a retake that ended. `again` are the options that lead to its store."""
    yield ""
    took = duration(result.elapsed_us)
    yield visible_line(f"retook {result.parent} as {result.name}: {count(result.requests, 'request')} in {took}{_labelled(result.labels)}")
    for kind in Answered:
        if number := result.answered.get(kind, 0):
            yield f"  {kind:<10} {number:>7,}"
    yield from seal_lines(result.seal)
    if result.ran_in:
        yield visible_line(f"  ran in a scratch copy: {result.ran_in}")
    if result.calls:
        yield ""
        yield f"model calls that left: {len(result.calls)}"
        for call in result.calls[:LISTED]:
            yield visible_line(f"  {call_line(call)}")
        if len(result.calls) > LISTED:
            yield f"  … and {len(result.calls) - LISTED} more"
        yield f"  {used_line(result.used)}"
    yield from miss_lines(result.misses)
    if result.unplayed:
        yield ""
        yield f"not asked for this time: {count(len(result.unplayed), 'recorded exchange')} beside model calls"
    yield from problem_lines(result.problems)
    if result.root and result.verdict is Verdict.CLEAN:
        yield ""
        yield visible_line(f"next: secondtake events {result.name}{again}")


def call_line(call: LiveCall) -> str:
    """Return one model call on one line."""
    asked = ", ".join(dict.fromkeys(call.requested)) or "?"
    status = "no answer" if call.status is None else str(call.status)
    line = f"{call.step}  {asked} → {call.forwarded} → {', '.join(call.served) or 'not named'}  {status}, {call.proof}"
    marks = [
        word
        for word, on in (("MISMATCH", call.mismatch), ("infrastructure", call.infrastructure is not None), ("cut", call.incomplete))
        if on
    ]
    return f"{line}, {', '.join(marks)}" if marks else line


def used_line(used: Used) -> str:
    """Return what live calls took; what is unknown is said to be."""
    uncounted = f" and those of {count(used.uncounted, 'answer')} that did not say" if used.uncounted else ""
    if not used.priced:
        cost = ""
    elif used.cost is not None:
        cost = f", cost {used.cost:.4f}"
    else:
        cost = f", cost unknown ({', '.join(used.unpriced)})"
    return visible_line(f"{used.tokens:,} tokens{uncounted}{cost}")


def used_fields(used: Used) -> dict[str, object]:
    """Return what live calls took as an object."""
    return {"tokens": used.tokens, "uncounted": used.uncounted, "cost": used.cost, "unpriced": list(used.unpriced)}


def _labelled(labels: tuple[str, ...]) -> str:
    return f" ({', '.join(labels)})" if labels else ""


def retaken_fields(result: Retaken) -> dict[str, object]:
    """Return the object that `retake --json` prints."""
    return {
        "name": result.name,
        "parent": result.parent,
        "root": result.root,
        "verdict": str(result.verdict),
        "valid": not result.mismatches,
        "agent_status": result.agent_status,
        "requests": result.requests,
        "answered": {str(kind): result.answered.get(kind, 0) for kind in Answered},
        "model_calls": [call_fields(call) for call in result.calls],
        "mismatches": len(result.mismatches),
        "infrastructure": len(result.infrastructure),
        "unswapped": list(result.unswapped),
        "stopped": result.stopped,
        "used": used_fields(result.used),
        "labels": list(result.labels),
        "misses": miss_fields(result.misses),
        "unplayed": unplayed_fields(result.unplayed),
        "seal": result.seal,
        "ran_in": str(result.ran_in) if result.ran_in else None,
        "elapsed_us": result.elapsed_us,
        "problems": [problem_fields(problem) for problem in result.problems],
    }


def call_fields(call: LiveCall) -> dict[str, object]:
    """Return one model call as an object."""
    return {
        "seq": call.seq,
        "step": call.step,
        "adapter": call.adapter,
        "requested": list(call.requested),
        "forwarded": call.forwarded,
        "served": list(call.served),
        "proof": call.proof,
        "verified": call.verified,
        "status": call.status,
        "mismatch": call.mismatch,
        "infrastructure": call.infrastructure,
        "incomplete": call.incomplete,
        "retired": call.retired,
        "incompatible": call.incompatible,
    }
