"""`env`: shell exports that point every tool at a running proxy."""

from __future__ import annotations

import click

from secondtake.cli.options import Surface, surface_options

FORMATS = ("sh", "fish", "powershell", "dotenv", "github", "docker", "json")


@click.command("env")
@click.option("--port", type=click.IntRange(1, 65535), metavar="P", help="The proxy's port. Needed only where several run.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="sh", show_default=True, help="How to write the variables.")
@click.option("--unset", is_flag=True, help="Take the variables back instead.")
@surface_options
def command(surface: Surface, port: int | None, form: str, unset: bool) -> int:
    """Print shell exports: proxy and CA variables for every tool, to be eval'ed."""
    from secondtake.cli.wire import stage_of
    from secondtake.harness.running import exports_of

    print(exports_of(stage_of(surface), port=port, form="json" if surface.json else form, unset=unset), end="")
    return 0
