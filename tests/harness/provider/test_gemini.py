"""Gemini against its documented shape."""

from __future__ import annotations

import json
from typing import Any

from secondtake.harness.provider.gemini import Gemini
from secondtake.harness.provider.script import Failure
from tests.harness.provider.streams import CALL, REPLY, TOOLS, WIRES, events


def test_geminis_stream_ends_with_calls_reason_and_usage() -> None:
    """No terminal event: the last answer holds the finish reason."""
    seen = [d for _, d in events(WIRES["gemini"], REPLY)]
    parts = [p for d in seen for p in d["candidates"][0]["content"]["parts"]]
    assert "".join(p.get("text", "") for p in parts) == REPLY.text
    assert [p["functionCall"]["args"] for p in parts if "functionCall" in p] == [dict(t.arguments) for t in TOOLS]
    assert ["finishReason" in d["candidates"][0] for d in seen] == [False] * (len(seen) - 1) + [True]
    assert {d["modelVersion"] for d in seen} == {"model-1"}
    assert seen[-1]["usageMetadata"]["totalTokenCount"] > seen[-1]["usageMetadata"]["promptTokenCount"]


def test_gemini_without_sse_is_one_json_array_in_pieces() -> None:
    """`streamGenerateContent` without `alt=sse`."""
    wire = Gemini(sse=False)
    pieces = wire.events(CALL, REPLY, "model-1")
    assert len(pieces) > 2
    assert [json.dumps(a) for a in json.loads(b"".join(pieces))] == [json.dumps(d) for _, d in events(WIRES["gemini"], REPLY)]
    broken = [*pieces[:2], wire.error_event(CALL, Failure(503, "busy"), 2)]
    assert json.loads(b"".join(broken))[-1]["error"]["status"] == "UNAVAILABLE"
    assert json.loads(wire.error_event(CALL, Failure(500), 0))[0]["error"]["code"] == 500


def test_geminis_error_says_how_long_to_wait() -> None:
    """PROVIDERS A2: `details[].retryDelay`."""
    body: Any = WIRES["gemini"].error(CALL, Failure(429, "quota", retry_after_s=7))
    assert body["error"]["status"] == "RESOURCE_EXHAUSTED"
    assert body["error"]["details"][0]["retryDelay"] == "7s"
