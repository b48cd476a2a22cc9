"""A retake from the recording to its take: who plays the part, the proxy that asks them, what is kept, what came of it."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from secondtake.cassettes.errors import NameTaken
from secondtake.cassettes.exchange import Channel
from secondtake.harness.cast import Cast
from secondtake.harness.equipment import Equipment, credential_variables
from secondtake.harness.judge import retake_problems
from secondtake.harness.recording import clock_s, clock_us
from secondtake.harness.replaying import BY_CONTENT, copied, hosts_of, player_for, replayed, unfinished
from secondtake.harness.results import LiveCall, Problem, Retaken, WouldAct
from secondtake.harness.toolcalls import UNREADABLE, model_exchanges, read_call
from secondtake.proxy.addon import Wire
from secondtake.proxy.policy import Mode, Pace, Sockets
from secondtake.proxy.server import Proxy, quiet
from secondtake.proxy.settings import Settings

if TYPE_CHECKING:
    from secondtake.cassettes.cassette import Cassette
    from secondtake.cassettes.extension import Extended
    from secondtake.cassettes.memory import Recorded
    from secondtake.cassettes.writer import Writer
    from secondtake.harness.plan import HostRules, Matching, Stage, Where
    from secondtake.proxy.outcome import Outcome
    from secondtake.proxy.retake import ModelCall


def refuse_in_place(stage: Stage, cassette: Cassette, where: Where, command: str, agent: Sequence[str]) -> None:
    """A model that is live may call any tool it is offered, whatever the recorded one did: a scratch copy, or nothing.

    `command` is the command line so far, for the hint.

    Raises:
        WouldAct: tools are offered, and neither a scratch copy nor `--in-place` was asked for.
    """
    if where.copy_of is not None or where.scratch or where.in_place:
        return
    for exchange in model_exchanges(cassette):
        call = read_call(cassette, exchange)
        if call is None or call.request.tools:
            what = UNREADABLE if call is None else ", ".join(tool.name for tool in call.request.tools[:5])
            raise WouldAct(
                f"the model is offered tools ({what}), and what another one does with them would act on {stage.cwd}",
                hint=f"{command} {copied(cassette, stage.cwd)} -- {shlex.join(agent)}",
            )


def retaking_proxy(stage: Stage, wire: HostRules, equipment: Equipment, cassette: Recorded, cast: Cast, pace: Pace, *, port: int) -> Proxy:
    """Return the proxy: everything from the cassette, model calls live."""
    settings = Settings(
        mode=Mode.RETAKE,
        trust=equipment.origins,
        host=equipment.listen,
        port=port,
        pace=pace,
        routes=wire.routes,
        upstream=equipment.upstream,
        credential=equipment.credential,
        uid=os.getuid(),
        loopback=wire.loopback,
        client_certs=wire.client_certs,
        websocket=Sockets(wire.websocket),
        live=frozenset(map(Channel, wire.live)),
        extend=frozenset(map(Channel, wire.extend)),
        one_session=True,
    )
    quiet()
    hosts = hosts_of(cassette)
    made = Wire(
        settings,
        equipment.authority,
        redactor=equipment.redactor,
        now_us=clock_us(stage),
        now_s=clock_s(stage),
        retake=cast.retake,
        known_hosts=hosts,
    )
    return Proxy(settings, made)


@dataclass(frozen=True, slots=True)
class Retaking:
    """A retake that has begun: its take is being written."""

    stage: Stage
    cassette: Cassette
    cast: Cast
    writer: Writer
    begun_s: float

    def discard(self) -> None:
        """Nothing was asked, and nothing will be: leave no trace."""
        self.writer.abandon()
        self.stage.store.remove(self.writer.name)

    def seen(
        self, proxy: Proxy, outcome: Outcome, agent: Sequence[str], equipment: Equipment, status: int | None, ran_in: Path | None
    ) -> Retaken:
        """Say what came of it, before the take is closed."""
        stage, cast = self.stage, self.cast
        calls = tuple(map(live_call, cast.retake.calls))
        played = replayed(stage, proxy, self.cassette, outcome, agent, equipment, self.begun_s, status, ran_in)
        stopped = cast.retake.tripped.message if cast.retake.tripped is not None else None
        return Retaken(
            name=self.writer.name,
            parent=self.cassette.name,
            root=None,
            agent_status=status,
            requests=played.requests,
            answered=played.answered,
            calls=calls,
            unswapped=tuple(dict.fromkeys(cast.retake.refused)),
            stopped=stopped,
            labels=cast.labels,
            misses=played.misses,
            unplayed=tuple(row for row in played.unplayed if row.channel is not Channel.MODEL),
            elapsed_us=played.elapsed_us,
            ran_in=ran_in,
            problems=self._problems(outcome, agent, equipment, calls, stopped),
            used=cast.used,
        )

    def close(
        self,
        seen: Retaken,
        outcome: Outcome,
        agent: Sequence[str],
        equipment: Equipment,
        more: Mapping[str, object] = MappingProxyType({}),
    ) -> Retaken:
        """Write the take's last word. `more`: what else its closing meta says."""
        root = self.writer.close(
            meta={
                "ended": self.stage.now().isoformat(timespec="seconds"),
                "elapsed_us": seen.elapsed_us,
                "agent_status": seen.agent_status,
                "problems": [[problem.kind, problem.message] for problem in seen.problems],
                "valid": not seen.mismatches,
                "model_calls": len(seen.calls),
                "infrastructure": len(seen.infrastructure),
                "stopped": seen.stopped,
                "tokens": seen.used.tokens,
                "uncounted": seen.used.uncounted,
                "cost": seen.used.cost,
                **more,
            }
        )
        failed = outcome.failed or self.writer.failed
        problems = seen.problems
        if failed is not None and outcome.failed is None:
            outcome.failed = failed
            problems = self._problems(outcome, agent, equipment, seen.calls, seen.stopped)
        return replace(seen, root=None if failed else root, problems=problems)

    def _problems(
        self, outcome: Outcome, agent: Sequence[str], equipment: Equipment, calls: tuple[LiveCall, ...], stopped: str | None
    ) -> tuple[Problem, ...]:
        found = retake_problems(outcome, agent, equipment.bundle, calls, tuple(self.cast.retake.refused), stopped)
        return (*unfinished(self.cassette), *found)


def begin_take(
    stage: Stage,
    cassette: Cassette,
    cast: Cast,
    equipment: Equipment,
    port: int,
    *,
    name: str | None,
    agent: Sequence[str],
    cwd: Path,
    wire: HostRules,
    kind: str = "take",
    base: str | None = None,
) -> Retaking:
    """Begin to write a take under `name`, or under that of `base` (the recording's) with the next free number. A take never
    overwrites another.

    Raises:
        NameTaken, Locked, NotStored, BadInput: it cannot be written, or is not a name.
    """
    redactor = equipment.redactor
    meta: dict[str, object] = {
        "created": stage.now().isoformat(timespec="seconds"),
        "secondtake": stage.version,
        "command": [redactor.text(word) for word in agent],
        "cwd": redactor.text(str(cwd)),
        "routes": {host: redactor.text(url) for host, url in wire.routes.items()},
        "platform": f"{platform.system()} {platform.machine()}",
        "proxy": equipment.address(port),
        "bundle": str(equipment.bundle),
        "credentials": credential_variables(stage.environ),
        "kind": kind,
        "parent": cassette.name,
        "parent_root": cassette.root,
        **cast.told(redactor.text),
    }
    begun_s = stage.monotonic_s()
    if name is not None:
        try:
            return Retaking(stage, cassette, cast, stage.store.create(name, meta=meta), begun_s)
        except NameTaken as taken:
            raise NameTaken(str(taken), hint="a take never overwrites another: choose another --as, or leave it out") from taken
    base = base or Path(cassette.name).name.removesuffix(".take")
    number = 1
    while True:
        try:
            return Retaking(stage, cassette, cast, stage.store.create(f"{base}-{kind}-{number}", meta=meta), begun_s)
        except NameTaken:
            number += 1


def attach(
    proxy: Proxy,
    taking: Retaking,
    equipment: Equipment,
    port: int,
    cwd: Path,
    matching: Matching = BY_CONTENT,
    extended: Extended | None = None,
) -> None:
    """Give the proxy what it plays and what it writes. Raises BadInput as `player_for` does."""
    player = player_for(equipment, taking.cassette, port, cwd, matching, extended)
    proxy.wire.attach(writer=taking.writer, player=player, aliases=equipment.aliases(port, cwd))


def live_call(call: ModelCall) -> LiveCall:
    """One model call as a value of this room."""
    verdict = call.verdict
    return LiveCall(
        seq=call.seq,
        step=call.step,
        adapter=call.adapter,
        requested=call.requested,
        forwarded=call.forwarded,
        served=verdict.served,
        proof=verdict.proof,
        verified=verdict.verified,
        status=call.status,
        mismatch=verdict.mismatch,
        infrastructure=verdict.infrastructure,
        incomplete=verdict.incomplete,
        retired=verdict.retired,
        incompatible=verdict.incompatible,
        retry_after_s=verdict.retry_after_s,
    )
