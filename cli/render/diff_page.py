"""Two runs, or two arms, as one self-contained page: no script, no request, every text escaped."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from secondtake.cassettes.diff.decisions import How, Step
from secondtake.cassettes.diff.layers import Diff, Layer
from secondtake.cassettes.diff.tree import Equivalence
from secondtake.cli.render.arms import sentence
from secondtake.cli.render.diff import (
    ENDED,
    SIGNS,
    around,
    before_line,
    commands_line,
    decisions_line,
    decisions_notes,
    first_line,
    held_word,
    outcome_line,
    tree_line,
)
from secondtake.cli.render.escape import visible
from secondtake.cli.render.words import count

if TYPE_CHECKING:
    from secondtake.cassettes.diff.arguments import Changed
    from secondtake.cassettes.diff.arms import Arm, Parted, Parting
    from secondtake.cassettes.diff.commands import Commanded, Together
    from secondtake.cassettes.diff.decisions import Decided
    from secondtake.cassettes.diff.outcome import Accounted
    from secondtake.cassettes.diff.tree import Patch, Treed

TEMPLATES = Path(__file__).with_name("templates")

PATCH_LINES = 5000
"""Of one patch; more would make a page that no browser scrolls."""

TITLES = {
    Layer.DECISIONS: "Decisions",
    Layer.COMMANDS: "Commands and how they ended",
    Layer.TREE: "Workspace and patch",
    Layer.OUTCOME: "Outcome and resources",
}

type Context = dict[str, Any]


def diff_page(diff: Diff, layers: Collection[Layer]) -> str:
    """Return the page of two runs."""
    sides = [
        {"label": label, "name": side.name, "told": f"{side.kind}, {side.state}" + (f", {', '.join(side.models)}" if side.models else "")}
        for label, side in (("A", diff.a), ("B", diff.b))
    ]
    sections = [_section(diff, layer) for layer in layers]
    whole = {Layer.DECISIONS, Layer.TREE} <= set(layers)
    headline = diff.summary if whole else "; ".join(section["line"] for section in sections)
    roots = ", ".join(f"{side.name} {side.root or 'without a root'}" for side in (diff.a, diff.b))
    return _render(
        title=f"{diff.a.name} → {diff.b.name}",
        headline=headline[0].upper() + headline[1:],
        subtitle="What differs between two runs, layer by layer. What the model says in words is not compared.",
        sides=sides,
        sections=sections,
        footer=f"secondtake diff; {roots}",
    )


def _section(diff: Diff, layer: Layer) -> Context:
    differs = diff.differs(layer)
    made: Context = {"id": layer.value, "title": TITLES[layer], "state": {True: "differs", False: "same", None: ""}[differs]}
    made["word"] = {True: "differs", False: "the same", None: "not compared"}[differs]
    match layer:
        case Layer.DECISIONS:
            return made | _decided(diff.decisions)
        case Layer.COMMANDS:
            return made | _commanded(diff.commands)
        case Layer.TREE:
            return made | _treed(diff.tree)
        case Layer.OUTCOME:
            return made | _accounted(diff.outcome)
        case _:
            assert_never(layer)


def _decided(decided: Decided) -> Context:
    first = []
    if decided.parting is not None:
        line = f"{first_line(decided)}; {before_line(decided)}"
        first = [line[0].upper() + line[1:] + "."]
        first += [f"{label}  {decision or ENDED}" for label, decision in zip("AB", decided.parting, strict=True)]
    rows = [_step(one) for one in decided.steps]
    marked = [one.how is not How.SAME or one.stops is not None for one in decided.steps]
    return {"line": decisions_line(decided), "first": first, "groups": _groups(rows, marked), "notes": list(decisions_notes(decided))}


def _step(step: Step) -> Context:
    made: Context = {"sign": SIGNS[step.how]}
    a, b = (None if one is None else f"{one.number}  {one}" for one in (step.a, step.b))
    if step.how is How.SAME:
        other = "   (its tools gave something else back)" if step.other_result else ""
        number = f"{step.a.number}/{step.b.number}" if step.a and step.b and step.a.number != step.b.number else None
        made["both"] = f"{number}  {step.a}{other}" if number else f"{a}{other}"
        if step.stops is not None:
            made["fields"] = [{"name": "stopped", "a": step.stops[0] or "?", "b": step.stops[1] or "?"}]
    else:
        changed = step.changed if step.how is How.ARGUMENTS else ()
        made |= {"a": a, "b": b, "fields": list(_fields(changed))}
        made["texts"] = [{"name": f"{one.tool} {name}", "lines": _marked(text)} for one in changed for name, text in one.texts]
    return made


def _fields(changed: Sequence[Changed]) -> Iterator[Context]:
    for one in changed:
        for item in one.fields:
            absent = "(absent)"
            yield {
                "name": f"{one.tool} {item.path}".rstrip(),
                "a": absent if item.recorded is None else item.recorded,
                "b": absent if item.live is None else item.live,
            }


def _groups(rows: Sequence[Context], marked: Sequence[bool]) -> list[Context]:
    """Rows in the order they stand; long stretches that are the same are folded."""
    made: list[Context] = []
    for shown in around(marked):
        if isinstance(shown, int):
            if not made or made[-1]["folded"]:
                made.append({"folded": "", "rows": []})
            made[-1]["rows"].append(rows[shown])
        else:
            made.append({"folded": f"{shown[1] - shown[0]} the same", "rows": list(rows[shown[0] : shown[1]])})
    return made


def _commanded(commanded: Commanded) -> Context:
    rows = [_together(one) for one in commanded.together]
    notes = [
        f"{label}: {count(log.own, 'command')} of the agent's own, not compared; {log.not_run} asked for and not seen to run"
        for label, log in (("A", commanded.a), ("B", commanded.b))
        if log.own or log.not_run
    ]
    marked = [not one.same or one.other_end for one in commanded.together]
    return {"line": commands_line(commanded), "groups": _groups(rows, marked), "notes": notes}


def _together(one: Together) -> Context:
    a, b = (None if ran is None else f"[{ran.ended or '?'}] {ran.line}" for ran in (one.a, one.b))
    if one.same and not one.other_end:
        return {"sign": " ", "both": a}
    sign = "~" if one.same else "-" if b is None else "+" if a is None else "!"
    return {"sign": sign, "a": a, "b": b}


def _treed(treed: Treed) -> Context:
    notes = [f"content not kept, compared by size only: {path}" for path in treed.unseen]
    both = treed.a is not None and treed.b is not None and (treed.a.text, treed.a.changes) == (treed.b.text, treed.b.changes)
    told = [("A and B", treed.a)] if both else [("A", treed.a), ("B", treed.b)]
    patches = []
    if treed.between is not None and treed.between.changes:
        patches.append(_patch("From A's end to B's end", treed.between, opened=True))
    equal = treed.equivalence is Equivalence.TREES
    for label, patch in told:
        if patch is not None:
            changed = ", ".join(map(str, patch.changes[:20])) or "nothing"
            notes.append(f"{label}: {changed}" + (", …" if len(patch.changes) > 20 else ""))
            if patch.changes:
                patches.append(_patch(f"What {label} made of the start", patch, opened=equal and both))
    return {"line": tree_line(treed), "notes": notes, "patches": patches}


def _patch(title: str, patch: Patch, *, opened: bool) -> Context:
    text = patch.text.rstrip("\n").split("\n")
    more = f"… and {len(text) - PATCH_LINES} more lines" if len(text) > PATCH_LINES else ""
    return {"title": title, "lines": _marked(text[:PATCH_LINES]), "open": opened, "more": more}


def _marked(lines: Sequence[str]) -> list[Context]:
    return [{"kind": _kind(line), "text": line or " "} for line in lines]


def _kind(line: str) -> str:
    if line.startswith(("diff ", "+++ ", "--- ", "new file", "deleted file", "old mode", "new mode", "rename ", "similarity ", "Binary ")):
        return "head"
    return {"+": "plus", "-": "minus", "@": "hunk"}.get(line[:1], "")


def _accounted(accounted: Accounted) -> Context:
    table = [{"name": fact.name, "a": fact.a or "–", "b": fact.b or "–", "apart": fact.judged and fact.differs} for fact in accounted.facts]
    for check in accounted.checks:
        held = [held_word(one) + (f": {one.evidence}" if one is not None and one.evidence else "") for one in (check.a, check.b)]
        table.append({"name": f"{check.section} {check.name}", "a": held[0], "b": held[1], "apart": check.differs})
    return {"line": outcome_line(accounted), "table": table}


def arms_page(parted: Parted) -> str:
    """Return the page of two arms."""
    line = sentence(parted)
    nodes = [("greatest", "Where they part most", parted.greatest)]
    if parted.earliest is not None and parted.earliest is not parted.greatest:
        nodes.append(("earliest", "Where they part first", parted.earliest))
    return _render(
        title=f"{parted.a.label} against {parted.b.label}",
        headline=line[0].upper() + line[1:],
        subtitle="The first decision that separates two arms. Told apart by "
        + ("what each decision comes to." if parted.by == "gist" else "arguments: by their gist they do not part."),
        sides=[_arm("A", parted.a), _arm("B", parted.b)],
        sections=[_node(parted, name, title, parting) for name, title, parting in nodes if parting is not None],
        footer="secondtake diff --arms; shares are of all runs of an arm",
    )


def _arm(label: str, arm: Arm) -> Context:
    name = arm.label if arm.label != label else count(len(arm.names), "run")
    return {"label": label, "name": name, "told": ", ".join(arm.names)}


def _node(parted: Parted, name: str, title: str, parting: Parting) -> Context:
    whole = (("A", len(parted.a.courses)), ("B", len(parted.b.courses)))
    ways = []
    for way in parting.ways:
        meters = []
        for (label, runs), taken in zip(whole, (way.a, way.b), strict=True):
            meters.append({"label": label, "percent": round(100 * len(taken) / runs), "count": f"{len(taken)}/{runs}"})
        ways.append({"what": way.what, "meters": meters})
    here = f"decision {parting.number}: here are {parting.a_here} runs of A and {parting.b_here} of B; separation"
    before = [f"before it: {', then '.join(parting.before)}"] if parting.before else []
    line = f"{here} {float(parting.separation):.2f} of 1"
    return {
        "id": name,
        "title": title,
        "state": "differs",
        "word": f"decision {parting.number}",
        "line": line,
        "notes": before,
        "ways": ways,
    }


def _render(**context: object) -> str:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=_seen,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("diff.html").render(context)


def _seen(value: object) -> object:
    """What a page shows: no character that hides itself or turns the text around it."""
    return visible(value) if type(value) is str else value
