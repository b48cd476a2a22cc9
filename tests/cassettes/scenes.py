"""Exchanges to record, and ways to record them, for the tests of the store."""

from __future__ import annotations

import dataclasses
import hashlib
import random
import threading
from collections.abc import Mapping

from secondtake.cassettes.cassette import Cassette
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.errors import NotStored
from secondtake.cassettes.exchange import (
    EMPTY,
    Answer,
    Body,
    Channel,
    Digest,
    Ending,
    Exchange,
    Interim,
    Keys,
    Named,
    Piece,
    Redaction,
    Request,
    Side,
)
from secondtake.cassettes.records import Chunk, End, Head
from secondtake.cassettes.writer import Writer

WORDS = [hashlib.sha256(b"%d" % number).hexdigest()[: 2 + number % 7] for number in range(2000)]


def prose(size: int, seed: int) -> bytes:
    """Text that compresses about as well as an agent's prompts do."""
    rng = random.Random(seed)
    words = rng.choices(WORDS, k=size // 3 + 16)
    return " ".join(words).encode()[:size]


def noise(size: int, seed: int) -> bytes:
    """Bytes that do not compress."""
    return random.Random(seed).randbytes(size)


def transcript(turns: int, turn_bytes: int = 9000, seed: int = 1) -> list[bytes]:
    """The request bodies of an agent's session: each holds the one before, with a changed identifier at its start, the marker that moves
    to the last message, and the tool definitions at the end."""
    rng = random.Random(seed)
    tools = b',"tools":["' + prose(8000, seed + 1) + b'"]}'
    system = prose(12000, seed + 2)
    bodies: list[bytes] = []
    messages: list[bytes] = []
    for turn in range(turns):
        head = b'{"model":"m","system":"id=%08x; ' % rng.getrandbits(32) + system + b'","messages":['
        said = b'{"role":"user","content":"' + prose(turn_bytes // 2, seed + 10 + turn) + b'"'
        bodies.append(head + b",".join([*messages, said + b',"cache_control":{"type":"ephemeral"}}']) + b"]" + tools)
        messages += [said + b"}", b'{"role":"assistant","content":"' + prose(turn_bytes // 2, seed + 5000 + turn) + b'"}']
    return bodies


def body(data: bytes, *, pieces: int = 1) -> Body:
    """The reference to `data`, cut in `pieces` that came 20 ms apart."""
    if not data:
        return Body()
    step = -(-len(data) // pieces)
    cut = tuple(Piece(len(data[at : at + step]), 20_000 * (at // step)) for at in range(0, len(data), step))
    return Body(digest_of(data), len(data), cut)


def request(path: bytes = b"/v1/messages", data: bytes = b"", host: str = "api.provider.example") -> Request:
    """A model call."""
    fields = ((b"Host", host.encode()), (b"Content-Type", b"application/json"), (b"Authorization", b"Bearer xxxxxxxx"))
    return Request("POST" if data else "GET", "https", host, 443, path, fields=fields, body=body(data), named=Named(connect=host))


def exchange(
    seq: int, sent: bytes = b"", received: bytes = b"", *, path: bytes = b"/v1/messages", host: str = "api.provider.example"
) -> Exchange:
    """One exchange whose every kind of field is in use."""
    answer = Answer(
        200,
        b"OK",
        fields=((b"content-type", b"text/event-stream"), (b"Set-Cookie", b"a=1"), (b"set-cookie", b"b=\xe9"), (b"x-seq", b"%d" % seq)),
        interim=(Interim(103, b"Early Hints", ((b"link", b"</a>"),), 500),) if seq % 3 == 0 else (),
        body=body(received, pieces=5),
        trailers=((b"x-sum", b"abc"),) if seq % 2 else (),
        offset_us=1000 + seq,
    )
    return Exchange(
        seq,
        Channel.MODEL,
        seq * 1000,
        request(path, sent, host),
        answer,
        Ending.COMPLETE,
        seq * 1000 + 900,
        keys=Keys(hashlib.md5(b"e%d" % seq).digest(), hashlib.md5(b"n%d" % seq).digest(), "rules-1"),
        forwarded=("hop-by-hop",),
        redactions=(Redaction(Side.REQUEST, "field:authorization", 7, 15, "bearer", "fp"), Redaction(Side.RESPONSE, "body", 0, 4, "key")),
        notes=("a note",),
        adapter="anthropic",
        details={"model": "m", "numbers": [1, 2.5, None, True], "deep": {"a": {"b": b"\x00"}}},
    )


type Scene = list[tuple[Exchange, Mapping[Digest, bytes]]]


def scene(count: int, seed: int = 7) -> Scene:
    """`count` model calls whose bodies build on each other, with an empty one and a repeated one among them."""
    sent = transcript(count, 600, seed)
    made: Scene = []
    for seq in range(count):
        received = b"" if seq % 5 == 4 else prose(300 + seq, 99 if seq % 4 == 3 else seed * 31 + seq)
        one = exchange(seq, sent[seq], received)
        bodies = {digest_of(data): data for data in (sent[seq], received) if data}
        made.append((one, bodies))
    return made


def numbered(one: Exchange, seq: int) -> Exchange:
    """The same exchange under another number."""
    return dataclasses.replace(one, seq=seq)


def commit(writer: Writer, one: Exchange, bodies: Mapping[Digest, bytes]) -> NotStored | None:
    """Commit and wait for the answer."""
    answered: list[NotStored | None] = []
    event = threading.Event()

    def done(error: NotStored | None) -> None:
        answered.append(error)
        event.set()

    writer.commit(End(one, bodies), done)
    assert event.wait(30), "a commit was never answered"
    return answered[0]


def head(one: Exchange) -> Head:
    """What is written when the request of `one` begins."""
    begun = one.request
    return Head(
        one.seq, one.started_us, one.channel, Request(begun.method, begun.scheme, begun.host, begun.port, begun.path, fields=begun.fields)
    )


def record(writer: Writer, what: Scene) -> None:
    """Record all of a scene, one after the other."""
    for one, bodies in what:
        writer.write([head(one)])
        assert commit(writer, one, bodies) is None


def record_large(writer: Writer, seq: int, data: bytes, step: int = 65536) -> tuple[Exchange, NotStored | None]:
    """Record an answer that comes in chunks."""
    one = exchange(seq, b"", data, path=b"/files/large.whl")
    writer.write([head(one), *(Chunk(seq, Side.RESPONSE, data[at : at + step]) for at in range(0, len(data), step))])
    return one, commit(writer, one, {})


def read_body(cassette: Cassette, of: Body) -> bytes:
    """All of a body."""
    source = cassette.body(of)
    return source.read(0, source.size_bytes)


def assert_holds(cassette: Cassette, one: Exchange, bodies: Mapping[Digest, bytes]) -> None:
    """Exchange and bodies read back as they were recorded."""
    assert cassette.exchange(one.seq) == one
    for of in (one.request.body, one.answer.body if one.answer else Body()):
        if of.digest != EMPTY and of.digest in bodies:
            assert read_body(cassette, of) == bodies[of.digest]
