"""What the two scripted models make of the demo's task."""

from __future__ import annotations

from pathlib import Path

from secondtake.harness import demo
from tests.harness.demo.runs import agent, check


def test_the_hasty_model_calls_a_wrong_fix_done(tmp_path: Path) -> None:
    """The incident: the agent ends with 0 and says that it is fixed, and the tests are red."""
    ran = agent(tmp_path)
    assert (ran.finished.status, ran.finished.strays) == (0, 0)
    assert "Fixed" in ran.printed
    assert ran.changed == ("content bill/split.py",)
    assert check(tmp_path / "bill").returncode == 1
    assert [(s.status, s.ended) for s in ran.provider.seen] == [(200, "complete")] * 4


def test_the_careful_model_fixes_it(tmp_path: Path) -> None:
    """The same task and agent, another model: two files read at once, the code alone changed, all tests green."""
    ran = agent(tmp_path, demo.CAREFUL)
    assert ran.finished.status == 0
    assert ran.changed == ("content bill/split.py",)
    done = check(tmp_path / "bill")
    assert (done.returncode, "FAIL" in done.stdout) == (0, False)
    assert len(ran.provider.seen) == 5


def test_two_runs_send_the_same_bytes(tmp_path: Path) -> None:
    """A replay of the demo is exact: neither the agent, nor its tools, nor the provider depend on time, place or chance."""
    (tmp_path / "a").mkdir()
    (tmp_path / "elsewhere").mkdir()
    first, second = agent(tmp_path / "a"), agent(tmp_path / "elsewhere")
    assert [s.body for s in first.provider.seen] == [s.body for s in second.provider.seen]
    assert first.printed == second.printed
