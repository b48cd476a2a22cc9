"""Two runs side by side, for a terminal and as an object: each layer by itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from secondtake.cassettes.diff.arguments import Changed
from secondtake.cassettes.diff.decisions import Decision, How, Step
from secondtake.cassettes.diff.layers import Diff, Layer, Side
from secondtake.cassettes.diff.tree import Equivalence, Patch, Treed
from secondtake.cli.render.escape import visible, visible_line
from secondtake.cli.render.words import count

if TYPE_CHECKING:
    from secondtake.cassettes.diff.commands import Commanded, Ran, Together
    from secondtake.cassettes.diff.decisions import Decided, Fault
    from secondtake.cassettes.diff.outcome import Accounted
    from secondtake.cassettes.takes import Checked

AROUND = 2
"""Steps that are the same, shown on either side of one that is not."""

PATCH_LINES = 120
"""Of a patch among other layers; `--layer tree` shows all of it."""

LISTED = 20

ENDED = "(nothing more: it had ended)"

WORDS = {
    How.SAME: "the same",
    How.ARGUMENTS: "with other arguments",
    How.OTHER: "decided otherwise",
    How.ONLY_A: "only in A",
    How.ONLY_B: "only in B",
}

SIGNS = {How.SAME: " ", How.ARGUMENTS: "~", How.OTHER: "!", How.ONLY_A: "-", How.ONLY_B: "+"}


def lines(diff: Diff, layers: Collection[Layer]) -> Iterator[str]:
    """Yield what a person reads. Every recorded text passes the escaper here."""
    yield visible_line(f"A  {_side(diff.a)}")
    yield visible_line(f"B  {_side(diff.b)}")
    yield diff.summary if {Layer.DECISIONS, Layer.TREE} <= set(layers) else _layers(diff, layers)
    if Layer.DECISIONS in layers:
        yield from ("", f"decisions: {decisions_line(diff.decisions)}")
        yield from _decisions(diff.decisions)
    if Layer.COMMANDS in layers:
        yield from ("", f"commands: {commands_line(diff.commands)}")
        yield from _commands(diff.commands)
    if Layer.TREE in layers:
        yield from ("", f"tree: {tree_line(diff.tree)}")
        yield from _tree(diff.tree, None if len(layers) == 1 else PATCH_LINES)
    if Layer.OUTCOME in layers:
        yield from ("", f"outcome: {outcome_line(diff.outcome)}")
        yield from _outcome(diff.outcome)


def _side(side: Side) -> str:
    by = f", answered by {', '.join(side.models)}" if side.models else ""
    return f"{side.name} ({side.kind}, {side.state}{by})"


def _layers(diff: Diff, layers: Collection[Layer]) -> str:
    return "differs" if any(diff.differs(layer) for layer in layers) else "no difference"


# --- decisions


def decisions_line(decided: Decided) -> str:
    """The first layer in one line."""
    number = decided.counts()
    if decided.same_path:
        total = number[How.SAME]
        said = "none on either side" if not total else "the only one is the same" if total == 1 else f"all {total} the same"
    else:
        said = ", ".join(f"{number[how]} {WORDS[how]}" for how in How if number[how])
    apart = [word for word, on in (("other stop reasons", _stops(decided)), ("other faults", decided.only_a or decided.only_b)) if on]
    if decided.a.ended != decided.b.ended:
        apart.append("another end")
    return ", ".join([said, *apart])


def _stops(decided: Decided) -> bool:
    return any(step.stops is not None for step in decided.steps)


def first_line(decided: Decided) -> str | None:
    """Where both part, in words; None where they do not."""
    return None if decided.same_path else f"they part at decision {decided.common + 1}"


def before_line(decided: Decided) -> str | None:
    """Whether both saw the same until they parted; None where they do not part."""
    if decided.same_path:
        return None
    step = decided.saw_otherwise
    if step is None or step.a is None:
        return "until then the tools gave both the same back"
    return f"after decision {step.a.number} the tools had given them different results"


def _decisions(decided: Decided) -> Iterator[str]:
    if decided.bounded:
        yield "  too long to be set side by side at the least cost: part of it is by position"
    if decided.parting is not None:
        yield f"  {first_line(decided)}; {before_line(decided)}"
        for label, decision in zip("AB", decided.parting, strict=True):
            yield visible_line(f"    {label}  {decision or ENDED}")
        yield ""
    for shown in around([step.how is not How.SAME or step.stops is not None for step in decided.steps]):
        if isinstance(shown, int):
            yield from map(visible_line, _step(decided.steps[shown]))
        elif shown != (0, len(decided.steps)):
            yield f"  {'':>9}   … {shown[1] - shown[0]} the same"
    for note in decisions_notes(decided):
        yield visible_line(f"  {note}")


def decisions_notes(decided: Decided) -> Iterator[str]:
    """Yield what differs beside the decisions, and what was not compared."""
    for label, faults, course in (("A", decided.only_a, decided.a), ("B", decided.only_b, decided.b)):
        for fault, times in faults[:LISTED]:
            yield f"only {label}: {_fault(fault, times)}"
        if course.aside:
            yield f"{label} has {count(course.aside, 'answer')} to calls without tools, not compared"
    if decided.a.ended != decided.b.ended:
        yield f"the last answer: A {decided.a.ended or 'none'}, B {decided.b.ended or 'none'}"


def around(marked: Sequence[bool]) -> Iterator[int | tuple[int, int]]:
    """Yield the places that are marked and those near them; what lies between as (first, one past the last)."""
    near = [any(marked[max(0, place - AROUND) : place + AROUND + 1]) for place in range(len(marked))]
    start: int | None = None
    for place, shown in enumerate(near):
        if shown:
            if start is not None:
                yield start, place
            start = None
            yield place
        elif start is None:
            start = place
    if start is not None:
        yield start, len(near)


def _step(step: Step) -> Iterator[str]:
    numbers = f"{_number(step.a):>4} {_number(step.b):>4}"
    other = "  (other result)" if step.other_result else ""
    match step.how:
        case How.SAME:
            yield f"  {numbers}   {step.a}{other}"
        case How.ARGUMENTS:
            yield f"  {numbers} ~ {', '.join(call.tool for call in step.a.calls) if step.a else ''}"
        case How.OTHER:
            yield f"  {numbers} ! A {step.a}"
            yield f"  {'':>9}   B {step.b}"
        case How.ONLY_A | How.ONLY_B:
            yield f"  {numbers} {SIGNS[step.how]} {step.a or step.b}"
    if step.how is How.ARGUMENTS:
        for changed in step.changed:
            yield from (f"  {'':>9}     {line}" for line in changed_lines(changed))
    if step.stops is not None:
        yield f"  {'':>9}     stopped: A {step.stops[0] or '?'}, B {step.stops[1] or '?'}"


def changed_lines(changed: Changed) -> Iterator[str]:
    """Yield each field of a call that differs."""
    for item in changed.fields:
        yield f"{item.path or 'text'}: {_quoted(item.recorded)} → {_quoted(item.live)}"
    for name, text in changed.texts:
        yield f"{name}:"
        yield from (f"  {line}" for line in text)
    if changed.more:
        yield f"… and {changed.more} more"


def _quoted(text: str | None) -> str:
    return "(absent)" if text is None else f'"{" ".join(text.split())}"'


def _number(decision: Decision | None) -> str:
    return "" if decision is None else str(decision.number)


def _fault(fault: Fault, times: int) -> str:
    often = f" ({times} times)" if times > 1 else ""
    return f"{fault.kind}: {fault.text}{often}, after {count(fault.after, 'decision')}"


# --- commands


def commands_line(commanded: Commanded) -> str:
    """The second layer in one line, and who says so."""
    other = sum(not one.same for one in commanded.together)
    ends = sum(one.other_end for one in commanded.together)
    same = len(commanded.together) - other - ends
    parts = [f"{same} the same"] * bool(same) + [f"{other} not the same"] * bool(other) + [f"{ends} that ended otherwise"] * bool(ends)
    whence = "the kernel's log" if commanded.a.whence == "kernel" else "tool calls and their results"
    return f"{', '.join(parts) or 'none on either side'} (by {whence})"


def _commands(commanded: Commanded) -> Iterator[str]:
    for label, log in (("A", commanded.a), ("B", commanded.b)):
        if log.own or log.not_run:
            yield f"  {label}: {count(log.own, 'command')} of the agent's own, not compared; {log.not_run} asked for and not seen to run"
    if commanded.bounded:
        yield "  too many to be set side by side at the least cost: part of it is by position"
    for shown in around([not one.same or one.other_end for one in commanded.together]):
        if isinstance(shown, int):
            yield from map(visible_line, _together(commanded.together[shown]))
        elif shown != (0, len(commanded.together)):
            yield f"    … {shown[1] - shown[0]} the same"


def _together(one: Together) -> Iterator[str]:
    if one.same and one.a is not None and one.b is not None:
        sign = "~" if one.other_end else " "
        ended = f"{_ended(one.a)} → {_ended(one.b)}" if one.other_end else _ended(one.a)
        yield f"  {sign} [{ended}] {_cut(one.a.line)}"
        return
    if one.a is not None:
        yield f"  - [{_ended(one.a)}] {_cut(one.a.line)}"
    if one.b is not None:
        yield f"  + [{_ended(one.b)}] {_cut(one.b.line)}"


def _ended(ran: Ran) -> str:
    return ran.ended or "?"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else line[:159] + "…"


# --- tree


def tree_line(treed: Treed) -> str:
    """The third layer in one line."""
    if treed.equivalence is None:
        return "not compared: a final tree was not kept on both sides"
    start = {True: "the same start", False: "different starts", None: "a start is not known"}[treed.same_start]
    litter = treed.between.litter if treed.between is not None else 0
    aside = f"; {count(litter, 'file')} of caches left aside" if litter else ""
    return f"{treed.equivalence}, {start}{aside}"


def _tree(treed: Treed, most: int | None) -> Iterator[str]:
    if treed.a is not None and treed.b is not None and treed.a.text == treed.b.text and treed.a.changes == treed.b.changes:
        yield from _changed_files("A and B", treed.a)
    else:
        for label, patch in (("A", treed.a), ("B", treed.b)):
            if patch is not None:
                yield from _changed_files(label, patch)
    if treed.between is not None and treed.between.changes:
        yield "  from A's end to B's end:"
        yield from _patch(treed.between, most)
    elif treed.equivalence is Equivalence.TREES and treed.a is not None and treed.a.changes:
        yield "  what both made of it:"
        yield from _patch(treed.a, most)
    for path in treed.unseen[:LISTED]:
        yield visible_line(f"  content not kept, compared by size only: {path}")


def _changed_files(label: str, patch: Patch) -> Iterator[str]:
    yield f"  {label}: {count(len(patch.changes), 'change')}"
    for change in patch.changes[:LISTED]:
        yield visible_line(f"    {change}")
    if len(patch.changes) > LISTED:
        yield f"    … and {len(patch.changes) - LISTED} more"


def _patch(patch: Patch, most: int | None) -> Iterator[str]:
    text = patch.text.rstrip("\n").split("\n")
    for line in text[:most]:
        yield f"    {visible(line)}"
    if most is not None and len(text) > most:
        yield f"    … {len(text) - most} more lines: --layer tree shows them"


# --- outcome


def outcome_line(accounted: Accounted) -> str:
    """The fourth layer in one line."""
    apart = [fact.name for fact in accounted.facts if fact.judged and fact.differs]
    checks = sum(check.differs for check in accounted.checks)
    apart += [count(checks, "check")] if checks else []
    judged = "" if accounted.judged else " (not both are judged takes: only how the agents left is compared)"
    return (f"differs in {', '.join(apart)}" if apart else "the same") + judged


def _outcome(accounted: Accounted) -> Iterator[str]:
    width = max((len(fact.name) for fact in accounted.facts), default=0)
    for fact in accounted.facts:
        sign = "!" if fact.judged and fact.differs else " "
        values = f"{fact.a or '-'}  →  {fact.b or '-'}" if fact.differs else fact.a or "-"
        yield visible_line(f"  {sign} {fact.name:<{width}}  {values}")
    for check in accounted.checks:
        sign = "!" if check.differs else " "
        held = [held_word(one) for one in (check.a, check.b)]
        yield visible_line(f"  {sign} {check.section} {check.name}: {' → '.join(dict.fromkeys(held))}")
        if check.differs:
            for label, one in (("A", check.a), ("B", check.b)):
                if one is not None and one.evidence:
                    yield visible_line(f"      {label}  {_cut(one.evidence)}")


def held_word(check: Checked | None) -> str:
    """How an assertion came out."""
    if check is None:
        return "no such check"
    return {True: "held", False: "did not hold", None: "not judged"}[check.held]
