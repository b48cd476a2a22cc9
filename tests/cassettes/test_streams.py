"""Redaction of bodies that are too large to hold."""

import gzip
import itertools
import random

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from secondtake.cassettes.exchange import Fields, Side
from secondtake.cassettes.redact import Known, Redactor
from secondtake.cassettes.streams import StreamRedactor, binary

KEY = b"sk-ant-api03-R2D2c3poBB8xyzQm9vS2VlcGVyMTIzNDU2Nzg5MGFiY2RlZg-AA"
TEXT: Fields = ((b"content-type", b"text/plain"),)


def stream(fields: Fields = TEXT, key: bytes = b"k" * 32) -> StreamRedactor:
    return Redactor([Known("anthropic-api-key", KEY)], key=key).streaming(fields)


def through(one: StreamRedactor, content: bytes, cuts: list[int]) -> bytes:
    edges = [0, *sorted(min(cut, len(content)) for cut in cuts), len(content)]
    out = [one.feed(content[begin:end]) for begin, end in itertools.pairwise(edges)]
    return b"".join((*out, one.finish()))


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secondtake.cassettes.streams._BATCH_BYTES", 64)
    monkeypatch.setattr("secondtake.cassettes.streams._BINARY_BATCH_BYTES", 64)


PARTS = st.lists(st.sampled_from([KEY, KEY[:30], KEY[30:], b"x" * 40, b"text ", b"sk-", KEY + KEY]), max_size=20).map(b"".join)


@given(PARTS, st.lists(st.integers(0, 1500), max_size=20))
@settings(max_examples=60)
def test_how_bytes_are_cut_never_changes_what_is_kept(content: bytes, cuts: list[int]) -> None:
    """T-B2, C-09: a key cut anywhere is found; the length stays."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("secondtake.cassettes.streams._BATCH_BYTES", 64)
        whole, cut = stream(), stream()
        kept = through(whole, content, [])
        assert through(cut, content, cuts) == kept
        assert whole.redactions == cut.redactions
    assert len(kept) == len(content)
    assert KEY not in kept


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("step", [1, 7, 64, 4096])
def test_a_stream_of_any_step_finds_every_key(step: int) -> None:
    """DESIGN 4: an overlap of the longest known form."""
    content = b"".join(random.Random(step).choice([KEY, b"some text here ", b"\n"]) for _ in range(60))
    one = stream()
    assert KEY not in through(one, content, list(range(0, len(content), step)))
    assert len(one.redactions) == content.count(KEY)
    assert all(content[mark.start : mark.stop] == KEY for mark in one.redactions)


def test_a_large_plain_stream_is_passed_in_constant_memory() -> None:
    """T-I3: what is held is a batch and an overlap."""
    one = stream()
    for _ in range(300):
        one.feed(b"lorem ipsum " * 1000)
        assert len(one._held) < 64 * 1024  # the bound is what is tested


def test_without_known_values_bytes_pass_at_once() -> None:
    """DESIGN 8: nothing to look for costs nothing."""
    one = Redactor(key=b"k" * 32).streaming(TEXT)
    assert one.feed(b"abc") == b"abc"
    assert one.finish() == b""


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("fields", [((b"content-type", b"application/zip"),), ()])
@pytest.mark.parametrize("steps", [[3, 70], [*range(0, 1500, 7)], [10_000]])
def test_a_binary_stream_hides_what_cannot_stand_there_by_chance(fields: Fields, steps: list[int]) -> None:
    """T-K1, T-K4: wheels and packs stay byte for byte but for known values of 16 bytes or more."""
    content = b"PK\x03\x04\x00" + bytes(range(256)) + KEY * 3 + bytes(range(256)) * 4
    one = stream(fields)
    kept = through(one, content, steps)
    assert KEY not in kept
    assert len(kept) == len(content)
    assert kept[:261] + KEY * 3 + kept[261 + 3 * len(KEY) :] == content
    assert {mark.place for mark in one.redactions} == {"binary"}
    short = Redactor([Known("password", b"hunter2-abcdef9")], key=b"k" * 32).streaming(fields)
    assert through(short, content + b"hunter2-abcdef9", steps) == content + b"hunter2-abcdef9"


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_compressed_stream_is_kept_decoded(coding: str) -> None:
    """C-09, T-K6: what was written cannot be taken back, so text under a coding is decoded from the start."""
    plain = b"line of text\n" * 5000 + KEY + b"\nmore" * 5000
    packed = gzip.compress(plain) if coding == "gzip" else zstandard.ZstdCompressor().compress(plain)
    one = stream((*TEXT, (b"content-encoding", coding.encode())))
    kept = through(one, packed, [10, 11, 500])
    assert one.decoded
    assert one.codings == (coding,)
    assert one.withheld is None
    assert len(kept) == len(plain)
    assert KEY not in kept


@pytest.mark.parametrize("packed", [gzip.compress(bytes(4 * 1024 * 1024)), b"this is not gzip at all" * 10])
def test_what_cannot_be_decoded_within_the_caps_is_withheld(packed: bytes) -> None:
    """C-10, C-17: marked, and its keyed digest tells two of them apart."""
    fields = (*TEXT, (b"content-encoding", b"gzip"))
    one, same, other = stream(fields), stream(fields), stream(fields)
    ends = [through(each, data, [5])[-32:] for each, data in ((one, packed), (same, packed), (other, packed + b"!"))]
    assert one.withheld
    assert ends[0].startswith(b"_2T.opq.")
    assert ends[0] == ends[1] != ends[2]


@pytest.mark.parametrize(
    ("media", "content", "answer"),
    [
        (b"image/png", None, True),
        (b"image/svg+xml", None, False),
        (b"application/json", b"\x00", False),
        (b"", b"\x00\x01", True),
        (b"", b"text \xc3\xa9", False),
        (b"", "é".encode() * 3000, False),
        (b"application/octet-stream", b"\xff\xfe\xfd\xfc" * 9, True),
        (b"application/octet-stream", b"#!/bin/sh\n", False),
    ],
)
def test_what_is_binary(media: bytes, content: bytes | None, answer: bool) -> None:
    """T-K4: by type; by the first bytes where the type says nothing."""
    assert binary(media, content) is answer


def test_the_side_is_written_down() -> None:
    """C-11: the redactions table names the message."""
    one = Redactor([Known("anthropic-api-key", KEY)], key=b"k" * 32).streaming(TEXT, Side.REQUEST)
    one.feed(KEY)
    one.finish()
    assert [mark.side for mark in one.redactions] == [Side.REQUEST]
