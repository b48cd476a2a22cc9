"""What is in a store as rows."""

from __future__ import annotations

from dataclasses import replace

from secondtake.cassettes import takes
from secondtake.cassettes.scanning import State
from secondtake.cassettes.store import Summary
from secondtake.cassettes.takes import Outcome, Take
from secondtake.cli.render.listing import HEADINGS, fields, listed, rows
from tests.cassettes.test_takes import TAKE


def summary(name: str, at: int, *, take: Take | None = None, kind: str | None = None) -> Summary:
    """A cassette of two exchanges, made in the minute `at`."""
    meta: dict[str, object] = {} if kind is None else {"kind": kind}
    if take is not None:
        meta |= {"kind": takes.KIND, takes.KIND: takes.encode(take)}
    return Summary(name, State.CLOSED, 2, 1024, f"2026-11-30T12:{at:02}:00+00:00", "r" * 64, meta=meta)


def in_matrix(outcome: Outcome, *, warm_up: bool = False, model: str = "careful-20260101") -> Take:
    return replace(TAKE, matrix="bill-1", outcome=outcome, warm_up=warm_up, model=model, invalid="")


FOUND = listed(
    [
        summary("bill-1-2-1", 5, take=in_matrix(Outcome.SAME, model="hasty-20260101")),
        summary("bill-1-1-1", 4, take=in_matrix(Outcome.PASS)),
        summary("bill-1-1-0", 3, take=in_matrix(Outcome.PASS, warm_up=True)),
        summary("incident", 1),
        summary("one", 2, take=replace(TAKE, matrix="", invalid="mismatch", model="m")),
        summary("probed", 6, kind="probe"),
    ]
)


def test_a_matrix_is_one_row_where_its_first_take_stands() -> None:
    """Twelve takes do not hide the one recording; warm-ups are takes and no outcomes."""
    made = rows(FOUND, each=False)
    assert [row[:4] for row in made] == [
        ["incident", "recording", "", ""],
        ["one", "take", "m", "invalid"],
        ["bill-1", "matrix", "2 models", "3 takes: 1 pass, 1 same failure"],
        ["probed", "probe", "", ""],
    ]
    assert made[2][5:7] == ["6", "3.0 KiB"]
    assert {len(row) for row in made} == {len(HEADINGS)}


def test_each_take_can_be_listed() -> None:
    """`ls --takes`."""
    assert [row[0] for row in rows(FOUND, each=True)] == ["incident", "one", "bill-1-1-0", "bill-1-1-1", "bill-1-2-1", "probed"]
    told = fields(FOUND[3])
    assert (told["kind"], told["outcome"], told["matrix"], told["fixture"]) == ("take", "pass", "bill-1", TAKE.fixture)
    assert (fields(FOUND[0])["kind"], fields(FOUND[0])["outcome"], fields(FOUND[0])["matrix"]) == ("recording", None, None)


def test_a_verdict_that_cannot_be_read_is_still_a_take() -> None:
    """A store may come from a stranger: the list never ends in an error."""
    broken = replace(summary("t", 1), meta={"kind": "take", "take": {"format": 99}})
    assert [row[:4] for row in rows(listed([broken]), each=False)] == [["t", "take", "", ""]]
