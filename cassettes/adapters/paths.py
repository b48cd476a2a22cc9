"""Model IDs in request paths: where they stand, and how they are written there (RFC 3986)."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import quote, unquote_to_bytes

from secondtake.cassettes.adapters.base import Escape, ModelRequest, Place, PlaceKind


def with_path_model(asked: ModelRequest, name: str, match: re.Match[bytes], group: int, *, stream: bool | None = None) -> ModelRequest:
    """Return `asked` with the ID of `group`, a segment of the request path, as its model.

    A `model` in the body is kept as a further place: what a provider does with both is not known, so both are rewritten.
    """
    raw = match[group]
    model = unquote_to_bytes(raw).decode("utf-8", "surrogateescape")
    place = Place(name, PlaceKind.MODEL, match.start(group), match.end(group), model, Escape.PATH)
    faults = tuple(fault for fault in asked.faults if fault.kind != "no-model")
    return replace(asked, model=model, places=(place, *asked.places), faults=faults, stream=asked.stream if stream is None else stream)


def escaped(new: str, old: bytes) -> bytes:
    """`new` as a path segment, in the manner of `old`: `@` and `:` stay as they are unless `old` is percent-encoded.

    A colon is also encoded when `old` has none, since it would end the ID in `models/ID:verb`.
    """
    safe = "" if b"%" in old else ("@" + (":" if b":" in old else ""))
    return quote(new, safe=safe).encode("ascii")
