"""The coding a client can read: the recorded body as it is, decoded, or coded again where a secret made it be kept decoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from secondtake.cassettes import limits
from secondtake.cassettes.catalogue import Catalogue, Kept
from secondtake.cassettes.content import decode, encode, unreadable
from secondtake.cassettes.derived import NO_BYTES, Derived, Whole, with_changes
from secondtake.cassettes.errors import BadInput, TooLarge
from secondtake.cassettes.exchange import EMPTY, Body, Bytes, Fields, Request, Source
from secondtake.cassettes.negotiation import field, reads_codings
from secondtake.cassettes.sources import Undone


def readable(kept: Kept, request: Request, catalogue: Catalogue) -> Kept | Derived | None:
    """The recorded answer if this client can read its coding, else the same decoded; None when it cannot be decoded or was withheld."""
    if kept.withheld and kept.answer.body.size_bytes:
        return None
    if not kept.terms.codings:
        return kept
    wanted = field(request.fields, b"accept-encoding")
    reads = wanted == kept.terms.accept_encoding or reads_codings(wanted, kept.terms.codings)
    if reads and not kept.plain:
        return kept
    answer = kept.answer
    if answer.body.size_bytes == 0:
        # HEAD, 204, 304: a label without bytes. Its length is that of the coded form.
        if reads or answer.status in (204, 304):
            return kept
        fields = with_changes(answer.fields, {b"content-encoding": None, b"content-length": None, b"etag": _weakened(answer.fields)})
        return Derived(kept.position, replace(answer, fields=fields), Bytes(b""), ("content coding left out",))
    whole = _recoded(kept, catalogue, reads)
    if whole is None:
        return None
    fields = whole.fields
    answer = replace(answer, fields=fields, body=Body(EMPTY, whole.body.size_bytes))
    return Derived(kept.position, answer, whole.body, whole.notes)


def _weakened(fields: Fields) -> bytes | None:
    etag = field(fields, b"etag")
    return etag if etag is None or etag.startswith(b"W/") else b"W/" + etag


def _recoded(kept: Kept, catalogue: Catalogue, reads: bool) -> Whole | None:
    """The body in a form the client reads: kept plain and coded again, or coded and undone."""
    source = catalogue.body(kept.answer)
    fields = kept.answer.fields
    length = field(fields, b"content-length") is not None
    if kept.plain:
        small = source.size_bytes <= limits.BODY_IN_MEMORY_BYTES and unreadable(kept.terms.codings) is None
        if reads and small:
            coded: Source = Bytes(encode(source.read(0, source.size_bytes), kept.terms.codings))
            notes = ("content coding applied again, a secret stood under it",)
            changes: dict[bytes, bytes | None] = {b"content-length": b"%d" % coded.size_bytes if length else None}
            return Whole(kept, with_changes(fields, changes), coded, notes)
        plain: Source | None = source
    else:
        plain = _undone(source, kept.terms.codings, whole=kept.complete)
    if plain is None:
        return None
    changes = {**NO_BYTES, b"content-encoding": None, b"etag": _weakened(fields)}
    if length:
        changes[b"content-length"] = b"%d" % plain.size_bytes
    return Whole(kept, with_changes(fields, changes), plain, (f"decoded from {', '.join(kept.terms.codings)}",))


def _undone(source: Source, names: Sequence[str], *, whole: bool) -> Source | None:
    try:
        if source.size_bytes <= limits.BODY_IN_MEMORY_BYTES:
            from_memory = decode(source.read(0, source.size_bytes), names, most_bytes=limits.BODY_IN_MEMORY_BYTES, partly=not whole)
            return Bytes(from_memory) if isinstance(from_memory, bytes) else None
    except TooLarge:
        pass
    try:
        return Undone(source, names)
    except (TooLarge, BadInput):
        return None
