"""Tables."""

from __future__ import annotations

import time

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


def test_wide_characters_take_two_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """UAX 11: the next column stands where it should."""
    print_table(["name", "x"], [["日本", "1"], ["e\u0301", "2"], ["abcd", "3"]])
    assert capsys.readouterr().out == "name  x\n日本  1\ne\u0301     2\nabcd  3\n"


def test_a_large_cassette_is_listed_without_waiting(capsys: pytest.CaptureFixture[str]) -> None:
    """50,000 rows, which rich needs a minute for; the bound is far above what it takes."""
    begun = time.process_time()
    print_table([">seq", "channel", "url"], ([str(number), "web", f"https://web.example/{number}"] for number in range(50_000)))
    assert time.process_time() - begun < 5
    assert len(capsys.readouterr().out.splitlines()) == 50_001


def test_no_rows_is_a_heading(capsys: pytest.CaptureFixture[str]) -> None:
    """An empty cassette shows its columns."""
    print_table(["a", "b"], [])
    assert capsys.readouterr().out == "a  b\n"
