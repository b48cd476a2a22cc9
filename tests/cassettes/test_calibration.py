"""What varies between runs, and rules for exactly that."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from secondtake.cassettes.calibration import Asked, Varying, proposals, shape, unforgiven, varying
from secondtake.cassettes.catalogue import Catalogue
from secondtake.cassettes.declared import Declared, rules_of
from secondtake.cassettes.exchange import Answer, Answered, Channel, Request
from secondtake.cassettes.memory import MemoryCassette
from secondtake.cassettes.normalise import NO_ALIASES
from secondtake.cassettes.volatile import RULES

JSON = ((b"content-type", b"application/json"),)
ASK = Request("POST", "https", "web.example", 443, b"/api", fields=JSON)


def catalogue(*bodies: object, more: Sequence[Declared] = (), path: bytes = b"/api") -> Catalogue:
    """A recording of these requests."""
    cassette = MemoryCassette()
    for body in bodies:
        asked = Request("POST", "https", "web.example", 443, path, fields=JSON)
        cassette.record(asked, Answer(200), sent=json.dumps(body).encode(), channel=Channel.WEB)
    return Catalogue(cassette, rules=(*RULES, *rules_of(more)), aliases=NO_ALIASES, allow_push=False)


def run(*bodies: object, path: bytes = b"/api") -> tuple[Asked, ...]:
    """A replay that asked these instead, in the same order."""
    asked = Request("POST", "https", "web.example", 443, path, fields=JSON)
    return tuple(Asked(asked, json.dumps(body).encode(), seq, Answered.MISS) for seq, body in enumerate(bodies, 1))


def found(recorded: object, first: object, second: object) -> list[Varying]:
    """What varies in one request."""
    kept = catalogue(recorded)
    return list(varying((kept, kept), (run(first), run(second))))


UUIDS = [f"0b8e4c5a-1d2f-4a3b-9c8d-{number:012x}" for number in range(3)]


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ([{"id": value} for value in UUIDS], Declared("POST", "web.example", "/api", "id")),
        ([{"run": {"at": value}} for value in (1.5, 2.5, 3.5)], Declared("POST", "web.example", "/api", "run.at")),
        ([{"at": f"2026-11-30T06:44:{n}Z"} for n in (10, 11, 12)], Declared("POST", "web.example", "/api", "at")),
        (
            [{"content": f"Your scratch folder is /tmp/agent-x{value}q.\nGo."} for value in ("1a", "2b", "3c")],
            Declared("POST", "web.example", "/api", "content", r"Your scratch folder is /tmp/(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{6,}"),
        ),
        ([{"content": f"PID: {value}\nok"} for value in (10, 200, 3000)], Declared("POST", "web.example", "/api", "content", r"PID: \d+")),
    ],
)
def test_a_value_nobody_writes_gets_a_rule_that_forgives_it(values: list[object], rule: Declared) -> None:
    """Issue 4, item 3: proposes rule lines; with them nothing is left."""
    [one] = found(*values)
    assert one.rule is not None
    assert one.rule.line.startswith(rule.line.removesuffix(" }").removesuffix('"').removesuffix("'"))
    assert unforgiven(catalogue(values[0], more=[one.rule]), run(values[1])) == 0
    assert unforgiven(catalogue(values[0]), run(values[1])) == 1


def test_places_that_differ_in_indexes_only_are_one() -> None:
    """Issue 4, item 3: one line for the ids of all messages."""
    bodies = [{"messages": [{"id": UUIDS[n]}, {"id": UUIDS[(n + 1) % 3]}]} for n in range(3)]
    [one] = found(*bodies)
    assert (one.place, one.times) == ("messages[*].id", 4)
    assert one.rule is not None
    assert unforgiven(catalogue(bodies[0], more=[one.rule]), run(bodies[2])) == 0


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (["fix it now", "break it now", "break it now"], "in words"),
        (["page 1", "page 2", "page 2"], "both replays agree"),
        ([1, 2, 2], "both replays agree"),
        (["v12-abc4567", "v13-abd4567", "v13-abd4567"], "both replays agree"),
        ([1, "a", "b"], "went another way"),
        ([[1], [1, 2], [1, 2]], "went another way"),
        ([True, False, False], "went another way"),
    ],
)
def test_what_somebody_chose_gets_none(values: list[object], why: str) -> None:
    """Issue 4, item 3: the reason is said."""
    [one] = found(*({"content": value} for value in values))
    assert one.rule is None
    assert one.why_not is not None
    assert why in one.why_not


def test_a_place_that_is_not_always_there_gets_none() -> None:
    """Presence counts."""
    [one] = found({"id": UUIDS[0], "a": 1}, {"a": 1}, {"a": 1})
    assert (one.recorded, one.first, one.rule) == (UUIDS[0], None, None)


def test_a_key_of_the_query_gets_a_rule_and_another_path_none() -> None:
    """A path says what is asked for."""
    kept = catalogue({}, path=b"/api?at=1764484000")
    [one] = varying((kept, kept), (run({}, path=b"/api?at=1764484900"), run({}, path=b"/api?at=1764484999")))
    assert (one.where, one.rule) == ("query", Declared("POST", "web.example", "/api", query="at"))
    [other] = varying((kept, kept), (run({}, path=b"/b?at=1764484000"), run({}, path=b"/b?at=1764484000")))
    assert (other.where, other.rule) == ("path", None)


def test_what_the_rules_in_force_forgive_does_not_differ() -> None:
    """The second calibration is silent."""
    rule = Declared(body="id")
    kept = catalogue({"id": UUIDS[0]}, more=[rule])
    assert varying((kept, kept), (run({"id": UUIDS[1]}), run({"id": UUIDS[2]}))) == ()


def test_both_values_are_shown_where_they_begin_to_differ_on_one_line() -> None:
    """T-A7: not one difference of 200 KB; nothing of a stranger's reaches a terminal raw."""
    [one] = found({"x": "a" * 5000 + "\x1b[2Jrecorded"}, {"x": "a" * 5000 + "\x1b[2Jfirst"}, {"x": "a" * 5000 + "\x1b[2Jother"})
    assert one.recorded is not None
    assert "recorded" in one.recorded
    assert "\x1b" not in one.recorded
    assert len(one.recorded) < 120


def test_one_rule_is_proposed_once() -> None:
    """Two endpoints, two rules; one endpoint, one."""
    kept = catalogue({"id": UUIDS[0]}, {"id": UUIDS[1]})
    told = varying((kept, kept), (run({"id": UUIDS[1]}, {"id": UUIDS[2]}), run({"id": UUIDS[2]}, {"id": UUIDS[0]})))
    assert proposals(told) == (Declared("POST", "web.example", "/api", "id"),)


@pytest.mark.parametrize(("text", "name"), [(UUIDS[0], "uuid"), ("12", "count"), ("deadbeef", "hex"), ("fix", None), ("two words1", None)])
def test_shapes_are_told_apart(text: str, name: str | None) -> None:
    """What nobody writes by hand."""
    assert shape(text) == name
