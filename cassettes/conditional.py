"""Conditional requests and ranges (RFC 9110 sections 13 and 14), evaluated against one recorded representation. No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum

from secondtake.cassettes.exchange import Fields
from secondtake.cassettes.negotiation import field

RANGES = 64
"""Ranges of one request that are answered as parts; with more the whole is sent, as the RFC allows (14.2)."""

_TAG = re.compile(rb'(?:W/)?"[^"]*"')
_SPEC = re.compile(rb"(\d{0,19})[ \t]*-[ \t]*(\d{0,19})")
_UNIT = re.compile(rb"[ \t]*bytes[ \t]*=(.*)", re.IGNORECASE | re.DOTALL)
_CONTENT_RANGE = re.compile(rb"[ \t]*bytes[ \t]+(\d{1,19})-(\d{1,19})/(\d{1,19})[ \t]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Conditions:
    """The precondition and range fields of a request, as sent; None where absent."""

    none_match: bytes | None = None
    modified_since: bytes | None = None
    match: bytes | None = None
    unmodified_since: bytes | None = None
    range: bytes | None = None
    if_range: bytes | None = None

    @classmethod
    def of(cls, fields: Fields) -> Conditions:
        """Read them from a head."""
        if not any(5 <= len(name) <= 19 and name[:1] in b"iIrR" for name, _ in fields):
            return _NONE
        return cls(*(field(fields, name) for name in _NAMES))

    @property
    def cached(self) -> bool:
        """The client holds a copy and asks whether it is still good."""
        return self.none_match is not None or self.modified_since is not None

    @property
    def any(self) -> bool:
        """There is a precondition."""
        return self.cached or self.match is not None or self.unmodified_since is not None


_NAMES = (b"if-none-match", b"if-modified-since", b"if-match", b"if-unmodified-since", b"range", b"if-range")
_NONE = Conditions()


@dataclass(frozen=True, slots=True)
class Validators:
    """The validators of a representation, as its answer carried them."""

    etag: bytes | None
    last_modified: bytes | None

    @classmethod
    def of(cls, fields: Fields) -> Validators:
        return cls(field(fields, b"etag"), field(fields, b"last-modified"))

    @property
    def strong(self) -> bytes | None:
        """What names these very bytes: a strong ETag, else the date; None with a weak ETag or neither."""
        if self.etag is not None:
            return None if self.etag.startswith(b"W/") else self.etag
        return self.last_modified


class Outcome(Enum):
    """What preconditions say."""

    GO_ON = "go on"
    NOT_MODIFIED = "304"
    FAILED = "412"


def tags(value: bytes) -> list[bytes]:
    """The entity tags of a list; one that lacks its quotes is taken as it is."""
    return _TAG.findall(value) or [value.strip()]


def _weak(tag: bytes) -> bytes:
    return tag.strip().removeprefix(b"W/")


def date(value: bytes | None) -> datetime | None:
    """An HTTP date, or None when it is not one."""
    if value is None or len(value) > 64:
        return None
    try:
        found = parsedate_to_datetime(value.decode("ascii"))
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def evaluate(conditions: Conditions, validators: Validators) -> Outcome:
    """Evaluate the preconditions of a GET or HEAD in the order of RFC 9110 13.2.2. A date that is not one counts as absent."""
    etag = validators.etag
    if conditions.match is not None:
        strong = etag is not None and not etag.startswith(b"W/") and etag in tags(conditions.match)
        if not strong and conditions.match.strip() != b"*":
            return Outcome.FAILED
    elif conditions.unmodified_since is not None:
        limit, modified = date(conditions.unmodified_since), date(validators.last_modified)
        if limit is not None and modified is not None and modified > limit:
            return Outcome.FAILED
    if conditions.none_match is not None:
        if conditions.none_match.strip() == b"*":
            return Outcome.NOT_MODIFIED
        if etag is not None and _weak(etag) in [_weak(tag) for tag in tags(conditions.none_match)]:
            return Outcome.NOT_MODIFIED
    elif conditions.modified_since is not None:
        limit, modified = date(conditions.modified_since), date(validators.last_modified)
        if limit is not None and modified is not None and modified <= limit:
            return Outcome.NOT_MODIFIED
    return Outcome.GO_ON


def range_applies(conditions: Conditions, validators: Validators) -> bool:
    """Whether `If-Range`, if any, lets the Range count: strong comparison of a tag, or the very date (RFC 9110 13.1.5)."""
    wanted = conditions.if_range
    if wanted is None:
        return True
    wanted = wanted.strip()
    if wanted.startswith((b'"', b"W/")):
        return not wanted.startswith(b"W/") and wanted == validators.etag
    limit, modified = date(wanted), date(validators.last_modified)
    return limit is not None and limit == modified


@dataclass(frozen=True, slots=True)
class Unsatisfiable:
    """Well formed, but nothing of it lies within the file: 416."""


def parse_range(value: bytes | None, size_bytes: int) -> tuple[tuple[int, int], ...] | Unsatisfiable | None:
    """The byte ranges asked for as (start, stop) pairs, stop excluded, cut to the file; None when the field does not count.

    It does not count when it is absent, of another unit, malformed, or asks for more than `RANGES` ranges.
    """
    found = None if value is None else _UNIT.fullmatch(value)
    if found is None:
        return None
    specs = [spec.strip(b" \t") for spec in found.group(1).split(b",", RANGES + 1)]
    specs = [spec for spec in specs if spec]
    if not specs or len(specs) > RANGES:
        return None
    ranges: list[tuple[int, int]] = []
    for spec in specs:
        match = _SPEC.fullmatch(spec)
        if match is None or spec == b"-":
            return None
        first, last = match.groups()
        if not first:
            if not last:
                return None
            length = min(int(last), size_bytes)
            if length:
                ranges.append((size_bytes - length, size_bytes))
            continue
        if last and int(last) < int(first):
            return None
        if int(first) < size_bytes:
            ranges.append((int(first), min(int(last) + 1, size_bytes) if last else size_bytes))
    if not ranges:
        return Unsatisfiable()
    if len(ranges) > 1 and sum(stop - start for start, stop in ranges) > 2 * size_bytes:
        return None
    return tuple(ranges)


def content_range(value: bytes | None) -> tuple[int, int, int] | None:
    """Start, stop (excluded) and complete length of a 206's Content-Range, or None when it is not one range of a known length."""
    found = None if value is None else _CONTENT_RANGE.fullmatch(value)
    if found is None:
        return None
    first, last, size = (int(group) for group in found.groups())
    return (first, last + 1, size) if first <= last < size else None
