"""Where two requests differ, leaf by leaf, in words a person can use: `messages[4].content[0].text`, not "200 KB differ". Bounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from secondtake.cassettes.canonical import Document, Json, Part, dump_json, query_pairs, split_target

MOST = 32
"""Differences listed; the rest is counted up to `COUNTED`."""

COUNTED = 1000

ALIGNED = 600
"""Items of an array that are aligned by content after equal ends are cut; longer middles are compared by position."""

SHOWN_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Difference:
    """One place. `where` is `method`, `host`, `path`, `query`, `body`, `form` or `part`; a side is None where the place is absent."""

    where: str
    path: str
    recorded: str | None
    live: str | None


@dataclass(slots=True)
class Found:
    """Collects differences up to the bounds."""

    items: list[Difference] = field(default_factory=list)
    count: int = 0

    def add(self, where: str, path: str, recorded: str | None, live: str | None) -> None:
        """Take one more."""
        self.count += 1
        if len(self.items) < MOST:
            self.items.append(Difference(where, path, recorded, live))

    @property
    def full(self) -> bool:
        return self.count >= COUNTED


def _window(recorded: str, live: str) -> tuple[str, str]:
    """Both texts cut to where they begin to differ."""
    if len(recorded) <= SHOWN_CHARACTERS and len(live) <= SHOWN_CHARACTERS:
        return recorded, live
    low, high = 0, min(len(recorded), len(live))
    while low < high:
        middle = (low + high + 1) // 2
        if recorded[:middle] == live[:middle]:
            low = middle
        else:
            high = middle - 1
    begin = max(0, low - 20)
    return _cut(recorded, begin), _cut(live, begin)


def _cut(text: str, begin: int) -> str:
    piece = text[begin : begin + SHOWN_CHARACTERS]
    return ("…" if begin else "") + piece + ("…" if begin + SHOWN_CHARACTERS < len(text) else "")


def _shown(value: Json) -> str:
    if isinstance(value, str):
        return _cut(value, 0)
    if isinstance(value, dict):
        return f"an object of {len(value)} members"
    if isinstance(value, list):
        return f"an array of {len(value)} items"
    return dump_json(value).decode()


def _member(path: str, key: str) -> str:
    plain = key.replace("_", "").replace("-", "").isalnum()
    step = key if plain else f'["{_cut(key, 0)}"]'
    return f"{path}.{step}" if path and plain else path + step


def json_differences(recorded: Json, live: Json, found: Found, path: str = "") -> None:
    """The leaves at which two documents differ. Arrays are aligned by content, so that one inserted turn is one difference."""
    if found.full or (recorded == live and type(recorded) is type(live)):
        return
    if isinstance(recorded, dict) and isinstance(live, dict):
        for key in sorted(recorded.keys() | live.keys()):
            place = _member(path, key)
            if key not in live:
                found.add("body", place, _shown(recorded[key]), None)
            elif key not in recorded:
                found.add("body", place, None, _shown(live[key]))
            else:
                json_differences(recorded[key], live[key], found, place)
    elif isinstance(recorded, list) and isinstance(live, list):
        _arrays(recorded, live, found, path)
    elif isinstance(recorded, str) and isinstance(live, str):
        found.add("body", path, *_window(recorded, live))
    else:
        found.add("body", path, _shown(recorded), _shown(live))


def _arrays(recorded: list[Json], live: list[Json], found: Found, path: str) -> None:
    start, shorter = 0, min(len(recorded), len(live))
    while start < shorter and recorded[start] == live[start]:
        start += 1
    end = 0
    while end < shorter - start and recorded[-1 - end] == live[-1 - end]:
        end += 1
    left, right = recorded[start : len(recorded) - end], live[start : len(live) - end]
    if len(left) == len(right) or max(len(left), len(right)) > ALIGNED:
        _pairwise(left, right, found, path, start, start)
        return
    names: dict[bytes, int] = {}
    marks = [[names.setdefault(dump_json(item), len(names)) for item in side] for side in (left, right)]
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, marks[0], marks[1], autojunk=False).get_opcodes():
        if tag != "equal":
            _pairwise(left[i1:i2], right[j1:j2], found, path, start + i1, start + j1)


def _pairwise(left: Sequence[Json], right: Sequence[Json], found: Found, path: str, at_left: int, at_right: int) -> None:
    for index in range(max(len(left), len(right))):
        if index >= len(right):
            found.add("body", f"{path}[{at_left + index}]", _shown(left[index]), None)
        elif index >= len(left):
            found.add("body", f"{path}[{at_right + index}]", None, _shown(right[index]))
        else:
            json_differences(left[index], right[index], found, f"{path}[{at_right + index}]")


def pair_differences(
    where: str, recorded: Sequence[tuple[bytes, bytes | None]], live: Sequence[tuple[bytes, bytes | None]], found: Found
) -> None:
    """Keys of a query or form whose values differ."""
    for key in sorted({key for key, _ in (*recorded, *live)}):
        had = [value or b"" for name, value in recorded if name == key]
        has = [value or b"" for name, value in live if name == key]
        if had != has:
            left, right = _window(_text(b", ".join(had)), _text(b", ".join(has)))
            found.add(where, _cut(_text(key), 0), left if had else None, right if has else None)


def part_differences(recorded: Sequence[Part], live: Sequence[Part], found: Found) -> None:
    """Parts of a multipart body that differ, by the name of their form field, else by position."""
    for index in range(max(len(recorded), len(live))):
        had = recorded[index] if index < len(recorded) else None
        has = live[index] if index < len(live) else None
        if had != has:
            named = has or had
            name = named.name if named is not None and named.name else f"[{index}]"
            found.add("part", _cut(name, 0), _part(had), _part(has))


def _part(part: Part | None) -> str | None:
    return None if part is None else f"{len(part.content)} bytes"


def body_differences(recorded: Document, live: Document, found: Found) -> None:
    """Where two understood bodies differ."""
    if recorded.json is not None and live.json is not None:
        before = found.count
        json_differences(recorded.json, live.json, found)
        if found.count == before and dump_json(recorded.json) != dump_json(live.json):
            # Python takes True for 1, JSON does not.
            found.add("body", "", "the same but for a boolean or a number", "the same but for a boolean or a number")
    elif recorded.form is not None and live.form is not None:
        pair_differences("form", recorded.form, live.form, found)
    elif recorded.multipart is not None and live.multipart is not None:
        part_differences(recorded.multipart, live.multipart, found)
    elif recorded.content != live.content:
        found.add("body", "", f"{len(recorded.content)} bytes", f"{len(live.content)} bytes")


def target_differences(recorded: bytes, live: bytes, found: Found) -> None:
    """Where two targets differ: path, then query keys."""
    (path_a, query_a), (path_b, query_b) = split_target(recorded), split_target(live)
    if path_a != path_b:
        found.add("path", "", *_window(_text(path_a), _text(path_b)))
    if query_a != query_b:
        pair_differences("query", query_pairs(query_a or b""), query_pairs(query_b or b""), found)


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "backslashreplace")
