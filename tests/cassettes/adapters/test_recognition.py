"""Telling model calls from all other traffic."""

from __future__ import annotations

import json
import timeit
from typing import Any

import pytest

from secondtake.cassettes import adapters
from secondtake.cassettes.exchange import Request
from tests.cassettes.adapters.corpus import CHAT, CLAUDE, CONVERSE, GEMINI, MESSAGES, MODEL_CALLS, RESPONSES, others, post


@pytest.mark.parametrize(
    ("host", "path", "body", "adapter", "kind"), MODEL_CALLS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_row_of_the_table_is_recognised(host: str, path: str, body: dict[str, Any], adapter: str, kind: str) -> None:
    """A-01: zero misses; and only completions and counts are calls that a retake may forward (T-P4)."""
    request, content = post(host, path, body)
    call = adapters.classify(request, content)
    assert call is not None
    assert (call.adapter, call.kind) == (adapter, kind)
    assert adapters.recognise(request, content) == (adapter if kind in ("completion", "count") else None)


def test_nothing_else_is_recognised() -> None:
    """A-01: zero false positives over telemetry, logins, model lists, package indexes, git and look-alikes."""
    requests = others()
    assert len(requests) >= 200
    wrong = [(request.url, content) for request, content in requests if adapters.classify(request, content) is not None]
    assert wrong == []


@pytest.mark.parametrize(
    ("path", "body", "adapter", "required"),
    [
        ("/any", GEMINI, "gemini", ["contents"]),
        ("/x/model/a.b/converse", CONVERSE, "bedrock", ["messages"]),
        ("/any", MESSAGES, "anthropic", ["messages", "max_tokens"]),
        ("/v1/messages", MESSAGES, "anthropic", ["messages", "max_tokens"]),
        ("/any", CLAUDE, "anthropic", ["messages", "max_tokens", "anthropic_version"]),
        ("/any", RESPONSES, "openai-responses", ["model", "input"]),
        ("/any", CHAT, "openai-chat", ["model", "messages"]),
        ("/v1/chat/completions", CHAT, "openai-chat", ["model", "messages"]),
        ("/api/chat", CHAT, "ollama", ["model", "messages"]),
        ("/api/generate", {"model": "m", "prompt": "x"}, "ollama", ["model", "prompt"]),
    ],
)
def test_an_unlisted_host_is_recognised_by_shape_and_not_without_a_required_key(
    path: str, body: dict[str, Any], adapter: str, required: list[str]
) -> None:
    """A-02. A Messages body without `max_tokens` still has Chat's shape; it is then no Messages call."""
    assert adapters.recognise(*post("gate.example", path, body)) == adapter
    for key in required:
        rest = {name: value for name, value in body.items() if name != key}
        found = adapters.recognise(*post("gate.example", path, rest))
        assert found == ("openai-chat" if (path, key) == ("/any", "max_tokens") and "model" in body else None)


def test_a_host_alone_is_never_enough() -> None:
    """DESIGN 5: a host name is a hint only."""
    for host in ("api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com"):
        for path in ("/", "/v1/other", "/v1/models"):
            assert adapters.classify(*post(host, path, {"model": "m"})) is None
            assert adapters.classify(post(host, path, {})[0], None) is None


def test_an_escaped_key_or_a_lone_surrogate_does_not_hide_a_call() -> None:
    """A-03: the same JSON, spelt otherwise."""
    request = Request("POST", "https", "gate.example", 443, b"/any")
    assert adapters.recognise(request, b'{"mod\\u0065l":"m","m\\u0065ssages":[{"role":"user","content":"\\ud800"}]}') == "openai-chat"
    assert adapters.recognise(request, b"\xef\xbb\xbf" + json.dumps(CHAT).encode()) == "openai-chat"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (b"/v1/responses", True),
        (b"/backend-api/codex/responses?x=1", True),
        (b"/v1/realtime?model=m", True),
        (b"/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent", True),
        (b"/socket", False),
        (b"/v1/messages", False),
    ],
)
def test_a_websocket_to_a_model_is_told_from_others(path: bytes, expected: bool) -> None:
    """T-H1: these upgrades get 426."""
    upgrade = ((b"Connection", b"Upgrade"), (b"Upgrade", b"WebSocket"))
    assert adapters.upgrades_to_model(Request("GET", "https", "h.example", 443, path, fields=upgrade)) is expected
    assert adapters.upgrades_to_model(Request("GET", "https", "h.example", 443, path)) is False
    h2 = ((b":protocol", b"websocket"),)
    assert adapters.upgrades_to_model(Request("CONNECT", "https", "h.example", 443, path, fields=h2)) is expected


def test_a_get_costs_next_to_nothing() -> None:
    """DESIGN 8: under 5 microseconds; the best of several rounds, since the machine is shared."""
    request = Request("GET", "https", "index.example", 443, b"/simple/requests/")
    adapters.recognise(request, None)
    assert min(timeit.repeat(lambda: adapters.recognise(request, None), number=200, repeat=20)) / 200 < 5e-6


def test_the_table_of_hosts_has_a_version() -> None:
    """A-13: stamped in each run's envelope."""
    assert adapters.hosts_version().startswith("20")
