"""What a seal is asked for, and what it says of itself. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from secondtake.harness.results import SealBroken

__all__ = ["Attempt", "Bind", "Seal", "SealBroken", "Tier", "Wanted"]


class Tier(StrEnum):
    """How strong it is, strongest first (SECURITY D6)."""

    SEALED = "sealed"
    """Namespaces of its own: no path exists but the proxy, and each attempt to find another is seen."""
    SEALED_ROOT = "sealed-root"
    """The same, made by root where user namespaces are refused."""
    FENCED = "fenced"
    """Landlock: TCP goes to the proxy's port only. UDP is not confined, refusals are not seen."""
    OBSERVED = "observed"
    """The variables, and a tracer that lists connections: a bypass is detected, not prevented."""
    COOPERATIVE = "cooperative"
    """The variables alone: nothing is proven."""


class Wanted(StrEnum):
    """`--seal`: the strongest there is, a seal or nothing, none."""

    AUTO = "auto"
    REQUIRE = "require"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Bind:
    """What the agent finds at `target`: `source`. Both are absolute, exist, and are both files or both folders."""

    source: Path
    target: Path
    writable: bool = True


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to reach something beside the proxy. It was refused.

    `kind`: `tcp`, `udp`, or `ip` for another protocol, `dns` for a name that the recording does not know,
    `unseen` for more packets than could be read one by one. `at_us` is on the clock of the caller; `address` is what
    was asked for, `name` the name it was given for, if any. `pid` is known to no tier yet.
    """

    at_us: int
    kind: str
    address: str
    port: int | None
    name: str | None
    pid: int | None = None

    def __str__(self) -> str:
        where = self.name or self.address
        return f"{self.kind} {where}" if self.port is None else f"{self.kind} {f'[{where}]' if ':' in where else where}:{self.port}"


@dataclass(slots=True)
class Seal:
    """A seal that stands. `attempts` and `names` grow while agents run."""

    tier: Tier
    refused: tuple[str, ...] = ()
    """Why each higher tier could not be had, one line each."""
    prefix: tuple[str, ...] = ()
    """Stands before the agent's command. Each start with it gets namespaces of its own."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What changes in the agent's environment."""
    port: int = 0
    """The proxy's port on 127.0.0.1 as the agent sees it."""
    attempts: list[Attempt] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """Each name that was looked up, once, in order."""
    holes: tuple[str, ...] = ()
    """What this tier leaves open, one phrase each."""
    binds_done: bool = False
    """The binds that were asked for stand where they should; False without namespaces, where there can be none."""
    layered: bool = False
    """What is written elsewhere is thrown away with the seal, and touches nothing."""
