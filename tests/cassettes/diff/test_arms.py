"""The first decision that separates two arms."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.diff.arms import ENDED, Arm, By, compare, gist
from secondtake.cassettes.diff.decisions import Call, Course, Decision
from tests.cassettes.diff.plays import Act, Turn, edit, played, run, say


def arm(label: str, *runs: Course) -> Arm:
    return Arm(label, tuple(f"{label}{number}" for number in range(len(runs))), runs)


LOOK = (run("ls"), run("cat foo.py"))


def test_the_node_with_the_greatest_separation_is_reported_with_counts() -> None:
    """Issue 6.4: "at decision 3, A ran the tests 5/5, B edited foo.py 4/5"."""
    a = arm("A", *(played(*LOOK, run("pytest -q"), edit("foo.py"), say("x")) for _ in range(5)))
    b = arm("B", *(played(*LOOK, edit("foo.py"), say("x")) for _ in range(4)), played(*LOOK, run("pytest"), say("x")))
    made = compare(a, b)
    assert made.greatest is not None
    assert made.greatest.number == 3
    assert made.greatest.before == ("ran ls", "ran cat foo.py")
    assert made.greatest.separation == Fraction(4, 5)
    assert {way.what: (len(way.a), len(way.b)) for way in made.greatest.ways} == {"ran pytest": (5, 1), "edit foo.py": (0, 4)}
    assert made.by is By.GIST
    assert made.earliest is made.greatest


def test_of_equal_separations_the_first_reached_is_reported() -> None:
    """What comes later may follow from it."""
    a = arm("A", *(played(run("ls"), run("pytest"), say("x")) for _ in range(3)))
    b = arm("B", *(played(run("ls"), edit("a.py"), edit("b.py")) for _ in range(3)))
    made = compare(a, b)
    assert made.greatest is not None
    assert (made.greatest.number, made.greatest.separation) == (2, Fraction(1))


def test_a_node_that_few_runs_reach_counts_for_little() -> None:
    """Shares are of all runs of an arm: one run against one, deep in the tree, is no finding."""
    common = [played(run("make"), say("x")) for _ in range(3)]
    a = arm("A", *common, played(run("ls"), run("pytest"), say("x")), played(run("ls"), run("pytest"), say("x")))
    b = arm("B", *common[:2], *(played(run("ls"), run(command), say("x")) for command in ("pytest", "ruff", "mypy")))
    made = compare(a, b)
    assert made.greatest is not None
    assert (made.greatest.number, made.greatest.separation) == (1, Fraction(1, 5))
    deep = [arm("A", *common, played(run("ls"), run("pytest"))), arm("B", *common, played(run("ls"), run("ruff")))]
    found = compare(*deep).greatest
    assert found is not None
    assert (found.number, found.separation) == (2, Fraction(1, 4))


def test_arms_alike_by_gist_are_told_apart_by_arguments() -> None:
    """Models word the same step differently; where nothing else differs, the wording is the finding."""
    a = arm("A", *(played(run("pytest -q tests")) for _ in range(2)))
    b = arm("B", *(played(run("pytest -x tests")) for _ in range(2)))
    made = compare(a, b)
    assert made.by is By.ARGUMENTS
    assert made.greatest is not None
    assert {way.what for way in made.greatest.ways} == {"run: pytest -q tests", "run: pytest -x tests"}


def test_ending_is_a_way_to_go_on() -> None:
    """An arm that gives up is told from one that goes on."""
    made = compare(arm("A", played(run("ls"))), arm("B", played(run("ls"), run("make"))))
    assert made.greatest is not None
    assert [(way.what, way.a, way.b) for way in made.greatest.ways] == [(ENDED, ("A0",), ()), ("ran make", (), ("B0",))]


def test_decisions_that_only_begin_alike_are_two() -> None:
    """What is cut for the eye is not cut for the comparison."""
    long = "x" * 300
    made = compare(arm("A", played(run(f"pytest {long}1"))), arm("B", played(run(f"pytest {long}2"))))
    assert made.by is By.ARGUMENTS
    assert made.differs


def test_the_gist_is_the_program_or_the_tool_and_its_file() -> None:
    """Issue 6.4: A ran the tests, B edited foo.py."""
    turn = Turn((Act("run", {"command": "cd x && pytest -q"}), Act("edit", {"path": "a.py", "new": "1"}), Act("edit", {"path": "a.py"})))
    assert [gist(one) for one in played(turn, say("x"), Turn((Act("search", {"q": "1"}),))).decisions] == [
        "edit a.py; ran pytest",
        "said something",
        "search",
    ]


def made(*keys: str) -> Course:
    return Course(tuple(Decision(n, n, (Call(key, ""),)) for n, key in enumerate(keys, 1)))


RUNS = st.lists(st.lists(st.sampled_from("abc"), max_size=4).map(lambda keys: made(*keys)), min_size=1, max_size=5)


@given(RUNS, RUNS)
def test_sides_can_be_exchanged_and_an_arm_does_not_part_from_itself(one: list[Course], other: list[Course]) -> None:
    """Issue 6.4: symmetric; diff(x, x) is empty."""
    assert not compare(arm("A", *one), arm("B", *one)).differs
    forth, back = compare(arm("A", *one), arm("B", *other)), compare(arm("A", *other), arm("B", *one))
    assert (forth.greatest is None) == (back.greatest is None)
    if forth.greatest is not None and back.greatest is not None:
        assert forth.greatest.separation == back.greatest.separation
        assert 0 < forth.greatest.separation <= 1


@given(RUNS, RUNS)
def test_arms_part_exactly_where_shares_of_their_paths_differ(one: list[Course], other: list[Course]) -> None:
    """Nothing that separates two arms is missed."""

    def shares(runs: list[Course]) -> dict[str, Fraction]:
        paths = ["".join(str(decision) for decision in run.decisions) for run in runs]
        return {path: Fraction(paths.count(path), len(paths)) for path in paths}

    assert compare(arm("A", *one), arm("B", *other)).differs == (shares(one) != shares(other))
