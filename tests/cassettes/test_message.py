"""The body of one message as it comes."""

import hashlib

import pytest

from secondtake.cassettes import limits
from secondtake.cassettes.exchange import EMPTY, Body, Piece, Side
from secondtake.cassettes.message import Message
from secondtake.cassettes.records import Chunk
from secondtake.cassettes.redact import Redactor


def message() -> Message:
    return Message(3, Side.RESPONSE, Redactor(key=b"k" * 32))


def test_a_small_body_is_held_with_its_boundaries() -> None:
    """T-B2: sizes and offsets as they came; nothing is no piece."""
    one = message()
    assert one.piece(b"ab", 5, withhold=False) == one.piece(b"", 6, withhold=False) == one.piece(b"c", 7, withhold=False) == ()
    assert one.reference(b"abc") == Body(hashlib.sha256(b"abc").hexdigest(), 3, (Piece(2, 5), Piece(1, 7)))  # type: ignore[arg-type]  # a Digest
    assert message().reference(b"") == Body(EMPTY, 0, ())


@pytest.mark.parametrize("kept", [1, 2, 9, 1000])
def test_boundaries_are_scaled_to_a_body_of_another_length(kept: int) -> None:
    """T-K6: a body that is kept decoded keeps the times of its pieces; sizes add up and none is empty."""
    one = message()
    for at in range(4):
        one.piece(b"xyz", at, withhold=False)
    pieces = one.pieces(kept)
    assert sum(piece.size_bytes for piece in pieces) == kept
    assert all(piece.size_bytes > 0 for piece in pieces)
    assert [piece.offset_us for piece in pieces] == sorted(piece.offset_us for piece in pieces)


def test_a_login_too_large_to_read_leaves_only_a_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    """DESIGN 3: auth bodies are not stored, large ones neither."""
    monkeypatch.setattr(limits, "BODY_IN_MEMORY_BYTES", 10)
    one = message()
    records = one.piece(b"access_token=" + b"s" * 100, 1, withhold=True)
    records += one.piece(b"more", 2, withhold=True)
    last, told, body = one.finish()
    kept = b"".join(record.data for record in (*records, *last) if isinstance(record, Chunk))
    assert kept.startswith(b"_2T.opq.")
    assert body.size_bytes == len(kept) == 32
    assert told.withheld


@pytest.mark.parametrize("declared", [True, False])
def test_a_large_body_keeps_few_boundaries_where_its_length_was_declared(monkeypatch: pytest.MonkeyPatch, declared: bool) -> None:
    """T-I5: what a second recording of a large file adds is not its socket reads; a stream's own boundaries are never joined."""
    monkeypatch.setattr(limits, "BODY_IN_MEMORY_BYTES", 64 * 1024)
    monkeypatch.setattr("secondtake.cassettes.message.LARGE_PIECE_BYTES", 32 * 1024)
    made = message()
    made.fields = ((b"Content-Length", b"262144"),) if declared else ((b"Content-Type", b"text/event-stream"),)
    for number in range(256):
        made.piece(bytes(1024), number * 10, withhold=False)
    _, _, body = made.finish()
    assert sum(piece.size_bytes for piece in body.pieces) == body.size_bytes == 262144
    assert len(body.pieces) == (8 if declared else 256)
    assert [piece.offset_us for piece in body.pieces][:2] == ([0, 320] if declared else [0, 10])
