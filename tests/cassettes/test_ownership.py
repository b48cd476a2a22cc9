"""What a live answer gave, so that it is known again in the requests that follow."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.eventstream import encode
from secondtake.cassettes.exchange import Fields
from secondtake.cassettes.foreign import foreign, known
from secondtake.cassettes.ownership import Given
from tests.cassettes.adapters.scenes import AMZ_FIELDS, JSON_FIELDS, SSE_FIELDS, sse
from tests.cassettes.test_foreign import said


def given_by(adapter: str, content: bytes, fields: Fields, step: int = 1 << 20) -> frozenset[str]:
    reader = Given(adapter, 200, fields)
    for at in range(0, len(content), step):
        reader.receive(content[at : at + step])
    reader.receive(b"")
    return reader.found()


def event(kind: str, **more: Any) -> tuple[str, Any]:
    return kind, {"type": kind, **more}


MESSAGES = sse(
    event("message_start", message={"id": "msg_1", "model": "m", "content": []}),
    event("content_block_start", index=0, content_block={"type": "thinking", "thinking": "", "signature": ""}),
    event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "h"}),
    event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "m"}),
    event("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "SI"}),
    event("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "G"}),
    event("content_block_start", index=1, content_block={"type": "redacted_thinking", "data": "CIPHER"}),
    event("message_stop"),
)
RESPONSES = sse(
    event("response.output_item.done", output_index=0, item={"type": "reasoning", "id": "rs_1", "encrypted_content": "CIPHER"}),
    event("response.completed", response={"id": "resp_1", "output": []}),
)
GEMINI = sse(("", {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f"}, "thoughtSignature": "SIG"}]}}]}))
CHAT = sse(
    ("", {"choices": [{"delta": {"reasoning_content": "h"}}]}),
    ("", {"choices": [{"delta": {"reasoning_content": "m"}}]}),
    ("", b"[DONE]"),
)
INVOKE = b"".join(
    encode(
        {":message-type": "event", ":event-type": "chunk"},
        json.dumps({"bytes": base64.b64encode(json.dumps(data).encode()).decode()}).encode(),
    )
    for data in (
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "SIG"}},
        {"type": "message_stop"},
    )
)
CONVERSE = b"".join(
    encode({":message-type": "event", ":event-type": "contentBlockDelta"}, json.dumps(data).encode())
    for data in (
        {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "hm"}}},
        {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "SIG"}}},
    )
)


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
@pytest.mark.parametrize(
    ("adapter", "content", "fields", "tokens"),
    [
        ("anthropic", MESSAGES, SSE_FIELDS, {"msg_1", "hm", "SIG", "CIPHER"}),
        ("openai-responses", RESPONSES, SSE_FIELDS, {"rs_1", "CIPHER", "resp_1"}),
        ("gemini", GEMINI, SSE_FIELDS, {"SIG"}),
        ("openai-chat", CHAT, SSE_FIELDS, {"hm"}),
        ("bedrock", INVOKE, AMZ_FIELDS, {"SIG"}),
        ("bedrock", CONVERSE, AMZ_FIELDS, {"SIG", "hm"}),
        (
            "anthropic",
            b'{"id":"msg_1","content":[{"type":"thinking","thinking":"hm","signature":"SIG"}]}',
            JSON_FIELDS,
            {"msg_1", "hm", "SIG"},
        ),
    ],
    ids=["messages", "responses", "gemini", "chat", "invoke", "converse", "whole"],
)
def test_tokens_are_found_however_an_answer_is_cut(adapter: str, content: bytes, fields: Fields, tokens: set[str], step: int) -> None:
    """A-11: joined where the stream gives them in pieces."""
    assert given_by(adapter, content, fields, step) >= {known(token) for token in tokens}


def test_what_the_live_model_thought_is_not_foreign_in_the_next_request() -> None:
    """A-11: the way round, from answer to request; what the recorded model thought still is."""
    own = given_by("anthropic", MESSAGES, SSE_FIELDS)
    history = said(
        {"type": "thinking", "thinking": "hm", "signature": "SIG"}, {"type": "thinking", "thinking": "x", "signature": "RECORDED"}
    )
    assert [one.tokens for one in foreign(history, own)] == [("RECORDED",)]


def test_only_digests_are_remembered() -> None:
    """A-11: thinking is private text."""
    assert all(len(one) == 64 for one in given_by("anthropic", MESSAGES, SSE_FIELDS))
    assert given_by("anthropic", b"", SSE_FIELDS) == frozenset()


@given(st.binary(max_size=80), st.sampled_from([JSON_FIELDS, SSE_FIELDS, AMZ_FIELDS]))
def test_no_answer_raises(content: bytes, fields: Fields) -> None:
    """A-08: what cannot be read gave nothing."""
    given_by("anthropic", content, fields)
