"""Keys that a model spells out over the events of its answer."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secondtake.cassettes.deltas import threads
from secondtake.cassettes.exchange import Fields, Side
from secondtake.cassettes.redact import Known, Redactor

KEY = "sk-ant-api03-R2D2c3poBB8xyzQm9vS2VlcGVyMTIzNDU2Nzg5MGFiY2RlZg-AA"
SSE: Fields = ((b"Content-Type", b"text/event-stream; charset=utf-8"),)

type Format = Callable[[list[str]], list[dict[str, object]]]


def anthropic_text(pieces: list[str]) -> list[dict[str, object]]:
    return [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}} for piece in pieces]


def anthropic_tool(pieces: list[str]) -> list[dict[str, object]]:
    """Arguments are JSON in a string, in pieces."""
    found: list[dict[str, object]] = []
    for piece in pieces:
        delta = {"type": "input_json_delta", "partial_json": json.dumps(piece)[1:-1]}
        found.append({"type": "content_block_delta", "index": 1, "delta": delta})
    return found


def anthropic_thinking(pieces: list[str]) -> list[dict[str, object]]:
    return [{"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": piece}} for piece in pieces]


def chat_text(pieces: list[str]) -> list[dict[str, object]]:
    return [{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]


def chat_tool(pieces: list[str]) -> list[dict[str, object]]:
    return [
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 2, "function": {"arguments": json.dumps(piece)[1:-1]}}]}}]}
        for piece in pieces
    ]


def responses_text(pieces: list[str]) -> list[dict[str, object]]:
    named = {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0}
    return [{**named, "delta": piece, "sequence_number": number} for number, piece in enumerate(pieces)]


def responses_tool(pieces: list[str]) -> list[dict[str, object]]:
    return [
        {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 1, "delta": piece, "sequence_number": n}
        for n, piece in enumerate(pieces)
    ]


def gemini_text(pieces: list[str]) -> list[dict[str, object]]:
    """The last event has a number that the others have not."""
    made: list[dict[str, object]] = [{"candidates": [{"content": {"parts": [{"text": piece}], "role": "model"}}]} for piece in pieces]
    made[-1]["candidates"][0]["index"] = 0  # type: ignore[index]
    return made


FORMATS = [
    anthropic_text, anthropic_tool, anthropic_thinking, chat_text, chat_tool, responses_text, responses_tool, gemini_text,
]  # fmt: skip


def sse(events: list[dict[str, object]]) -> bytes:
    return b"".join(b"event: x\r\ndata: " + json.dumps(event).encode() + b"\r\n\r\n" for event in events) + b"data: [DONE]\n\n"


def texts(body: bytes) -> str:
    """What a client puts together."""

    def strings(value: object) -> Iterator[str]:
        if isinstance(value, dict):
            for name, inner in value.items():
                if name in ("text", "partial_json", "thinking", "content", "arguments", "delta") and isinstance(inner, str):
                    yield inner
                else:
                    yield from strings(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from strings(inner)

    events = [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: {")]
    return "".join(text for event in events for text in strings(event))


def redactor() -> Redactor:
    return Redactor([Known("anthropic-api-key", KEY.encode(), "env:ANTHROPIC_API_KEY")], key=b"k" * 32)


def cut(text: str, step: int) -> list[str]:
    return [text[at : at + step] for at in range(0, len(text), step)]


@pytest.mark.parametrize("made", FORMATS)
@pytest.mark.parametrize("step", [1, 3, 40, 64])
def test_a_key_in_pieces_is_hidden_in_each(made: Format, step: int) -> None:
    """DESIGN 4, across stream deltas: one placeholder over the same pieces; every length and every other byte stays."""
    body = sse(made(["The key is ", *cut(KEY, step), " indeed."]))
    kept = redactor().body(body, SSE, Side.RESPONSE)
    whole = redactor().body(sse(made([KEY])), SSE, Side.RESPONSE)
    assert KEY not in texts(kept.content)
    assert len(kept.content) == len(body)
    assert texts(kept.content) == f"The key is {texts(whole.content)} indeed."
    changed = [at for at, (before, after) in enumerate(zip(body, kept.content, strict=True)) if before != after]
    assert all(any(one.start <= at < one.stop for one in kept.redactions) for at in changed)
    again = redactor().body(kept.content, SSE, Side.RESPONSE)
    assert (again.content, again.redactions) == (kept.content, ())


def test_two_texts_that_alternate_are_kept_apart() -> None:
    """Two choices, and two blocks, told in turns."""
    first, second = cut(KEY, 5), cut("nothing to see here, " * 4, 5)
    chunks: list[dict[str, object]] = [
        {"choices": [{"index": number, "delta": {"content": piece}}]}
        for pair in zip(first, second, strict=False)
        for number, piece in enumerate(pair)
    ]
    kept = redactor().body(sse(chunks), SSE, Side.RESPONSE)
    assert len(kept.redactions) == len(first)
    assert not any(piece in texts(kept.content) for piece in first[3:-1])
    of_the_second = [line for line in kept.content.splitlines(keepends=True) if b'"index": 1' in line]
    assert "nothing to see" in texts(b"".join(of_the_second))


def test_a_key_escaped_in_arguments_is_hidden() -> None:
    """A newline and quotes around it are escaped twice; what is cut between is found all the same."""
    known = Redactor([Known("environment-secret", b'p"ss/w\\rd-0123456789-abc')], key=b"k" * 32)
    arguments = json.dumps({"command": 'echo "p\\"ss"', "token": 'p"ss/w\\rd-0123456789-abc'})
    calls = [[{"index": 0, "function": {"arguments": piece}}] for piece in cut(arguments, 4)]
    body = sse([{"choices": [{"index": 0, "delta": {"tool_calls": call}}]} for call in calls])
    kept = known.body(body, SSE, Side.RESPONSE)
    assert json.loads(texts(kept.content))["command"] == 'echo "p\\"ss"'
    assert "rd-0123456789" not in texts(kept.content)


def test_the_array_that_gemini_streams_is_read_too() -> None:
    """Pretty-printed, one text over several lines of it."""
    body = json.dumps(gemini_text(cut(KEY, 7)), indent=2).encode()
    kept = redactor().body(body, ((b"content-type", b"application/json"),), Side.RESPONSE).content
    parts = [event["candidates"][0]["content"]["parts"][0]["text"] for event in json.loads(kept)]
    assert KEY not in "".join(parts)
    assert [len(part) for part in parts] == [len(piece) for piece in cut(KEY, 7)]


def test_a_compressed_stream_is_kept_decoded() -> None:
    """T-K6: as with a key in one piece."""
    body = sse(anthropic_text(cut(KEY, 6)))
    kept = redactor().body(gzip.compress(body), (*SSE, (b"content-encoding", b"gzip")), Side.RESPONSE)
    assert kept.decoded
    assert KEY not in texts(kept.content)


def test_signatures_are_no_text() -> None:
    """T-K4: signatures and encrypted reasoning are not put together, whatever they hold."""
    events: list[dict[str, object]] = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": piece}} for piece in cut(KEY, 9)
    ]
    body = sse(events)
    assert redactor().body(body, SSE, Side.RESPONSE).content == body


@given(st.lists(st.sampled_from(["\\", '"', "a", "é", "\n", "index", ":", "{", KEY[:9], KEY[9:]]), max_size=30), st.integers(1, 9))
@settings(max_examples=60)
def test_any_text_stays_readable_and_keeps_no_key(pieces: list[str], step: int) -> None:
    """T-E1: whatever a model says, what is kept is the same events with the same lengths."""
    body = sse(anthropic_text(cut("".join(pieces), step)))
    kept = redactor().body(body, SSE, Side.RESPONSE).content
    assert len(kept) == len(body)
    assert KEY not in texts(kept)
    if KEY not in "".join(pieces):
        assert kept == body


def test_a_text_in_one_piece_is_no_thread() -> None:
    assert list(threads(sse(anthropic_text(["one"])))) == []


def test_many_keys_in_many_pieces_cost_no_more_than_their_size() -> None:
    """C-10: a hostile answer that spells a short value thousands of times does not stop the recording."""
    known = Redactor([Known("password", b"hunter2x")], key=b"k" * 32)
    kept = known.body(sse(anthropic_text(list("hunter2x" * 500))), SSE, Side.RESPONSE)
    assert "hunter2x" not in texts(kept.content)
    assert len(kept.redactions) == 4_000
