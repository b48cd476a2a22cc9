"""Recorded sockets against what a client says: chains, lanes, scripts, and what is none of them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from secondtake.cassettes import events, frames, lanes
from secondtake.cassettes.dialogues import Dialogue, Drop, Out, Say
from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.exchange import Answer, Answered, Channel, Ending, Request, Side
from secondtake.cassettes.frames import BYTES, Log, Over
from secondtake.cassettes.memory import MemoryCassette
from secondtake.cassettes.misses import Miss, MissKind
from secondtake.cassettes.player import Player, Session
from secondtake.cassettes.redact import Redactor
from secondtake.cassettes.websocket import Message, Opcode, close

FIELDS = ((b"Connection", b"Upgrade"), (b"Upgrade", b"websocket"), (b"Sec-WebSocket-Key", b"x"))
MODEL = Request("GET", "https", "api.provider.example", 443, b"/v1/responses", fields=FIELDS)
CHAT = replace(MODEL, path=b"/chat")
REDACTOR = Redactor(key=b"k" * 32)

type Said = tuple[str, str | bytes | Message, int]
"""`>` the client, `<` the server; a text, bytes or a whole message; at how many microseconds."""


def message(said: str | bytes | Message) -> Message:
    if isinstance(said, Message):
        return said
    return Message(Opcode.TEXT, said.encode()) if isinstance(said, str) else Message(Opcode.BINARY, said)


def keep(cassette: MemoryCassette, request: Request, *said: Said, over: str | None = Over.CLOSED, **more: bytes) -> int:
    """Record one socket."""
    log, bodies = Log(REDACTOR), {">": b"", "<": b""}
    for side, one, offset_us in said:
        told = message(one)
        kept = log.add(Side.REQUEST if side == ">" else Side.RESPONSE, told.opcode, told.data, offset_us)
        assert kept is not None
        bodies[side] += kept[0]
    if over is not None:
        log.over(over)
    return cassette.record(
        request,
        Answer(101, fields=((b"Upgrade", b"websocket"),)),
        sent=more.get("sent", bodies[">"]),
        received=bodies["<"],
        channel=Channel.MODEL if request is MODEL else Channel.WEB,
        adapter="openai-responses" if request is MODEL else None,
        details={frames.DETAIL: log.table},
        ended=Ending.RESET if over == Over.ORIGIN else Ending.COMPLETE,
        ended_us=10_000_000,
    )


def create(text: str, previous: str | None = None, lane: str | None = None) -> str:
    made: dict[str, object] = {"type": "response.create", "model": "m", "input": [{"role": "user", "content": text}]}
    made |= {"previous_response_id": previous} if previous else {}
    return json.dumps(made | ({"stream_id": lane} if lane else {}))


def event(kind: str, identity: str = "", lane: str | None = None) -> str:
    made: dict[str, object] = {"type": kind, "response": {"id": identity, "model": "m", "status": "completed", "output": []}}
    return json.dumps(made | ({"stream_id": lane} if lane else {}))


def session(cassette: MemoryCassette) -> Session:
    return Player(cassette, REDACTOR).session()


def begun(cassette: MemoryCassette, request: Request = MODEL) -> Dialogue:
    dialogue = session(cassette).dialogues.open(request)
    assert dialogue is not None
    return dialogue


def texts(out: list[Out] | Miss) -> list[str]:
    assert isinstance(out, list)
    return [one.message.data.decode() if isinstance(one, Say) else "DROP" for one in out]


def test_a_turn_has_what_was_said_of_it_with_its_own_times() -> None:
    """A-10: offsets count from the create that is answered; what comes after the end belongs to it too."""
    cassette = MemoryCassette()
    done = event("response.completed", "r1")
    keep(
        cassette,
        MODEL,
        ("<", '{"type":"hello"}', 5),
        (">", create("a"), 100),
        ("<", event("response.created", "r1"), 150),
        ("<", done, 400),
        ("<", '{"type":"limits"}', 450),
    )
    dialogue = begun(cassette)
    assert dialogue.opened() == [Say(message('{"type":"hello"}'), 5)]
    out = dialogue.heard(message(create("a")))
    assert isinstance(out, list)
    assert [one.after_us for one in out] == [50, 300, 350]
    assert dialogue.how is Answered.EXACT


def test_lanes_are_told_apart_and_a_lane_may_be_called_otherwise() -> None:
    """A-10."""
    cassette = MemoryCassette()
    said: list[Said] = [(">", create("a", lane="x"), 0), (">", create("b", lane="y"), 1)]
    said += [("<", event("response.created", "ra", "x"), 2), ("<", event("response.created", "rb", "y"), 3)]
    said += [("<", event("response.completed", "rb", "y"), 4), ("<", event("response.completed", "ra", "x"), 5)]
    keep(cassette, MODEL, *said)
    dialogue = begun(cassette)
    assert texts(dialogue.heard(message(create("b", lane='n"1')))) == [
        event("response.created", "rb", 'n"1'),
        event("response.completed", "rb", 'n"1'),
    ]
    assert texts(dialogue.heard(message(create("a", lane="y")))) == [
        event("response.created", "ra", "y"),
        event("response.completed", "ra", "y"),
    ]
    assert isinstance(dialogue.heard(message(create("a", lane="y"))), Miss)


def test_turns_of_one_lane_that_were_sent_at_once_are_answered_one_after_the_other() -> None:
    """A-10: FIFO in a lane."""
    cassette = MemoryCassette()
    keep(
        cassette,
        MODEL,
        (">", create("a"), 0),
        (">", create("b"), 1),
        ("<", event("response.completed", "ra"), 2),
        ("<", event("response.completed", "rb"), 3),
    )
    dialogue = begun(cassette)
    assert texts(dialogue.heard(message(create("a")))) == [event("response.completed", "ra")]
    assert texts(dialogue.heard(message(create("b")))) == [event("response.completed", "rb")]


def test_the_same_words_go_on_from_the_answer_they_name() -> None:
    """A-10: the chain of response IDs tells two equal turns apart."""
    cassette = MemoryCassette()
    for number in (1, 2, 3):
        previous = f"r{number - 1}" if number > 1 else None
        keep(cassette, MODEL, (">", create("go on", previous), 0), ("<", event("response.completed", f"r{number}"), 1), over=Over.CLIENT)
    dialogue = begun(cassette)
    assert texts(dialogue.heard(message(create("go on", "r2")))) == [event("response.completed", "r3")]
    miss = dialogue.heard(message(create("go on", "r9")))
    assert isinstance(miss, Miss)
    assert (miss.kind, miss.channel) == (MissKind.WS_DIVERGED, Channel.MODEL)
    assert miss.nearest is not None
    assert "previous_response_id" in [one.path for one in miss.nearest.differences]
    assert "ws" not in miss.message.split(":")[0]


def test_a_steer_lets_the_turn_go_on_that_waited_for_it() -> None:
    cassette = MemoryCassette()
    steer = '{"type":"response.steer","response_id":"r1","input":"faster"}'
    keep(
        cassette,
        MODEL,
        (">", create("a"), 0),
        ("<", event("response.created", "r1"), 1),
        (">", steer, 2),
        ("<", event("response.completed", "r1"), 9),
    )
    dialogue = begun(cassette)
    assert texts(dialogue.heard(message(create("a")))) == [event("response.created", "r1")]
    assert isinstance(dialogue.heard(message('{"type":"response.steer","response_id":"r1","input":"slower"}')), Miss)
    out = dialogue.heard(message(steer))
    assert texts(out) == [event("response.completed", "r1")]
    assert isinstance(out, list)
    assert out[0].after_us == 7


@pytest.mark.parametrize(("over", "end"), [(Over.ORIGIN, ["DROP"]), (Over.CLIENT, []), (None, [])])
def test_only_an_end_that_was_the_servers_is_played(over: str | None, end: list[str]) -> None:
    """Codex drops its own socket: that is the client's to do again. One the recorder stopped ends nothing."""
    cassette = MemoryCassette()
    keep(cassette, MODEL, (">", create("a"), 0), ("<", "x", 1), over=over)
    assert texts(begun(cassette).heard(message(create("a")))) == ["x", *end]
    other = MemoryCassette()
    keep(other, CHAT, (">", "a", 0), ("<", "x", 1), over=over)
    assert texts(begun(other, CHAT).heard(message("a"))) == ["x", *end]


def test_a_servers_close_comes_where_it_came_and_its_reply_to_ours_only_as_a_reply() -> None:
    cassette = MemoryCassette()
    keep(
        cassette,
        MODEL,
        (">", create("a"), 0),
        ("<", event("response.completed", "r"), 1),
        ("<", close(1001, "an hour"), 2),
        (">", close(1001), 3),
    )
    out = begun(cassette).heard(message(create("a")))
    assert isinstance(out, list)
    assert [one.message for one in out if isinstance(one, Say)][-1] == close(1001, "an hour")
    other = MemoryCassette()
    keep(other, CHAT, (">", "a", 0), ("<", "b", 1), (">", close(1000), 2), ("<", close(4000, "bye"), 3))
    dialogue = begun(other, CHAT)
    assert texts(dialogue.heard(message("a"))) == ["b"]
    assert dialogue.socket.parting == close(4000, "bye")


def test_a_script_answers_what_means_the_same_and_says_it_was_not_the_same() -> None:
    cassette = MemoryCassette()
    keep(
        cassette,
        CHAT,
        ("<", "hi", 1),
        (">", '{"a":1,"b":[2]}', 2),
        ("<", Message(Opcode.PING, b"p"), 3),
        (">", Message(Opcode.PONG, b"p"), 4),
        ("<", b"\x00", 5),
    )
    dialogue = begun(cassette, CHAT)
    assert texts(dialogue.opened()) == ["hi"]
    out = dialogue.heard(message('{ "b": [2.0], "a": 1 }'))
    assert isinstance(out, list)
    assert [one.message for one in out if isinstance(one, Say)] == [Message(Opcode.PING, b"p"), Message(Opcode.BINARY, b"\x00")]
    assert dialogue.how is Answered.NORMALISED
    over = dialogue.heard(message("more"))
    assert isinstance(over, Miss)
    assert over.nearest is None


def test_text_is_not_bytes() -> None:
    """T-H2."""
    cassette = MemoryCassette()
    keep(cassette, CHAT, (">", "a", 0))
    miss = begun(cassette, CHAT).heard(message(b"a"))
    assert isinstance(miss, Miss)
    assert miss.nearest is not None
    assert [(one.recorded, one.live) for one in miss.nearest.differences] == [("text", "binary")]


def test_what_was_played_is_played_and_what_was_not_is_left() -> None:
    """A socket is played when all its turns were; one without any when it was opened."""
    cassette = MemoryCassette()
    keep(cassette, MODEL, over=Over.CLIENT)
    keep(
        cassette,
        MODEL,
        (">", create("a"), 0),
        ("<", event("response.completed", "r1"), 1),
        (">", create("b", "r1"), 2),
        ("<", event("response.completed", "r2"), 3),
    )
    keep(cassette, CHAT, (">", "x", 0))
    one = session(cassette)
    dialogue = one.dialogues.open(MODEL)
    assert dialogue is not None
    dialogue.opened()
    again = one.dialogues.open(MODEL)
    assert again is not None
    again.opened()
    assert [row.seq for row in one.unplayed()] == [2, 3]
    dialogue.heard(message(create("a")))
    assert [row.seq for row in one.unplayed()] == [2, 3]
    dialogue.heard(message(create("b", "r1")))
    assert [row.seq for row in one.unplayed()] == [3]
    other = one.dialogues.open(CHAT)
    assert other is not None
    other.opened()
    assert one.unplayed() == []
    assert one.dialogues.open(CHAT) is None
    assert one.dialogues.open(MODEL) is not None
    assert session(cassette).dialogues.open(CHAT) is not None


def test_a_socket_whose_messages_are_not_all_there_is_not_played() -> None:
    """Bytes that could not be read, an opaque recording, an answer that was withheld: `ws-refused`, as before."""
    cassette = MemoryCassette()
    log = Log(REDACTOR)
    assert log.add(Side.RESPONSE, BYTES, b"\xff", 0) is not None
    cassette.record(CHAT, Answer(101), received=b"\xff", details={frames.DETAIL: log.table})
    cassette.record(CHAT, Answer(101), received=b"\x81\x01a")
    assert not session(cassette).dialogues.known(CHAT)
    assert session(cassette).dialogues.open(CHAT) is None


def test_damage_in_the_list_is_told_and_never_played() -> None:
    """B-03."""
    cassette = MemoryCassette()
    keep(cassette, CHAT, (">", "abc", 0), sent=b"a")
    with pytest.raises(Corrupt):
        session(cassette).dialogues.open(CHAT)


def test_the_log_of_events_reads_a_sockets_turns_like_calls_over_http() -> None:
    """Issue 3.7: each create is a request, what answered it a response with the calls in it; a turn that was cut says so."""
    cassette = MemoryCassette()
    call = {"type": "function_call", "call_id": "c1", "name": "run", "arguments": '{"cmd":"ls"}'}
    done = {"type": "response.completed", "response": {"id": "r1", "model": "m-1", "status": "completed", "output": [call]}}
    answer = [{"type": "function_call_output", "call_id": "c1", "output": "file"}]
    result = {"type": "response.create", "model": "m", "previous_response_id": "r1", "input": answer}
    keep(
        cassette,
        MODEL,
        (">", create("a"), 10),
        ("<", event("response.created", "r1"), 20),
        ("<", json.dumps(done), 30),
        (">", json.dumps(result), 50),
        ("<", event("response.created", "r2"), 60),
        over=Over.ORIGIN,
    )
    found = list(events.events((cassette.exchange(1),), events.contents(cassette)))
    begun_us = cassette.exchange(1).started_us
    assert [(one.event.value, one.offset_us - begun_us) for one in found if one.event is not events.EventKind.STOP] == [
        ("model_request", 10),
        ("model_response", 30),
        ("tool_call", 30),
        ("tool_result", 50),
        ("model_request", 50),
        ("model_response", 60),
        ("stream_error", 60),
    ]
    (answered,) = [one for one in found if one.event is events.EventKind.TOOL_RESULT]
    assert (answered.data["tool"], answered.data["matched"]) == ("run", True)


def test_an_error_of_ours_names_its_lane() -> None:
    told = lanes.parsed(Opcode.TEXT, lanes.error("no", "refused", "x").data)
    assert told is not None
    assert (told["type"], told["status"], told["stream_id"]) == ("error", 400, "x")
    assert lanes.lane_of(lanes.parsed(Opcode.TEXT, lanes.error("no", "refused", None).data)) is None


def test_a_drop_comes_after_what_was_said_before_it() -> None:
    cassette = MemoryCassette()
    keep(cassette, CHAT, ("<", "x", 40), over=Over.ORIGIN)
    assert begun(cassette, CHAT).opened() == [Say(message("x"), 40), Drop(40)]
