"""One run from start to end: store, redactor, authority, proxy and child put together, and what came of it.

Nothing here is printed; a command renders the values that come back.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import IO, TYPE_CHECKING

from secondtake.cassettes.errors import BadInput
from secondtake.harness import stopping
from secondtake.harness.cast import cast_of
from secondtake.harness.drivers import AUTO, driver_for
from secondtake.harness.driving import driven, noted, start_problems
from secondtake.harness.envelope.capture import Scene, keep_envelope
from secondtake.harness.equipment import Equipment, dummies, equipped
from secondtake.harness.eventlog import overheard
from secondtake.harness.launch import NotStarted
from secondtake.harness.performing import Performed, Standing, escape_problems, perform
from secondtake.harness.recording import begin, recording_proxy
from secondtake.harness.replaying import BY_CONTENT, hosts_of, opened, player_for, recorded_start, replayed, replaying_proxy, stand, told
from secondtake.harness.results import SealBroken
from secondtake.harness.retaking import attach, begin_take, refuse_in_place, retaking_proxy
from secondtake.harness.running import Ready, announced, until_stopped
from secondtake.harness.seal.values import Wanted
from secondtake.harness.snapshot import LIMITS
from secondtake.harness.turns import watched, watching
from secondtake.proxy.policy import Mode, Pace

if TYPE_CHECKING:
    from secondtake.cassettes.events import Event
    from secondtake.cassettes.player import Player
    from secondtake.harness.drivers import Driver
    from secondtake.harness.plan import HostRules, Matching, Naming, Place, Recast, Stage, Where
    from secondtake.harness.results import Recorded, Replayed, Retaken


async def record_session(
    stage: Stage,
    wire: HostRules,
    naming: Naming,
    agent: Sequence[str],
    *,
    driver: str = AUTO,
    seal: str = "off",
    stage_bytes: int | None = LIMITS.total_bytes,
    started: Callable[[str], None] = lambda _name: None,
    stdout: IO[bytes] | int | None = None,
) -> Recorded:
    """Run `agent` behind a recorder. `started` gets the recording's name before the agent starts; `stdout` is the agent's, None ours.

    `driver` is a known agent's name, `auto` (by the program's name) or `none`. Of the workspace at most `stage_bytes` are captured; None:
    it is not captured at all.

    Raises:
        BadInput: there is no such command; nothing is kept then.
        NameTaken, Locked, NotStored: the recording cannot begin.
    """
    check_startable(agent, stage)
    known = driver_for(agent, driver)
    stage = driven(stage, known)
    with equipped(stage, only_hosts=wire.only_hosts) as equipment:
        proxy = recording_proxy(stage, wire, equipment, port=0)
        port = await proxy.start()
        take = None
        try:
            said = noted(stage, known, agent, equipment.redactor)
            take = begin(stage, naming, equipment, port, agent=agent, wire=wire, said=said)
            keep_envelope(take.writer.keep, stage, _scene(agent, known, wire, equipment), equipment.redactor)
            proxy.wire.attach(writer=take.writer, aliases=equipment.aliases(port, stage.cwd))
            started(take.writer.name)
            plan = None if stage_bytes is None else watching(stage, known, limit_bytes=stage_bytes)
            async with watched(plan, take.writer, equipment.redactor, stage) as watch:
                proxy.wire.on_model = watch.model_request
                performed = await perform(
                    agent, equipment, port, Standing(stage.cwd), wanted=Wanted(seal), now_us=proxy.wire.now_us, stdout=stdout
                )
                staged = await watch.end()
        except (NotStarted, SealBroken):
            if take is not None:
                take.discard()
            raise
        finally:
            outcome = await proxy.stop()
        return took(take.close(outcome, agent, equipment.bundle, performed.finished.status, staged), performed, recording=True)


async def proxy_record_session(
    stage: Stage,
    wire: HostRules,
    naming: Naming,
    *,
    port: int,
    new_ca: bool,
    ready: Callable[[Ready], None],
    place: Place | None = None,
) -> Recorded:
    """Record what comes through a proxy until SIGINT, SIGTERM or SIGHUP.

    Raises:
        RecordedError: the port is in use, the name is taken, the recording cannot begin.
    """
    with equipped(stage, kept=True, new_ca=new_ca, place=place) as equipment:
        proxy = recording_proxy(stage, wire, equipment, port=port)
        bound = await proxy.start()
        try:
            take = begin(stage, naming, equipment, bound, agent=(), wire=wire)
            proxy.wire.attach(writer=take.writer, aliases=equipment.aliases(bound, stage.cwd))
            with until_stopped(None) as stop, announced(stage, equipment, Mode.RECORD, take.writer.name, bound, ready):
                await stop.wait()
        finally:
            outcome = await proxy.stop()
        return take.close(outcome, (), equipment.bundle, None)


async def replay_session(
    stage: Stage,
    name: str,
    agent: Sequence[str],
    *,
    pace: Pace,
    where: Where,
    driver: str = AUTO,
    matching: Matching = BY_CONTENT,
    keep_going: bool = False,
    asked: Callable[[Player], None] = lambda _player: None,
    told_events: Callable[[Event], None] | None = None,
    announce: Callable[[tuple[str, ...]], None] = lambda _calls: None,
    stdout: IO[bytes] | int | None = None,
    command: str | None = None,
) -> Replayed:
    """Run `agent` against a cassette. `announce` gets the recorded tool calls before an agent runs in place; `driver` as for a recording.

    Soon after a model call that missed the agent is ended, unless `keep_going`. `asked` gets the player before the agent starts, to listen.
    `told_events` gets what happened, in order, when all is over. `command` is the command line up to where it runs, for hints.

    Raises:
        WouldAct: the recorded model calls tools, and no scratch copy was asked for, or they would act outside of it.
        BadInput: there is no such command, or the workspace cannot be copied.
        NotFound, Corrupt, TooNew: the cassette cannot be read.
    """
    check_startable(agent, stage)
    known = driver_for(agent, driver)
    with opened(stage, name) as cassette, ExitStack() as cleanup:
        stage = driven(stage, known, cassette)
        standing = stand(stage, cassette, name, agent, where, announce, cleanup, command=command)
        stage = replace(stage, environ={**dummies(told(cassette, "credentials"), stage.environ), **stage.environ})
        other = start_problems(stage, known, agent, cassette)
        with equipped(stage, reading=True, recorded=recorded_start(cassette)) as equipment, overheard(told_events) as writer:
            proxy = replaying_proxy(stage, equipment, cassette, pace, port=0, one_session=True)
            port = await proxy.start()
            try:
                player = player_for(equipment, cassette, port, standing.cwd, matching)
            except BaseException:
                await proxy.stop()
                raise
            asked(player)
            proxy.wire.attach(writer=writer, player=player)
            begun_s = stage.monotonic_s()
            stop = stopping.StopOnMiss(stopping.STOP_AFTER_S)
            if not keep_going:
                proxy.wire.on_miss = stop
            try:
                performed = await perform(
                    agent,
                    equipment,
                    port,
                    standing,
                    wanted=wanted_of(where, standing),
                    known_hosts=hosts_of(cassette),
                    now_us=proxy.wire.now_us,
                    stdout=stdout,
                    stop=stop.event,
                )
            finally:
                stop.close()
                outcome = await proxy.stop()
            finished = performed.finished
            kept = standing.copy if where.keep else None
            result = replayed(stage, proxy, cassette, outcome, agent, equipment, begun_s, finished.status, kept, other)
            result = replace(result, problems=(*result.problems, *stopping.notes(finished, "--keep-going lets it go on")))
            return took(result, performed)


async def proxy_replay_session(
    stage: Stage,
    name: str,
    *,
    pace: Pace,
    port: int,
    new_ca: bool,
    ready: Callable[[Ready], None],
    matching: Matching = BY_CONTENT,
    place: Place | None = None,
) -> Replayed:
    """Answer from a cassette until SIGINT or SIGTERM; SIGHUP begins the recording anew.

    Raises:
        RecordedError: the port is in use; the cassette cannot be read.
    """
    with (
        opened(stage, name) as cassette,
        equipped(stage, reading=True, recorded=recorded_start(cassette), kept=True, new_ca=new_ca, place=place) as equipment,
    ):
        proxy = replaying_proxy(stage, equipment, cassette, pace, port=port)
        bound = await proxy.start()
        begun_s = stage.monotonic_s()
        try:
            proxy.wire.attach(player=player_for(equipment, cassette, bound, stage.cwd, matching))
            with until_stopped(proxy.wire.new_sessions) as stop, announced(stage, equipment, Mode.REPLAY, cassette.name, bound, ready):
                await stop.wait()
        finally:
            outcome = await proxy.stop()
        return replayed(stage, proxy, cassette, outcome, (), equipment, begun_s, None, None)


async def retake_session(
    stage: Stage,
    name: str,
    recast: Recast,
    wire: HostRules,
    agent: Sequence[str],
    *,
    pace: Pace,
    where: Where,
    command: str,
    driver: str = AUTO,
    matching: Matching = BY_CONTENT,
    announce: Callable[[tuple[str, ...]], None] = lambda _calls: None,
    started: Callable[[str, tuple[str, ...]], None] = lambda _name, _labels: None,
    stdout: IO[bytes] | int | None = None,
) -> Retaken:
    """Run `agent` against a cassette with another model in the part. `started` gets the take's name and labels before the agent starts.
    `command` is the command line so far, for hints.

    Raises:
        WouldAct: the model is offered tools, and no scratch copy was asked for.
        BadInput: a model is not held fixed, an option makes no sense, there is no such command.
        NotFound, Corrupt, TooNew, NameTaken, NotStored: the cassette cannot be read, or the take not be written.
    """
    check_startable(agent, stage)
    with opened(stage, name) as cassette, ExitStack() as cleanup:
        stage = driven(stage, driver_for(agent, driver), cassette)
        refuse_in_place(stage, cassette, where, command, agent)
        # The credential that is put on model calls is not the agent's: what it finds in its place is a value that opens nothing.
        own = {name: value for name, value in stage.environ.items() if name != recast.credential_env}
        child = replace(stage, environ={**dummies(told(cassette, "credentials"), own), **own})
        with equipped(child, recorded=recorded_start(cassette)) as equipment:
            cast = cast_of(stage, cassette, recast, equipment.redactor)
            standing = stand(stage, cassette, name, agent, where, announce, cleanup, command=command)
            proxy = retaking_proxy(stage, wire, equipment, cassette, cast, pace, port=0)
            port = await proxy.start()
            proxy.wire.on_miss = stop = stopping.StopOnMiss(stopping.STOP_AFTER_S)
            taking = None
            try:
                taking = begin_take(stage, cassette, cast, equipment, port, name=recast.name, agent=agent, cwd=standing.cwd, wire=wire)
                around = replace(_scene(agent, driver_for(agent, driver), wire, equipment), workspace=standing.copy)
                keep_envelope(taking.writer.keep, stage, around, equipment.redactor)
                attach(proxy, taking, equipment, port, standing.cwd, matching)
                cast.retake.on_refusal = stop.soon
                started(taking.writer.name, cast.labels)
                performed = await perform(
                    agent,
                    equipment,
                    port,
                    standing,
                    wanted=wanted_of(where, standing),
                    known_hosts=hosts_of(cassette),
                    now_us=proxy.wire.now_us,
                    stdout=stdout,
                    stop=stop.event,
                )
            except (BadInput, SealBroken):
                if taking is not None:
                    taking.discard()
                raise
            finally:
                stop.close()
                outcome = await proxy.stop()
            finished = performed.finished
            seen = taking.seen(proxy, outcome, agent, equipment, finished.status, standing.copy if where.keep else None)
            result = taking.close(seen, outcome, agent, equipment)
            return took(replace(result, problems=(*result.problems, *stopping.notes(finished))), performed)


async def proxy_retake_session(
    stage: Stage,
    name: str,
    recast: Recast,
    wire: HostRules,
    *,
    pace: Pace,
    port: int,
    new_ca: bool,
    ready: Callable[[Ready], None],
    matching: Matching = BY_CONTENT,
    place: Place | None = None,
) -> Retaken:
    """Be a retake's proxy until SIGINT, SIGTERM or SIGHUP: one take, whoever comes.

    Raises:
        RecordedError: as for `retake_session`; the port is in use.
    """
    with (
        opened(stage, name) as cassette,
        equipped(stage, recorded=recorded_start(cassette), kept=True, new_ca=new_ca, place=place) as equipment,
    ):
        cast = cast_of(stage, cassette, recast, equipment.redactor)
        proxy = retaking_proxy(stage, wire, equipment, cassette, cast, pace, port=port)
        bound = await proxy.start()
        try:
            taking = begin_take(stage, cassette, cast, equipment, bound, name=recast.name, agent=(), cwd=stage.cwd, wire=wire)
            attach(proxy, taking, equipment, bound, stage.cwd, matching)
            with until_stopped(None) as stop, announced(stage, equipment, Mode.RETAKE, taking.writer.name, bound, ready):
                await stop.wait()
        finally:
            outcome = await proxy.stop()
        return taking.close(taking.seen(proxy, outcome, (), equipment, None, None), outcome, (), equipment)


def wanted_of(where: Where, standing: Standing) -> Wanted:
    """Return how much of a seal there shall be. What runs in place keeps its own `/tmp` and sockets, unless a seal is required."""
    wanted = Wanted(where.seal)
    return Wanted.OFF if wanted is Wanted.AUTO and standing.copy is None else wanted


def took[R: (Recorded, Replayed, Retaken)](result: R, performed: Performed, *, recording: bool = False) -> R:
    """Say in a run's result what the seal was, and what it saw."""
    return replace(result, seal=str(performed.tier), problems=(*result.problems, *escape_problems(performed, recording=recording)))


def _scene(agent: Sequence[str], known: Driver | None, wire: HostRules, equipment: Equipment) -> Scene:
    return Scene(tuple(agent), known, routes=wire.routes, open_files=equipment.descriptors)


def check_startable(agent: Sequence[str], stage: Stage) -> None:
    """Refuse a command that is not there before anything is made for it.

    Raises:
        NotStarted: no such program on the agent's PATH.
    """
    program = agent[0]
    path = stage.environ.get("PATH", os.defpath)
    if "/" not in program and shutil.which(program, path=path) is None:
        hint = f"is it installed? `command -v {shlex.quote(program)}` finds nothing"
        raise NotStarted(program, "no such command on PATH", 127, hint=hint)
    if "/" in program and not (stage.cwd / program).is_file():
        raise NotStarted(program, "no such file", 127)
