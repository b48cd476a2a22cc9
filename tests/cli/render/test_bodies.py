"""A kept body as it can be read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from secondtake.cassettes.content import encode
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.exchange import Bytes
from secondtake.cli.render.bodies import PART_BYTES, binary, codings_kept, decoded_body, parts
from tests.cli.scenes import sample

TEXT = b"text " * 1000


def test_a_coding_is_undone_or_said_to_be_impossible() -> None:
    """`--decoded` undoes content encodings; what was cut short is no text."""
    assert decoded_body(Bytes(encode(TEXT, ("gzip", "br"))), ("gzip", "br")) == TEXT
    assert decoded_body(Bytes(b"not brotli"), ("br",)) is None
    assert b"".join(parts(Bytes(encode(TEXT, ("zstd",))), ("zstd",))) == TEXT
    with pytest.raises(BadInput):
        b"".join(parts(Bytes(b"not gzip"), ("gzip",)))


def test_a_bomb_is_stopped() -> None:
    """Hostile input is assumed: decoded sizes are bounded."""
    assert decoded_body(Bytes(encode(bytes(100 << 20), ("gzip",))), ("gzip",)) is None


def test_a_large_body_is_read_in_parts() -> None:
    """Never whole in memory."""
    assert [len(part) for part in parts(Bytes(bytes(PART_BYTES + 1)), ())] == [PART_BYTES, 1]


def test_a_body_that_the_redactor_decoded_has_no_codings_left() -> None:
    """DESIGN 4: kept decoded; its label still says gzip."""
    exchange = sample()[0][0]
    assert exchange.answer is not None
    answer = replace(exchange.answer, fields=((b"Content-Encoding", b"gzip"),))
    assert codings_kept(replace(exchange, answer=answer), "response") == ("gzip",)
    assert codings_kept(replace(exchange, answer=answer, details={"response_kept": "decoded"}), "response") == ()
    assert codings_kept(replace(exchange, answer=None), "response") == ()


@pytest.mark.parametrize(
    ("content", "is_binary"), [(b"", False), ("naïve 日本".encode(), False), (b"a\0b", True), (bytes(range(1, 256)), True)]
)
def test_text_is_told_from_bytes(content: bytes, is_binary: bool) -> None:
    """As grep and git do: a NUL; and much that is not UTF-8."""
    assert binary(content) is is_binary
