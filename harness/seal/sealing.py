"""Make the strongest seal that this machine allows, and take it away afterwards."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence, Set
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from secondtake.cassettes.errors import BadInput
from secondtake.harness.seal.gateway import Gateway, Started
from secondtake.harness.seal.values import Bind, Seal, SealBroken, Tier, Wanted

_SCRIPT = Path(__file__).with_name("inside.py")
_NEVER = ("dev", "proc", "sys")
_TRIAL_S = 30.0
_AUTO_OR_OFF = "--seal auto takes the strongest there is here, --seal off none"
_NOT_PROVEN = "nothing is proven: only variables point at the proxy"
_FOR_REAL = "what is written outside the scratch copy is written for real"


@asynccontextmanager
async def sealed(
    *,
    run_dir: Path,
    proxy_port: int,
    credential: str | None,
    wanted: Wanted,
    binds: Sequence[Bind] = (),
    cwd: Path,
    readable: Sequence[Path] = (),
    writable: Sequence[Path] = (),
    discard: bool = False,
    now_us: Callable[[], int],
    known_hosts: Set[str] | None = None,
) -> AsyncIterator[Seal]:
    """Give a seal around the proxy at `proxy_port` of 127.0.0.1: the strongest that a trial shows to hold here.

    `run_dir` exists and is ours alone (0700). `cwd` is where the agent will stand, as it sees it. `readable` stays visible wherever it
    lies (the trust bundle). With `discard`, what is written anywhere but to the binds and to `writable` (each at its own path) goes to
    a layer that all starts of this seal share, and is thrown away with it; `Seal.layered` says whether that could be had.
    In a replay `known_hosts` are the names that were recorded: looking up another is an attempt.
    `Seal.attempts` is complete when the context has ended. AUTO takes a lower tier with the reasons; OFF none.

    Raises:
        BadInput: a bind stands at the root, or in a folder of the kernel's.
        SealBroken: `wanted` is REQUIRE and nothing seals, or a seal that was made does not hold; also at the end of the context,
            when that was found as an agent was to start.
    """
    for bind in binds:
        if not bind.target.is_absolute() or len(bind.target.parts) < 2 or bind.target.parts[1] in _NEVER or ".." in bind.target.parts:
            raise BadInput(f"nothing can be put at {bind.target}")
    seal = Seal(Tier.COOPERATIVE, port=proxy_port, holes=(_NOT_PROVEN, *([_FOR_REAL] if discard else [])))
    if wanted is Wanted.OFF:
        yield seal
        return
    if sys.platform != "linux":
        if wanted is Wanted.REQUIRE:
            raise SealBroken(f"no seal can be made on {sys.platform}: it takes Linux", hint=_AUTO_OR_OFF)
        seal.refused = ("it takes Linux",)
        yield seal
        return
    order = {
        "binds": [{"source": str(bind.source), "target": str(bind.target), "writable": bind.writable} for bind in binds],
        "cwd": str(cwd),
        "readable": [str(path.absolute()) for path in (*readable, *writable)],
        "writable": [str(path.absolute()) for path in writable],
        "discard": discard,
        "private": [os.path.abspath(run_dir)],  # noqa: ASYNC240 - asks the disk nothing
        "own_processes": True,
    }
    gateway = Gateway(
        run_dir, order, seal, proxy_port=proxy_port, credential=credential, now_us=now_us, known_hosts=known_hosts
    )  # fmt: skip
    places = _places(binds, (*readable, *writable))
    try:
        gateway.open()
        await _strongest(gateway, seal, cwd)
        if wanted is Wanted.REQUIRE and seal.tier not in (Tier.SEALED, Tier.SEALED_ROOT):
            raise SealBroken(f"no seal can be made here, only `{seal.tier}`: {'; '.join(seal.refused)}", hint=_AUTO_OR_OFF)
        seal.names.clear()
        yield seal
    finally:
        await gateway.close()
        for place, within in places:
            _cleared(place, within)
    for started in gateway.started:
        _check(started)


async def _strongest(gateway: Gateway, seal: Seal, cwd: Path) -> None:
    """Try each tier in a process of its own; what is refused is known only then."""
    refused: list[str] = []
    tiers = [Tier.SEALED, *([Tier.SEALED_ROOT] if os.geteuid() == 0 else []), Tier.FENCED]
    for tier in tiers:
        prefix = _prefix(gateway, tier)
        for own_processes in (True, False):
            gateway.order["own_processes"] = own_processes
            started = await _trial(gateway, prefix, cwd)
            _check(started)
            if started.refused is None or not started.refused.startswith("/proc"):
                break
        if started.refused is None:
            seal.tier, seal.prefix, seal.refused = tier, prefix, tuple(refused)
            seal.binds_done = tier is not Tier.FENCED
            seal.layered = gateway.order["discard"] and seal.binds_done
            not_layered = [_FOR_REAL] if gateway.order["discard"] and not seal.layered else []
            seal.holes = (*_holes(tier, own_processes=own_processes), *not_layered, *started.holes)
            return
        refused.append(f"{tier}: {started.refused}")
    seal.refused = tuple(refused)


def _prefix(gateway: Gateway, tier: Tier) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", str(_SCRIPT), str(gateway.path), str(tier))


async def _trial(gateway: Gateway, prefix: Sequence[str], cwd: Path) -> Started:
    before = len(gateway.started)
    child = await asyncio.create_subprocess_exec(
        *prefix, cwd=cwd if os.path.isdir(cwd) else None,  # noqa: ASYNC240 - one look, before anything runs
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for us, and would look like a refusal
    )  # fmt: skip
    try:
        _, errors = await asyncio.wait_for(child.communicate(), _TRIAL_S)
    except TimeoutError:
        child.kill()
        await child.wait()
        return Started(refused=f"no answer in {_TRIAL_S:.0f} s")
    except BaseException:
        if child.returncode is None:
            child.kill()
        await child.wait()
        raise
    made = gateway.started[before:]
    started = made[-1] if made else Started()
    if child.returncode != 0 and started.refused is None and not started.problems:
        last = errors.decode(errors="replace").strip().splitlines()
        started.refused = last[-1] if last else f"ended with status {child.returncode}"
    return started


def _check(started: Started) -> None:
    if started.problems:
        what = "; ".join(started.problems)
        raise SealBroken(f"the seal does not hold ({started.tier}): {what}", hint="--seal off runs the agent without one")
    if started.refused is not None and not started.trial:
        raise SealBroken(f"the seal could not be made again for the agent ({started.tier}): {started.refused}", hint=_AUTO_OR_OFF)


def _holes(tier: Tier, *, own_processes: bool) -> tuple[str, ...]:
    if tier is Tier.FENCED:
        return (
            "UDP is not confined",
            "any address may be reached on the proxy's port",
            "Unix sockets of this machine can be reached",
            "attempts are refused without being seen",
        )
    return () if own_processes else ("the agent sees the other processes of its user",)


def _places(binds: Sequence[Bind], readable: Sequence[Path]) -> list[tuple[Path, Path]]:
    """Where an empty place will be made in a copy, so that what is readable below its target can stand there; and what holds it already."""
    found = []
    for path in readable:
        for bind in binds:
            if path.is_relative_to(bind.target) and path != bind.target:
                place = bind.source / path.relative_to(bind.target)
                if not place.exists():
                    found.append((place, next(above for above in place.parents if above.exists())))
    return found


def _cleared(place: Path, within: Path) -> None:
    """Remove an empty place that was made, and the empty folders up to `within`; what has come to hold something stays."""
    with suppress(OSError):
        if place.is_dir():
            place.rmdir()
        elif place.stat().st_size == 0:
            place.unlink()
        for above in place.parents:
            if above == within:
                return
            above.rmdir()
