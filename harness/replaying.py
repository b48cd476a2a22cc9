"""A replay from the cassette to its summary: where the agent may run, the proxy that answers, what came of it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from secondtake.cassettes.cassette import State
from secondtake.cassettes.declared import rules_of
from secondtake.cassettes.exchange import Request
from secondtake.cassettes.merging import refuse_merging
from secondtake.cassettes.player import Options, Player
from secondtake.cassettes.stages import staged
from secondtake.cassettes.volatile import RULES
from secondtake.harness.equipment import Equipment
from secondtake.harness.fixture.behind import begun_from
from secondtake.harness.judge import replay_problems
from secondtake.harness.performing import Standing
from secondtake.harness.plan import Matching
from secondtake.harness.recording import clock_s, clock_us
from secondtake.harness.restore import restored_scratch
from secondtake.harness.results import Missed, Problem, Replayed, Unplayed, WouldAct
from secondtake.harness.ruling import declared_rules, recorded_aliases
from secondtake.harness.seal.values import Bind
from secondtake.harness.toolcalls import Asked, tool_calls
from secondtake.harness.workspace import copy_workspace, remove_workspace
from secondtake.proxy.addon import Wire
from secondtake.proxy.policy import Mode, Pace
from secondtake.proxy.server import Proxy, quiet
from secondtake.proxy.settings import Settings

if TYPE_CHECKING:
    from secondtake.cassettes.cassette import Cassette
    from secondtake.cassettes.extension import Extended
    from secondtake.cassettes.memory import Recorded
    from secondtake.cassettes.store import Store
    from secondtake.harness.plan import Stage, Where
    from secondtake.proxy.outcome import Outcome

BY_CONTENT = Matching()


def recorded_start(cassette: Cassette) -> datetime | None:
    """Return when a cassette was recorded, as it says itself; None where it does not, or not so that it can be read."""
    created = cassette.meta.get("created")
    try:
        start = datetime.fromisoformat(created) if isinstance(created, str) else None
    except ValueError:
        return None
    return start if start is not None and start.tzinfo is not None else None


@contextmanager
def opened(stage: Stage, name: str) -> Iterator[Cassette]:
    cassette = stage.store.open(name)
    try:
        yield cassette
    finally:
        cassette.close()


def stand(
    stage: Stage,
    cassette: Cassette,
    name: str,
    agent: Sequence[str],
    where: Where,
    announce: Callable[[tuple[str, ...]], None],
    cleanup: ExitStack,
    *,
    command: str | None = None,
) -> Standing:
    """Return where the agent may run: in a scratch copy where the recorded model calls tools, unless told otherwise.

    `command` is the command line up to where it runs, for hints; without it that of a replay. The copy stands at the recorded path where
    the kernel allows it: a tool call that names a file by its full path acts on the copy then.

    Raises:
        WouldAct: the tool calls would act on what is not a copy.
    """
    command = command or f"secondtake replay {shlex.quote(name)}{stage.again}"
    if where.copy_of is not None or where.scratch:
        copy = _scratch(stage.store, cassette, where.copy_of, keep=where.keep, cleanup=cleanup)
        recorded = _recorded_path(cassette)
        if recorded is None:
            return Standing(copy, copy)
        prefix = _stand_in(stage, where.copy_of or recorded, copy, recorded, agent)
        if prefix is not None:
            return Standing(recorded, copy, prefix, (Bind(copy, recorded),), recorded)
        _refuse_outside(recorded, tool_calls(cassette), command, agent)
        return Standing(copy, copy)
    if where.in_place:
        calls = tuple(tool_calls(cassette))
        if calls:
            announce(tuple(map(str, calls)))
        return Standing(stage.cwd)
    first = next(tool_calls(cassette), None)
    if first is not None:
        raise WouldAct(
            f"the recorded model calls tools ({first.name} in exchange {first.seq}), and they would act on {stage.cwd}",
            hint=f"{command} {copied(cassette, stage.cwd)} -- {shlex.join(agent)}",
        )
    return Standing(stage.cwd)


def copied(cassette: Cassette, cwd: Path) -> str:
    """Return the option that leads to a scratch copy: of the workspace that was recorded, where it was."""
    kept = staged(cassette)
    return "--scratch" if kept is not None and kept.workspace is not None else f"--workspace {shlex.quote(str(cwd))}"


def _recorded_path(cassette: Cassette) -> Path | None:
    """The directory the agent ran in, where there is one of that name here. What a cassette says about itself is untrusted: never `/`."""
    recorded = cassette.meta.get("cwd")
    if not isinstance(recorded, str) or not recorded.startswith("/") or "\0" in recorded:
        return None
    path = Path(recorded)
    return path if path.is_dir() and len(path.resolve().parts) > 1 else None


def _stand_in(stage: Stage, original: Path, copy: Path, recorded: Path, agent: Sequence[str]) -> tuple[str, ...] | None:
    """The words before the agent's command that put the copy at the recorded path, for it alone; None where that cannot be.

    It cannot be where what is needed lies below that path and would be hidden: the store with the trust bundle, the temporary folder, and,
    unless they are in the copy as well, our interpreter and the agent's program.
    """
    needed = [stage.store.root, Path(tempfile.gettempdir())]
    if original.resolve() != recorded.resolve():
        program = shutil.which(agent[0], path=stage.environ.get("PATH", os.defpath))
        needed += [Path(sys.executable), *([Path(program)] if program else [])]
    for path in needed:
        if path.absolute().is_relative_to(recorded) or path.resolve().is_relative_to(recorded.resolve()):
            return None
    prefix = (sys.executable, "-I", "-S", str(Path(__file__).with_name("standin.py")), str(copy), str(recorded))
    tried = subprocess.run(prefix, cwd=recorded, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return prefix if tried.returncode == 0 else None


def _refuse_outside(recorded: Path, calls: Iterable[Asked], command: str, agent: Sequence[str]) -> None:
    """A scratch copy elsewhere keeps nothing safe from a tool call that names the recorded directory by its full path."""
    for call in calls:
        if str(recorded) in call.arguments:
            raise WouldAct(
                f"the recorded tool call {call.name} (exchange {call.seq}) names {recorded} by its full path and would act there",
                hint=f"run it where {recorded} does not exist (a container), or: {command} --in-place -- {shlex.join(agent)}",
            )


def _scratch(store: Store, cassette: Cassette, original: Path | None, *, keep: bool, cleanup: ExitStack) -> Path:
    """A copy of `original`, or of what the recording, or the fixture of a take, kept."""
    parent = Path(tempfile.mkdtemp(prefix="secondtake-replay-"))

    def remove() -> None:
        if not keep:
            remove_workspace(parent)

    cleanup.callback(remove)
    if original is None:
        with begun_from(cassette, store) as kept:
            return restored_scratch(kept, parent)
    copy = parent / (original.resolve().name or "workspace")
    copy_workspace(original, copy)
    return copy


def replaying_proxy(stage: Stage, equipment: Equipment, cassette: Cassette, pace: Pace, *, port: int, one_session: bool = False) -> Proxy:
    """Return the proxy. `one_session`: one agent's run, which may be quiet for long (DESIGN 3)."""
    settings = Settings(
        mode=Mode.REPLAY,
        trust=equipment.origins,
        host=equipment.listen,
        port=port,
        pace=pace,
        credential=equipment.credential,
        uid=os.getuid(),
        one_session=one_session,
    )
    quiet()
    hosts = hosts_of(cassette)
    return Proxy(
        settings,
        Wire(settings, equipment.authority, redactor=equipment.redactor, now_us=clock_us(stage), now_s=clock_s(stage), known_hosts=hosts),
    )


def hosts_of(cassette: Recorded) -> frozenset[str]:
    """Return every host that was asked while recording."""
    return frozenset(row.host for row in cassette.rows)


def player_for(
    equipment: Equipment,
    cassette: Cassette,
    port: int,
    cwd: Path,
    matching: Matching = BY_CONTENT,
    extended: Extended | None = None,
) -> Player:
    """Return what answers. `extended`: the cassette with what other takes had to fetch beside it.

    Raises:
        BadInput: a declared rule cannot be read, forgives too much, or makes two recorded requests one.
    """
    declared = declared_rules(equipment.stage.store.root, matching.rules)
    options = Options(
        rules=(*RULES, *rules_of(declared)) if declared else RULES,
        aliases=equipment.aliases(port, cwd),
        recorded_aliases=recorded_aliases(cassette),
        positional=matching.positional,
    )
    player = Player(extended or cassette, equipment.redactor, options=options)
    refuse_merging(player.catalogue, declared)
    return player


def replayed(
    stage: Stage,
    proxy: Proxy,
    cassette: Cassette,
    outcome: Outcome,
    agent: Sequence[str],
    equipment: Equipment,
    begun_s: float,
    status: int | None,
    kept: Path | None,
    other: tuple[Problem, ...] = (),
) -> Replayed:
    """Put together what came of it. `other`: what was found to differ before anything was asked."""
    misses = tuple(
        Missed(
            kind=str(missed.miss.kind),
            method=missed.method,
            url=missed.url,
            channel=missed.channel,
            nearest_seq=missed.miss.nearest.seq if missed.miss.nearest else None,
            differs=tuple(f"{item.where} {item.path}".rstrip() for item in missed.miss.nearest.differences) if missed.miss.nearest else (),
            message=missed.miss.message,
            at_us=missed.at_us,
        )
        for missed in outcome.misses
    )
    return Replayed(
        name=cassette.name,
        agent_status=status,
        requests=outcome.requests,
        answered=dict(outcome.answered),
        misses=misses,
        unplayed=unplayed(proxy, cassette),
        elapsed_us=round((stage.monotonic_s() - begun_s) * 1_000_000),
        ran_in=kept,
        problems=(*other, *unfinished(cassette), *replay_problems(outcome, agent, equipment.bundle, recorded=len(cassette.rows))),
        divergence=outcome.course.divergence,
    )


def unfinished(cassette: Cassette) -> tuple[Problem, ...]:
    """A note for a recording that did not come to its own end: a miss may be what it never got to keep."""
    if cassette.state is State.CLOSED:
        return ()
    return (Problem("unfinished", f"the recording did not end by itself ({cassette.state}); what was in flight then is not in it"),)


def unplayed(proxy: Proxy, cassette: Cassette) -> tuple[Unplayed, ...]:
    """Return the recorded exchanges that no session asked for; all of them where nobody came."""
    sessions = proxy.wire.sessions()
    if sessions:
        left = [{row.seq: row for row in session.unplayed()} for session in sessions]
        rows = [row for seq, row in sorted(left[0].items()) if all(seq in others for others in left)]
    else:
        rows = sorted((row for row in cassette.rows if row.status is not None), key=lambda row: row.seq)
    return tuple(
        Unplayed(row.seq, row.method, Request(row.method, row.scheme, row.host, row.port, row.path).url, row.channel) for row in rows
    )


def told(cassette: Cassette, key: str) -> tuple[str, ...]:
    """Return a list of words that a recording says about itself; empty where it does not, or says something else."""
    words = cassette.meta.get(key)
    return tuple(word for word in words if isinstance(word, str)) if isinstance(words, list | tuple) else ()
