"""Proxies that stay: where they keep their files, and how a shell is pointed at one (`env`)."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from secondtake.cassettes.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from secondtake.harness.equipment import Equipment
    from secondtake.harness.plan import Stage
    from secondtake.proxy.policy import Mode
    from secondtake.proxy.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Ready:
    """A proxy that accepts connections."""

    mode: str
    """`record` or `replay`."""
    name: str
    port: int
    pid: int
    bundle: Path
    """Trust bundle: system roots, the user's own authorities, and ours."""
    address: str
    """Host and port, as an agent is told."""
    environment: Mapping[str, str]
    """What an agent needs to be told, beyond its own environment."""


def run_directory(root: Path) -> Path:
    """Return where runs and proxies of a store keep their authorities and runtime files; no cassette may be called so."""
    return root / "run"


def exports_of(stage: Stage, *, port: int | None, form: str, unset: bool) -> str:
    """Return the lines that point a shell at the running proxy, or that take them back.

    Raises:
        BadInput: no proxy runs there, or its process is gone; several run and no port is given; a value cannot be written in this
            format.
    """
    from secondtake.proxy.configs import read_configs
    from secondtake.proxy.environment import Format, block, exports, undo

    if unset:
        return exports(undo(stage.environ), Format(form))
    runtime = _running(run_directory(stage.store.root), port)
    configs = read_configs(stage.environ, stage.home, stage.cwd)
    change = block(
        stage.environ,
        port=runtime.port,
        bundle=Path(runtime.bundle),
        credential=runtime.credential,
        host=runtime.host,
        former=True,
        overriding=configs.overriding,
    )
    return exports(change, Format(form))


def _running(directory: Path, port: int | None) -> Runtime:
    from secondtake.proxy import runtime

    if port is not None:
        try:
            return runtime.read(directory, port)
        except runtime.Stale as stale:
            raise BadInput(str(stale), hint=stale.hint) from stale
    found = runtime.running(directory)
    if not found:
        raise BadInput(
            "no proxy is running from this store",
            hint="start one with `secondtake proxy record NAME` or `secondtake proxy replay NAME`",
        )
    if len(found) > 1:
        ports = ", ".join(str(each.port) for each in found)
        raise BadInput(f"several proxies are running, on ports {ports}", hint=f"secondtake env --port {found[0].port}")
    return found[0]


@contextmanager
def until_stopped(again: Callable[[], None] | None) -> Iterator[asyncio.Event]:
    """Give an event that SIGINT or SIGTERM sets. SIGHUP calls `again`, or sets it too where there is none."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    taken = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in taken:
        loop.add_signal_handler(number, again if number is signal.SIGHUP and again is not None else stop.set)
    try:
        yield stop
    finally:
        for number in taken:
            loop.remove_signal_handler(number)


@contextmanager
def announced(stage: Stage, equipment: Equipment, mode: Mode, name: str, port: int, ready: Callable[[Ready], None]) -> Iterator[None]:
    """Leave a runtime file for `env`, say that we are ready, and take the file away at the end."""
    from secondtake.proxy import runtime
    from secondtake.proxy.upstream import former_value

    directory = run_directory(stage.store.root)
    runtime.sweep(directory)
    pid = os.getpid()
    runtime.write(
        directory,
        runtime.Runtime(
            port=port,
            pid=pid,
            started=runtime.process_start(pid),
            mode=str(mode),
            bundle=str(equipment.bundle),
            cassette=name,
            host=equipment.reached_as,
            credential=equipment.credential,
            upstream=former_value(stage.environ) or None,
        ),
    )
    try:
        ready(Ready(str(mode), name, port, pid, equipment.bundle, equipment.address(port), equipment.change(port, former=True).set))
        yield
    finally:
        runtime.remove(directory, port, pid=pid)
