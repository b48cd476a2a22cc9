"""One form for bodies, paths and queries that mean the same. Equal forms must mean equal content; where that is in doubt, the bytes stand.

* JSON (RFC 8259): key order, white space, string escapes and number spelling (`1`, `1.0`, `1e0`) do not count; array order does. Duplicate
  keys, NaN, numbers a double cannot carry, invalid UTF-8 and over-deep documents stay opaque bytes.
* multipart (RFC 2046): the boundary does not count; part heads and part bytes do.
* `application/x-www-form-urlencoded`, query (RFC 3986 section 6.2.2): sorted by key, stable within a key, percent-encoding normalised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import NoReturn

from secondtake.cassettes import limits
from secondtake.cassettes.exchange import Fields

type Json = bool | int | float | str | list[Json] | dict[str, Json] | None

JSON_BYTES = 16 * 1024 * 1024
"""Larger documents are matched as opaque bytes: a parsed one takes about ten times its size."""

PARTS = 10_000
"""Parts of a multipart body; with more it is opaque."""

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_KEPT = _UNRESERVED | frozenset(b"!$&'()*+,;=:@/?[]|%")
_ODD = re.compile(rb"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~!$&'()*+,;=:@/?\[\]|%]")


class _Unfit(Exception):
    """This document has no canonical form we trust."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a multipart body: its head (names lower-case, sorted), the name of its form field, its bytes."""

    head: Fields
    name: str
    content: bytes


# --- JSON


def _pairs(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Unfit
    return found


def _fraction(literal: str) -> int | float:
    if len(literal) > 400:
        raise _Unfit
    number = float(literal)
    if number in (float("inf"), float("-inf")):
        raise _Unfit
    exact = Decimal(literal)
    if exact == exact.to_integral_value() and abs(number) < 1e300:
        return int(exact)
    if Decimal(repr(number)) != exact:
        raise _Unfit
    return number


def _constant(_: str) -> NoReturn:
    raise _Unfit


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_float=_fraction, parse_constant=_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False, check_circular=False)


def parse_json(data: bytes) -> Json | None:
    """Return the document, or None when it is not JSON or has no form we trust. (`null` alone is None too.)

    A returned document can be changed freely and given to `dump_json`.
    """
    if len(data) > JSON_BYTES:
        return None
    try:
        text = data.decode("utf-8")
        document: Json = _DECODER.decode(text)
    except (_Unfit, ValueError, RecursionError, ArithmeticError):
        return None
    return document if _shallow(document, limits.JSON_DEPTH) else None


def _shallow(document: Json, depth: int) -> bool:
    level: list[Json] = [document]
    while level:
        if depth < 0:
            return False
        depth -= 1
        following: list[Json] = []
        for value in level:
            if isinstance(value, dict):
                following.extend(inner for inner in value.values() if isinstance(inner, dict | list))
            elif isinstance(value, list):
                following.extend(inner for inner in value if isinstance(inner, dict | list))
        level = following
    return True


def dump_json(document: Json) -> bytes:
    """The canonical bytes of a document: keys sorted, no white space, ASCII."""
    return _ENCODER.encode(document).encode("ascii")


# --- path, query, form


def _escape(match: re.Match[bytes]) -> bytes:
    found = match.group()
    if len(found) == 3:
        octet = int(found[1:], 16)
        return bytes((octet,)) if octet in _UNRESERVED else found.upper()
    return b"%%%02X" % found[0]


def canonical_path(path: bytes) -> bytes:
    """A path without its query: unreserved octets plain, other escapes upper-case, octets that may not stand plain escaped.

    Dot segments, doubled and trailing slashes, `%2F` and letter case stay: origins tell them apart.
    """
    return _ODD.sub(_escape, path)


def split_target(target: bytes) -> tuple[bytes, bytes | None]:
    """Path and query of a target; the query is None when there is no `?`. A fragment, which no client should send, is dropped."""
    target = target.partition(b"#")[0]
    path, mark, query = target.partition(b"?")
    return path, query if mark else None


def query_pairs(query: bytes) -> list[tuple[bytes, bytes | None]]:
    """The pairs of a query, sorted by key and stable within a key, percent-encoding normalised. `a` is not `a=`."""
    pairs: list[tuple[bytes, bytes | None]] = []
    for item in query.split(b"&"):
        if item:
            key, mark, value = item.partition(b"=")
            pairs.append((_ODD.sub(_escape, key), _ODD.sub(_escape, value) if mark else None))
    pairs.sort(key=lambda pair: pair[0])
    return pairs


def canonical_query(query: bytes) -> bytes:
    """`query_pairs` joined again."""
    return b"&".join(key if value is None else key + b"=" + value for key, value in query_pairs(query))


def canonical_target(target: bytes) -> bytes:
    """Path and query, each in its canonical form."""
    if b"%" not in target and b"?" not in target and b"#" not in target:
        return _ODD.sub(_escape, target)
    path, query = split_target(target)
    return canonical_path(path) if query is None else canonical_path(path) + b"?" + canonical_query(query)


def _form_text(octets: bytes) -> bytes:
    plain = re.sub(rb"%([0-9A-Fa-f]{2})", lambda match: bytes((int(match.group(1), 16),)), octets.replace(b"+", b" "))
    return b"".join(bytes((octet,)) if octet in _UNRESERVED else b"%%%02X" % octet for octet in plain) if not plain.isalnum() else plain


def form_pairs(content: bytes) -> list[tuple[bytes, bytes]]:
    """The pairs of an urlencoded form, sorted by key and stable within a key; `+` and `%20` are the same there."""
    pairs = [(_form_text(item.partition(b"=")[0]), _form_text(item.partition(b"=")[2])) for item in content.split(b"&") if item]
    pairs.sort(key=lambda pair: pair[0])
    return pairs


def canonical_form(content: bytes) -> bytes:
    """`form_pairs` joined again."""
    return b"&".join(key + b"=" + value for key, value in form_pairs(content))


# --- multipart


_BOUNDARY = re.compile(rb';\s*boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))', re.IGNORECASE)
_NAME = re.compile(rb';\s*name=(?:"((?:[^"\\]|\\.)*)"|([^\s;]+))', re.IGNORECASE)


def parts(content: bytes, content_type: bytes) -> tuple[Part, ...] | None:
    """The parts of a multipart body, or None when it is not one that is well formed. Preamble and epilogue must be empty."""
    found = _BOUNDARY.search(content_type)
    if found is None:
        return None
    mark = b"\r\n--" + (found.group(1) or found.group(2))
    pieces = (b"\r\n" + content).split(mark, PARTS + 2)
    if len(pieces) < 2 or len(pieces) > PARTS + 1 or pieces[0] or pieces[-1].strip(b" \t") not in (b"--", b"--\r\n"):
        return None
    result: list[Part] = []
    for piece in pieces[1:-1]:
        padding, mark_end, rest = piece.partition(b"\r\n")
        if not mark_end or padding.strip(b" \t"):
            return None
        if rest.startswith(b"\r\n"):
            result.append(Part((), "", rest[2:]))
            continue
        head, blank, inner = rest.partition(b"\r\n\r\n")
        if not blank:
            return None
        fields = tuple(sorted(_part_fields(head.split(b"\r\n"))))
        result.append(Part(fields, _part_name(fields), inner))
    return tuple(result)


def _part_fields(lines: Iterable[bytes]) -> Iterable[tuple[bytes, bytes]]:
    for line in lines:
        name, _, value = line.partition(b":")
        yield name.strip().lower(), value.strip()


def _part_name(fields: Fields) -> str:
    for name, value in fields:
        if name == b"content-disposition" and (found := _NAME.search(value)):
            return (found.group(1) or found.group(2) or b"").decode("utf-8", "replace")
    return ""


def canonical_parts(found: tuple[Part, ...]) -> bytes:
    """Part heads and bytes with their lengths, so that no boundary is needed."""
    pieces: list[bytes] = []
    for part in found:
        head = b"\r\n".join(name + b":" + value for name, value in part.head)
        pieces.append(b"%d,%d\n" % (len(head), len(part.content)))
        pieces.append(head)
        pieces.append(part.content)
    return b"".join(pieces)


# --- bodies


@dataclass(frozen=True, slots=True)
class Document:
    """A decoded body and what it was understood as. Exactly one of `json`, `form`, `multipart` is set, or none: opaque."""

    content: bytes
    json: Json = None
    form: tuple[tuple[bytes, bytes], ...] | None = None
    multipart: tuple[Part, ...] | None = None


def media_type(fields: Fields) -> bytes:
    """The last Content-Type of a head, as sent; empty when there is none."""
    found = b""
    for name, value in fields:
        if len(name) == 12 and name.lower() == b"content-type":
            found = value
    return found


def document(content: bytes, content_type: bytes = b"") -> Document:
    """Understand a decoded body. The label is a hint: JSON is recognised by its first byte too; what does not parse is opaque."""
    kind = content_type.partition(b";")[0].strip().lower()
    if kind.startswith(b"multipart/"):
        found = parts(content, content_type)
        return Document(content, multipart=found)
    start = content[:64].lstrip(b" \t\r\n")[:1]
    if start in (b"{", b"[") or kind == b"application/json" or kind.endswith(b"+json"):
        parsed = parse_json(content)
        if parsed is not None:
            return Document(content, json=parsed)
    if kind == b"application/x-www-form-urlencoded" and content:
        return Document(content, form=tuple(form_pairs(content)))
    return Document(content)


def canonical(found: Document) -> bytes:
    """The bytes that stand for a body in a key: tagged by kind, so that an opaque body never equals a parsed one."""
    if found.json is not None:
        return b"json\n" + dump_json(found.json)
    if found.form is not None:
        return b"form\n" + b"&".join(key + b"=" + value for key, value in found.form)
    if found.multipart is not None:
        return b"parts\n" + canonical_parts(found.multipart)
    return b"bytes\n" + found.content
