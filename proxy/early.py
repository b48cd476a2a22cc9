"""The rest of a request that was answered before it was whole: how long it is still read, and what then."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mitmproxy.proxy import commands
from mitmproxy.proxy.layers.http._events import ErrorCode, RequestProtocolError

from secondtake.proxy.commands import Abort

if TYPE_CHECKING:
    from secondtake.proxy.stream import Commands, WireStream
    from secondtake.proxy.tape import Tape

IDLE_S = 0.3
"""A client that sends nothing for so long has stopped, as curl does when it is refused; or it waits for the end of its answer."""

LONGEST_S = 10.0
"""How long one that goes on sending is listened to: what it sends goes nowhere any more."""

MOST_BYTES = 64 * 1024 * 1024
"""And how much of it. Within these bounds the request that is kept is the whole one, so that it is found again in replay."""


class Rest:
    """What still comes of such a request. It is kept, and goes nowhere."""

    def __init__(self, tape: Tape, now_us: Callable[[], int], then: Callable[[], Commands]) -> None:
        """`then` is what is left to do when nothing more is waited for."""
        self._tape = tape
        self._now_us = now_us
        self._then = then
        self._began_us = now_us()
        self._came = 0
        self._seen = 0

    def wait(self) -> Commands:
        yield commands.RequestWakeup(IDLE_S)

    def piece(self, data: bytes) -> Commands:
        """So much more came."""
        self._tape.request_piece(data)
        self._came += len(data)
        if self._came > MOST_BYTES:
            yield from self.conclude(whole=False)

    def wakeup(self) -> Commands:
        """IDLE_S have passed."""
        idle, self._seen = self._came == self._seen, self._came
        if idle or self._now_us() - self._began_us > LONGEST_S * 1e6:
            yield from self.conclude(whole=False)
        else:
            yield from self.wait()

    def conclude(self, *, whole: bool) -> Commands:
        """Nothing more is waited for."""
        if self._tape.ended is None:
            if not whole:
                self._tape.partial()
            yield from self._then()


def cancel(stream: WireStream) -> Commands:
    """End our side of a stream's request; what its origin has not taken of it is given up."""
    server = stream.context.server
    if server not in stream.parent.connections:
        return
    yield from stream.to_origin(RequestProtocolError(stream.stream_id, "client left", ErrorCode.CLIENT_DISCONNECTED))
    if server.alpn != b"h2":
        for known in [one for one in stream.handler.transports if stream.parent.same_socket(server, one)]:
            if stream.handler.unwritten(known):
                yield Abort(known)
