"""A take from the fixture to its last word: the scene is put back, another model plays the part, and what came of it is judged.

restore ▸ seal ▸ proxy ▸ launch ▸ collect ▸ accept ▸ close. The take is closed once everything is known, in one record: what was killed
before is a cassette without a closing record, and no take.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from secondtake.cassettes import envelope as envelopes
from secondtake.cassettes import takes
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.extension import Extended, additions
from secondtake.cassettes.run_events import ESCAPES, ESCAPES_KEPT
from secondtake.cassettes.stops import Rule
from secondtake.harness import stopping
from secondtake.harness.cast import Cast, cast_of
from secondtake.harness.clock import frozen
from secondtake.harness.collecting import Cell, Collected, Watched, collect, judged, take_of
from secondtake.harness.drivers import Driver, driver_for
from secondtake.harness.driving import driven, version_of
from secondtake.harness.envelope.capture import KIND as ENVELOPE
from secondtake.harness.envelope.capture import Scene as Surroundings
from secondtake.harness.envelope.capture import envelope_now
from secondtake.harness.equipment import Equipment, dummies, equipped
from secondtake.harness.performing import Acting, Performed, escape_problems, needs, on_stage
from secondtake.harness.plan import Bounds, HostRules, Recast
from secondtake.harness.replaying import BY_CONTENT, hosts_of, recorded_start, told
from secondtake.harness.results import Problem
from secondtake.harness.retaking import Retaking, attach, begin_take, retaking_proxy
from secondtake.harness.scenery import Scenery, scenery
from secondtake.harness.seal.values import Wanted
from secondtake.harness.session import check_startable
from secondtake.harness.tracing import traced
from secondtake.proxy.policy import Pace

if TYPE_CHECKING:
    from secondtake.cassettes.cassette import Cassette
    from secondtake.cassettes.envelope import Envelope
    from secondtake.cassettes.redact import Redactor
    from secondtake.cassettes.takes import Checked, Take
    from secondtake.harness.acceptance.scene import Floor
    from secondtake.harness.clock import Clock
    from secondtake.harness.fixture import Fixture
    from secondtake.harness.plan import Matching, Stage
    from secondtake.harness.results import Retaken
    from secondtake.harness.seal.values import Attempt
    from secondtake.harness.tracing import Tracer
    from secondtake.proxy.outcome import Outcome
    from secondtake.proxy.server import Proxy

LONGEST_S = 3600.0
"""A take whose fixture sets no time is ended after this long."""


class Interrupted(Exception):
    """The take was broken off from outside; nothing of it is kept."""


@dataclass(frozen=True, slots=True)
class Part:
    """Who plays in one take, and which cell of what it is."""

    recast: Recast
    arm: str = ""
    repeat: int = 1
    matrix: str = ""
    warm_up: bool = False
    attempts: int = 1
    """1 + how often this cell was run before and infrastructure failed it."""
    command: tuple[str, ...] | None = None
    """The agent; None: the fixture's."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Files of the workspace that are replaced before the agent starts: other instructions."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """How takes are run; the same for all of one experiment."""

    wire: HostRules = field(default_factory=HostRules)
    seal: str = "auto"
    trace: bool = True
    freeze_clock: bool = False
    """The agent has the recorded time, whatever the fixture says of it."""
    keep: bool = False
    """Leave the scratch folder."""
    alone: bool = True
    """No other take runs in this process, so signals are sent on to the agent."""
    matching: Matching = BY_CONTENT
    floor: Floor | None = None
    """What the checks say of the untouched tree."""
    extension: tuple[str, ...] = ()
    """Takes whose live fetches are played beside the recording."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A take that ended and is closed."""

    retaken: Retaken
    take: Take
    attempts: tuple[Attempt, ...]
    commands: int
    why_untraced: str
    """Why commands are known from the model's traffic only; empty where the kernel told."""
    kept: Path | None
    recording: str
    """The fixture's cassette, as `Store.open` takes it."""

    @property
    def name(self) -> str:
        """Of its cassette."""
        return self.retaken.name


async def run_take(
    stage: Stage,
    fixture: Fixture,
    part: Part,
    conditions: Conditions,
    *,
    started: Callable[[str], None] = lambda _name: None,
    stdout: IO[bytes] | int | None = None,
) -> Taken:
    """Run one take of `fixture`. `started` gets its name before the agent starts.

    Raises:
        BadInput: a model is not held fixed, an option makes no sense, there is no such agent.
        WouldAct: the agent could reach the original workspace from where it would stand.
        SealBroken: a seal is required and cannot be had.
        Interrupted: it was broken off; there is no take.
        NotFound, Corrupt, TooNew, NameTaken, NotStored: the fixture cannot be read, or the take not be written.
    """
    agent = part.command or fixture.command
    recast = bounded(part.recast, fixture)
    with fixture.open_cassette() as cassette, ExitStack() as cleanup:
        # The credential that is put on model calls is not the agent's; nor is our folder for temporary files.
        own = {name: value for name, value in stage.environ.items() if name not in {recast.credential_env, "TMPDIR"}}
        environ = fixture.scene.environment({**dummies(told(cassette, "credentials"), own), **own})
        person = replace(stage, environ=environ)
        check_startable(agent, person)
        equipment = cleanup.enter_context(equipped(person, recorded=recorded_start(cassette)))
        cast = cast_of(stage, cassette, recast, equipment.redactor)
        shown = needs(agent, environ, equipment.bundle)
        scene = cleanup.enter_context(scenery(fixture, cassette, shown=shown, keep=conditions.keep))
        replaced(scene.work, part.files)
        known = driver_for(agent, fixture.scene.driver)
        others = [cleanup.enter_context(stage.store.open(name)) for name in conditions.extension]
        extended = Extended(cassette, additions(others)) if others else None
        playing = Playing(fixture, part, conditions, agent, known, cassette, extended, cast, person, equipment, scene, started, stdout)
        proxy = retaking_proxy(person, conditions.wire, equipment, extended or cassette, cast, Pace.FAST, port=0)
        port = await proxy.start()
        try:
            return await playing.play(proxy, port)
        finally:
            await proxy.stop()


@dataclass(slots=True)
class Playing:
    """One take between the restored scene and its last word."""

    fixture: Fixture
    part: Part
    conditions: Conditions
    agent: tuple[str, ...]
    known: Driver | None
    cassette: Cassette
    extended: Extended | None
    """The cassette with what other takes had to fetch; None: nothing was."""
    cast: Cast
    person: Stage
    """The stage with the scene's environment, and the person's own HOME."""
    equipment: Equipment
    scene: Scenery
    started: Callable[[str], None]
    stdout: IO[bytes] | int | None
    taking: Retaking | None = None

    @property
    def clock(self) -> str:
        """Which time the agent has: `real` or `recorded`."""
        return "recorded" if self.conditions.freeze_clock else self.fixture.scene.clock

    @property
    def longest_s(self) -> float:
        """When the agent is ended, whatever it is at."""
        return bounded(self.part.recast, self.fixture).bounds.seconds or LONGEST_S

    async def play(self, proxy: Proxy, port: int) -> Taken:
        """Let the agent act, judge it, and close the take. Where that cannot be, there is none."""
        try:
            async with on_stage(
                self.agent,
                self.equipment,
                port,
                self.scene.standing,
                wanted=Wanted(self.conditions.seal),
                writable=(self.scene.folder,),
                known_hosts=None if self.conditions.wire.extend else hosts_of(self.extended or self.cassette),
                now_us=proxy.wire.now_us,
            ) as bare:
                self.scene.refuse_in_reach(bare)
                ended = await self._on(self._dressed(bare), proxy, port)
            return self._closed(ended, tuple(bare.seal.attempts))  # they are complete now
        except BaseException:
            if self.taking is not None:
                self.taking.discard()
            raise

    def _dressed(self, bare: Acting) -> Acting:
        """The stage with the agent's own HOME, directory and driver's variables."""
        home, cwd = self.scene.home_on(bare), self.scene.cwd_on(bare)
        actor = replace(self.person, home=home, cwd=cwd, environ={**self.person.environ, "HOME": str(home)})
        return replace(bare, equipment=replace(self.equipment, stage=driven(actor, self.known, self.cassette)))

    async def _on(self, acting: Acting, proxy: Proxy, port: int) -> Ended:
        equipment, conditions, fixture = acting.equipment, self.conditions, self.fixture
        actor, redactor = equipment.stage, equipment.redactor
        self.taking = taking = begin_take(
            self.person, self.cassette, self.cast, equipment, port,
            name=self.part.recast.name, agent=self.agent, cwd=actor.cwd, wire=conditions.wire, base=fixture.name,
        )  # fmt: skip
        attach(proxy, taking, equipment, port, actor.cwd, conditions.matching, self.extended)
        watched = await asyncio.to_thread(Watched, self.scene, fixture, taking, redactor)
        around = await asyncio.to_thread(envelope_now, actor, self._surroundings(), redactor)
        taking.writer.keep(ENVELOPE, envelopes.encode(around))
        self.started(taking.writer.name)
        clock = await asyncio.to_thread(self._clock, actor)
        faked = clock.environment if clock is not None else None
        log = self.scene.folder / "commands.log"
        tracer = traced(log, cwd=actor.cwd, elapsed_us=proxy.wire.now_us(), environment=faked) if conditions.trace else None
        performed = await self._acted(acting, proxy, tracer, clock)
        outcome = await proxy.stop()
        if performed.finished.interrupted:
            raise Interrupted
        ran_in = self.scene.work if conditions.keep else None
        seen = taking.seen(proxy, outcome, self.agent, equipment, performed.finished.status, ran_in)
        if performed.finished.timed_out:
            late = f"--{Rule.SECONDS} {self.longest_s:g}: the agent was ended, it had not ended by itself"
            seen = replace(seen, stopped=seen.stopped or late, problems=(*seen.problems, Problem("stopped", f"stopped: {late}")))
        collected = await asyncio.to_thread(collect, taking, watched, redactor, tracer)
        if clock is not None and (real := clock.real_in(command.program for command in collected.traced.commands)):
            performed = replace(performed, holes=(*performed.holes, real))
        checks = await judged(fixture, acting, self.scene, collected, seen, conditions.floor)
        return Ended(actor, performed, outcome, seen, collected, checks, around)

    def _clock(self, actor: Stage) -> Clock | None:
        """The faked clock, where the fixture asks for the recorded time, and the recording says when it began."""
        start = recorded_start(self.cassette)
        if self.clock != "recorded" or start is None:
            return None
        program = shutil.which(self.agent[0], path=actor.environ.get("PATH"))
        return frozen(start, actor.environ, () if program is None else (Path(program),))

    async def _acted(self, acting: Acting, proxy: Proxy, tracer: Tracer | None, clock: Clock | None) -> Performed:
        stop = stopping.StopOnMiss(stopping.STOP_AFTER_S)
        proxy.wire.on_miss = stop
        self.cast.retake.on_refusal = stop.soon
        try:
            return await acting.run(
                self.agent,
                within=(tracer.prefix if tracer is not None else ()) or (clock.prefix if clock is not None else ()),
                stdout=self.stdout,
                stop=stop.event,
                timeout_s=self.longest_s,
                aside=str(tracer.log) if tracer is not None else None,
                forward_signals=self.conditions.alone,
            )
        finally:
            stop.close()

    def _closed(self, ended: Ended, attempts: tuple[Attempt, ...]) -> Taken:
        assert self.taking is not None
        performed = replace(ended.performed, attempts=attempts)
        version = version_of(self.known, self.agent[0], ended.actor.environ) if self.known is not None else None
        take = take_of(self.fixture, self._cell(version), performed, ended.outcome, ended.seen, ended.collected, ended.checks, ended.around)
        said = {
            takes.KIND: takes.encode(take),
            "stage": ended.collected.stage.packed(),
            ESCAPES: escapes(attempts, self.equipment.redactor),
        }
        problems = (*ended.seen.problems, *stopping.notes(performed.finished), *escape_problems(performed))
        seen = replace(ended.seen, problems=problems, seal=str(performed.tier))
        closed = self.taking.close(seen, ended.outcome, self.agent, self.equipment, said)
        traced_ = ended.collected.traced
        kept = self.scene.folder if self.conditions.keep else None
        return Taken(closed, take, attempts, len(traced_.commands), traced_.reason, kept, str(self.fixture.cassette))

    def _surroundings(self) -> Surroundings:
        """What of the take's surroundings is decided here."""
        return Surroundings(
            agent=self.agent,
            driver=self.known,
            workspace=self.scene.work,
            home=self.scene.home,
            repository=self.fixture.envelope.layers[envelopes.Layer.REPOSITORY],  # it was put back from there
            routes=self.conditions.wire.routes,
            open_files=self.equipment.descriptors,
            clock=self.clock,
            random=self.fixture.scene.random,
        )

    def _cell(self, version: str | None) -> Cell:
        """What of the take was decided before it began."""
        part = self.part
        meant = {"orchestrator.command", "orchestrator.agent", "orchestrator.version"} if part.command is not None else set()
        if part.files:
            meant.add("instructions.rules")
        return Cell(
            model=", ".join(part.recast.models),
            pin_classes={pin.id: str(pin.pin_class) for casting in self.cast.castings for pin in casting.labels},
            arm=part.arm,
            repeat=part.repeat,
            matrix=part.matrix,
            warm_up=part.warm_up,
            attempts=part.attempts,
            clock=self.clock,
            agent=self.known.name if self.known is not None else Path(self.agent[0]).name,
            agent_version=version,
            meant=frozenset(meant),
        )


@dataclass(frozen=True, slots=True)
class Ended:
    """A take whose agent has ended, judged, and not closed yet."""

    actor: Stage
    performed: Performed
    outcome: Outcome
    seen: Retaken
    collected: Collected
    checks: tuple[Checked, ...]
    around: Envelope


def escapes(attempts: Sequence[Attempt], redactor: Redactor) -> list[list[object]]:
    """Return attempts to leave as the closing record keeps them; the first ones, where there were very many."""
    return [
        [one.at_us, one.kind, redactor.text(one.address), one.port, None if one.name is None else redactor.text(one.name)]
        for one in attempts[:ESCAPES_KEPT]
    ]


def bounded(recast: Recast, fixture: Fixture) -> Recast:
    """Return what was asked for within the bounds of the fixture: the smaller of both holds."""
    asked, stop = recast.bounds, fixture.stop

    def smaller[N: (int, float)](one: N | None, other: N | None) -> N | None:
        return min((each for each in (one, other) if each is not None), default=None)

    bounds = Bounds(
        calls=smaller(asked.calls, stop.calls),
        tokens=smaller(asked.tokens, stop.tokens),
        seconds=smaller(asked.seconds, stop.seconds),
        cost=smaller(asked.cost, stop.cost) if asked.prices is not None else asked.cost,
        prices=asked.prices,
    )
    return replace(recast, bounds=bounds)


def replaced(work: Path, files: Mapping[str, Path]) -> None:
    """Put other files in the place of some of the workspace's.

    Raises:
        BadInput: one cannot be read.
    """
    for name, source in files.items():
        target = work / name
        try:
            content = source.read_bytes()
        except OSError as error:
            raise BadInput(f"cannot read {source}: {error.strerror or error}") from error
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink():
            target.unlink()
        target.write_bytes(content)
