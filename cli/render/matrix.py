"""What is said while a matrix runs: what it is and will cost, each take as it ends, and why cells are left."""

from __future__ import annotations

from collections.abc import Iterator

from secondtake.cli.render.escape import visible_line
from secondtake.cli.render.report import figure
from secondtake.cli.render.words import count, duration
from secondtake.harness.comparison import outlook
from secondtake.harness.matrix.design import Arm, Design
from secondtake.harness.matrix.schedule import Progress, Ran
from secondtake.harness.matrix.session import Before


def before_lines(before: Before) -> Iterator[str]:
    """Yield what a person decides on."""
    design, told = before.design, before.estimate
    warm_up = f" and {count(len(design.arms), 'warm-up')}" if design.warm_up else ""
    yield visible_line(f"matrix {design.id}: {count(len(design.arms), 'arm')}, {count(design.repeats, 'repeat')} each{warm_up}")
    for arm in design.arms:
        yield visible_line(f"  {_arm(arm, design)}")
    yield f"  to run      {count(told.takes, 'take')}{f', {before.done} are done' if before.done else ''}"
    yield visible_line(f"  likely      {count(told.calls, 'model call')}, {figure(told.tokens)} tokens, {_cost(told.cost, told.unpriced)}")
    bounds = [count(told.most_calls, "model call")] if told.most_calls is not None else []
    bounds += [f"cost {figure(told.most_cost, 'cost')}"] if told.most_cost is not None else []
    if design.max_cost is not None:
        bounds.append(f"no take is begun that would likely go beyond cost {figure(design.max_cost, 'cost')}")
    yield f"  at most     {'; '.join(bounds) or 'no rule of the fixture bounds it'}"
    if len(design.arms) > 1:
        yield f"  can show    {outlook(design.repeats)}"


def _arm(arm: Arm, design: Design) -> str:
    marks = [arm.pin_class] if arm.pin_class else []
    marks += ["baseline"] if arm is design.baseline else []
    marks += ["control"] if arm.control else []
    marks += ["unpinned"] if arm.unpinned else []
    return f"{arm.name} ({', '.join(marks)})" if marks else arm.name


def _cost(cost: float | None, unpriced: tuple[str, ...]) -> str:
    if cost is not None:
        return f"cost {figure(cost, 'cost')}, if each take goes as the recording did"
    return f"cost unknown: no price, or no usage, for {', '.join(unpriced[:5])}"


def progress_line(step: Progress) -> str | None:
    """Return the line of a take that ended; None for one that begins."""
    if step.ended is None:
        return None
    take, cell = step.ended.take, step.cell
    which = "warm-up" if cell.warm_up else f"{cell.repeat}"
    again = f", attempt {cell.attempt}" if cell.attempt > 1 else ""
    spent = "" if step.spent is None else f", {figure(step.spent, 'cost')} spent"
    waits = f"; its provider is left alone for {duration(round(step.waits_s * 1_000_000))}" if step.waits_s else ""
    took = f"{count(take.resources.model_calls, 'call')} in {duration(round(take.resources.seconds * 1_000_000))}"
    width = len(str(step.total))
    return visible_line(f"[{step.done:>{width}}/{step.total}] {cell.arm.name} {which}{again}: {take.column}, {took}{spent}{waits}")


def left_lines(ran: Ran, again: str) -> Iterator[str]:
    """Yield why cells are left, and how to go on."""
    if ran.left:
        yield visible_line(f"not finished: {count(ran.left, 'cell')} left; {ran.stopped or 'stopped'}")
        yield visible_line(f"to go on: {again}")
