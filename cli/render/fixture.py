"""Fixtures as a person reads them, and as objects."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from secondtake.cassettes.envelope import FIELDS, Envelope, Layer, unknown
from secondtake.cli.render.escape import visible_line
from secondtake.cli.render.words import count

if TYPE_CHECKING:
    from secondtake.cassettes.canonical import Json
    from secondtake.harness.fixture import Fixture
    from secondtake.harness.fixture.checking import Comparison
    from secondtake.harness.fixture.making import Made

VALUE_CHARACTERS = 60
"""Of a value in a table; `--json` has all of it."""

_NAMED = 5


def shown_fields(fixture: Fixture) -> dict[str, object]:
    """Return a fixture as an object."""
    return {
        "fixture": fixture.name,
        "digest": fixture.digest,
        "dir": str(fixture.root),
        "command": list(fixture.command),
        "driver": fixture.scene.driver,
        "workspace": str(fixture.workspace),
        "models": list(fixture.scene.models),
        "failure": [check.name for check in fixture.failure.check],
        "acceptance": [check.name for check in fixture.acceptance.check],
        "stop": fixture.stop.model_dump(),
        "fingerprint": fixture.envelope.fingerprint,
        "start_tree": fixture.stage.workspace,
        "home_tree": fixture.stage.home,
    }


def shown_lines(fixture: Fixture) -> Iterator[str]:
    """Yield what `fixture show` says."""
    scene = fixture.scene
    stops = [f"{name} {value:g}" for name, value in fixture.stop.model_dump().items() if value is not None]
    missing = unknown(fixture.envelope)
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    yield visible_line(f"{fixture.name}: {shlex.join(fixture.command)}")
    yield f"  digest       {fixture.digest}"
    yield visible_line(f"  folder       {fixture.root}")
    yield visible_line(f"  workspace    {fixture.workspace}")
    yield visible_line(f"  models       {', '.join(scene.models) or 'none recorded'}")
    yield visible_line(f"  clock        {scene.clock}, time zone {scene.timezone or 'of the machine'}")
    yield visible_line(f"  failure      {', '.join(check.name for check in fixture.failure.check) or 'no check yet: edit fixture.toml'}")
    yield visible_line(f"  acceptance   {', '.join(check.name for check in fixture.acceptance.check) or 'no check yet: edit fixture.toml'}")
    yield visible_line(f"  stops at     {', '.join(stops) or 'no bound'}")
    yield f"  fingerprint  {fixture.envelope.fingerprint}"
    yield f"  unknown      {', '.join(missing[:_NAMED]) or 'nothing'}{more}"


def made_lines(made: Made, *, again: str, named: bool) -> Iterator[str]:
    """Yield what `fixture create` says."""
    fixture = made.fixture
    name = shlex.quote(fixture.name if named else str(fixture.root))
    yield visible_line(f"made {fixture.name} in {fixture.root}, digest {fixture.digest[:12]}")
    for line in made.not_captured[:_NAMED]:
        yield visible_line(f"not captured: {line}")
    if len(made.not_captured) > _NAMED:
        yield f"not captured: {len(made.not_captured) - _NAMED} more"
    tried = made.suggested.tested
    if tried is not None and tried.failed:
        yield visible_line(f"failure: `{shlex.join(tried.command)}` failed in the recording, and is taken as what must become green")
    else:
        yield "failure: no failing test command was found in the recording; say in fixture.toml what went wrong"
    yield ""
    yield visible_line(f"next: edit {fixture.root / 'fixture.toml'}, then secondtake fixture check {name}{again}")


def check_rows(found: Comparison) -> Iterator[list[str]]:
    """Yield one row for each field that differs; in a long list or object, what differs of it."""
    for each in found.differences:
        for where, recorded, now in _apart(each.recorded, each.now):
            yield [str(each.layer), f"{each.field}{where}", _value(recorded), _value(now)]


def _apart(recorded: Json, now: Json) -> Iterator[tuple[str, Json, Json]]:
    """The members in which two objects differ; anything else whole."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        for name in sorted(recorded.keys() | now.keys()):
            first, second = recorded.get(name, _NONE), now.get(name, _NONE)
            if first != second:
                yield f" {name}", first, second
        return
    yield "", recorded, now


_NONE = "(not there)"


def _value(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= VALUE_CHARACTERS else f"{text[: VALUE_CHARACTERS - 1]}…"


def check_lines(found: Comparison) -> Iterator[str]:
    """Yield what stands beside the table of `fixture check`."""
    if not found.equal:
        yield f"{_fields(len(found.differences), 'differs', 'differ')}: {', '.join(found.layers)}"
        if any(not each.comparable for each in found.differences):
            yield "what is unknown on one side can be neither equal nor different: a take under it is not controlled"
    if found.unknown:
        yield f"unknown then and now: {', '.join(found.unknown)}"
    yield f"{_fields(len(found.after_a_run), 'is', 'are')} told by traffic only: a take compares that"


def _fields(number: int, one: str, many: str) -> str:
    return f"{count(number, 'field')} {one if number == 1 else many}"


def check_fields(found: Comparison) -> dict[str, object]:
    """Return a comparison as an object."""
    return {
        "fixture": found.fixture.name,
        "digest": found.fixture.digest,
        "equal": found.equal,
        "layers": [str(layer) for layer in found.layers],
        "differences": [
            {"layer": str(each.layer), "field": each.field, "recorded": each.recorded, "now": each.now, "comparable": each.comparable}
            for each in found.differences
        ],
        "unknown": list(found.unknown),
        "after_a_run": list(found.after_a_run),
        "recorded_fingerprint": found.fixture.envelope.fingerprint,
    }


def envelope_rows(envelope: Envelope) -> Iterator[list[str]]:
    """Yield every field of an envelope."""
    for layer in Layer:
        for each in FIELDS[layer]:
            yield [str(layer), each.name, _value(envelope.value(layer, each.name))]


def envelope_fields(envelope: Envelope) -> dict[str, object]:
    """Return an envelope as an object."""
    return {str(layer): dict(envelope.layers[layer]) for layer in Layer}
