"""A sign of life."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from secondtake.cli.render import progress
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


def test_a_sign_can_end_before_its_body_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent's own output begins when the sign has ended; being told twice is no fault."""
    moments: list[str] = []

    @contextmanager
    def shown(_surface: object, what: str) -> Iterator[None]:
        moments.append(f"begins: {what}")
        yield
        moments.append("ends")

    monkeypatch.setattr(progress, "working", shown)
    with progress.until_told(Speaking(quiet=False), "restoring") as over:
        over()
        moments.append("the agent speaks")
        over()
    assert moments == ["begins: restoring", "ends", "the agent speaks"]
