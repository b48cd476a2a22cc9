"""Lines of a comparison."""

from __future__ import annotations

import pytest

from secondtake.cassettes.diff import commands, decisions, outcome, tree
from secondtake.cassettes.diff.commands import Log, Ran, Whence
from secondtake.cassettes.diff.layers import Diff, Layer, Side
from secondtake.cassettes.takes import Outcome
from secondtake.cli.render.diff import PATCH_LINES, around, lines
from tests.cassettes.diff.plays import Turn, edit, played, run, say
from tests.cassettes.diff.test_outcome import PLAIN, check, take
from tests.cassettes.diff.test_tree import START, stood

HERE = Side("a\x1b[31m", "take", "closed", None, ("hasty-20260101",))


def diff(
    a: tuple[Turn, ...] = (), b: tuple[Turn, ...] = (), final: dict[str, bytes] | None = None, ends: tuple[outcome.Account, ...] = ()
) -> Diff:
    one, other = played(*a), played(*b)
    return Diff(
        HERE,
        HERE,
        decisions.compare(one, other),
        commands.compare(commands.by_traffic(one), commands.by_traffic(other)),
        tree.compare(stood(START), stood(START if final is None else final)),
        outcome.compare(*(ends or (PLAIN, PLAIN))),
    )


def shown(made: Diff, *layers: Layer) -> list[str]:
    return list(lines(made, layers))[3:]


@pytest.mark.parametrize(
    ("marked", "told"),
    [("", []), ("....", [(0, 4)]), ("x", [0]), ("......x......", [(0, 4), 4, 5, 6, 7, 8, (9, 13)]), ("x..x", [0, 1, 2, 3])],
)
def test_what_is_the_same_is_folded_but_for_its_neighbours(marked: str, told: list[object]) -> None:
    """A run of 2,000 decisions fits a screen when two of them differ."""
    assert list(around([letter == "x" for letter in marked])) == told


def test_each_kind_of_step_has_its_sign() -> None:
    """Colour is never the only sign; here there is none at all."""
    a = (run("ls"), edit("a", new="1"), run("make"), say("x"))
    b = (run("ls"), edit("a", new="2"), edit("z"), say("x"), run("pwd"))
    assert shown(diff(a, b), Layer.DECISIONS)[6:] == [
        "     1    1   run: ls",
        "     2    2 ~ edit",
        '                new: "1" → "2"',
        "     3    3 ! A run: make",
        "              B edit: z",
        "     4    4   (said something, called nothing)",
        "          5 + run: pwd",
        "  the last answer: A end, B tool-calls-unanswered",
    ]


def test_faults_and_stops_and_what_was_not_compared_are_said() -> None:
    """Issue 6.4: also errors, retries, stop reasons."""
    a = (Turn(status=529), run("ls"), say("t", tools=()), say("x"))
    b = (run("ls"), say("x", stop="max_tokens"))
    text = "\n".join(shown(diff(a, b), Layer.DECISIONS))
    assert "only A: failed call: status 529, infrastructure, overloaded_error, after 0 decisions" in text
    assert "only A: retry: attempt 2 after status 529, after 0 decisions" in text
    assert "A has 1 answer to calls without tools, not compared" in text
    assert "stopped: A end, B length" in text
    assert "decisions: all 2 the same, other stop reasons, other faults, another end" in text


def test_a_long_patch_is_cut_among_other_layers_and_whole_by_itself() -> None:
    """A patch of 10,000 lines does not bury the rest."""
    made = diff(final={**START, "foo.py": b"".join(b"%d\n" % n for n in range(500))})
    among = "\n".join(shown(made, Layer.TREE, Layer.OUTCOME))
    alone = "\n".join(shown(made, Layer.TREE))
    assert "more lines: --layer tree shows them" in among
    assert "+499" not in among
    assert "+499" in alone
    assert among.count("\n") < PATCH_LINES + 40


def test_the_kernels_log_is_said_to_be_the_source() -> None:
    """Issue 6.4: and says which."""
    logs = [Log(Whence.KERNEL, (Ran("sh -c x\x1b", "sh", code),), own=3, not_run=1) for code in ("0", "signal 9")]
    plain = diff()
    made = Diff(HERE, HERE, plain.decisions, commands.compare(*logs), plain.tree, plain.outcome)
    assert shown(made, Layer.COMMANDS)[1:] == [
        "commands: 1 that ended otherwise (by the kernel's log)",
        "  A: 3 commands of the agent's own, not compared; 1 asked for and not seen to run",
        "  B: 3 commands of the agent's own, not compared; 1 asked for and not seen to run",
        "  ~ [0 → signal 9] sh -c x\\x1b",
    ]


def test_checks_that_differ_show_their_evidence() -> None:
    """Issue 6.4: each check side by side."""
    ends = take(Outcome.SAME, check(held=False), check("lint", held=None)), take(Outcome.PASS, check(), check("lint", held=None))
    text = shown(diff(ends=ends), Layer.OUTCOME)
    assert "  ! acceptance tests: did not hold → held" in text
    assert "      B  3 passed" in text
    assert "    acceptance lint: not judged" in text
    assert any(line.startswith("  ! outcome") and line.endswith("same failure  →  pass") for line in text)


def test_no_recorded_text_is_printed_raw() -> None:
    """C-14."""
    evil = "\x1b]0;x\x07\u202e"
    made = diff((run(evil), edit(evil, new=evil)), (run("ls"), edit("b", new="c")), {f"{evil}.py": evil.encode()})
    text = "\n".join(lines(made, tuple(Layer)))
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
