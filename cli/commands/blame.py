"""`blame`: which turn changed a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from secondtake.cli.options import Surface, name_argument, surface_options
from secondtake.cli.render.escape import visible, visible_line

SHOWN_ARGUMENTS = 160
"""Characters of a tool call's arguments in a line."""

if TYPE_CHECKING:
    from secondtake.harness.blame import Blamed


@click.command("blame")
@name_argument()
@click.argument("path", metavar="PATH", type=click.Path(path_type=str))
@click.option("--diff", is_flag=True, help="Show each change as a unified diff.")
@surface_options
def command(surface: Surface, name: str, path: str, diff: bool) -> int:
    """Say which turn of the model changed a file.

    PATH is relative to the recorded workspace, or absolute below it; a folder stands for all that is in it. For each change, in order:
    the turn, the exchange of the model call whose tools ran, what happened to the file, and those tool calls. Renames are followed.
    """
    from secondtake.harness.blame import blame, stage_of

    cassette = surface.store().open(name)
    try:
        root = stage_of(cassette).root
        inside = os.path.relpath(path, root) if root and os.path.isabs(path) else os.path.normpath(path)  # noqa: PTH117  # a recorded path
        found = blame(cassette, b"" if inside == "." else os.fsencode(inside), patches=diff or surface.json)
    finally:
        cassette.close()
    if surface.json:
        from secondtake.cassettes.trees import shown
        from secondtake.cli.render.objects import as_line

        for one in found:
            calls = [{"name": call.name, "arguments": call.arguments} for call in one.calls]
            source = shown(one.change.source) if one.change.source else None
            fields = {"path": shown(one.change.path), "kind": str(one.change.kind), "source": source, "turn": one.step, "seq": one.seq}
            print(as_line({**fields, "tool_calls": calls, "patch": one.patch}))
        return 0
    if not found:
        surface.say(f"{visible_line(path)}: not changed while it was recorded")
    for one in found:
        where = f"turn {one.step}, exchange {one.seq}" if one.seq is not None else _unplaced(one)
        print(f"{where}\t{visible_line(str(one.change))}")
        for call in one.calls:
            line = visible_line(f"{call.name} {call.arguments}".rstrip())
            print(f"  {line[:SHOWN_ARGUMENTS]}{'…' if len(line) > SHOWN_ARGUMENTS else ''}")
        if diff:
            print(visible(one.patch), end="")
    return 0


def _unplaced(one: Blamed) -> str:
    return "before any tool call" if one.step is not None else "some turn of the take"
