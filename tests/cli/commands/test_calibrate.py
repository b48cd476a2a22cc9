"""`calibrate`: what varies by itself, and rules for exactly that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from secondtake.cassettes.store import Store
from tests.cli.conversations import model, talks
from tests.cli.scenes import Command, python

pytestmark = pytest.mark.loopback


@pytest.fixture
def route() -> Iterator[tuple[str, str]]:
    with model() as found:
        yield found


VARYING = talks("Session NONCE began.\nFix the test.", "and now?", extra='{"metadata": {"at": time.time(), "nonce": str(uuid.uuid4())}}')


def test_the_rules_it_prints_make_the_next_replay_clean(command: Command, route: tuple[str, str], tmp_path: Path) -> None:
    """Issue 4, item 3: replays twice, lists every field that differs, proposes rule lines; the user pastes them."""
    assert command("record", "varies", *route, *VARYING).code == 0
    before = command("replay", "varies", *VARYING)
    assert before.code == 103
    found = command("calibrate", "varies", *VARYING)
    assert found.code == 0, found.err
    where = 'ignore = { method = "POST", host = "api.provider.example", path = "/v1/messages", body = '
    assert sorted(line.removeprefix(where) for line in found.out.splitlines()) == [
        '"messages[0].content", text = "Session [0-9a-fA-F]{6,}(?![0-9A-Za-z])" }',
        '"metadata.at" }',
        '"metadata.nonce" }',
    ]
    assert "POST api.provider.example/v1/messages (anthropic): body metadata.nonce" in found.err
    (tmp_path / "store" / "rules").write_text(found.out)
    after = command("replay", "varies", *VARYING)
    assert (after.code, "  normalised       2\n" in after.err) == (0, True), after.err
    again = command("calibrate", "varies", *VARYING)
    assert (again.code, again.out) == (0, ""), again.err
    assert "nothing differs" in again.err


def test_rules_are_read_from_a_file_of_the_command_line(command: Command, route: tuple[str, str], tmp_path: Path) -> None:
    """Issue 4, item 3: the rules hold for a replay that is given them, and for no other."""
    assert command("record", "varies", *route, *VARYING).code == 0
    (tmp_path / "mine.rules").write_text("# what this agent makes up\n\n" + command("calibrate", "varies", *VARYING).out)
    assert command("replay", "varies", "--rules", str(tmp_path / "mine.rules"), *VARYING).code == 0
    assert command("replay", "varies", *VARYING).code == 103


def test_words_that_differ_are_listed_and_get_no_rule(command: Command, route: tuple[str, str]) -> None:
    """Issue 4, item 3: over-broad rules are refused. Another task is another task."""
    assert command("record", "task", *route, *talks("fix the parser")).code == 0
    found = command("calibrate", "task", "--json", *talks("delete the parser"))
    said = json.loads(found.out)
    assert (found.code, said["rules"], said["left"]) == (103, [], 2)
    assert [(one["place"], one["recorded"], one["first"], one["why_not"]) for one in said["differs"]] == [
        ("messages[0].content", "fix the parser", "delete the parser", "it differs in words, not in random values")
    ]


PAGES = """
import json, random, urllib.error, urllib.request as r
for page in (1, 2):
    body, head = json.dumps({{"page": {page}}}).encode(), {{"content-type": "application/json"}}
    try:
        r.urlopen(r.Request("https://api.provider.example/pages", headers=head, data=body), timeout=20)
    except urllib.error.HTTPError as error:
        print(error.code)
print("ran")
"""


def test_a_rule_for_what_tells_two_recorded_requests_apart_is_not_proposed(command: Command, route: tuple[str, str]) -> None:
    """Issue 4, item 3: a rule that makes two different recorded requests equal would give the one the other's answer."""
    pages = python(PAGES.format(page="page + 10 * random.SystemRandom().randrange(1, 1000)"))
    assert command("record", "pages", *route, *pages).code == 0
    found = command("calibrate", "pages", "--json", *pages)
    said = json.loads(found.out)
    assert (found.code, said["rules"]) == (103, [])
    assert "one request, although they differ at body `page`" in said["refused"][0]["why"]


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ('ignore = { body = "messages[*]" }', "is a whole message"),
        ('ignore = { body = "page" }', "one request, although they differ at body `page`"),
    ],
)
def test_a_rule_that_forgives_too_much_is_refused_before_the_agent_starts(
    command: Command, route: tuple[str, str], tmp_path: Path, rule: str, why: str
) -> None:
    """Issue 4, item 3: with the reason, and nothing runs."""
    pages = python(PAGES.format(page="page"))
    command("record", "two", *route, *pages)
    (tmp_path / "rules").write_text(rule)
    ran = command("replay", "two", "--rules", str(tmp_path / "rules"), *pages)
    assert (ran.code, ran.out) == (64, "")
    assert why in ran.err


def test_what_would_act_here_names_the_same_command_in_a_scratch_copy(command: Command, store: Store) -> None:
    """STYLE 4.6: a hint that can be run; `calibrate` is told where to run as `replay` is."""
    refused = command("calibrate", "incident", "--", "true")
    assert (refused.code, len(store.list())) == (105, 1)
    assert refused.err.splitlines()[-1].startswith("hint: secondtake calibrate incident --workspace ")
    both = command("calibrate", "incident", "--scratch", "--in-place", "--", "true")
    assert (both.code, both.err.splitlines()[0]) == (64, "error: --scratch and --in-place exclude each other")
