"""Two runs side by side as the object that `--json` prints."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from secondtake.cassettes.diff.layers import Diff, Layer, Side

if TYPE_CHECKING:
    from secondtake.cassettes.diff.arms import Parted, Parting
    from secondtake.cassettes.diff.commands import Commanded, Log, Ran
    from secondtake.cassettes.diff.decisions import Call, Course, Decided, Decision, Step
    from secondtake.cassettes.diff.outcome import Accounted, CheckPair
    from secondtake.cassettes.diff.tree import Patch, Treed
    from secondtake.cassettes.differences import Difference


def fields(diff: Diff, layers: Collection[Layer]) -> dict[str, object]:
    """Return the object that `diff --json` prints; layers that were not asked for are left out."""
    made: dict[str, object] = {
        "a": _side_fields(diff.a),
        "b": _side_fields(diff.b),
        "differs": {layer.value: diff.differs(layer) for layer in layers},
        "summary": diff.summary,
    }
    for layer in layers:
        match layer:
            case Layer.DECISIONS:
                made[layer.value] = _decided_fields(diff.decisions)
            case Layer.COMMANDS:
                made[layer.value] = _commanded_fields(diff.commands)
            case Layer.TREE:
                made[layer.value] = _tree_fields(diff.tree)
            case Layer.OUTCOME:
                made[layer.value] = _outcome_fields(diff.outcome)
    return made


def _side_fields(side: Side) -> dict[str, object]:
    return {"name": side.name, "kind": side.kind, "state": side.state, "root": side.root, "models": list(side.models)}


def _decided_fields(decided: Decided) -> dict[str, object]:
    first = decided.parting
    return {
        "same_path": decided.same_path,
        "counts": {how.value: number for how, number in decided.counts().items()},
        "parting": None
        if first is None
        else {"decision": decided.common + 1, "a": _decision_fields(first[0]), "b": _decision_fields(first[1])},
        "saw_the_same_before": None if first is None else decided.saw_otherwise is None,
        "steps": [_step_fields(step) for step in decided.steps],
        "faults": {"a": _fault_fields(decided.a), "b": _fault_fields(decided.b)},
        "ended": {"a": decided.a.ended, "b": decided.b.ended},
        "aside": {"a": decided.a.aside, "b": decided.b.aside},
        "bounded": decided.bounded,
    }


def _step_fields(step: Step) -> dict[str, object]:
    made: dict[str, object] = {"how": step.how.value, "a": _decision_fields(step.a), "b": _decision_fields(step.b)}
    if step.changed:
        made["changed"] = [
            {
                "tool": one.tool,
                "fields": [_difference_fields(item) for item in one.fields],
                "texts": [{"path": name, "diff": list(lines)} for name, lines in one.texts],
                "more": one.more,
            }
            for one in step.changed
        ]
    if step.stops is not None:
        made["stops"] = list(step.stops)
    if step.other_result:
        made["other_result"] = True
    return made


def _difference_fields(item: Difference) -> dict[str, object]:
    return {"path": item.path, "a": item.recorded, "b": item.live}


def _decision_fields(decision: Decision | None) -> dict[str, object] | None:
    if decision is None:
        return None
    calls = [_call_fields(call) for call in decision.calls]
    return {"number": decision.number, "exchange": decision.exchange, "stop": decision.stop, "calls": calls}


def _call_fields(call: Call) -> dict[str, object]:
    result = call.result
    returned = None if result is None else {"exit_code": result.exit_code, "is_error": result.is_error}
    return {"tool": call.tool, "arguments": call.arguments, "result": returned}


def _fault_fields(course: Course) -> list[dict[str, object]]:
    return [{"kind": fault.kind, "text": fault.text, "after": fault.after} for fault in course.faults]


def _commanded_fields(commanded: Commanded) -> dict[str, object]:
    return {
        "by": str(commanded.a.whence),
        "a": _log_fields(commanded.a),
        "b": _log_fields(commanded.b),
        "commands": [{"same": one.same, "a": _ran_fields(one.a), "b": _ran_fields(one.b)} for one in commanded.together],
        "bounded": commanded.bounded,
    }


def _log_fields(log: Log) -> dict[str, object]:
    return {"commands": len(log.ran), "own": log.own, "not_run": log.not_run}


def _ran_fields(ran: Ran | None) -> dict[str, object] | None:
    return None if ran is None else {"command": ran.line, "ended": ran.ended or None}


def _tree_fields(treed: Treed) -> dict[str, object]:
    return {
        "equivalence": None if treed.equivalence is None else treed.equivalence.value,
        "equivalent": treed.equivalent if treed.comparable else None,
        "same_start": treed.same_start,
        "a": _patch_fields(treed.a),
        "b": _patch_fields(treed.b),
        "between": _patch_fields(treed.between),
        "unseen": list(treed.unseen),
    }


def _patch_fields(patch: Patch | None) -> dict[str, object] | None:
    if patch is None:
        return None
    changes = [{"path": one.path, "kind": one.kind.value, "source": one.source or None} for one in patch.changes]
    return {"changes": changes, "patch": patch.text, "litter": patch.litter}


def _outcome_fields(accounted: Accounted) -> dict[str, object]:
    return {
        "judged": accounted.judged,
        "facts": [{"name": fact.name, "a": fact.a, "b": fact.b, "judged": fact.judged} for fact in accounted.facts],
        "checks": [_check_fields(one) for one in accounted.checks],
    }


def _check_fields(pair: CheckPair) -> dict[str, object]:
    held = {label: None if one is None else one.held for label, one in (("a", pair.a), ("b", pair.b))}
    return {"section": pair.section, "name": pair.name, **held}


def parted_fields(parted: Parted) -> dict[str, object]:
    """Return the object that `diff --arms --json` prints."""
    return {
        "a": {"arm": parted.a.label, "runs": list(parted.a.names)},
        "b": {"arm": parted.b.label, "runs": list(parted.b.names)},
        "differs": parted.differs,
        "by": parted.by.value,
        "greatest": _parting_fields(parted.greatest),
        "earliest": _parting_fields(parted.earliest),
        "nodes": parted.nodes,
    }


def _parting_fields(parting: Parting | None) -> dict[str, object] | None:
    if parting is None:
        return None
    return {
        "decision": parting.number,
        "before": list(parting.before),
        "separation": round(float(parting.separation), 4),
        "here": {"a": parting.a_here, "b": parting.b_here},
        "ways": [{"what": way.what, "a": list(way.a), "b": list(way.b)} for way in parting.ways],
    }
