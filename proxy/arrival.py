"""What becomes of a request, decided by its head: who asks, what for, and who answers. One place, for every protocol and mode."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from secondtake.cassettes.errors import RecordedError
from secondtake.cassettes.exchange import EMPTY, Bytes, Channel, Ending, Request, Source
from secondtake.cassettes.misses import Miss
from secondtake.cassettes.player import Live as LiveBody
from secondtake.cassettes.player import Serve
from secondtake.cassettes.sources import unchecked
from secondtake.proxy.framing import HTTP_1_0, HTTP_1_1, LENGTH_DIGITS, Delimiter, Framed, frame_response, without_body
from secondtake.proxy.local import LocalAnswer
from secondtake.proxy.mcp_stdio import HOST as SHIM_HOST
from secondtake.proxy.policy import Collect, Converse, Hear, Live, Pace, Refuse
from secondtake.proxy.taps import upgrade_of
from secondtake.proxy.translate import Head, Traits, Unreadable, request_of

if TYPE_CHECKING:
    from secondtake.proxy.layers import WireLayer

WHOLE_BYTES = 65_536
"""An answer up to this size is sent at once where nothing asks for its boundaries."""

NOTHING = LiveBody(0, EMPTY, b"")


@dataclass(slots=True)
class Arrival:
    """A request and what is done with it. `found` is the cassette's word, where it was asked already; `damage`, where it had none."""

    request: Request | None
    decision: Live | Collect | Converse | Hear | Refuse | LocalAnswer
    channel: Channel
    keep_alive: bool
    agree: bool
    traits: Traits
    found: Serve | Miss | None = None
    damage: RecordedError | None = None


@dataclass(frozen=True, slots=True)
class Whole:
    """An answer that can be sent in one piece."""

    status: int
    reason: bytes
    framed: Framed
    body: bytes


def arrive(parent: WireLayer, head: Head) -> Arrival:
    """Decide by the head alone."""
    wire, client, connect = parent.wire, parent.context.client, parent.connect
    traits = Traits.of(head.fields)
    keep_alive = _keeps_alive(head.protocol, traits.connection)
    if connect is None and not wire.admit(parent.handler, traits.credentials):
        return Arrival(None, wire.refusals.need_credential(), Channel.WEB, keep_alive, True, traits)
    try:
        if head.method == b"CONNECT":
            raise Unreadable("one tunnel to a connection, and none inside another")
        request, agree = request_of(head, traits, connect=connect, sni=client.sni, tls=client.tls and connect is not None)
    except Unreadable as error:
        return Arrival(None, wire.refusals.unreadable(str(error)), Channel.WEB, keep_alive, True, traits)
    if connect is None:
        wire.greeted(parent.handler, traits.agents)
    if request.host == SHIM_HOST:
        return Arrival(request, Hear(), Channel.MCP, keep_alive, True, traits)
    channel = wire.classify(request)
    upgrade = upgrade_of(wire, parent.handler, request) if traits.upgrades else None
    decision = wire.policy.opening(request, channel, failed=wire.failed is not None, upgrade=upgrade)
    leaves = isinstance(decision, Live) or (isinstance(decision, Converse) and decision.live)
    if isinstance(decision, Collect | Converse) and not agree:
        decision = Refuse("names-disagree")
    elif leaves and (why := wire.forbidden(request)) is not None:
        decision = Refuse(why)
    return Arrival(request, decision, channel, keep_alive, agree, traits)


def at_once(parent: WireLayer, arrival: Arrival) -> Whole | None:
    """Answer a request without a body from the cassette in one piece, where nothing has to be waited for.

    Else None, and what the cassette said (if it was asked) stands in `arrival.found` or `arrival.damage`: a queue is never taken
    from twice.
    """
    wire, request = parent.wire, arrival.request
    if request is None or not isinstance(arrival.decision, Collect) or arrival.traits.expects_continue:
        return None
    if wire.settings.pace is not Pace.FAST:
        return None
    try:
        found = arrival.found = wire.play(parent.handler, request, NOTHING)
    except RecordedError as error:
        arrival.damage = error
        return None
    if not isinstance(found, Serve):
        return None
    answer, size = found.answer, found.body.size_bytes
    unsure = not isinstance(found.body, Bytes) and any(unchecked(found.body))
    if size > WHOLE_BYTES or is_broken(found) or answer.interim or answer.trailers or unsure:
        return None
    framed = frame_serve(found, request, keep_alive=arrival.keep_alive)
    if framed.delimiter in (Delimiter.CHUNKED, Delimiter.STREAM) and len(answer.body.pieces) > 1:
        return None  # its boundaries can be seen, so they are kept
    try:
        body = found.body.read(0, size) if not without_body(request.method, answer.status) else b""
    except RecordedError as error:
        arrival.damage = error
        return None
    wire.served(request, arrival.channel, found)
    return Whole(answer.status, answer.reason, framed, body)


async def settled(body: Source) -> None:
    """Have a large body read whole and compared, in threads: half a second for 500 MB that others need not wait for.

    Damage is not told here: reading says it.
    """
    for one in unchecked(body):
        with contextlib.suppress(RecordedError):
            await asyncio.to_thread(one.check)


BROKEN = frozenset({Ending.RESET, Ending.TIMEOUT, Ending.CLIENT_LEFT, Ending.RECORDER_DIED})
"""Endings that are played as a body cut short."""


def is_broken(serve: Serve) -> bool:
    """Whether a recorded answer is cut short when it is played. What we answered in the origin's place came whole then, and does now."""
    return serve.ended in BROKEN and not serve.answer.synthetic


def frame_serve(serve: Serve, request: Request, *, keep_alive: bool) -> Framed:
    """Frame a recorded answer for this client: the length as declared then, or as measured where a client cannot take chunks."""
    answer = serve.answer
    size = 0 if without_body(request.method, answer.status) else serve.body.size_bytes
    declared, coded = None, False
    for name, value in answer.fields:
        if len(name) == 14 and name.lower() == b"content-length" and value.isdigit() and len(value) <= LENGTH_DIGITS:
            declared = int(value)
        elif len(name) == 17 and name.lower() == b"transfer-encoding":
            coded = True
    declared = None if coded else declared
    length: int | None
    if is_broken(serve):
        length = declared if declared is not None and declared >= size else None
    elif declared is not None or size == 0 or request.protocol == HTTP_1_0:
        length = size
    else:
        length = None
    return frame_response(
        answer.fields,
        method=request.method,
        status=answer.status,
        protocol=request.protocol,
        size_bytes=length,
        has_trailers=bool(answer.trailers) and request.protocol == HTTP_1_1,
        keep_alive=keep_alive,
    )


def _keeps_alive(protocol: str, wanted: list[bytes]) -> bool:
    """Whether an HTTP/1 client will send another request on its connection (RFC 9112 9.3)."""
    if b"close" in wanted:
        return False
    return protocol != HTTP_1_0 or b"keep-alive" in wanted
