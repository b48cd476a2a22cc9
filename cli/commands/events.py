"""`events`: what happened, in order, from the cassette alone."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from secondtake.cassettes.exchange import Side
from secondtake.cli.exits import Unusable
from secondtake.cli.options import Surface, name_argument, surface_options

if TYPE_CHECKING:
    from secondtake.cassettes.cassette import Cassette
    from secondtake.cassettes.events import Event
    from secondtake.cassettes.exchange import Source

PART_BYTES = 1024 * 1024
"""A kept body is written out in parts of this size."""


@click.command("events")
@name_argument()
@click.option("--artifacts", metavar="DIR", type=click.Path(path_type=Path), help="Write what the log names by hash into DIR.")
@surface_options
def command(surface: Surface, name: str, artifacts: Path | None) -> int:
    """List what happened, in order, from the cassette alone.

    Model calls, tool calls and their results, calls of MCP servers, retries, misses, stops; of a take also what was executed, attempts to
    leave, and the verdict. The same cassette always gives the same log. A key that ends in `_sha256` names a payload, which --artifacts
    writes to a file of that name.
    """
    from secondtake.cassettes.events import fields
    from secondtake.cassettes.run_events import fixture_of

    folder = _folder(artifacts) if artifacts is not None else None
    with surface.store().open(name) as cassette:
        found = _kept(cassette, folder) if folder is not None else _events(cassette)
        if surface.json:
            from secondtake.cli.render.objects import as_line

            fixture = fixture_of(cassette)
            for event in found:
                print(as_line(fields(event, run_id=cassette.name, fixture=fixture)))
            return 0
        from secondtake.cli.render.events import HEADINGS, row
        from secondtake.cli.render.tables import print_table
        from secondtake.cli.render.words import count

        rows = [row(event) for event in found]
        print_table(HEADINGS, rows)
        surface.say(f"\n{cassette.name}: {count(len(rows), 'event')}, {cassette.state}")
        if not rows:
            surface.say(f"no model and no MCP server was asked; `secondtake show {shlex.quote(name)}{surface.again}` lists what was")
    return 0


def _events(cassette: Cassette) -> Iterator[Event]:
    from secondtake.cassettes.run_events import log_of

    return log_of(cassette)


def _kept(cassette: Cassette, folder: Path) -> Iterator[Event]:
    """The events, after each of which its payloads and kept bodies are files."""
    from secondtake.cassettes.exchange import Bytes

    for event in _events(cassette):
        for digest, payload in event.payloads.items():
            _write(folder / digest, Bytes(payload))
        if event.exchange is not None:
            for side in Side:
                if f"{side}_sha256" in event.data:
                    exchange = cassette.exchange(event.exchange)
                    message = exchange.request if side is Side.REQUEST else exchange.answer
                    if message is not None and message.body.size_bytes:
                        _write(folder / message.body.digest, cassette.body(message.body))
        yield event


def _folder(path: Path) -> Path:
    """The folder for payloads, only for us whatever the umask; what was recorded is nobody else's to read."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise Unusable(f"cannot write artifacts into {path}: {error.strerror or error}") from error
    return path


def _write(path: Path, source: Source) -> None:
    """Write a payload once. It appears whole: an interrupted run leaves no file that is not what its name says."""
    if path.exists():
        return
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        for offset in range(0, source.size_bytes, PART_BYTES):
            file.write(source.read(offset, PART_BYTES))
    beside.replace(path)
