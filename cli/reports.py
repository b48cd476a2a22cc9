"""Where a matrix's report goes: standard output, and files of other forms. Shared by `matrix` and `report`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from secondtake.cli.exits import Unusable
from secondtake.cli.options import Surface

if TYPE_CHECKING:
    from secondtake.cassettes.takes import Take
    from secondtake.harness.report import Report

_FILE = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True, slots=True)
class Files:
    """Files that are asked for."""

    html: Path | None = None
    markdown: Path | None = None
    junit: Path | None = None

    def check(self) -> None:
        """Say before anything is run that a file cannot be written.

        Raises:
            Unusable: its folder is missing.
        """
        for path in (self.html, self.markdown, self.junit):
            if path is not None and not path.absolute().parent.is_dir():
                raise Unusable(f"{path} cannot be written: {path.absolute().parent} is no folder")

    def write(self, report: Report, takes: Sequence[Take]) -> list[Path]:
        """Write each, and return those that were."""
        made: list[tuple[Path, str]] = []
        if self.html is not None:
            from secondtake.cli.render.page import page

            made.append((self.html, page(report)))
        if self.markdown is not None:
            from secondtake.cli.render.report import markdown

            made.append((self.markdown, markdown(report)))
        if self.junit is not None:
            from secondtake.harness.acceptance.junit import of_takes

            made.append((self.junit, of_takes(takes, name=report.matrix)))
        for path, text in made:
            try:
                path.write_text(text, encoding="utf-8")
            except OSError as error:
                raise Unusable(f"{path} cannot be written: {error.strerror or error}") from error
        return [path for path, _ in made]


def file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--html`, `--markdown` and `--junit`, handed to the command as one `files`."""
    import functools

    @click.option("--html", type=_FILE, metavar="FILE", help="Write the report as one page that needs nothing else.")
    @click.option("--markdown", type=_FILE, metavar="FILE", help="Write it as Markdown, for a summary or an issue.")
    @click.option("--junit", type=_FILE, metavar="FILE", help="Write every take's checks as JUnit XML.")
    @functools.wraps(command)
    def with_files(*, html: Path | None, markdown: Path | None, junit: Path | None, **rest: Any) -> Any:
        return command(files=Files(html, markdown, junit), **rest)

    return with_files


def show(surface: Surface, report: Report, extra: dict[str, object]) -> None:
    """Print the report: the table and what belongs to it, or with `--json` one object that `extra` is part of."""
    from secondtake.cli.render import report as words

    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(as_line({**words.fields(report), **extra}))
        return
    from secondtake.cli.render.tables import print_table

    for line in words.head_lines(report):
        print(line)
    print_table(words.HEADINGS, words.rows(report))
    print()
    print_table(words.COLUMNS, words.column_rows(report))
    print()
    print_table(words.USED, words.used_rows(report))
    for line in words.tail_lines(report, again=surface.again):
        print(line)
