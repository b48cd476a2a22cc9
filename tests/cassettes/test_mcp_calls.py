"""What one exchange with an MCP server says."""

from __future__ import annotations

import json

import pytest

from secondtake.cassettes.event import Event, EventKind
from secondtake.cassettes.events import contents, events
from secondtake.cassettes.exchange import Answer, Channel, Request
from secondtake.cassettes.mcp_calls import messages
from secondtake.cassettes.memory import MemoryCassette

ASKED = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "log", "arguments": {"n": 1}}}
RESULT = {
    "jsonrpc": "2.0",
    "id": 7,
    "result": {"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]},
}


def recorded(sent: bytes, received: bytes, media: bytes = b"application/json", scheme: str = "https") -> list[Event]:
    cassette = MemoryCassette()
    request = Request("POST", scheme, "mcp.example", 443, b"/mcp", fields=((b"content-type", b"application/json"),))
    cassette.record(request, Answer(200, fields=((b"content-type", media),)), sent=sent, received=received, channel=Channel.MCP)
    return list(events((cassette.exchange(row.seq) for row in cassette.rows), contents(cassette)))


@pytest.mark.parametrize(
    "received",
    [
        json.dumps(RESULT).encode(),
        json.dumps([RESULT]).encode(),
        b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/progress"}\n\ndata: ' + json.dumps(RESULT).encode() + b"\n\n",
        b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}\n' + json.dumps(RESULT).encode() + b"\n",
    ],
    ids=["one message", "a batch", "server-sent events", "lines"],
)
def test_a_tool_call_and_its_result_are_events_however_they_are_carried(received: bytes) -> None:
    """Issue 4.6: tool calls over MCP are in the log, of a kind of their own."""
    call, result = recorded(json.dumps(ASKED).encode(), received)
    assert (call.event, result.event) == (EventKind.MCP_CALL, EventKind.MCP_RESULT)
    assert call.data["arguments"] == '{"n":1}'
    for one in (call, result):
        assert (one.data["server"], one.data["method"], one.data["tool"], one.data["call_id"]) == ("mcp.example", "tools/call", "log", 7)
    assert result.payloads[str(result.data["stdout_sha256"])] == b"a\nb"
    assert result.data["is_error"] is False


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ({"jsonrpc": "2.0", "id": 7, "error": {"code": -32000, "message": "no such repository"}}, "no such repository"),
        ({"jsonrpc": "2.0", "id": 7, "result": {"isError": True, "content": [{"type": "text", "text": "fatal"}]}}, None),
    ],
)
def test_a_call_that_failed_says_so(reply: object, error: str | None) -> None:
    """MCP, tools: an error of the protocol, and one that the tool itself tells of."""
    _, result = recorded(json.dumps(ASKED).encode(), json.dumps(reply).encode())
    assert (result.data["is_error"], result.data["error"]) == (True, error)


def test_what_is_no_request_and_no_reply_is_no_event() -> None:
    """Notifications and what is no JSON-RPC are not calls; nothing that a stranger recorded ends the log."""
    assert recorded(b'{"jsonrpc":"2.0","method":"notifications/initialized"}', b"") == []
    assert recorded(b"\xff{]", b'[1, {"jsonrpc": "2.0", "id": {}, "method": 4}]') == []
    assert [one.data["tool"] for one in recorded(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}', b"")] == [None]


def test_a_body_that_cannot_be_had_says_nothing() -> None:
    """A body over the limit is not read."""
    cassette = MemoryCassette()
    cassette.record(Request("POST", "https", "mcp.example", 443, b"/"), Answer(200), channel=Channel.MCP)
    assert list(messages(cassette.exchange(1), None, None)) == []
