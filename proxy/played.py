"""A request answered from the cassette. It is read whole, looked up, and its answer sent again: framed for this client, with the
recorded boundaries, at the recorded pace or as fast as it is taken, and ended as it ended then."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mitmproxy import http
from mitmproxy.proxy.layers.http._base import HttpEvent
from mitmproxy.proxy.layers.http._events import ResponseData, ResponseEndOfMessage, ResponseTrailers

from secondtake.cassettes import limits
from secondtake.cassettes.adapters import CallKind
from secondtake.cassettes.errors import RecordedError
from secondtake.cassettes.exchange import EMPTY, Answer, Answered, Body, Channel, Digest, Ending, Fields, Interim, Side
from secondtake.cassettes.fallback import Beginning
from secondtake.cassettes.logins import UNRECORDED
from secondtake.cassettes.mcp_streams import Moment
from secondtake.cassettes.misses import Miss
from secondtake.cassettes.player import Live, Serve
from secondtake.cassettes.rpc import events_renamed, renames
from secondtake.cassettes.sources import unchecked
from secondtake.cassettes.streams import StreamRedactor
from secondtake.proxy import local
from secondtake.proxy.arrival import Arrival, frame_serve, is_broken, settled
from secondtake.proxy.commands import Await, ResponseAbort, ResponseHead, ResponseInterim
from secondtake.proxy.framing import HTTP_1_0, Delimiter, without_body
from secondtake.proxy.handler import BEHIND_BYTES, READ_BYTES
from secondtake.proxy.live import LivePart
from secondtake.proxy.policy import Live as LetOut
from secondtake.proxy.policy import Pace, Refuse
from secondtake.proxy.retake import Claim, Listener, Outgoing
from secondtake.proxy.tape import Tape
from secondtake.proxy.translate import interim_message

if TYPE_CHECKING:
    from secondtake.proxy.stream import Commands, WireStream

CONTINUE = Interim(100, b"Continue", (), 0)

LOOKS_UP_S = 0.25
"""How often a stream that waits looks whether its client is still there."""


async def _soon(stirred: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stirred.wait(), LOOKS_UP_S)


class PlayedPart:
    """Collects a request, then plays its answer."""

    def __init__(self, stream: WireStream, arrival: Arrival) -> None:
        assert arrival.request is not None
        self.stream = stream
        self.request = arrival.request
        self.channel = arrival.channel
        self.traits = arrival.traits
        self.found = arrival.found
        self.damage = arrival.damage
        self.tape: Tape | None = None
        """In a retake: what is played is kept on the take as well, so that the take is whole by itself. In a replay: for its events."""
        if stream.wire.keeps_played:
            self.tape = stream.wire.tape(self.request, self.channel, stream.handler)
        self.started_us = stream.wire.now_us()
        self.content: bytearray | None = bytearray()
        self.size_bytes = 0
        self.raw = hashlib.sha256()
        self.kept: hashlib._Hash | None = None
        self.redacting: StreamRedactor | None = None
        self.answering = False
        self.beginnings: list[Beginning] | None = None
        """How requests with this head began that were answered before they were whole; None until the first bytes of its body."""
        self.partial = False
        """It is answered before it is whole."""
        self.began: Beginning | None = None
        """One of them that begins as this does, in case there is no answer to the whole."""
        self.torn: RecordedError | None = None
        """Damage found in a body while it was being sent."""

    def begin(self) -> Commands:
        """A client that waits for leave to send its body gets it from us, or the final answer it was refused with then."""
        if not self.traits.expects_continue:
            return
        try:
            early = self.stream.wire.answer_before_body(self.stream.handler, self.request)
        except RecordedError as error:
            self.answering = True
            yield from self.damaged(error)
            return
        if early is not None:
            self.answering = True
            yield from self.send(early)
        elif self.request.protocol != HTTP_1_0:
            yield from self.stream.to_client(ResponseInterim(self.stream.stream_id, interim_message(CONTINUE)))

    def request_data(self, data: bytes) -> Commands:
        """Held up to a bound; beyond it only digests are carried on, of the bytes and of what redaction makes of them."""
        if self.beginnings is None:
            self.beginnings = list(self.stream.wire.session(self.stream.handler).beginnings(self.request))
        while self.beginnings and not self.answering and self.size_bytes + len(data) >= self.beginnings[0].size_bytes:
            first = self.beginnings.pop(0)
            head, data = data[: first.size_bytes - self.size_bytes], data[first.size_bytes - self.size_bytes :]
            self.take(head)
            yield from self.begins(first)
        if not self.answering:
            self.take(data)

    def begins(self, beginning: Beginning) -> Commands:
        """As much has come as of a recorded request that was answered then. If it is the next that was asked for, it is answered now."""
        wire, digest = self.stream.wire, Digest(self.raw.hexdigest()) if self.size_bytes else EMPTY
        content = bytes(self.content) if self.content is not None and beginning.digest != digest else None
        session = wire.session(self.stream.handler)
        try:
            if beginning.next and wire.retake is None:
                if (served := session.begun(self.request, beginning, Live(self.size_bytes, digest, content))) is not None:
                    self.answering = self.partial = True
                    wire.served(self.request, self.channel, served)
                    yield from self.send(served)
            elif session.begins(self.request, beginning, Live(self.size_bytes, digest, content)):
                self.began = beginning
        except RecordedError as error:
            self.answering = True
            yield from self.damaged(error)

    def take(self, data: bytes) -> None:
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
        claim = wire.retake.claims(self.request, content) if wire.retake is not None else None
        if claim is not None and claim.kind is CallKind.COMPLETION:
            yield from self.recast(claim, content)
            return
        found = self.found
        if self.damage is not None:
            yield from self.damaged(self.damage)
            return
        if found is None:
            try:
                found = wire.play(handler, self.request, Live(self.size_bytes, digest, content, kept))
            except RecordedError as error:
                yield from self.damaged(error)
                return
        if claim is not None and isinstance(found, Miss):
            yield from self.recast(claim, content)
            return
        if self.began is not None and isinstance(found, Miss):
            found = wire.session(handler).given(self.request, self.began) or found
        match wire.policy.decide(self.channel, found):
            case Serve() as serve:
                wire.served(self.request, self.channel, serve)
                yield from self.send(serve)
            case LetOut():
                yield from self.fetch(content, found)
            case Refuse() as refusal:
                yield from self.refuse(refusal)

    def fetch(self, content: bytes | None, found: Serve | Miss) -> Commands:
        """Let out what the cassette does not hold, and keep it; or say why it may not go."""
        stream, wire = self.stream, self.stream.wire
        why = wire.forbidden(self.request)
        if why is not None or content is None:
            yield from self.refuse(Refuse(why or "miss", found if isinstance(found, Miss) and why is None else None))
            return
        tape = self.tape or wire.tape(self.request, self.channel, stream.handler)
        tape.collected(content)
        tape.note("let out: the cassette does not hold it")
        live = LivePart(stream, self.request, self.channel, tape=tape)
        stream.part = live
        yield from live.resume(content)

    def recast(self, claim: Claim, content: bytes | None) -> Commands:
        """Send it to another model, to the one host it is for; or say why that cannot be done."""
        stream, wire = self.stream, self.stream.wire
        retake = wire.retake
        assert retake is not None
        channel = Channel.MODEL
        if (tripped := retake.stopped(wire.now_us())) is not None:
            yield from self.refuse(Refuse(f"stopped: {tripped.message}", adapter=claim.adapter))
            return
        if (why := wire.forbidden(self.request)) is not None:
            yield from self.refuse(Refuse(retake.unsent(why), adapter=claim.adapter))
            return
        outgoing = retake.prepare(claim, self.request, content) if content is not None else retake.unsent("the request is too large")
        if isinstance(outgoing, str):
            yield from self.refuse(Refuse(f"not swapped: {outgoing}", adapter=claim.adapter))
            return
        if retake.unready(self.request, content or b"", outgoing):
            ready = outgoing
            sent = yield Await(lambda: retake.authorised(ready))
            if isinstance(sent, str):
                yield from self.refuse(Refuse(f"no credential: {retake.unsent(sent)}", adapter=claim.adapter))
                return
            assert isinstance(sent, Outgoing)
            outgoing = sent
            if (tripped := retake.stopped(wire.now_us())) is not None:  # others were sent while this one waited
                yield from self.refuse(Refuse(f"stopped: {tripped.message}", adapter=claim.adapter))
                return
        if claim.kind is CallKind.COMPLETION:
            retake.stops.sent()
        tape = self.tape or wire.tape(self.request, channel, stream.handler)
        tape.collected(content or b"", claim.adapter)
        for note in outgoing.notes:
            tape.note(note)
        live = LivePart(stream, self.request, channel, tape=tape, listener=Listener(retake, outgoing))
        stream.part = live
        yield from live.resume(outgoing.body)

    def refuse(self, refusal: Refuse) -> Commands:
        """Our own answer; in a retake, kept on the take like any other."""
        stream, wire = self.stream, self.stream.wire
        wire.counted_local(self.request, self.channel, refusal)
        answer = wire.refusals.of(refusal, self.request, self.channel, host_known=wire.host_known(self.request))
        if self.tape is not None:
            if refusal.miss is not None:
                self.tape.detail("miss", str(refusal.miss.kind))
            yield from self.ours(answer, Answered.MISS if refusal.miss is not None else Answered.LOCAL, f"refused: {refusal.reason}")
        yield from local.send(stream, answer)
        yield from stream.finish()

    def ours(self, answer: local.LocalAnswer, how: Answered, note: str) -> Commands:
        """Our own answer, on the take."""
        tape = self.tape
        assert tape is not None
        tape.collected(bytes(self.content or b""))
        tape.answered(how)
        tape.response_head(Answer(answer.status, b"", "HTTP/1.1", answer.fields, synthetic=True))
        tape.response_piece(answer.body)
        yield from tape.end(Ending.REFUSED, note=note)

    def damaged(self, error: RecordedError) -> Commands:
        """The cassette holds damage where this answer should be: told, never taken for a miss."""
        self.stream.wire.damaged(self.request, error)
        answer = self.stream.wire.refusals.damaged(error)
        if self.tape is not None:
            yield from self.ours(answer, Answered.LOCAL, "the recording is damaged here")
        yield from local.send(self.stream, answer)
        yield from self.stream.finish()

    def client_left(self, message: str) -> Commands:
        if self.tape is not None:
            yield from self.tape.end(Ending.CLIENT_LEFT)
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
        try:
            held = stream.wire.session(stream.handler).moments(serve) if method == "GET" else None
        except RecordedError as error:
            yield from self.damaged(error)
            return
        paced = stream.wire.settings.pace is Pace.REAL and bool(answer.body.pieces or answer.interim)
        if protocol != HTTP_1_0:
            for interim in answer.interim:
                if interim.status != 100 or not self.traits.expects_continue:
                    yield from self.until(interim.offset_us, paced=paced)
                    yield from stream.to_client(ResponseInterim(stream.stream_id, interim_message(interim)))
        tape = self.tape
        if tape is not None:
            tape.collected(bytes(self.content or b""), whole=not self.partial)
            tape.answered(serve.answered)
            if serve.seq != UNRECORDED:
                tape.detail("source_seq", serve.seq)
            for interim in answer.interim:
                tape.interim(interim)
            tape.response_head(replace(answer, body=Body(), trailers=(), interim=()))
        empty = without_body(method, answer.status)
        size = 0 if empty else serve.body.size_bytes
        if size and any(unchecked(serve.body)):
            yield Await(lambda: settled(serve.body))
        broken = is_broken(serve)
        framed = frame_serve(serve, self.request, keep_alive=stream.keep_alive)
        if paced:
            yield from self.until(answer.offset_us, paced=True)
        head = ResponseHead(
            stream.stream_id, answer.status, answer.reason, framed.fields, framed.delimiter, framed.close, more=not paced or not size
        )
        yield from stream.to_client(head)
        if held is not None and not empty:
            yield from self.events(held)
        elif not empty and size:
            yield from self.pieces(serve, joined=framed.delimiter in (Delimiter.LENGTH, Delimiter.CLOSE) and not paced, paced=paced)
        if tape is not None:
            if answer.trailers:
                tape.response_trailers(answer.trailers)
            yield from tape.end(serve.ended if stream.client_waiting() else Ending.CLIENT_LEFT)
        if self.torn is not None or not stream.client_waiting():
            if self.torn is not None:
                stream.wire.damaged(self.request, self.torn)
                yield from stream.to_client(ResponseAbort(stream.stream_id))
            yield from stream.finish()
            return
        if held is not None and not empty:
            return  # a stream that the client ended, and ends now: `client_left` goes on
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
                try:
                    data = body.read(offset, min(READ_BYTES, end - offset))
                except RecordedError as error:
                    self.torn = error
                    return
                if not data:
                    raise AssertionError("a body shorter than it said")
                if self.tape is not None:
                    self.tape.response_piece(data, due_us)
                yield from stream.to_client(ResponseData(stream.stream_id, data))
                offset += len(data)
                unflushed += len(data)
                if unflushed >= BEHIND_BYTES:
                    unflushed = 0
                    yield Await(lambda: stream.handler.room(stream))

    def events(self, held: Sequence[Moment]) -> Commands:
        """Say what an MCP server said on a stream that stays open, each event after the message it came after."""
        stream = self.stream
        session, stirred = stream.wire.session(stream.handler), asyncio.Event()
        session.on_heard.add(stirred.set)
        try:
            for moment in held:
                while moment.after is not None and moment.after not in session.heard:
                    stirred.clear()
                    yield Await(lambda: _soon(stirred))
                    if not stream.client_waiting():
                        return
                recorded = session.request_content(moment.after) if moment.after is not None else None
                live = session.heard.get(moment.after) if moment.after is not None else None
                data = events_renamed(moment.data, renames(recorded, live)) if recorded and live else moment.data
                if self.tape is not None:
                    self.tape.response_piece(data)
                yield from stream.to_client(ResponseData(stream.stream_id, data))
        finally:
            session.on_heard.discard(stirred.set)

    def until(self, offset_us: int, *, paced: bool) -> Commands:
        """Wait for a recorded moment, counted from the request's start."""
        if not paced:
            return
        delay_s = (self.started_us + offset_us - self.stream.wire.now_us()) / 1e6
        if delay_s > 0:
            yield Await(lambda: asyncio.sleep(delay_s))
