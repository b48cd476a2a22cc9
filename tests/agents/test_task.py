"""One task of several tool calls, by each agent as its registry gives it: recorded once, then played with nothing reachable."""

from __future__ import annotations

import hashlib
import re

from tests.agents.casts import LEFT, OTHER_TASK
from tests.agents.runs import Place, Run

REPLAYS = 5


def test_the_recording_is_clean_and_holds_the_whole_task(run: Run) -> None:
    """AGENTS 1: no change to the agent, no base URL, no configuration; a model call for each turn."""
    ran = run.recorded
    assert ran is not None
    result = ran.clean()
    assert result["agent_status"] == 0, ran.said
    assert result["exchanges"]["model"] >= len(run.cast.turns), ran.out
    assert {name: run.files.get(name) for name in run.cast.files} == {
        name: hashlib.sha256(text.encode()).hexdigest() for name, text in LEFT.items()
    }


def test_five_replays_are_the_recording(run: Run) -> None:
    """T-O5, T-Q3: zero misses, nothing by position, no model call left over, the same tree, the same words of the agent."""
    assert run.recorded is not None
    for _ in range(REPLAYS):
        played = run.replay("task")
        run.count(played)
        result = played.ran.clean()
        assert (result["answered"]["positional"], result["answered"]["miss"], result["answered"]["live"]) == (0, 0, 0)
        assert sum(result["answered"].values()) == result["requests"]
        assert [row for row in result["unplayed"] if row["channel"] == "model"] == []
        assert played.files == run.files
        assert words(played.ran.said, run.cast.said) == words(run.recorded.said, run.cast.said)


def test_it_plays_in_another_workspace_and_home(run: Run) -> None:
    """AGENTS 5.4: paths, their slugs and ways between them do not tell two runs apart."""
    elsewhere = Place(run.place.root.parent / "elsewhere" / "on-another_disk.d", "the_project")
    played = run.replay("task", place=elsewhere)
    assert played.ran.clean()["answered"]["positional"] == 0, played.ran.out
    assert played.files == run.files


def test_it_plays_a_month_later(run: Run, later: dict[str, str]) -> None:
    """T-M1, AGENTS 2: the date in a prompt does not tell two runs apart."""
    played = run.replay("task", extra=later)
    assert played.ran.clean()["answered"]["positional"] == 0, played.ran.out
    assert played.files == run.files


def test_another_task_is_a_miss_that_names_the_field_and_ends_the_run(run: Run) -> None:
    """AGENTS 5.10, T-A7: told at once, with the place that differs; the agent does not try again."""
    other = run.replay("task", task=OTHER_TASK)
    result = other.ran.result
    assert other.ran.code == 103, other.ran.said
    missed = [miss for miss in result["misses"] if miss["channel"] == "model"]
    assert missed
    assert len(missed) <= 1 + len(run.cast.aside), missed
    assert all(any(re.match(r"body (messages|contents|input)\b", place) for place in miss["differs"]) for miss in missed), missed
    assert result["elapsed_us"] - missed[0]["at_us"] <= 2_000_000
    assert other.files.keys() == {"README.md"}


def words(said: str, differs: str) -> list[str]:
    """What the agent printed, without our own lines and without ids and times."""
    own = re.split(r"\n(?=recorded task|replayed task|note: )", said)[0]
    own = re.sub(differs, "", own) if differs else own
    return re.sub(r"\x1b\[[0-9;]*m|\d+(\.\d+)?m?s\b", "", own).split()
