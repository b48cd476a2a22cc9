"""`doctor`: one handshake per tool."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from secondtake.harness import examination
from secondtake.proxy.handshakes import Result, Verdict
from tests.cli.scenes import Command


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> None:
    """An examination that is done."""

    def examine(_authority: object, environment: Callable[[int], Any], **_: object) -> list[Result]:
        assert environment(1)["HTTPS_PROXY"] == "http://127.0.0.1:1"
        return [
            Result("curl", Verdict.CAPTURED, "SSL_CERT_FILE", "", "/usr/bin/curl"),
            Result("java", Verdict.BYPASSED, None, "it said: \x1b[2J", "/usr/bin/java"),
        ]

    monkeypatch.setattr(examination, "examine", examine)


def test_each_tool_has_its_verdict(command: Command, found: None) -> None:
    """DESIGN 7: what would and would not be captured. What a tool printed is untrusted (C-14)."""
    ran = command("doctor")
    assert ran.code == 0
    assert ran.out.splitlines()[1].split() == ["curl", "captured", "SSL_CERT_FILE"]
    assert "it said: \\x1b[2J" in ran.out


def test_what_weakens_every_tool_is_mentioned(command: Command, found: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that switches verification off is left as it is, and said."""
    monkeypatch.setenv("NODE_TLS_REJECT_UNAUTHORIZED", "0")
    lines = [json.loads(line) for line in command("doctor", "--json").out.splitlines()]
    assert [line["event"] for line in lines] == ["tool", "tool", "surroundings"]
    assert any("NODE_TLS_REJECT_UNAUTHORIZED" in note for note in lines[-1]["notes"])
    assert sum(lines[-1]["trusted"].values()) > 0
