"""The messages of a socket as they are kept: listed in order, redacted one by one, read again or refused."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import frames
from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.exchange import Channel, Ending, Exchange, Request, Side
from secondtake.cassettes.frames import BYTES, DETAIL, Flag, Kept, Log
from secondtake.cassettes.redact import RedactedBody, Redactor
from secondtake.cassettes.websocket import Opcode

REDACTOR = Redactor(key=b"k" * 32)
UPGRADE = Request("GET", "https", "a.example", 443, b"/chat")

said = st.lists(
    st.tuples(st.sampled_from(Side), st.sampled_from((*Opcode, BYTES)), st.binary(max_size=40), st.integers(0, 10**9), st.booleans()),
    max_size=20,
)


def exchange(table: object) -> Exchange:
    return Exchange(1, Channel.WEB, 0, UPGRADE, None, Ending.COMPLETE, 1, details={DETAIL: table})


@given(said)
def test_what_was_listed_is_read_in_its_order(entries: list[tuple[Side, int, bytes, int, bool]]) -> None:
    """T-H2: also after the table was packed as a journal packs it."""
    log, bodies = Log(REDACTOR), dict.fromkeys(Side, b"")
    for side, opcode, data, offset_us, cut in entries:
        kept = log.add(side, opcode, data, offset_us, cut=cut)
        assert kept is not None
        bodies[side] += kept[0]
    log.over(frames.Over.CLIENT)
    again = exchange(msgpack.unpackb(msgpack.packb(log.table), use_list=False))
    assert frames.listed(again.details)
    assert frames.ended_by(again) == "client"
    read = list(frames.entries(again, bodies[Side.REQUEST], bodies[Side.RESPONSE]))
    assert [(one.side, one.opcode, len(one.data), one.offset_us, bool(one.flags & Flag.CUT)) for one in read] == [
        (side, opcode, len(data), offset_us, cut) for side, opcode, data, offset_us, cut in entries
    ]


@pytest.mark.parametrize(
    "log",
    [
        None,
        [[0, 1, 4]],
        [[0, 1, 4, 0, 0]],
        [[2, 1, 3, 0, 0]],
        [[0, 3, 3, 0, 0]],
        [[0, 1, -1, 0, 0]],
        [[0, 1, True, 0, 0]],
        [[0, 1, 1, 0, 0]],
        [[0, 1, 3, 0, 0], [1, 1, 1, 0, 0]],
        ["abcde"],
    ],
)
def test_a_list_that_does_not_fit_its_bodies_is_damage(log: object) -> None:
    """B-03: never an answer made of something else."""
    with pytest.raises(Corrupt):
        list(frames.entries(exchange({"v": 1, "log": log}), b"abc", b""))


def test_a_list_of_a_later_version_is_not_read_as_ours() -> None:
    assert not frames.listed({DETAIL: {"v": 2, "log": []}})
    assert not frames.listed({DETAIL: [1]})
    assert not frames.listed({})


def test_each_message_is_redacted_as_what_it_is_and_keeps_its_length() -> None:
    """C-01: a text among bytes is text; ranges count in the body of its side."""
    secret = b"sk-ant-api03-" + b"Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2" * 3
    log = Log(Redactor(key=b"k" * 32))
    assert log.add(Side.REQUEST, Opcode.BINARY, b"\x00\x01", 0) == (b"\x00\x01", ())
    kept = log.add(Side.REQUEST, Opcode.TEXT, b'{"env":"KEY=' + secret + b'"}', 1)
    assert kept is not None
    content, (redaction,) = kept
    assert secret not in content
    assert len(content) == len(secret) + 14
    assert (redaction.start, redaction.stop) == (14, 14 + len(secret))
    closed = log.add(Side.REQUEST, Opcode.CLOSE, b"\x03\xe8" + secret[:120], 2)
    assert closed is not None
    assert closed[0][:2] == b"\x03\xe8"
    assert secret[:60] not in closed[0]


def test_a_message_that_cannot_be_judged_leaves_a_seal_and_says_so() -> None:
    """SECURITY: fails closed."""

    class Broken:
        def body(self, content: bytes, fields: object, side: Side) -> RedactedBody:
            return RedactedBody(b"sealed", withheld="why")

    log = Log(Broken())
    assert log.add(Side.RESPONSE, Opcode.TEXT, b"secret", 5) == (b"sealed", ())
    (entry,) = frames.entries(exchange(log.table), b"", b"sealed")
    assert entry == Kept(Side.RESPONSE, Opcode.TEXT, b"sealed", 5, Flag.WITHHELD)


def test_beyond_the_limit_nothing_is_listed_and_the_table_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """B-11."""
    monkeypatch.setattr("secondtake.cassettes.limits.SOCKET_MESSAGES", 1)
    log = Log(REDACTOR)
    assert log.add(Side.REQUEST, Opcode.TEXT, b"a", 0) is not None
    assert log.add(Side.REQUEST, Opcode.TEXT, b"b", 0) is None
    assert log.table["more"] is True
