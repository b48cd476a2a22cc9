"""What is said after a retake."""

from __future__ import annotations

import json

import pytest

from secondtake.cassettes.exchange import Answered, Channel
from secondtake.cli.render.objects import as_line
from secondtake.cli.render.retake import announced_lines, call_line, retaken_fields, retaken_lines, started_line, used_line
from secondtake.harness.results import LiveCall, Missed, Problem, Retaken, Unplayed, Used, Verdict

CALL = LiveCall(1, 1, "anthropic", ("old",), "new-20260101", ("new-20260101",), "medium", True, 200, False, None, False, False, None)


def retaken(*calls: LiveCall, **changed: object) -> Retaken:
    """A retake of `incident` with these live calls."""
    values: dict[str, object] = {
        "name": "incident-take-1",
        "parent": "incident",
        "root": "ab" * 32,
        "agent_status": 0,
        "requests": 3,
        "answered": {Answered.LIVE: len(calls), Answered.EXACT: 1},
        "calls": calls,
        "unswapped": (),
        "stopped": None,
        "labels": (),
        "misses": (),
        "unplayed": (),
        "elapsed_us": 1_500_000,
        **changed,
    }
    return Retaken(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (CALL, "1  old → new-20260101 → new-20260101  200, medium"),
        (
            LiveCall(2, 4, "x", (), "p", ("cheap",), "strong", False, 200, True, None, False, False, None),
            "4  ? → p → cheap  200, strong, MISMATCH",
        ),
        (
            LiveCall(2, 4, "x", ("a", "b"), "p", (), "unverified", False, None, False, "no answer in time", True, False, None),
            "4  a, b → p → not named  no answer, unverified, infrastructure, cut",
        ),
    ],
)
def test_a_call_says_what_was_asked_sent_and_served(call: LiveCall, line: str) -> None:
    """A-06: requested, forwarded, served, and the strength of the proof."""
    assert call_line(call) == line


def test_a_clean_retake_says_what_left_and_what_to_do_next() -> None:
    """DESIGN 5."""
    lines = list(retaken_lines(retaken(CALL, labels=("unpinned: x",)), again=" --store s"))
    assert lines[1] == "retook incident as incident-take-1: 3 requests in 1.5 s (unpinned: x)"
    assert "model calls that left: 1" in lines
    assert lines[-1] == "next: secondtake events incident-take-1 --store s"
    assert started_line("t", "incident", ("gateway",)) == "retake of incident, kept as t (gateway)"


def test_many_calls_are_counted_and_misses_are_named() -> None:
    """A take of a hundred calls is a screen, not a hundred lines."""
    miss = Missed("new-resource", "GET", "https://web.example/\x1b", Channel.WEB, 2, ("path",), "not recorded")
    row = Unplayed(3, "GET", "https://web.example/", Channel.WEB)
    result = retaken(*[CALL] * 12, misses=(miss,), unplayed=(row,), problems=(Problem("x", "wrong", "mend it", Verdict.DIVERGED),))
    text = "\n".join(retaken_lines(result, again=""))
    assert "… and 2 more" in text
    assert "miss (new-resource): GET https://web.example/" in text
    assert "\x1b" not in text
    assert "not asked for this time: 1 recorded exchange beside model calls" in text
    assert "not clean: wrong\n  hint: mend it" in text
    assert "next:" not in text


def test_the_object_has_every_call_with_its_proof() -> None:
    """DESIGN 7: --json, versioned."""
    wrong = LiveCall(2, 2, "x", ("a",), "p", ("cheap",), "strong", False, 200, True, None, False, False, None)
    said = json.loads(as_line(retaken_fields(retaken(CALL, wrong))))
    assert (said["version"], said["valid"], said["mismatches"], said["infrastructure"]) == (1, False, 1, 0)
    assert [call["served"] for call in said["model_calls"]] == [["new-20260101"], ["cheap"]]
    assert sum(said["answered"].values()) == said["requests"]


def test_in_place_it_says_first_what_was_asked_for_then() -> None:
    """DESIGN 6: what the recorded calls did is known; what another model asks for is not."""
    lines = list(announced_lines(tuple(f"{number} run make\x1b" for number in range(12))))
    assert lines[0].startswith("the recorded model asked for 12 tool calls; another one may ask for others")
    assert lines[-1] == "  … and 2 more"
    assert len(lines) == 12
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize(
    ("used", "line"),
    [
        (Used(1234), "1,234 tokens"),
        (Used(10, 1, 0.25, (), True), "10 tokens and those of 1 answer that did not say, cost 0.2500"),
        (Used(10, 0, None, ("new",), True), "10 tokens, cost unknown (new)"),
    ],
)
def test_what_was_spent_is_said_and_what_is_unknown_too(used: Used, line: str) -> None:
    """Issue 3.5: unknown prices are shown as unknown."""
    assert used_line(used) == line
