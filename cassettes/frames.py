"""The messages of one upgraded exchange: how they are kept, and read again.

The payloads of a side stand one after the other in its body (request: the client's; response: the server's), so that bodies are
stored, deltified, exported and verified like any other. `details["websocket"]` lists both sides in the order they came; docs/format.md
has the table. Each message is redacted by itself, as text or as bytes by its opcode, and keeps its length; where a message could not be
judged its seal stands in its place and the entry says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntFlag
from typing import Protocol

from secondtake.cassettes import limits
from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.exchange import Exchange, Fields, Redaction, Side
from secondtake.cassettes.redact import RedactedBody
from secondtake.cassettes.websocket import Message, Opcode

DETAIL = "websocket"
"""The name of the table in `Exchange.details`."""

VERSION = 1

JSON_FIELDS: Fields = ((b"content-type", b"application/json"),)
"""How a text message is judged: as text, whatever its first bytes look like."""

BYTES = 16
"""In place of an opcode: bytes of a direction that could not be read as frames."""


class Flag(IntFlag):
    """What is to be known of one entry."""

    CUT = 1
    """The message never became whole."""
    WITHHELD = 2
    """Nothing of it was kept but a seal."""


NO_FLAGS = Flag(0)


class Over:
    """Who ended the socket, the value of `over` in the table. Absent: the recorder stopped first."""

    CLOSED = "closed"
    """A close frame was seen."""
    ORIGIN = "origin"
    CLIENT = "client"
    """The connection ended without one: the other side was told 1006."""


class Redacts(Protocol):
    """The part of the redactor that is needed here."""

    def body(self, content: bytes, fields: Fields, side: Side) -> RedactedBody: ...


@dataclass(frozen=True, slots=True)
class Kept:
    """One entry as it is kept. `opcode` is an `Opcode`, or BYTES. `offset_us`: since the exchange began."""

    side: Side
    opcode: int
    data: bytes
    offset_us: int
    flags: Flag = NO_FLAGS

    @property
    def message(self) -> Message:
        return Message(Opcode(self.opcode), self.data)

    @property
    def is_data(self) -> bool:
        return self.opcode in (Opcode.TEXT, Opcode.BINARY)


class Log:
    """Grows with what is said. `table` is for `details` and is filled in place, so that it stands there whenever the exchange ends."""

    def __init__(self, redactor: Redacts) -> None:
        self._redactor = redactor
        self._entries: list[list[int]] = []
        self._size = {Side.REQUEST: 0, Side.RESPONSE: 0}
        self.table: dict[str, object] = {"v": VERSION, "log": self._entries}

    def add(self, side: Side, opcode: int, data: bytes, offset_us: int, *, cut: bool = False) -> tuple[bytes, tuple[Redaction, ...]] | None:
        """List one entry: the bytes to keep in the body of `side` and what was hidden in them. None when there are too many."""
        if len(self._entries) >= limits.SOCKET_MESSAGES:
            self.table["more"] = True
            return None
        told = judged(self._redactor, side, opcode, data)
        flags = (Flag.CUT if cut else Flag(0)) | (Flag.WITHHELD if told.withheld is not None else Flag(0))
        self._entries.append([int(side is Side.RESPONSE), int(opcode), len(told.content), offset_us, int(flags)])
        at = self._size[side]
        self._size[side] = at + len(told.content)
        return told.content, tuple(replace(one, start=one.start + at, stop=one.stop + at) for one in told.redactions)

    def over(self, who: str) -> None:
        """Say who ended it."""
        self.table["over"] = who


def judged(redactor: Redacts, side: Side, opcode: int, data: bytes) -> RedactedBody:
    """One message as it may be kept, and as it is compared."""
    if opcode == Opcode.CLOSE:  # the code's two bytes are no text
        told = redactor.body(data[2:], JSON_FIELDS, side)
        shifted = tuple(replace(one, start=one.start + 2, stop=one.stop + 2) for one in told.redactions)
        return replace(told, content=data[:2] + told.content, redactions=shifted)
    return redactor.body(data, JSON_FIELDS if opcode == Opcode.TEXT else (), side)


def listed(details: Mapping[str, object]) -> bool:
    """Whether an exchange is a socket whose messages were kept."""
    table = details.get(DETAIL)
    return isinstance(table, Mapping) and table.get("v") == VERSION


def ended_by(exchange: Exchange) -> str | None:
    """Who ended the socket: a value of `Over`, or None where the recorder stopped first."""
    table = exchange.details.get(DETAIL)
    found = table.get("over") if isinstance(table, Mapping) else None
    return found if isinstance(found, str) else None


def entries(exchange: Exchange, sent: bytes, received: bytes) -> Iterator[Kept]:
    """Yield the entries of a socket. `sent`, `received`: the kept bodies.

    Raises:
        Corrupt: the table is not one, or does not fit the bodies.
    """
    table = exchange.details.get(DETAIL)
    log = table.get("log") if isinstance(table, Mapping) else None
    if not isinstance(log, list | tuple):
        raise Corrupt(f"exchange {exchange.seq}: no list of WebSocket messages")
    bodies, at = (sent, received), [0, 0]
    for entry in log:
        if not isinstance(entry, list | tuple) or len(entry) < 5 or not all(type(value) is int and value >= 0 for value in entry):
            raise Corrupt(f"exchange {exchange.seq}: a WebSocket message is listed in a form that is not known")
        which, opcode, size, offset_us, flags = entry[:5]
        if which > 1 or opcode not in _OPCODES or at[which] + size > len(bodies[which]):
            raise Corrupt(f"exchange {exchange.seq}: a WebSocket message is listed that its body does not hold")
        data = bodies[which][at[which] : at[which] + size]
        at[which] += size
        yield Kept(Side.RESPONSE if which else Side.REQUEST, opcode, data, offset_us, Flag(flags & 3))
    if at != [len(sent), len(received)]:
        raise Corrupt(f"exchange {exchange.seq}: a body holds more than its WebSocket messages")


_OPCODES = frozenset({*map(int, Opcode), BYTES})
