"""`export`: a cassette as one file that a stranger can open."""

from __future__ import annotations

from pathlib import Path

import click

from secondtake.cli.exits import Unusable
from secondtake.cli.options import Surface, name_argument, surface_options


@click.command("export")
@name_argument()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@surface_options
def command(surface: Surface, name: str, file: Path, force: bool) -> int:
    """Write a cassette as one file (a zip, same content same bytes)."""
    from secondtake.cli.render.progress import working
    from secondtake.cli.render.words import size

    if file.exists() and not force:
        raise Unusable(f"{file} exists", hint=f"secondtake export {name} {file} --force")
    if not file.absolute().parent.is_dir():
        raise Unusable(f"no directory {file.absolute().parent} to write {file.name} into", hint=f"mkdir -p {file.absolute().parent}")
    with working(surface, f"exporting {name}"):
        surface.store().export(name, file)
    written = file.stat().st_size
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(as_line({"name": name, "file": str(file), "bytes": written}))
    else:
        surface.say(f"wrote {file} ({size(written)})")
    return 0
