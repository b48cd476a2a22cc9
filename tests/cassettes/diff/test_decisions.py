"""What a model decided, and where two runs decided differently."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secondtake.cassettes.diff.decisions import SAID, Call, Course, Decision, How, compare, course
from secondtake.cassettes.diff.sameness import Sameness
from secondtake.cassettes.events import contents, events
from secondtake.cassettes.exchange import Answer, Channel
from secondtake.cassettes.memory import MemoryCassette
from tests.cassettes.adapters.formats import FORMATS, Format
from tests.cassettes.adapters.scenes import SCENES
from tests.cassettes.diff.plays import Act, Turn, edit, played, run, say

TESTS = run("pytest -q", "Exit code 1\n1 failed")


def made(*keys: str) -> Course:
    """A course of decisions of one call each: `tool arguments`."""
    return Course(tuple(Decision(n, n, (Call(key[0], key),) if key else ()) for n, key in enumerate(keys, 1)))


def test_a_decision_is_the_set_of_its_calls_and_prose_is_ignored() -> None:
    """Issue 6.4: parallel calls in one turn are a set; text turns count as said something only."""
    a = played(Turn((Act("run", {"command": "ls"}), Act("run", {"command": "pwd"})), text="I look."), say("It is done."))
    b = played(Turn((Act("run", {"command": "pwd"}), Act("run", {"command": "ls"})), text="Let me see."), say("All is well now."))
    assert compare(a, b).differs is False
    assert [str(decision) for decision in a.decisions] == ["run: ls; run: pwd", SAID]


def test_the_same_tool_twice_is_not_once() -> None:
    """A set of calls that may repeat."""
    look = Act("run", {"command": "ls"})
    decided = compare(played(Turn((look, look))), played(Turn((look,))))
    assert [step.how for step in decided.steps] == [How.OTHER]
    assert [len(decided.steps[0].only_a), len(decided.steps[0].only_b)] == [1, 0]


def test_the_first_decision_that_separates_both_says_what_each_did_then() -> None:
    """Issue 6.4: says the first decision that separates both."""
    a = played(run("ls"), TESTS, edit("a.py", new="1"), say("done"))
    b = played(run("ls"), TESTS, run("cat a.py"), edit("a.py", new="2"), say("done"))
    decided = compare(a, b)
    assert decided.common == 2
    assert decided.parting is not None
    assert [str(one) for one in decided.parting] == ["edit path=a.py new=1", "run: cat a.py"]
    assert [step.how for step in decided.steps] == [How.SAME, How.SAME, How.ONLY_B, How.ARGUMENTS, How.SAME]
    (changed,) = decided.steps[3].changed
    assert [(item.path, item.recorded, item.live) for item in changed.fields] == [("new", "1", "2")]


def test_a_run_that_ends_sooner_parts_there() -> None:
    """None stands for the side that had ended."""
    decided = compare(played(run("ls")), played(run("ls"), run("pwd")))
    assert decided.parting is not None
    assert decided.parting[0] is None
    assert str(decided.parting[1]) == "run: pwd"


def test_what_the_tools_gave_back_is_told_and_is_no_difference_of_decisions() -> None:
    """It may be why later decisions differ."""
    a = played(run("ls", "a.py"), run("cat a.py"))
    b = played(run("ls", "a.py b.py"), run("cat b.py"))
    decided = compare(a, b)
    assert decided.saw_otherwise is not None
    assert decided.saw_otherwise.a is a.decisions[0]
    same = compare(a, played(run("ls", "a.py"), run("cat b.py")))
    assert same.saw_otherwise is None
    assert same.same_path is False
    took = compare(played(run("t", "ok in 0.1s")), played(run("t", "ok in 2.5s")))
    assert took.saw_otherwise is None


def test_failed_attempts_are_faults_and_not_decisions() -> None:
    """Issue 6.4: also errors and retries."""
    decided = compare(played(Turn(status=529), run("ls"), say("x")), played(run("ls"), say("x")))
    assert decided.same_path
    assert decided.differs
    assert [(fault.kind, fault.text, times) for fault, times in decided.only_a] == [
        ("failed call", "status 529, infrastructure, overloaded_error", 1),
        ("retry", "attempt 2 after status 529", 1),
    ]
    assert decided.only_b == ()


def test_another_stop_reason_of_the_same_decision_is_a_difference() -> None:
    """Issue 6.4: also stop reasons."""
    decided = compare(played(run("ls"), say("x")), played(run("ls"), say("x", stop="max_tokens")))
    assert decided.same_path
    assert decided.differs
    assert decided.steps[1].stops == ("end", "length")
    assert (decided.a.ended, decided.b.ended) == ("end", "length")


def test_answers_to_calls_without_tools_are_left_aside_where_others_have_tools() -> None:
    """Titles and routers are no decisions; an agent that offers no tools at all (aider) has only such."""
    both = played(say("A title", tools=()), run("ls"))
    assert [str(one) for one in both.decisions] == ["run: ls"]
    assert both.aside == 1
    bare = played(say("an edit", tools=()))
    assert [str(one) for one in bare.decisions] == [SAID]
    assert bare.aside == 0


def test_tokens_that_an_answer_did_not_say_are_not_taken_for_none() -> None:
    """STATISTICS: unknown is not zero."""
    told = played(run("ls"), say("x"))
    assert (told.asked, told.tokens, told.uncounted) == (2, 24, 0)
    assert played(run("ls"), say("x", usage={})).uncounted == 1


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_every_wire_format_gives_the_same_decisions(form: Format) -> None:
    """Issue 6.4: normalised events: an agent on another provider decided the same."""

    def of(form: Format) -> Course:
        kept = MemoryCassette()
        for scene in SCENES[1:3]:
            request, sent = form.request(scene)
            answer = Answer(200, fields=form.fields)
            kept.record(request, answer, sent=sent, received=form.stream(scene), channel=Channel.MODEL, adapter=form.adapter)
        return course(events(kept.exchanges.values(), contents(kept)), Sameness())

    decided = compare(of(FORMATS[0]), of(form))
    assert decided.same_path
    assert [str(one) for one in of(form).decisions] == ["shell: cat hello.txt", "shell: ls; shell: pwd"]


KEYS = st.lists(st.sampled_from(["", "a1", "a2", "b1", "c1"]), max_size=12)


@given(KEYS)
def test_a_run_compared_with_itself_differs_in_nothing(keys: list[str]) -> None:
    """Issue 6.4: diff(x, x) is empty."""
    decided = compare(made(*keys), made(*keys))
    assert not decided.differs
    assert decided.parting is None


@given(KEYS, KEYS)
@settings(max_examples=60)
def test_exchanging_the_runs_exchanges_the_sides(one: list[str], other: list[str]) -> None:
    """Issue 6.4: symmetric."""
    forth, back = compare(made(*one), made(*other)), compare(made(*other), made(*one))
    turned = {How.ONLY_A: How.ONLY_B, How.ONLY_B: How.ONLY_A}
    assert forth.common == back.common
    assert forth.counts() == {turned.get(how, how): number for how, number in back.counts().items()}
    assert (forth.parting is None) == (back.parting is None)
    if forth.parting is not None and back.parting is not None:
        assert forth.parting == back.parting[::-1]


def test_long_runs_that_are_alike_cost_little() -> None:
    """Issue 6.4: cheap for 2,000 × 2,000 decisions. Compared with reading them, so that no absolute time is asserted."""
    keys = [f"a{n}" for n in range(2000)]
    other = [*keys[:700], "b1", *keys[701:1500], "b2", *keys[1500:]]
    began = time.perf_counter()
    one, two = made(*keys), made(*other)
    read = time.perf_counter() - began
    began = time.perf_counter()
    decided = compare(one, two)
    assert decided.common == 700
    assert not decided.bounded
    assert time.perf_counter() - began < 200 * read
