"""Proxies that stay: where they keep their files, and how a shell is pointed at one (`env`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from secondtake.cassettes.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from secondtake.harness.plan import Stage
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
