"""Taking members and elements out of JSON text without touching what stays (RFC 8259).

The comma that goes with a cut is the one after it, or before it where it was the last. White space goes with the cut; every
byte of what stays is kept, in its order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from secondtake.cassettes.json_places import Item, Pattern, items, splice

type Doomed = Callable[[Item, bytes], bool]
"""Told an item and the bytes of its value; says whether it goes."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What was taken out: its path, and the bytes of its value."""

    path: str
    value: bytes


def cut(content: bytes, wanted: Sequence[Pattern], doomed: Doomed) -> tuple[bytes, tuple[Cut, ...]]:
    """Return `content` without the doomed ones among the wanted items, and what was cut, in the order of the text.

    Raises:
        NotJson: a token on the way to a wanted place is not JSON.
        TooLarge: more items than JSON_ITEMS.
    """
    found = items(content, wanted)
    going = [item for item in found if doomed(item, content[item.value_start : item.stop])]
    outer: list[Item] = []
    for item in going:
        if not outer or outer[-1].stop <= item.start:  # an outer one comes before what it holds
            outer.append(item)
    cuts = tuple(Cut(item.dotted, content[item.value_start : item.stop]) for item in outer)
    return splice(content, [(start, stop, b"") for start, stop in ranges(outer)]), cuts


def ranges(going: Sequence[Item]) -> list[tuple[int, int]]:
    """The byte ranges to take out so that these items go, each with its comma. Neighbours that go together are one run.

    `going` is in the order of the text, and none is inside another.
    """
    found: list[tuple[int, int]] = []
    at = 0
    while at < len(going):
        last = at
        while last + 1 < len(going) and going[last].following == going[last + 1].start:
            last += 1
        first, final = going[at], going[last]
        if final.following is not None:
            found.append((first.start, final.following))
        else:
            found.append((first.start if first.preceding is None else first.preceding, final.stop))
        at = last + 1
    return found
