"""What a recorded model asks the agent to do."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from secondtake.cassettes.content import encode
from secondtake.cassettes.exchange import Answer, Channel, Fields, Request
from secondtake.cassettes.memory import MemoryCassette
from secondtake.harness.toolcalls import UNREADABLE, Asked, tool_calls

JSON: Fields = ((b"content-type", b"application/json"),)
ASK = json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}).encode()


def answer(*blocks: Mapping[str, object]) -> bytes:
    """A Messages answer of these content blocks."""
    return json.dumps({"type": "message", "role": "assistant", "model": "m", "content": blocks, "stop_reason": "end_turn"}).encode()


RUN = {"type": "tool_use", "id": "toolu_1", "name": "run", "input": {"command": "rm -r build"}}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
SAYS = {"type": "text", "text": "done"}


def cassette(
    content: bytes,
    *,
    fields: Fields = JSON,
    status: int = 200,
    channel: Channel = Channel.MODEL,
    details: Mapping[str, object] | None = None,
) -> MemoryCassette:
    """One call to a model, answered with `content`."""
    made = MemoryCassette()
    request = Request("POST", "https", "api.provider.example", 443, b"/v1/messages", fields=JSON)
    answered = Answer(status, fields=fields)
    made.record(request, answered, sent=ASK, received=content, channel=channel, adapter="anthropic", details=details)
    return made


def test_tool_calls_are_named_with_their_arguments() -> None:
    """DESIGN 6: --in-place first prints what the recorded tool calls would do."""
    assert list(tool_calls(cassette(answer(SAYS, RUN)))) == [Asked(1, "run", '{"command":"rm -r build"}')]
    assert str(next(tool_calls(cassette(answer(RUN))))) == '1 run {"command":"rm -r build"}'


def test_an_answer_in_a_content_coding_is_read() -> None:
    """Models answer gzip to a client that asks for it."""
    assert [call.name for call in tool_calls(cassette(encode(answer(RUN), ("gzip",)), fields=(*JSON, (b"content-encoding", b"gzip"))))] == [
        "run"
    ]


@pytest.mark.parametrize(
    "kept",
    [
        cassette(answer(SAYS)),
        cassette(answer(SEARCH, SAYS)),
        cassette(b'{"type":"error","error":{"type":"overloaded_error","message":"x"}}', status=529),
        cassette(b"<html>", fields=(), channel=Channel.WEB),
    ],
    ids=["text only", "run by the provider", "an error", "not a model"],
)
def test_what_asks_the_agent_for_nothing_is_no_tool_call(kept: MemoryCassette) -> None:
    """DESIGN 6: a recording without model tool calls plays where it stands."""
    assert list(tool_calls(kept)) == []


def test_an_answer_that_cannot_be_read_counts_as_a_tool_call() -> None:
    """A replay cannot hurt: refusing too much hurts nobody."""
    broken = cassette(b"\x1f\x8bnot gzip at all", fields=(*JSON, (b"content-encoding", b"br")))
    assert [call.name for call in tool_calls(broken)] == [UNREADABLE]


def test_a_body_that_the_redactor_decoded_is_read_as_it_is_kept() -> None:
    """DESIGN 4: a compressed body with a hit is kept decoded; its label still says gzip."""
    kept = cassette(answer(RUN), fields=(*JSON, (b"content-encoding", b"gzip")), details={"response_kept": "decoded"})
    assert [call.name for call in tool_calls(kept)] == ["run"]
