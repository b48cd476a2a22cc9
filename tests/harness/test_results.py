"""How a run counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from secondtake.cassettes.exchange import Channel
from secondtake.harness.results import LiveCall, Missed, Probed, Problem, Replayed, Retaken, Verdict, worst


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


def test_a_miss_makes_a_retake_diverge_and_calls_are_told_apart() -> None:
    """A-06, A-09: what another model answered, and what was nobody's doing."""
    call = LiveCall(1, 1, "anthropic", ("a",), "p", ("p",), "medium", True, 200, False, None, False, False, None)
    wrong, busy = replace(call, mismatch=True), replace(call, status=529, infrastructure="529: busy")
    made = Retaken("t", "x", None, 0, 3, {}, (call, wrong, busy), (), None, (), (), (), 1)
    assert (made.mismatches, made.infrastructure, made.verdict) == ((wrong,), (busy,), Verdict.CLEAN)
    miss = Missed("variant", "GET", "https://web.example/", Channel.WEB, None, (), "not recorded")
    assert replace(made, misses=(miss,)).verdict is Verdict.DIVERGED


def test_a_probe_counts_as_the_worst_of_its_problems() -> None:
    """As every run."""
    made = Probed("p", "x", None, 1, 1, None, None, (), None, ())
    assert made.verdict is Verdict.CLEAN
    assert replace(made, problems=(Problem("no-answer", "x", verdict=Verdict.DIVERGED),)).verdict is Verdict.DIVERGED
