"""Recorded bytes are hostile input: readers are bounded and never raise."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from secondtake.cassettes import adapters
from secondtake.cassettes.adapters import framing
from secondtake.cassettes.adapters.draft import MAX_NOTES
from secondtake.cassettes.exchange import Request
from tests.cassettes.adapters.formats import FORMATS, Format
from tests.cassettes.adapters.scenes import JSON_FIELDS, SCENES, SSE_FIELDS

JUNK = [None, 0, -1, 1e308, 2**70, True, "", "x", [], {}, [None, [0]], {"type": {"type": []}, "text": 1}]

by_format = pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)


def variants(value: Any, junk: Any) -> Iterator[Any]:
    """`value` with one node after another replaced by `junk`."""
    yield junk
    if isinstance(value, dict):
        for key, inner in value.items():
            for changed in variants(inner, junk):
                yield {**value, key: changed}
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            for changed in variants(inner, junk):
                yield [*value[:i], changed, *value[i + 1 :]]


@by_format
def test_any_value_in_the_place_of_any_other_is_read(form: Format) -> None:
    """A-08: one node of a request or of a whole answer replaced, each in turn."""
    request, content = form.request(SCENES[2])
    whole = json.loads(form.whole(SCENES[2]))
    for number, changed in enumerate(variants(json.loads(content), None)):
        junk = JUNK[number % len(JUNK)]
        body = json.dumps(changed).replace("null", json.dumps(junk), 1).encode()
        adapters.recognise(request, body)
        asked = adapters.read_request(form.adapter, request, body)
        adapters.splice(body, {place: "x" for place in asked.places if place.kind in ("model", "fallback", "route")})
    for number, changed in enumerate(variants(whole, None)):
        body = json.dumps(changed).replace("null", json.dumps(JUNK[number % len(JUNK)]), 1).encode()
        reader = adapters.reader(form.adapter, request, 200, JSON_FIELDS)
        reader.receive(body)
        reader.receive(b"")
        assert reader.answer().adapter == form.adapter


@by_format
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_stream_is_read_as_far_as_it_goes(form: Format, data: st.DataObject) -> None:
    """A-08: bytes changed, dropped or doubled; the answer is a value, and a checksum that fails is a fault."""
    scene = data.draw(st.sampled_from(SCENES))
    stream = bytearray(form.stream(scene))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(stream) - 1))
        match data.draw(st.integers(0, 2)):
            case 0:
                stream[at] = data.draw(st.integers(0, 255))
            case 1:
                del stream[at : at + data.draw(st.integers(1, 30))]
            case _:
                stream[at:at] = stream[max(0, at - 20) : at]
        if not stream:
            return
    request, _ = form.request(scene)
    reader = adapters.reader(form.adapter, request, 200, form.fields)
    reader.receive(bytes(stream))
    reader.receive(b"")
    assert reader.answer().adapter == form.adapter


def test_an_answer_over_the_limit_is_read_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """B-11: what came before is kept, and the answer says so."""
    monkeypatch.setattr(framing, "ANSWER_BYTES", 600)
    form = FORMATS[0]
    request, _ = form.request(SCENES[0])
    reader = adapters.reader(form.adapter, request, 200, form.fields)
    stream = form.stream(SCENES[0])
    for start in range(0, len(stream), 100):
        reader.receive(stream[start : start + 100])
    reader.receive(b"")
    answer = reader.answer()
    assert "too-large" in [fault.kind for fault in answer.faults]
    assert not answer.complete
    assert answer.served


def test_a_stream_that_names_ever_more_models_is_bounded() -> None:
    """B-11: notes of one answer are counted."""
    request = Request("POST", "https", "h.example", 443, b"/v1/chat/completions")
    reader = adapters.reader("openai-chat", request, 200, SSE_FIELDS)
    for number in range(MAX_NOTES + 50):
        reader.receive(b'data: {"model":"m%d","system_fingerprint":"f%d","choices":[]}\n\ndata: {bad\n\n' % (number, number))
    reader.receive(b"")
    answer = reader.answer()
    assert len(answer.served) == len(answer.signals) == len(answer.faults) == MAX_NOTES


def test_deep_arguments_are_a_fault_and_not_a_crash() -> None:
    """A-08: in a call's arguments, as text; and in a whole answer."""
    deep = "[" * 210 + "]" * 210
    call = {"id": "c", "function": {"name": "f", "arguments": deep}}
    chat = {"model": "m", "choices": [{"message": {"tool_calls": [call]}, "finish_reason": "stop"}]}
    request = Request("POST", "https", "h.example", 443, b"/v1/chat/completions")
    reader = adapters.reader("openai-chat", request, 200, JSON_FIELDS)
    reader.receive(json.dumps(chat).encode())
    reader.receive(b"")
    answer = reader.answer()
    assert [call.well_formed for call in answer.calls] == [False]
    assert [fault.kind for fault in answer.faults] == ["arguments"]
    reader = adapters.reader("openai-chat", request, 200, JSON_FIELDS)
    reader.receive(b'{"choices":' + deep.encode() + b"}")
    reader.receive(b"")
    assert [fault.kind for fault in reader.answer().faults] == ["too-deep"]


def test_reading_a_large_stream_byte_by_byte_is_linear_in_memory() -> None:
    """T-B10: the reader holds one event, not the stream."""
    request = Request("POST", "https", "h.example", 443, b"/v1/messages")
    reader = adapters.reader("anthropic", request, 200, SSE_FIELDS)
    ping = b'event: ping\ndata: {"type":"ping"}\n\n' * 1000
    tracemalloc.start()
    for _ in range(30):
        reader.receive(ping)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20
