"""`diff`: what differs between two runs, or between two arms of several runs each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from secondtake.cli.exits import Exit, Unusable
from secondtake.cli.options import Surface, complete_name, surface_options
from secondtake.cli.render.escape import visible_line

if TYPE_CHECKING:
    from secondtake.cassettes.diff.layers import Layer

LAYERS = ("decisions", "commands", "tree", "outcome")

BETWEEN = "\0"
"""Stands among the names where `--against` stood; no name holds it."""


class DiffCommand(click.Command):
    """A command whose names may be two lists, with `--against` between them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put a mark where `--against` stands, so that what stands after it is known."""
        return super().parse_args(ctx, [BETWEEN if word == "--against" else word for word in args])


@click.command("diff", cls=DiffCommand)
@click.argument("names", metavar="A B", nargs=-1, required=True, shell_complete=complete_name)
@click.option("--layer", "layers", multiple=True, type=click.Choice(LAYERS), help="Only this layer (may be repeated).")
@click.option("--arms", is_flag=True, help="Compare several runs: A1 A2 … --against B1 B2 …, or the arms of a MATRIX.")
@click.option("--against", is_flag=True, expose_value=False, help="With --arms: the names after it are the other arm.")
@click.option("--arm", "chosen", multiple=True, metavar="NAME", help="With --arms MATRIX: one of the two arms to compare.")
@click.option("--html", "page", type=click.Path(path_type=Path), metavar="FILE", help="Write one self-contained page.")
@surface_options
@click.pass_context
def command(
    context: click.Context,
    surface: Surface,
    names: tuple[str, ...],
    layers: tuple[str, ...],
    arms: bool,
    chosen: tuple[str, ...],
    page: Path | None,
) -> int:
    """Say what differs between two recordings or takes.

    Four layers, each by itself: decisions (what the model called; prose is not compared), commands and how they ended, the workspace and
    the patch, the outcome. Exits with 0 when nothing differs, and with 103 when something does.
    """
    if arms:
        return _arms(context, surface, names, layers, chosen, page)
    if chosen or BETWEEN in names:
        raise click.UsageError("--against and --arm go with --arms", context)
    if len(names) != 2:
        raise click.UsageError(f"two are compared, not {len(names)}: secondtake diff A B", context)
    from secondtake.cassettes.diff.layers import Layer
    from secondtake.cli.render.progress import working
    from secondtake.harness.comparing import compared

    wanted = [layer for layer in Layer if not layers or layer.value in layers]
    with working(surface, f"comparing {names[0]} with {names[1]}"):
        diff = compared(surface.store(), *names)
    said: Mapping[Layer, bool | None] = {layer: diff.differs(layer) for layer in wanted}
    if layers and None in said.values():
        raise Unusable("no final tree was kept on both sides, so there is none to compare", hint="leave out --layer tree")
    code = Exit.DIVERGED if any(said.values()) else Exit.CLEAN
    if page is not None:
        from secondtake.cli.render.diff_page import diff_page

        _write(surface, page, diff_page(diff, wanted))
    if surface.json:
        from secondtake.cli.render.diff_fields import fields
        from secondtake.cli.render.objects import as_line

        print(as_line({**fields(diff, wanted), "exit_code": int(code)}))
    elif page is None or not surface.quiet:
        from secondtake.cli.render.diff import lines

        for line in lines(diff, wanted):
            print(line)
    return code


def _arms(
    context: click.Context, surface: Surface, names: tuple[str, ...], layers: tuple[str, ...], chosen: tuple[str, ...], page: Path | None
) -> int:
    if layers and layers != ("decisions",):
        raise click.UsageError("--arms compares decisions; it takes no other --layer", context)
    from secondtake.cli.render.progress import working
    from secondtake.harness.comparing import matrix_parted, parted

    with working(surface, "comparing the arms"):
        if BETWEEN in names:
            if chosen:
                raise click.UsageError("--arm chooses among the arms of a MATRIX; here the runs are named", context)
            at = names.index(BETWEEN)
            if BETWEEN in names[at + 1 :]:
                raise click.UsageError("--against stands once", context)
            found = parted(surface.store(), names[:at], names[at + 1 :])
        elif len(names) == 1:
            found = matrix_parted(surface.store(), names[0], chosen)
        else:
            raise click.UsageError("--arms takes one MATRIX, or runs with --against between the arms", context)
    code = Exit.DIVERGED if found.differs else Exit.CLEAN
    if page is not None:
        from secondtake.cli.render.diff_page import arms_page

        _write(surface, page, arms_page(found))
    if surface.json:
        from secondtake.cli.render.diff_fields import parted_fields
        from secondtake.cli.render.objects import as_line

        print(as_line({**parted_fields(found), "exit_code": int(code)}))
    elif page is None or not surface.quiet:
        from secondtake.cli.render.arms import lines

        for line in lines(found):
            print(line)
    return code


def _write(surface: Surface, path: Path, content: str) -> None:
    """Write the page, for us only: it holds what was recorded."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
    except OSError as error:
        raise Unusable(f"cannot write {path}: {error.strerror or error}") from error
    surface.say(visible_line(f"wrote {path}"))
