"""How a take counts, how much was held, and what the headline says."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.events import Event, EventKind
from secondtake.cassettes.exchange import Channel
from secondtake.cassettes.outcomes import (
    COMPARISON,
    Conditions,
    Missed,
    Ran,
    Reproduction,
    control,
    count,
    effects,
    failing_us,
    headline,
    labelled,
    same,
)
from secondtake.cassettes.takes import Checked, Control, Outcome, Signature, Take
from tests.cassettes.test_takes import TAKE, TAKES

CUT = "the answer was cut before its own end (reset)"


@dataclass(frozen=True, slots=True)
class Asked:
    """A live call."""

    seq: int
    infrastructure: str | None = None
    mismatch: bool = False
    retired: bool = False
    incompatible: str | None = None
    forwarded: str = "m-2026-01-01"
    served: tuple[str, ...] = ("m-2026-01-01",)


def event(kind: EventKind, at_us: int, **data: object) -> Event:
    return Event(kind, 0, at_us, 1, "m", data)  # type: ignore[arg-type]  # plain values


LOG = [
    event(EventKind.TOOL_CALL, 100, tool="bash"),
    event(EventKind.TOOL_RESULT, 200, tool="bash"),
    event(EventKind.TOOL_CALL, 300, tool="edit"),
    event(EventKind.TOOL_RESULT, 400, tool="edit"),
    event(EventKind.STOP, 500, reason="end", last_exchange=2),
]
RED = Checked("green", "tests", "acceptance", False, "t.py::test_a failed", 1, "1", "t.py::test_a")
OK = replace(RED, held=True, evidence="exit 0", exit_class="0", first="")
INCIDENT = Signature.of((("exit", "1"), ("first", "t.py::test_a"), ("tool", "edit"), ("stop", "end")))
FAILED = Ran(checks=(RED,), calls=(Asked(1), Asked(2)), events=LOG, incident=INCIDENT)


class TestOutcome:
    def test_all_checks_hold(self) -> None:
        """DESIGN 6: a pass."""
        made = count(replace(FAILED, checks=(OK, replace(OK, name="b"))))
        assert (made.outcome, made.reason, made.signature, made.invalid) == (Outcome.PASS, "all 2 checks hold", None, "")

    def test_a_failure_with_the_incidents_signature_is_the_same(self) -> None:
        """Whose condition, where the fixture states one, holds too."""
        made = count(FAILED)
        assert (made.outcome, made.signature) == (Outcome.SAME, INCIDENT)
        assert made.reason == "as in the incident, `green` does not hold: t.py::test_a failed"
        condition = Checked("red", "tests", "failure", True, "", 1)
        assert count(replace(FAILED, checks=(condition, RED))).outcome is Outcome.SAME
        absent = count(replace(FAILED, checks=(replace(condition, held=False, evidence="exit 0"), RED)))
        assert (absent.outcome, absent.reason) == (
            Outcome.OTHER,
            "`green` does not hold: t.py::test_a failed; the incident's `red` is not there: exit 0",
        )

    def test_any_other_failure_is_another_and_says_how(self) -> None:
        """Other test, other end, other last step."""
        made = count(replace(FAILED, checks=(replace(RED, first="t.py::test_b"),)))
        assert (made.outcome, made.reason.split("; ")[1]) == (Outcome.OTHER, "first t.py::test_b, not t.py::test_a")
        assert count(replace(FAILED, stopped="--max-calls 2: 2 were made")).reason.endswith("stop max-calls, not end")

    def test_a_model_that_never_answers_is_no_failure_of_the_models(self) -> None:
        """DESIGN 6: a time-out that ended the run is the infrastructure's, also where it was the take's own time that was over."""
        late = replace(FAILED, calls=(), stopped="--max-seconds 15: the agent was ended", agent_status=143)
        assert (made := count(replace(late, waited=True))).outcome is Outcome.INFRASTRUCTURE
        assert (made.reason, made.invalid) == (
            "the run ended because of the infrastructure: no answer to a model call within the time of the take",
            "",
        )
        assert count(late).invalid == "not asked: no model call left; the agent ended with 143"

    def test_an_agent_that_came_to_no_good_end_is_said_to(self) -> None:
        """Issue 6: a crash, or a rule that ended it, is the first thing a reader must know of a failure."""
        assert count(replace(FAILED, agent_status=137)).reason.startswith("the agent ended with 137; as in the incident, ")
        late = "--max-seconds 15: the agent was ended, it had not ended by itself"
        assert count(replace(FAILED, stopped=late, agent_status=143)).reason.startswith(f"stopped by {late}; `green` does not hold")
        assert not count(replace(FAILED, agent_status=0)).reason.startswith("the agent")

    def test_parts_that_the_fixture_leaves_out_are_not_compared(self) -> None:
        """A person may loosen the signature, knowingly; an empty one is nobody's."""
        loose = Signature.of((("exit", ""), ("first", "t.py::test_a"), ("tool", ""), ("stop", "")))
        assert count(replace(FAILED, incident=loose, stopped="--max-calls 2: x")).outcome is Outcome.SAME
        assert not same(Signature.of((("exit", ""),)), INCIDENT)
        unknown = count(replace(FAILED, incident=None))
        assert (unknown.outcome, unknown.reason.split("; ")[1]) == (
            Outcome.OTHER,
            "the fixture does not say what the incident's failure was",
        )

    @pytest.mark.parametrize(
        ("incident", "found", "alike"),
        [
            ("tests/test_a.py::test_b", "tests.test_a::test_b", True),
            ("test_b", "tests/test_a.py::test_b", True),
            ("test_b[1]", "tests/test_a.py::test_b[2]", False),
            ("tests/test_a.py::test_b", "tests/test_b.py::test_b", False),
            ("error: no", "a.c:N: error: no", False),
            ("check only src", "check no secrets", False),
        ],
    )
    def test_a_test_is_the_same_however_its_program_writes_it(self, incident: str, found: str, alike: bool) -> None:
        """The incident was told in text, the take's report is XML; a person wrote the short name."""
        assert same(Signature.of((("exit", "1"), ("first", incident))), Signature.of((("exit", "1"), ("first", found)))) is alike

    def test_a_check_that_could_not_be_judged_does_not_pass(self) -> None:
        """And no acceptance at all passes nothing."""
        made = count(replace(FAILED, checks=(OK, replace(OK, name="b", held=None, evidence="flaky: 1 of 2"))))
        assert made.outcome is Outcome.OTHER
        assert made.reason.startswith("`b` could not be judged: flaky: 1 of 2")
        assert count(replace(FAILED, checks=())).reason == "the fixture has no acceptance check, so nothing can pass"

    @pytest.mark.parametrize("fault", ["429 from the provider", "503 from the provider", "no answer in time", CUT])
    def test_a_run_that_ended_for_the_infrastructure_is_not_the_models(self, fault: str) -> None:
        """DESIGN 6: whatever the workspace looks like then."""
        for checks in ((RED,), (OK,)):
            made = count(replace(FAILED, checks=checks, calls=(Asked(1), Asked(2, fault))))
            assert (made.outcome, made.reason) == (Outcome.INFRASTRUCTURE, f"the run ended because of the infrastructure: {fault}")

    def test_a_fault_the_agent_got_over_is_an_event_and_the_take_counts(self) -> None:
        """A 429, a retry, an answer."""
        assert count(replace(FAILED, calls=(Asked(1, "429 from the provider"), Asked(2)))).outcome is Outcome.SAME

    def test_a_side_call_ends_nothing(self) -> None:
        """The log says which call the run ended with; a title that failed later is none."""
        assert count(replace(FAILED, calls=(Asked(1), Asked(2), Asked(3, "503 from the provider")))).outcome is Outcome.SAME

    def test_a_stopping_rule_or_the_agent_is_no_infrastructure(self) -> None:
        """What we cut off, and what the agent cut off, is theirs to answer for."""
        cut = replace(FAILED, calls=(Asked(2, CUT),), stopped="--max-seconds 9: 9.1 have passed", incident=None)
        assert count(cut).outcome is Outcome.OTHER
        assert count(replace(FAILED, calls=(Asked(2, "the agent left before an answer came"),))).outcome is Outcome.SAME

    def test_a_miss_before_the_failing_step_contaminates(self) -> None:
        """DESIGN 6: a channel other than the model's; after it, or in telemetry, it changed nothing."""
        early = Missed(Channel.INDEX, 150, "https://index.example/simple/x/")
        made = count(replace(FAILED, misses=(early, Missed(Channel.WEB, 160))))
        assert made.outcome is Outcome.CONTAMINATED
        assert made.reason == (
            "index was asked for what the cassette does not have (https://index.example/simple/x/), and 1 more, before the step that failed"
        )
        for miss in (replace(early, at_us=450), replace(early, channel=Channel.TELEMETRY), replace(early, channel=Channel.MODEL)):
            assert count(replace(FAILED, misses=(miss,))).outcome is Outcome.SAME
        assert count(replace(FAILED, misses=(early,), failing_us=120)).outcome is Outcome.SAME

    def test_a_pass_is_not_contaminated(self) -> None:
        """What was missing did not keep it from passing."""
        assert count(replace(FAILED, checks=(OK,), misses=(Missed(Channel.WEB, 1),))).outcome is Outcome.PASS

    def test_the_failing_step_is_the_last_that_may_have_changed_anything(self) -> None:
        """A call whose result was never sent back may have been at work until the end."""
        assert failing_us(FAILED) == 400
        assert failing_us(replace(FAILED, events=LOG[:3])) > 10**15
        assert failing_us(replace(FAILED, events=LOG[4:])) == 500


class TestInvalid:
    @pytest.mark.parametrize(
        ("changes", "why"),
        [
            (
                {"calls": (Asked(1, mismatch=True, served=("other",)), Asked(2))},
                "mismatch: another model answered than was asked (other for",
            ),
            ({"calls": (Asked(1, retired=True),)}, "retired: the provider does not know m-2026-01-01"),
            ({"calls": (Asked(1, incompatible="400: no such parameter"),)}, "refused: the provider would not take a call"),
            ({"calls": (), "unsent": ("no pin for m-old",)}, "not sent: no pin for m-old"),
            ({"calls": (Asked(1),), "unsent": ("no pin for m-small",)}, "not sent: no pin for m-small"),
            ({"calls": (), "agent_status": 127}, "not asked: no model call left; the agent ended with 127"),
        ],
    )
    def test_a_take_that_says_nothing_of_its_model_is_invalid(self, changes: dict[str, object], why: str) -> None:
        """DESIGN 5: a mismatch makes the take invalid, not failed; a retired pin is retired, not failed."""
        assert count(replace(FAILED, **changes)).invalid.startswith(why)  # type: ignore[arg-type]  # the fields are named above

    def test_one_that_was_refused_after_it_had_answered_is_judged(self) -> None:
        """A conversation that grew too long is the model's to answer for."""
        assert count(replace(FAILED, calls=(Asked(1), Asked(2, incompatible="400: too long")))).invalid == ""

    def test_one_that_never_got_an_answer_is_infrastructure_not_invalid(self) -> None:
        """It is run again."""
        made = count(replace(FAILED, calls=(Asked(2, "503 from the provider"),)))
        assert (made.outcome, made.invalid) == (Outcome.INFRASTRUCTURE, "")


HELD = Conditions(pin_classes={"m": "snapshot"}, tier="sealed")


class TestControl:
    def test_nothing_live_but_the_model_under_a_seal_is_controlled(self) -> None:
        """DESIGN 6: pin class content or snapshot, no provider-side effect, an equal environment."""
        for conditions in (
            HELD,
            replace(HELD, tier="sealed-root", misses={"telemetry": 2}),
            replace(HELD, pin_classes={"m": "content", "n": "snapshot"}),
        ):
            assert control(conditions) == (Control.CONTROLLED, ())

    @pytest.mark.parametrize(
        ("changes", "phrase"),
        [
            ({"live": {"web": 2, "index": 1}}, "index (1 request) answered live"),
            ({"misses": {"web": 1}}, "web (1 request) missed"),
            ({"tool_effects": {"web_search": 2}}, "web_search (2 calls) run by the provider"),
            ({"pin_classes": {"m": "versioned"}}, "model m is held by versioned only"),
            ({"pin_classes": {}}, "model not pinned"),
            ({"unverified": 1}, "who answered is not known of 1 call"),
            ({"envelope_differs": ("environment.kernel",)}, "envelope differs: environment.kernel"),
            ({"tier": "fenced"}, "seal fenced: TCP is confined, UDP is not"),
            ({"tier": "observed"}, "seal observed: a bypass would have been seen, none was"),
        ],
    )
    def test_what_was_not_held_is_named_with_its_count(self, changes: dict[str, object], phrase: str) -> None:
        """`partially controlled`, and which channels."""
        label, phrases = control(replace(HELD, **changes))  # type: ignore[arg-type]  # the fields are named above
        assert (label, phrases[0]) == (Control.PARTIALLY, phrase)
        assert labelled(label, phrases).startswith(f"partially controlled: {phrase}")

    @pytest.mark.parametrize(
        ("changes", "phrase"),
        [
            ({"tier": "cooperative"}, "seal cooperative: a bypass cannot be excluded"),
            ({"tier": ""}, "seal none: a bypass cannot be excluded"),
            ({"tier": "observed", "bypasses": ("tcp 203.0.113.7:443",)}, "bypass not refused: tcp 203.0.113.7:443"),
            ({"passed_through": {"pinned.example": 3}}, "pinned.example (3 connections) tunnelled unread"),
        ],
    )
    def test_where_a_bypass_cannot_be_excluded_it_is_uncontrolled(self, changes: dict[str, object], phrase: str) -> None:
        """STATISTICS 3."""
        label, phrases = control(replace(HELD, **changes))  # type: ignore[arg-type]  # the fields are named above
        assert (label, phrases[0]) == (Control.UNCONTROLLED, phrase)

    def test_what_the_provider_ran_is_counted_from_the_log(self) -> None:
        """As a call, as a signal, once."""
        log = [
            event(EventKind.TOOL_CALL, 1, tool="web_search", server_side=True),
            event(EventKind.SIGNAL, 1, signal="provider_side_effect", detail="web_search"),
            event(EventKind.SIGNAL, 1, signal="provider_side_effect", detail="code_execution"),
            event(EventKind.TOOL_CALL, 1, tool="bash", server_side=False),
        ]
        assert effects(log) == {"web_search": 1, "code_execution": 1}


def takes(*outcomes: Outcome, **changes: object) -> list[Take]:
    return [replace(TAKE, outcome=outcome, **changes) for outcome in outcomes]  # type: ignore[arg-type]  # the fields are Take's


class TestHeadline:
    def test_a_failure_that_came_again_under_control_is_reproduced(self) -> None:
        """DESIGN 6: REPRODUCED k/n, and nothing more to be said."""
        made = headline(takes(Outcome.SAME, Outcome.SAME, Outcome.PASS, Outcome.OTHER))
        assert (made.text, made.reproduction, made.study) == ("REPRODUCED 2/4 (same signature)", Reproduction.REPRODUCED, "")

    def test_failures_with_other_signatures_are_not_called_the_same_signature(self) -> None:
        """A fixture may name no part of it, and then any failure in which its checks hold is the incident's."""
        hung = Signature.of((("exit", "1"), ("first", "x"), ("tool", "run"), ("stop", "max-seconds")))
        made = headline([*takes(Outcome.SAME, Outcome.SAME, signature=INCIDENT), *takes(Outcome.SAME, signature=hung)])
        assert (made.reproduction, made.text) == (Reproduction.REPRODUCED, "REPRODUCED 3/3 (same failure, 2 signatures)")

    @pytest.mark.parametrize(
        ("outcomes", "text"),
        [
            ((Outcome.PASS, Outcome.PASS), "NOT REPRODUCED"),
            ((Outcome.PASS, Outcome.OTHER), "DIFFERENT FAILURE"),
            ((Outcome.INFRASTRUCTURE,), "NOT REPRODUCED"),
            ((), "NOT REPRODUCED"),
        ],
    )
    def test_otherwise_it_is_a_comparison_study(self, outcomes: tuple[Outcome, ...], text: str) -> None:
        """Whatever was controlled."""
        made = headline(takes(*outcomes))
        assert (made.text, made.study) == (text, f"{COMPARISON}.")

    def test_what_stayed_live_makes_it_a_study_that_names_it(self) -> None:
        """One take that was not held is enough."""
        loose = takes(Outcome.SAME, control=Control.PARTIALLY, live=("web (2 requests) answered live",))
        made = headline([*takes(Outcome.SAME), *loose])
        assert (made.text, made.study) == (
            "REPRODUCED 2/2 (same signature)",
            "Comparison study, not proof of a model regression. Not held: web (2 requests) answered live.",
        )

    def test_takes_that_do_not_count_are_not_counted(self) -> None:
        """Contaminated, infrastructure, invalid, warm-up."""
        others = [
            *takes(Outcome.CONTAMINATED, Outcome.INFRASTRUCTURE),
            *takes(Outcome.SAME, warm_up=True),
            *takes(Outcome.SAME, invalid="mismatch"),
        ]
        made = headline([*takes(Outcome.SAME, Outcome.PASS), *others])
        assert (made.reproduced, made.counted) == (1, 2)

    @given(st.lists(TAKES, max_size=5))
    def test_it_never_claims_more_than_happened(self, given_: list[Take]) -> None:
        """Only a same failure under control goes without the sentence."""
        made = headline(given_)
        assert made.reproduced <= made.counted <= len(given_)
        if not made.study:
            assert all(take.control is Control.CONTROLLED for take in given_ if take.counts)
            assert made.reproduction is Reproduction.REPRODUCED
