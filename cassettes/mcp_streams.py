"""What an MCP server says on a stream that its client holds open (GET), event by event, each with the message it came after. Pure.

Recorded, an event has a time. Played, it waits for what it came after: a reply for the request of its id, anything else for the message
that the client had posted last. So it is with HTTP with SSE, where every reply comes on the stream, and with streamable HTTP, where what
belongs to no request does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from secondtake.cassettes import content as codings
from secondtake.cassettes import limits
from secondtake.cassettes.canonical import media_type
from secondtake.cassettes.catalogue import Catalogue
from secondtake.cassettes.exchange import Channel, Ending
from secondtake.cassettes.memory import Row
from secondtake.cassettes.rpc import Kind, Name, read
from secondtake.cassettes.served import Serve

_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")


@dataclass(frozen=True, slots=True)
class Moment:
    """One event, and the recorded exchange (by number) whose request has to be there first; None: nothing has."""

    data: bytes
    after: int | None


STOPPED = "the recording was stopped"
"""The note of an exchange that was open when its recording ended."""


def is_held(serve: Serve, notes: Sequence[str] = ()) -> bool:
    """Whether this is an answer that its client ended, or the recording: a stream of events that would have gone on."""
    return (
        serve.channel is Channel.MCP
        and (serve.ended is Ending.CLIENT_LEFT or (serve.ended is Ending.RESET and STOPPED in notes))
        and media_type(serve.answer.fields).startswith(b"text/event-stream")
        and not codings.codings(serve.answer.fields)
        and serve.body.size_bytes <= limits.BODY_IN_MEMORY_BYTES
    )


def moments(catalogue: Catalogue, serve: Serve) -> tuple[Moment, ...]:
    """The events of a held stream in their order. Raises Corrupt."""
    exchange = catalogue.cassette.exchange(serve.seq)
    posted = [
        row
        for row in catalogue.rows
        if row.method == "POST" and row.channel is Channel.MCP and (row.host, row.port) == (exchange.request.host, exchange.request.port)
    ]
    by_name: dict[Name, list[Row]] = {}
    for row in posted:
        content = catalogue.request_content(catalogue.cassette.exchange(row.seq).request)
        if content and (said := read(content)).kind is Kind.REQUEST and said.name is not None:
            by_name.setdefault(said.name, []).append(row)
    found = []
    for data, offset_us in _events(serve):
        at_us = exchange.started_us + offset_us
        message = read(b"".join(line[5:].strip() for line in data.splitlines() if line.startswith(b"data:")))
        asked = by_name.get(message.name, posted) if message.kind is Kind.REPLY and message.name is not None else posted
        before = [row.seq for row in asked if row.started_us <= at_us]
        found.append(Moment(data, before[-1] if before else None))
    return tuple(found)


def _events(serve: Serve) -> Iterator[tuple[bytes, int]]:
    """Yield each event with the time at which its last byte came, since the exchange began."""
    whole = serve.body.read(0, serve.body.size_bytes)
    ends = [found.end() for found in _EVENT_END.finditer(whole)]
    pieces = iter(serve.answer.body.pieces)
    reached, offset_us, begin = 0, 0, 0
    for end in (*ends, *([len(whole)] if not ends or ends[-1] < len(whole) else [])):
        while reached < end and (piece := next(pieces, None)) is not None:
            reached += piece.size_bytes
            offset_us = piece.offset_us
        yield whole[begin:end], offset_us
        begin = end
