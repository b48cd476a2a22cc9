"""Content codings (RFC 9110 section 8.4), undone and made again within bounds.

A codec is chosen by a fixed table, never by a registry. Decoding is incremental: a bomb costs at most `STEP_BYTES` of memory beyond
what the caller keeps, and stops by size (`limits.DECODED_BYTES`) or ratio (`limits.DECODED_RATIO`, checked from 1 MiB on).
What cannot be decoded is a value (`Opaque`) that says why: the bytes stay what they are. Only a limit is an error (`TooLarge`).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import brotli
import zstandard

from secondtake.cassettes import limits
from secondtake.cassettes.errors import BadInput, TooLarge
from secondtake.cassettes.exchange import Fields, Source

STEP_BYTES = 256 * 1024
"""Largest piece a decoder hands out where the codec lets us bound it."""

READ_BYTES = 64 * 1024
"""Encoded bytes read from a Source at a time."""

ZSTD_SLICE_BYTES = 128
"""zstandard has no output bound per call; a block of 4 bytes may stand for 128 KiB, so 128 bytes give at most 4 MiB."""

ZSTD_WINDOW_BYTES = 8 * 1024 * 1024
"""RFC 9659: a `zstd` content coding needs a window of at most 8 MiB."""

RATIO_FROM_BYTES = 1024 * 1024

ALIASES = {"x-gzip": "gzip", "gzip": "gzip", "deflate": "deflate", "br": "br", "zstd": "zstd"}
"""Every coding that is understood, by its name on the wire."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """The bytes were not decoded. `reason` is one line: an unknown coding, too many codings, a damaged stream."""

    reason: str


class _Broken(Exception):
    """The stream is damaged or of another coding than its label."""


class _Codec(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]: ...
    def complete(self) -> bool: ...


class _Zlib:
    """gzip (members one after another) and deflate (zlib-wrapped as the RFC says, or raw as some servers send)."""

    def __init__(self, name: str) -> None:
        self._gzip = name == "gzip"
        self._head = b""
        self._state = zlib.decompressobj(31) if self._gzip else None
        self._empty = True

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._state is None:
            self._head += data
            if len(self._head) < 2:
                return
            data, self._head = self._head, b""
            wrapped = data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
            self._state = zlib.decompressobj(15 if wrapped else -15)
        self._empty = self._empty and not data
        try:
            while data:
                if self._state.eof:
                    if not self._gzip:
                        raise _Broken("bytes after the end of the deflate stream")
                    self._state = zlib.decompressobj(31)
                piece = self._state.decompress(data, STEP_BYTES)
                if piece:
                    yield piece
                data = self._state.unused_data if self._state.eof else self._state.unconsumed_tail
            while not self._state.eof and (piece := self._state.decompress(b"", STEP_BYTES)):
                yield piece
        except zlib.error as error:
            raise _Broken(str(error)) from error

    def complete(self) -> bool:
        return not self._empty and self._state is not None and self._state.eof


class _Brotli:
    def __init__(self) -> None:
        self._state = brotli.Decompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            if self._state.is_finished() and data:
                raise _Broken("bytes after the end of the br stream")
            piece = self._state.process(data, output_buffer_limit=STEP_BYTES)
            while piece:
                yield piece
                if self._state.can_accept_more_data():
                    break
                piece = self._state.process(b"", output_buffer_limit=STEP_BYTES)
        except brotli.error as error:
            raise _Broken(str(error)) from error

    def complete(self) -> bool:
        return bool(self._state.is_finished())


class _Zstd:
    def __init__(self) -> None:
        self._codec = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
        self._state = self._codec.decompressobj()
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            for start in range(0, len(data), ZSTD_SLICE_BYTES):
                rest = data[start : start + ZSTD_SLICE_BYTES]
                while rest:
                    if self._state.eof:
                        self._state = self._codec.decompressobj()
                    self._begun = True
                    piece = self._state.decompress(rest)
                    if piece:
                        yield piece
                    rest = self._state.unused_data if self._state.eof else b""
        except zstandard.ZstdError as error:
            raise _Broken(str(error)) from error

    def complete(self) -> bool:
        return self._begun and self._state.eof


def _codec(name: str) -> _Codec:
    if name == "br":
        return _Brotli()
    if name == "zstd":
        return _Zstd()
    return _Zlib(name)


class Decoder:
    """Undoes `names` (as applied, first to last) on bytes as they come. `feed` and `finish` may raise TooLarge.

    After damage `opaque` is set and nothing more comes; what was handed out before it was right as far as the codec can know.
    """

    def __init__(self, names: Sequence[str], *, most_bytes: int = limits.DECODED_BYTES, ratio: int = limits.DECODED_RATIO) -> None:
        self.opaque: Opaque | None = unreadable(names)
        self._chain = [] if self.opaque else [_codec(ALIASES[name]) for name in reversed(names)]
        self._most_bytes = most_bytes
        self._ratio = ratio
        self._taken = 0
        self._given = 0
        self._work = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield decoded pieces. Each is at most a few MiB, whatever the input."""
        if self.opaque is not None:
            return
        self._taken += len(data)
        try:
            for piece in self._through(0, data):
                self._given += len(piece)
                if self._given > self._most_bytes:
                    raise TooLarge(f"a body decodes to more than {self._most_bytes} bytes")
                if self._given > RATIO_FROM_BYTES and self._given > self._taken * self._ratio:
                    raise TooLarge(f"a body decodes to more than {self._ratio} times its size")
                yield piece
        except _Broken as error:
            self.opaque = Opaque(f"damaged: {error}")

    def _through(self, stage: int, data: bytes) -> Iterator[bytes]:
        if stage == len(self._chain):
            if data:
                yield data
            return
        for piece in self._chain[stage].feed(data):
            self._work += len(piece)
            if self._work > self._most_bytes * len(self._chain):
                raise TooLarge(f"a body decodes to more than {self._most_bytes} bytes")
            yield from self._through(stage + 1, piece)

    def finish(self) -> None:
        """Say that no more bytes come; a stream that is not complete is Opaque."""
        if self.opaque is None and not all(codec.complete() for codec in self._chain):
            self.opaque = Opaque("damaged: the stream ends early")


def codings(fields: Fields) -> tuple[str, ...]:
    """The content codings of a head in the order they were applied, lower-case, `identity` left out."""
    found: list[str] = []
    for name, value in fields:
        if len(name) == 16 and name.lower() == b"content-encoding":
            found.extend(part.strip().lower() for part in value.decode("latin-1").split(","))
    return tuple(name for name in found if name and name != "identity")


def unreadable(names: Sequence[str]) -> Opaque | None:
    """Why `names` are not undone, or None when they are."""
    if len(names) > limits.CONTENT_CODINGS:
        return Opaque(f"{len(names)} stacked content codings, at most {limits.CONTENT_CODINGS} are undone")
    for name in names:
        if name not in ALIASES:
            return Opaque(f"unknown content coding {name[:40]!r}")
    return None


def decode(
    data: bytes,
    names: Sequence[str],
    *,
    most_bytes: int = limits.DECODED_BYTES,
    ratio: int = limits.DECODED_RATIO,
    partly: bool = False,
) -> bytes | Opaque:
    """Return the decoded bytes, or Opaque. No bytes at all decode to no bytes: a HEAD or 304 keeps its label.

    `partly`: of a stream that ends early, what came before (for an exchange that was cut short).

    Raises:
        TooLarge: over a cap; found without holding more than the cap and a few MiB.
    """
    if not names or not data:
        return data
    decoder = Decoder(names, most_bytes=most_bytes, ratio=ratio)
    pieces = list(decoder.feed(data))
    decoder.finish()
    if decoder.opaque is not None and not (partly and pieces):
        return decoder.opaque
    return b"".join(pieces)


def plain(data: bytes, fields: Fields) -> bytes | None:
    """A body without the content codings its head names; None where they cannot be undone within bounds."""
    names = codings(fields)
    if not names:
        return data
    try:
        found = decode(data, names)
    except TooLarge:
        return None
    return None if isinstance(found, Opaque) else found


def decoded(source: Source, names: Sequence[str], *, most_bytes: int = limits.DECODED_BYTES) -> Iterator[bytes]:
    """Yield the decoded bytes of a Source in pieces, holding no more than a few MiB.

    Raises:
        TooLarge: over a cap.
        BadInput: the bytes are not what their label says.
    """
    decoder = Decoder(names, most_bytes=most_bytes)
    offset = 0
    while offset < source.size_bytes and decoder.opaque is None:
        piece = source.read(offset, READ_BYTES)
        if not piece:
            break
        offset += len(piece)
        yield from decoder.feed(piece)
    decoder.finish()
    if decoder.opaque is not None:
        raise BadInput(decoder.opaque.reason)


def encode(data: bytes, names: Sequence[str]) -> bytes:
    """Apply `names`, first to last, to a body that is served. The same bytes in give the same bytes out.

    Raises:
        BadInput: a coding that is not in the table, or too many of them.
    """
    problem = unreadable(names)
    if problem is not None:
        raise BadInput(problem.reason)
    for name in names:
        match ALIASES[name]:
            case "gzip":
                packer = zlib.compressobj(6, zlib.DEFLATED, 31)
                data = packer.compress(data) + packer.flush()
            case "deflate":
                data = zlib.compress(data, 6)
            case "br":
                data = brotli.compress(data, quality=5)
            case _:
                data = zstandard.ZstdCompressor(level=3).compress(data)
    return data
