"""`ls`: what is in the store."""

from __future__ import annotations

import click

from secondtake.cli.options import Surface, surface_options


@click.command("ls")
@surface_options
def command(surface: Surface) -> int:
    """List the cassettes in the store, newest last."""
    summaries = sorted(surface.store().list(), key=lambda summary: (str(summary.created or ""), summary.name))
    if surface.json:
        from secondtake.cli.render.objects import as_line

        for summary in summaries:
            print(
                as_line(
                    {
                        "name": summary.name,
                        "state": str(summary.state),
                        "exchanges": summary.exchanges,
                        "bytes_on_disk": summary.bytes_on_disk,
                        "created": summary.created,
                        "root": summary.root,
                        "trouble": summary.trouble,
                    }
                )
            )
        return 0
    if not summaries:
        surface.say(f"no cassettes in {surface.place.root}\n\nhint: secondtake record NAME -- AGENT...")
        return 0
    from secondtake.cli.render.tables import print_table
    from secondtake.cli.render.words import size

    print_table(
        ["name", "state", ">exchanges", ">on disk", "recorded"],
        ([s.name, str(s.state), f"{s.exchanges:,}", size(s.bytes_on_disk), str(s.created or "unknown")] for s in summaries),
    )
    return 0
