"""The ordered log as rows to read."""

from __future__ import annotations

import pytest

from secondtake.cassettes.adapters.base import Json
from secondtake.cassettes.events import Event, EventKind
from secondtake.cli.render.events import HEADINGS, SHOWN_CHARACTERS, row

CASES: dict[EventKind, tuple[dict[str, Json], str]] = {
    EventKind.MODEL_REQUEST: ({"adapter": "anthropic", "turns": 1, "tools": ["run", "read"]}, "anthropic, 1 turn, 2 tools"),
    EventKind.MODEL_RESPONSE: (
        {
            "status": 200,
            "outcome": "answered",
            "answered": "exact",
            "stop": "end",
            "served": ["m", "m"],
            "usage": {"input": 3, "output": 2},
        },
        "200 answered, stop end, served by m, 3 in, 2 out, answered exact",
    ),
    EventKind.TOOL_CALL: ({"tool": "run", "arguments": None, "arguments_sha256": "ab"}, "run ab"),
    EventKind.TOOL_RESULT: (
        {"tool": "run", "exit_code": 2, "is_error": True, "call_exchange": None},
        "run failed, exit code 2, nobody called it",
    ),
    EventKind.RETRY: ({"of": 3, "attempt": 2, "after": "status 429"}, "attempt 2, after exchange 3: status 429"),
    EventKind.MISS: ({"kind": None, "method": "GET", "url": "https://x.example/"}, "miss: GET https://x.example/"),
    EventKind.STREAM_ERROR: ({"reason": "overloaded_error", "ended": "reset"}, "overloaded_error (reset)"),
    EventKind.SIGNAL: ({"signal": "fallback", "detail": "to m"}, "fallback: to m"),
    EventKind.UNREAD: ({"reason": "no adapter", "url": "https://x.example/"}, "no adapter: https://x.example/"),
    EventKind.MCP_CALL: ({"server": "git", "tool": "log", "arguments": '{"n":1}'}, 'git: log {"n":1}'),
    EventKind.MCP_RESULT: (
        {"server": "git", "tool": None, "method": "initialize", "is_error": True, "error": "no", "answered": "miss"},
        "git: initialize failed: no, answered miss",
    ),
    EventKind.STOP: ({"reason": "end"}, "end"),
    EventKind.START: ({"argv": ["agent", "fix it"]}, "agent 'fix it'"),
    EventKind.EXEC: (
        {"argv": ["git", "status"], "exit_code": 128, "mark": "agent-initiated"},
        "agent-initiated: git status, exit code 128",
    ),
    EventKind.ESCAPE: ({"kind": "tcp", "address": "10.0.0.1", "port": 443, "name": None}, "refused tcp to 10.0.0.1:443"),
    EventKind.EXIT: ({"exit_code": 0, "stopped": "max_calls 5"}, "exit code 0, stopped by max_calls 5"),
    EventKind.VERDICT: (
        {"outcome": "pass", "invalid": None, "reason": "all held", "control": "controlled"},
        "pass: all held; controlled",
    ),
}


@pytest.mark.parametrize("kind", EventKind)
def test_each_event_says_in_a_line_what_matters(kind: EventKind) -> None:
    """Issue 3.7: every kind of event can be read."""
    data, what = CASES[kind]
    cells = row(Event(kind, 0, 1_500_000, None if kind is EventKind.STOP else 4, "m", data))
    assert cells == ["1.5 s", "" if kind is EventKind.STOP else "4", kind.value, "m", what]
    assert len(cells) == len(HEADINGS)


def test_an_answer_that_never_came_is_said_to_be_none() -> None:
    """A cut stream has no status."""
    data: dict[str, Json] = {"status": None, "outcome": "infrastructure", "answered": "live"}
    assert row(Event(EventKind.MODEL_RESPONSE, 0, 0, 1, None, data))[3:] == ["", "no answer infrastructure"]


def test_a_long_line_is_cut() -> None:
    """Arguments may be a whole file."""
    cell = row(Event(EventKind.TOOL_CALL, 0, 0, 1, "m", {"tool": "write", "arguments": "x\n" * 1000}))[4]
    assert len(cell) == SHOWN_CHARACTERS
    assert "\n" not in cell
