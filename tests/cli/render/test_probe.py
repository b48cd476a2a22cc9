"""What several models chose in one decision, as rows and as an object."""

from __future__ import annotations

import json

from secondtake.cli.render.objects import as_line
from secondtake.cli.render.probe import HEADINGS, SHOWN_CHARACTERS, chosen, fields, head_lines, rows, tail_lines
from secondtake.harness.results import Arm, Choice, Probed

RUN = (("run", '{"command":"make"}'),)
PROBED = Probed(
    "incident-probe-1",
    "incident",
    "ab" * 32,
    7,
    3,
    "old",
    RUN,
    (
        Arm("a", "snapshot", 6, 3, 1, 1, 1, (Choice(RUN, (1, 3), True), Choice((), (5,), False))),
        Arm("b", "alias", 0, 0, 0, 0, 0, ()),
    ),
    None,
    ("unpinned: b",),
)


def test_each_choice_is_a_row_and_so_is_what_counts_in_none() -> None:
    """Issue 3.10: a table of the tool calls and arguments chosen, with counts."""
    assert list(rows(PROBED)) == [
        ["a", "snapshot", "2", "3", 'run {"command":"make"} (as recorded)'],
        ["a", "snapshot", "1", "3", "no tool"],
        ["a", "snapshot", "1", "-", "(refused by the provider)"],
        ["a", "snapshot", "1", "-", "(infrastructure)"],
        ["a", "snapshot", "1", "-", "(MISMATCH)"],
        ["b", "alias", "0", "-", "(not asked)"],
    ]
    assert {len(row) for row in rows(PROBED)} == {len(HEADINGS)}


def test_a_decision_is_one_line() -> None:
    """Arguments may be a whole file."""
    assert chosen(None) == "no answer"
    assert chosen((*RUN, ("read", "{}"))) == 'run {"command":"make"}; read {}'
    assert len(chosen((("write", "x" * 500),))) == SHOWN_CHARACTERS


def test_it_says_what_was_asked_then_and_where_it_is_kept() -> None:
    """One decision, and the cassette with every answer."""
    assert list(head_lines(PROBED)) == [
        "exchange 7 of incident (model call 3), recorded with old",
        '  then       run {"command":"make"}',
        "",
    ]
    assert list(tail_lines(PROBED, again=" --store s"))[2] == (
        "6 calls, kept as incident-probe-1 (unpinned: b): secondtake show incident-probe-1 --store s"
    )


def test_the_object_names_the_exchanges_of_each_choice() -> None:
    """DESIGN 7: --json."""
    said = json.loads(as_line(fields(PROBED)))
    assert said["recorded"] == [{"tool": "run", "arguments": '{"command":"make"}'}]
    assert [choice["exchanges"] for choice in said["arms"][0]["choices"]] == [[1, 3], [5]]
    assert said["arms"][1]["choices"] == []
