"""A matrix's report for a terminal, as Markdown and as JSON."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from secondtake.cassettes.takes import Control, Outcome, Signature
from secondtake.cli.render import report as words
from secondtake.cli.render.objects import as_line
from secondtake.cli.render.tables import print_table
from secondtake.harness.matrix.cells import Named
from secondtake.harness.matrix.design import Arm
from secondtake.harness.report import Report, report
from secondtake.harness.statistics import Spread
from tests.harness.matrix.scenes import arm_takes, design

ARMS = (Arm("old-20260101", "old-20260101", "p", "snapshot", control=True), Arm("new-20260601", "new-20260601", "p", "snapshot"))
MADE = design(arms=ARMS, looks=(5,))
HOSTILE = "a|b\n\x1b[31m<img src=x>[l](http://x.example) @all `c`"


def made(old: str = "sspos", new: str = "ppppp", **changes: object) -> Report:
    return report([*arm_takes("old-20260101", old), *arm_takes("new-20260601", new, **changes)], MADE)


def shown(found: Report, capsys: pytest.CaptureFixture[str]) -> str:
    for line in words.head_lines(found):
        print(line)
    print_table(words.HEADINGS, words.rows(found))
    for line in words.tail_lines(found, again=" --store s"):
        print(line)
    return capsys.readouterr().out


def test_the_table_is_the_designs(capsys: pytest.CaptureFixture[str]) -> None:
    """DESIGN 6: | model | repeats | pass rate | median calls | failure signature |, with the right numbers and signatures."""
    text = shown(made(), capsys)
    lines = text.splitlines()
    assert lines[0] == "REPRODUCED 3/5 (same signature)  ·  controlled"
    assert re.split(r"\s{2,}", lines[2]) == ["model", "repeats", "pass rate", "median calls", "failure signature"]
    assert re.split(r"\s{2,}", lines[3])[:4] == ["old-20260101 (baseline, control)", "5", "1/5", "20 % [4–62]"]
    assert "3× exit failed; test tests/test_money.py::test_rounds_half_up" in lines[3]
    assert lines[3].endswith("+1")
    assert re.split(r"\s{2,}", lines[4])[:3] == ["new-20260601", "5", "5/5"]
    assert "new-20260601 passed 5 of 5, old-20260101 1 of 5: better (exact p = 0.021)" in text
    assert "With n=5 per arm" in text
    assert f"design {MADE.digest}" in text
    assert f"secondtake report {MADE.id} --store s" in text


def test_what_stayed_live_is_in_every_form(capsys: pytest.CaptureFixture[str]) -> None:
    """Issue 6: `partially controlled`, and which; with the sentence about a comparison study."""
    found = made(control=Control.PARTIALLY, live=("web (2 requests) answered live",))
    for text in (shown(found, capsys), words.markdown(found), json.dumps(words.fields(found))):
        assert "partially controlled" in text
        assert "web (2 requests) answered live" in text
        assert "Comparison study, not proof of a model regression" in text


def test_every_take_is_in_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    """The second table: where the others went, and the rate with them as failures."""
    found = made("ssoci", "ppppp")
    assert next(words.column_rows(found)) == ["old-20260101", "0", "2", "1", "1", "1 (1 run again)", "0", "0/5  0 % [0–43]"]
    assert len(next(words.column_rows(found))) == len(words.COLUMNS)
    assert len(next(words.used_rows(found))) == len(words.USED)


def test_a_strangers_text_changes_no_terminal_and_no_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    """SECURITY C-14, and the same for what is pasted into an issue."""
    takes = arm_takes(HOSTILE, "ssp")
    signature = Signature.of((("test", HOSTILE),))
    evil = [
        Named(one.name, replace(one.take, signature=one.take.signature and signature, live=(HOSTILE,), reason=HOSTILE)) for one in takes
    ]
    found = report(evil, replace(MADE, arms=(Arm(HOSTILE, HOSTILE),)))
    assert "\x1b" not in shown(found, capsys)
    text = words.markdown(found)
    assert "\x1b" not in text
    assert "<img" not in text
    assert "://" not in text
    assert "@" not in text
    tables = [line for line in text.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in tables if "median" in line or "img" in line} <= {5, 6, 7, 8, 9}
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in tables[:2]}) == 1
    assert not re.search(r"(?<!\\)\[", text)


def test_the_object_is_versioned_and_whole() -> None:
    """`--json`: what a program needs to make the table again, and each take by its name."""
    found = made("sspoc", "ppppi")
    fields = json.loads(as_line(words.fields(found)))
    assert (fields["version"], fields["report_version"]) == (1, 1)
    assert fields["headline"] == found.headline
    old, new = fields["rows"]
    assert old["rate"] == {
        "passed": 1,
        "runs": 4,
        "value": 0.25,
        "interval": {"low": old["rate"]["interval"]["low"], "high": pytest.approx(0.6994, abs=1e-4)},
    }
    assert new["comparison"]["finding"] == "cannot be told apart"
    assert [take["column"] for take in old["takes"]] == ["same failure", "same failure", "pass", "other failure", "contaminated"]
    assert {take["outcome"] for row in fields["rows"] for take in row["takes"]} <= set(map(str, Outcome))
    assert old["failures"][0]["recorded"] is True
    with pytest.raises(TypeError):
        words.plain(object())


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (12, "", "12"),
        (12.5, "", "12.5"),
        (30_000, "", "30k"),
        (1_234, "", "1,234"),
        (61.5, "s", "1 min 02 s"),
        (0.123, "cost", "0.12"),
        (0.0123, "cost", "0.0123"),
    ],
)
def test_numbers_are_as_people_read_them(value: float, unit: str, text: str) -> None:
    """Short, and never more exact than they are."""
    assert words.figure(value, unit) == text


@pytest.mark.parametrize(("share", "text"), [(0, "0 %"), (1, "100 %"), (0.001, "< 1 %"), (0.999, "> 99 %"), (0.6, "60 %")])
def test_a_share_that_is_not_all_is_not_shown_as_all(share: float, text: str) -> None:
    """199 of 200 is not 100 %."""
    assert words.percent(share) == text


def test_a_median_is_shown_with_its_quartiles_where_they_differ() -> None:
    """Issue 6: median and IQR."""
    assert words.middle(Spread(12, 10, 14, 5)) == "12 (10–14)"
    assert words.middle(Spread(12, 12, 12, 5)) == "12"
    assert words.middle(None) == "–"
