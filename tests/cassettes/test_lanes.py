"""Which turn of a Responses socket a message belongs to, and a turn as the call it would be over HTTP."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import adapters, lanes
from secondtake.cassettes.adapters import Json
from secondtake.cassettes.exchange import Answer, Answered, Channel, Ending, Exchange, Request, Side
from secondtake.cassettes.frames import NO_FLAGS, Flag, Kept
from secondtake.cassettes.lanes import Lanes
from secondtake.cassettes.websocket import Opcode

UPGRADE = Request("GET", "https", "api.provider.example", 443, b"/v1/responses", fields=((b"Upgrade", b"websocket"),))


def kept(side: Side, document: object, offset_us: int = 0, *, flags: Flag = NO_FLAGS) -> Kept:
    return Kept(side, Opcode.TEXT, json.dumps(document).encode(), offset_us, flags)


def create() -> dict[str, Json]:
    return {"type": "response.create", "model": "m", "input": "x"}


def done(lane: str | None = None) -> dict[str, Json]:
    return {"type": "response.completed", "stream_id": lane}


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_each_lane_is_answered_in_its_order_however_lanes_are_mixed(asked: list[str], random: Random) -> None:
    """A-10: FIFO per lane, any order across."""
    found: Lanes[int] = Lanes()
    waiting: dict[str, list[int]] = {}
    for number, lane in enumerate(asked):
        found.begin(lane, number)
        waiting.setdefault(lane, []).append(number)
    order = list(asked)
    random.shuffle(order)
    for lane in order:
        assert found.said({"type": "response.output_text.delta", "stream_id": lane}) == (waiting[lane][0], False)
        assert found.said({"type": "response.completed", "stream_id": lane}) == (waiting[lane].pop(0), True)
    assert list(found.unfinished()) == []


@pytest.mark.parametrize("kind", sorted(lanes.ENDS))
def test_what_comes_behind_an_end_belongs_to_the_turn_that_ended(kind: str) -> None:
    found: Lanes[str] = Lanes()
    assert found.said({"type": "hello"}) == (None, False)
    found.begin(None, "first")
    assert found.said({"type": kind}) == ("first", True)
    assert found.said({"type": kind}) == ("first", False)
    found.begin(None, "second")
    assert found.said(None) == ("second", False)
    assert found.latest == "second"


def test_an_event_that_names_no_lane_belongs_to_the_lane_at_work() -> None:
    """An `error` about the connection may name none."""
    found: Lanes[str] = Lanes()
    found.begin("a", "one")
    found.begin("b", "two")
    assert found.said(done("a")) == ("one", True)
    assert found.said({"type": "error"}) == ("two", True)
    assert found.said({"type": "limits"})[0] in ("one", "two")
    assert found.said(done("unheard of")) == (None, False)


def test_a_steer_is_about_the_turn_at_work() -> None:
    found: Lanes[str] = Lanes()
    assert found.spoken_to(None) is None
    found.begin("a", "one")
    assert found.spoken_to({"type": "response.steer"}) == "one"
    found.said(done("a"))
    assert found.spoken_to({"type": "response.steer"}) == "one"


def test_a_turn_is_read_like_the_call_it_would_be_over_http() -> None:
    """Issue 3.7: through the adapter, with its own times and end; a cut message is nobody's."""
    output = [{"type": "function_call", "call_id": "c", "name": "run", "arguments": "{}"}]
    ended = {"type": "response.completed", "response": {"id": "r", "model": "m-1", "status": "completed", "output": output}}
    said = [
        kept(Side.REQUEST, create(), 100),
        kept(Side.RESPONSE, {"type": "response.created", "response": {"id": "r", "model": "m-1"}}, 150),
        kept(Side.RESPONSE, ended, 300),
        kept(Side.REQUEST, create(), 400),
        kept(Side.RESPONSE, done(), 500, flags=Flag.CUT),
    ]
    whole = Exchange(7, Channel.MODEL, 1000, UPGRADE, Answer(101), Ending.RESET, 9000, answered=Answered.MISS)
    first, second = lanes.turns(iter(said))
    part = lanes.as_exchange(whole, first)
    assert (part.seq, part.started_us, part.ended_us, part.ended, part.answered) == (7, 1100, 1300, Ending.COMPLETE, Answered.EXACT)
    assert part.answer is not None
    assert part.answer.offset_us == 50
    assert adapters.recognise(part.request, first.sent.data) == "openai-responses"
    answer = adapters.read_answer("openai-responses", part.request, part.answer, first.events())
    assert (answer.complete, answer.id, [call.name for call in answer.calls]) == (True, "r", ["run"])
    cut = lanes.as_exchange(whole, second)
    assert (cut.answer, cut.ended, cut.answered) == (None, Ending.RESET, Answered.MISS)


def test_a_message_over_several_lines_is_one_event() -> None:
    """JSON may be printed with line ends in it; server-sent events may not."""
    assert lanes.as_event(b'{\r\n"a":\n1}') == b'data: {\ndata: "a":\ndata: 1}\n\n'


@pytest.mark.parametrize(
    ("opcode", "data", "expected"),
    [(1, b' {"a":1}', {"a": 1}), (1, b"[1]", None), (1, b"{", None), (2, b'{"a":1}', None), (1, b"", None)],
)
def test_only_a_text_that_is_an_object_is_read(opcode: int, data: bytes, expected: object) -> None:
    assert lanes.parsed(opcode, data) == expected
