"""The order in which the decisions of a run are compared: that of the requests, but for conversations that went on side by side.

Agents that work in parallel interleave by chance, and another run of the same thing interleaves them otherwise. Conversations whose
turns cross are told one after the other, ordered by what they did. One that lies between two turns of another (a part given to a second
agent, which the first waits for) stays where it is; several that overlap there went on side by side.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Sequence

CONVERSATIONS = 200
"""More than this are left as they came."""


def ordered[Turn](turns: Sequence[Turn], conversation: Callable[[Turn], str], key: Callable[[Turn], tuple[str, ...]]) -> list[Turn]:
    """`turns`, which come in the order of their requests, in the order they are compared. `key`: what a turn did."""
    places: dict[str, list[int]] = {}
    for place, turn in enumerate(turns):
        places.setdefault(conversation(turn), []).append(place)
    made = list(turns)
    if not 1 < len(places) <= CONVERSATIONS:
        return made
    for crossing in _components(places):
        slots = sorted(place for name in crossing for place in places[name])
        told = sorted(crossing, key=lambda name: ([key(turns[place]) for place in places[name]], places[name][0]))
        for slot, place in zip(slots, [place for name in told for place in places[name]], strict=True):
            made[slot] = turns[place]
    return made


def _components(places: dict[str, list[int]]) -> list[list[str]]:
    """Conversations that went on side by side, directly or through others."""
    names = list(places)
    inner = {name for name in names if any(_in_one_gap(places[name], places[other]) for other in names if other != name)}
    group = {name: name for name in names}

    def root(name: str) -> str:
        while group[name] != name:
            group[name] = group[group[name]]
            name = group[name]
        return name

    for number, one in enumerate(names):
        for other in names[number + 1 :]:
            if _overlap(places[one], places[other]) and (
                (one in inner and other in inner)
                or not (_in_one_gap(places[one], places[other]) or _in_one_gap(places[other], places[one]))
            ):
                group[root(other)] = root(one)
    made: dict[str, list[str]] = {}
    for name in names:
        made.setdefault(root(name), []).append(name)
    return [members for members in made.values() if len(members) > 1]


def _overlap(one: list[int], other: list[int]) -> bool:
    return one[0] < other[-1] and other[0] < one[-1]


def _in_one_gap(inner: list[int], outer: list[int]) -> bool:
    """All of `inner` stands between two turns of `outer` that follow each other."""
    at = bisect(outer, inner[0])
    return 0 < at < len(outer) and inner[-1] < outer[at]
