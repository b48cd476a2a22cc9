"""An expected patch, applied to the tree a take started from: what the files it names would hold. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from secondtake.cassettes.errors import BadInput

FILES = 2000
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*")
_NO_NEWLINE = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class Hunk:
    """`before` and `after`: lines with their ends. `start`: the line it was made at, from 0."""

    start: int
    before: tuple[str, ...]
    after: tuple[str, ...]


def expected(patch: str, start: Callable[[str], str | None]) -> Mapping[str, str | None]:
    """What each file that `patch` names holds when it is applied; None for a file that is gone. `start` gives the text of a file before.

    Raises:
        BadInput: it is no unified diff, or it does not fit what it is applied to.
    """
    made: dict[str, str | None] = {}
    for old, new, hunks in _files(patch):
        text = "" if old is None else start(old)
        if text is None:
            raise BadInput(f"the expected patch changes {old}, which is not there, or is no text")
        if new is None:
            made[old or ""] = None
            continue
        if old is not None and old != new:
            made[old] = None
        made[new] = _applied(new, text, hunks)
    if not made:
        raise BadInput("the expected patch is no unified diff: it names no file")
    return made


def _files(patch: str) -> list[tuple[str | None, str | None, list[Hunk]]]:
    found: list[tuple[str | None, str | None, list[Hunk]]] = []
    lines = patch.split("\n")
    moved: str | None = None
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("rename from "):
            moved = _path(line.removeprefix("rename from "), prefixed=False)
        elif line.startswith("rename to ") and moved is not None:
            found.append((moved, _path(line.removeprefix("rename to "), prefixed=False), []))
        elif line.startswith("--- ") and at < len(lines) and lines[at].startswith("+++ "):
            old, new = _path(line[4:]), _path(lines[at][4:])
            at += 1
            if found and not found[-1][2] and found[-1][:2] == (old, new):
                found.pop()  # a rename with changes: named above already
            found.append((old, new, []))
            moved = None
        elif line.startswith("@@ "):
            if not found:
                raise BadInput("the expected patch has a hunk before any file")
            hunk, at = _hunk(lines, at - 1)
            found[-1][2].append(hunk)
        elif line.startswith(("GIT binary patch", "Binary files ")):
            raise BadInput("the expected patch holds a binary file: use `contents`, or a check of kind `file`")
        if len(found) > FILES:
            raise BadInput(f"the expected patch names more than {FILES} files")
    return found


def _hunk(lines: list[str], at: int) -> tuple[Hunk, int]:
    head = _HUNK.fullmatch(lines[at].rstrip("\r"))
    if head is None:
        raise BadInput(f"the expected patch has no hunk in line {at + 1}")
    wanted = [int(head[2] or 1), int(head[4] or 1)]
    sides: tuple[list[str], list[str]] = ([], [])
    touched: tuple[list[str], ...] = ()
    at += 1
    while at < len(lines) and (wanted[0] > len(sides[0]) or wanted[1] > len(sides[1]) or lines[at] == _NO_NEWLINE):
        line = lines[at]
        at += 1
        if line == _NO_NEWLINE:
            for side in touched:
                side[-1] = side[-1].removesuffix("\n")
            continue
        sign, text = (line[:1] or " "), line[1:] + "\n"
        match sign:
            case " ":
                touched = sides
            case "-":
                touched = (sides[0],)
            case "+":
                touched = (sides[1],)
            case _:
                raise BadInput(f"the expected patch is cut off in line {at}")
        for side in touched:
            side.append(text)
    if (len(sides[0]), len(sides[1])) != (wanted[0], wanted[1]):
        raise BadInput(f"the expected patch is cut off in line {at}")
    start = max(int(head[1]) - (1 if wanted[0] else 0), 0)
    return Hunk(start, tuple(sides[0]), tuple(sides[1])), at


def _applied(path: str, text: str, hunks: list[Hunk]) -> str:
    parts = text.split("\n")
    lines = [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
    made: list[str] = []
    done = 0
    for hunk in hunks:
        if hunk.start < done or tuple(lines[hunk.start : hunk.start + len(hunk.before)]) != hunk.before:
            raise BadInput(f"the expected patch does not fit {path} at line {hunk.start + 1}")
        made += [*lines[done : hunk.start], *hunk.after]
        done = hunk.start + len(hunk.before)
    return "".join([*made, *lines[done:]])


_ESCAPED = re.compile(rb"\\([0-3][0-7]{2}|.)")
_LETTERS = {b"n": b"\n", b"t": b"\t", b"a": b"\a", b"b": b"\b", b"v": b"\v", b"f": b"\f", b"r": b"\r"}


def _path(text: str, *, prefixed: bool = True) -> str | None:
    """A path as git writes it: in quotes with escapes where it is unusual, after `a/` or `b/`; a time may follow after a tab."""
    text = text.rstrip("\r")
    if text.startswith('"') and text.endswith('"'):
        plain = _ESCAPED.sub(
            lambda found: bytes((int(found[1], 8),)) if len(found[1]) == 3 else _LETTERS.get(found[1], found[1]), text[1:-1].encode()
        ).decode("utf-8", "surrogateescape")
    else:
        plain = text.partition("\t")[0]
    if plain == "/dev/null":
        return None
    return plain[2:] if prefixed and plain[:2] in {"a/", "b/"} else plain
