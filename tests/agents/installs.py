"""Agents as their registries give them, installed once for a machine: `$SECONDTAKE_AGENTS`, else a folder in the person's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from pathlib import Path

import pytest

from secondtake.harness.drivers import Driver
from tests.tools.scene import configured, tool

INSTALL_S = 480
"""Far above what an installation takes; only a registry that hangs reaches it."""


def cache() -> Path:
    """Where agents are kept between runs."""
    if named := os.environ.get("SECONDTAKE_AGENTS"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "secondtake-agents"


_LOCKS: dict[str, threading.Lock] = defaultdict(threading.Lock)
"""One installation of each at a time: courses run side by side."""


def installed(driver: Driver) -> Path:
    """The folder of an agent's program, of the measured version. Skips, with the reason, where it cannot be installed."""
    folder = cache() / f"{driver.name}-{driver.measured}"
    program = folder / "bin" / driver.programs[0]
    registry, _, package = driver.package.partition(":")
    with _LOCKS[driver.name]:
        if program.exists():
            return program.parent
        cache().mkdir(parents=True, exist_ok=True)
        if registry == "npm":
            # Made beside it and then renamed: an installation that was interrupted is no installation.
            with tempfile.TemporaryDirectory(dir=cache()) as made:
                npm = ("npm", "install", "--global", f"--prefix={made}/it", "--no-audit", "--no-fund", f"{package}@{driver.measured}")
                _run(driver.name, *npm)
                shutil.rmtree(folder, ignore_errors=True)
                Path(made, "it").rename(folder)
        else:
            # A virtual environment cannot be renamed.
            try:
                _run(driver.name, tool("uv"), "venv", "--quiet", "--clear", "--python", sys.executable, str(folder))
                uv = (tool("uv"), "pip", "install", "--quiet", "--compile-bytecode", "--python", str(folder / "bin/python"))
                _run(driver.name, *uv, f"{package}=={driver.measured}")
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
    return program.parent


LIBFAKETIME = "3.0.1"


def later() -> dict[str, str]:
    """Variables that put a process tree a month into the future (monotonic clocks stay). Skips where the library cannot be had."""
    folder = cache() / f"libfaketime-{LIBFAKETIME}"
    with _LOCKS["libfaketime"]:  # uv: an environment that uv made has no pip
        if not folder.is_dir():
            cache().mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=cache()) as made:
                uv = (tool("uv"), "pip", "install", "--quiet", "--no-deps", "--python", sys.executable, "--target", f"{made}/it")
                _run("libfaketime", *uv, f"libfaketime=={LIBFAKETIME}")
                Path(made, "it").rename(folder)
    library = next(folder.rglob("libfaketime.so.1"))
    fake = {"LD_PRELOAD": str(library), "FAKETIME": "+31d", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    told = subprocess.run(["date", "+%s"], env={**os.environ, **fake}, capture_output=True, text=True)
    real = subprocess.run(["date", "+%s"], capture_output=True, text=True)
    if not told.stdout.strip().isdigit() or int(told.stdout) - int(real.stdout) < 30 * 86400:
        pytest.skip(f"libfaketime: the clock did not change here: {told.stderr.strip()}")
    return fake


def _run(what: str, *command: str) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{what}: no {command[0]} on this machine")
    environment = {**os.environ, **configured(), "HOME": str(Path.home()), "npm_config_update_notifier": "false"}
    try:
        # Not here: uv would take the constraints of this project.
        done = subprocess.run(
            command, env=environment, cwd=cache(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSTALL_S
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{what}: its installation did not end within {INSTALL_S} s")
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit {done.returncode}").splitlines()[-1]
        pytest.skip(f"{what}: cannot be installed: {said}")
