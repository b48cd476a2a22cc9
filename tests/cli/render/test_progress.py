"""A sign of life."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from secondtake.cli.render.progress import working


@dataclass
class Speaking:
    """Whether prose is wanted."""

    quiet: bool


@pytest.mark.parametrize("quiet", [True, False])
def test_a_pipe_gets_no_spinner(quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """DESIGN 7: progress is for a terminal; a log stays clean."""
    with working(Speaking(quiet), "verifying \x1b[2J"):
        pass
    assert capsys.readouterr() == ("", "")
