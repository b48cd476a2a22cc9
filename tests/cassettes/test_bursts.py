"""What an agent fetches for itself in the background."""

from __future__ import annotations

import pytest

from secondtake.cassettes.bursts import burst_of
from secondtake.cassettes.exchange import Request
from secondtake.cassettes.memory import fields

EMBEDDED = ("User-Agent: npm/undefined node/v24.3.0 linux x64 workspaces/false", "pacote-req-type: packument")


def request(*lines: str, method: str = "GET") -> Request:
    return Request(method, "https", "registry.example", 443, b"/react", fields=fields(*lines))


def test_an_installer_inside_an_agent_is_told_from_npm() -> None:
    """AGENTS 3, opencode: the agent's own burst varies; an `npm install` in its shell is content."""
    assert burst_of(request(*EMBEDDED)) is not None
    assert burst_of(request("User-Agent: npm/11.19.1 node/v20.20.2 linux x64 workspaces/false", EMBEDDED[1])) is None


@pytest.mark.parametrize("lines", [EMBEDDED[:1], EMBEDDED[1:], ()])
def test_every_field_must_be_there(lines: tuple[str, ...]) -> None:
    """A rule that forgives too much hides a miss."""
    assert burst_of(request(*lines)) is None


def test_only_reading_is_a_burst() -> None:
    """What is sent is never side traffic."""
    assert burst_of(request(*EMBEDDED, method="POST")) is None
