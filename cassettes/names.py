"""What a cassette may be called, and how a name on the command line finds one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.limits import NAME_BYTES

_ALLOWED = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._+=,@-]*[A-Za-z0-9_+=,@-])?")

EXPORTED = ".take"
"""The ending of an exported file; no cassette in a store may have it."""

LAST = "@last"


def check(name: str, *, what: str = "cassette") -> str:
    """Return `name`. Raises BadInput: a name is one path component on every system, the same to the eye and to the disk."""
    hint = f"use 1 to {NAME_BYTES} of the characters A-Z a-z 0-9 . _ + = , @ - and begin with a letter or digit"
    if len(name.encode("utf-8", "surrogatepass")) > NAME_BYTES:
        raise BadInput(f"{what} name is longer than {NAME_BYTES} bytes: {name[:40]!a}…", hint=hint)
    if not _ALLOWED.fullmatch(name) or name.endswith(EXPORTED):
        raise BadInput(f"not a {what} name: {name!a}", hint=hint)
    return name


def is_name(name: str) -> bool:
    """Whether a folder of that name can be a cassette."""
    return len(name) <= NAME_BYTES and _ALLOWED.fullmatch(name) is not None and not name.endswith(EXPORTED)


def looks_like_path(name: str) -> bool:
    """Whether what was typed means a file rather than a name."""
    return "/" in name or name.endswith(EXPORTED)


def closest(name: str, names: Sequence[str]) -> list[str]:
    """Up to three names that are near `name`, the nearest first."""
    return difflib.get_close_matches(name, names, n=3, cutoff=0.5)
