"""Where strings stand in JSON text, by byte, so that one can be replaced and every other byte stay as it is (RFC 8259).

Theory of operation. Nothing is re-serialised: the text is walked token by token, but only along the wanted paths; every
other value is skipped by bracket. So a conversation of 100,000 messages costs one pass of a regular expression.
A key is compared decoded ("mod\\u0065l" is "model"). A key given twice is found twice: which one a reader takes is its own
business, and a replacement must reach both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from secondtake.cassettes.errors import BadInput, TooLarge
from secondtake.cassettes.limits import JSON_DEPTH, JSON_PLACES


class NotJson(BadInput):
    """The bytes are not JSON text; the message says at which byte."""


class Step(Enum):
    """A step of a pattern that is not a fixed key."""

    EACH = "[]"
    """Every element of an array."""
    ANY = "*"
    """Every member of an object."""


type Pattern = tuple[str | Step, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A string value. `start`/`stop`: byte offsets of the text between its quotes. `parent`: byte offset of the object or
    array it stands in, so that neighbours can be told from namesakes elsewhere."""

    path: tuple[str | int, ...]
    start: int
    stop: int
    value: str
    parent: int

    @property
    def dotted(self) -> str:
        """For people: `tools[2].model`."""
        out = ""
        for step in self.path:
            out += f"[{step}]" if isinstance(step, int) else f".{step}" if out else step
        return out


_SPACE = re.compile(rb"[ \t\r\n]*+")
_STRING = re.compile(rb'"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
_SCALAR = re.compile(rb"[-+.0-9A-Za-z]++")
_FLAT = rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")'
_TO_BRACKETS = re.compile(_FLAT + rb"*+(?:[\[{]" + _FLAT + rb"*+[\]}]" + _FLAT + rb"*+)*+([\[{]++|[\]}]++)", re.DOTALL)
"""On to the next run of brackets; containers that hold none are passed over."""
_TO_EVERY_BRACKET = re.compile(_FLAT + rb"*+([\[{]++|[\]}]++)", re.DOTALL)

_BOM = b"\xef\xbb\xbf"


def strings(content: bytes, wanted: Sequence[Pattern]) -> list[Found]:
    """Return every string value that stands at one of the `wanted` paths, in the order of the text.

    Raises:
        NotJson: a token on the way to a wanted place is not JSON. What is skipped is not checked.
        TooLarge: more than JSON_PLACES finds, or a pattern deeper than JSON_DEPTH.
    """
    if any(len(pattern) > JSON_DEPTH for pattern in wanted):
        raise TooLarge(f"a path of more than {JSON_DEPTH} steps was asked for")
    found: list[Found] = []
    at = _space(content, len(_BOM) if content.startswith(_BOM) else 0)
    _walk(content, at, (), tuple(wanted), found)
    return found


def splice(content: bytes, changes: Iterable[tuple[int, int, bytes]]) -> bytes:
    """Return `content` with each byte range (start, stop) replaced.

    Raises:
        BadInput: ranges overlap or lie outside.
    """
    out: list[bytes] = []
    done = 0
    for start, stop, new in sorted(changes):
        if not done <= start <= stop <= len(content):
            raise BadInput(f"byte range {start}-{stop} overlaps another or lies outside {len(content)} bytes")
        out += (content[done:start], new)
        done = stop
    out.append(content[done:])
    return b"".join(out)


def deeper(content: bytes, most: int) -> bool:
    """Whether arrays and objects are nested more than `most` deep. Of bytes that are no JSON it says what their brackets say."""
    if content.count(b"[") + content.count(b"{") <= most:
        return False
    depth, at = 0, 0
    while (match := _TO_EVERY_BRACKET.match(content, at)) is not None:
        run = match.end() - match.start(1)
        depth += run if content[match.start(1)] in b"{[" else -run
        if depth > most:
            return True
        at = match.end()
    return False


def quoted(text: str) -> bytes:
    """`text` as it stands between the quotes of a JSON string, ASCII only."""
    return json.dumps(text)[1:-1].encode("ascii")


def _walk(content: bytes, at: int, path: tuple[str | int, ...], wanted: tuple[Pattern, ...], found: list[Found]) -> int:
    """Walk the value at `at`, which some wanted path goes through; return where it ends."""
    opening = content[at : at + 1]
    if opening == b"{":
        return _object(content, at, path, wanted, found)
    if opening == b"[":
        return _array(content, at, path, wanted, found)
    return _skip(content, at)


def _object(content: bytes, parent: int, path: tuple[str | int, ...], wanted: tuple[Pattern, ...], found: list[Found]) -> int:
    depth = len(path)
    at = _space(content, parent + 1)
    if content[at : at + 1] == b"}":
        return at + 1
    while True:
        key, at = _string(content, at)
        at = _space(content, at)
        if content[at : at + 1] != b":":
            raise NotJson(f"expected a colon at byte {at}")
        at = _space(content, at + 1)
        through = tuple(p for p in wanted if len(p) > depth and (p[depth] == key or p[depth] is Step.ANY))
        at = _member(content, at, parent, (*path, key), through, found)
        at = _space(content, at)
        mark = content[at : at + 1]
        if mark == b"}":
            return at + 1
        if mark != b",":
            raise NotJson(f"expected a comma or a closing brace at byte {at}")
        at = _space(content, at + 1)


def _array(content: bytes, parent: int, path: tuple[str | int, ...], wanted: tuple[Pattern, ...], found: list[Found]) -> int:
    depth = len(path)
    through = tuple(p for p in wanted if len(p) > depth and p[depth] is Step.EACH)
    if not through:
        return _skip(content, parent)
    at = _space(content, parent + 1)
    if content[at : at + 1] == b"]":
        return at + 1
    index = 0
    while True:
        at = _member(content, at, parent, (*path, index), through, found)
        at = _space(content, at)
        mark = content[at : at + 1]
        if mark == b"]":
            return at + 1
        if mark != b",":
            raise NotJson(f"expected a comma or a closing bracket at byte {at}")
        at = _space(content, at + 1)
        index += 1


def _member(content: bytes, at: int, parent: int, path: tuple[str | int, ...], through: tuple[Pattern, ...], found: list[Found]) -> int:
    if not through:
        return _skip(content, at)
    if content[at : at + 1] != b'"':
        return _walk(content, at, path, through, found)
    value, end = _string(content, at)
    if any(len(pattern) == len(path) for pattern in through):
        if len(found) >= JSON_PLACES:
            raise TooLarge(f"more than {JSON_PLACES} places")
        found.append(Found(path, at + 1, end - 1, value, parent))
    return end


def _space(content: bytes, at: int) -> int:
    match = _SPACE.match(content, at)
    return match.end() if match else at


def _string(content: bytes, at: int) -> tuple[str, int]:
    match = _STRING.match(content, at)
    if match is None:
        raise NotJson(f"expected a string at byte {at}")
    raw = match[1]
    try:
        return (json.loads(match[0]) if b"\\" in raw else raw.decode("utf-8")), match.end()
    except ValueError:
        raise NotJson(f"the string at byte {at} is neither UTF-8 nor well escaped") from None


def _skip(content: bytes, at: int) -> int:
    """Return where the value at `at` ends. Nesting is counted, not recursed into, so depth has no limit here."""
    opening = content[at : at + 1]
    if opening in (b"{", b"["):
        depth = 1
        while True:
            match = _TO_BRACKETS.match(content, at + 1)
            if match is None:
                raise NotJson(f"the text ends inside the value at byte {at}")
            run = match.end() - match.start(1)
            if content[match.start(1)] in b"{[":
                depth += run
            elif run < depth:
                depth -= run
            else:
                return match.start(1) + depth
            at = match.end() - 1
    match = _STRING.match(content, at) if opening == b'"' else _SCALAR.match(content, at)
    if match is None:
        raise NotJson(f"expected a value at byte {at}")
    return match.end()
