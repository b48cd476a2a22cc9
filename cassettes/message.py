"""The body of one message as it comes: held up to `limits.BODY_IN_MEMORY_BYTES`, redacted and given out in chunks beyond."""

from __future__ import annotations

import hashlib
from enum import Enum, auto

from secondtake.cassettes import limits
from secondtake.cassettes.exchange import EMPTY, Body, Digest, Fields, Piece, Side
from secondtake.cassettes.records import Chunk, Record
from secondtake.cassettes.redact import RedactedBody, Redactor, StreamRedactor

CHUNK_BYTES = 1024 * 1024
"""Largest Chunk record."""


LARGE_PIECE_BYTES = 4 * 1024 * 1024
"""Boundaries kept of a large body whose length was declared: where a socket was read says nothing of it then (T-I5)."""


class State(Enum):
    """Of one message."""

    IDLE = auto()
    OPEN = auto()
    TRAILED = auto()
    ENDED = auto()


class Message:
    """The body of one message as it comes: held, then streaming."""

    def __init__(self, seq: int, side: Side, redactor: Redactor) -> None:
        self.state = State.IDLE
        self.fields: Fields = ()
        self._seq = seq
        self._side = side
        self._redactor = redactor
        self._sizes: list[int] = []
        self._offsets: list[int] = []
        self.held = bytearray()
        self.size_bytes = 0
        self._stream: StreamRedactor | None = None
        self._sha = hashlib.sha256()
        self._kept_bytes = 0
        self._joins = False

    @property
    def streaming(self) -> bool:
        return self._stream is not None

    def piece(self, data: bytes, offset_us: int, *, withhold: bool) -> tuple[Record, ...]:
        if not data:
            return ()
        self.size_bytes += len(data)
        joined = len(self._sizes) >= limits.PIECES or (self._joins and self._sizes[-1] < LARGE_PIECE_BYTES)
        if joined:
            self._sizes[-1] += len(data)
        else:
            self._sizes.append(len(data))
            self._offsets.append(offset_us)
        if self._stream is not None:
            return self._out(self._feed(data))
        self.held += data
        if len(self.held) <= limits.BODY_IN_MEMORY_BYTES:
            return ()
        self._stream = self._redactor.streaming(self.fields, self._side)
        self._joins = any(name.lower() == b"content-length" for name, _ in self.fields)
        if self._joins:
            self._join()
        if withhold:
            self._stream.withheld = "a login's body, too large to be read"
        whole = bytes(self.held)
        self.held = bytearray()
        return self._out(self._feed(whole))

    def _join(self) -> None:
        """Join the boundaries so far: each stretch of LARGE_PIECE_BYTES keeps the time of its first byte."""
        sizes: list[int] = []
        offsets: list[int] = []
        for size, offset in zip(self._sizes, self._offsets, strict=True):
            if sizes and sizes[-1] < LARGE_PIECE_BYTES:
                sizes[-1] += size
            else:
                sizes.append(size)
                offsets.append(offset)
        self._sizes, self._offsets = sizes, offsets

    def _feed(self, data: bytes) -> bytes:
        assert self._stream is not None
        try:
            return self._stream.feed(data)
        except Exception as error:  # noqa: BLE001  # fail closed; the relay goes on
            self._stream.withheld = f"the redactor failed: {type(error).__name__}"
            return b""

    def _out(self, data: bytes) -> tuple[Record, ...]:
        self._sha.update(data)
        self._kept_bytes += len(data)
        return tuple(Chunk(self._seq, self._side, data[at : at + CHUNK_BYTES]) for at in range(0, len(data), CHUNK_BYTES))

    def finish(self) -> tuple[tuple[Record, ...], RedactedBody, Body]:
        """End a streaming body: its last chunks, what to say about it, and the reference to it."""
        assert self._stream is not None
        try:
            last = self._stream.finish()
        except Exception as error:  # noqa: BLE001  # as above; a withheld stream only tells its digest
            self._stream.withheld = f"the redactor failed: {type(error).__name__}"
            last = self._stream.finish()
        records = self._out(last)
        stream = self._stream
        told = RedactedBody(b"", stream.redactions, stream.decoded, stream.codings, stream.withheld)
        return records, told, Body(Digest(self._sha.hexdigest()), self._kept_bytes, self.pieces(self._kept_bytes))

    def pieces(self, kept_bytes: int) -> tuple[Piece, ...]:
        """The boundaries, scaled to a body of another length so that their number and times stay."""
        if kept_bytes == self.size_bytes:
            return tuple(map(Piece, self._sizes, self._offsets))
        scaled: list[Piece] = []
        came = done = 0
        for size, offset in zip(self._sizes, self._offsets, strict=True):
            came += size
            upto = kept_bytes * came // self.size_bytes
            if upto > done:
                scaled.append(Piece(upto - done, offset))
                done = upto
        return tuple(scaled)

    def reference(self, content: bytes) -> Body:
        """The reference to a body that was held and is kept as `content`."""
        if not content:
            return Body(EMPTY, 0, ())
        return Body(Digest(hashlib.sha256(content).hexdigest()), len(content), self.pieces(len(content)))
