"""From what the wire saw to why a run is not clean."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from secondtake.cassettes.errors import NotStored
from secondtake.cassettes.exchange import Answered, Channel, Ending
from secondtake.harness.judge import record_problems, replay_problems, retake_problems
from secondtake.harness.results import LiveCall, Problem, Verdict, worst
from secondtake.proxy.outcome import Outcome, TlsFailure

BUNDLE = Path("/run/bundle.pem")


def busy(**changes: object) -> Outcome:
    """An outcome of one model call, and what `changes` adds."""
    outcome = Outcome(requests=1)
    outcome.answered[Answered.LIVE] += 1
    outcome.channels[Channel.MODEL] += 1
    outcome.endings[Ending.COMPLETE] += 1
    for name, value in changes.items():
        setattr(outcome, name, value)
    return outcome


def only(problems: tuple[Problem, ...]) -> Problem:
    """The one problem."""
    (problem,) = problems
    return problem


def test_a_plain_recording_has_no_problem() -> None:
    """A clean run says nothing."""
    assert record_problems(busy(), ("claude",), BUNDLE) == ()


def test_a_full_disk_makes_it_a_matter_of_the_store() -> None:
    """B-05, issue 2 bad input: the recording ends as record-failed with the reason, the agent's traffic went on, the exit code says so."""
    found = only(record_problems(busy(failed=NotStored("cassette `x`: No space left on device", reason="ENOSPC")), ("pip",), BUNDLE))
    assert found.verdict is Verdict.STORE
    assert "(ENOSPC)" in found.message
    assert "traffic went on" in found.message
    assert found.hint


def test_each_distrusting_client_is_told_its_variable_once() -> None:
    """Issue 2 bad input: client that does not trust the CA (say which variable that tool reads). Forty retries are one line."""
    failures = [TlsFailure("api.provider.example", "unknown ca", "git/2.39")] * 40
    found = only(record_problems(busy(tls_failures=failures), ("git",), BUNDLE))
    assert found.verdict is Verdict.DIVERGED
    assert found.hint is not None
    assert "GIT_SSL_CAINFO" in found.hint
    assert str(BUNDLE) in found.hint


def test_a_client_that_leaves_after_the_handshake_may_be_one_that_distrusts() -> None:
    """The same for git on GnuTLS, which verifies when the handshake is done. Of others it is a note, and nothing of one that was heard."""
    failures = [TlsFailure("files.example", "closed without a request", client) for client in ("git/2.39", "curl/7.88", "agent/1")]
    outcome = busy(silent=failures, trusting={("files.example", "agent/1")})
    told = [(problem.kind, problem.verdict) for problem in record_problems(outcome, ("x",), BUNDLE)]
    assert told == [("tls-failed", Verdict.DIVERGED), ("silent", Verdict.CLEAN)]


def test_an_unknown_client_is_taken_for_the_agent() -> None:
    """The same: where the connection says nothing of its client, the command line may."""
    found = only(record_problems(busy(tls_failures=[TlsFailure("index.example", "unknown ca", "")]), ("/usr/bin/npm", "ci"), BUNDLE))
    assert "NODE_EXTRA_CA_CERTS" in str(found.hint)


@pytest.mark.parametrize(
    ("outcome", "agent", "cause"),
    [
        (Outcome(), ("./agent",), "`agent` made no request"),
        (Outcome(), ("/usr/bin/node", "x.js"), "NODE_USE_ENV_PROXY=1"),
        (Outcome(), (), "no client came"),
    ],
)
def test_an_empty_recording_names_the_likely_cause(outcome: Outcome, agent: tuple[str, ...], cause: str) -> None:
    """T-O2."""
    found = only(record_problems(outcome, agent, BUNDLE))
    assert (found.kind, found.verdict) == ("nothing-captured", Verdict.DIVERGED)
    assert cause in f"{found.message} {found.hint}"


def test_an_empty_recording_of_a_distrusting_client_says_that() -> None:
    """T-O2: the cause is known then."""
    outcome = Outcome(tls_failures=[TlsFailure("api.provider.example", "unknown ca", "")])
    kinds = {problem.kind: problem.message for problem in record_problems(outcome, ("x",), BUNDLE)}
    assert "no client trusted our certificate" in kinds["nothing-captured"]


def test_passed_through_hosts_are_listed_as_not_captured() -> None:
    """T-O6: a pinned client is reported as such; asked for with --passthrough, it is no fault."""
    outcome = busy()
    outcome.passed_through["pinned.example"] += 3
    found = only(record_problems(outcome, ("x",), BUNDLE))
    assert found.verdict is Verdict.CLEAN
    assert "not captured" in found.message
    assert "3 pinned.example" in found.message


def test_exchanges_that_were_cut_short_are_counted() -> None:
    """Issue 2, item 3: kept as cut short, and said."""
    outcome = busy()
    outcome.endings[Ending.CLIENT_LEFT] += 2
    assert only(record_problems(outcome, ("x",), BUNDLE)).message == "kept as they were cut short: 2 client-left"


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"not_http": [("db.example", b"\0")]}, Verdict.DIVERGED),
        ({"blocked": ["192.0.2.1:443"]}, Verdict.DIVERGED),
        ({"crashed": ["KeyError: x"]}, Verdict.FAULT),
        ({"unreachable": [("https://down.example/", "refused")]}, Verdict.CLEAN),
        ({"strangers": 2}, Verdict.CLEAN),
        ({"notes": ["a proxy was left out"]}, Verdict.CLEAN),
    ],
)
def test_everything_the_wire_saw_is_said(change: dict[str, object], verdict: Verdict) -> None:
    """T-Q1: a non-zero exit and a named reason; what is only to know is a note."""
    problems = record_problems(busy(**change), ("x",), BUNDLE)
    assert problems
    assert worst(problems) is verdict


def test_damage_in_a_replay_is_a_matter_of_the_store() -> None:
    """DESIGN 4: damage is an error, never absent."""
    found = only(replay_problems(busy(damaged=["body 7 is not what its digest says"]), ("x",), BUNDLE, recorded=1)[:1])
    assert (found.kind, found.verdict) == ("damaged", Verdict.STORE)


def test_counts_that_do_not_add_up_are_a_fault_of_ours() -> None:
    """T-Q3: exact, normalised, derived and miss add up to the requests seen on the socket."""
    outcome = Outcome(requests=2)
    outcome.answered[Answered.EXACT] += 1
    assert only(replay_problems(outcome, ("x",), BUNDLE, recorded=1)).verdict is Verdict.FAULT


def test_a_live_answer_in_a_replay_is_never_clean() -> None:
    """T-Q1: any live call."""
    assert worst(replay_problems(busy(), ("x",), BUNDLE, recorded=1)) is Verdict.DIVERGED


def test_a_replay_that_nobody_asked_is_not_clean() -> None:
    """T-Q1, zero captured: an agent that went around the proxy must not look like a good replay. An empty cassette asks for nothing."""
    assert worst(replay_problems(Outcome(), ("x",), BUNDLE, recorded=3)) is Verdict.DIVERGED
    assert replay_problems(Outcome(), ("x",), BUNDLE, recorded=0) == ()


def called(**changed: object) -> LiveCall:
    """A live call that went well, but for what is `changed`."""
    values: dict[str, object] = {
        "seq": 1,
        "step": 1,
        "adapter": "anthropic",
        "requested": ("old",),
        "forwarded": "new-20260101",
        "served": ("new-20260101",),
        "proof": "medium",
        "verified": True,
        "status": 200,
        "mismatch": False,
        "infrastructure": None,
        "incomplete": False,
        "retired": False,
        "incompatible": None,
        **changed,
    }
    return LiveCall(**values)  # type: ignore[arg-type]


def retaken(
    *calls: LiveCall, outcome: Outcome | None = None, unswapped: tuple[str, ...] = (), stopped: str | None = None
) -> dict[str, Problem]:
    """The problems of a retake with these calls, by kind."""
    made = outcome or busy()
    made.answered = Counter({Answered.LIVE: len(calls), Answered.LOCAL: len(unswapped)})
    made.requests = max(made.answered.total(), 1)
    made.answered[Answered.EXACT] += made.requests - made.answered.total()
    return {problem.kind: problem for problem in retake_problems(made, ("agent",), BUNDLE, calls, unswapped, stopped)}


def test_a_retake_whose_calls_were_answered_as_asked_has_no_problem() -> None:
    """Live model calls are what a retake is for."""
    assert retaken(called()) == {}


def test_one_answer_of_another_model_makes_a_take_invalid() -> None:
    """A-06: invalid, not failed; the line says who answered for whom, and where."""
    found = retaken(called(), called(step=7, mismatch=True, served=("cheap",)))["mismatch"]
    assert found.verdict is Verdict.DIVERGED
    assert "(cheap for new-20260101), in model call 7" in found.message


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (
            called(status=529, infrastructure="529: overloaded_error: busy"),
            "infrastructure",
            "1 529: overloaded_error: busy, in model call 1",
        ),
        (called(status=404, retired=True), "retired", "does not know new-20260101"),
        (called(status=400, incompatible="400: thinking is not supported"), "incompatible", "thinking is not supported"),
    ],
)
def test_what_the_provider_would_not_do_is_told_and_is_no_divergence(call: LiveCall, kind: str, said: str) -> None:
    """A-09, A-12: counted apart; the exit code stays the agent's."""
    problems = retaken(call)
    assert said in problems[kind].message
    assert worst(tuple(problems.values())) is Verdict.CLEAN


def test_a_refused_credential_says_how_to_give_one() -> None:
    """A replay's dummy credential does not do for a live call."""
    assert "--credential-env" in (retaken(called(status=401, incompatible="401: invalid x-api-key"))["incompatible"].hint or "")


def test_what_could_not_be_swapped_is_a_divergence_and_told_once() -> None:
    """DESIGN 5: every model-bearing place is rewritten or refused."""
    problems = retaken(unswapped=("no pin is given for `x`",) * 3)
    assert (list(problems), problems["not-swapped"].verdict) == (["not-swapped"], Verdict.DIVERGED)


def test_a_rule_that_stopped_the_take_is_a_note() -> None:
    """Issue 3.5: the take says which."""
    problems = retaken(stopped="--max-calls 2: 2 were made")
    assert (problems["stopped"].message, problems["stopped"].verdict) == ("stopped: --max-calls 2: 2 were made", Verdict.CLEAN)


def test_a_retake_that_asked_no_model_is_none() -> None:
    """T-O2: what was wanted did not happen."""
    assert retaken()["no-model-call"].verdict is Verdict.DIVERGED


def test_calls_that_the_agent_left_are_counted() -> None:
    """Nobody knows who would have answered."""
    outcome = busy(requests=2)
    outcome.answered[Answered.LIVE] = outcome.live[Channel.MODEL] = 2
    problems = retake_problems(outcome, ("agent",), BUNDLE, (called(),), (), None)
    assert [(problem.kind, problem.verdict) for problem in problems] == [("cut-short", Verdict.CLEAN)]


def test_a_channel_that_was_let_go_is_told() -> None:
    """Issue 6.2: what stayed live; it was asked for, so it is no fault."""
    outcome = busy(requests=3)
    outcome.answered[Answered.LIVE] = 3
    outcome.live.update({Channel.MODEL: 1, Channel.WEB: 2})
    (problem,) = retake_problems(outcome, ("agent",), BUNDLE, (called(),), (), None)
    assert (problem.kind, problem.verdict, problem.message) == ("live", Verdict.CLEAN, "answered live, as was asked: 2 web")
