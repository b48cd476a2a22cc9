"""A request answered from the cassette. It is read whole, looked up, and its answer sent again: framed for this client, with the
recorded boundaries, at the recorded pace or as fast as it is taken, and ended as it ended then."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

from mitmproxy import http
from mitmproxy.proxy.layers.http._base import HttpEvent
from mitmproxy.proxy.layers.http._events import ResponseData, ResponseEndOfMessage, ResponseTrailers

from secondtake.cassettes import limits
from secondtake.cassettes.errors import RecordedError
from secondtake.cassettes.exchange import EMPTY, Digest, Fields, Interim, Side
from secondtake.cassettes.player import Live, Serve
from secondtake.cassettes.streams import StreamRedactor
from secondtake.proxy import local
from secondtake.proxy.arrival import BROKEN, Arrival, frame_serve
from secondtake.proxy.commands import Await, ResponseAbort, ResponseHead, ResponseInterim
from secondtake.proxy.framing import HTTP_1_0, Delimiter, without_body
from secondtake.proxy.handler import BEHIND_BYTES, READ_BYTES
from secondtake.proxy.policy import Live as GoLive
from secondtake.proxy.policy import Pace, Refuse
from secondtake.proxy.translate import interim_message

if TYPE_CHECKING:
    from secondtake.proxy.stream import Commands, WireStream

CONTINUE = Interim(100, b"Continue", (), 0)


class PlayedPart:
    """Collects a request, then plays its answer."""

    def __init__(self, stream: WireStream, arrival: Arrival) -> None:
        assert arrival.request is not None
        self.stream = stream
        self.request = arrival.request
        self.channel = arrival.channel
        self.traits = arrival.traits
        self.found = arrival.found
        self.started_us = stream.wire.now_us()
        self.content: bytearray | None = bytearray()
        self.size_bytes = 0
        self.raw = hashlib.sha256()
        self.kept: hashlib._Hash | None = None
        self.redacting: StreamRedactor | None = None
        self.answering = False

    def begin(self) -> Commands:
        """A client that waits for leave to send its body gets it from us, or the final answer it was refused with then."""
        if not self.traits.expects_continue:
            return
        early = self.stream.wire.answer_before_body(self.stream.handler, self.request)
        if early is not None:
            self.answering = True
            yield from self.send(early)
        elif self.request.protocol != HTTP_1_0:
            yield from self.stream.to_client(ResponseInterim(self.stream.stream_id, interim_message(CONTINUE)))

    def request_data(self, data: bytes) -> Commands:
        """Held up to a bound; beyond it only digests are carried on, of the bytes and of what redaction makes of them."""
        if self.answering:
            return
        self.size_bytes += len(data)
        self.raw.update(data)
        if self.content is not None:
            self.content += data
            if len(self.content) > limits.BODY_IN_MEMORY_BYTES:
                self.redacting = self.stream.wire.redactor.streaming(self.request.fields, Side.REQUEST)
                self.kept = hashlib.sha256(self.redacting.feed(bytes(self.content)))
                self.content = None
        elif self.kept is not None and self.redacting is not None:
            self.kept.update(self.redacting.feed(data))
        yield from ()

    def request_trailers(self, trailers: Fields) -> Commands:
        yield from ()

    def request_end(self) -> Commands:
        if self.answering:
            return
        self.answering = True
        wire, handler = self.stream.wire, self.stream.handler
        kept: Digest | None = None
        if self.kept is not None and self.redacting is not None:
            self.kept.update(self.redacting.finish())
            kept = Digest(self.kept.hexdigest())
        digest = Digest(self.raw.hexdigest()) if self.size_bytes else EMPTY
        content = bytes(self.content) if self.content is not None else None
        live = Live(self.size_bytes, digest, content, kept)
        found = self.found
        if found is None:
            try:
                found = wire.play(handler, self.request, live)
            except RecordedError as error:
                wire.damaged(self.request, error)
                yield from local.send(self.stream, wire.refusals.damaged(error))  # type: ignore[misc]
                yield from self.stream.finish()
                return
        match wire.policy.decide(self.channel, found):
            case Serve() as serve:
                wire.counted(self.request, self.channel, serve)
                yield from self.send(serve)
            case Refuse() as refusal:
                wire.counted_local(self.request, self.channel, refusal)
                yield from local.send(
                    self.stream, wire.refusals.of(refusal, self.request, self.channel, host_known=wire.host_known(self.request))
                )  # type: ignore[misc]
                yield from self.stream.finish()
            case GoLive():
                raise AssertionError("nothing is live in replay")

    def client_left(self, message: str) -> Commands:
        yield from self.stream.finish()

    def upstream(self, event: HttpEvent) -> Commands:
        raise AssertionError(f"an upstream event in replay: {event}")
        yield

    def wakeup(self) -> Commands:
        yield from ()

    # -- playing -------------------------------------------------------------------------------------------------------

    def send(self, serve: Serve) -> Commands:
        """Interim heads, head, pieces, trailers, end."""
        stream, answer = self.stream, serve.answer
        method, protocol = self.request.method, self.request.protocol
        paced = stream.wire.settings.pace is Pace.REAL and bool(answer.body.pieces or answer.interim)
        if protocol != HTTP_1_0:
            for interim in answer.interim:
                if interim.status != 100 or not self.traits.expects_continue:
                    yield from self.until(interim.offset_us, paced=paced)
                    yield from stream.to_client(ResponseInterim(stream.stream_id, interim_message(interim)))
        empty = without_body(method, answer.status)
        size = 0 if empty else serve.body.size_bytes
        broken = serve.ended in BROKEN
        framed = frame_serve(serve, self.request, keep_alive=stream.keep_alive)
        if paced:
            yield from self.until(answer.offset_us, paced=True)
        head = ResponseHead(
            stream.stream_id, answer.status, answer.reason, framed.fields, framed.delimiter, framed.close, more=not paced or not size
        )
        yield from stream.to_client(head)
        if not empty and size:
            yield from self.pieces(serve, joined=framed.delimiter in (Delimiter.LENGTH, Delimiter.CLOSE) and not paced, paced=paced)
        if not stream.client_waiting():
            yield from stream.finish()
            return
        if broken and not empty:
            yield Await(lambda: stream.handler.flushed(stream))
            yield from stream.to_client(ResponseAbort(stream.stream_id))
        else:
            if answer.trailers and framed.trailers:
                yield from stream.to_client(ResponseTrailers(stream.stream_id, http.Headers(answer.trailers)))
            yield from stream.to_client(ResponseEndOfMessage(stream.stream_id))
        yield from stream.finish()

    def pieces(self, serve: Serve, *, joined: bool, paced: bool) -> Commands:
        """Send the body: piece by piece as it was cut then, or (`joined`) in whole reads where nobody can tell."""
        stream, body = self.stream, serve.body
        total, offset, unflushed = body.size_bytes, 0, 0
        cuts = [(piece.size_bytes, piece.offset_us) for piece in serve.answer.body.pieces] if not joined else []
        if sum(size for size, _ in cuts) != total:
            cuts = [(total, 0)]
        for size, due_us in cuts:
            if paced:
                yield from self.until(due_us, paced=True)
            end = offset + size
            while offset < end:
                if not stream.client_waiting():
                    return
                data = body.read(offset, min(READ_BYTES, end - offset))
                if not data:
                    raise AssertionError("a body shorter than it said")
                yield from stream.to_client(ResponseData(stream.stream_id, data))
                offset += len(data)
                unflushed += len(data)
                if unflushed >= BEHIND_BYTES:
                    unflushed = 0
                    yield Await(lambda: stream.handler.room(stream))

    def until(self, offset_us: int, *, paced: bool) -> Commands:
        """Wait for a recorded moment, counted from the request's start."""
        if not paced:
            return
        delay_s = (self.started_us + offset_us - self.stream.wire.now_us()) / 1e6
        if delay_s > 0:
            yield Await(lambda: asyncio.sleep(delay_s))
