"""Redaction of a body as it streams: known values only, with an overlap of the longest form, and which bodies are left alone."""

from __future__ import annotations

import hmac
from collections.abc import Callable

from secondtake.cassettes.content import Decoder, codings
from secondtake.cassettes.errors import TooLarge
from secondtake.cassettes.exchange import Fields, Redaction, Side
from secondtake.cassettes.needles import Hit, Needles
from secondtake.cassettes.placeholder import sealed

_BINARY = (
    b"image/",
    b"audio/",
    b"video/",
    b"font/",
    b"application/zip",
    b"application/gzip",
    b"application/x-gzip",
    b"application/x-tar",
    b"application/x-bzip",
    b"application/x-xz",
    b"application/x-7z",
    b"application/x-wheel",
    b"application/zstd",
    b"application/wasm",
    b"application/pdf",
    b"application/java-archive",
    b"application/x-git-upload-pack-result",
    b"application/x-git-receive-pack-request",
    b"application/vnd.pypi.wheel",
    b"application/vnd.oci.image.layer",
    b"application/vnd.docker.image.rootfs",
)
BINARY = "binary"
"""The place of what is hidden in a body that is no text."""

_UNSAID = frozenset({b"", b"application/octet-stream", b"binary/octet-stream", b"application/x-download", b"application/force-download"})
_SNIFF_BYTES = 4096
_BATCH_BYTES = 32 * 1024
"""Bytes gathered before they are searched; small pieces would cost a search each."""
_BINARY_BATCH_BYTES = 256 * 1024
_CHAIN_BYTES = 1024 * 1024
"""Overlapping hits are one hit; a chain of them longer than this is cut."""


def media_type(fields: Fields) -> bytes:
    """The media type of a head, lower-case without parameters; empty when there is none."""
    for name, value in fields:
        if len(name) == 12 and name.lower() == b"content-type":
            return value.partition(b";")[0].strip().lower()
    return b""


def binary(media: bytes, content: bytes | None = None) -> bool:
    """Whether a body of type `media` is not text: said by its type, or, where the type says nothing, by its first bytes."""
    if media.startswith(_BINARY):
        return media != b"image/svg+xml"
    if content is None or media not in _UNSAID:
        return False
    head = content[:_SNIFF_BYTES]
    if b"\x00" in head:
        return True
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start < len(head) - 3
    return False


class StreamRedactor:
    """One large body on its way to the journal. `feed` returns what is safe to keep so far, `finish` the rest.

    `decoded` says that the content codings were undone: with a coding and text under it, what comes out is the decoded body, since
    what was written cannot be taken back when a secret turns up later. `withheld` says why nothing more is kept.
    """

    def __init__(
        self,
        needles: Needles,
        replacement: Callable[[Hit, bytes], tuple[bytes, str | None]],
        seal: hmac.HMAC,
        *,
        fields: Fields = (),
        media: bytes = b"",
        side: Side = Side.RESPONSE,
    ) -> None:
        self._needles = needles
        self._replacement = replacement
        self._seal = seal
        self._media = media
        self._side = side
        self._held = b""
        self._at = 0
        self._hold = needles.longest + 2
        self._pass = not needles
        self._sniffed = False
        self._find, self._place, self._batch_bytes = needles.literal, "body", _BATCH_BYTES
        if binary(media):
            self._is_binary()
        self.codings = () if binary(media) else codings(fields)
        self._decoder = Decoder(self.codings) if self.codings else None
        self._redactions: list[Redaction] = []
        self.withheld: str | None = None
        if self._decoder is not None and self._decoder.opaque is not None:
            self.withheld = self._decoder.opaque.reason

    @property
    def redactions(self) -> tuple[Redaction, ...]:
        """The ranges so far, in what `feed` returned."""
        return tuple(self._redactions)

    @property
    def decoded(self) -> bool:
        return self._decoder is not None

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes and return the redacted ones that cannot change any more (b"" is common)."""
        if self._decoder is not None or self.withheld is not None:
            self._seal.update(data)
        if self.withheld is not None:
            return b""
        if self._decoder is None:
            return self._search(data)
        out: list[bytes] = []
        try:
            out.extend(self._search(piece) for piece in self._decoder.feed(data))
        except TooLarge as error:
            self.withheld = str(error)
        if self._decoder.opaque is not None:
            self.withheld = self._decoder.opaque.reason
        return b"".join(out)

    def finish(self) -> bytes:
        """No more bytes come: the rest; of a body that was withheld, its keyed digest."""
        if self.withheld is not None:
            self._held = b""
            return sealed(self._seal.digest())
        held, self._held = self._held, b""
        return self._put(held, len(held))[0]

    def _is_binary(self) -> None:
        """No text: only what cannot stand there by chance is looked for."""
        self._sniffed = True
        self._pass = not self._needles.some_long
        self._find, self._place, self._batch_bytes = self._needles.verbatim, BINARY, _BINARY_BATCH_BYTES

    def _search(self, data: bytes) -> bytes:
        if self._pass:
            return data
        self._held += data
        if len(self._held) < self._hold + self._batch_bytes:
            return b""
        if not self._sniffed:
            self._sniffed = True
            if binary(self._media, self._held):
                self._is_binary()
        if self._pass:
            held, self._held = self._held, b""
            return held
        out, stop = self._put(self._held, len(self._held) - self._hold)
        self._held = self._held[stop:]
        return out

    def _put(self, held: bytes, safe: int) -> tuple[bytes, int]:
        """Redact `held` up to `safe`, or up to a hit that is not wholly before it: it waits, for it may grow."""
        parts: list[bytes] = []
        at = 0
        if not self._sniffed and binary(self._media, held):
            self._is_binary()
        for hit in _disjoint(self._find(held)):
            if hit.start >= safe:
                break
            if hit.stop > safe and len(held) < _CHAIN_BYTES:
                safe = hit.start
                break
            put, mark = self._replacement(hit, held[hit.start : hit.stop])
            parts += (held[at : hit.start], put)
            redaction = Redaction(self._side, self._place, self._at + hit.start, self._at + hit.stop, hit.kind, mark)
            self._redactions.append(redaction)
            at = hit.stop
        safe = max(safe, at)
        parts.append(held[at:safe])
        self._at += safe
        return b"".join(parts), safe


def _disjoint(hits: list[Hit]) -> list[Hit]:
    out: list[Hit] = []
    for hit in sorted(hits, key=lambda one: (one.start, -one.stop)):
        if out and hit.start < out[-1].stop:
            if hit.stop > out[-1].stop:
                last = out[-1]
                out[-1] = Hit(last.start, hit.stop, last.kind, last.value)
        else:
            out.append(hit)
    return out
