"""`ls`: what is in the store."""

from __future__ import annotations

import click

from secondtake.cli.options import Surface, surface_options


@click.command("ls")
@click.option("--takes", "each", is_flag=True, help="List every take of a matrix, not the matrix as one.")
@surface_options
def command(surface: Surface, each: bool) -> int:
    """List the cassettes in the store, newest last: recordings, takes, probes.

    The takes of a matrix are one line, which `report` explains.
    """
    from secondtake.cli.render.listing import HEADINGS, fields, listed, rows

    found = listed(surface.store().list())
    if surface.json:
        from secondtake.cli.render.objects import as_line

        for one in found:
            print(as_line(fields(one)))
        return 0
    if not found:
        surface.say(f"no cassettes in {surface.place.root}\n\nhint: secondtake record NAME{surface.again} -- AGENT...")
        return 0
    from secondtake.cli.render.tables import print_table

    print_table(HEADINGS, rows(found, each=each))
    return 0
