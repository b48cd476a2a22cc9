"""A known agent at the start of a run: what it is told, what a recording notes of it, and whether a replay starts as the recording did."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from secondtake.harness.drivers import Driver, seeds
from secondtake.harness.results import Problem

if TYPE_CHECKING:
    from secondtake.cassettes.cassette import Cassette
    from secondtake.cassettes.redact import Redactor
    from secondtake.harness.plan import Stage

NOTED = "driver"
"""The key of a recording's meta."""

_PLAIN = re.compile(r"(?![/~.])[\w .:/@,+=-]{0,512}", re.ASCII)
"""Values of switches that are noted, and taken from a recording: names, numbers, addresses, no paths: those are of one machine, and
a cassette may come from a stranger."""


def driven(stage: Stage, driver: Driver | None, cassette: Cassette | None = None) -> Stage:
    """Return the stage with what the agent must find: what its driver sets, and, in a replay, the switches of the recording."""
    if driver is None:
        return stage
    environ = dict(stage.environ)
    noted = _noted(cassette)
    if noted.get("name") == driver.name and isinstance(switches := noted.get("switches"), dict):
        recorded = {name: value for name, value in switches.items() if isinstance(value, str) and _PLAIN.fullmatch(value)}
        for name in driver.switches:
            if name in recorded:
                environ[name] = recorded[name]
            elif name not in switches:
                environ.pop(name, None)
    return replace(stage, environ=environ | driver.told(environ, root=os.geteuid() == 0))


def noted(stage: Stage, driver: Driver | None, agent: Sequence[str], redactor: Redactor) -> dict[str, object]:
    """Return what a recording's meta says of its agent; empty where it is not known. A switch whose value is not plain is null."""
    if driver is None:
        return {}
    switches = {name: value if _PLAIN.fullmatch(value) and redactor.text(value) == value else None
                for name, value in driver.switched(stage.environ).items()}  # fmt: skip
    said = {"name": driver.name, "version": version_of(driver, agent[0], stage.environ), "switches": switches}
    return {NOTED: {**said, "seed": list(seeds(driver, stage.home))}}


def start_problems(stage: Stage, driver: Driver | None, agent: Sequence[str], cassette: Cassette) -> tuple[Problem, ...]:
    """Return notes on what differs before anything is asked: another agent, another version, another first run."""
    was = _noted(cassette)
    if driver is None or not was:
        return ()
    found = []
    if was.get("name") != driver.name:
        found.append(Problem("other-agent", f"recorded with {was.get('name')}, played with {driver.name}"))
        return tuple(found)
    version = version_of(driver, agent[0], stage.environ)
    if version is not None and was.get("version") not in (None, version):
        found.append(Problem("other-version", f"recorded with {driver.name} {was['version']}, played with {version}"))
    before, now = was.get("seed"), list(seeds(driver, stage.home))
    if isinstance(before, list) and before != now:
        then = ", ".join(f"~/{name}" for name in before if isinstance(name, str)) or "none of its files"
        message = f"{driver.name} found {then} in HOME while recording, and finds {', '.join(f'~/{name}' for name in now) or 'none'} now"
        found.append(Problem("other-home", message, "record and replay from the same HOME"))
    return tuple(found)


def version_of(driver: Driver, program: str, environ: Mapping[str, str]) -> str | None:
    """Return the version of an installed agent, read from its package without running it; None where that is not found."""
    found = shutil.which(program, path=environ.get("PATH", os.defpath))
    if found is None:
        return None
    registry, _, package = driver.package.partition(":")
    if registry == "npm":
        return _npm_version(Path(found).resolve(), package)
    return next(filter(None, (_python_version(path, package) for path in (Path(found), Path(found).resolve()))), None)


def _npm_version(program: Path, package: str) -> str | None:
    for folder in program.parents:
        manifest = folder / "package.json"
        try:
            said = json.loads(manifest.read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(said, dict) and (said.get("name") == package or str(said.get("name", "")).startswith(package)):
            version = said.get("version")
            return version if isinstance(version, str) else None
    return None


def _python_version(program: Path, package: str) -> str | None:
    for folder in sorted(program.parent.parent.glob("lib/python*/site-packages/*.dist-info")):
        name, _, version = folder.name.removesuffix(".dist-info").rpartition("-")
        if _plain(name) == _plain(package):
            return version
    return None


def _plain(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def _noted(cassette: Cassette | None) -> Mapping[str, object]:
    was = cassette.meta.get(NOTED) if cassette is not None else None
    return was if isinstance(was, Mapping) else {}
