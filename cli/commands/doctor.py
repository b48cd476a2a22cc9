"""`doctor`: one handshake per tool, to say what would and would not be captured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from secondtake.cli.options import Surface, surface_options

if TYPE_CHECKING:
    from secondtake.proxy.handshakes import Result


@click.command("doctor")
@surface_options
def command(surface: Surface) -> int:
    """Make one handshake per tool and say what would be captured.

    Every tool found on PATH is started in the environment an agent would get, and asks for a host that does not exist. Nothing leaves
    this machine. Exits 0 whatever is found: a tool that is not captured is a fact, not a failure.
    """
    from secondtake.cli.wire import stage_of
    from secondtake.harness.examination import examined

    if not surface.json:
        surface.say("one handshake for each tool; the slowest takes some seconds")
    found = examined(stage_of(surface))
    if surface.json:
        from secondtake.cli.render.objects import as_line

        for result in found.results:
            print(as_line({"event": "tool", **_fields(result)}))
        print(as_line({"event": "surroundings", "notes": list(found.notes), "trusted": dict(found.trusted)}))
        return 0
    from secondtake.cli.render.tables import print_table

    print_table(["tool", "verdict", "told by", "to know"], ([r.tool, str(r.verdict), r.variable or "", r.detail] for r in found.results))
    from secondtake.cli.render.escape import visible_line

    for note in found.notes:
        print(f"note: {visible_line(note)}")
    return 0


def _fields(result: Result) -> dict[str, object]:
    return {
        "tool": result.tool,
        "verdict": str(result.verdict),
        "variable": result.variable,
        "program": result.program,
        "detail": result.detail,
    }
