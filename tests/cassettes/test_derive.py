"""Answers that follow from a recorded one by the rules of HTTP."""

from __future__ import annotations

import gzip
import io
import random
import tracemalloc
import zipfile
from email import message_from_bytes
from email.policy import HTTP

import brotli
import pytest
import zstandard

from secondtake.cassettes.exchange import Answer, Answered, Body, Channel, Ending, Request, Source
from secondtake.cassettes.memory import MemoryCassette, digest_of, fields
from secondtake.cassettes.misses import Miss, MissKind
from secondtake.cassettes.player import Live, Player, Serve, Session

DATA = bytes(random.Random(3).randbytes(1000))
ETAG, DATE = '"v1"', "Wed, 21 Oct 2015 07:28:00 GMT"


def ask(path: str, *head: str, method: str = "GET") -> Request:
    return Request(method, "https", "index.example", 443, path.encode(), fields=fields(*head))


def ok(*head: str, status: int = 200) -> Answer:
    return Answer(status, b"OK", fields=fields(*head))


def answer(session: Session, request: Request) -> Serve | Miss:
    return session.answer(request, Live(0, digest_of(b""), b""))


def served(found: Serve | Miss) -> Serve:
    assert isinstance(found, Serve), found
    return found


def bytes_of(found: Serve | Miss) -> bytes:
    body = served(found).body
    pieces = [body.read(at, 17) for at in range(0, body.size_bytes, 17)]
    assert b"".join(pieces) == body.read(0, body.size_bytes)
    return b"".join(pieces)


def get(found: Serve | Miss, name: bytes) -> bytes | None:
    values = [value for key, value in served(found).answer.fields if key.lower() == name]
    assert len(values) < 2
    return values[0] if values else None


WHEEL = "/packages/aa/bb/demo-1.0-py3-none-any.whl"
WHOLE = (
    "Content-Type: application/octet-stream",
    "Content-Length: 1000",
    f"ETag: {ETAG}",
    f"Last-Modified: {DATE}",
    "Accept-Ranges: bytes",
)


def whole(*more: str) -> Session:
    cassette = MemoryCassette()
    cassette.record(
        ask(WHEEL), ok(*WHOLE, "Date: x", "Cache-Control: max-age=9", "Vary: Origin", *more), received=DATA, channel=Channel.INDEX
    )
    return Player(cassette).session()


@pytest.mark.parametrize(
    ("asked", "start", "stop"),
    [
        ("bytes=0-99", 0, 100),
        ("bytes=-100", 900, 1000),
        ("bytes=500-", 500, 1000),
        ("bytes=0-0", 0, 1),
        ("bytes=999-999", 999, 1000),
        ("bytes=990-5000", 990, 1000),
        ("bytes=-5000", 0, 1000),
        ("bytes=0-", 0, 1000),
        ("Bytes = 5 - 9", 5, 10),
        ("bytes=5-9,", 5, 10),
        ("bytes=,5-9", 5, 10),
        ("bytes=5-9, 2000-3000", 5, 10),
        ("bytes=0000000-0000001", 0, 2),
        ("bytes=5-99999999999999999", 5, 1000),
    ],
)
def test_one_range_of_a_whole_file_is_exact(asked: str, start: int, stop: int) -> None:
    """T-I1."""
    found = answer(whole(), ask(WHEEL, f"Range: {asked}"))
    assert (served(found).answer.status, served(found).answered) == (206, Answered.DERIVED)
    assert bytes_of(found) == DATA[start:stop]
    assert get(found, b"content-range") == b"bytes %d-%d/1000" % (start, stop - 1)
    assert get(found, b"content-length") == b"%d" % (stop - start)
    assert get(found, b"etag") == ETAG.encode()


@pytest.mark.parametrize("asked", ["bytes=1000-", "bytes=1000-2000", "bytes=-0", "bytes=5000-,6000-7000"])
def test_a_range_beyond_the_end_is_416_with_the_length(asked: str) -> None:
    """T-I1."""
    found = answer(whole(), ask(WHEEL, f"Range: {asked}"))
    assert served(found).answer.status == 416
    assert get(found, b"content-range") == b"bytes */1000"
    assert (bytes_of(found), get(found, b"content-length")) == (b"", b"0")


@pytest.mark.parametrize(
    "asked", ["bytes=9-5", "bytes=abc", "bytes=", "bytes=-", "lines=0-5", "bytes", "0-5", "bytes=1-2-3", "bytes=+1-2", "bytes=1.0-2"]
)
def test_a_range_that_does_not_count_gets_the_whole(asked: str) -> None:
    """T-I1: RFC 9110 14.2."""
    found = answer(whole(), ask(WHEEL, f"Range: {asked}"))
    assert served(found).answer.status == 200
    assert bytes_of(found) == DATA
    assert get(found, b"content-range") is None


@pytest.mark.parametrize("asked", ["bytes=0-0,5-9", "bytes=-3, 0-1", "bytes=0-9,0-9", "bytes=1-1,2-2,3-3,9999-"])
def test_several_ranges_are_parts_that_any_reader_understands(asked: str) -> None:
    """T-I1."""
    found = answer(whole(), ask(WHEEL, f"Range: {asked}"))
    assert served(found).answer.status == 206
    kind = get(found, b"content-type")
    body = bytes_of(found)
    assert kind is not None
    assert get(found, b"content-length") == b"%d" % len(body)
    message = message_from_bytes(b"Content-Type: " + kind + b"\r\nContent-Transfer-Encoding: binary\r\n\r\n" + body, policy=HTTP)
    parts = list(message.iter_parts())
    spans = [part["content-range"].removeprefix("bytes ").removesuffix("/1000").split("-") for part in parts]
    assert len(parts) == len([spec for spec in asked.split(",") if "9999" not in spec])
    for first, last in spans:
        head = b"Content-Range: bytes %d-%d/1000\r\n\r\n" % (int(first), int(last))
        assert head + DATA[int(first) : int(last) + 1] + b"\r\n--" in body


def test_a_flood_of_ranges_gets_the_whole() -> None:
    """T-I1: a range request must not cost more than the file."""
    many = ",".join(f"{n}-{n}" for n in range(500))
    assert served(answer(whole(), ask(WHEEL, f"Range: bytes={many}"))).answer.status == 200
    wide = ",".join(["0-"] * 20)
    assert served(answer(whole(), ask(WHEEL, f"Range: bytes={wide}"))).answer.status == 200


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        (ETAG, 206),
        ('"other"', 200),
        (f"W/{ETAG}", 200),
        (DATE, 206),
        ("Wed, 21 Oct 2015 07:28:01 GMT", 200),
        ("not a date", 200),
    ],
)
def test_if_range_right_and_wrong(condition: str, status: int) -> None:
    """T-I1."""
    found = answer(whole(), ask(WHEEL, "Range: bytes=0-9", f"If-Range: {condition}"))
    assert served(found).answer.status == status
    assert bytes_of(found) == (DATA[:10] if status == 206 else DATA)


def test_a_server_that_refused_ranges_still_does() -> None:
    """T-I1: Accept-Ranges: none."""
    cassette = MemoryCassette()
    cassette.record(ask(WHEEL), ok("Accept-Ranges: none"), received=DATA)
    assert served(answer(Player(cassette).session(), ask(WHEEL, "Range: bytes=0-9"))).answer.status == 200


def test_a_range_of_an_empty_file_is_416() -> None:
    """T-I1, T-E1."""
    cassette = MemoryCassette()
    cassette.record(ask("/empty"), ok("Content-Length: 0"))
    found = answer(Player(cassette).session(), ask("/empty", "Range: bytes=0-9"))
    assert (served(found).answer.status, get(found, b"content-range")) == (416, b"bytes */0")


def test_head_is_answered_from_a_stored_get() -> None:
    """T-D5, T-D1."""
    found = answer(whole(), ask(WHEEL, "Range: bytes=0-9", method="HEAD"))
    assert (served(found).answer.status, served(found).answered) == (200, Answered.DERIVED)
    assert (get(found, b"content-length"), bytes_of(found)) == (b"1000", b"")


def test_a_recorded_head_keeps_its_length_and_sends_nothing() -> None:
    """T-D1."""
    cassette = MemoryCassette()
    cassette.record(ask("/h", method="HEAD"), ok("Content-Length: 1234", "Content-Encoding: gzip"))
    session = Player(cassette).session()
    found = answer(session, ask("/h", "Accept-Encoding: gzip", method="HEAD"))
    assert (get(found, b"content-length"), bytes_of(found), served(found).answered) == (b"1234", b"", Answered.EXACT)
    assert get(answer(session, ask("/h", method="HEAD")), b"content-length") == b"1234"
    assert isinstance(answer(session, ask("/h")), Miss)


def test_a_head_recorded_without_length_is_given_the_length_of_a_stored_get() -> None:
    """T-D5: chunked while recording."""
    cassette = MemoryCassette()
    cassette.record(ask("/c"), ok("Transfer-Encoding: chunked"), received=DATA)
    found = answer(Player(cassette).session(), ask("/c", method="HEAD"))
    assert (get(found, b"content-length"), get(found, b"transfer-encoding")) == (b"1000", None)


@pytest.mark.parametrize("status", [301, 302, 404, 410])
def test_a_redirect_or_an_error_answers_a_head_and_a_range_too(status: int) -> None:
    """T-D5: uv asks HEAD and ranges of files an index redirects."""
    cassette = MemoryCassette()
    cassette.record(ask(WHEEL), ok("Location: /elsewhere", "Content-Length: 4", status=status), received=b"gone")
    session = Player(cassette).session()
    head = answer(session, ask(WHEEL, method="HEAD"))
    assert (served(head).answer.status, bytes_of(head), get(head, b"location")) == (status, b"", b"/elsewhere")
    ranged = answer(session, ask(WHEEL, "Range: bytes=0-1"))
    assert (served(ranged).answer.status, bytes_of(ranged)) == (status, b"gone")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (f"If-None-Match: {ETAG}", 304),
        (f"If-None-Match: W/{ETAG}", 304),
        (f'If-None-Match: "a", {ETAG}', 304),
        ("If-None-Match: *", 304),
        ('If-None-Match: "v2"', 200),
        ("If-None-Match: v1", 200),
        (f"If-Modified-Since: {DATE}", 304),
        ("If-Modified-Since: Wed, 21 Oct 2099 07:28:00 GMT", 304),
        ("If-Modified-Since: Tue, 20 Oct 2015 07:28:00 GMT", 200),
        ("If-Modified-Since: yesterday", 200),
        ("If-Modified-Since: Wednesday, 21-Oct-15 07:28:00 GMT", 304),
        ('If-Match: "v2"', 412),
        (f"If-Match: {ETAG}", 200),
        ("If-Unmodified-Since: Tue, 20 Oct 2015 07:28:00 GMT", 412),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_conditions_are_evaluated_against_the_stored_validators(head: str, status: int, method: str) -> None:
    """T-D4: a 304 has the same ETag."""
    found = answer(whole(), ask(WHEEL, head, method=method))
    assert served(found).answer.status == status
    if status == 304:
        assert get(found, b"etag") == ETAG.encode()
        assert get(found, b"date") == b"x"
        assert get(found, b"cache-control") == b"max-age=9"
        assert get(found, b"vary") == b"Origin"
        assert get(found, b"content-length") is None
        assert bytes_of(found) == b""
    else:
        assert bytes_of(found) == (DATA if status == 200 and method == "GET" else b"")


def test_none_match_wins_over_modified_since() -> None:
    """T-D4: RFC 9110 13.2.2."""
    found = answer(whole(), ask(WHEEL, 'If-None-Match: "v2"', f"If-Modified-Since: {DATE}"))
    assert served(found).answer.status == 200


def test_a_condition_the_origin_did_not_honour_is_replayed_as_it_was() -> None:
    """T-D4: the same request gets the recorded answer, unless its validators were dropped on the way up."""
    for forwarded, status in (((), 200), (("validators-dropped",), 304)):
        cassette = MemoryCassette()
        request = ask(WHEEL, f"If-None-Match: {ETAG}")
        cassette.record(request, ok(*WHOLE), received=DATA, forwarded=forwarded)
        assert served(answer(Player(cassette).session(), request)).answer.status == status


def test_a_file_that_changed_while_recording_changes_in_replay() -> None:
    """T-D4, T-G3: a 304 takes its turn."""
    cassette = MemoryCassette()
    cassette.record(ask("/f"), ok('ETag: "a"'), received=b"one")
    cassette.record(ask("/f", 'If-None-Match: "a"'), ok('ETag: "a"', status=304))
    cassette.record(ask("/f", 'If-None-Match: "a"'), ok('ETag: "b"'), received=b"two")
    session = Player(cassette).session()
    head = 'If-None-Match: "a"'
    assert [served(answer(session, ask("/f", *((head,) if n else ())))).answer.status for n in range(4)] == [200, 304, 200, 200]


def accept_encoding(value: str | None) -> tuple[str, ...]:
    return () if value is None else (f"Accept-Encoding: {value}",)


TEXT = b"the quick brown fox " * 200
CODED = {"br": brotli.compress(TEXT), "gzip": gzip.compress(TEXT), "zstd": zstandard.ZstdCompressor().compress(TEXT)}


@pytest.mark.parametrize("coding", sorted(CODED))
@pytest.mark.parametrize("wanted", [None, "identity", "", "*;q=0", "deflate", "br;q=0, gzip;q=0, zstd;q=0.000, *"])
def test_a_client_gets_only_a_coding_it_reads(coding: str, wanted: str | None) -> None:
    """T-E3."""
    cassette = MemoryCassette()
    head = ("Content-Type: text/plain", f"Content-Encoding: {coding}", f"Content-Length: {len(CODED[coding])}", 'ETag: "z"')
    cassette.record(ask("/t", "Accept-Encoding: gzip, deflate, br, zstd"), ok(*head), received=CODED[coding])
    found = answer(Player(cassette).session(), ask("/t", *accept_encoding(wanted)))
    assert served(found).answered is Answered.DERIVED
    assert bytes_of(found) == TEXT
    assert get(found, b"content-encoding") is None
    assert get(found, b"content-length") == b"%d" % len(TEXT)
    assert get(found, b"etag") == b'W/"z"'


@pytest.mark.parametrize("wanted", ["br", "*", "GZIP;q=0.1, BR", "gzip, *;q=0.5"])
def test_a_coding_the_client_reads_is_left_as_it_is(wanted: str) -> None:
    """T-E3."""
    cassette = MemoryCassette()
    cassette.record(ask("/t", "Accept-Encoding: br, gzip"), ok("Content-Encoding: br"), received=CODED["br"])
    found = answer(Player(cassette).session(), ask("/t", f"Accept-Encoding: {wanted}"))
    assert (served(found).answered, bytes_of(found)) == (Answered.EXACT, CODED["br"])


def test_what_cannot_be_decoded_is_a_miss_for_a_client_that_cannot_read_it() -> None:
    """T-E3: never bytes the client cannot read."""
    for label, body in (("br", b"not brotli"), ("exi", b"?"), ("gzip", CODED["gzip"][:-9])):
        cassette = MemoryCassette()
        cassette.record(ask("/t", f"Accept-Encoding: {label}"), ok(f"Content-Encoding: {label}"), received=body)
        found = answer(Player(cassette).session(), ask("/t", "Accept-Encoding: identity"))
        assert isinstance(found, Miss)
        assert found.kind is MissKind.VARIANT


def test_a_cut_stream_in_a_coding_the_client_does_not_read_is_decoded_as_far_as_it_goes() -> None:
    """T-B4, T-E3."""
    cassette = MemoryCassette()
    packed = gzip.compress(DATA * 100)
    cassette.record(
        ask("/t", "Accept-Encoding: gzip"),
        ok("Content-Encoding: gzip"),
        received=packed[:50_000],
        ended=Ending.RESET,
        channel=Channel.MODEL,
    )
    found = answer(Player(cassette).session(), ask("/t"))
    assert served(found).ended is Ending.RESET
    assert (DATA * 100).startswith(bytes_of(found))


def test_ranges_and_conditions_of_a_decoded_body_are_those_of_the_decoded_body() -> None:
    """T-E3, T-I1: both at once."""
    cassette = MemoryCassette()
    cassette.record(ask("/t", "Accept-Encoding: gzip"), ok("Content-Encoding: gzip", 'ETag: "z"'), received=CODED["gzip"])
    session = Player(cassette).session()
    found = answer(session, ask("/t", "Range: bytes=0-18"))
    assert (bytes_of(found), get(found, b"content-range")) == (TEXT[:19], b"bytes 0-18/%d" % len(TEXT))
    assert served(answer(session, ask("/t", "Range: bytes=0-18", 'If-Range: "z"'))).answer.status == 200
    as_sent = answer(session, ask("/t", "Range: bytes=0-9", "Accept-Encoding: gzip"))
    assert bytes_of(as_sent) == CODED["gzip"][:10]
    assert served(answer(session, ask("/t", 'If-None-Match: W/"z"'))).answer.status == 304


class Counting:
    """A Source over many equal bytes, never in memory."""

    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    @property
    def size_bytes(self) -> int:
        return len(self._packed)

    def read(self, offset: int, size: int) -> bytes:
        return self._packed[offset : offset + size]


class Large(MemoryCassette):
    """Serves one body through a Source of its own."""

    source: Source

    def body(self, body: Body) -> Source:
        return self.source


def test_a_large_coded_body_is_decoded_in_bounded_memory() -> None:
    """T-E3, T-I3: forty megabytes out of a body over the memory bound."""
    rng = random.Random(1)
    block = rng.randbytes(1 << 16)
    packer = zstandard.ZstdCompressor(level=1).compressobj()
    packed = b"".join(packer.compress(block[n:] + block[:n]) for n in range(640)) + packer.flush()
    packed_again = gzip.compress(packed, 0)
    cassette = Large()
    cassette.source = Counting(packed_again)
    answer_head = ok("Content-Encoding: zstd, gzip")
    cassette.record(ask("/l", "Accept-Encoding: zstd, gzip"), answer_head, received=packed_again)
    tracemalloc.start()
    found = served(answer(Player(cassette).session(), ask("/l")))
    assert found.body.size_bytes == 640 << 16
    for at in (0, 1 << 16, 300 << 16, 639 << 16):
        number = at >> 16
        assert found.body.read(at, 1 << 16) == block[number:] + block[:number]
    assert tracemalloc.get_traced_memory()[1] < 48 << 20
    tracemalloc.stop()


def tile(cassette: MemoryCassette, first: int, last: int, *head: str, size: int = 1000) -> None:
    cassette.record(
        ask(WHEEL, f"Range: bytes={first}-{last}"),
        ok(f"Content-Range: bytes {first}-{last}/{size}", f"Content-Length: {last - first + 1}", *head, status=206),
        received=DATA[first : last + 1],
        channel=Channel.INDEX,
    )


def test_recorded_ranges_serve_themselves_and_what_they_tile() -> None:
    """T-I1, DESIGN 3: ranges recorded without the whole."""
    cassette = MemoryCassette()
    tile(cassette, 900, 999, f"ETag: {ETAG}")
    tile(cassette, 800, 919, f"ETag: {ETAG}")
    session = Player(cassette).session()
    assert served(answer(session, ask(WHEEL, "Range: bytes=900-999"))).answered is Answered.EXACT
    found = answer(session, ask(WHEEL, "Range: bytes=850-949"))
    assert (bytes_of(found), get(found, b"content-range")) == (DATA[850:950], b"bytes 850-949/1000")
    assert bytes_of(answer(session, ask(WHEEL, "Range: bytes=-50"))) == DATA[950:]
    assert served(answer(session, ask(WHEEL, "Range: bytes=2000-"))).answer.status == 416
    for head in (("Range: bytes=700-850",), ("Range: bytes=0-",), (), ("Range: bytes=900-", 'If-Range: "w"')):
        found = answer(session, ask(WHEEL, *head))
        assert isinstance(found, Miss)
        assert found.kind is MissKind.RANGE_NOT_RECORDED
    head_found = answer(session, ask(WHEEL, method="HEAD"))
    assert (served(head_found).answer.status, get(head_found, b"content-length"), get(head_found, b"content-range")) == (200, b"1000", None)


def test_tiles_that_cover_the_file_are_the_file() -> None:
    """T-I4: a download that was resumed."""
    cassette = MemoryCassette()
    tile(cassette, 0, 499, f"Last-Modified: {DATE}")
    tile(cassette, 500, 999, f"Last-Modified: {DATE}")
    found = answer(Player(cassette).session(), ask(WHEEL))
    assert (served(found).answer.status, bytes_of(found), get(found, b"content-length")) == (200, DATA, b"1000")
    assert get(found, b"content-range") is None


@pytest.mark.parametrize(
    ("one", "other"),
    [((f"ETag: {ETAG}",), ('ETag: "v2"',)), ((), ()), ((f"ETag: W/{ETAG}",), (f"ETag: W/{ETAG}",))],
)
def test_tiles_of_perhaps_different_files_are_never_joined(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    """DESIGN 3: only under one strong validator (RFC 9110 15.3.7.3)."""
    cassette = MemoryCassette()
    tile(cassette, 0, 499, *one)
    tile(cassette, 500, 999, *other)
    session = Player(cassette).session()
    assert isinstance(answer(session, ask(WHEEL, "Range: bytes=400-599")), Miss)
    assert isinstance(answer(session, ask(WHEEL)), Miss)
    assert bytes_of(answer(session, ask(WHEEL, "Range: bytes=600-699"))) == DATA[600:700]


def test_a_range_answer_that_lies_about_its_length_derives_nothing() -> None:
    """T-I1: hostile or broken origins."""
    cassette = MemoryCassette()
    cassette.record(ask(WHEEL, "Range: bytes=0-9"), ok("Content-Range: bytes 0-99/1000", status=206), received=DATA[:10])
    cassette.record(ask(WHEEL, "Range: bytes=10-19"), ok("Content-Range: bytes */1000", status=206), received=DATA[10:20])
    cassette.record(ask(WHEEL, "Range: bytes=20-29"), ok(status=206), received=DATA[20:30])
    assert isinstance(answer(Player(cassette).session(), ask(WHEEL, "Range: bytes=1-2")), Miss)


def test_nothing_is_derived_from_a_cut_or_failed_answer() -> None:
    """T-B4: only what is whole."""
    cassette = MemoryCassette()
    cassette.record(ask("/f"), ok("Content-Length: 1000"), received=DATA[:500], ended=Ending.RESET)
    cassette.record(ask("/g"), ok(status=500), received=b"broken")
    session = Player(cassette).session()
    for path in ("/f", "/g"):
        assert isinstance(answer(session, ask(path, "Range: bytes=0-9")), Miss)
        assert isinstance(answer(session, ask(path, method="HEAD")), Miss)


def wheel(name: str = "demo", **files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/__init__.py", b"x = 1\n" * 100)
        archive.writestr(f"{name}-1.0.dist-info/METADATA", b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n\n" + b"text\n" * 50)
        for path, content in files.items():
            archive.writestr(path, content)
    return out.getvalue()


def test_the_metadata_of_a_recorded_wheel_is_read_out_of_it() -> None:
    """PEP 658: recorded with a client that took the wheel, replayed with one that asks for its metadata."""
    cassette = MemoryCassette()
    cassette.record(ask(WHEEL), ok(*WHOLE), received=wheel(), channel=Channel.INDEX)
    session = Player(cassette).session()
    found = answer(session, ask(WHEEL + ".metadata"))
    assert bytes_of(found).startswith(b"Metadata-Version: 2.1\nName: demo")
    assert served(found).answered is Answered.DERIVED
    assert get(found, b"etag") is None
    assert get(found, b"content-length") == b"%d" % served(found).body.size_bytes
    assert bytes_of(answer(session, ask(WHEEL + ".metadata", "Range: bytes=0-7"))) == b"Metadata"
    assert isinstance(answer(session, ask(WHEEL + ".asc")), Miss)


def test_no_metadata_comes_out_of_what_is_no_wheel() -> None:
    """PEP 658: a page of HTML under a wheel's name."""
    for content in (b"<html>", wheel()[:-30], b"PK\x05\x06" + bytes(18)):
        cassette = MemoryCassette()
        cassette.record(ask(WHEEL), ok(), received=content, channel=Channel.INDEX)
        assert isinstance(answer(Player(cassette).session(), ask(WHEEL + ".metadata")), Miss)


PIP = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01"
UV = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"
SIMPLE_JSON = "application/vnd.pypi.simple.v1+json"


def page(accept: str, kind: str, vary: str = "Vary: Accept") -> Session:
    cassette = MemoryCassette()
    cassette.record(ask("/simple/demo/", f"Accept: {accept}"), ok(f"Content-Type: {kind}", vary), received=b"page", channel=Channel.INDEX)
    return Player(cassette).session()


@pytest.mark.parametrize(("recorded", "live"), [(PIP, UV), (UV, PIP), (PIP, PIP)])
@pytest.mark.parametrize("kind", [SIMPLE_JSON, "application/vnd.pypi.simple.v1+html", "text/html; charset=utf-8"])
@pytest.mark.parametrize("vary", ["Vary: Accept", "X: y"])
def test_a_page_recorded_with_one_installer_serves_another_that_wants_the_same(recorded: str, live: str, kind: str, vary: str) -> None:
    """T-N1."""
    assert bytes_of(answer(page(recorded, kind, vary), ask("/simple/demo/", f"Accept: {live}"))) == b"page"


@pytest.mark.parametrize(
    ("recorded", "kind", "live"),
    [
        ("text/html", "text/html", PIP),
        (PIP, SIMPLE_JSON, "text/html"),
        (PIP, SIMPLE_JSON, "*/*"),
        ("*/*", "text/html", SIMPLE_JSON),
        (PIP, SIMPLE_JSON, ""),
        (PIP, "text/html", f"text/html;q=0, {SIMPLE_JSON}"),
        ("application/json", "application/json", "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*"),
        ("application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*", "application/json", "application/json"),
    ],
)
@pytest.mark.parametrize("vary", ["Vary: Accept", "X: y"])
def test_a_page_in_another_form_is_a_miss_and_never_labelled_otherwise(recorded: str, kind: str, live: str, vary: str) -> None:
    """T-N1, T-A12: also where the index forgot to say that it varies."""
    head = (f"Accept: {live}",) if live else ()
    found = answer(page(recorded, kind, vary), ask("/simple/demo/", *head))
    assert isinstance(found, Miss)
    assert found.kind is MissKind.VARIANT


def test_a_page_that_did_not_exist_does_not_exist_in_any_form() -> None:
    """T-N1: a recorded 404 is an answer."""
    cassette = MemoryCassette()
    cassette.record(ask("/simple/nope/", f"Accept: {PIP}"), ok("Content-Type: text/plain", status=404), channel=Channel.INDEX)
    assert served(answer(Player(cassette).session(), ask("/simple/nope/", "Accept: text/html"))).answer.status == 404


@pytest.mark.parametrize("kind", ["application/octet-stream", "application/x-tar", "text/plain", "binary/octet-stream"])
@pytest.mark.parametrize(
    ("recorded", "live"), [(("Accept: */*",), ()), ((), ("Accept: */*",)), (("Accept: */*",), ("Accept: application/json",))]
)
def test_a_file_of_an_index_has_one_form_whatever_is_accepted(kind: str, recorded: tuple[str, ...], live: tuple[str, ...]) -> None:
    """T-N1: only pages are negotiated."""
    cassette = MemoryCassette()
    cassette.record(ask(WHEEL, *recorded), ok(f"Content-Type: {kind}"), received=DATA, channel=Channel.INDEX)
    assert bytes_of(answer(Player(cassette).session(), ask(WHEEL, *live))) == DATA


def test_no_accept_is_any() -> None:
    """T-A12: RFC 9110 12.5.1."""
    assert bytes_of(answer(page("*/*", SIMPLE_JSON), ask("/simple/demo/"))) == b"page"
