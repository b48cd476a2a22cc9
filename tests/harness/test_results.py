"""How a run counts."""

from __future__ import annotations

import pytest

from secondtake.cassettes.exchange import Channel
from secondtake.harness.results import Missed, Problem, Replayed, Verdict, worst


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], Verdict.CLEAN),
        ([Verdict.CLEAN], Verdict.CLEAN),
        ([Verdict.DIVERGED, Verdict.CLEAN], Verdict.DIVERGED),
        ([Verdict.STORE, Verdict.DIVERGED], Verdict.STORE),
        ([Verdict.FAULT, Verdict.STORE, Verdict.DIVERGED], Verdict.FAULT),
    ],
)
def test_the_worst_problem_decides(verdicts: list[Verdict], expected: Verdict) -> None:
    """T-Q1: a note never hides a problem, a problem never hides a worse one."""
    assert worst(tuple(Problem("x", "x", verdict=verdict) for verdict in verdicts)) is expected


def test_one_miss_makes_a_replay_diverge() -> None:
    """T-Q1: any miss."""
    miss = Missed("variant", "GET", "https://web.example/", Channel.WEB, None, (), "not recorded")
    clean = Replayed("x", 0, 1, {}, (), (), 1)
    assert clean.verdict is Verdict.CLEAN
    assert Replayed("x", 0, 1, {}, (miss,), (), 1).verdict is Verdict.DIVERGED
    assert Replayed("x", 0, 1, {}, (miss,), (), 1, problems=(Problem("d", "d", verdict=Verdict.STORE),)).verdict is Verdict.STORE
