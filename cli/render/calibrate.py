"""What a calibration found: every place that varies with its values side by side, and what is proposed for it or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from secondtake.cli.render.escape import visible_line
from secondtake.cli.render.words import count

if TYPE_CHECKING:
    from secondtake.cassettes.calibration import Varying
    from secondtake.harness.calibrating import Calibrated


def calibrated_lines(result: Calibrated, store: Path) -> Iterator[str]:
    """Yield what a person wants to know. The rules themselves go to standard output."""
    yield ""
    if not result.varying and not result.left:
        yield visible_line(f"calibrated {result.name}: nothing differs that the rules in force do not forgive")
        return
    yield visible_line(f"calibrated {result.name}: {count(len(result.varying), 'place')} differ")
    for one in result.varying:
        yield from _place_lines(one)
    for rule, why in result.refused:
        yield ""
        yield visible_line(f"not proposed: {rule.line}")
        yield visible_line(f"  {why}")
    yield ""
    if result.proposed:
        yield visible_line(f"{count(len(result.proposed), 'rule')}, to be pasted into {store / 'rules'} or a file for --rules:")
    if result.left:
        yield f"{count(result.left, 'request')} would still differ"


def _place_lines(one: Varying) -> Iterator[str]:
    of = f" ({one.adapter})" if one.adapter else ""
    yield ""
    yield visible_line(f"{one.method} {one.host}{one.path}{of}: {one.where} {one.place}".rstrip())
    for name, value in (("recorded", one.recorded), ("replay 1", one.first), ("replay 2", one.second)):
        yield visible_line(f"    {name}  {'(absent)' if value is None else value}")
    if one.why_not is not None:
        yield visible_line(f"  no rule: {one.why_not}")


def calibrated_fields(result: Calibrated) -> Mapping[str, object]:
    """Return the object that `calibrate --json` prints."""
    return {
        "name": result.name,
        "differs": [
            {
                "adapter": one.adapter,
                "method": one.method,
                "host": one.host,
                "path": one.path,
                "where": one.where,
                "place": one.place,
                "recorded": one.recorded,
                "first": one.first,
                "second": one.second,
                "between_replays": one.between,
                "times": one.times,
                "rule": one.rule.line if one.rule is not None else None,
                "why_not": one.why_not,
            }
            for one in result.varying
        ],
        "rules": [rule.line for rule in result.proposed],
        "refused": [{"rule": rule.line, "why": why} for rule, why in result.refused],
        "left": result.left,
    }
