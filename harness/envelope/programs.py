"""Versions of the programs an agent can run. Each is asked once per process, outside of the workspace, without the person's variables."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from secondtake.cassettes.canonical import Json
from secondtake.cassettes.envelope import UNKNOWN

PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "bash": ("--version",),
    "bun": ("--version",),
    "cargo": (),
    "cc": ("--version",),
    "deno": ("--version",),
    "git": ("--version",),
    "go": ("version",),
    "java": ("-version",),
    "make": ("--version",),
    "node": ("--version",),
    "npm": (),
    "php": ("--version",),
    "python": ("--version",),
    "python3": ("--version",),
    "rg": ("--version",),
    "ruby": ("--version",),
    "rustc": (),
    "uv": ("--version",),
}
"""What is asked for, and how. Those without arguments are not run: a shim of rustup may fetch a toolchain when it is asked, and npm takes
half a second to start. Of them the package that they belong to says the version, else nobody."""

ASKING_S = 5.0
"""A program that has not said its version by then has none."""

_NUMBER = re.compile(r"\d+(?:\.\d+)+[\w.+-]*|\bgo\d[\w.]*")
_LONGEST = 200

_KNOWN: dict[tuple[str, int, int], str] = {}
"""Versions that were asked in this process, by path, time of change and size."""


def versions(environ: Mapping[str, str]) -> Json:
    """Return name and version of each; null where there is none on the agent's PATH, `unknown` where it does not say."""
    path = environ.get("PATH", os.defpath)
    found = {name: shutil.which(name, path=path) for name in PROGRAMS}
    there = {name: Path(place) for name, place in found.items() if place is not None}
    with ThreadPoolExecutor(max_workers=4, thread_name_prefix="versions") as pool:
        said = dict(zip(there, pool.map(lambda name: _version(name, there[name], path), there), strict=True))
    return {name: said.get(name) for name in PROGRAMS}


def _version(name: str, program: Path, path: str) -> str:
    try:
        status = program.stat()
    except OSError:
        return UNKNOWN
    key = (str(program), status.st_mtime_ns, status.st_size)
    if key not in _KNOWN:
        arguments = PROGRAMS[name]
        _KNOWN[key] = _asked(program, arguments, path) if arguments else _beside(program)
    return _KNOWN[key]


def _asked(program: Path, arguments: tuple[str, ...], path: str) -> str:
    try:
        done = subprocess.run(
            [str(program), *arguments],
            cwd="/",
            env={"PATH": path, "LC_ALL": "C", "HOME": "/nonexistent"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=ASKING_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return UNKNOWN
    if done.returncode != 0:
        return UNKNOWN
    first = done.stdout.decode("utf-8", "replace").strip().partition("\n")[0]
    number = _NUMBER.search(first)
    return number[0] if number is not None else first[:_LONGEST] or UNKNOWN


def _beside(program: Path) -> str:
    """The version in the package that a script belongs to; else unknown."""
    for folder in program.resolve().parents[:3]:
        try:
            text = (folder / "package.json").read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        found = re.search(r'"version"\s*:\s*"([^"\n]{1,60})"', text)
        if found is not None:
            return found[1]
    return UNKNOWN
