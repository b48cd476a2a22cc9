"""`gc`: bytes that no cassette needs any more."""

from __future__ import annotations

import click

from secondtake.cli.options import Surface, surface_options


@click.command("gc")
@click.option("--dry-run", "-n", is_flag=True, help="Only say what would go.")
@surface_options
def command(surface: Surface, dry_run: bool) -> int:
    """Remove bytes that no cassette in the store needs."""
    from secondtake.cli.render.progress import working
    from secondtake.cli.render.words import count, size

    with working(surface, "collecting"):
        collected = surface.store().gc(dry_run=dry_run)
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(as_line({"files": list(collected.files), "bytes": collected.size_bytes, "dry_run": dry_run}))
    else:
        surface.say(f"{'would remove' if dry_run else 'removed'} {count(len(collected.files), 'file')} ({size(collected.size_bytes)})")
    return 0
