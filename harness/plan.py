"""What a run is asked to be, and the world it happens in. Values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from secondtake.cassettes.store import Store


@dataclass(frozen=True, slots=True)
class Stage:
    """The world a run happens in: everything that is not an argument of the command line."""

    store: Store
    environ: Mapping[str, str]
    cwd: Path
    home: Path
    now: Callable[[], datetime]
    monotonic_s: Callable[[], float]
    random: Random
    again: str
    """The options that lead to this store again, for hints that can be pasted: empty, or ` --store DIR`."""
    version: str
    """Ours, for what a recording says about itself."""


@dataclass(frozen=True, slots=True)
class HostRules:
    """How the proxy is asked to treat hosts."""

    routes: Mapping[str, str] = field(default_factory=dict)
    only_hosts: tuple[str, ...] = ()
    passthrough: tuple[str, ...] = ()
    client_certs: Mapping[str, Path] = field(default_factory=dict)
    loopback: bool = False
    strict: bool = False
    quiet_telemetry: bool = False


@dataclass(frozen=True, slots=True)
class Naming:
    """Under which name a recording is kept."""

    name: str | None = None
    """None: a readable one is made up."""
    otherwise: str | None = None
    """The name to use where `name` is taken."""
    replace: bool = False


@dataclass(frozen=True, slots=True)
class Where:
    """Where a replayed agent may run."""

    copy_of: Path | None = None
    """Run in a scratch copy of this directory."""
    in_place: bool = False
    """Run where we stand, although the recorded model calls tools."""
    keep: bool = False
    """Keep the scratch copy afterwards."""
