"""`report`: a matrix's report again, from the store."""

from __future__ import annotations

import click

from secondtake.cli.options import Surface, surface_options
from secondtake.cli.reports import Files, file_options, show
from secondtake.cli.wire import stage_of


def complete_matrix(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001  # click's signature
    """IDs of matrices that begin with what was typed, for the shell."""
    import os

    from secondtake.cli.options import place_of
    from secondtake.harness.matrix.state import Matrices

    try:
        asked = context.params.get("store_dir") or context.find_root().params.get("store_dir")
        names = Matrices(place_of(asked, os.environ).root).ids()
    except Exception:  # noqa: BLE001  # a completion that fails says nothing: the shell shows no errors
        return []
    return [name for name in names if name.startswith(incomplete)]


@click.command("report")
@click.argument("matrix", metavar="MATRIX", shell_complete=complete_matrix)
@file_options
@surface_options
def command(surface: Surface, matrix: str, files: Files) -> int:
    """Show the report of a matrix, as far as it has come.

    MATRIX is its ID, or a unique beginning of one. Nothing is run: the report is made from the takes in the store, and the same takes
    give the same report.
    """
    from secondtake.harness.matrix.schedule import Ran
    from secondtake.harness.matrix.session import told_of
    from secondtake.harness.matrix.state import Matrices

    files.check()
    stage = stage_of(surface)
    made = told_of(stage, Matrices(stage.store.root).resolve(matrix), Ran(()))
    show(surface, made.report, {"exit_code": 0})
    for path in files.write(made.report, made.takes):
        surface.say(f"written: {path}")
    return 0
