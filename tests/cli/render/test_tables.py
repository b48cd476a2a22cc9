"""Tables."""

from __future__ import annotations

import pytest

from secondtake.cli.render.tables import print_table


def test_cells_are_escaped_and_markup_stays_text(capsys: pytest.CaptureFixture[str]) -> None:
    """C-14: a name may hold rich markup, an emoji code or an escape sequence."""
    print_table(["name", ">size"], [["[bold]x[/] :smile:", "1"], ["a\x1b[2Jb\nc", "23"]])
    assert capsys.readouterr().out == "name                size\n[bold]x[/] :smile:     1\na\\x1b[2Jb\\nc          23\n"


def test_nothing_is_cut_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """What a script reads is whole."""
    print_table(["url"], [["https://web.example/" + "x" * 5000]])
    assert len(capsys.readouterr().out.splitlines()[1]) == 5020


def test_no_rows_is_a_heading(capsys: pytest.CaptureFixture[str]) -> None:
    """An empty cassette shows its columns."""
    print_table(["a", "b"], [])
    assert capsys.readouterr().out == "a  b\n"
