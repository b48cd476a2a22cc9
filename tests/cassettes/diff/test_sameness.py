"""What does not count when two decisions are compared, and what does."""

from __future__ import annotations

import json

import pytest

from secondtake.cassettes.diff.sameness import Sameness, parsed

HERE = Sameness("/home/me/shop", {"/tmp/x/ca.pem": "bundle", "127.0.0.1:41234": "proxy"})
THERE = Sameness("/tmp/secondtake-replay-a1b2c3/shop", {})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cd /home/me/shop && ls", "cd /tmp/secondtake-replay-a1b2c3/shop && ls"),
        ("cat /home/me/shop/a.py:3", "cat /tmp/secondtake-replay-a1b2c3/shop/a.py:3"),
        ("ls /home/me/.cache", "ls /root/.cache"),
        ("rm /tmp/tmpab12cd34/x", "rm /tmp/tmpzz98yy76/x"),
        ("cat /tmp/job-3f9A2b/out", "cat /tmp/job-99kkZZ1/out"),
        ("kill 0f8fad5b-d9cb-469f-a165-70867728950e", "kill 7c9e6679-7425-40de-944b-e07fc1f90ae7"),
        ("see toolu_01AbCdEfGh23", "see toolu_99ZyXwVuTs88"),
    ],
)
def test_where_a_run_stood_and_names_made_by_chance_do_not_count(one: str, other: str) -> None:
    """Issue 6.4: paths of workspace, HOME and temp normalised, IDs scrubbed."""
    assert HERE.text(one) == THERE.text(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ls /home/me/shop", "ls /home/me/shop2"),
        ("ls /home/me/shop", "ls /home/me/shop.bak"),
        ("ls /srv/home/me", "ls /srv/home/you"),
        ("cat /tmp/patch-backup", "cat /tmp/patch-restore"),
        ("git show 1a2b3c4d", "git show 4d3c2b1a"),
        ("pytest tests/test_a.py", "pytest tests/test_b.py"),
    ],
)
def test_what_differs_by_choice_counts(one: str, other: str) -> None:
    """A rule that forgives too much hides the difference that is looked for."""
    assert HERE.text(one) != HERE.text(other)


def test_our_own_names_are_known_by_what_they_stand_for() -> None:
    """The trust bundle and the proxy differ from run to run because we chose them."""
    assert HERE.text("curl --cacert /tmp/x/ca.pem -x http://127.0.0.1:41234 a") == "curl --cacert {bundle} -x http://{proxy} a"


def arguments(tool: str = "Edit", same: Sameness = HERE, **given: object) -> str:
    return same.arguments(tool, json.dumps(given))


def test_a_file_is_the_same_by_its_relative_and_its_absolute_path() -> None:
    """Only where the whole argument is a path."""
    assert arguments(file_path="/home/me/shop/src/a.py") == arguments(file_path="./src/a.py") == arguments(file_path="src/a.py")
    assert arguments(path="/home/me/shop") == arguments(path=".")
    assert arguments(text="/home/me/shop/a.py") != arguments(text="a.py")


def test_words_around_a_call_are_prose() -> None:
    """Issue 6.4: prose is ignored. Where nothing else is said, the words are the call."""
    assert arguments("Bash", command="ls", description="Look around") == arguments("Bash", command="ls", description="List files")
    assert arguments("Bash", command="ls", description="x") != arguments("Bash", command="pwd", description="x")
    assert arguments("note", description="x") != arguments("note", description="y")


@pytest.mark.parametrize("tool", ["TodoWrite", "update_plan", "write_todos"])
def test_a_plan_is_prose(tool: str) -> None:
    """Issue 6.4: a list of intentions is told in other words each time."""
    assert arguments(tool, todos=[{"content": "a"}]) == arguments(tool, todos=[{"content": "b"}, {"content": "c"}]) == "{}"


def test_arguments_are_canonical_and_text_that_is_no_json_stays_text() -> None:
    """Order of keys and spaces mean nothing; a custom tool's text is what it is."""
    assert HERE.arguments("t", '{"b": 1, "a": [true, "x "]}') == '{"a":[true,"x"],"b":1}'
    assert HERE.arguments("t", "*** Begin Patch\n*** /home/me/shop/a") == "*** Begin Patch\n*** {workspace}/a"
    assert HERE.arguments("t", '{"a": ') == '{"a":'
    assert parsed('{"a":1}') == {"a": 1}
    assert parsed('{"a":') == '{"a":'


def test_output_is_the_same_however_long_it_took() -> None:
    """Test runners print how long they took."""
    assert HERE.output("1 passed in 0.03s\n") == HERE.output("1 passed in 1.20s")
    assert HERE.output("1 passed in 0.03s") != HERE.output("2 passed in 0.03s")


def test_hostile_arguments_are_read_without_harm() -> None:
    """C-14: depth and surrogates."""
    deep = "[" * 100_000
    assert HERE.arguments("t", deep) == deep
    assert HERE.arguments("t", '{"a":"\\ud800"}') == '{"a":"\ud800"}'
