"""The last resorts of a player, each with its own label: an endpoint's answer whatever was sent, a model call by its position.

Used only after content found nothing, and only for the channels that `Session` names.
"""

from __future__ import annotations

from secondtake.cassettes.canonical import split_target
from secondtake.cassettes.catalogue import Catalogue
from secondtake.cassettes.derived import Derived
from secondtake.cassettes.differences import Found, body_differences
from secondtake.cassettes.exchange import Answered, Channel, Ending, Request
from secondtake.cassettes.indexes import Kind, index_path, normal_name
from secondtake.cassettes.match import meaning
from secondtake.cassettes.misses import printable
from secondtake.cassettes.normalise import turns
from secondtake.cassettes.recoding import readable
from secondtake.cassettes.served import Serve

POSITIONS = 8
"""Unplayed calls that are looked at when a model call is placed by its position."""


def by_endpoint(catalogue: Catalogue, used: bytearray, request: Request, channel: Channel) -> Serve | None:
    """A recorded answer of the same endpoint whatever was sent: a success where there is one."""
    path = split_target(request.path)[0]
    best: int | None = None
    for position, row in enumerate(catalogue.rows):
        if row.status is None or row.channel is not channel or (row.host, row.method) != (request.host, request.method):
            continue
        if split_target(row.path)[0] == path and (best is None or row.status < 300 <= (catalogue.rows[best].status or 0)):
            best = position
    if best is None:
        return None
    found = readable(catalogue.kept(best), request, catalogue)
    if found is None:
        return None
    body = found.body if isinstance(found, Derived) else catalogue.body(found.answer)
    note = f"answered as {channel} of exchange {catalogue.rows[best].seq}, whatever was sent"
    reused, used[best] = bool(used[best]), 1
    return Serve(found.answer, body, Ending.COMPLETE, Answered.LOCAL, catalogue.rows[best].seq, reused, (note,))


def by_position(catalogue: Catalogue, used: bytearray, request: Request, content: bytes) -> Serve | None:
    """The next unplayed call to the same model endpoint at the same turn of its conversation. What differs becomes notes."""
    rules = catalogue.rules
    live = meaning(request, content, rules)
    tried = 0
    for position, row in enumerate(catalogue.rows):
        if used[position] or row.status is None or row.channel is not Channel.MODEL:
            continue
        if (row.method, row.host, row.path) != (request.method, request.host, request.path) or tried >= POSITIONS:
            continue
        tried += 1
        kept = catalogue.kept(position)
        recorded = catalogue.request_content(kept.exchange.request)
        if recorded is None:
            continue
        found = meaning(kept.exchange.request, recorded, rules)
        if turns(found.json) != turns(live.json) or turns(live.json) is None:
            continue
        answer = readable(kept, request, catalogue)
        if answer is None:
            continue
        differing = Found()
        body_differences(found, live, differing)
        notes = tuple(f"differs at {item.where} `{printable(item.path, 200)}`" for item in differing.items)
        used[position] = 1
        body = answer.body if isinstance(answer, Derived) else catalogue.body(kept.answer)
        return Serve(answer.answer, body, kept.exchange.ended, Answered.POSITIONAL, row.seq, False, notes)
    return None


def known_index(catalogue: Catalogue, request: Request) -> bool:
    """Whether this is a file of a package of which a page or a file was recorded."""
    asked = index_path(request.path.partition(b"?")[0])
    if asked is None or asked.kind is not Kind.FILE:
        return False
    word = asked.project.rpartition("/")[2].partition("-")[0].encode()
    for row in catalogue.rows:
        if row.channel is Channel.INDEX and word in row.path.lower():
            if not asked.project and row.host == request.host:
                return True
            found = index_path(row.path.partition(b"?")[0])
            project = found.project if found is not None else normal_name(row.path.partition(b"?")[0].strip(b"/"))
            if asked.project and project.endswith(asked.project) and (row.status or 0) < 400:
                return True
    return False
