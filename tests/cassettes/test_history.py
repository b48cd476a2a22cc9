"""A history that the provider held, put together again from the cassette."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.history import Recorded, output_of, rebuild, recorded
from tests.cassettes.adapters.scenes import JSON_FIELDS, SCENES, SSE_FIELDS, responses_events, responses_whole, sse


def never(_identity: str) -> bool:
    return False


CHAIN = {
    "r1": Recorded(b'{"input":"one \\u00e9"}', (b'{"n":1}',)),
    "r2": Recorded(b'{"previous_response_id":"r1","input":[{"n":2},{"n":3}]}', (b'{"n":4}', b'{"n":5}')),
    "round": Recorded(b'{"previous_response_id":"round"}', ()),
    "lost": Recorded(b'{"previous_response_id":"gone","input":[]}', ()),
}


def test_a_chain_is_put_before_the_new_input_oldest_first() -> None:
    """A-11: each input by the bytes the agent sent; the name is cut with its comma."""
    body = b'{"model":"m","previous_response_id" : "r2", "input":[ {"n": 6} ],"store":true}'
    made, notes = rebuild(body, CHAIN.get, never)
    assert made == (
        b'{"model":"m","input":[{"role":"user","content":"one \\u00e9"},{"n":1},{"n":2},{"n":3},{"n":4},{"n":5},{"n": 6}],"store":true}'
    )
    assert notes == ["request_patched: rebuild-history: `previous_response_id` (7 items of 2 recorded calls)"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"previous_response_id":"r1"}', b'{"input":[{"role":"user","content":"one \\u00e9"},{"n":1}]}'),
        (
            b'{"previous_response_id":"r1","input":"two"}',
            b'{"input":[{"role":"user","content":"one \\u00e9"},{"n":1},{"role":"user","content":"two"}]}',
        ),
    ],
)
def test_a_request_may_have_no_input_or_a_text(body: bytes, expected: bytes) -> None:
    """A-11: both are allowed beside the ID."""
    assert rebuild(body, CHAIN.get, never)[0] == expected


@pytest.mark.parametrize(
    "body", [b"{}", b'{"previous_response_id":null,"input":[]}', b'{"previous_response_id":"gone"}', b'{"previous_response_id":"lost"}']
)
def test_what_names_no_known_answer_stays_as_it_is(body: bytes) -> None:
    """A-11: a chain with a hole is not half rebuilt."""
    assert rebuild(body, CHAIN.get, never) == (body, [])


def test_an_answer_of_the_live_run_is_the_providers_to_know() -> None:
    """A-11: live runs use live IDs."""
    body = b'{"previous_response_id":"r2","input":[]}'
    assert rebuild(body, CHAIN.get, lambda identity: identity == "r2") == (body, [])


def test_a_chain_that_goes_round_ends() -> None:
    """A-11: recorded bytes are hostile."""
    with pytest.raises(BadInput, match="go round"):
        rebuild(b'{"previous_response_id":"round","input":[]}', CHAIN.get, never)


@pytest.mark.parametrize("number", range(3))
def test_the_items_of_an_answer_are_the_same_from_a_stream_and_a_whole_body(number: int) -> None:
    """A-11: whichever way it was recorded."""
    whole = output_of(200, JSON_FIELDS, responses_whole(SCENES[number]))
    streamed = output_of(200, SSE_FIELDS, sse(*responses_events(SCENES[number])))
    assert [json.loads(item) for item in whole] == [json.loads(item) for item in streamed]
    assert whole


def test_items_told_one_by_one_are_taken_when_the_last_event_has_none() -> None:
    """A-11: Codex' lite form leaves `output` empty in the final event."""
    events = [
        ("response.output_item.done", {"type": "response.output_item.done", "output_index": 1, "item": {"n": 2}}),
        ("response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": {"n": 1}}),
        ("response.completed", {"type": "response.completed", "response": {"id": "r", "output": []}}),
    ]
    assert output_of(200, SSE_FIELDS, sse(*events)) == (b'{"n":1}', b'{"n":2}')


def test_a_recorded_call_is_kept_by_the_id_of_its_answer() -> None:
    """A-11: what a later request names."""
    assert recorded(b"{}", 200, JSON_FIELDS, b'{"id":"resp_1","object":"response","output":[{"n":1}]}') == (
        "resp_1",
        Recorded(b"{}", (b'{"n":1}',)),
    )
    assert recorded(b"{}", 200, JSON_FIELDS, b"{}") is None
    assert recorded(b"{}", 500, JSON_FIELDS, b'{"error":{}}') is None


@given(st.binary(max_size=60))
def test_no_answer_raises(content: bytes) -> None:
    """A-11: what cannot be read has no items."""
    assert isinstance(output_of(200, (), content), tuple)
