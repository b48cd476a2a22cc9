"""`diff`: two runs, or two arms, in the terminal, as JSON, as a page."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from secondtake.cassettes.store import Store
from tests.cassettes.diff.plays import edit, run, say
from tests.cli.scenes import Command
from tests.harness.test_comparing import keep

HOSTILE = "<script>alert(1)</script>\x1b]0;evil\x07 \u202etxt"


@pytest.fixture
def two(store: Store) -> Store:
    """Two runs that part at the second decision and come to the same."""
    fixed = {"foo.py": b"return 2\n"}
    keep(store, "one", (run("pytest", "Exit code 1\n"), edit("foo.py", new=HOSTILE), say("x")), fixed)
    keep(store, "two", (run("pytest", "Exit code 0\n"), run("ls"), edit("foo.py", new="b"), say("y")), fixed)
    return store


def test_two_runs_are_compared_layer_by_layer(command: Command, two: Store) -> None:
    """Issue 6.4: four layers separately; 103 when anything differs. C-14: nothing recorded is printed raw."""
    ran = command("diff", "one", "two")
    assert ran.code == 103
    assert ran.out.splitlines()[:3] == [
        "A  one (recording, closed, answered by hasty-20260101)",
        "B  two (recording, closed, answered by hasty-20260101)",
        "different paths, equivalent patch (equal final trees)",
    ]
    assert "they part at decision 2; after decision 1 the tools had given them different results" in ran.out
    assert [line for line in ran.out.splitlines() if line[:1].isalpha()][3:] == [
        "decisions: 2 the same, 1 with other arguments, 1 only in B",
        "commands: 1 not the same, 1 that ended otherwise (by tool calls and their results)",
        "tree: equal final trees, the same start",
        "outcome: the same (not both are judged takes: only how the agents left is compared)",
    ]
    assert "\x1b" not in ran.out
    assert "\u202e" not in ran.out
    assert ran.err == ""


def test_a_run_compared_with_itself_exits_with_0(command: Command, two: Store) -> None:
    """Issue 6.4: 0 equal."""
    assert command("diff", "one", "one").code == 0


def test_a_layer_by_itself_decides_the_exit_code(command: Command, two: Store) -> None:
    """Issue 6.4: 103 where any layer that was asked for differs."""
    assert command("diff", "one", "two", "--layer", "tree").code == 0
    assert command("diff", "one", "two", "--layer", "tree", "--layer", "decisions").code == 103
    shown = command("diff", "one", "two", "--layer", "decisions").out
    assert "decisions:" in shown
    assert "tree:" not in shown


def test_json_is_one_versioned_object_with_the_layers_that_were_asked_for(command: Command, two: Store) -> None:
    """DESIGN 7: --json on every command."""
    ran = command("diff", "one", "two", "--json")
    told = json.loads(ran.out)
    assert (told["version"], told["exit_code"], ran.code) == (1, 103, 103)
    assert told["differs"] == {"decisions": True, "commands": True, "tree": False, "outcome": False}
    assert told["decisions"]["parting"]["b"]["calls"] == [
        {"tool": "run", "arguments": '{"command":"ls"}', "result": {"exit_code": None, "is_error": False}}
    ]
    assert told["tree"]["equivalent"] is True
    assert set(json.loads(command("diff", "one", "two", "--json", "--layer", "tree").out)) == {
        *("version", "a", "b", "differs", "summary", "tree", "exit_code")
    }


def test_a_page_is_written_for_us_only_and_is_self_contained(command: Command, two: Store, tmp_path: Path) -> None:
    """Issue 6: no external request; recorded text is escaped."""
    page = tmp_path / "diff.html"
    ran = command("diff", "one", "two", "--html", str(page), "-q")
    assert (ran.code, ran.out, ran.err) == (103, "", "")
    text = page.read_text(encoding="utf-8")
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert "default-src 'none'" in text
    assert "&lt;script&gt;alert(1)" in text
    for raw in ("<script", "\x1b", "\u202e", "http://", "https://", "src="):
        assert raw not in text


def test_a_layer_that_cannot_be_compared_is_never_called_equal(command: Command, two: Store) -> None:
    """Asked for by name it is bad input; else it says so and counts for nothing."""
    ran = command("diff", "incident", "one", "--layer", "tree")
    assert (ran.code, ran.out) == (64, "")
    assert "no final tree was kept on both sides" in ran.err
    assert "tree: not compared: a final tree was not kept on both sides" in command("diff", "incident", "one").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("one",), "two are compared, not 1"),
        (("one", "two", "incident"), "two are compared, not 3"),
        (("one", "--against", "two"), "go with --arms"),
        (("one", "two", "--arm", "x"), "go with --arms"),
        (("--arms", "one", "two"), "one MATRIX, or runs with --against"),
        (("--arms", "one", "--against"), "an arm without a run"),
        (("--arms", "one", "--against", "two", "--against", "two"), "--against stands once"),
        (("--arms", "one", "--against", "two", "--layer", "tree"), "takes no other --layer"),
        (("--arms", "one", "--against", "two", "--arm", "x"), "among the arms of a MATRIX"),
        (("one", "two", "--html", "none/x.html"), "cannot write none/x.html"),
    ],
)
def test_bad_input_is_one_line_and_64(command: Command, two: Store, arguments: tuple[str, ...], said: str) -> None:
    """Issue 2, bad input."""
    ran = command("diff", *arguments)
    assert (ran.code, ran.out) == (64, "")
    assert said in ran.err.splitlines()[0]


def test_a_name_that_is_not_there_is_a_matter_of_the_store(command: Command, two: Store) -> None:
    """Exit codes: one table."""
    assert command("diff", "one", "nobody").code == 104
    assert command("diff", "--arms", "nothing").code == 104


def test_arms_say_the_first_decision_that_separates_them(command: Command, store: Store, tmp_path: Path) -> None:
    """Issue 6.4: with counts per arm, in all three forms."""
    for number in range(3):
        keep(store, f"a{number}", (run("ls"), run("pytest"), say("x")))
        keep(store, f"b{number}", (run("ls"), edit("foo.py") if number else run("pytest"), say("x")))
    names = ("--arms", "a0", "a1", "a2", "--against", "b0", "b1", "b2")
    ran = command("diff", *names, "--html", str(tmp_path / "arms.html"))
    assert ran.code == 103
    assert ran.out.splitlines()[3] == "at decision 2, A ran pytest 3/3, B edit foo.py 2/3"
    assert "    A 3/3  B 1/3  ran pytest" in ran.out
    told = json.loads(command("diff", *names, "--json").out)
    assert (told["greatest"]["decision"], told["greatest"]["separation"]) == (2, 0.6667)
    assert told["greatest"]["ways"][1] == {"what": "edit foo.py", "a": [], "b": ["b1", "b2"]}
    assert "At decision 2, A ran pytest 3/3, B edit foo.py 2/3" in (tmp_path / "arms.html").read_text()
    same = command("diff", "--arms", "a0", "--against", "a1")
    assert same.code == 0
    assert "the arms do not part" in same.out
