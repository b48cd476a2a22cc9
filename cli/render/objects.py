"""What `--json` prints: one versioned object, or one per line. ASCII only, so that no recorded text can reach a terminal raw."""

from __future__ import annotations

import json
from collections.abc import Mapping

JSON_VERSION = 1
"""Raise when a field changes its meaning or goes away; a new field does not raise it."""


def as_line(fields: Mapping[str, object]) -> str:
    """Return one JSON object on one line, `version` first."""
    return json.dumps({"version": JSON_VERSION, **fields}, ensure_ascii=True, default=_plain)


def _plain(value: object) -> object:
    """Values that JSON does not know: bytes as text for reading, mappings and sequences of records as they are."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)
