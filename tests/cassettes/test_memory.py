"""The cassette in memory that ships as a fake."""

from __future__ import annotations

import pytest

from secondtake.cassettes.errors import NotFound
from secondtake.cassettes.exchange import EMPTY, Answer, Body, Channel, Digest, Ending, Request
from secondtake.cassettes.memory import MemoryCassette, fields, row_of

REQUEST = Request("POST", "https", "h.example", 443, b"/a")


def test_a_row_says_what_its_exchange_says() -> None:
    """STORE contract: the light form."""
    cassette = MemoryCassette()
    seq = cassette.record(REQUEST, Answer(201), sent=b"in", received=b"out!", channel=Channel.MCP, started_us=5, ended_us=9)
    row = cassette.rows[0]
    assert (row.seq, row.status, row.channel, row.request_size, row.response_size, row.started_us) == (seq, 201, Channel.MCP, 2, 4, 5)
    assert row == row_of(cassette.exchange(seq))
    assert cassette.body(cassette.exchange(seq).request.body).read(0, 9) == b"in"
    assert row.keys is not None


def test_an_exchange_in_flight_has_no_status_and_no_keys() -> None:
    """STORE contract: a died cassette."""
    cassette = MemoryCassette()
    cassette.record(REQUEST, None, ended=Ending.RECORDER_DIED)
    assert (cassette.rows[0].status, cassette.rows[0].response_digest) == (None, EMPTY)


def test_what_is_not_there_is_not_found() -> None:
    """errors.py: never an empty body."""
    with pytest.raises(NotFound):
        MemoryCassette().exchange(1)
    with pytest.raises(NotFound):
        MemoryCassette().body(Body(Digest("0" * 64), 1))


def test_fields_are_read_from_lines() -> None:
    """A short way to write heads."""
    assert fields("A: b:c", "D:") == ((b"A", b"b:c"), (b"D", b""))
