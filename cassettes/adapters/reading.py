"""Reading untrusted JSON: every function takes anything and returns a value of the type it names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, cast

from secondtake.cassettes.adapters.base import Fault, Json
from secondtake.cassettes.json_places import deeper
from secondtake.cassettes.limits import JSON_DEPTH

EMPTY: Mapping[str, Json] = {}


def loads(content: bytes | str) -> Json | Fault:
    """Parse JSON text. Duplicate keys: the last wins. Integers keep all digits, up to the interpreter's own bound of 4,300.

    Nested deeper than JSON_DEPTH, or not JSON, is a Fault.
    """
    if deeper(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content, JSON_DEPTH):
        return Fault("too-deep", f"JSON nested deeper than {JSON_DEPTH}")
    try:
        return cast(Json, json.loads(content))
    except RecursionError:
        return Fault("too-deep", "JSON nested deeper than can be read from here")
    except UnicodeDecodeError as error:
        return Fault("not-utf8", f"not UTF-8 at byte {error.start}")
    except ValueError as error:
        return Fault("not-json", str(error)[:200])


def canonical(value: Json) -> str | Fault:
    """One text for one value: sorted keys, no spaces, characters as they are."""
    if too_deep(value):
        return Fault("too-deep", f"JSON nested deeper than {JSON_DEPTH}")
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        return Fault("not-json", str(error)[:200])


def too_deep(value: Json) -> bool:
    """Whether arrays and objects are nested deeper than JSON_DEPTH. Iterative."""
    level: list[Json] = [value]
    for _ in range(JSON_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


def mapping(value: object) -> Mapping[str, Json]:
    return cast("dict[str, Json]", value) if isinstance(value, dict) else EMPTY


def sequence(value: object) -> list[Json]:
    return cast("list[Json]", value) if isinstance(value, list) else []


def string(value: object) -> str:
    return value if isinstance(value, str) else ""


def string_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def count(value: object) -> int | None:
    """A number of tokens: a non-negative integer below 2**53, else None."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        return None
    return value


def digest(text: str) -> str:
    """SHA-256 of text as UTF-8; a lone surrogate, which JSON may hold, counts as its three bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def field_value(fields: tuple[tuple[bytes, bytes], ...], name: bytes) -> bytes | None:
    """The first field of that (lower-case) name."""
    for key, value in fields:
        if key.lower() == name:
            return value
    return None


def as_json(value: Any) -> Json:
    """A JSON value built here (not read), for the type checker."""
    return cast(Json, value)
