"""Content codings within bounds."""

from __future__ import annotations

import gzip
import resource
import time
import tracemalloc
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.content import Decoder, Opaque, codings, decode, decoded, encode
from secondtake.cassettes.errors import BadInput, TooLarge
from secondtake.cassettes.exchange import Bytes
from secondtake.cassettes.memory import fields

DATA = b"every byte " * 5000


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


ENCODED = {
    "gzip": gzip.compress(DATA),
    "x-gzip": gzip.compress(DATA),
    "deflate": zlib.compress(DATA),
    "br": brotli.compress(DATA),
    "zstd": zstandard.ZstdCompressor().compress(DATA),
}


@pytest.mark.parametrize("name", ENCODED)
@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_how_encoded_bytes_are_cut_never_changes_what_they_decode_to(name: str, step: int) -> None:
    """E: each coding, whole and in pieces."""
    decoder = Decoder([name])
    data = ENCODED[name]
    found = b"".join(piece for at in range(0, len(data), step) for piece in decoder.feed(data[at : at + step]))
    decoder.finish()
    assert found == DATA
    assert decoder.opaque is None


def test_raw_deflate_is_understood_like_zlib_deflate() -> None:
    """E: servers send both under one name."""
    assert decode(raw_deflate(DATA), ["deflate"]) == DATA


@given(st.binary(max_size=3000), st.lists(st.sampled_from(sorted(ENCODED)), min_size=1, max_size=2))
def test_encoding_then_decoding_gives_the_same_bytes(data: bytes, names: list[str]) -> None:
    """E: also stacked, and also for no bytes at all."""
    coded = encode(data, names)
    assert decode(coded, names) == data
    assert encode(data, names) == coded
    if coded:
        assert b"".join(decoded(Bytes(coded), names)) == data


def test_gzip_members_and_zstd_frames_one_after_another_are_one_body() -> None:
    """E: concatenated streams are legal in both."""
    assert decode(gzip.compress(b"a") + gzip.compress(b"b"), ["gzip"]) == b"ab"
    one = zstandard.ZstdCompressor().compress(b"a")
    assert decode(one + one, ["zstd"]) == b"aa"


@pytest.mark.parametrize("name", ["compress", "sdch", "utf-8", "base64", "rot13", "gzip2", "zip"])
def test_an_unknown_coding_is_a_value_and_no_codec_registry_is_asked(name: str) -> None:
    """E: python would happily "decode" base64 and rot13."""
    found = decode(b"abc", [name])
    assert isinstance(found, Opaque)
    assert name in found.reason


def test_three_stacked_codings_are_not_undone() -> None:
    """B-11: limits.CONTENT_CODINGS, both sides."""
    twice = gzip.compress(gzip.compress(DATA))
    assert decode(twice, ["gzip", "gzip"]) == DATA
    assert isinstance(decode(gzip.compress(twice), ["gzip"] * 3), Opaque)


@pytest.mark.parametrize("name", sorted(ENCODED))
def test_damage_and_early_ends_are_values(name: str) -> None:
    """E: content that does not fit its label."""
    data = ENCODED[name]
    assert isinstance(decode(b"\x00plain text, not coded", [name]), Opaque)
    assert isinstance(decode(data[: len(data) // 2], [name]), Opaque)
    found = decode(data[:-1] if name != "deflate" else data[:-5], [name], partly=True)
    assert isinstance(found, Opaque) or DATA.startswith(found)


def test_a_cut_stream_gives_what_came_before_when_that_is_asked() -> None:
    """T-B4: a reset in the middle of a compressed answer."""
    packed = gzip.compress(bytes(range(256)) * 2000, compresslevel=1)
    found = decode(packed[: len(packed) // 2], ["gzip"], partly=True)
    assert isinstance(found, bytes)
    assert (bytes(range(256)) * 2000).startswith(found)
    assert found


@pytest.mark.parametrize("name", ["gzip", "zstd", "br", "deflate"])
def test_a_bomb_stops_within_a_second_and_little_memory(name: str) -> None:
    """B-11, C-17: two gigabytes of zeros."""
    block = bytes(1 << 20)
    if name == "zstd":
        packer = zstandard.ZstdCompressor(level=1).compressobj()
        bomb = b"".join(packer.compress(block) for _ in range(2048)) + packer.flush()
    elif name == "br":
        bomb = brotli.compress(bytes(64 << 20), quality=1)
    else:
        flat = zlib.compressobj(1, zlib.DEFLATED, 31 if name == "gzip" else 15)
        unit = flat.compress(block)
        bomb = unit + b"".join(flat.compress(block) for _ in range(255)) + flat.flush()
    tracemalloc.start()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    with pytest.raises(TooLarge):
        decode(bomb, [name])
    assert time.perf_counter() - start < 1
    assert tracemalloc.get_traced_memory()[1] < 80 << 20
    tracemalloc.stop()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 128 << 10


def test_the_size_cap_holds_on_both_sides_of_its_boundary() -> None:
    """B-11."""
    packed = gzip.compress(b"x" * 1000)
    assert decode(packed, ["gzip"], most_bytes=1000) == b"x" * 1000
    with pytest.raises(TooLarge):
        decode(packed, ["gzip"], most_bytes=999)


def test_codings_are_read_in_the_order_they_were_applied() -> None:
    """E: two fields, one list, case, identity, empty elements."""
    assert codings(fields("Content-Encoding: GZIP, identity", "content-encoding: ,br ")) == ("gzip", "br")
    assert codings(fields("Content-Type: gzip")) == ()


def test_no_bytes_keep_their_label() -> None:
    """D: HEAD and 304 answers name a coding and carry nothing."""
    assert decode(b"", ["gzip"]) == b""


def test_decoding_a_source_of_a_damaged_body_is_an_error() -> None:
    """E: a derived answer must not end early in silence."""
    with pytest.raises(BadInput):
        list(decoded(Bytes(ENCODED["gzip"][:-20]), ["gzip"]))
