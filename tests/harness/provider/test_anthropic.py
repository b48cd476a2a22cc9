"""Anthropic Messages against its documented shape."""

from __future__ import annotations

import json

from secondtake.harness.provider.script import Reply
from tests.harness.provider.streams import CALL, REPLY, WIRES, assembled_anthropic, events


def test_anthropics_stream_assembles_to_its_whole_answer() -> None:
    """Text, two parallel tool calls, stop reason and usage."""
    whole = json.loads(json.dumps(WIRES["anthropic"].whole(CALL, REPLY, "model-1")))
    assert assembled_anthropic(REPLY) == whole
    assert [b["type"] for b in whole["content"]] == ["text", "tool_use", "tool_use"]
    assert whole["content"][1]["input"] == {"command": "ls 'é'"}
    assert whole["stop_reason"] == "tool_use"
    names = [n for n, _ in events(WIRES["anthropic"], REPLY)]
    assert names[:3] == ["message_start", "content_block_start", "ping"]
    assert names[-2:] == ["message_delta", "message_stop"]


def test_fifty_pieces_are_fifty_deltas() -> None:
    """Issue 2 asks for a stream of fifty events: the script says how many deltas there are."""
    reply = Reply("a" * 120, pieces=50)
    assert sum(n == "content_block_delta" for n, _ in events(WIRES["anthropic"], reply)) == 50
    assert len(Reply("ab", pieces=50).text_pieces()) == 50
