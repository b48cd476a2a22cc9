"""Lines about two arms."""

from __future__ import annotations

from secondtake.cassettes.diff.arms import compare
from secondtake.cli.render.arms import lines
from tests.cassettes.diff.plays import edit, played, run, say
from tests.cassettes.diff.test_arms import arm


def test_the_finding_is_one_sentence_and_the_counts_stand_below() -> None:
    """Issue 6.4: "at decision 3, A ran the tests 5/5, B edited foo.py 4/5"."""
    a = arm("A", *(played(run("ls"), run("cat x"), run("pytest")) for _ in range(5)))
    b = arm("B", *(played(run("ls"), run("cat x"), edit("foo.py")) for _ in range(4)), played(run("ls"), run("cat x"), run("pytest")))
    assert list(lines(compare(a, b)))[3:] == [
        "at decision 3, A ran pytest 5/5, B edit foo.py 4/5",
        "  separation 0.80 of 1; here are 5 runs of A and 5 of B",
        "  what they have in common before it:",
        "      1  ran ls",
        "      2  ran cat x",
        "  what they did then:",
        "    A 5/5  B 1/5  ran pytest",
        "    A 0/5  B 4/5  edit foo.py",
    ]


def test_an_earlier_and_smaller_parting_is_said_as_well() -> None:
    """One run of four that went its own way from the start is no finding, and no secret."""
    a = arm("A", *(played(run("ls"), run("pytest")) for _ in range(3)), played(run("id"), run("x")))
    b = arm("B", *(played(run("ls"), edit("foo.py")) for _ in range(4)))
    assert list(lines(compare(a, b)))[-1].startswith("they part a little before that: at decision 1, A ran id 1/4, B ran ls 4/4")


def test_arms_that_do_not_part_and_arms_told_by_arguments_say_so() -> None:
    """Nothing found is a result."""
    same = list(lines(compare(arm("A", played(say("x"))), arm("B", played(say("y"))))))
    assert same[-1] == "the arms do not part: at every decision the same shares of both went the same way"
    worded = list(lines(compare(arm("A", played(run("pytest -q"))), arm("B", played(run("pytest -x"))))))
    assert worded[-1] == "by their gist they do not part: told apart by arguments"


def test_names_and_commands_are_escaped() -> None:
    """C-14."""
    text = "\n".join(lines(compare(arm("A\x1b", played(run("\x1b[2J"))), arm("B", played(edit("\u202e"))))))
    assert not {"\x1b", "\u202e"} & set(text)
