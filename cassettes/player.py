"""Answers requests from a cassette. Pure: a request and its whole body in, a Serve or a Miss out; nothing is approximated silently.

Per request: the exact key of the live bytes; else, redacted, the exact key again and the normal key; else derivation from what was recorded
of the same resource; else a Miss. Within a key first in, first out, by request start; across keys any order. A Session has its own queues.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Protocol

from secondtake.cassettes.as_asked import as_asked
from secondtake.cassettes.bursts import burst_of
from secondtake.cassettes.catalogue import IDEMPOTENT, Catalogue, Kept, is_push
from secondtake.cassettes.channels import classify
from secondtake.cassettes.conditional import Conditions
from secondtake.cassettes.derive import conditional, derive, same_form, still_holds
from secondtake.cassettes.derived import Derived
from secondtake.cassettes.dialogues import Dialogues
from secondtake.cassettes.exchange import Answered, Channel, Digest, Ending, Fields, Request, Side
from secondtake.cassettes.fallback import BY_ENDPOINT, Beginning, beginnings, by_endpoint, by_position, known_index
from secondtake.cassettes.match import exact_key, normal_key
from secondtake.cassettes.mcp_streams import Moment, is_held, moments
from secondtake.cassettes.memory import Recorded, Row
from secondtake.cassettes.misses import Miss, MissKind, describe
from secondtake.cassettes.nearest import nearest
from secondtake.cassettes.recoding import readable
from secondtake.cassettes.redact import RedactedBody
from secondtake.cassettes.served import Live, Options, Reuse, Route, Serve

__all__ = ["Live", "Options", "Player", "Reuse", "Route", "Serve", "Session"]


class Redacts(Protocol):
    """The part of the redactor a player needs."""

    def request(self, request: Request) -> tuple[Request, tuple[object, ...]]: ...
    def body(self, content: bytes, fields: Fields, side: Side) -> RedactedBody: ...
    def withhold_auth(self, content: bytes, fields: Fields, side: Side) -> RedactedBody: ...


class Player:
    """One cassette, ready to be played by any number of sessions.

    Raises Corrupt from `Session.answer` when recorded bytes are damaged: damage is never a miss.
    """

    def __init__(self, cassette: Recorded, redactor: Redacts | None = None, *, options: Options | None = None) -> None:
        self.options = options or Options()
        self.redactor = redactor
        chosen = self.options
        self.catalogue = Catalogue(
            cassette, rules=chosen.rules, aliases=chosen.aliases, allow_push=chosen.allow_push, recorded_aliases=chosen.recorded_aliases
        )
        self.on_answer: Callable[[Request, bytes | None, Serve | Miss], None] = lambda _request, _content, _found: None
        """Told of each answer that was not found by the request's very bytes, with the request redacted."""

    def session(self, name: str = "") -> Session:
        """New queues from the beginning."""
        return Session(self, name)


@dataclass(slots=True)
class _Search:
    """What was seen on the way to a miss."""

    exhausted: bool = False
    variant: bool = False
    withheld: bool = False
    """Nothing of the live body may be kept, not even a keyed fingerprint, so only its address was compared."""
    sealed: bool = False
    """Recorded, and the body of its answer withheld."""
    compared: Request | None = None
    content: bytes | None = b""
    notes: list[str] = field(default_factory=list)


class Session:
    """One client's way through a cassette. Not thread-safe; one event loop uses it."""

    def __init__(self, player: Player, name: str = "") -> None:
        self.name = name
        self._player = player
        self._catalogue = player.catalogue
        self._used = bytearray(len(player.catalogue.rows))
        self._at: dict[int, int] = {}
        self._dialogues: Dialogues | None = None
        self.heard: dict[int, bytes | None] = {}
        """Messages to MCP servers that were asked and served, by recorded exchange: the live bodies."""
        self.on_heard: set[Callable[[], None]] = set()

    @property
    def dialogues(self) -> Dialogues:
        """The recorded WebSockets, played by what their clients say."""
        if self._dialogues is None:
            self._dialogues = Dialogues(self._catalogue, self._player.redactor, self._used)
        return self._dialogues

    def answer(self, request: Request, live: Live) -> Serve | Miss:
        """Answer one request. Never raises for what is or is not recorded; Corrupt passes."""
        search = _Search()
        catalogue = self._catalogue
        queue = catalogue.exact(exact_key(request, live.digest))
        if queue:
            served = self._from(queue, request, Answered.EXACT, search)
            if served is not None:
                if served.channel is Channel.MCP and request.method == "POST":
                    self._hear(served, live)
                return served
        found = self._further(request, live, search)
        if isinstance(found, Serve) and found.channel is Channel.MCP and request.method == "POST" and request.scheme != "stdio":
            found = as_asked(found, self.request_content(found.seq), live.content)
            self._hear(found, live)
        assert search.compared is not None
        self._player.on_answer(search.compared, search.content, found)
        return found

    def beginnings(self, request: Request) -> tuple[Beginning, ...]:
        """How requests with this head began that were answered before they were whole."""
        redactor = self._player.redactor
        found = beginnings(self._catalogue, self._used, request)
        if not found and redactor is not None and b"?" in request.path:
            found = beginnings(self._catalogue, self._used, redactor.request(request)[0])
        return found

    def begins(self, request: Request, beginning: Beginning, live: Live) -> bool:
        """Whether a request of whose body `live` is just as much begins so."""
        digest = live.digest
        if digest != beginning.digest and live.content:
            digest = self._redacted(request, live, _Search())[2]
        return digest == beginning.digest and not self._used[beginning.position]

    def begun(self, request: Request, beginning: Beginning, live: Live) -> Serve | None:
        """The answer to a request that begins so; None where it does not."""
        return self.given(request, beginning) if self.begins(request, beginning, live) else None

    def given(self, request: Request, beginning: Beginning) -> Serve | None:
        """The answer that was given to what began so; None where this client must not get it."""
        return self._from((beginning.position,), request, Answered.EXACT, _Search())

    def _hear(self, served: Serve, live: Live) -> None:
        """A message to an MCP server is there: what its streams say after it may be said."""
        self.heard[served.seq] = live.content
        for listener in tuple(self.on_heard):
            listener()

    def moments(self, serve: Serve) -> tuple[Moment, ...] | None:
        """The events of a stream that the client of an MCP server held open; None for any other answer. Raises Corrupt."""
        if serve.channel is not Channel.MCP:
            return None
        notes = self._catalogue.cassette.exchange(serve.seq).notes
        return moments(self._catalogue, serve) if is_held(serve, notes) else None

    def request_content(self, seq: int) -> bytes | None:
        """The kept body of a recorded request, None where it is too large to hold. Raises NotFound, Corrupt."""
        return self._catalogue.request_content(self._catalogue.cassette.exchange(seq).request)

    def unplayed(self) -> list[Row]:
        """Recorded exchanges that had an answer and were not given, in order of request start.

        Left out are accidents (a download that was cut) that a whole answer took the place of, telemetry, which is never counted, and a
        model's WebSocket that was refused: it is refused again without asking the cassette.
        """
        catalogue = self._catalogue
        return [
            row
            for position, row in enumerate(catalogue.rows)
            if not self._used[position]
            and row.status is not None
            and row.channel is not Channel.TELEMETRY
            and position not in catalogue.superseded
            and not (row.synthetic and row.status == HTTPStatus.UPGRADE_REQUIRED)
        ]

    # ---- recorded answers

    def _from(self, queue: tuple[int, ...], request: Request, how: Answered, search: _Search) -> Serve | None:
        """The next of a queue that this client can be given, or a repeated one; None notes why in `search`."""
        used, size = self._used, len(queue)
        start = self._at.get(id(queue), 0) if size > 1 else 0
        while start < size and used[queue[start]]:
            start += 1
        if size > 1:
            self._at[id(queue)] = start  # the catalogue keeps every queue it made, so its identity stays
        for index in range(start, size):
            position = queue[index]
            if used[position]:
                continue
            served = self._fitted(position, queue, request, how, search, reused=False)
            if served is not None:
                used[position] = 1
                return served
        repeats = request.method in IDEMPOTENT and self._reuse(request) is Reuse.REPEAT_LAST
        if repeats:
            for index in range(size - 1, -1, -1):
                if used[queue[index]]:
                    served = self._fitted(queue[index], queue, request, how, search, reused=True)
                    if served is not None:
                        return served
        if repeats or start < size:
            search.variant = True
        else:
            search.exhausted = True
        return None

    def _reuse(self, request: Request) -> Reuse:
        for route, reuse in self._player.options.routes:
            if route.matches(request):
                return reuse
        return self._player.options.reuse

    def _fitted(
        self, position: int, queue: tuple[int, ...], request: Request, how: Answered, search: _Search, *, reused: bool
    ) -> Serve | None:
        """The recorded exchange as this client can be given it, or None when it must not get it."""
        kept = self._catalogue.kept(position)
        recorded = kept.exchange.request
        if kept.withheld and kept.answer.body.size_bytes:
            search.sealed = True
            self._used[position] = 1
            return None
        if recorded.fields == request.fields and not kept.plain and not kept.dropped:
            found: Kept | Derived = kept
            notes: tuple[str, ...] = ()
        else:
            fitted = self._fit(kept, request)
            if fitted is None:
                return None
            found = fitted
            notes = _absent(kept, request)
        if recorded.body.size_bytes == 0 and kept.exchange.details.get("request_withheld"):
            notes += ("the request's body was withheld while recording and is not compared",)
        if len(queue) > 1:
            notes += self._ambiguous(position, queue)
        if isinstance(found, Derived):
            answer, body, how, notes = found.answer, found.body, Answered.DERIVED, found.notes + notes
        else:
            answer, body = kept.answer, self._catalogue.body(kept.answer)
        exchange = kept.exchange
        return Serve(answer, body, exchange.ended, how, exchange.seq, reused, notes, exchange.channel, exchange.details)

    def _fit(self, kept: Kept, request: Request) -> Kept | Derived | None:
        if not same_form(kept, request):
            return None
        if request.method in IDEMPOTENT and kept.answer.status in (200, 206, 304):
            conditions = Conditions.of(request.fields)
            asked = kept.terms.conditions
            if asked != conditions or kept.dropped:
                if not still_holds(kept.answer, conditions, asked):
                    return None
                if kept.answer.status == 200 and kept.complete and (derived := conditional(kept, conditions)) is not None:
                    return derived
        return readable(kept, request, self._catalogue)

    def _ambiguous(self, position: int, queue: tuple[int, ...]) -> tuple[str, ...]:
        """A note when an equal request was in flight at the same time and got another answer."""
        catalogue, index = self._catalogue, bisect_left(queue, position)
        row = catalogue.rows[position]
        for other in (*queue[max(0, index - 1) : index], *queue[index + 1 : index + 2]):
            beside = catalogue.rows[other]
            if (beside.response_digest, beside.status) == (row.response_digest, row.status):
                continue
            first, second = (other, position) if other < position else (position, other)
            if catalogue.rows[second].started_us < catalogue.kept(first).exchange.ended_us:
                return (f"ambiguous pair: exchange {beside.seq} was asked the same at the same time and got another answer",)
        return ()

    # ---- everything else

    def _further(self, request: Request, live: Live, search: _Search) -> Serve | Miss:
        options, catalogue = self._player.options, self._catalogue
        compared, content, digest = self._redacted(request, live, search)
        search.compared, search.content = compared, content
        if _upgrades(request):
            return self._miss(MissKind.WS_REFUSED, search)
        if not options.allow_push and is_push(request.path):
            return self._miss(MissKind.PUSH_REFUSED, search)
        if compared.path != request.path or digest != live.digest:
            queue = catalogue.exact(exact_key(compared, digest))
            how = Answered.NORMALISED if search.withheld else Answered.EXACT
            if queue and (served := self._from(queue, compared, how, search)) is not None:
                return served
        normal = normal_key(compared, content, digest, rules=options.rules, aliases=options.aliases)
        queue = catalogue.normal(normal)
        if queue and (served := self._from(queue, compared, Answered.NORMALISED, search)) is not None:
            return served
        if options.derive and request.method in IDEMPOTENT and not (search.exhausted and self._reuse(request) is Reuse.STRICT):
            derived = derive(compared, catalogue, self._used)
            if derived is not None:
                self._used[derived.position] |= derived.plays
                row = catalogue.rows[derived.position]
                return Serve(derived.answer, derived.body, Ending.COMPLETE, Answered.DERIVED, row.seq, False, derived.notes, row.channel)
        return self._last_resort(search)

    def _last_resort(self, search: _Search) -> Serve | Miss:
        """What is answered although its content was not recorded: logins, flags, telemetry, and, if asked for, model calls by position."""
        request = search.compared
        assert request is not None
        channel, _ = self._classify(request, search.content)
        served: Serve | None = None
        if channel in BY_ENDPOINT:
            repeat = self._reuse(request) is Reuse.REPEAT_LAST
            served = by_endpoint(self._catalogue, self._used, request, search.content, channel, repeat=repeat)
        elif channel is Channel.MODEL and self._player.options.positional and search.content:
            served = by_position(self._catalogue, self._used, request, search.content)
        return served or self._miss(None, search)

    def _redacted(self, request: Request, live: Live, search: _Search) -> tuple[Request, bytes | None, Digest]:
        """The request as it would have been kept: what it is compared by, and all that may be shown of it."""
        redactor = self._player.redactor
        compared = request if redactor is None else redactor.request(request)[0]
        if live.content is None:
            return compared, None, live.kept or live.digest
        if not live.content or redactor is None:
            return compared, live.content, live.digest
        channel, _ = self._classify(request, live.content)
        work = redactor.withhold_auth if channel is Channel.AUTH else redactor.body
        told = work(live.content, request.fields, Side.REQUEST)
        content = told.content
        search.withheld = told.withheld is not None and not content
        if told.decoded:
            compared = replace(compared, fields=told.described(compared.fields))
        if content == live.content:
            return compared, live.content, live.digest
        return compared, content, Digest(hashlib.sha256(content).hexdigest())

    def _classify(self, request: Request, content: bytes | None) -> tuple[Channel, str | None]:
        recognise = self._player.options.recognise
        return classify(request, content) if recognise is None else classify(request, content, recognise=recognise)

    def _miss(self, kind: MissKind | None, search: _Search) -> Miss:
        request, content = search.compared, search.content
        assert request is not None
        channel, adapter = self._classify(request, content)
        if kind is None:
            kind = self._kind(request, channel, search)
        closest = nearest(request, content, self._catalogue)
        return Miss(kind, closest, describe(kind, request, closest), channel, adapter, burst=self._of_a_burst(request))

    def _of_a_burst(self, request: Request) -> bool:
        """Whether this belongs to a burst of which the recording has a part, from the same host."""
        burst, catalogue = burst_of(request), self._catalogue
        return burst is not None and any(
            row.channel is Channel.INDEX and row.host == request.host and burst_of(_recorded_request(catalogue, position)) is burst
            for position, row in enumerate(catalogue.rows)
            if row.status is not None
        )

    def _kind(self, request: Request, channel: Channel, search: _Search) -> MissKind:
        if search.sealed:
            return MissKind.WITHHELD
        if search.exhausted:
            return MissKind.EXHAUSTED
        if search.variant:
            return MissKind.VARIANT
        rows = self._catalogue.rows
        if channel is Channel.MODEL and any(row.channel is Channel.MODEL for row in rows):
            return MissKind.MODEL_DIVERGED
        if request.method in IDEMPOTENT:
            recorded = self._catalogue.resource(self._catalogue.resource_name(request))
            if any(rows[position].status == 206 for position in recorded):
                return MissKind.RANGE_NOT_RECORDED
            if any(rows[position].method == request.method for position in recorded):
                return MissKind.VARIANT
            if known_index(self._catalogue, request):
                return MissKind.KNOWN_INDEX_NEW_FILE
        return MissKind.NEW_RESOURCE


def _absent(kept: Kept, request: Request) -> tuple[str, ...]:
    """Fields the recorded request had and this one has not: forgiven, and said (T-A11)."""
    missing = kept.terms.names.difference(name.lower() for name, _ in request.fields)
    return tuple(f"field absent: {name.decode('latin-1')}" for name in sorted(missing)) if missing else ()


def _upgrades(request: Request) -> bool:
    return any(name.lower() == b"upgrade" and b"websocket" in value.lower() for name, value in request.fields if len(name) == 7)


def _recorded_request(catalogue: Catalogue, position: int) -> Request:
    return catalogue.kept(position).exchange.request
