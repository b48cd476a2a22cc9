"""Whether a rule makes one request of two that were recorded as different ones: then a replay could give the one the other's answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from secondtake.cassettes.catalogue import Catalogue
from secondtake.cassettes.declared import Declared
from secondtake.cassettes.differences import Found, body_differences, target_differences
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.match import meaning, normal_key
from secondtake.cassettes.misses import printable
from secondtake.cassettes.volatile import RULES

RANDOM = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{16,}|\d{10,}(?:\.\d+)?"
    r"|\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?",
    re.IGNORECASE,
)
"""Values that nobody chooses: UUIDs, long hexadecimal, times. Two requests that differ in these alone are the same request, asked again."""


def refuse_merging(catalogue: Catalogue, declared: Sequence[Declared]) -> None:
    """Refuse rules that make two recorded requests equal which differ in more than values nobody chooses.

    Raises:
        BadInput: they do; the message names the two exchanges and the place in which they differ.
    """
    if declared and (found := merged(catalogue)) is not None:
        first, second, place = found
        raise BadInput(
            f"the declared rules make exchanges {first} and {second} of the recording one request, although they differ at {place}",
            hint="take out the rule for that place, or give it a pattern (`text`) that leaves what tells the two apart",
        )


def merged(catalogue: Catalogue) -> tuple[int, int, str] | None:
    """The first two recorded exchanges (by number) that only the declared rules make equal, and a place in which they differ."""
    by_key: dict[bytes, list[int]] = {}
    for position, row in enumerate(catalogue.rows):
        if row.keys is not None and row.status is not None and catalogue.declared_for(row):
            by_key.setdefault(catalogue.key_again(position), []).append(position)
    for alike in by_key.values():
        kept: dict[bytes, int] = {}
        for position in alike:
            request = catalogue.cassette.exchange(catalogue.rows[position].seq).request
            content = catalogue.request_content(request)
            shipped = normal_key(request, content, request.body.digest, rules=RULES, aliases=catalogue.recorded_aliases)
            for other_key, other in kept.items():
                if other_key != shipped and (place := _chosen(catalogue, other, position)) is not None:
                    return catalogue.rows[other].seq, catalogue.rows[position].seq, place
            kept.setdefault(shipped, position)
    return None


def _chosen(catalogue: Catalogue, one: int, other: int) -> str | None:
    """A place in which two recorded requests differ by what somebody chose; None where only random values differ."""
    requests = [catalogue.cassette.exchange(catalogue.rows[position].seq).request for position in (one, other)]
    bodies = [catalogue.request_content(request) for request in requests]
    found = Found()
    target_differences(requests[0].path, requests[1].path, found)
    if bodies[0] is not None and bodies[1] is not None:
        body_differences(meaning(requests[0], bodies[0], RULES), meaning(requests[1], bodies[1], RULES), found)
    for item in found.items:
        sides = [RANDOM.sub("", side) for side in (item.recorded or "", item.live or "")]
        if sides[0] != sides[1]:
            return printable(f"{item.where} `{item.path}`" if item.path else item.where, 200)
    return None
