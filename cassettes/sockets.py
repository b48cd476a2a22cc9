"""Recorded sockets of one address: what was said on each, what it means, and what of it has been played."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from secondtake.cassettes import frames, lanes
from secondtake.cassettes.canonical import Document, document
from secondtake.cassettes.catalogue import Catalogue
from secondtake.cassettes.differences import Difference, Found, body_differences
from secondtake.cassettes.exchange import Answer, Channel, Fields, Request, Side
from secondtake.cassettes.frames import Kept
from secondtake.cassettes.match import subject
from secondtake.cassettes.misses import Miss, MissKind, Nearest, describe, printable
from secondtake.cassettes.normalise import body_form, normalised
from secondtake.cassettes.placeholder import collapse
from secondtake.cassettes.redact import RedactedBody
from secondtake.cassettes.websocket import Message, Opcode

SWITCHING = 101


class Redacts(Protocol):
    """The part of the redactor that is needed here."""

    def request(self, request: Request) -> tuple[Request, tuple[object, ...]]: ...
    def body(self, content: bytes, fields: Fields, side: Side) -> RedactedBody: ...


@dataclass(slots=True)
class Socket:
    """One recorded socket. `entries` are whole messages up to the client's close; what follows is the closing handshake."""

    position: int
    seq: int
    answer: Answer
    entries: list[Kept]
    drops: bool
    parting: Message | None
    """What the server's close said where the client closed first."""
    open_turns: int = 0
    taken: bool = False

    def first(self) -> Kept | None:
        """The first message that counts."""
        return next((entry for entry in self.entries if entry.side is Side.RESPONSE or entry.is_data), None)


@dataclass(slots=True)
class Turn:
    """One recorded create and what came of it. `script` holds what the server said, and what else the client said in between."""

    socket: Socket
    sent: Kept
    lane: str | None
    previous: object
    form: bytes
    script: list[Kept] = field(default_factory=list)
    drops: bool = False
    taken: bool = False


class Reading:
    """What messages mean at one address."""

    def __init__(self, request: Request, catalogue: Catalogue, redactor: Redacts | None) -> None:
        self.request = request if redactor is None else redactor.request(request)[0]
        self._post = lanes.as_request(self.request)
        self._catalogue = catalogue
        self._redactor = redactor

    def shown(self, message: Message) -> bytes:
        """A live message as it would have been kept."""
        if self._redactor is None:
            return message.data
        return frames.judged(self._redactor, Side.REQUEST, message.opcode, message.data).content

    def meant(self, opcode: int, data: bytes) -> Document:
        """A kept message without what does not count. The name of a lane is the client's own choice."""
        found = document(data, b"application/json" if opcode == Opcode.TEXT else b"application/octet-stream")
        if isinstance(found.json, dict):
            found.json.pop(lanes.LANE, None)
        return normalised(found, subject(self._post, found), self._catalogue.rules)

    def form(self, opcode: int, data: bytes) -> bytes:
        """Equal for messages that mean the same."""
        if opcode == Opcode.BINARY:
            return b"\x02" + self._catalogue.aliases.replace(collapse(data))
        return b"\x01" + body_form(self.meant(opcode, data), self._catalogue.aliases)

    def miss(self, kind: MissKind, data: bytes, opcode: int, recorded: Kept | None, seq: int, channel: Channel) -> Miss:
        """Say what was said instead of `recorded`."""
        closest = None
        if recorded is not None:
            found = Found()
            if recorded.opcode == opcode:
                body_differences(self.meant(opcode, recorded.data), self.meant(opcode, data), found)
            else:
                found.add("body", "", Opcode(recorded.opcode).name.lower(), Opcode(opcode).name.lower())
            items = tuple(Difference(one.where, printable(one.path, 200), _line(one.recorded), _line(one.live)) for one in found.items)
            closest = Nearest(seq, self.request.method, self.request.url, SWITCHING, items, found.count - len(items))
        return Miss(kind, closest, describe(kind, self.request, closest), channel)


def _line(text: str | None) -> str | None:
    return None if text is None else printable(text, 120)


class Address:
    """Every recorded socket of one address, and what of them has been played in this session."""

    def __init__(self, sockets: Sequence[Socket], reading: Reading, used: bytearray, channel: Channel) -> None:
        self.sockets = sockets
        self.reading = reading
        self.channel = channel
        self._used = used
        self.turns: list[Turn] = []
        self.preambles: dict[int, list[Kept]] = {}
        for socket in sockets:
            self._read(socket)
        self.by_form: dict[tuple[bool, bytes], list[Turn]] = {}
        for turn in self.turns:
            self.by_form.setdefault((turn.lane is not None, turn.form), []).append(turn)

    def _read(self, socket: Socket) -> None:
        """Take the turns of a socket, if it has any."""
        open_lanes: lanes.Lanes[Turn] = lanes.Lanes()
        preamble = self.preambles[socket.position] = []
        for entry in socket.entries:
            if entry.opcode in (Opcode.PING, Opcode.PONG):
                continue
            told = lanes.parsed(entry.opcode, entry.data)
            turn: Turn | None
            if entry.side is Side.REQUEST:
                if lanes.creates(told) and told is not None:
                    lane, form = lanes.lane_of(told), self.reading.form(entry.opcode, entry.data)
                    turn = Turn(socket, entry, lane, told.get("previous_response_id"), form)
                    open_lanes.begin(lane, turn)
                    open_lanes.latest = open_lanes.latest or turn
                    self.turns.append(turn)
                    socket.open_turns += 1
                elif (turn := open_lanes.spoken_to(told)) is not None:
                    turn.script.append(entry)
                continue
            turn = open_lanes.latest if entry.opcode == Opcode.CLOSE else open_lanes.said(told)[0]
            (preamble if turn is None else turn.script).append(entry)
        if socket.drops and open_lanes.latest is not None:
            open_lanes.latest.drops = True

    def unused(self) -> Iterator[Socket]:
        """Yield the sockets nobody has begun to play."""
        return (socket for socket in self.sockets if not socket.taken)

    def take(self, socket: Socket) -> None:
        """A client was given this one."""
        socket.taken = True
        if not socket.open_turns:
            self._used[socket.position] = 1

    def played(self, turn: Turn) -> None:
        """A turn was given; a socket all of whose turns were is played."""
        turn.taken = True
        turn.socket.open_turns -= 1
        if not turn.socket.open_turns:
            self._used[turn.socket.position] = 1
