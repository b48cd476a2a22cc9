"""One exchange being written: T-B, T-C, T-L6, and the rule that nothing unredacted leaves."""

import gzip
import hashlib
import random
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secondtake.cassettes import limits, message
from secondtake.cassettes.exchange import (
    EMPTY,
    Answer,
    Answered,
    Body,
    Channel,
    Ending,
    Exchange,
    Fields,
    Interim,
    Keys,
    Piece,
    Request,
    Side,
)
from secondtake.cassettes.match import request_keys
from secondtake.cassettes.message import State
from secondtake.cassettes.needles import Hit, Needles
from secondtake.cassettes.recorder import FORWARDED_RULES, TABLE, Event, OutOfOrder, Recording
from secondtake.cassettes.records import Chunk, End, Head, Record
from secondtake.cassettes.redact import Known, RedactedBody, Redactor

KEY = b"sk-ant-api03-R2D2c3poBB8xyzQm9vS2VlcGVyMTIzNDU2Nzg5MGFiY2RlZg-AA"
JSON: Fields = ((b"content-type", b"application/json"),)
REQUEST = Request("POST", "https", "api.provider.example", 443, b"/v1/messages", fields=((b"x-api-key", KEY), *JSON))
ANSWER = Answer(200, b"OK", fields=JSON, offset_us=30)


def keys(request: Request, content: bytes | None) -> Keys:
    return Keys(hashlib.sha256(request.path).digest()[:16], hashlib.sha256(content or b"").digest()[:16], "test-1")


def redactor() -> Redactor:
    return Redactor([Known("anthropic-api-key", KEY)], key=b"k" * 32)


def recording(of: Redactor | None = None, key: Callable[[Request, bytes | None], Keys] = keys) -> Recording:
    return Recording(7, 1000, of or redactor(), keys=key)


def last(records: tuple[Record, ...]) -> End:
    assert isinstance(records[-1], End)
    return records[-1]


def cut(content: bytes, step: int) -> Iterable[bytes]:
    return (content[at : at + step] for at in range(0, len(content), step))


def play(request: bytes, answer: bytes, step: int, fields: Fields = JSON, of: Redactor | None = None) -> tuple[list[Record], End]:
    one = recording(of)
    records = list(one.request_head(replace(REQUEST, fields=(*REQUEST.fields[:1], *fields)), Channel.MODEL))
    for piece in cut(request, step):
        records += one.request_piece(piece, 10)
    records += one.request_end(((b"x-sum", b"1"),), 20)
    records += one.interim(Interim(103, b"", (), 25))
    records += one.response_head(replace(ANSWER, fields=fields))
    for piece in cut(answer, step):
        records += one.response_piece(piece, 40)
    records += one.response_trailers(((b"x-t", b"2"),))
    records += one.end(Ending.COMPLETE, 50)
    return records, last(tuple(records))


def without_pieces(exchange: Exchange) -> Exchange:
    assert exchange.answer is not None
    request = replace(exchange.request, body=replace(exchange.request.body, pieces=()))
    return replace(exchange, request=request, answer=replace(exchange.answer, body=replace(exchange.answer.body, pieces=())))


def test_an_exchange_is_kept_as_it_happened() -> None:
    """DESIGN 4: heads, trailers, interim heads, boundaries with offsets, ending, timings."""
    one = recording()
    [head] = one.request_head(REQUEST, Channel.WEB)
    assert isinstance(head, Head)
    assert (head.seq, head.started_us, head.channel) == (7, 1000, Channel.WEB)
    assert head.request.fields[0] != REQUEST.fields[0]
    assert head.request.body == Body()
    assert one.request_piece(b'{"a":', 10) == () == one.request_piece(b"1}", 12)
    one.request_end(((b"x-sum", b"abc"),), 15)
    one.forwarded("hop-by-hop")
    one.forwarded("hop-by-hop")
    one.reclassify(Channel.MODEL, "anthropic")
    one.interim(Interim(103, b"Early", ((b"link", b"</a>"),), 20))
    one.response_head(ANSWER)
    one.response_piece(b"data: 1\n\n", 40)
    one.response_piece(b"", 41)
    one.response_piece(b"data: 2\n\n", 60)
    one.response_trailers(((b"grpc-status", b"0"),))
    one.note("second\nline " + KEY.decode())
    end = last(one.end(Ending.COMPLETE, 70))
    exchange, answer = end.exchange, end.exchange.answer
    assert answer is not None
    assert exchange.request.body.pieces == (Piece(5, 10), Piece(2, 12))
    assert exchange.request.trailers == ((b"x-sum", b"abc"),)
    assert end.bodies == {exchange.request.body.digest: b'{"a":1}', answer.body.digest: b"data: 1\n\ndata: 2\n\n"}
    assert answer.body.pieces == (Piece(9, 40), Piece(9, 60))
    assert answer.trailers == ((b"grpc-status", b"0"),)
    assert answer.interim[0].status == 103
    assert answer.offset_us == 30
    assert (exchange.channel, exchange.adapter, exchange.forwarded) == (Channel.MODEL, "anthropic", ("hop-by-hop",))
    assert (exchange.started_us, exchange.ended_us, exchange.ended, exchange.answered) == (1000, 1070, Ending.COMPLETE, Answered.LIVE)
    assert exchange.keys == keys(REQUEST, b'{"a":1}')
    assert KEY.decode() not in repr(end)
    assert "\n" not in exchange.notes[0]


@pytest.mark.parametrize("size", [0, 1, 50, 5000])
def test_how_bytes_are_cut_never_changes_the_end(size: int) -> None:
    """T-B2: whole, byte by byte and in pieces give equal records but for the boundaries; their sizes add up."""
    body = b'{"k":"' + KEY + b'"}' + random.Random(1).randbytes(size).hex().encode()
    ends = [play(body, body[::-1], step)[1] for step in (1, 7, 1 << 20)]
    assert len({repr((without_pieces(end.exchange), end.bodies)) for end in ends}) == 1
    for end in ends:
        for side in (end.exchange.request.body, end.exchange.answer.body if end.exchange.answer else Body()):
            assert sum(piece.size_bytes for piece in side.pieces) == side.size_bytes


@pytest.mark.parametrize("step", [100, 977, 1 << 20])
def test_a_large_body_goes_out_as_chunks(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """T-R10, T-I3: over the limit it is not held; the digest is that of the chunks, the End holds no bytes of it."""
    monkeypatch.setattr(limits, "BODY_IN_MEMORY_BYTES", 1000)
    monkeypatch.setattr(message, "CHUNK_BYTES", 4096)
    monkeypatch.setattr("secondtake.cassettes.streams._BATCH_BYTES", 512)
    body = (b"line of text " * 50 + KEY) * 30
    records, end = play(body, body, step)
    for side, kept in (
        (Side.REQUEST, end.exchange.request.body),
        (Side.RESPONSE, end.exchange.answer.body if end.exchange.answer else Body()),
    ):
        chunks = [one.data for one in records if isinstance(one, Chunk) and one.side is side]
        content = b"".join(chunks)
        assert len(content) == len(body) == kept.size_bytes
        assert KEY not in content
        assert kept.digest == hashlib.sha256(content).hexdigest()
        assert kept.digest not in end.bodies
        assert max(map(len, chunks)) <= 4096
        assert sum(piece.size_bytes for piece in kept.pieces) == len(body)
    assert len([one for one in end.exchange.redactions if one.place == "body"]) == 60


def test_a_body_at_the_limit_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """B-11: both sides of the boundary."""
    monkeypatch.setattr(limits, "BODY_IN_MEMORY_BYTES", 1000)
    held, _ = play(b"x" * 1000, b"", 300)
    streamed, _ = play(b"x" * 1001, b"", 300)
    assert not [one for one in held if isinstance(one, Chunk)]
    assert [one for one in streamed if isinstance(one, Chunk)]


def test_boundaries_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """B-11, T-C8: later pieces are joined to the last."""
    monkeypatch.setattr(limits, "PIECES", 10)
    _, end = play(b"x" * 100, b"", 1)
    pieces = end.exchange.request.body.pieces
    assert len(pieces) == 10
    assert pieces[-1].size_bytes == 91


def test_a_compressed_body_with_a_key_is_kept_decoded() -> None:
    """T-K6: what the wire must know to serve it stands in the details; keys are made of what is kept."""
    seen: list[tuple[Fields, bytes | None]] = []

    def watch(request: Request, content: bytes | None) -> Keys:
        seen.append((request.fields, content))
        return keys(request, content)

    plain = b'{"k":"' + KEY + b'","more":"' + b"z" * 200 + b'"}'
    packed = gzip.compress(plain)
    one = recording(key=watch)
    fields = (*JSON, (b"Content-Encoding", b"gzip"))
    one.request_head(replace(REQUEST, fields=fields), Channel.MODEL)
    for piece in cut(packed, 20):
        one.request_piece(piece, 1)
    one.request_end((), 2)
    one.response_head(replace(ANSWER, fields=fields))
    one.response_piece(packed, 3)
    end = last(one.end(Ending.COMPLETE, 4))
    request, details = end.exchange.request, end.exchange.details
    assert (details["request_kept"], details["request_codings"], details["request_wire_bytes"]) == ("decoded", ["gzip"], len(packed))
    assert details["response_kept"] == "decoded"
    assert request.body.size_bytes == len(plain)
    assert request.fields == fields
    assert sum(piece.size_bytes for piece in request.body.pieces) == len(plain)
    [(told, content)] = seen
    assert told == JSON
    assert content == end.bodies[request.body.digest]
    assert KEY not in content


def test_a_login_keeps_no_body_even_when_it_is_recognised_late() -> None:
    """DESIGN 3: auth bodies are never stored."""
    for late in (False, True):
        one = recording()
        one.request_head(REQUEST, Channel.WEB if late else Channel.AUTH)
        one.request_piece(b'{"grant_type":"x","user":"ann@example.org"}', 1)
        one.request_end((), 2)
        one.response_head(ANSWER)
        one.response_piece(b'{"access_token":"short-tok","token_type":"b"}', 3)
        one.reclassify(Channel.AUTH, None)
        end = last(one.end(Ending.COMPLETE, 4))
        kept = b"".join(end.bodies.values())
        assert b"ann@" not in kept
        assert b"short-tok" not in kept
        assert b'"token_type":"b"' in kept


@pytest.mark.parametrize("how", Ending)
def test_every_ending_is_kept_with_what_came(how: Ending) -> None:
    """T-B4, T-B6: a reset or a client that left keeps the prefix."""
    one = recording()
    one.request_head(REQUEST, Channel.MODEL)
    one.response_head(ANSWER)
    one.response_piece(b"data: 1\n\n", 40)
    end = last(one.end(how, 50))
    assert end.exchange.ended is how
    assert b"data: 1\n\n" in end.bodies.values()
    assert end.exchange.request.body == Body(EMPTY, 0, ())


def test_an_answer_may_come_before_the_request_ended() -> None:
    """T-C7: interleaving."""
    one = recording()
    one.request_head(REQUEST, Channel.MODEL)
    one.request_piece(b"a", 1)
    one.response_head(ANSWER)
    one.response_piece(b"1", 2)
    one.request_piece(b"b", 3)
    one.response_piece(b"2", 4)
    one.request_end((), 5)
    end = last(one.end(Ending.COMPLETE, 6))
    assert sorted(end.bodies.values()) == [b"12", b"ab"]


def test_a_request_that_never_became_whole_is_known_by_its_head() -> None:
    """Issue 2: what had come is kept, and the keys say nothing of it: a later one may have sent more when it was answered."""
    ends = []
    for sent in (b"one", b"one and two"):
        made = recording(key=request_keys)
        made.request_head(REQUEST, Channel.WEB)
        made.request_piece(sent, 1)
        made.response_head(ANSWER)
        made.partial()
        ends.append(last(made.end(Ending.COMPLETE, 2)).exchange)
    assert ends[0].keys == ends[1].keys
    assert [end.request.body.size_bytes for end in ends] == [3, 11]
    assert [end.details["request_partial"] for end in ends] == [True, True]
    whole = recording(key=request_keys)
    whole.request_head(REQUEST, Channel.WEB)
    whole.request_piece(b"one", 1)
    whole.request_end((), 1)
    assert last(whole.end(Ending.COMPLETE, 2)).exchange.keys != ends[0].keys


def test_nothing_came_back() -> None:
    """T-C9: no answer at all; what interim heads there were are told."""
    one = recording()
    one.request_head(REQUEST, Channel.MODEL)
    one.interim(Interim(100, b"", (), 3))
    end = last(one.end(Ending.RESET, 6))
    assert end.exchange.answer is None
    assert end.exchange.details["interim_only"] == [[100, 3]]


# ---- T-L6 ----


def test_keys_that_cannot_be_made_lose_nothing() -> None:
    """T-L6: stored all the same, and marked."""

    def broken(request: Request, content: bytes | None) -> Keys:
        raise ValueError("bad body")

    one = recording(key=broken)
    one.request_head(REQUEST, Channel.MODEL)
    one.request_piece(b"{", 1)
    end = last(one.end(Ending.COMPLETE, 2))
    assert end.exchange.keys is None
    assert end.exchange.notes == ("parser-failed: keys: ValueError",)
    assert list(end.bodies.values()) == [b"{"]


class Broken(Redactor):
    """Fails in everything."""

    def request(self, request: Request) -> tuple[Request, tuple[()]]:
        raise RuntimeError("r")

    def answer(self, answer: Answer) -> tuple[Answer, tuple[()]]:
        raise RuntimeError("a")

    def body(self, content: bytes, fields: Fields, side: Side) -> RedactedBody:
        raise RuntimeError("b")

    def fields(self, fields: Fields, side: Side, place: str = "trailer") -> tuple[Fields, tuple[()]]:
        raise RuntimeError("f")


def test_a_redactor_that_fails_withholds_and_the_exchange_is_kept() -> None:
    """T-L6, C-10: closed, marked, never lost, never open."""
    _, end = play(b"q" + KEY, b"a" + KEY, 10, of=Broken(key=b"k" * 32))
    assert end.exchange.ended is Ending.COMPLETE
    assert KEY.decode() not in repr(end)
    assert [name for name, _ in end.exchange.request.fields] == [b"x-api-key", b"content-type"]
    assert any("parser-failed" in note for note in end.exchange.notes)
    assert end.exchange.details["request_withheld"] == end.exchange.details["response_withheld"] == "the redactor failed: RuntimeError"


def test_a_stream_that_fails_keeps_what_was_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """T-L6: as above for a body over the limit."""
    monkeypatch.setattr(limits, "BODY_IN_MEMORY_BYTES", 100)

    def broken(self: Needles, content: bytes) -> list[Hit]:
        raise ZeroDivisionError

    monkeypatch.setattr(Needles, "literal", broken)
    records, end = play(b"x" * 70_000 + KEY, b"", 1000)
    assert KEY not in b"".join(one.data for one in records if isinstance(one, Chunk))
    assert end.exchange.details["request_withheld"] == "the redactor failed: ZeroDivisionError"


# ---- order ----


def test_every_rule_of_forwarding_is_from_the_closed_list() -> None:
    """C-08: declared rules only."""
    one = recording()
    one.request_head(REQUEST, Channel.WEB)
    for rule in FORWARDED_RULES:
        one.forwarded(f"{rule}: detail")
    with pytest.raises(OutOfOrder):
        one.forwarded("something else")


EVENTS: dict[Event, Callable[[Recording], object]] = {
    Event.REQUEST_HEAD: lambda one: one.request_head(REQUEST, Channel.MODEL),
    Event.REQUEST_PIECE: lambda one: one.request_piece(b"q" + KEY, 1),
    Event.REQUEST_END: lambda one: one.request_end((), 1),
    Event.INTERIM: lambda one: one.interim(Interim(103, b"", (), 1)),
    Event.RESPONSE_HEAD: lambda one: one.response_head(ANSWER),
    Event.RESPONSE_PIECE: lambda one: one.response_piece(b"r" + KEY, 1),
    Event.RESPONSE_TRAILERS: lambda one: one.response_trailers(((b"x", KEY),)),
}


@given(st.lists(st.sampled_from([*Event]), max_size=14), st.sampled_from(Ending))
@settings(max_examples=80)
def test_any_order_of_events_ends_in_a_record_or_is_refused(events: list[Event], how: Ending) -> None:
    """h11's way: what the table allows works, what it does not is OutOfOrder and changes nothing."""
    one = recording()
    states = dict.fromkeys(Side, State.IDLE)
    sent = {Side.REQUEST: 0, Side.RESPONSE: 0}
    for event in events:
        side = Side.REQUEST if event.name.startswith("REQUEST") else Side.RESPONSE
        after = TABLE[side].get((states[side], event))
        if after is None or (side is Side.RESPONSE and states[Side.REQUEST] is State.IDLE):
            with pytest.raises(OutOfOrder):
                EVENTS[event](one)
            continue
        EVENTS[event](one)
        states[side] = after
        sent[side] += event in (Event.REQUEST_PIECE, Event.RESPONSE_PIECE)
    if states[Side.REQUEST] is State.IDLE:
        with pytest.raises(OutOfOrder):
            one.end(how, 9)
        return
    end = last(one.end(how, 9))
    assert KEY.decode() not in repr(end)
    assert end.exchange.request.body.size_bytes == sent[Side.REQUEST] * (len(KEY) + 1)
    assert (end.exchange.answer is None) is (states[Side.RESPONSE] is State.IDLE)
    if end.exchange.answer is not None:
        assert end.exchange.answer.body.size_bytes == sent[Side.RESPONSE] * (len(KEY) + 1)


@pytest.mark.parametrize("event", [*Event])
def test_nothing_comes_after_the_end(event: Event) -> None:
    """A piece after the end, or a second end, is a mistake in our code and said so."""
    one = recording()
    one.request_head(REQUEST, Channel.MODEL)
    one.end(Ending.COMPLETE, 1)
    with pytest.raises(OutOfOrder):
        EVENTS[event](one)
    with pytest.raises(OutOfOrder):
        one.end(Ending.RESET, 2)
    with pytest.raises(OutOfOrder):
        one.note("x")
    with pytest.raises(OutOfOrder):
        one.forwarded("route")
    with pytest.raises(OutOfOrder):
        one.detail("a", 1)
