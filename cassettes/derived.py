"""An answer that follows from a recorded one, as a value, and the corrections to its fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from secondtake.cassettes.catalogue import Kept
from secondtake.cassettes.exchange import EMPTY, Answer, Body, Fields, Source

ABOUT_BYTES = frozenset((b"content-length", b"content-md5", b"digest", b"repr-digest", b"content-digest", b"content-range"))
NO_BYTES: dict[bytes, bytes | None] = dict.fromkeys(ABOUT_BYTES)
"""Changes that drop every field that is about particular bytes."""


@dataclass(frozen=True, slots=True)
class Derived:
    """An answer made from the exchange at `position`. `plays`: it took that exchange's turn."""

    position: int
    answer: Answer
    body: Source
    notes: tuple[str, ...]
    plays: bool = False


@dataclass(frozen=True, slots=True)
class Whole:
    """A full representation this client can read."""

    kept: Kept
    fields: Fields
    body: Source
    notes: tuple[str, ...]


def with_changes(fields: Fields, changes: Mapping[bytes, bytes | None]) -> Fields:
    """Fields with some replaced (in place, first of each name), dropped (None), or added at the end."""
    left = dict(changes)
    result: list[tuple[bytes, bytes]] = []
    for name, value in fields:
        lower = name.lower()
        if lower not in changes:
            result.append((name, value))
        elif (new := left.pop(lower, None)) is not None:
            result.append((name, new))
    result.extend((name.title(), new) for name, new in left.items() if new is not None)
    return tuple(result)


def made(kept: Kept, status: int, reason: bytes, fields: Fields, size_bytes: int) -> Answer:
    return replace(
        kept.answer, status=status, reason=reason, fields=fields, body=Body(EMPTY, size_bytes), trailers=(), interim=(), synthetic=False
    )
