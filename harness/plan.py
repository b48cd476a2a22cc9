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
    live: tuple[str, ...] = ()
    """In a retake: channels (`cassettes.exchange.Channel`) whose requests go out all the same; the take is not controlled then."""
    extend: tuple[str, ...] = ()
    """In a retake: channels (`cassettes.extension.EXTENDABLE`) whose requests go out where the cassette does not hold them."""
    websocket: str = "refuse"
    """`refuse` or `record`: a value of `proxy.policy.Sockets`, which the command line does not load."""


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
    scratch: bool = False
    """Run in a scratch copy of the workspace as the recording kept it."""
    in_place: bool = False
    """Run where we stand, although the recorded model calls tools."""
    keep: bool = False
    """Keep the scratch copy afterwards."""
    seal: str = "off"
    """`auto`, `require` or `off`: a value of `harness.seal.Wanted`, which the command line does not load."""


@dataclass(frozen=True, slots=True)
class Matching:
    """What a person declared about how requests are compared with the recorded ones."""

    rules: tuple[Path, ...] = ()
    """Files of rules, beside those of the store."""
    positional: bool = False
    """Place a model call that misses by content by its position in the conversation, and go on; the run is not clean."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a proxy that stays listens, and what agents elsewhere are told of it."""

    listen: str = "127.0.0.1"
    """An address of this machine. Off loopback a credential is asked of whoever comes."""
    reached_as: str | None = None
    """The name or address that agents reach it by. None: `listen`, or this machine's name where that is any address."""
    share: Path | None = None
    """A folder that agents elsewhere see at the same path: the certificate bundle they are told of is in it."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """When a retake stops asking: at the wire, whatever the agent wants. None: no bound."""

    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None
    """In the unit of `prices`."""
    prices: Path | None = None
    """What models cost, in a file of the user's; a model that is not in it has an unknown price."""


@dataclass(frozen=True, slots=True)
class Recast:
    """Another model in the part: which, where it is asked, and with what changed."""

    models: tuple[str, ...]
    """`PIN` for every call, or `REQUESTED=PIN` for each."""
    name: str | None = None
    """Under which name the take is kept; None: made from the recording's."""
    from_step: int = 0
    """So many model calls are still played."""
    strip_reasoning: bool = False
    rules: tuple[str, ...] = ()
    gateway: str | None = None
    credential_env: str | None = None
    credential_command: str | None = None
    allow_unpinned: bool = False
    bounds: Bounds = Bounds()
