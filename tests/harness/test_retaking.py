"""Retakes put together: the demo's agent against a scripted provider, in scratch copies, over TLS."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from secondtake.cassettes.casting import Unpinned
from secondtake.cassettes.errors import BadInput, NameTaken
from secondtake.cassettes.exchange import Answered, Channel
from secondtake.harness.demo import CAREFUL, HASTY, HOST, script
from secondtake.harness.demo.repository import SPLIT_FIXED
from secondtake.harness.launch import NotStarted
from secondtake.harness.plan import Bounds, HostRules, Recast, Where
from secondtake.harness.provider import Failure, Script
from secondtake.harness.results import Retaken, Verdict, WouldAct
from secondtake.harness.session import retake_session
from secondtake.proxy.policy import Pace
from tests.harness.retakes import NAME, WEB, Scene, agent, scene

pytestmark = pytest.mark.loopback

SECRET = "sk-ant-api03-Zk3vQ9xT1mB7wL5nR2cY8dF4gH6jK0pS"


def played(folder: Path, recorded: Path, test: Callable[[Scene], Awaitable[None]], script: Script | None = None) -> None:
    """Run a test in a scene that was recorded before."""

    async def run() -> None:
        async with scene(folder, recorded=recorded, played=script) as made:
            await test(made)

    asyncio.run(run())


def careful(**changed: object) -> Script:
    """The demo's script, in which the careful model is another."""
    return Script(tuple(replace(one, **changed) if one.model == CAREFUL else one for one in script().scenes))  # type: ignore[arg-type]


def kinds(result: Retaken) -> list[str]:
    return [problem.kind for problem in result.problems]


def test_only_model_calls_leave_and_the_take_replays_whole_without_anybody(tmp_path: Path, recorded: Path) -> None:
    """Issue 3: a socket-level count proves that only model calls left, only to the allowed host; a take replays offline, whole."""

    async def test(made: Scene) -> None:
        result = await made.retake(CAREFUL)
        assert (result.verdict, result.agent_status, result.problems) == (Verdict.CLEAN, 0, ())
        assert result.name == "incident-take-1"
        assert result.answered == {Answered.LIVE: 5, Answered.EXACT: 1}
        assert [(seen.method, seen.target) for seen in made.provider.seen] == [("POST", "/v1/messages")] * 5
        assert made.provider.connections_made == 5
        assert {seen.call.model for seen in made.provider.seen if seen.call} == {CAREFUL}
        assert [call.step for call in result.calls] == [1, 2, 3, 4, 5]
        assert {(call.requested, call.forwarded, call.served) for call in result.calls} == {((HASTY,), CAREFUL, (CAREFUL,))}
        await made.provider.stop()
        replayed = await made.replay(result.name)
        assert (replayed.verdict, replayed.agent_status, replayed.unplayed) == (Verdict.CLEAN, 0, ())
        assert replayed.answered == {Answered.EXACT: 6}
        assert made.provider.connections_made == 5

    played(tmp_path, recorded, test)


def test_the_take_says_who_played_and_what_it_was_made_from(tmp_path: Path, recorded: Path) -> None:
    """A-05, A-06, A-13: parent root, casting with classes and table versions; per exchange requested, forwarded, served, proof."""

    async def test(made: Scene) -> None:
        result = await made.retake(f"{HASTY}={CAREFUL}")
        with made.stage.store.open(NAME) as parent, made.stage.store.open(result.name) as take:
            meta = json.loads(json.dumps(dict(take.meta)))
            assert (meta["kind"], meta["parent"], meta["parent_root"]) == ("take", NAME, parent.root)
            assert meta["casting"]["models"] == {HASTY: CAREFUL}
            assert [(pin["id"], pin["class"]) for pin in meta["casting"]["pins"]] == [(CAREFUL, "snapshot")]
            assert meta["casting"]["tables"]["anthropic"]
            assert (meta["valid"], meta["model_calls"], meta["stopped"]) == (True, 5, None)
            for row in take.rows:
                exchange = take.exchange(row.seq)
                if row.channel is Channel.MODEL:
                    call = exchange.details["model_call"]
                    assert isinstance(call, dict)
                    assert (call["requested"], call["forwarded"], call["served"]) == ([HASTY], CAREFUL, [CAREFUL])
                    assert (call["proof"], call["mismatch"]) == ("weak", False)
                    assert "model-swap" in exchange.forwarded
                else:
                    assert (exchange.answered, "source_seq" in exchange.details) == (Answered.EXACT, True)
        assert made.stage.store.verify(result.name).faults == ()

    played(tmp_path, recorded, test)


def test_the_agent_works_in_a_scratch_copy(tmp_path: Path, recorded: Path) -> None:
    """DESIGN 6: a replay cannot hurt; the careful model's fix is in the copy, not in the workspace."""

    async def test(made: Scene) -> None:
        result = await retake_session(
            made.stage,
            NAME,
            Recast((CAREFUL,)),
            made.rules,
            agent(),
            pace=Pace.FAST,
            where=Where(copy_of=made.workspace(), keep=True),
            command="secondtake retake",
            stdout=asyncio.subprocess.DEVNULL,
        )
        assert result.ran_in is not None
        assert (result.ran_in / "bill/split.py").read_text() == SPLIT_FIXED
        assert (made.workspace() / "bill/split.py").read_text() != SPLIT_FIXED

    played(tmp_path, recorded, test)


def test_a_take_never_overwrites_another(tmp_path: Path, recorded: Path) -> None:
    """DESIGN 1: numbered, or under a name of its own, or refused before the agent starts."""

    async def test(made: Scene) -> None:
        first = await made.retake(CAREFUL, bounds=Bounds(calls=1))
        second = await made.retake(CAREFUL, bounds=Bounds(calls=1))
        assert (first.name, second.name) == ("incident-take-1", "incident-take-2")
        assert first.root != second.root
        before = len(made.provider.seen)
        with pytest.raises(NameTaken) as raised:
            await made.retake(CAREFUL, take="incident-take-1")
        assert "a take never overwrites another" in (raised.value.hint or "")
        assert len(made.provider.seen) == before
        assert made.stage.store.verify("incident-take-1").root == first.root

    played(tmp_path, recorded, test)


PRICES = f'[models."{CAREFUL}"]\ninput = 1000000.0\noutput = 1000000.0\n'


@pytest.mark.parametrize(
    ("bounds", "word", "most"),
    [
        (Bounds(calls=2), "--max-calls 2", 2),
        (Bounds(tokens=1), "--max-tokens 1", 1),
        (Bounds(cost=0.5, prices=Path("prices.toml")), "--max-cost 0.5", 1),
        (Bounds(seconds=1e-6), "--max-seconds 1e-06", 0),
    ],
)
def test_a_stopping_rule_ends_in_a_refusal_that_the_agent_understands(
    tmp_path: Path, recorded: Path, bounds: Bounds, word: str, most: int
) -> None:
    """Issue 3.5: a clean provider-shaped refusal, and the take says which; the exit code stays the agent's."""

    async def test(made: Scene) -> None:
        given = bounds
        if bounds.prices is not None:
            (tmp_path / "prices.toml").write_text(PRICES)
            given = replace(bounds, prices=tmp_path / "prices.toml")
        result = await made.retake(CAREFUL, bounds=given)
        assert (result.verdict, result.agent_status, kinds(result)[-1:]) == (Verdict.CLEAN, 1, ["stopped"])
        assert result.stopped is not None
        assert result.stopped.startswith(word)
        assert len(made.provider.seen) == len(result.calls) == most
        assert (result.used.tokens > 0) is (most > 0)
        assert (result.used.cost is not None) is (given.prices is not None)
        with made.stage.store.open(result.name) as take:
            assert take.meta["stopped"] == result.stopped
            last = take.exchange(max(row.seq for row in take.rows))
            assert last.answer is not None
            assert last.answer.status == 400
            said = json.loads(take.body(last.answer.body).read(0, last.answer.body.size_bytes))
            assert said["type"] == "error"
            assert word in said["error"]["message"]

    played(tmp_path, recorded, test)


def test_an_agent_that_asks_for_ever_after_a_stopping_rule_is_ended(tmp_path: Path, recorded: Path) -> None:
    """Issue 6.1: `[stop]` ends a take; some agents ask again for minutes."""

    async def test(made: Scene) -> None:
        again = ["sh", "-c", 'until "$@"; do :; done', "sh", *agent()]
        result = await made.retake(CAREFUL, bounds=Bounds(calls=1), command=again)
        assert len(made.provider.seen) == 1
        assert kinds(result).count("stopped") == 2
        assert result.agent_status not in {0, None}

    played(tmp_path, recorded, test)


@pytest.mark.parametrize("model", ["careful-latest", f"{HASTY}=auto"])
def test_what_is_not_held_fixed_is_refused_before_anything_is_asked(tmp_path: Path, recorded: Path, model: str) -> None:
    """Issue 3.2: alias, router and deployment are refused."""

    async def test(made: Scene) -> None:
        with pytest.raises(Unpinned):
            await made.retake(model)
        assert made.names == [NAME]
        assert made.provider.connections_made == 0

    played(tmp_path, recorded, test)


def test_an_unpinned_model_is_asked_when_allowed_and_labels_the_take(tmp_path: Path, recorded: Path) -> None:
    """Issue 3.2: --allow-unpinned labels the take."""

    async def test(made: Scene) -> None:
        result = await made.retake("careful", allow_unpinned=True)
        assert result.labels == ("unpinned: careful",)
        assert result.calls[0].served == ("careful",)
        with made.stage.store.open(result.name) as take:
            assert take.meta["labels"] == ["unpinned: careful"]

    played(tmp_path, recorded, test, careful(model="careful"))


def test_another_model_that_answers_makes_the_take_invalid(tmp_path: Path, recorded: Path) -> None:
    """A-06: a mismatch makes the take invalid, not failed."""

    async def test(made: Scene) -> None:
        result = await made.retake(CAREFUL)
        assert (result.verdict, result.agent_status) == (Verdict.DIVERGED, 0)
        assert "mismatch" in kinds(result)
        assert [call.served for call in result.mismatches] == [("cheaper-20250101",)] * 5
        with made.stage.store.open(result.name) as take:
            assert take.meta["valid"] is False

    played(tmp_path, recorded, test, careful(served="cheaper-20250101"))


@pytest.mark.parametrize("status", [429, 529])
def test_what_the_provider_cannot_do_is_infrastructure_and_is_not_tried_again(tmp_path: Path, recorded: Path, status: int) -> None:
    """A-09: 429 and 5xx are counted apart; the proxy never retries a model call by itself."""

    async def test(made: Scene) -> None:
        result = await made.retake(CAREFUL)
        assert (result.verdict, result.agent_status) == (Verdict.CLEAN, 1)
        assert [(call.status, call.mismatch) for call in result.infrastructure] == [(status, False)]
        assert kinds(result) == ["infrastructure"]
        assert len(made.provider.seen) == 1

    played(tmp_path, recorded, test, careful(turns=(Failure(status),)))


def test_a_provider_that_is_gone_is_infrastructure(tmp_path: Path, recorded: Path) -> None:
    """A-09: no connection is no model's doing."""

    async def test(made: Scene) -> None:
        await made.provider.stop()
        result = await made.retake(CAREFUL)
        assert [(call.status, call.infrastructure) for call in result.calls] == [(None, "no answer: the connection failed")]
        assert "unreachable" in kinds(result)
        assert result.verdict is Verdict.CLEAN

    played(tmp_path, recorded, test)


def test_a_model_without_an_entry_is_not_guessed(tmp_path: Path, recorded: Path) -> None:
    """DESIGN 5: a requested ID with no entry is refused, and the take is not clean."""

    async def test(made: Scene) -> None:
        result = await made.retake(f"other-20260101={CAREFUL}")
        assert (result.verdict, result.agent_status, result.calls) == (Verdict.DIVERGED, 1, ())
        assert HASTY in result.unswapped[0]
        assert made.provider.seen == []

    played(tmp_path, recorded, test)


def test_the_first_calls_are_played_and_then_the_other_model_goes_on(tmp_path: Path, recorded: Path) -> None:
    """Issue 3.9: --from-step N, and the take is whole all the same."""

    async def test(made: Scene) -> None:
        result = await made.retake(CAREFUL, from_step=2)
        assert (result.verdict, result.labels) == (Verdict.CLEAN, ("from step 2",))
        assert result.answered == {Answered.EXACT: 3, Answered.LIVE: 3}
        assert [call.step for call in result.calls] == [3, 4, 5]
        await made.provider.stop()
        replayed = await made.replay(result.name)
        assert (replayed.verdict, replayed.answered) == (Verdict.CLEAN, {Answered.EXACT: 6})

    played(tmp_path, recorded, test)


def test_a_request_that_was_not_recorded_is_a_miss_and_stays_here(tmp_path: Path, recorded: Path) -> None:
    """DESIGN 3: everything but model calls is replay."""

    async def test(made: Scene) -> None:
        result = await made.retake(CAREFUL, command=agent("/page", "/never"))
        assert result.verdict is Verdict.DIVERGED
        assert [(miss.kind, miss.url) for miss in result.misses] == [("new-resource", f"https://{WEB}/never")]
        assert {seen.method for seen in made.provider.seen} == {"POST"}

    played(tmp_path, recorded, test)


def test_to_a_gateway_the_agents_credential_never_goes(tmp_path: Path, recorded: Path) -> None:
    """Issue 3.3: --gateway URL; the old credential never goes there. Without another, none goes."""

    async def test(made: Scene) -> None:
        result = await made.retake(CAREFUL, rules=HostRules(), gateway=made.running.base_url)
        assert [(seen.status, seen.field("x-api-key"), seen.field("authorization")) for seen in made.provider.seen] == [(401, None, None)]
        assert result.labels == ("gateway",)
        assert "incompatible" in kinds(result)

    played(tmp_path, recorded, test)


@pytest.mark.parametrize("gateway", [False, True])
def test_another_credential_is_put_on_model_calls_and_kept_nowhere(tmp_path: Path, recorded: Path, gateway: bool) -> None:
    """Issue 3.8: retake with the real credential injected by the proxy; its bytes are never stored."""

    async def test(made: Scene) -> None:
        armed = made.with_environ(REAL_KEY=SECRET)
        url = made.running.base_url if gateway else None
        result = await armed.retake(CAREFUL, credential_env="REAL_KEY", gateway=url, rules=HostRules() if gateway else None)
        assert (result.verdict, result.agent_status) == (Verdict.CLEAN, 0)
        assert {seen.field("x-api-key") for seen in made.provider.seen} == {SECRET}
        kept = b"".join(path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file())
        assert SECRET.encode() not in kept
        with made.stage.store.open(result.name) as take:
            assert take.meta["credential"] == "env:REAL_KEY"

    played(tmp_path, recorded, test)


def test_the_agent_does_not_find_the_credential_that_is_put_on_model_calls(tmp_path: Path, recorded: Path) -> None:
    """Issue 5 (credentials): a shell of a model that is on trial must not print it; what stands in its place opens nothing."""

    async def test(made: Scene) -> None:
        seen = tmp_path / "environment"
        told = ["sh", "-c", f'env > {seen}; exec "$@"', "sh", *agent()]
        result = await made.with_environ(REAL_KEY=SECRET).retake(CAREFUL, credential_env="REAL_KEY", command=told)
        assert (result.verdict, result.agent_status) == (Verdict.CLEAN, 0)
        assert SECRET not in seen.read_text()

    played(tmp_path, recorded, test)


def test_a_credential_from_a_command(tmp_path: Path, recorded: Path) -> None:
    """Issue 3.8: --credential-command; asked once, not once a call."""

    async def test(made: Scene) -> None:
        asked = tmp_path / "asked"
        result = await made.retake(CAREFUL, credential_command=f"echo x >> {asked}; echo {SECRET}")
        assert result.verdict is Verdict.CLEAN
        assert {seen.field("x-api-key") for seen in made.provider.seen} == {SECRET}
        assert asked.read_text() == "x\n"

    played(tmp_path, recorded, test)


def test_without_a_scratch_copy_nothing_runs_where_tools_are_offered(tmp_path: Path, recorded: Path) -> None:
    """DESIGN 6: exit 105, with a line that can be pasted; what another model does with the tools cannot be known."""

    async def test(made: Scene) -> None:
        with pytest.raises(WouldAct, match="is offered tools") as raised:
            await retake_session(
                made.stage,
                NAME,
                Recast((CAREFUL,)),
                made.rules,
                ["make", "it so"],
                pace=Pace.FAST,
                where=Where(),
                command="secondtake retake x",
            )
        assert raised.value.hint == "secondtake retake x --scratch -- make 'it so'"
        assert made.names == [NAME]

    played(tmp_path, recorded, test)


def test_an_agent_that_cannot_start_leaves_no_take(tmp_path: Path, recorded: Path) -> None:
    """Issue 2, bad input: nothing begun, nothing left behind."""

    async def test(made: Scene) -> None:
        program = tmp_path / "program"
        program.write_text("#!/nonexistent/interpreter\n")
        program.chmod(0o755)
        with pytest.raises(NotStarted):
            await retake_session(
                made.stage,
                NAME,
                Recast((CAREFUL,)),
                made.rules,
                [str(program)],
                pace=Pace.FAST,
                where=Where(in_place=True),
                command="secondtake retake",
            )
        assert made.names == [NAME]

    played(tmp_path, recorded, test)


def test_a_cost_that_cannot_be_bounded_is_said_before_anything_is_asked(tmp_path: Path, recorded: Path) -> None:
    """Issue 3.5: unknown prices are unknown, never nothing."""

    async def test(made: Scene) -> None:
        (tmp_path / "prices.toml").write_text('[models."other"]\ninput = 1.0\noutput = 1.0\n')
        with pytest.raises(BadInput, match="--max-cost cannot be kept"):
            await made.retake(CAREFUL, bounds=Bounds(cost=1.0, prices=tmp_path / "prices.toml"))
        assert made.provider.connections_made == 0

    played(tmp_path, recorded, test)


def test_the_host_of_a_loopback_gateway_needs_no_leave(tmp_path: Path, recorded: Path) -> None:
    """C-04 judges what an agent may reach; a gateway is what the person named."""

    async def test(made: Scene) -> None:
        result = await made.with_environ(REAL_KEY=SECRET).retake(
            CAREFUL, rules=HostRules(), gateway=made.running.base_url, credential_env="REAL_KEY"
        )
        assert {seen.field("host") for seen in made.provider.seen} == {made.running.base_url.removeprefix("https://")}
        assert HOST not in {seen.field("host") for seen in made.provider.seen}
        assert result.verdict is Verdict.CLEAN

    played(tmp_path, recorded, test)
