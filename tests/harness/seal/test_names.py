"""The name server: what it says, and what it makes of what is no question."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from secondtake.harness.seal.names import AAAA, A, Names, answered


def question(name: str, kind: int, *, ident: int = 7, flags: int = 0x0100) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"
    return struct.pack(">6H", ident, flags, 1, 0, 0, 0) + labels + struct.pack(">2H", kind, 1)


def test_each_name_has_one_address_in_each_family_and_is_known_by_it() -> None:
    """D-08: synthetic, stable, and no address of anybody."""
    names = Names()
    for name, last in (("one.example", 1), ("two.example", 2), ("ONE.example", 1)):
        four, six = answered(question(name, A), names), answered(question(name, AAAA), names)
        assert four is not None
        assert six is not None
        assert four.reply[-4:] == bytes((198, 18, 0, last))
        assert (four.name, six.name) == (name.lower(),) * 2
        assert names.of(f"198.18.0.{last}") == names.of(f"fd5e:a1ed:5ea1::{last}") == name.lower()
    assert names.of("192.0.2.1") is None
    assert names.of("198.18.9.9") is None
    assert names.of("no address") is None


def test_a_reply_repeats_the_question_as_it_was_asked() -> None:
    """RFC 1035 section 4.1: ident and question come back, with one answer; resolvers compare."""
    asked = question("MixED.example", A, ident=0xBEEF)
    answer = answered(asked, Names())
    assert answer is not None
    assert struct.unpack_from(">6H", answer.reply) == (0xBEEF, 0x8180, 1, 1, 0, 0)
    assert answer.reply[12 : len(asked)] == asked[12:]


def test_every_other_type_exists_and_is_empty() -> None:
    """D-08: HTTPS and SVCB records cannot hide a host, TXT cannot carry anything out."""
    for kind in (65, 64, 16, 15, 33, 12):
        answer = answered(question("x.example", kind), Names())
        assert answer is not None
        assert struct.unpack_from(">6H", answer.reply) == (7, 0x8180, 1, 0, 0, 0)


def test_localhost_is_loopback() -> None:
    """RFC 6761 section 6.3."""
    names = Names()
    for name in ("localhost", "app.localhost"):
        answer = answered(question(name, A), names)
        assert answer is not None
        assert answer.reply[-4:] == bytes((127, 0, 0, 1))
    assert names.numbers == {}


def test_what_cannot_be_read_is_said_to_be_so() -> None:
    """A format error for a broken question, nothing for an answer or a fragment, "not implemented" for other requests."""
    names = Names()
    assert answered(b"short", names) is None
    assert answered(question("x", A, flags=0x8000), names) is None
    for query, code in (
        (question("x", A)[:-3], 1),
        (question("x", A)[:12] + b"\xc0\x0c\0\1\0\1", 1),
        (struct.pack(">6H", 7, 0, 2, 0, 0, 0), 1),
        (question("x", A, flags=0x2800), 4),
        (question(".".join(["a" * 60] * 5), A), 1),
    ):
        answer = answered(query, names)
        assert answer is not None
        assert (answer.name, answer.reply[3] & 15) == (None, code)


def test_when_all_addresses_are_given_the_server_fails() -> None:
    """2 to the 17 names; none is given twice."""
    names = Names(numbers={str(number): number for number in range(131_070)})
    answer = answered(question("one-more.example", A), names)
    assert answer is not None
    assert answer.reply[3] & 15 == 2


@given(st.binary(max_size=300))
def test_any_bytes_are_survived(query: bytes) -> None:
    """An agent sends what it likes."""
    answer = answered(query, Names())
    assert answer is None or answer.reply[:2] == query[:2]
