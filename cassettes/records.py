"""What a recording hands to the writer, in the order it happens. Values only; the bytes on disk are journal.py's.

Everything in a record is redacted already: no unredacted byte leaves `recorder.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from secondtake.cassettes.exchange import Channel, Digest, Exchange, Request, Side


@dataclass(frozen=True, slots=True)
class Head:
    """A request began. `request.body` is empty: it is still coming. Kept so that a died cassette names what was in flight."""

    seq: int
    started_us: int
    channel: Channel
    request: Request


@dataclass(frozen=True, slots=True)
class Chunk:
    """The next bytes of a body too large to be held in memory (limits.BODY_IN_MEMORY_BYTES)."""

    seq: int
    side: Side
    data: bytes


@dataclass(frozen=True, slots=True)
class End:
    """The exchange ended: the commit point.

    `bodies` holds the bytes of each body that was not sent as chunks, by digest. A body sent as chunks is named by
    `exchange.request.body` or `exchange.answer.body`; its digest is that of the concatenated chunks of that side.
    """

    exchange: Exchange
    bodies: Mapping[Digest, bytes]


type Record = Head | Chunk | End
