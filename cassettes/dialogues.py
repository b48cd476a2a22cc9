"""Recorded sockets, played against what a live client says.

Two kinds. On a Responses socket each `response.create` is looked up by what it says, `previous_response_id` included, among the turns of
every recorded socket of that address: so a reconnect continues the chain, and lanes may come in any order, each in its own. On any other
socket the recorded messages are a script: what the server said is said again once the client has said what it said before it.

Compared are data messages only, redacted and canonical, by the rules that requests are compared by. Pings of the server are part of a
script; pongs, the client's pings and the closing handshake belong to the connection. Pure: offsets come out, nobody waits here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from secondtake.cassettes import frames, lanes
from secondtake.cassettes.catalogue import Catalogue
from secondtake.cassettes.exchange import Answered, Channel, Request, Side
from secondtake.cassettes.frames import Flag, Kept, Over
from secondtake.cassettes.json_places import quoted, splice, strings
from secondtake.cassettes.limits import DECODED_BYTES
from secondtake.cassettes.memory import Row
from secondtake.cassettes.misses import Miss, MissKind
from secondtake.cassettes.sockets import SWITCHING, Address, Reading, Redacts, Socket
from secondtake.cassettes.websocket import Message, Opcode


@dataclass(frozen=True, slots=True)
class Say:
    """Send a message, `after_us` after what the client said last (or the opening)."""

    message: Message
    after_us: int
    lane: str | None = None
    """What is said in one lane is said in order."""


@dataclass(frozen=True, slots=True)
class Drop:
    """End the connection without a close frame: the client is told 1006, as it was then."""

    after_us: int


type Out = Say | Drop


class Dialogue(Protocol):
    """One live socket."""

    how: Answered
    """`exact`, or `normalised` once a message was not the recorded one byte for byte."""

    @property
    def socket(self) -> Socket:
        """The recorded one that gives the head."""
        ...

    def opened(self) -> list[Out]:
        """What the server says first."""
        ...

    def heard(self, message: Message) -> list[Out] | Miss:
        """What it says to a data message."""
        ...


@dataclass(slots=True)
class _Track:
    """A script, and how far it is said."""

    script: list[Kept]
    drops: bool
    lane: str | None = None
    """The live one; events that carry another get this."""
    at: int = 0

    def run(self, since_us: int) -> list[Out]:
        """Say what comes up to the client's next word, or to the end."""
        out: list[Out] = []
        while self.at < len(self.script) and self.script[self.at].side is Side.RESPONSE:
            entry = self.script[self.at]
            self.at += 1
            if entry.opcode != Opcode.PONG:
                out.append(Say(self._named(entry), max(0, entry.offset_us - since_us), self.lane))
        if self.at == len(self.script) and self.drops:
            out.append(Drop(out[-1].after_us if out else 0))
        return out

    def awaited(self) -> Kept | None:
        """What the client says next."""
        return self.script[self.at] if self.at < len(self.script) else None

    def _named(self, entry: Kept) -> Message:
        if self.lane is None or lanes.lane_of(lanes.parsed(entry.opcode, entry.data)) in (None, self.lane):
            return entry.message
        places = strings(entry.data, [(lanes.LANE,)])
        name = quoted(self.lane)
        return Message(Opcode.TEXT, splice(entry.data, [(place.start, place.stop, name) for place in places]))


class Script:
    """A socket whose messages are said again in their order. Which of several it is may be known only by the client's first word."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._candidates = list(address.unused())
        self.socket = self._candidates[0]
        self._track: _Track | None = None
        self.how = Answered.EXACT

    def opened(self) -> list[Out]:
        first = self.socket.first()
        if len(self._candidates) > 1 and first is not None and first.side is Side.REQUEST:
            return []
        return self._begin(self.socket)

    def _begin(self, socket: Socket) -> list[Out]:
        self.socket = socket
        self._address.take(socket)
        script = [entry for entry in socket.entries if entry.side is Side.RESPONSE or entry.is_data]
        self._track = _Track(script, socket.drops)
        return self._track.run(0)

    def heard(self, message: Message) -> list[Out] | Miss:
        reading = self._address.reading
        data = reading.shown(message)
        form = reading.form(message.opcode, data)
        out: list[Out] = []
        if self._track is None:
            waiting = [one for one in self._candidates if not one.taken]
            chosen = next((one for one in waiting if (first := one.first()) and self._fits(first, message.opcode, form)), None)
            out += self._begin(chosen or (waiting or self._candidates)[0])
        assert self._track is not None
        awaited = self._track.awaited()
        if awaited is None or not self._fits(awaited, message.opcode, form):
            return reading.miss(MissKind.WS_DIVERGED, data, message.opcode, awaited, self.socket.seq, self._address.channel)
        if awaited.data != data:
            self.how = Answered.NORMALISED
        self._track.at += 1
        return out + self._track.run(awaited.offset_us)

    def _fits(self, entry: Kept, opcode: Opcode, form: bytes) -> bool:
        return entry.opcode == opcode and self._address.reading.form(entry.opcode, entry.data) == form


class Chain:
    """A Responses socket: each turn by what it says and what it goes on from."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self.socket = next(address.unused(), address.sockets[-1])
        self._tracks: list[_Track] = []
        self.how = Answered.EXACT

    def opened(self) -> list[Out]:
        fresh = not self.socket.taken
        self._address.take(self.socket)
        return [Say(entry.message, entry.offset_us) for entry in self._address.preambles[self.socket.position]] if fresh else []

    def heard(self, message: Message) -> list[Out] | Miss:
        address, reading = self._address, self._address.reading
        data = reading.shown(message)
        form = reading.form(message.opcode, data)
        told = lanes.parsed(message.opcode, data)
        if not lanes.creates(told):
            return self._interjected(message, data, form)
        lane = lanes.lane_of(told)
        found = next((turn for turn in address.by_form.get((lane is not None, form), ()) if not turn.taken), None)
        if found is None:
            previous = told.get("previous_response_id") if told is not None else None
            left = [turn for turn in address.turns if not turn.taken]
            nearest = next((turn for turn in left if turn.previous == previous), left[0] if left else None)
            recorded, seq = (nearest.sent, nearest.socket.seq) if nearest is not None else (None, 0)
            return reading.miss(MissKind.WS_DIVERGED, data, message.opcode, recorded, seq, address.channel)
        address.played(found)
        if found.sent.data != data:
            self.how = Answered.NORMALISED
        track = _Track(found.script, found.drops, lane)
        self._tracks = [one for one in self._tracks if one.awaited() is not None]
        self._tracks.append(track)
        return track.run(found.sent.offset_us)

    def _interjected(self, message: Message, data: bytes, form: bytes) -> list[Out] | Miss:
        """A steer or a cancel: it lets the turn go on that waits for it."""
        reading = self._address.reading
        for track in self._tracks:
            awaited = track.awaited()
            if awaited is not None and awaited.opcode == message.opcode and reading.form(awaited.opcode, awaited.data) == form:
                track.at += 1
                return track.run(awaited.offset_us)
        waiting = next((one for track in self._tracks if (one := track.awaited()) is not None), None)
        return reading.miss(MissKind.WS_DIVERGED, data, message.opcode, waiting, self.socket.seq, self._address.channel)


class Dialogues:
    """The recorded sockets of one session of a player. `used` is the session's."""

    def __init__(self, catalogue: Catalogue, redactor: Redacts | None, used: bytearray) -> None:
        self._catalogue = catalogue
        self._redactor = redactor
        self._used = used
        self._positions: dict[tuple[str, str, int, bytes], list[int]] = {}
        for position, row in enumerate(catalogue.rows):
            if row.status == SWITCHING:
                self._positions.setdefault(catalogue.resource_name(row), []).append(position)
        self._addresses: dict[tuple[str, str, int, bytes], Address | None] = {}

    def open(self, request: Request) -> Dialogue | None:
        """A dialogue with a client that asks for this upgrade; None where no messages of one are left to play.

        Raises:
            Corrupt: what was kept of one is damaged.
        """
        address = self._address(request)
        if address is None:
            return None
        if address.turns:
            return Chain(address)
        return Script(address) if any(address.unused()) else None

    def known(self, request: Request) -> bool:
        """Whether messages of a socket of this address were kept. Raises Corrupt."""
        return self._address(request) is not None

    def declined(self, request: Request) -> bool:
        """Whether the origin answered this upgrade with something else than 101; that answer is served like any other."""
        catalogue = self._catalogue
        return any(
            not catalogue.rows[position].synthetic and _upgrades(catalogue.kept(position).exchange.request)
            for position in catalogue.resource(catalogue.resource_name(request))
        )

    def _address(self, request: Request) -> Address | None:
        if not self._positions:
            return None
        name = self._catalogue.resource_name(request)
        if name not in self._addresses:
            found = [one for position in self._positions.get(name, ()) if (one := self._socket(position)) is not None]
            channel = self._catalogue.rows[found[0].position].channel if found else Channel.WEB
            reading = Reading(request, self._catalogue, self._redactor)
            self._addresses[name] = Address(found, reading, self._used, channel) if found else None
        return self._addresses[name]

    def _socket(self, position: int) -> Socket | None:
        """A recorded socket, None where its messages were not kept whole."""
        row: Row = self._catalogue.rows[position]
        kept = self._catalogue.kept(position)
        exchange, cassette = kept.exchange, self._catalogue.cassette
        if not frames.listed(exchange.details) or max(row.request_size, row.response_size) > DECODED_BYTES:
            return None
        if "request_withheld" in exchange.details or "response_withheld" in exchange.details:
            return None
        sent = cassette.body(exchange.request.body).read(0, row.request_size)
        received = cassette.body(kept.answer.body).read(0, row.response_size)
        entries: list[Kept] = []
        leaving, parting = False, None
        for entry in frames.entries(exchange, sent, received):
            if entry.opcode == frames.BYTES or (entry.side is Side.RESPONSE and entry.flags & Flag.WITHHELD):
                return None
            if leaving and entry.side is Side.RESPONSE and entry.opcode == Opcode.CLOSE:
                parting = entry.message
            leaving = leaving or (entry.side is Side.REQUEST and entry.opcode == Opcode.CLOSE)
            if not leaving and not entry.flags & Flag.CUT:
                entries.append(entry)
        drops = frames.ended_by(exchange) == Over.ORIGIN
        return Socket(position, row.seq, kept.answer, entries, drops, parting)


def _upgrades(request: Request) -> bool:
    return any(name.lower() == b"upgrade" and b"websocket" in value.lower() for name, value in request.fields)
