"""Where each record goes: into frames of the journal, or a file of its own. What makes it durable is the writer's business.

Everything here runs in the writer's thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

import zstandard

from secondtake.cassettes import artifacts, bodies, codec, index, journal, layout, merkle
from secondtake.cassettes.errors import NotStored
from secondtake.cassettes.exchange import EMPTY, Body, Digest, Exchange, Side
from secondtake.cassettes.files import Files
from secondtake.cassettes.folder import spool_name
from secondtake.cassettes.index import NOWHERE, PACKED_OBJECT, PLAIN_OBJECT
from secondtake.cassettes.journal import FrameWriter, Kind, Place
from secondtake.cassettes.limits import BODY_IN_MEMORY_BYTES, OBJECT_BYTES
from secondtake.cassettes.objects import Spool
from secondtake.cassettes.records import Chunk, End, Head

type Done = Callable[[NotStored | None], None]


@dataclass(slots=True)
class Batch:
    """Frames not yet written, and who waits for them."""

    start: int
    frames: list[bytes] = field(default_factory=list)
    size_bytes: int = 0
    waiting: list[Done] = field(default_factory=list)
    weight: int = 0

    @property
    def end(self) -> int:
        return self.start + self.size_bytes

    def add(self, frame: bytes) -> Place:
        place = Place(self.end, len(frame))
        self.frames.append(frame)
        self.size_bytes += len(frame)
        return place


@dataclass(slots=True)
class Kept:
    """An artifact on its way. `weight` is what it counts for in the backlog."""

    kind: str
    digest: Digest
    content: bytes
    weight: int


SHARED_BYTES = 512
"""An envelope from this size on is a file of its own: of one machine and agent they are all the same, and so are kept once in a store."""

TREE_BYTES = 128
"""A tree under this size, of an empty folder for example, stands in its record: a body frame of its own would cost more than it saves."""

_ARTIFACT = (-1, Side.REQUEST)
"""The spool of an artifact on its way to being an object."""


class Placer:
    """Puts the records of one recording in their places, in order; knows what is kept already."""

    def __init__(self, files: Files, root: Path, folder: Path) -> None:
        self.frames = FrameWriter()
        self.index = index.IndexBuilder()
        self.tree = merkle.Tree()
        self._files = files
        self._store_root = root
        self._folder = folder
        self._bodies = bodies.BodyEncoder()
        self._sampler = zstandard.ZstdCompressor(level=1)
        self._spools: dict[tuple[int, Side], Spool] = {}

    def take(self, batch: Batch, record: Head | Chunk) -> None:
        """A head, or the next bytes of a large body. Raises OSError."""
        match record:
            case Head():
                payload = layout.pack_head(record)
                batch.add(self.frames.make(Kind.HEAD, payload, batch.end, record.request.host))
            case Chunk(seq, side, data):
                spool = self._spools.get((seq, side))
                if spool is None:
                    spool = Spool.begin(self._files, self._folder / spool_name(seq, side))
                    self._spools[seq, side] = spool
                spool.add(data)
            case _:
                assert_never(record)

    def artifact(self, batch: Batch, kept: Kept) -> None:
        """An artifact. Raises OSError."""
        at = self._artifact_place(batch, kept)
        size = len(kept.content)
        if at is None:
            payload = artifacts.pack_inside(kept.kind, kept.digest, kept.content)
        else:
            payload = artifacts.pack_reference(kept.kind, kept.digest, size, at)
        family = kept.kind if kept.kind == artifacts.STAGE else None  # each says what the one before said, and more
        frame = batch.add(self.frames.make(Kind.OBJECT, payload, batch.end, family))
        found = artifacts.Artifact(kept.kind, kept.digest, size)
        self.index.artifacts.add(artifacts.Record(found, None, artifacts.INSIDE if at is None else at), frame)

    def _artifact_place(self, batch: Batch, kept: Kept) -> Place | None:
        """Keep the content of an artifact outside its record, where it is large or much like an earlier one (a tree); None: inside."""
        if kept.kind == artifacts.TREE and TREE_BYTES <= len(kept.content) <= BODY_IN_MEMORY_BYTES:
            conversation = "\0tree"
            encoded = self._bodies.encode(kept.digest, kept.content, conversation)
            if encoded is not None:
                place = batch.add(journal.frame(Kind.BODY, 0, batch.end, codec.pack(encoded[0])))
                if encoded[1] is not None:
                    self._bodies.remember(encoded[1], place, conversation)
                return place
        large = len(kept.content) >= OBJECT_BYTES
        if kept.kind == artifacts.ENVELOPE and len(kept.content) >= SHARED_BYTES:
            return self._object(_ARTIFACT, kept.digest, kept.content)
        if len(kept.content) <= BODY_IN_MEMORY_BYTES and not (large and not codec.compresses(kept.content, self._sampler)):
            return None
        return self._object(_ARTIFACT, kept.digest, kept.content)

    def _object(self, key: tuple[int, Side], digest: Digest, data: bytes) -> Place:
        """Keep `data` as a file of its own."""
        spool = Spool.begin(self._files, self._folder / spool_name(*key))
        self._spools[key] = spool  # so that a failure drops it
        spool.add(data)
        kept, packed = spool.keep(self._store_root)
        del self._spools[key]
        if kept != digest:
            raise ValueError(f"a body of exchange {key[0]} is not what its digest says")
        return PACKED_OBJECT if packed else PLAIN_OBJECT

    def end(self, batch: Batch, end: End) -> None:
        """The bodies and the record of an exchange. Raises OSError, ValueError."""
        exchange = end.exchange
        request_at = self._place(batch, end, Side.REQUEST, exchange.request.body)
        response_at = NOWHERE if exchange.answer is None else self._place(batch, end, Side.RESPONSE, exchange.answer.body)
        record = layout.pack_exchange(exchange)
        payload = layout.pack([record, list(request_at), list(response_at)])
        at = batch.add(self.frames.make(Kind.END, payload, batch.end, exchange.request.host))
        self.index.add(exchange, at, request_at, response_at)
        self.tree.append(merkle.leaf(record))

    def _place(self, batch: Batch, end: End, side: Side, body: Body) -> Place:
        """Keep a body, if it is not kept yet, and say where."""
        spool = self._spools.get((end.exchange.seq, side))
        if spool is not None:
            digest, packed = spool.keep(self._store_root)
            del self._spools[end.exchange.seq, side]  # until now, a failure drops it with the others
            if digest != body.digest or spool.size_bytes != body.size_bytes:
                raise ValueError(f"the chunks of exchange {end.exchange.seq} are not the body it names")
            return PACKED_OBJECT if packed else PLAIN_OBJECT
        if body.digest == EMPTY:
            return NOWHERE
        known = self.index.place_of(body.digest)
        if known is not None:
            return known
        data = end.bodies.get(body.digest)
        if data is None:
            raise ValueError(f"exchange {end.exchange.seq} names a body of which no bytes were given")
        return self._keep(batch, end.exchange, side, body.digest, data)

    def _keep(self, batch: Batch, exchange: Exchange, side: Side, digest: Digest, data: bytes) -> Place:
        conversation = f"{side}\0{exchange.request.host}\0{exchange.adapter or exchange.request.path.split(b'?')[0]!r}"
        encoded = self._bodies.encode(digest, data, conversation) if len(data) <= BODY_IN_MEMORY_BYTES else None
        if encoded is None:
            return self._object((exchange.seq, side), digest, data)
        body, known = encoded
        place = batch.add(journal.frame(Kind.BODY, 0, batch.end, codec.pack(body)))
        if known is not None:
            self._bodies.remember(known, place, conversation)
        return place

    def drop_spools(self) -> None:
        """Give up what is on its way to being a file."""
        for spool in self._spools.values():
            with contextlib.suppress(OSError):
                spool.drop()
        self._spools.clear()
