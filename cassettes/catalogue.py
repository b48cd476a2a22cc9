"""What a player knows of a cassette: rows by key, and exchanges as they are needed. Shared by all sessions, changed by none but as a cache.

Only the exact index is made at the start (a cassette of 5,000 rows opens in a few milliseconds); the others when first asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from secondtake.cassettes import content as codings
from secondtake.cassettes import limits
from secondtake.cassettes.canonical import Document, canonical_target, dump_json, media_type, parse_json, split_target
from secondtake.cassettes.conditional import Conditions
from secondtake.cassettes.control import endpoint
from secondtake.cassettes.exchange import Answer, Channel, Digest, Ending, Exchange, Request, Source
from secondtake.cassettes.match import normal_key
from secondtake.cassettes.memory import Recorded, Row
from secondtake.cassettes.negotiation import field
from secondtake.cassettes.normalise import NO_ALIASES, Aliases, Rule, Subject, rules_version
from secondtake.cassettes.placeholder import collapse
from secondtake.cassettes.volatile import RULES, VERSION

KEPT = 8192
"""Exchange heads kept after reading, so that a repeated request does not read its head again; about 2 KiB each."""

SMALL_BYTES = 16 * 1024
SMALL_BODIES = 512
"""Small bodies kept after reading: at most 8 MiB."""

_CUT = frozenset((Ending.RESET, Ending.CLIENT_LEFT, Ending.TIMEOUT, Ending.RECORDER_DIED, Ending.REFUSED, Ending.TLS_FAILED))

IDEMPOTENT = ("GET", "HEAD")
SWITCHING_PROTOCOLS = 101

_UNCOUNTED = frozenset(
    (
        b"host", b"connection", b"proxy-connection", b"keep-alive", b"content-length", b"transfer-encoding", b"te", b"trailer", b"upgrade",
        b"user-agent", b"accept", b"accept-encoding", b"accept-language", b"range", b"if-range", b"if-none-match", b"if-modified-since",
        b"if-match", b"if-unmodified-since", b"cache-control", b"pragma", b"cookie", b"priority", b"expect", b"proxy-authorization",
    )
)  # fmt: skip
"""Request fields whose absence is never worth a note: framing, negotiation (looked at by itself), caches."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What the heads of an exchange say about whom it may be served to."""

    names: frozenset[bytes]
    """Lower-case names of the request's fields that are worth a note when they are absent."""
    accept: bytes
    """`*/*` where there is none (RFC 9110 12.5.1)."""
    accept_encoding: bytes | None
    varies_accept: bool
    content_type: bytes
    codings: tuple[str, ...]
    """Content codings of the answer as labelled."""
    conditions: Conditions
    """Those the exchange was recorded for."""

    @classmethod
    def of(cls, request: Request, answer: Answer) -> Terms:
        """Read them from the heads."""
        vary = field(answer.fields, b"vary") or b""
        return cls(
            frozenset(name.lower() for name, _ in request.fields) - _UNCOUNTED,
            field(request.fields, b"accept") or b"*/*",
            field(request.fields, b"accept-encoding"),
            b"accept" in [name.strip().lower() for name in vary.split(b",")] or vary.strip() == b"*",
            media_type(answer.fields),
            codings.codings(answer.fields),
            Conditions.of(request.fields),
        )


class Kept:
    """A recorded exchange that has an answer, as a player needs it, read once."""

    __slots__ = ("_terms", "answer", "dropped", "exchange", "plain", "position", "withheld")

    def __init__(self, position: int, exchange: Exchange, answer: Answer) -> None:
        self.position = position
        self.exchange = exchange
        self.answer = answer
        self.plain = exchange.details.get("response_kept") == "decoded"
        """The body is kept decoded under its label, because a secret stood in it."""
        self.withheld = "response_withheld" in exchange.details
        """Of the body nothing but a seal was kept: it is never served."""
        self.dropped = "validators-dropped" in exchange.forwarded
        """The origin was asked without the client's validators, so its answer does not honour them."""
        self._terms: Terms | None = None

    @property
    def terms(self) -> Terms:
        """Looked at only for a client whose head is not the recorded one."""
        if self._terms is None:
            self._terms = Terms.of(self.exchange.request, self.answer)
        return self._terms

    @property
    def complete(self) -> bool:
        return self.exchange.ended is Ending.COMPLETE


class Catalogue:
    """Indexes over the rows of one cassette. Positions are indexes into `rows`, which are in order of request start."""

    def __init__(
        self, cassette: Recorded, *, rules: tuple[Rule, ...], aliases: Aliases, allow_push: bool, recorded_aliases: Aliases = NO_ALIASES
    ) -> None:
        self.cassette = cassette
        self.rules = rules
        self.aliases = aliases
        self.recorded_aliases = recorded_aliases
        rows = list(cassette.rows)
        rows.sort(key=attrgetter("seq"))
        self.rows: Sequence[Row] = rows
        self._exact: dict[bytes, list[int]] = {}
        self._queues: dict[tuple[bool, bytes], tuple[int, ...]] = {}
        self._normal: dict[bytes, list[int]] | None = None
        self._resources: dict[tuple[str, str, int, bytes], list[int]] | None = None
        self._endpoints: dict[tuple[Channel, str, str, bytes], list[int]] | None = None
        self._kept: dict[int, Kept] = {}
        self._small: dict[Digest, Source] = {}
        self.superseded: set[int] = set()
        exact, vcs = self._exact, Channel.VCS
        for position, row in enumerate(rows):
            keys = row.keys
            if keys is None or row.status is None or row.status == SWITCHING_PROTOCOLS:
                continue
            if row.channel is vcs and not allow_push and is_push(row.path):
                continue
            same = exact.get(keys.exact)
            if same is None:
                exact[keys.exact] = [position]
            else:
                same.append(position)

    def exact(self, key: bytes) -> tuple[int, ...]:
        """Positions that answer this exact key, in order; empty when there are none."""
        return self._queue(False, key, self._exact)

    def normal(self, key: bytes) -> tuple[int, ...]:
        """Positions that answer this normal key."""
        if self._normal is None:
            self._normal = self._by_meaning()
        return self._queue(True, key, self._normal)

    def _queue(self, normal: bool, key: bytes, index: dict[bytes, list[int]]) -> tuple[int, ...]:
        queue = self._queues.get((normal, key))
        if queue is None:
            found = index.get(key)
            if found is None:
                return ()
            queue = self._queues[normal, key] = self._playable(found)
        return queue

    def _playable(self, positions: list[int]) -> tuple[int, ...]:
        """A GET that was cut short is played only where no whole one exists: a clean client must not be given the accident."""
        rows = self.rows
        if len(positions) > 1 and rows[positions[0]].method in IDEMPOTENT:
            whole = tuple(position for position in positions if rows[position].ended not in _CUT)
            if whole and len(whole) < len(positions):
                self.superseded.update(position for position in positions if rows[position].ended in _CUT)
                return whole
        return tuple(positions)

    def _by_meaning(self) -> dict[bytes, list[int]]:
        version, shipped = rules_version(self.rules), self.rules[: len(RULES)] == RULES
        index: dict[bytes, list[int]] = {}
        for positions in self._exact.values():
            for position in positions:
                row = self.rows[position]
                keys = row.keys
                assert keys is not None
                as_kept = keys.rules == version or (shipped and keys.rules == VERSION and not self.declared_for(row))
                normal = keys.normal if as_kept else self.key_again(position)
                index.setdefault(normal, []).append(position)
        for positions in index.values():
            positions.sort()
        return index

    def declared_for(self, row: Row) -> bool:
        """Whether a rule beyond those that ship is for a request with this head."""
        declared = self.rules[len(RULES) :] if self.rules[: len(RULES)] == RULES else ()
        asked = Subject(row.method, row.host, split_target(row.path)[0])
        return any(rule.applies(asked) for rule in declared)

    def key_again(self, position: int) -> bytes:
        """The normal key by our rules, for a cassette recorded with others."""
        request = self.cassette.exchange(self.rows[position].seq).request
        content = self.request_content(request)
        aliases = self.recorded_aliases or self.aliases
        return normal_key(request, content, request.body.digest, rules=self.rules, aliases=aliases)

    def told(self, found: Document, *, recorded: bool = False) -> Document:
        """A body with our own values by their names, so that they are not shown as differences."""
        aliases = (self.recorded_aliases or self.aliases) if recorded else self.aliases
        if not aliases or found.json is None:
            return found
        parsed = parse_json(aliases.replace(dump_json(found.json)))
        return found if parsed is None else Document(found.content, json=parsed)

    def endpoint(self, channel: Channel, request: Request) -> Sequence[int]:
        """Positions of `channel` that were asked of the same endpoint, whatever was sent there, in order."""
        if self._endpoints is None:
            self._endpoints = {}
            for position, row in enumerate(self.rows):
                if row.status is not None and row.status != SWITCHING_PROTOCOLS and row.channel is not Channel.MODEL:
                    self._endpoints.setdefault((row.channel, row.method, row.host, endpoint(row.path)), []).append(position)
        return self._endpoints.get((channel, request.method, request.host, endpoint(request.path)), ())

    def request_content(self, request: Request) -> bytes | None:
        """The kept bytes of a recorded request, None when they are too many to hold."""
        if request.body.size_bytes > limits.BODY_IN_MEMORY_BYTES:
            return None
        return self.cassette.body(request.body).read(0, request.body.size_bytes) if request.body.size_bytes else b""

    def kept(self, position: int) -> Kept:
        """The exchange at `position`. Raises Corrupt. Only for rows that have a status."""
        found = self._kept.get(position)
        if found is None:
            exchange = self.cassette.exchange(self.rows[position].seq)
            assert exchange.answer is not None
            found = Kept(position, exchange, exchange.answer)
            if len(self._kept) >= KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[position] = found
        return found

    def body(self, answer: Answer) -> Source:
        """The kept body of an answer. Raises Corrupt."""
        digest = answer.body.digest
        found = self._small.get(digest)
        if found is None:
            found = self.cassette.body(answer.body)
            if found.size_bytes <= SMALL_BYTES:
                if len(self._small) >= SMALL_BODIES:
                    del self._small[next(iter(self._small))]
                self._small[digest] = found
        return found

    def resource_name(self, request: Request | Row, path: bytes | None = None) -> tuple[str, str, int, bytes]:
        """What all representations of one resource share."""
        target = canonical_target(request.path if path is None else path)
        return request.scheme, request.host, request.port, self.aliases.replace(collapse(target))

    def resource(self, name: tuple[str, str, int, bytes]) -> Sequence[int]:
        """Positions of GET and HEAD exchanges of a resource that have an answer, in order."""
        if self._resources is None:
            self._resources = {}
            for position, row in enumerate(self.rows):
                if row.method in IDEMPOTENT and row.status is not None and row.status != 101:
                    self._resources.setdefault(self.resource_name(row), []).append(position)
        return self._resources.get(name, ())


def is_push(path: bytes) -> bool:
    """Whether a target belongs to a `git push`."""
    return path.endswith(b"/git-receive-pack") or b"service=git-receive-pack" in path
