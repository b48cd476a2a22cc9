"""What our layers say to the connection handler and to each other, beside mitmproxy's own commands and events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mitmproxy import http
from mitmproxy.connection import Connection
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.layers.http._base import HttpEvent
from mitmproxy.proxy.layers.http._events import ResponseHeaders

from secondtake.cassettes.exchange import Fields
from secondtake.proxy.framing import Delimiter


class Await(commands.Command):
    """Stop this stream until something outside is done: a commit, a drained buffer, a moment in time.

    The only command of ours that waits. The reply is what the awaitable returns.
    """

    blocking = True

    def __init__(self, make: Callable[[], Awaitable[object]]) -> None:
        self.make = make


@dataclass(repr=False)
class AwaitCompleted(events.CommandCompleted):  # type: ignore[no-untyped-call]  # mitmproxy's __init_subclass__ has no types
    """The answer to `Await`. mitmproxy finds it by the annotation of `command`."""

    command: Await
    reply: object


class Abort(commands.CloseConnection):
    """End a connection with a reset (RST), not with an orderly close (FIN): a recorded reset is played as one."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)


@dataclass
class ResponseInterim(HttpEvent):
    """A 1xx head other than 101; the final one is still to come."""

    response: http.Response


@dataclass
class OriginHead(ResponseHeaders):
    """The final head of an HTTP/1 origin."""

    whole: bool = False
    """Its body came with it, all of it."""


@dataclass
class ResponseAbort(HttpEvent):
    """End the message unfinished: a reset of the connection on HTTP/1, of the stream on HTTP/2."""


@dataclass
class ResponseHead(HttpEvent):
    """The final head for a client, framed for its hop. Takes the place of mitmproxy's `ResponseHeaders` on our side."""

    status: int
    reason: bytes
    fields: Fields
    delimiter: Delimiter
    close: bool
    more: bool = False
    """More of this message follows at once, so that the head may travel with it."""
