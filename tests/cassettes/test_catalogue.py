"""Indexes over the rows of a cassette."""

from __future__ import annotations

import time

import pytest

from secondtake.cassettes.catalogue import KEPT, Catalogue, is_push
from secondtake.cassettes.exchange import Answer, Ending, Exchange, Request
from secondtake.cassettes.match import request_keys
from secondtake.cassettes.memory import MemoryCassette, fields
from secondtake.cassettes.normalise import NO_ALIASES
from secondtake.cassettes.volatile import RULES


class Counted(MemoryCassette):
    """Counts how often an exchange is read."""

    reads = 0

    def exchange(self, seq: int) -> Exchange:
        self.reads += 1
        return super().exchange(seq)


def ask(path: str, method: str = "GET") -> Request:
    return Request(method, "https", "h.example", 443, path.encode(), fields=fields("Accept: */*"))


def of(cassette: MemoryCassette) -> Catalogue:
    return Catalogue(cassette, rules=RULES, aliases=NO_ALIASES, allow_push=False)


def test_rows_open_in_proportion_and_no_exchange_is_read() -> None:
    """DESIGN 8, T-J2: start-up does not grow with bodies, and no faster than with rows."""

    def opened(rows: int) -> float:
        cassette = Counted()
        for number in range(rows):
            cassette.record(ask(f"/r/{number}"), Answer(200))
        taken_s = []
        for _ in range(5):
            start = time.thread_time()
            of(cassette)
            taken_s.append(time.thread_time() - start)
        assert cassette.reads == 0
        return min(taken_s)

    assert opened(5000) < 40 * opened(500)


def test_an_exchange_is_read_once_and_the_cache_is_bounded() -> None:
    """T-J3: memory stays flat."""
    cassette = Counted()
    for number in range(KEPT + 10):
        cassette.record(ask(f"/r/{number}"), Answer(200))
    catalogue = of(cassette)
    for _ in range(3):
        catalogue.kept(0)
    assert cassette.reads == 1
    for position in range(KEPT + 10):
        catalogue.kept(position)
    assert len(catalogue._kept) == KEPT


def test_a_resource_is_all_spellings_of_its_target() -> None:
    """DESIGN 3: derivation looks at the resource, not at the bytes of its name."""
    cassette = MemoryCassette()
    cassette.record(ask("/%7Ea?x=1&b=2"), Answer(200))
    cassette.record(ask("/~a?b=2&x=1", "HEAD"), Answer(200))
    cassette.record(ask("/~a?b=2&x=1", "POST"), Answer(200))
    catalogue = of(cassette)
    assert list(catalogue.resource(catalogue.resource_name(ask("/~a?x=1&b=%32")))) == [0, 1]


def test_cut_reads_are_left_out_only_where_a_whole_one_is() -> None:
    """T-I4."""
    cassette = MemoryCassette()
    for ended in (Ending.RESET, Ending.COMPLETE, Ending.CLIENT_LEFT):
        cassette.record(ask("/f"), Answer(200), ended=ended)
        cassette.record(ask("/f", "POST"), Answer(200), ended=ended)
    catalogue = of(cassette)
    assert catalogue.exact(request_keys(ask("/f"), b"").exact) == (2,)
    assert catalogue.exact(request_keys(ask("/f", "POST"), b"").exact) == (1, 3, 5)
    assert catalogue.superseded == {0, 4}
    assert catalogue.exact(b"no such key") == ()


@pytest.mark.parametrize(
    ("path", "expected"),
    [(b"/r.git/git-receive-pack", True), (b"/r/info/refs?service=git-receive-pack", True), (b"/r.git/git-upload-pack", False)],
)
def test_a_push_is_told_by_its_target(path: bytes, expected: bool) -> None:
    """T-R7."""
    assert is_push(path) is expected
