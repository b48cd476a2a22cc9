"""A probe: one recorded decision, asked again of several models, without running an agent.

The recorded request goes through our own proxy as often as there are answers wanted; the proxy gives each to the next model in turn,
so that what changes at the provider meanwhile meets all of them. The requests are equal, so it does not matter which goes to whom.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import aiohttp
from yarl import URL

from secondtake.cassettes import adapters
from secondtake.cassettes.adapters import CallKind, ModelAnswer
from secondtake.cassettes.casting import Casting
from secondtake.cassettes.errors import BadInput
from secondtake.harness.cast import Cast, asked_in, cast_of, casting_of
from secondtake.harness.equipment import equipped
from secondtake.harness.judge import retake_problems
from secondtake.harness.replaying import opened, recorded_start
from secondtake.harness.results import Arm, Choice, LiveCall, Probed, Problem, Verdict
from secondtake.harness.retaking import Retaking, attach, begin_take, live_call, retaking_proxy
from secondtake.harness.toolcalls import ModelCall, kept_decoded, model_exchanges, read_call
from secondtake.proxy.framing import hop_names
from secondtake.proxy.policy import Pace
from secondtake.proxy.retake import Claim, Outgoing, Retake

if TYPE_CHECKING:
    from secondtake.cassettes.cassette import Cassette
    from secondtake.cassettes.exchange import Request
    from secondtake.harness.equipment import Equipment
    from secondtake.harness.plan import HostRules, Recast, Stage
    from secondtake.proxy.outcome import Outcome

AT_ONCE = 4
"""How many calls are under way together, unless asked otherwise."""

ANSWER_S = 1800.0
"""How long an answer may take; a model may think for many minutes."""


@dataclass(slots=True)
class Turns(Retake):
    """Gives each call to the next model in turn."""

    arms: tuple[Casting, ...] = ()

    def prepare(self, claim: Claim, request: Request, content: bytes) -> Outgoing | str:
        """As another model gets it: which one, the step decides."""
        self.casting = self.arms[(claim.step - 1) % len(self.arms)]
        return Retake.prepare(self, claim, request, content)  # a slotted dataclass is made twice, so `super()` names the first


@dataclass(frozen=True, slots=True)
class Decision:
    """What is asked again."""

    call: ModelCall
    sent: bytes
    """The request's body as it was kept."""
    step: int
    """The how-manieth model call of the recording it was, from 1."""


def decision(cassette: Cassette, seq: int | None, step: int | None) -> Decision:
    """Find the decision: an exchange by its number, the `step`-th model call, or the last one in which the model called a tool.

    Raises:
        BadInput: there is no such model call; NotFound: no such exchange.
    """
    if seq is not None:
        cassette.exchange(seq)
    steps = 0
    last: Decision | None = None
    for exchange in model_exchanges(cassette):
        call = read_call(cassette, exchange)
        if call is None or call.request.kind is not CallKind.COMPLETION:
            continue
        steps += 1
        wanted = exchange.seq == seq if seq is not None else steps == step if step is not None else bool(call.answer and call.answer.calls)
        if wanted:
            body = exchange.request.body
            last = Decision(call, cassette.body(body).read(0, body.size_bytes), steps)
    if last is None:
        what = (
            f"exchange {seq} is"
            if seq is not None
            else f"there are {steps}, so {step} is"
            if step is not None
            else "none with a tool call is"
        )
        raise BadInput(f"{cassette.name}: {what} no model call", hint=f"secondtake events {cassette.name}")
    return last


async def probe_session(
    stage: Stage,
    name: str,
    recast: Recast,
    wire: HostRules,
    *,
    seq: int | None,
    step: int | None,
    repeats: int,
    at_once: int = AT_ONCE,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Probed:
    """Ask each of the models `repeats` times, and say what they chose.

    Raises:
        BadInput: a model is not held fixed, or there is no such decision; NotFound, Corrupt, NameTaken, NotStored as for a retake.
    """
    with opened(stage, name) as cassette, equipped(stage, recorded=recorded_start(cassette)) as equipment:
        asked = decision(cassette, seq, step)
        cast = _cast(stage, cassette, recast, equipment)
        retake = cast.retake
        assert isinstance(retake, Turns)
        proxy = retaking_proxy(stage, wire, equipment, cassette, cast, Pace.FAST, port=0)
        port = await proxy.start()
        try:
            taking = begin_take(stage, cassette, cast, equipment, port, name=recast.name, agent=(), cwd=stage.cwd, wire=wire, kind="probe")
            attach(proxy, taking, equipment, port, stage.cwd)
            await _ask(asked, equipment, port, repeats * len(retake.arms), at_once, progress)
        finally:
            outcome = await proxy.stop()
        return _close(stage, asked, taking, outcome, equipment)


def _cast(stage: Stage, cassette: Cassette, recast: Recast, equipment: Equipment) -> Cast:
    if any("=" in model for model in recast.models):
        raise BadInput("a probe asks each --model the same request: give PIN, not REQUESTED=PIN")
    if len(set(recast.models)) != len(recast.models):
        raise BadInput("a --model is given twice", hint="--repeats says how often each is asked")
    places = asked_in(cassette)
    arms = tuple(casting_of(stage, recast, places, [model]) for model in recast.models)
    first = cast_of(stage, cassette, replace(recast, models=recast.models[:1]), equipment.redactor, kind=Turns)
    assert isinstance(first.retake, Turns)
    first.retake.arms = arms
    first.retake.stops.refuse_unpriced(recast.models)
    return Cast(recast, first.retake, arms)


async def _ask(asked: Decision, equipment: Equipment, port: int, number: int, at_once: int, progress: Callable[[int, int], None]) -> None:
    """Send the recorded request so often. Whatever comes back is read and dropped: the proxy keeps it."""
    request = asked.call.exchange.request
    gone = {*hop_names(request.fields), b"host", b"content-length", b"proxy-authorization", b"expect"}
    if kept_decoded(asked.call.exchange, "request"):
        gone.add(b"content-encoding")
    fields = [(field.decode("latin-1"), value.decode("latin-1")) for field, value in request.fields if field.lower() not in gone]
    url = URL(request.url, encoded=True)
    context = ssl.create_default_context(cafile=str(equipment.bundle))
    credential = equipment.credential
    via = f"http://{credential}@127.0.0.1:{port}" if credential else f"http://127.0.0.1:{port}"
    limit = asyncio.Semaphore(at_once)
    done = 0

    async def one(client: aiohttp.ClientSession) -> None:
        nonlocal done
        async with limit:
            try:
                async with client.request(request.method, url, headers=fields, data=asked.sent, proxy=via, ssl=context) as response:
                    async for _ in response.content.iter_any():
                        pass
            except (aiohttp.ClientError, TimeoutError):
                pass  # a cut stream: the proxy has kept and judged it
            done += 1
            progress(done, number)

    connector = aiohttp.TCPConnector(force_close=True)
    timeout = aiohttp.ClientTimeout(total=None, sock_read=ANSWER_S)
    skipped = ["User-Agent", "Accept", "Accept-Encoding", "Content-Type"]
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, auto_decompress=False, skip_auto_headers=skipped, trust_env=False
    ) as client:
        await asyncio.gather(*(one(client) for _ in range(number)))


def _close(stage: Stage, asked: Decision, taking: Retaking, outcome: Outcome, equipment: Equipment) -> Probed:
    retake = taking.cast.retake
    assert isinstance(retake, Turns)
    calls = tuple(sorted(map(live_call, retake.calls), key=lambda call: call.step))
    stopped = retake.tripped.message if retake.tripped is not None else None
    problems = list(retake_problems(outcome, (), equipment.bundle, calls, tuple(retake.refused), stopped))
    if asked.call.exchange.redactions and any(redaction.place == "body" for redaction in asked.call.exchange.redactions):
        problems.append(Problem("redacted", "the recorded prompt held secrets; placeholders of the same length were sent in their place"))
    root = taking.writer.close(
        meta={
            "ended": stage.now().isoformat(timespec="seconds"),
            "valid": not any(call.mismatch for call in calls),
            "model_calls": len(calls),
            "decision": asked.call.exchange.seq,
            "step": asked.step,
            "stopped": stopped,
            "tokens": taking.cast.used.tokens,
            "uncounted": taking.cast.used.uncounted,
            "cost": taking.cast.used.cost,
        }
    )
    recorded = _choice(asked.call.answer)
    with closing(stage.store.open(taking.writer.name)) as kept:
        arms = tuple(_arm(kept, casting, calls, recorded) for casting in retake.arms)
    problems += [
        Problem("no-answer", f"{arm.model} gave no answer that counts", "see the exchanges of the probe's cassette", Verdict.DIVERGED)
        for arm in arms
        if arm.sent and not arm.answered
    ]
    failed = outcome.failed or taking.writer.failed
    return Probed(
        name=taking.writer.name,
        parent=taking.cassette.name,
        root=None if failed else root,
        seq=asked.call.exchange.seq,
        step=asked.step,
        requested=asked.call.request.model,
        recorded=recorded,
        arms=arms,
        stopped=stopped,
        labels=taking.cast.labels,
        problems=tuple(problems),
        used=taking.cast.used,
    )


def _arm(kept: Cassette, casting: Casting, calls: Sequence[LiveCall], recorded: tuple[tuple[str, str], ...] | None) -> Arm:
    """What one model chose, as it stands in the probe's cassette."""
    (model,) = casting.pins.values()
    ours = [call for call in calls if call.forwarded == model]
    chosen: dict[tuple[tuple[str, str], ...], list[int]] = {}
    answered = refused = 0
    for call in ours:
        if call.mismatch or call.infrastructure is not None:
            continue
        read = read_call(kept, kept.exchange(call.seq))
        answer = read.answer if read is not None else None
        if answer is None or call.status is None or adapters.outcome(call.status, answer) is not adapters.Outcome.ANSWERED:
            refused += 1
            continue
        answered += 1
        chosen.setdefault(_choice(answer) or (), []).append(call.seq)
    ranked = sorted(chosen.items(), key=lambda item: (-len(item[1]), item[1]))
    return Arm(
        model=model,
        pin_class=str(casting.labels[0].pin_class) if casting.labels else "",
        sent=len(ours),
        answered=answered,
        refused=refused,
        infrastructure=sum(call.infrastructure is not None and not call.mismatch for call in ours),
        mismatches=sum(call.mismatch for call in ours),
        choices=tuple(Choice(calls_, tuple(seqs), as_recorded=calls_ == recorded) for calls_, seqs in ranked),
    )


def _choice(answer: ModelAnswer | None) -> tuple[tuple[str, str], ...] | None:
    """Which tools were called, with which arguments; None where there is no answer."""
    return None if answer is None else tuple((call.name, call.arguments) for call in answer.calls)
