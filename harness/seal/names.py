"""The name server of a sealed agent: every name exists, at an address that is nobody's, so that we know the name when it is connected to.

Addresses are from 198.18.0.0/15 (RFC 2544, for benchmarks) and a unique local prefix (RFC 4193). Pure: bytes in, bytes out.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass, field

A, AAAA = 1, 28
_NETWORK = ipaddress.ip_network("198.18.0.0/15")
_NETWORK_6 = ipaddress.ip_network("fd5e:a1ed:5ea1::/96")
_TTL_S = 60
_NO_ERROR, _FORMAT_ERROR, _SERVER_FAILURE, _NOT_IMPLEMENTED = 0, 1, 2, 4
LONGEST_NAME = 253


@dataclass(slots=True)
class Names:
    """The names that were asked for and the addresses they got; the same name, the same address."""

    numbers: dict[str, int] = field(default_factory=dict)
    by_number: dict[int, str] = field(default_factory=dict)

    def number(self, name: str) -> int | None:
        """The place of a name in both networks, from 1; None when all are taken."""
        if name not in self.numbers:
            number = len(self.numbers) + 1
            if number >= _NETWORK.num_addresses - 1:
                return None
            self.numbers[name] = number
            self.by_number[number] = name
        return self.numbers[name]

    def of(self, address: str) -> str | None:
        """The name that an address was given to."""
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return None
        for network in (_NETWORK, _NETWORK_6):
            if parsed.version == network.version and parsed in network:
                return self.by_number.get(int(parsed) - int(network.network_address))
        return None


@dataclass(frozen=True, slots=True)
class Answer:
    """What to send back, and the name that was asked for, in lower case, without a dot at its end; None where it cannot be read."""

    reply: bytes
    name: str | None
    kind: int = 0


def answered(query: bytes, names: Names) -> Answer | None:
    """Answer one DNS message (RFC 1035); None for what is no question.

    Addresses are made up for A and AAAA, and `localhost` is loopback (RFC 6761). Every other type exists and is empty, HTTPS and SVCB
    among them: no hint leads elsewhere, and no key hides the name in the handshake (RFC 9460, ECH).
    """
    if len(query) < 12 or query[2] & 0x80:
        return None
    ident, flags, questions = struct.unpack_from(">HHH", query)
    if flags >> 11 & 0xF:
        return Answer(_head(ident, flags, _NOT_IMPLEMENTED), None)
    read = _question(query) if questions == 1 else None
    if read is None:
        return Answer(_head(ident, flags, _FORMAT_ERROR), None)
    name, end, kind = read
    question = query[12:end]
    data = _address(name, kind, names) if kind in (A, AAAA) else b""
    if data is None:
        return Answer(_head(ident, flags, _SERVER_FAILURE, question), name, kind)
    record = b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, _TTL_S, len(data)) + data if data else b""
    return Answer(_head(ident, flags, _NO_ERROR, question, answers=bool(record)) + record, name, kind)


def _address(name: str, kind: int, names: Names) -> bytes | None:
    if name == "localhost" or name.endswith(".localhost"):
        return ipaddress.ip_address("127.0.0.1" if kind == A else "::1").packed
    number = names.number(name)
    if number is None:
        return None
    network = _NETWORK if kind == A else _NETWORK_6
    return network[number].packed


def _head(ident: int, flags: int, code: int, question: bytes = b"", *, answers: bool = False) -> bytes:
    # Response, recursion available; opcode and "recursion desired" as asked.
    said = 0x8080 | flags & 0x7900 | code
    return struct.pack(">6H", ident, said, bool(question), answers, 0, 0) + question


def _question(query: bytes) -> tuple[str, int, int] | None:
    """The first question's name, where it ends, its type."""
    labels, at = [], 12
    while at < len(query) and query[at]:
        length = query[at]
        if length > 63:  # a pointer has nothing to point at in a question
            return None
        labels.append(query[at + 1 : at + 1 + length])
        at += 1 + length
    end = at + 5
    if end > len(query) or sum(map(len, labels)) + len(labels) - 1 > LONGEST_NAME:
        return None
    return b".".join(labels).decode("ascii", "backslashreplace").lower(), end, struct.unpack_from(">H", query, at + 1)[0]
