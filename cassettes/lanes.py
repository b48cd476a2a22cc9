"""The turns of a Responses socket: which messages of the server answer which `response.create` (PROVIDERS A2).

One create begins one turn. Turns of one `stream_id` are answered one after the other, and events of a lane carry its name; a client
that names none has one lane. What the server says after a turn's end and before the next belongs to the turn that ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import orjson

from secondtake.cassettes.adapters.base import Json
from secondtake.cassettes.exchange import Answer, Answered, Body, Ending, Exchange, Request, Side
from secondtake.cassettes.frames import JSON_FIELDS, Flag, Kept, entries
from secondtake.cassettes.websocket import Message, Opcode

ENDS = frozenset({"response.completed", "response.failed", "response.incomplete", "response.cancelled", "error"})
"""Types of the event that ends a turn."""

LANE = "stream_id"


def parsed(opcode: int, data: bytes) -> dict[str, Json] | None:
    """The JSON object of a text message, or None."""
    if opcode != Opcode.TEXT or data.lstrip()[:1] != b"{":
        return None
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def creates(document: dict[str, Json] | None) -> bool:
    """Whether a client's message begins a turn."""
    return document is not None and document.get("type") == "response.create"


def lane_of(document: dict[str, Json] | None) -> str | None:
    """The lane a message names."""
    found = document.get(LANE) if document is not None else None
    return found if isinstance(found, str) else None


class Lanes[Turn]:
    """Turns that are open, and the last one of each lane."""

    def __init__(self) -> None:
        self._open: dict[str | None, deque[Turn]] = {}
        self._last: dict[str | None, Turn] = {}
        self.latest: Turn | None = None
        """The turn that was last spoken of."""

    def begin(self, lane: str | None, turn: Turn) -> None:
        """The client began a turn."""
        self._open.setdefault(lane, deque()).append(turn)
        self._last.setdefault(lane, turn)

    def unfinished(self) -> Iterator[Turn]:
        """Yield the turns that have not ended."""
        for lane in self._open.values():
            yield from lane

    def said(self, document: dict[str, Json] | None) -> tuple[Turn | None, bool]:
        """The turn a server's message belongs to, and whether it ends it."""
        lane, turn = lane_of(document), None
        waiting = self._open.get(lane)
        if not waiting and lane is None and lane not in self._last:  # of no lane, and every turn has one
            lane = next((name for name, turns in self._open.items() if turns), next(iter(self._last), None))
            waiting = self._open.get(lane)
        turn = waiting[0] if waiting else self._last.get(lane)
        ends = bool(waiting) and document is not None and document.get("type") in ENDS
        if turn is not None:
            self.latest = self._last[lane] = turn
        if ends and waiting:
            waiting.popleft()
        return turn, ends

    def spoken_to(self, document: dict[str, Json] | None) -> Turn | None:
        """The turn that another message of the client (a steer, a cancel) is about: the one at work in its lane, or the latest."""
        lane = lane_of(document)
        waiting = self._open.get(lane) or next((turns for turns in self._open.values() if turns), None)
        return waiting[0] if waiting else self.latest


# --- a turn as the exchange it would be over HTTP


@dataclass(slots=True)
class Turn:
    """One create and what answered it."""

    sent: Kept
    said: list[Kept] = field(default_factory=list)
    ended: bool = False

    def events(self) -> bytes:
        """What the server said, as server-sent events."""
        return b"".join(as_event(one.data) for one in self.said)


def as_event(data: bytes) -> bytes:
    """One message as a server-sent event, as Responses over HTTP sends it."""
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return b"".join(b"data: %s\n" % line for line in lines) + b"\n"


def turns(said: Iterator[Kept]) -> list[Turn]:
    """The turns of a socket, in the order they were begun; none where it is not a Responses socket."""
    found: list[Turn] = []
    lanes: Lanes[Turn] = Lanes()
    for entry in said:
        if entry.opcode != Opcode.TEXT or entry.flags & Flag.CUT:
            continue
        document = parsed(entry.opcode, entry.data)
        if entry.side is Side.REQUEST:
            if creates(document):
                found.append(Turn(entry))
                lanes.begin(lane_of(document), found[-1])
        else:
            turn, ends = lanes.said(document)
            if turn is not None:
                turn.said.append(entry)
                turn.ended = turn.ended or ends
    return found


SSE_FIELDS = ((b"content-type", b"text/event-stream"),)


def as_request(upgrade: Request) -> Request:
    """A create as the POST it would be: the same address, and a JSON body."""
    return replace(upgrade, method="POST", fields=JSON_FIELDS, body=Body(), trailers=())


def as_exchange(exchange: Exchange, turn: Turn) -> Exchange:
    """A turn with the times it had. Its bodies are named by those of the whole socket; `calls` gives its own."""
    begun = exchange.started_us + turn.sent.offset_us
    last = turn.said[-1].offset_us if turn.said else turn.sent.offset_us
    answer, answered = None, exchange.answered
    if turn.said and exchange.answer is not None:
        answer = Answer(200, fields=SSE_FIELDS, body=exchange.answer.body, offset_us=turn.said[0].offset_us - turn.sent.offset_us)
        answered = Answered.EXACT if answered is Answered.MISS else answered  # the miss is what closed it
    return replace(
        exchange,
        started_us=begun,
        ended_us=max(begun, exchange.started_us + last),
        request=replace(as_request(exchange.request), body=exchange.request.body),
        answer=answer,
        ended=Ending.COMPLETE if turn.ended else exchange.ended,
        answered=answered,
    )


def calls(exchange: Exchange, content: Callable[[Exchange, Side], bytes | None]) -> Iterator[tuple[Exchange, bytes | None, bytes | None]]:
    """Yield each turn of a kept socket as an exchange, what was asked, and what was said to it. `content` gives a body, or None.

    Raises:
        Corrupt: the socket is not what its table says.
    """
    sent, received = content(exchange, Side.REQUEST), content(exchange, Side.RESPONSE)
    if sent is None or received is None:
        yield exchange, None, None
        return
    for turn in turns(entries(exchange, sent, received)):
        part = as_exchange(exchange, turn)
        yield part, turn.sent.data, turn.events() if part.answer is not None else None


def error(message: str, kind: str, lane: str | None) -> Message:
    """An error as the provider says it on a socket, of the kind its clients do not try again."""
    made: dict[str, Json] = {
        "type": "error",
        "status": 400,
        "error": {"type": "invalid_request_error", "code": kind, "message": message, "param": None},
    }
    if lane is not None:
        made[LANE] = lane
    return Message(Opcode.TEXT, orjson.dumps(made))
