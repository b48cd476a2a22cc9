"""What every run needs around its proxy: an authority, the bundles, the way out, a redactor, and what the child is told."""

from __future__ import annotations

import errno
import os
import re
import socket
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from secondtake.cassettes.errors import NotStored
from secondtake.cassettes.normalise import Aliases
from secondtake.cassettes.redact import Redactor
from secondtake.cassettes.secrets import Known, environment_kind, known_in_environment
from secondtake.harness.descriptors import room
from secondtake.harness.running import run_directory
from secondtake.proxy import authority as authorities
from secondtake.proxy import trust
from secondtake.proxy.authority import Authority
from secondtake.proxy.environment import Block, block, proxy_url
from secondtake.proxy.upstream import Upstream

if TYPE_CHECKING:
    from secondtake.harness.plan import Place, Stage

LOOPBACK = "127.0.0.1"
ON_LOOPBACK = (LOOPBACK, "::1", "localhost")
"""What a proxy may listen on without asking for a credential."""
ANY_ADDRESS = ("0.0.0.0", "::", "")  # noqa: S104 - to know it when it is asked for
"""What says every address of this machine, and so names none."""

KEPT_AUTHORITY = "authority"
"""Folder of the named authority of `proxy`, in the store's run directory."""

SHORTEST_ALIAS = 3
"""A directory shorter than this (`/`, `/a`) is left as it is in the keys: it would be found everywhere."""


@dataclass(frozen=True, slots=True)
class Equipment:
    """One run's."""

    stage: Stage
    authority: Authority
    sources: trust.TrustSources
    bundle: Path
    """What the agent trusts: everything it would have trusted, and our authority."""
    origins: Path
    """What origins are verified against: the same without ours."""
    upstream: Upstream
    redactor: Redactor
    credential: str | None
    descriptors: int
    """The soft limit on open files that the agent keeps; ours is raised."""
    listen: str = LOOPBACK
    """The address the proxy listens on."""
    reached_as: str = LOOPBACK
    """The name or address that an agent is told."""

    def change(self, port: int, *, former: bool = False) -> Block:
        """Return what a child is told beyond its own environment."""
        return block(
            self.stage.environ,
            port=port,
            bundle=self.bundle,
            credential=self.credential,
            host=self.reached_as,
            former=former,
            overriding=self.sources.configs.overriding,
        )

    def child(self, port: int) -> dict[str, str]:
        """Return the whole environment of a child."""
        change = self.change(port)
        gone = set(change.unset)
        return {**{name: value for name, value in self.stage.environ.items() if name not in gone}, **change.set}

    def address(self, port: int) -> str:
        """Return host and port that an agent is told."""
        return proxy_url(port, host=self.reached_as).removeprefix("http://")

    def aliases(self, port: int, cwd: Path) -> Aliases:
        """Return the values that are ours, or of this run's place, and so must not tell two runs apart (an agent that runs `env`)."""
        values: dict[bytes, bytes] = {}
        values[proxy_url(port, host=self.reached_as, credential=self.credential).encode()] = b"SECONDTAKE_PROXY"
        values[self.address(port).encode()] = b"SECONDTAKE_ADDRESS"
        values[os.fsencode(self.bundle)] = b"SECONDTAKE_BUNDLE"
        temporary = Path(self.stage.environ.get("TMPDIR", ""))
        for directory, name in ((cwd, b"WORKSPACE"), (self.stage.home, b"HOME"), (temporary, b"TMPDIR")):
            placed(values, (directory, directory.resolve()), name)
        return Aliases(values)


def placed(values: dict[bytes, bytes], spellings: Sequence[Path], name: bytes) -> None:
    """Add a directory and its slugs to the values that stand by name, unless its first spelling is not absolute."""
    if spellings[0].is_absolute():
        for path in dict.fromkeys(spellings):
            if len(str(path)) >= SHORTEST_ALIAS:
                values.setdefault(os.fsencode(path), name)
                values.setdefault(os.fsencode(slug(path)), name + b"_SLUG")


def slug(path: Path) -> str:
    """Return what some agents make of a path to name a folder after it (Claude Code, Qwen Code): all but letters and digits become `-`."""
    return re.sub(r"[^A-Za-z0-9]", "-", str(path))


@contextmanager
def equipped(
    stage: Stage,
    *,
    reading: bool = False,
    only_hosts: Iterable[str] = (),
    recorded: datetime | None = None,
    kept: bool = False,
    new_ca: bool = False,
    place: Place | None = None,
) -> Iterator[Equipment]:
    """Make what a run needs, and take it away afterwards. `kept` uses the store's named authority, which stays.

    `place`: where a proxy that stays is to be found; None is loopback.

    `reading`: nothing will be recorded, so a store on read-only media does; the run's files then are in a temporary folder.

    Raises:
        RecordedError: the kept authority is damaged, a proxy variable names no proxy, the store cannot be written.
    """
    with (
        _directory(stage, reading=reading and not kept) as directory,
        _equipped(stage, directory, reading=reading, only_hosts=only_hosts, recorded=recorded, kept=kept, new_ca=new_ca) as made,
    ):
        yield made if place is None else _placed(made, place)


@contextmanager
def _equipped(
    stage: Stage, directory: Path, *, reading: bool, only_hosts: Iterable[str], recorded: datetime | None, kept: bool, new_ca: bool
) -> Iterator[Equipment]:
    authorities.sweep(directory)
    now = stage.now()
    if kept:
        authority = Authority.named(directory / KEPT_AUTHORITY, now=now, not_before=recorded, new=new_ca)
    else:
        authority = Authority.create(directory, now=now, not_before=recorded, only_hosts=only_hosts)
    with authority, room() as descriptors:
        sources = trust.collect(stage.environ, stage.home, stage.cwd)
        upstream = Upstream.from_environ(stage.environ)
        # The dummies a replay is started with stand in `stage.environ` already (session.py), so they are known like real ones.
        known = (*known_in_environment(stage.environ), *(Known("proxy-credential", secret, "upstream") for secret in upstream.secrets))
        redactor = Redactor(known, key=_key(stage, reading=reading))
        yield Equipment(
            stage,
            authority,
            sources,
            bundle=trust.write_bundle(authority.directory / "bundle.pem", sources, authority.ca_pem),
            origins=trust.upstream_bundle(authority.directory / "origins.pem", sources),
            upstream=upstream,
            redactor=redactor,
            credential=None if peer_is_known() else made_credential(stage.random),
            descriptors=descriptors,
        )


def _placed(equipment: Equipment, place: Place) -> Equipment:
    """The same for a proxy that agents elsewhere reach: with a credential, a name, and a bundle where they see it.

    Raises:
        NotStored: the bundle cannot be put into the shared folder.
    """
    reached_as = place.reached_as or (socket.gethostname() if place.listen in ANY_ADDRESS else place.listen)
    credential = equipment.credential or (None if place.listen in ON_LOOPBACK else made_credential(equipment.stage.random))
    bundle = equipment.bundle
    if place.share is not None:
        bundle = place.share.absolute() / "bundle.pem"
        beside = bundle.with_name(f".bundle.{os.getpid()}")
        try:
            beside.write_bytes(equipment.bundle.read_bytes())
            beside.chmod(0o644)  # certificates are public, and the agent's user is another one there
            beside.replace(bundle)
        except OSError as error:
            where = f"the bundle cannot be put into {place.share}: {error.strerror or error}"
            raise NotStored(where, reason=errno.errorcode.get(error.errno or 0, "EIO"), hint="give another --share DIR") from error
    return replace(equipment, credential=credential, listen=place.listen, reached_as=reached_as, bundle=bundle)


@contextmanager
def _directory(stage: Stage, *, reading: bool) -> Iterator[Path]:
    """The store's run directory, 0700 whatever the umask; a temporary one where the store cannot be written and need not be."""
    directory = run_directory(stage.store.root)
    try:
        for folder in (stage.store.root, directory):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        directory.chmod(0o700)
    except OSError as error:
        if not reading:
            where = f"the store {stage.store.root} cannot be written: {error.strerror or error}"
            raise NotStored(where, reason=errno.errorcode.get(error.errno or 0, "EIO"), hint="give another --store DIR") from error
    else:
        if os.access(directory, os.W_OK):
            yield directory
            return
    with tempfile.TemporaryDirectory(prefix="secondtake-run-") as made:
        yield Path(made)


def _key(stage: Stage, *, reading: bool) -> bytes:
    """The store's redaction key. It only marks fingerprints, so a replay from a store that has none, and can have none, makes one up."""
    try:
        return stage.store.key(stage.random.randbytes)
    except (NotStored, OSError):
        if not reading:
            raise
        return stage.random.randbytes(32)


def peer_is_known() -> bool:
    """Say whether this system tells to whom a loopback connection belongs; where it does not, clients need a credential (C-03)."""
    return Path("/proc/net/tcp").exists()


def made_credential(random: Random) -> str:
    """Return a proxy credential for one run: `secondtake:` and 128 random bits."""
    return f"secondtake:{random.getrandbits(128):032x}"


def credential_variables(environ: Mapping[str, str]) -> list[str]:
    """Return the names of the variables that hold a credential; the recording notes them, without values."""
    return sorted(name for name, value in environ.items() if value and environment_kind(name) is not None)


def dummies(recorded: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return a value for each recorded credential variable that is not set now, so that a replay starts without credentials (C-13)."""
    return {name: f"secondtake-replay-{name.lower().replace('_', '-')}" for name in recorded if not environ.get(name)}
