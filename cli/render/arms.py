"""Where two arms of several runs part, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from secondtake.cassettes.diff.arms import LISTED, Arm, By, Parted, Parting, Way
from secondtake.cli.render.escape import visible_line
from secondtake.cli.render.words import count


def lines(parted: Parted) -> Iterator[str]:
    """Yield what a person reads."""
    for label, arm in (("A", parted.a), ("B", parted.b)):
        yield visible_line(f"{label}  {_arm(arm, label)}")
    yield ""
    yield visible_line(sentence(parted))
    if parted.greatest is not None:
        yield from map(visible_line, _parting(parted, parted.greatest))
    if parted.earliest is not None and parted.greatest is not None and parted.earliest.number < parted.greatest.number:
        yield ""
        yield visible_line(f"they part a little before that: {_at(parted, parted.earliest)}")
    if parted.by is By.ARGUMENTS and parted.differs:
        yield "by their gist they do not part: told apart by arguments"


def sentence(parted: Parted) -> str:
    """The finding: `at decision 3, A ran the tests 5/5, B edited foo.py 4/5`."""
    if parted.greatest is None:
        return "the arms do not part: at every decision the same shares of both went the same way"
    return _at(parted, parted.greatest)


def _at(parted: Parted, parting: Parting) -> str:
    whole = {"A": len(parted.a.courses), "B": len(parted.b.courses)}
    parts = []
    for label, taken, other in (("A", "a", "b"), ("B", "b", "a")):
        way = max(parting.ways, key=lambda one: (_lead(one, taken, other, whole), len(getattr(one, taken))))
        names: tuple[str, ...] = getattr(way, taken)
        parts.append(f"{label} {way.what} {len(names)}/{whole[label]}")
    return f"at decision {parting.number}, {', '.join(parts)}"


def _lead(way: Way, taken: str, other: str, whole: dict[str, int]) -> float:
    """How much more of one arm than of the other went that way."""
    mine, theirs = whole[taken.upper()], whole[other.upper()]
    return len(getattr(way, taken)) / mine - len(getattr(way, other)) / theirs


def _arm(arm: Arm, label: str) -> str:
    named = "" if arm.label == label else f"{arm.label}: "
    shown = ", ".join(arm.names[:LISTED]) + (", …" if len(arm.names) > LISTED else "")
    return f"{named}{count(len(arm.names), 'run')} ({shown})"


def _parting(parted: Parted, parting: Parting) -> Iterator[str]:
    yield f"  separation {float(parting.separation):.2f} of 1; here are {parting.a_here} runs of A and {parting.b_here} of B"
    if parting.before:
        yield "  what they have in common before it:"
        for number, what in enumerate(parting.before, 1):
            yield f"    {number:>3}  {what}"
    yield "  what they did then:"
    a, b = len(parted.a.courses), len(parted.b.courses)
    for way in parting.ways[:LISTED]:
        yield f"    A {len(way.a)}/{a}  B {len(way.b)}/{b}  {way.what}"
    if len(parting.ways) > LISTED:
        yield f"    … and {len(parting.ways) - LISTED} other ways"
