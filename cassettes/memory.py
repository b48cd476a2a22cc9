"""What a player reads a cassette through, and a cassette in memory: the working stand-in that tests and the demo use."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from secondtake.cassettes.errors import NotFound
from secondtake.cassettes.exchange import EMPTY, Answer, Body, Bytes, Channel, Digest, Ending, Exchange, Fields, Keys, Request, Source
from secondtake.cassettes.match import request_keys


class Row(Protocol):
    """The light form of an exchange: what an index holds, enough to find and to place it. `status` is None when nothing came back."""

    @property
    def seq(self) -> int: ...
    @property
    def channel(self) -> Channel: ...
    @property
    def method(self) -> str: ...
    @property
    def scheme(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def path(self) -> bytes: ...
    @property
    def status(self) -> int | None: ...
    @property
    def ended(self) -> Ending: ...
    @property
    def keys(self) -> Keys | None: ...
    @property
    def request_digest(self) -> Digest: ...
    @property
    def request_size(self) -> int: ...
    @property
    def response_digest(self) -> Digest: ...
    @property
    def response_size(self) -> int: ...
    @property
    def started_us(self) -> int: ...
    @property
    def synthetic(self) -> bool: ...


class Recorded(Protocol):
    """A closed or died cassette, or a stable snapshot of one that is being recorded. Reading never writes."""

    @property
    def rows(self) -> Sequence[Row]:
        """In journal order: by end."""
        ...

    def exchange(self, seq: int) -> Exchange:
        """Raises NotFound, Corrupt."""
        ...

    def body(self, body: Body) -> Source:
        """Raises NotFound, Corrupt."""
        ...


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """A Row as a plain value."""

    seq: int
    channel: Channel
    method: str
    scheme: str
    host: str
    port: int
    path: bytes
    status: int | None
    ended: Ending
    keys: Keys | None
    request_digest: Digest
    request_size: int
    response_digest: Digest
    response_size: int
    started_us: int
    synthetic: bool


def row_as_value(row: Row) -> MemoryRow:
    """A row of any kind as a plain value."""
    return MemoryRow(
        row.seq,
        row.channel,
        row.method,
        row.scheme,
        row.host,
        row.port,
        row.path,
        row.status,
        row.ended,
        row.keys,
        row.request_digest,
        row.request_size,
        row.response_digest,
        row.response_size,
        row.started_us,
        row.synthetic,
    )


def digest_of(content: bytes) -> Digest:
    """SHA-256 in hexadecimal."""
    return Digest(hashlib.sha256(content).hexdigest()) if content else EMPTY


def row_of(exchange: Exchange) -> MemoryRow:
    """The light form of an exchange."""
    request, answer = exchange.request, exchange.answer
    return MemoryRow(
        exchange.seq,
        exchange.channel,
        request.method,
        request.scheme,
        request.host,
        request.port,
        request.path,
        None if answer is None else answer.status,
        exchange.ended,
        exchange.keys,
        request.body.digest,
        request.body.size_bytes,
        EMPTY if answer is None else answer.body.digest,
        0 if answer is None else answer.body.size_bytes,
        exchange.started_us,
        False if answer is None else answer.synthetic,
    )


class MemoryCassette:
    """Exchanges and bodies in memory. `add` takes whole exchanges; `record` makes one from plain parts and returns its `seq`."""

    def __init__(self, exchanges: Iterable[Exchange] = (), bodies: Mapping[Digest, bytes] | None = None) -> None:
        self.exchanges: dict[int, Exchange] = {}
        self.bodies: dict[Digest, bytes] = {EMPTY: b"", **(bodies or {})}
        self._rows: list[MemoryRow] = []
        for exchange in exchanges:
            self.add(exchange)

    @property
    def rows(self) -> Sequence[MemoryRow]:
        return self._rows

    def exchange(self, seq: int) -> Exchange:
        try:
            return self.exchanges[seq]
        except KeyError:
            raise NotFound(f"no exchange {seq}") from None

    def body(self, body: Body) -> Source:
        try:
            return Bytes(self.bodies[body.digest])
        except KeyError:
            raise NotFound(f"no body {body.digest}") from None

    def add(self, exchange: Exchange) -> None:
        """Keep an exchange; its keys are made where it has none and its request body is here."""
        if exchange.keys is None and exchange.ended is not Ending.RECORDER_DIED:
            content = self.bodies.get(exchange.request.body.digest)
            exchange = replace(exchange, keys=request_keys(exchange.request, content))
        self.exchanges[exchange.seq] = exchange
        self._rows.append(row_of(exchange))

    def keep(self, content: bytes) -> Body:
        """Keep bytes and return their reference."""
        digest = digest_of(content)
        self.bodies[digest] = content
        return Body(digest, len(content))

    def record(
        self,
        request: Request,
        answer: Answer | None,
        *,
        sent: bytes = b"",
        received: bytes = b"",
        channel: Channel = Channel.WEB,
        ended: Ending = Ending.COMPLETE,
        started_us: int | None = None,
        ended_us: int | None = None,
        keys: Callable[[Request, bytes | None], Keys] = request_keys,
        forwarded: tuple[str, ...] = (),
        adapter: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> int:
        """Keep one exchange and return its `seq` (1, 2, …). Without times each begins a millisecond after the last ended."""
        seq = len(self._rows) + 1
        begun = seq * 2000 if started_us is None else started_us
        request = replace(request, body=self.keep(sent))
        if answer is not None:
            answer = replace(answer, body=self.keep(received))
        exchange = Exchange(
            seq=seq,
            channel=channel,
            started_us=begun,
            request=request,
            answer=answer,
            ended=ended,
            ended_us=begun + 1000 if ended_us is None else ended_us,
            keys=keys(request, sent),
            forwarded=forwarded,
            adapter=adapter,
            details=details or {},
        )
        self.add(exchange)
        return seq


def fields(*pairs: str) -> Fields:
    """Header fields from lines such as `Accept: text/html`."""
    return tuple((name.encode("latin-1"), value.strip().encode("latin-1")) for name, _, value in (pair.partition(":") for pair in pairs))
