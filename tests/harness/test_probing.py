"""One recorded decision, asked again of several models: no agent runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from secondtake.cassettes.casting import Unpinned
from secondtake.cassettes.errors import BadInput, NotFound
from secondtake.cassettes.exchange import Channel, Request
from secondtake.cassettes.redact import Redactor
from secondtake.cassettes.store import Store
from secondtake.harness.demo import CAREFUL, HASTY, TASK, script
from secondtake.harness.plan import Bounds, HostRules, Recast
from secondtake.harness.probing import decision, probe_session
from secondtake.harness.provider import CutOff, Failure, Reply, Script
from secondtake.harness.results import Arm, Probed, Verdict
from tests.cli.scenes import body, exchange, keep
from tests.harness.retakes import NAME, Scene, scene

pytestmark = pytest.mark.loopback

READ, TESTS = ("read_file", '{"path":"bill/split.py"}'), ("read_file", '{"path":"tests/test_split.py"}')


def played(folder: Path, recorded: Path, test: Callable[[Scene], Awaitable[None]], script: Script | None = None) -> None:
    """Run a test in a scene that was recorded before."""

    async def run() -> None:
        async with scene(folder, recorded=recorded, played=script) as made:
            await test(made)

    asyncio.run(run())


async def probed(made: Scene, *models: str, seq: int | None = None, step: int | None = None, repeats: int = 3, **more: object) -> Probed:
    """A probe of the incident. Credentials are on no cassette, so one is given."""
    armed = made.with_environ(REAL_KEY="sk-ant-api03-Zk3vQ9xT1mB7wL5nR2cY8dF4gH6jK0pS")
    recast = Recast(models, credential_env="REAL_KEY", **more)  # type: ignore[arg-type]
    return await probe_session(armed.stage, NAME, recast, made.rules, seq=seq, step=step, repeats=repeats)


def careful(*turns: Reply | Failure) -> Script:
    """The demo's script, in which the careful model says something else."""
    return Script(tuple(replace(one, turns=turns) if one.model == CAREFUL else one for one in script().scenes))


def add_up(arm: Arm) -> bool:
    return arm.answered + arm.refused + arm.infrastructure + arm.mismatches == arm.sent


def test_each_model_is_asked_as_often_and_its_choices_are_counted(tmp_path: Path, recorded: Path) -> None:
    """Issue 3.10: a table of the tool calls and arguments chosen, with counts; the answers are exchanges of a cassette."""

    async def test(made: Scene) -> None:
        result = await probed(made, CAREFUL, HASTY, step=2)
        assert (result.verdict, result.problems, result.name) == (Verdict.CLEAN, (), "incident-probe-1")
        assert (result.requested, result.recorded, result.step) == (HASTY, (READ,), 2)
        assert [(arm.model, arm.sent, arm.answered) for arm in result.arms] == [(CAREFUL, 3, 3), (HASTY, 3, 3)]
        careful, hasty = (arm.choices for arm in result.arms)
        assert [(choice.calls, len(choice.exchanges), choice.as_recorded) for choice in careful] == [((READ, TESTS), 3, False)]
        assert [(choice.calls, len(choice.exchanges), choice.as_recorded) for choice in hasty] == [((READ,), 3, True)]
        assert sorted(seen.call.model for seen in made.provider.seen if seen.call) == [CAREFUL] * 3 + [HASTY] * 3
        with made.stage.store.open(result.name) as kept, made.stage.store.open(NAME) as parent:
            assert (kept.meta["kind"], kept.meta["parent_root"], kept.meta["decision"]) == ("probe", parent.root, result.seq)
            assert len(kept.rows) == 6
            asked = parent.exchange(result.seq).request.body
            assert {row.request_digest for row in kept.rows} == {asked.digest}

    played(tmp_path, recorded, test)


def test_only_the_models_id_differs_from_what_was_recorded(tmp_path: Path, recorded: Path) -> None:
    """A-03: every other byte equal."""

    async def test(made: Scene) -> None:
        result = await probed(made, CAREFUL, repeats=1)
        with made.stage.store.open(NAME) as parent:
            body = parent.exchange(result.seq).request.body
            sent = parent.body(body).read(0, body.size_bytes)
        assert made.provider.seen[0].body == sent.replace(HASTY.encode(), CAREFUL.encode(), 1)

    played(tmp_path, recorded, test)


def test_the_last_decision_with_a_tool_call_is_asked_unless_told_otherwise(tmp_path: Path, recorded: Path) -> None:
    """The last answer calls nothing, so the one before it is the decision; SEQ and --step choose others."""

    async def test(made: Scene) -> None:
        with made.stage.store.open(NAME) as cassette:
            last = decision(cassette, None, None)
            assert last.step == 3
            assert decision(cassette, last.call.exchange.seq, None) == last
            assert decision(cassette, None, 3) == last
            web = next(row.seq for row in cassette.rows if str(row.channel) != "model")
            for seq, step in ((web, None), (None, 5)):
                with pytest.raises(BadInput, match="no model call"):
                    decision(cassette, seq, step)
            with pytest.raises(NotFound):
                decision(cassette, 99, None)

    played(tmp_path, recorded, test)


@pytest.mark.parametrize("turn", [Failure(529), Reply("x", broken=CutOff(2))])
def test_infrastructure_is_counted_apart_and_nothing_is_asked_twice(tmp_path: Path, recorded: Path, turn: Reply | Failure) -> None:
    """A-09: 5xx and cut streams are no choice of the model's; an arm without an answer makes the probe not clean."""

    async def test(made: Scene) -> None:
        result = await probed(made, CAREFUL, HASTY, step=1, repeats=2)
        bad, good = result.arms
        assert (bad.sent, bad.infrastructure, bad.choices) == (2, 2, ())
        assert (good.answered, add_up(bad), add_up(good)) == (2, True, True)
        assert len(made.provider.seen) == 4
        assert [problem.kind for problem in result.problems] == ["infrastructure", "no-answer"]
        assert result.verdict is Verdict.DIVERGED

    played(tmp_path, recorded, test, careful(turn))


def test_what_a_provider_refuses_is_a_row_of_its_own(tmp_path: Path, recorded: Path) -> None:
    """A3: some models refuse parameters; that is no decision."""

    async def test(made: Scene) -> None:
        result = await probed(made, CAREFUL, step=1, repeats=1)
        assert (result.arms[0].refused, result.arms[0].choices, add_up(result.arms[0])) == (1, (), True)

    played(tmp_path, recorded, test, careful(Failure(400, "temperature is not supported")))


def test_another_model_that_answers_is_in_no_choice(tmp_path: Path, recorded: Path) -> None:
    """A-06: flagged, and the probe is not clean."""
    swapped = Script(tuple(replace(one, served="cheaper-20250101") if one.model == CAREFUL else one for one in script().scenes))

    async def test(made: Scene) -> None:
        result = await probed(made, CAREFUL, step=1, repeats=2)
        assert (result.arms[0].mismatches, result.arms[0].choices, result.verdict) == (2, (), Verdict.DIVERGED)

    played(tmp_path, recorded, test, swapped)


def test_bounds_hold_for_a_probe_too(tmp_path: Path, recorded: Path) -> None:
    """Issue 3.5: what spends money has a bound; what was not asked is said."""

    async def test(made: Scene) -> None:
        result = await probed(made, CAREFUL, HASTY, step=1, repeats=5, bounds=Bounds(calls=3))
        assert len(made.provider.seen) == 3
        assert sum(arm.sent for arm in result.arms) == 3
        assert (result.stopped or "").startswith("--max-calls 3")

    played(tmp_path, recorded, test)


@pytest.mark.parametrize("models", [("careful-latest",), (CAREFUL, CAREFUL), (f"{HASTY}={CAREFUL}",)])
def test_models_that_make_no_experiment_are_refused_before_anything_is_asked(
    tmp_path: Path, recorded: Path, models: tuple[str, ...]
) -> None:
    """Issue 3.2: not held fixed, twice the same, or a map where there is nothing to map."""

    async def test(made: Scene) -> None:
        with pytest.raises((Unpinned, BadInput)):
            await probed(made, *models)
        assert (made.provider.connections_made, made.names) == (0, [NAME])

    played(tmp_path, recorded, test)


BEDROCK = "bedrock-runtime.us-east-1.amazonaws.com"
SIGNED = (
    b"AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20261130/us-east-1/bedrock/aws4_request, "
    b"SignedHeaders=content-type;host;x-amz-date, Signature=" + b"a1" * 32
)


def test_a_request_that_was_signed_is_signed_anew_for_each_model(tmp_path: Path) -> None:
    """Issue 3.1: SigV4 re-signing with credentials from the environment; the recorded signature is on no cassette."""
    sent = json.dumps({"messages": [{"role": "user", "content": [{"text": TASK}]}], "inferenceConfig": {"maxTokens": 9}}).encode()
    fields = ((b"content-type", b"application/json"), (b"x-amz-date", b"20261130T000000Z"), (b"Authorization", SIGNED))
    asked = Request("POST", "https", BEDROCK, 443, f"/model/{HASTY}/converse".encode(), fields=fields)
    kept, redactions = Redactor(key=b"k" * 32).request(asked)
    request = replace(kept, body=body(sent))
    keep(Store(tmp_path / "first"), NAME, [(exchange(1, Channel.MODEL, request, None, adapter="bedrock", redactions=redactions), [sent])])

    async def test(made: Scene) -> None:
        keys = {"AWS_ACCESS_KEY_ID": "AKIAREALKEYEXAMPLE00", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYREALKEY00"}
        recast = Recast((CAREFUL,), credential_env="AWS_ACCESS_KEY_ID", allow_unpinned=True)
        rules = HostRules(routes={BEDROCK: made.running.base_url})
        result = await probe_session(made.with_environ(**keys).stage, NAME, recast, rules, seq=1, step=None, repeats=2)
        assert [(arm.sent, arm.answered, arm.choices[0].calls) for arm in result.arms] == [
            (2, 2, (("run", '{"command":"python3 check.py"}'),))
        ]
        assert [seen.signer for seen in made.provider.seen] == ["AKIAREALKEYEXAMPLE00"] * 2
        assert {seen.target for seen in made.provider.seen} == {f"/model/{CAREFUL}/converse"}

    (tmp_path / "second").mkdir()
    played(tmp_path / "second", tmp_path / "first", test)
