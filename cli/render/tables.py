"""Tables on a terminal: plain columns, no frame, cells cut to the width there and never in a pipe."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence

from secondtake.cli.render.escape import visible_line

RIGHT = ">"
"""A heading that begins with this is a column of numbers, set to the right."""


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under headings to standard output. Every cell passes the escaper here; markup in a cell stays text."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = sys.stdout.isatty()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        table.add_column(
            heading.removeprefix(RIGHT),
            justify="right" if heading.startswith(RIGHT) else "left",
            no_wrap=True,
            overflow="ellipsis",
        )
    for row in rows:
        table.add_row(*(Text(visible_line(cell)) for cell in row))
    width = shutil.get_terminal_size().columns if terminal else 100_000
    console = Console(width=width, highlight=False, emoji=False, markup=False)
    with console.capture() as capture:
        console.print(table)
    sys.stdout.write("\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n")
