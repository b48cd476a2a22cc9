"""What is heard on an upgraded connection: bytes of both directions in, the messages of its socket onto the tape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondtake.cassettes import adapters, frames, lanes
from secondtake.cassettes.errors import RecordedError
from secondtake.cassettes.exchange import Channel, Ending, Request, Side
from secondtake.cassettes.frames import Log, Over
from secondtake.cassettes.redact import Redactor
from secondtake.cassettes.websocket import Message, Opcode, Reader, Unreadable
from secondtake.proxy.framing import HTTP_1_1
from secondtake.proxy.policy import Mode, Sockets, Upgrade, is_websocket

if TYPE_CHECKING:
    from secondtake.proxy.addon import Wire
    from secondtake.proxy.handler import WireHandler
    from secondtake.proxy.tape import Tape


def keeps_messages(wire: Wire, request: Request) -> bool:
    """Whether this request is an upgrade whose messages are kept."""
    return wire.settings.websocket is Sockets.RECORD and is_websocket(request)


def upgrade_of(wire: Wire, handler: WireHandler, request: Request) -> Upgrade | None:
    """What can be done with a WebSocket upgrade; None for what is none, or is refused or relayed unread.

    A retake that plays its first calls cannot go on live on a socket: what the recorded responses left behind is not there.
    """
    if request.protocol != HTTP_1_1 or not is_websocket(request):
        return None
    keeps = wire.settings.websocket is Sockets.RECORD
    match wire.policy.mode:
        case Mode.RECORD:
            return Upgrade.KEEP if keeps else None
        case Mode.RETAKE if adapters.upgrades_to_model(request):
            whole = wire.retake is not None and wire.retake.from_step == 0
            return Upgrade.KEEP if keeps and whole and adapters.recognise(lanes.as_request(request), None) is not None else None
        case _:
            dialogues = wire.session(handler).dialogues
            try:
                if dialogues.known(request):
                    return Upgrade.PLAY
                return Upgrade.ANSWER if dialogues.declined(request) else None
            except RecordedError:
                return Upgrade.PLAY  # damage is told where it is opened


class Tap:
    """The messages of one socket, onto its tape. Never raises for what the wire says: what cannot be read is kept as bytes."""

    def __init__(self, tape: Tape, redactor: Redactor, request: Request, channel: Channel) -> None:
        self.tape = tape
        self._log = Log(redactor)
        self._request = request
        self._channel = channel
        self._readers = {Side.REQUEST: Reader(masked=True), Side.RESPONSE: Reader(masked=False)}
        self._broken: set[Side] = set()
        self._closing = False
        self._turns: lanes.Lanes[int] | None = None
        """Of a model's socket: the calls on it."""
        self._full = False
        tape.detail(frames.DETAIL, self._log.table)

    def request_piece(self, data: bytes) -> None:
        """Bytes of the client's."""
        self.feed(Side.REQUEST, data)

    def response_piece(self, data: bytes) -> None:
        """Bytes of the origin's."""
        self.feed(Side.RESPONSE, data)

    def feed(self, side: Side, data: bytes) -> list[Message]:
        """Bytes of one direction as they came; the messages that are whole now."""
        if side in self._broken:
            self.said(side, frames.BYTES, data)
            return []
        found: list[Message] = []
        reader = self._readers[side]
        try:
            for message in reader.feed(data):
                found.append(message)
                self.said(side, message.opcode, message.data)
        except Unreadable as error:
            self._broken.add(side)
            self.tape.note(f"websocket: the {side}'s frames cannot be read: {error}; kept as bytes from there on")
            self.said(side, frames.BYTES, data)
        return found

    def said(self, side: Side, opcode: int, data: bytes, *, cut: bool = False) -> None:
        """Keep one message."""
        kept = self._log.add(side, opcode, data, self.tape.offset_us, cut=cut)
        if kept is None:
            if not self._full:
                self._full = True
                self.tape.note("websocket: more messages came than are listed; the later ones are not kept")
            return
        content, redactions = kept
        self._closing = self._closing or opcode == Opcode.CLOSE
        self.tape.redacted(redactions)
        if self._channel is Channel.MODEL and not cut:
            self._follow(side, opcode, data)
        if side is Side.REQUEST:
            self.tape.request_piece(content)
        else:
            self.tape.response_piece(content)

    def _follow(self, side: Side, opcode: int, data: bytes) -> None:
        """Know which calls are open, and by the first of them what is spoken."""
        told = lanes.parsed(opcode, data)
        if side is Side.RESPONSE:
            if self._turns is not None and opcode == Opcode.TEXT:
                self._turns.said(told)
        elif lanes.creates(told):
            if self._turns is None:
                self._turns = lanes.Lanes()
                adapter = adapters.recognise(lanes.as_request(self._request), data)
                if adapter is not None:
                    self.tape.reads_as(adapter)
            self._turns.begin(lanes.lane_of(told), 0)

    def finish(self, how: Ending) -> Ending:
        """The connection is over: who ended it, and how that ends the exchange.

        A close frame makes any end a good one, and so does a client that leaves when every call was answered to its end (Codex does).
        """
        if self.tape.ended is not None:
            return how
        for side, reader in self._readers.items():
            if side not in self._broken and (part := reader.unfinished) is not None:
                self.said(side, part.opcode, part.data, cut=True)
        if self._closing:
            self._log.over(Over.CLOSED)
            return Ending.COMPLETE
        left = how is Ending.CLIENT_LEFT
        self._log.over(Over.CLIENT if left else Over.ORIGIN)
        if left and self._turns is not None and not any(True for _ in self._turns.unfinished()):
            return Ending.COMPLETE
        return how if left else Ending.RESET
