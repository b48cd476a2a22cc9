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
from secondtake.cassettes.limits import JSON_DEPTH, JSON_ITEMS, JSON_PLACES


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


@dataclass(frozen=True, slots=True)
class Item:
    """A member or an element with any value. `start` is where its key (or value) begins, `stop` where its value ends;
    `preceding`: where the item before it ends, `following`: where the next begins, None where there is none."""

    path: tuple[str | int, ...]
    start: int
    value_start: int
    stop: int
    preceding: int | None
    following: int | None

    @property
    def dotted(self) -> str:
        """For people: `messages[2].content[0]`."""
        return Found(self.path, 0, 0, "", 0).dotted


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
    found = []
    for one in _walked(content, wanted, JSON_PLACES):
        if content[one.value_start : one.value_start + 1] == b'"':
            value, end = _string(content, one.value_start)
            found.append(Found(one.path, one.value_start + 1, end - 1, value, one.parent))
    return found


def items(content: bytes, wanted: Sequence[Pattern]) -> list[Item]:
    """Return every member or element, of any kind of value, that stands at one of the `wanted` paths, in the order of the text.

    Raises as `strings`, with the limit JSON_ITEMS.
    """
    found = _walked(content, wanted, JSON_ITEMS)
    return [Item(one.path, one.start, one.value_start, one.stop, one.preceding, one.following) for one in found]


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


@dataclass(slots=True)
class _Open:
    """An item while its surroundings are still being read."""

    path: tuple[str | int, ...]
    start: int
    value_start: int
    stop: int
    preceding: int | None
    following: int | None
    parent: int


class _Walk:
    """One walk along the wanted paths. An item is noted before what it holds."""

    def __init__(self, content: bytes, most: int) -> None:
        self._content = content
        self._most = most
        self.found: list[_Open] = []

    def value(self, at: int, path: tuple[str | int, ...], wanted: tuple[Pattern, ...]) -> int:
        """Walk the value at `at`, which some wanted path goes through; return where it ends."""
        opening = self._content[at : at + 1]
        if opening in (b"{", b"[") and wanted:
            return self._container(at, path, wanted, is_object=opening == b"{")
        return _skip(self._content, at)

    def _container(self, parent: int, path: tuple[str | int, ...], wanted: tuple[Pattern, ...], *, is_object: bool) -> int:
        content, depth = self._content, len(path)
        each = () if is_object else tuple(p for p in wanted if len(p) > depth and p[depth] is Step.EACH)
        if not is_object and not each:
            return _skip(content, parent)
        closing = b"}" if is_object else b"]"
        at = _space(content, parent + 1)
        if content[at : at + 1] == closing:
            return at + 1
        before: _Open | None = None
        preceding: int | None = None
        index = 0
        while True:
            if before is not None:
                before.following = at
            start, through, step = at, each, index
            if is_object:
                key, at = self._key(at)
                through = tuple(p for p in wanted if len(p) > depth and (p[depth] == key or p[depth] is Step.ANY))
                before, at = self._item((*path, key), start, at, preceding, parent, through)
            else:
                before, at = self._item((*path, step), start, at, preceding, parent, through)
            preceding = at
            at = _space(content, at)
            mark = content[at : at + 1]
            if mark == closing:
                return at + 1
            if mark != b",":
                raise NotJson(f"expected a comma or the end of the container at byte {at}")
            at = _space(content, at + 1)
            index += 1

    def _key(self, at: int) -> tuple[str, int]:
        key, at = _string(self._content, at)
        at = _space(self._content, at)
        if self._content[at : at + 1] != b":":
            raise NotJson(f"expected a colon at byte {at}")
        return key, _space(self._content, at + 1)

    def _item(
        self, path: tuple[str | int, ...], start: int, at: int, preceding: int | None, parent: int, through: tuple[Pattern, ...]
    ) -> tuple[_Open | None, int]:
        """Note the item when it is wanted itself; return it, and where it ends."""
        noted: _Open | None = None
        if any(len(pattern) == len(path) for pattern in through):
            if len(self.found) >= self._most:
                raise TooLarge(f"more than {self._most} places")
            noted = _Open(path, start, at, at, preceding, None, parent)
            self.found.append(noted)
        deeper_ones = tuple(pattern for pattern in through if len(pattern) > len(path))
        end = self.value(at, path, deeper_ones)
        if noted is not None:
            noted.stop = end
        return noted, end


def _walked(content: bytes, wanted: Sequence[Pattern], most: int) -> list[_Open]:
    if any(len(pattern) > JSON_DEPTH for pattern in wanted):
        raise TooLarge(f"a path of more than {JSON_DEPTH} steps was asked for")
    walk = _Walk(content, most)
    walk.value(_space(content, len(_BOM) if content.startswith(_BOM) else 0), (), tuple(wanted))
    return walk.found


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
