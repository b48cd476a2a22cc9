"""A request answered by the proxy itself: a refusal, a miss, or a telemetry call that is only counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mitmproxy.proxy.layers.http._base import HttpEvent
from mitmproxy.proxy.layers.http._events import ResponseData, ResponseEndOfMessage

from secondtake.cassettes.exchange import Answer, Channel, Ending, Fields, Request
from secondtake.proxy.commands import ResponseHead
from secondtake.proxy.framing import frame_response, tokens
from secondtake.proxy.policy import Mode

if TYPE_CHECKING:
    from secondtake.proxy.policy import Refuse
    from secondtake.proxy.stream import Commands, WireStream


@dataclass(frozen=True, slots=True)
class LocalAnswer:
    """A whole answer of ours."""

    status: int
    fields: Fields
    body: bytes


def send(stream: WireStream, answer: LocalAnswer) -> Commands:
    """The commands that send a whole answer of ours."""
    method = stream.request.method if stream.request is not None else "GET"
    framed = frame_response(
        answer.fields,
        method=method,
        status=answer.status,
        protocol=stream.client_protocol(),
        size_bytes=len(answer.body),
        has_trailers=False,
        keep_alive=stream.keep_alive,
    )
    head = ResponseHead(stream.stream_id, answer.status, b"", framed.fields, framed.delimiter, framed.close, more=True)
    yield from stream.to_client(head)
    if answer.body and method != "HEAD" and answer.status not in (204, 304):
        yield from stream.to_client(ResponseData(stream.stream_id, answer.body))
    yield from stream.to_client(ResponseEndOfMessage(stream.stream_id))


class LocalPart:
    """Answers once the request is whole (at once where it asks to be told before it sends its body)."""

    def __init__(
        self,
        stream: WireStream,
        answer: LocalAnswer,
        decision: Refuse | None,
        *,
        request: Request | None = None,
        channel: Channel = Channel.WEB,
    ) -> None:
        self.stream = stream
        self.answer = answer
        self.decision = decision
        self.request = request
        self.channel = channel

    def begin(self, *, end_stream: bool) -> Commands:
        """Answer when the request is whole, so that it is not cut off; at once only where the client waits for leave to send."""
        fields = self.request.fields if self.request is not None else ()
        if not end_stream and b"100-continue" in tokens(fields, b"expect"):
            yield from self.reply()

    def request_data(self, data: bytes) -> Commands:
        yield from ()

    def request_trailers(self, trailers: Fields) -> Commands:
        yield from ()

    def request_end(self) -> Commands:
        yield from self.reply()

    def client_left(self, message: str) -> Commands:
        yield from self.stream.finish()

    def upstream(self, event: HttpEvent) -> Commands:
        yield from ()

    def wakeup(self) -> Commands:
        yield from ()

    def reply(self) -> Commands:
        """Count it, keep it where this is a recording, and send it."""
        stream = self.stream
        if self.request is not None:
            assert self.decision is not None
            stream.wire.counted_local(self.request, self.channel, self.decision)
            if stream.wire.policy.mode is Mode.RECORD:
                yield from self.keep(self.request, self.decision)
        yield from send(stream, self.answer)
        yield from stream.finish()

    def keep(self, request: Request, decision: Refuse) -> Commands:
        """While recording, what we refused is on the cassette like any exchange, marked as ours."""
        stream = self.stream
        tape = stream.wire.tape(request, self.channel, stream.handler)
        tape.request_end()
        tape.response_head(Answer(self.answer.status, b"", "HTTP/1.1", self.answer.fields, synthetic=True))
        if self.answer.body:
            tape.response_piece(self.answer.body)
        yield from tape.end(Ending.REFUSED, note=f"refused: {decision.reason}")
