"""What `secondtake mcp` tells the proxy of its run, and is told: one journal has one writer, and one cassette one player.

The shim speaks plain HTTP to a host that exists nowhere else. In record it hands over each line before it passes it on; in replay it
asks what the server says to it. The sessions themselves are in `cassettes/mcp.py`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from mitmproxy.proxy.layers.http._base import HttpEvent

from secondtake.cassettes import limits
from secondtake.cassettes.canonical import parse_json
from secondtake.cassettes.errors import NotStored, RecordedError
from secondtake.cassettes.exchange import EMPTY, Answer, Answered, Body, Channel, Digest, Ending, Fields, Request, Side
from secondtake.cassettes.mcp import DETAIL, Played, Recorded
from secondtake.cassettes.misses import Miss, MissKind
from secondtake.cassettes.player import Live, Serve
from secondtake.proxy import local
from secondtake.proxy.commands import Await
from secondtake.proxy.local import LocalAnswer
from secondtake.proxy.mcp_stdio import EXIT_FIELD, HOST
from secondtake.proxy.policy import Mode, Refuse
from secondtake.proxy.tape import Tape

if TYPE_CHECKING:
    from secondtake.proxy.addon import Wire
    from secondtake.proxy.handler import WireHandler
    from secondtake.proxy.stream import Commands, WireStream

__all__ = ["HOST", "ShimPart", "Shims", "Told"]

SESSIONS = 1000
"""Servers of one run."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a shim is told: lines to say, and the server's status once it has ended."""

    body: bytes = b""
    exit: int | None = None
    status: int = 200


class Shims:
    """Every server behind a shim in one run."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._live: dict[str, Recorded] = {}
        self._played: dict[str, _Playing] = {}
        self._tapes: set[Tape] = set()
        self._pending: list[asyncio.Future[NotStored | None]] = []

    async def said(self, handler: WireHandler, target: bytes, body: bytes) -> Told:
        """Hear one word of a shim. What it is told may be acted on: what it said is durable, or cannot be."""
        asked = urlsplit(target.decode("ascii", "replace"))
        session = parse_qs(asked.query).get("session", [""])[0]
        if asked.path == "/open":
            return self._open(handler, body)
        if (recorded := self._live.get(session)) is not None:
            match asked.path:
                case "/client":
                    recorded.client(body)
                case "/server":
                    recorded.server(body)
                case "/unkept":
                    self._wire.outcome.unkept.append("a message of an MCP server that is longer than is kept was passed on")
                case "/close":
                    told = _object(body)
                    status = told.get("exit")
                    recorded.close(status if isinstance(status, int) else None, by_client=told.get("by_client") is True)
                    del self._live[session]
            pending, self._pending = self._pending, []
            await asyncio.gather(*pending)
            return Told()
        if (playing := self._played.get(session)) is not None:
            lines = playing.session.closed() if asked.path == "/close" else playing.session.client(body)
            if playing.session.exit is not None:
                del self._played[session]
                playing.close()
            return Told(b"".join(lines), playing.session.exit)
        return Told(b"no such session\n", status=404)

    def _open(self, handler: WireHandler, body: bytes) -> Told:
        told = _object(body)
        name, argv = told.get("name"), told.get("argv")
        number = str(len(self._live) + len(self._played) + 1)
        if not isinstance(name, str) or not isinstance(argv, list) or len(self._live) + len(self._played) >= SESSIONS:
            return Told(b"not understood\n", status=400)
        while number in self._live or number in self._played:
            number += "x"
        wire = self._wire
        if wire.policy.mode is Mode.RECORD:
            words = [wire.redactor.text(str(word)) for word in argv]
            self._live[number] = Recorded(name, words, self._begin)
            return _opened(number, wire.policy.mode)
        playing = self._played[number] = _Playing(wire, handler, name, self._tapes)
        lines = playing.session.opened()
        if playing.session.exit is not None:
            del self._played[number]
            playing.close()
        return _opened(number, wire.policy.mode, lines, playing.session.exit)

    def _begin(self, request: Request, content: bytes, answer: Answer) -> _Kept:
        self._wire.counted(Channel.MCP, Answered.LIVE)
        tape = self._wire.tape_beside(request, Channel.MCP, self._tapes)
        tape.collected(content)
        return _Kept(tape, answer, self._pending)


def _opened(session: str, mode: Mode, lines: list[bytes] | None = None, status: int | None = None) -> Told:
    told = json.dumps({"session": session, "mode": str(mode)}).encode() + b"\n"
    return Told(told + b"".join(lines or []), status)


def _object(body: bytes) -> Mapping[str, object]:
    found = parse_json(body)
    return found if isinstance(found, dict) else {}


class _Kept:
    """An exchange being written."""

    def __init__(self, tape: Tape, answer: Answer, pending: list[asyncio.Future[NotStored | None]]) -> None:
        self._tape = tape
        self._answer: Answer | None = answer
        self._pending = pending
        self.seq = tape.seq

    def line(self, data: bytes) -> None:
        self._head()
        self._tape.response_piece(data)

    def end(self, how: Ending, detail: Mapping[str, object]) -> None:
        self._head()
        if detail:
            self._tape.detail(DETAIL, dict(detail))
        durable = self._tape.cut(how, "")
        if durable is not None:
            self._pending.append(durable)

    def _head(self) -> None:
        if self._answer is not None:
            self._tape.response_head(self._answer)
            self._answer = None


class _Playing:
    """One session from the cassette; in a retake, what is played is kept on the take, in a replay for its events."""

    def __init__(self, wire: Wire, handler: WireHandler, name: str, tapes: set[Tape]) -> None:
        self._wire = wire
        self._handler = handler
        self._tapes = tapes
        self._seqs: dict[int, int] = {}
        """By recorded exchange, the take's own."""
        self.session = Played(name, self._ask, wire.session(handler).request_content)
        self._start: tuple[Tape, dict[str, object]] | None = None

    def _ask(self, request: Request, content: bytes, *, needed: bool) -> Serve | Miss:
        wire = self._wire
        try:
            found = wire.play(self._handler, request, self._body(request, content))
        except RecordedError as damage:
            wire.damaged(request, damage)
            return Miss(MissKind.WITHHELD, None, str(damage), Channel.MCP)
        if isinstance(found, Serve):
            wire.served(request, Channel.MCP, found)
        else:
            wire.counted_local(request, Channel.MCP, Refuse("miss", found) if needed else Refuse("mcp-notification"))
        if wire.keeps_played:
            self._keep(request, content, found, needed=needed)
        return found

    def _body(self, request: Request, content: bytes) -> Live:
        digest = Digest(hashlib.sha256(content).hexdigest()) if content else EMPTY
        if len(content) <= limits.BODY_IN_MEMORY_BYTES:
            return Live(len(content), digest, content)
        redacting = self._wire.redactor.streaming(request.fields, Side.REQUEST)
        kept = hashlib.sha256(redacting.feed(content))
        kept.update(redacting.finish())
        return Live(len(content), digest, None, Digest(kept.hexdigest()))

    def _keep(self, request: Request, content: bytes, found: Serve | Miss, *, needed: bool) -> None:
        tape = self._wire.tape_beside(request, Channel.MCP, self._tapes)
        tape.collected(content)
        if isinstance(found, Miss):
            tape.answered(Answered.MISS if needed else Answered.LOCAL)
            tape.detail("miss", str(found.kind))
            tape.cut(Ending.REFUSED, "not on the cassette")
            return
        tape.answered(found.answered)
        tape.detail("source_seq", found.seq)
        tape.response_head(_bare(found.answer))
        body = found.body
        for at in range(0, body.size_bytes, limits.BODY_IN_MEMORY_BYTES):
            tape.response_piece(body.read(at, limits.BODY_IN_MEMORY_BYTES))
        self._seqs[found.seq] = tape.seq
        detail = (found.details or {}).get(DETAIL)
        told = dict(detail) if isinstance(detail, Mapping) else {}
        if "after" in told and self._start is None:
            self._start = tape, told
            return
        if told:
            tape.detail(DETAIL, told)
        tape.cut(found.ended, "")

    def close(self) -> None:
        """The session is over: what its lines waited for is said by the take's own numbers."""
        if self._start is None:
            return
        tape, told = self._start
        self._start = None
        after = told.get("after")
        told["after"] = [self._renumbered(one) for one in after] if isinstance(after, list) else []
        if "ended_after" in told:
            told["ended_after"] = self._renumbered(told["ended_after"])
        tape.detail(DETAIL, told)
        tape.cut(Ending.COMPLETE, "")

    def _renumbered(self, moment: object) -> list[object]:
        match moment:
            case [what, int() as seq] if seq in self._seqs:
                return [what, self._seqs[seq]]
            case _:
                return []


def _bare(answer: Answer) -> Answer:
    return Answer(answer.status, answer.reason, fields=answer.fields, body=Body())


class ShimPart:
    """One word of a shim: read whole, answered at once."""

    def __init__(self, stream: WireStream, target: bytes) -> None:
        self.stream = stream
        self.target = target
        self.content: bytearray | None = bytearray()

    def request_data(self, data: bytes) -> Commands:
        if self.content is not None:
            self.content += data
            if len(self.content) > limits.MCP_LINE_BYTES + 1:
                self.content = None
        yield from ()

    def request_trailers(self, trailers: Fields) -> Commands:
        yield from ()

    def request_end(self) -> Commands:
        stream = self.stream
        told: object = Told(b"too long\n", status=413)
        if self.content is not None:
            content = bytes(self.content)
            told = yield Await(lambda: stream.wire.shims.said(stream.handler, self.target, content))
        assert isinstance(told, Told)
        ended: Fields = ((EXIT_FIELD.encode(), b"%d" % told.exit),) if told.exit is not None else ()
        fields: Fields = ((b"content-type", b"application/x-ndjson"), *ended, (b"content-length", b"%d" % len(told.body)))
        yield from local.send(stream, LocalAnswer(told.status, fields, told.body))
        yield from stream.finish()

    def client_left(self, message: str) -> Commands:
        yield from self.stream.finish()

    def upstream(self, event: HttpEvent) -> Commands:
        yield from ()

    def wakeup(self) -> Commands:
        yield from ()
