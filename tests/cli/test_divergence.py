"""The divergence report of a replay, with real wires: where it first left the recording, and what became of the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.conversations import model, talks
from tests.cli.scenes import Command, python

pytestmark = pytest.mark.loopback

TASKS = ("fix the parser", "and its test", "thank you")


@pytest.fixture
def route() -> Iterator[tuple[str, str]]:
    with model() as found:
        yield found


@pytest.fixture
def recorded(command: Command, route: tuple[str, str]) -> None:
    """A conversation of three calls, `task`."""
    assert command("record", "task", *route, *talks(*TASKS)).code == 0


def left(said: dict[str, Any]) -> tuple[object, ...]:
    """Which request, which call, against which exchange, how."""
    found = said["divergence"]
    return found["request"], found["call"], found["seq"], found["answered"], found["kind"]


@pytest.mark.usefixtures("recorded")
def test_another_task_is_told_by_its_field_and_both_values(command: Command) -> None:
    """Issue 4, item 5: a request that really differs (another task text) is a miss that names the field."""
    ran = command("replay", "task", *talks("delete the parser", *TASKS[1:]))
    assert ran.code == 103
    assert (
        "left the recording at model call 1 (request 1): POST https://api.provider.example/v1/messages; closest: exchange 1\n"
        "  body messages[0].content\n"
        "    recorded  fix the parser\n"
        "    now       delete the parser\n"
        "  a miss (model-diverged); asked afterwards: nothing\n"
    ) in ran.err


@pytest.mark.usefixtures("recorded")
def test_answers_by_position_are_told_with_what_followed(command: Command) -> None:
    """Issue 4, item 5: whether what followed was still served (positional); nothing is approximated silently."""
    ran = command("replay", "task", "--positional", "--json", *talks("delete the parser", *TASKS[1:]))
    said = json.loads(ran.out)
    assert (ran.code, said["agent_status"], left(said)) == (103, 0, (1, 1, 1, "positional", None))
    assert said["divergence"]["differences"] == [
        {"where": "body", "place": "messages[0].content", "recorded": "fix the parser", "live": "delete the parser"}
    ]
    assert {how: number for how, number in said["divergence"]["followed"].items() if number} == {"positional": 2}
    assert [problem["kind"] for problem in said["problems"]] == ["positional"]


@pytest.mark.usefixtures("recorded")
def test_a_late_divergence_is_told_by_its_call(command: Command) -> None:
    """Issue 4, item 5: which request; a difference far behind in a long prompt is shown, not the prompt."""
    ran = command("replay", "task", "--json", *talks(*TASKS[:2], "x" * 5000 + " \x1b[2Jgoodbye"))
    said = json.loads(ran.out)
    assert left(said) == (3, 3, 3, "miss", "model-diverged")
    [place] = said["divergence"]["differences"]
    assert (place["place"], place["recorded"], place["live"][:4]) == ("messages[4].content", "thank you", "xxxx")
    assert len(place["live"]) <= 120
    assert sum(said["divergence"]["followed"].values()) == 0


def test_a_miss_beside_the_model_counts_too(command: Command, route: tuple[str, str]) -> None:
    """Issue 4, item 5: also where no model is concerned; a request asked in another order is no divergence."""
    agent = """
import json, sys, urllib.error, urllib.request as r
for word in sys.argv[1:]:
    head = {"content-type": "application/json"}
    try:
        r.urlopen(r.Request("https://api.provider.example/notes", headers=head, data=json.dumps({"note": word}).encode()), timeout=20)
    except urllib.error.HTTPError as error:
        print(error.code)
"""
    assert command("record", "notes", *route, *python(agent, "a", "b", "c")).code == 0
    said = json.loads(command("replay", "notes", "--json", *python(agent, "c", "a", "d", "b")).out)
    assert left(said) == (3, None, 3, "miss", "new-resource")
    assert (said["divergence"]["channel"], said["divergence"]["differences"][0]["live"]) == ("web", "d")
    assert {how: number for how, number in said["divergence"]["followed"].items() if number} == {"exact": 1}
    assert json.loads(command("replay", "notes", "--json", *python(agent, "c", "b", "a")).out)["divergence"] is None
