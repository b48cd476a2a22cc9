"""A cassette with what others had to ask beside it: one value that a player plays like any cassette.

What warm-up takes of a matrix fetched live, because the recording does not hold it, is shared by all takes after them and changes no
more. Each of its exchanges gets a number of its own, past the recording's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from secondtake.cassettes.errors import NotFound
from secondtake.cassettes.exchange import Answered, Channel, Ending
from secondtake.cassettes.memory import row_as_value

if TYPE_CHECKING:
    from secondtake.cassettes.cassette import Cassette
    from secondtake.cassettes.exchange import Body, Digest, Exchange, Source
    from secondtake.cassettes.memory import Row

STEP = 1_000_000_000
"""Numbers of the n-th addition begin at n times this."""

EXTENDABLE = frozenset({Channel.INDEX, Channel.VCS, Channel.WEB})
"""Channels whose requests may be let out to extend a cassette: what is fetched, not what steers the agent."""


@dataclass(frozen=True, slots=True)
class Addition:
    """The exchanges of one cassette that are played beside another."""

    cassette: Cassette
    rows: tuple[Row, ...]

    def holds(self, digest: Digest) -> bool:
        """Whether one of its exchanges has that body."""
        return any(digest in (row.request_digest, row.response_digest) for row in self.rows)


def additions(cassettes: Sequence[Cassette]) -> tuple[Addition, ...]:
    """Return what each of these takes was let out to fetch, and got whole. Raises Corrupt."""
    return tuple(Addition(cassette, tuple(_fetched(cassette))) for cassette in cassettes)


def _fetched(cassette: Cassette) -> list[Row]:
    found: list[Row] = []
    for row in cassette.rows:
        if row.channel in EXTENDABLE and row.status is not None and not row.synthetic:
            exchange = cassette.exchange(row.seq)
            if exchange.answered is Answered.LIVE and exchange.ended is Ending.COMPLETE:
                found.append(row)
    return found


class Extended:
    """The recording, and the additions: `memory.Recorded`."""

    def __init__(self, base: Cassette, added: Sequence[Addition]) -> None:
        self._base = base
        self._added = tuple(added)
        self.rows: Sequence[Row] = (
            *base.rows,
            *(replace(row_as_value(row), seq=place * STEP + row.seq) for place, addition in enumerate(added, 1) for row in addition.rows),
        )

    def exchange(self, seq: int) -> Exchange:
        """An exchange by its number here. Raises NotFound, Corrupt."""
        place, own = divmod(seq, STEP)
        if place == 0:
            return self._base.exchange(seq)
        if place > len(self._added):
            raise NotFound(f"no exchange {seq}")
        return replace(self._added[place - 1].cassette.exchange(own), seq=seq)

    def body(self, body: Body) -> Source:
        """A body, wherever it is kept. Raises NotFound, Corrupt."""
        try:
            return self._base.body(body)
        except NotFound:
            held = next((one.cassette for one in self._added if one.holds(body.digest)), None)
            if held is None:
                raise
            return held.body(body)
