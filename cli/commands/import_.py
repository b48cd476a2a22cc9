"""`import`: an exported file into the store."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from secondtake.cassettes.errors import NameTaken
from secondtake.cli.exits import Unusable
from secondtake.cli.options import Surface, surface_options


@click.command("import")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--as", "as_name", metavar="NAME", help="Keep it under this name instead of its own.")
@surface_options
def command(surface: Surface, file: Path, as_name: str | None) -> int:
    """Take an exported file into the store. It is checked first; a damaged one leaves nothing behind."""
    from secondtake.cli.render.progress import working

    if not file.is_file():
        raise Unusable(f"no file {file}" if not file.exists() else f"{file} is not a file", hint="secondtake export NAME FILE makes one")
    with working(surface, f"importing {file.name}"):
        try:
            name = surface.store().import_(file, as_name)
        except NameTaken as taken:
            raise NameTaken(str(taken), hint=f"secondtake import {shlex.quote(str(file))} --as NAME{surface.again}") from taken
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(as_line({"name": name, "file": str(file)}))
    else:
        surface.say(f"imported as {name}\n\nnext: secondtake show {name}{surface.again}")
    return 0
