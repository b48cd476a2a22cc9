"""The ordered log of a whole cassette: what its exchanges tell, and of a take also what the harness saw. Pure.

A take keeps its commands as the kernel saw them (artifact `exec`), and in its closing record its command, its end, its verdict, and every
attempt to reach something beside the proxy. They take their places in the log by time; the verdict stands last.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from secondtake.cassettes import execs, takes
from secondtake.cassettes.adapters.base import Json
from secondtake.cassettes.event import Event, EventKind
from secondtake.cassettes.events import contents, events
from secondtake.cassettes.stages import Keeps

if TYPE_CHECKING:
    from secondtake.cassettes.cassette import Cassette
    from secondtake.cassettes.takes import Take

EXEC = "exec"
"""The kind of the artifact that holds a take's commands."""
ESCAPES = "escapes"
"""The member of a take's closing meta that holds the attempts to leave, each `[at_us, kind, address, port, name]`."""
ESCAPES_KEPT = 1000


def log_of(cassette: Cassette) -> Iterator[Event]:
    """Yield every event of a cassette, in order. Raises Corrupt, TooNew, TooLarge: what it holds cannot be read."""
    told = events((cassette.exchange(seq) for seq in sorted(row.seq for row in cassette.rows)), contents(cassette))
    if cassette.meta.get("kind") != takes.KIND:
        yield from told
        return
    said = tuple(told)
    merged = heapq.merge(said, _seen(cassette, said), key=lambda event: event.offset_us)
    for number, event in enumerate((*merged, *_ending(cassette, said))):
        yield replace(event, sequence=number)


def fixture_of(cassette: Cassette) -> str | None:
    """Return the name of the fixture that a take plays; None for anything else. Raises Corrupt, TooNew."""
    take = takes.of(cassette.meta)
    return None if take is None else take.fixture


def _seen(cassette: Keeps, said: Iterable[Event]) -> Iterator[Event]:
    found = [*_commands(cassette, said), *_escapes(cassette.meta)]
    command = cassette.meta.get("command")
    if isinstance(command, list | tuple):
        argv: list[Json] = [word for word in command if isinstance(word, str)]
        at_us = min((event.offset_us for event in found if event.event is EventKind.EXEC), default=0)
        yield _event(EventKind.START, at_us, {"argv": argv, "cwd": _text(cassette.meta, "cwd")})
    yield from sorted(found, key=lambda event: event.offset_us)


def _commands(cassette: Keeps, said: Iterable[Event]) -> Iterator[Event]:
    kept = next((one for one in reversed(cassette.artifacts) if one.kind == EXEC), None)
    if kept is None:
        return
    commands = execs.decode(cassette.artifact(kept.digest))
    claimed = execs.claims(said)
    for one in execs.compare(commands, claimed):
        if one.command is None:
            continue
        command = commands[one.command]
        ended_us = command.ended_us
        yield _event(EventKind.EXEC, command.started_us, {
            "argv": list(command.argv),
            "program": command.program or None,
            "cwd": command.cwd or None,
            "pid": command.pid,
            "parent": command.parent,
            "exit_code": command.exit_code,
            "signal": command.signal,
            "duration_us": None if ended_us is None else ended_us - command.started_us,
            "mark": one.mark.value,
            "call_id": None if one.claim is None else claimed[one.claim].call_id,
        })  # fmt: skip


def _escapes(meta: Mapping[str, object]) -> Iterator[Event]:
    said = meta.get(ESCAPES)
    for one in said if isinstance(said, list | tuple) else ():
        match one:
            case [int() as at_us, str() as kind, str() as address, int() | None as port, str() | None as name]:
                yield _event(EventKind.ESCAPE, max(0, at_us), {"kind": kind, "address": address, "port": port, "name": name})
            case _:
                pass


def _ending(cassette: Keeps, said: tuple[Event, ...]) -> Iterator[Event]:
    """The agent's end and the verdict: nothing comes after them."""
    elapsed = cassette.meta.get("elapsed_us")
    at_us = max(elapsed if isinstance(elapsed, int) else 0, said[-1].offset_us if said else 0)
    if "agent_status" in cassette.meta:
        status = cassette.meta["agent_status"]
        yield _event(
            EventKind.EXIT, at_us, {"exit_code": status if isinstance(status, int) else None, "stopped": _text(cassette.meta, "stopped")}
        )
    take = takes.of(cassette.meta)
    if take is not None:
        yield _event(EventKind.VERDICT, at_us, _verdict(take))


def _verdict(take: Take) -> dict[str, Json]:
    return {
        "outcome": take.outcome.value,
        "invalid": take.invalid or None,
        "reason": take.reason,
        "signature": None if take.signature is None else take.signature.text,
        "signature_id": None if take.signature is None else take.signature.id,
        "control": take.control.value,
        "live": list(take.live),
        "pin": take.model,
        "arm": take.arm,
        "repeat": take.repeat,
        "checks": [[one.section, one.name, one.held] for one in take.checks],
    }


def _event(kind: EventKind, at_us: int, data: dict[str, Json]) -> Event:
    return Event(kind, 0, at_us, None, None, data)


def _text(meta: Mapping[str, object], key: str) -> str | None:
    value = meta.get(key)
    return value if isinstance(value, str) else None
