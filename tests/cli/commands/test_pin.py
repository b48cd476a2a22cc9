"""`pin`: what a model ID promises."""

from __future__ import annotations

import json

import pytest

from tests.cli.scenes import Command


def test_a_held_pin_is_explained_and_exits_0(command: Command) -> None:
    """Issue 3.2: class, reason, table version."""
    ran = command("pin", "claude-opus-4-6", "--on", "2026-11-30")
    assert ran.code == 0
    assert ran.out.startswith("claude-opus-4-6: snapshot, taken\n  why        ")
    assert "  table      anthropic 2" in ran.out


def test_an_alias_exits_64_with_dated_candidates_and_its_retirement(command: Command) -> None:
    """A-05: refused, as `retake` would, with what to take instead; DESIGN 5: retirement dates included."""
    ran = command("pin", "claude-sonnet-4-5", "--on", "2026-11-30", "--json")
    said = json.loads(ran.out)
    assert ran.code == said["exit_code"] == 64
    assert (said["class"], said["held"], said["provider"], said["guessed"]) == ("alias", False, "anthropic", True)
    assert "claude-sonnet-4-6" in said["candidates"]
    assert (said["retires"], said["retired"]) == ("2026-11-30", True)
    assert "  instead    claude-sonnet" in command("pin", "claude-sonnet-4-5", "--on", "2026-11-30").out


def test_retirement_is_judged_on_the_day_asked_about(command: Command) -> None:
    """The day decides; without it, today's."""
    assert json.loads(command("pin", "claude-sonnet-4-5", "--on", "2026-11-29", "--json").out)["retired"] is False
    assert "  retires    2026-11-30" in command("pin", "claude-sonnet-4-5", "--on", "2026-11-29").out


@pytest.mark.parametrize(("identity", "kind"), [("openrouter/auto", "router"), ("gpt-4o-latest", "alias")])
def test_what_moves_is_refused(command: Command, identity: str, kind: str) -> None:
    """Issue 3.2: alias, router and deployment."""
    ran = command("pin", identity, "--json")
    assert (ran.code, json.loads(ran.out)["class"]) == (64, kind)


def test_a_provider_that_is_named_decides(command: Command) -> None:
    """On Azure the name is the deployment's, whatever it looks like."""
    said = json.loads(command("pin", "gpt-4o-2024-08-06", "--provider", "azure-openai", "--json").out)
    assert (said["class"], said["guessed"]) == ("deployment", False)


def test_a_provider_without_a_table_is_bad_input(command: Command) -> None:
    """Errors say what comes closest."""
    ran = command("pin", "x", "--provider", "nobody")
    assert ran.code == 64
    assert "error: no pin table for `nobody`\n\nhint: known: anthropic, " in ran.err


def test_an_id_cannot_steer_the_terminal(command: Command) -> None:
    """What is typed may be pasted from a recording."""
    assert "\x1b" not in command("pin", "x\x1b]0;evil\x07").out
