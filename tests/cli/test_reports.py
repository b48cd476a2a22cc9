"""Where a report goes."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from secondtake.cli.exits import Unusable
from secondtake.cli.options import Place, Surface
from secondtake.cli.reports import Files, show
from secondtake.harness.report import report
from tests.harness.matrix.scenes import arm_takes, design

MADE = report([*arm_takes("old", "ssp"), *arm_takes("new", "ppp")], design(looks=(3,)))
TAKES = [one.take for row in MADE.rows for one in row.takes]


def test_each_file_that_is_asked_for_is_written(tmp_path: Path) -> None:
    """Issue 6: HTML, Markdown, and JUnit of every take."""
    files = Files(tmp_path / "r.html", tmp_path / "r.md", tmp_path / "r.xml")
    files.check()
    assert files.write(MADE, TAKES) == [files.html, files.markdown, files.junit]
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")
    assert "| model | repeats | pass rate |" in (tmp_path / "r.md").read_text()
    assert len(ElementTree.parse(tmp_path / "r.xml").getroot()) == 6
    assert Files().write(MADE, TAKES) == []


def test_a_file_that_cannot_be_written_is_told_before_anything_is_run(tmp_path: Path) -> None:
    """Not after the money is spent."""
    with pytest.raises(Unusable, match="is no folder"):
        Files(html=tmp_path / "missing" / "r.html").check()
    with pytest.raises(Unusable, match="cannot be written"):
        Files(html=tmp_path).write(MADE, TAKES)


def test_a_person_gets_tables_and_a_program_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """DESIGN 7: --json, one versioned object."""
    place = Place(tmp_path, asked=False, default=False)
    show(Surface(place, json=False, quiet=False), MADE, {"exit_code": 0})
    text = capsys.readouterr().out
    assert text.count("\nmodel ") == 3
    show(Surface(place, json=True, quiet=False), MADE, {"exit_code": 0})
    said = json.loads(capsys.readouterr().out)
    assert (said["version"], said["exit_code"], said["headline"]) == (1, 0, MADE.headline)
