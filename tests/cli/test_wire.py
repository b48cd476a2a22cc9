"""Options of the commands that run a proxy."""

from __future__ import annotations

import pytest

from secondtake.cli.wire import PACES, SOCKETS
from secondtake.proxy.policy import Pace, Sockets
from tests.cli.scenes import Command


def test_the_choices_are_those_of_the_wire() -> None:
    """They are written out so that --help does not load the proxy."""
    assert set(PACES) == {str(pace) for pace in Pace}
    assert set(SOCKETS) == {str(choice) for choice in Sockets}


@pytest.mark.parametrize("url", ["web.example", "ftp://x", "http://", "http://x:99999", "http://[::1", "http://u:p@x"])
def test_a_route_that_leads_nowhere_is_refused_before_anything_runs(command: Command, url: str) -> None:
    """Issue 2, bad input: one line, usage, nothing begun."""
    ran = command("record", "x", "--route", f"web.example={url}", "--", "true")
    assert ran.code == 64
    assert ran.err.startswith("error: ")
    assert command("ls").out == ""
