"""Paths by pattern, in time that does not depend on how the pattern was meant: patterns come from strangers, so no regular expression."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

CACHES = (
    "**/__pycache__", "**/*.pyc", "**/.pytest_cache", "**/.mypy_cache", "**/.ruff_cache", "**/.hypothesis", "**/.tox", "**/.nox",
    "**/.coverage", "**/*.egg-info", "**/node_modules/.cache", "**/.gradle", "**/.DS_Store",
)  # fmt: skip
"""What running tests leaves behind, and nobody means by a change."""


def matches(path: str, pattern: str) -> bool:
    """Whether `pattern` names `path`, or a folder it is in. `*` and `?` stay within a folder, `**` is any number of folders."""
    return _parts(path.split("/"), pattern.rstrip("/").split("/"))


def matches_any(path: str, patterns: Iterable[str]) -> bool:
    """Whether one of them does."""
    return any(matches(path, pattern) for pattern in patterns)


def _parts(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """Which prefixes of `path` the pattern so far can be: a table of its length, once for each part of the pattern."""
    reached = [True] + [False] * len(path)
    for at, part in enumerate(pattern):
        if part == "**":
            first = reached.index(True) + (at == len(pattern) - 1)  # at the end it is what is in a folder, not the folder
            reached = [index >= first for index in range(len(reached))]
        else:
            reached = [False] + [reached[index] and _part(path[index], part) for index in range(len(path))]
        if True not in reached:
            return False
    return any(reached[1:])  # a prefix of the path: the pattern names a folder it is in, or the path itself


def _part(name: str, pattern: str) -> bool:
    """One part of a path. A star takes as little as it can, and one more each time the rest does not fit."""
    at = here = 0
    star = resumed = -1
    while at < len(name):
        if here < len(pattern) and pattern[here] == "*":
            star, resumed, here = here, at, here + 1
        elif here < len(pattern) and pattern[here] in {"?", name[at]}:
            at, here = at + 1, here + 1
        elif star >= 0:
            resumed += 1
            at, here = resumed, star + 1
        else:
            return False
    return pattern[here:].strip("*") == ""
