"""One task of several tool calls, by each agent as its registry gives it: recorded once, then played with nothing reachable."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tests.agents.courses import REPLAYS, Course


def test_the_recording_is_clean_and_holds_the_whole_task(course: Course) -> None:
    """AGENTS 1: no change to the agent, no base URL, no configuration; a model call for each turn."""
    result = course.recorded.clean()
    assert result["agent_status"] == 0, course.recorded.said
    assert result["exchanges"]["model"] >= len(course.cast.turns), course.recorded.out
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in course.cast.files.items()}
    assert {name: course.run.files.get(name) for name in digests} == digests


def test_the_events_are_the_script(course: Course) -> None:
    """AGENTS 5.15: each tool call of the script with its result, and the exit code of the one that fails, where the agent says it."""
    calls = [tool.name for turn in course.cast.turns for tool in turn.tools]
    assert [event["tool"] for event in course.events if event["event"] == "tool_call"] == calls
    results = [event for event in course.events if event["event"] == "tool_result"]
    assert all(result["matched"] for result in results)
    if calls and course.cast.driver.exits:
        assert 3 in [result["exit_code"] for result in results]


def test_five_replays_are_the_recording(course: Course) -> None:
    """T-O5, T-Q3, D-04: sealed, no attempt to leave, zero misses, nothing by position, no model call left over, the same tree and words."""
    assert len(course.replays) == REPLAYS
    for played in course.replays:
        result = played.ran.clean()
        assert result["seal"] == "sealed", played.ran.said
        assert "escape" not in [problem["kind"] for problem in result["problems"]]
        assert (result["answered"]["positional"], result["answered"]["miss"], result["answered"]["live"]) == (0, 0, 0)
        assert sum(result["answered"].values()) == result["requests"]
        assert [row for row in result["unplayed"] if row["channel"] == "model"] == []
        assert played.files == course.run.files
        assert words(played.ran.said, course.cast.said) == words(course.recorded.said, course.cast.said)


def test_five_replays_have_the_events_of_the_recording(course: Course) -> None:
    """Issue 4: the same tool calls with the same results in the same order, and the same model calls with the same ends."""
    for played in course.replays:
        assert tools(played.events) == tools(course.events)
        assert calls(played.events) == calls(course.events)


def test_it_plays_in_another_workspace_and_home(course: Course) -> None:
    """AGENTS 5.4: paths, their slugs and ways between them do not tell two runs apart."""
    played = course.elsewhere
    assert played.ran.clean()["answered"]["positional"] == 0, played.ran.out
    assert played.files == course.run.files


def test_it_plays_a_month_later(course: Course) -> None:
    """T-M1, AGENTS 2: the date in a prompt does not tell two runs apart."""
    played = course.later
    assert played.ran.clean()["answered"]["positional"] == 0, played.ran.out
    assert played.files == course.run.files


def test_another_task_is_a_miss_that_names_the_field_and_ends_the_run(course: Course) -> None:
    """AGENTS 5.10, T-A7: told at once, with the place that differs; the agent does not try again."""
    other = course.other
    result = other.ran.result
    assert other.ran.code == 103, other.ran.said
    missed = [miss for miss in result["misses"] if miss["channel"] == "model"]
    assert missed
    assert len(missed) <= 1 + len(course.cast.aside), missed
    assert all(any(re.match(r"body (messages|contents|input)\b", place) for place in miss["differs"]) for miss in missed), missed
    # Told at once, and ended in a second or so; a machine of two busy cores may take some more. Without the end it is minutes.
    assert result["elapsed_us"] - missed[-1]["at_us"] <= 15_000_000
    assert other.files.keys() == {"README.md"}


def tools(events: Sequence[Mapping[str, Any]]) -> list[tuple[object, ...]]:
    """Tool calls and results, in order; a result's own text may hold how long it took."""
    kinds = ("tool_call", "tool_result")
    return [tuple(one.get(key) for key in ("event", "tool", "arguments", "exit_code")) for one in events if one["event"] in kinds]


def calls(events: Sequence[Mapping[str, Any]]) -> Counter[tuple[object, ...]]:
    """Model calls and everything beside tools; those for titles come when they come. Left out: `unread`, which is what a WebSocket that
    was refused by its head leaves in a recording; in a replay such a refusal is counted only."""
    keys = ("event", "model", "status", "outcome", "stop", "tool_calls", "text_sha256", "reason", "kind")
    return Counter(tuple(one.get(key) for key in keys) for one in events if not one["event"].startswith(("tool_", "unread")))


def words(said: str, differs: str) -> list[str]:
    """What the agent printed, without our own lines and without ids and times."""
    own = re.split(r"\n(?=recorded task|replayed task|note: )", said)[0]
    own = re.sub(differs, "", own) if differs else own
    return re.sub(r"\x1b\[[0-9;]*m|\d+(\.\d+)?m?s\b", "", own).split()
