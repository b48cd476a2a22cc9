"""Agents as their registries give them, installed once for a machine: `$SECONDTAKE_AGENTS`, else a folder in the person's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from secondtake.harness.drivers import Driver
from tests.tools.scene import configured

INSTALL_S = 480
"""Far above what an installation takes; only a registry that hangs reaches it."""


def cache() -> Path:
    """Where agents are kept between runs."""
    if named := os.environ.get("SECONDTAKE_AGENTS"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "secondtake-agents"


def installed(driver: Driver) -> Path:
    """The folder of an agent's program, of the measured version. Skips, with the reason, where it cannot be installed."""
    folder = cache() / f"{driver.name}-{driver.measured}"
    if not (folder / "bin" / driver.programs[0]).exists():
        cache().mkdir(parents=True, exist_ok=True)
        # Made beside it and then renamed: an installation that was interrupted is no installation. Virtual environments cannot be moved.
        registry, _, package = driver.package.partition(":")
        if registry == "npm":
            with tempfile.TemporaryDirectory(dir=cache()) as made:
                _run(
                    driver.name, "npm", "install", "--global", f"--prefix={made}", "--no-audit", "--no-fund", f"{package}@{driver.measured}"
                )
                if not folder.exists():
                    shutil.copytree(made, folder, symlinks=True)
        else:
            try:
                _run(driver.name, sys.executable, "-m", "venv", str(folder))
                _run(driver.name, str(folder / "bin/python"), "-m", "pip", "install", "--quiet", f"{package}=={driver.measured}")
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
    return folder / "bin"


LIBFAKETIME = "3.0.1"


def later() -> dict[str, str]:
    """Variables that put a process tree a month into the future (monotonic clocks stay). Skips where the library cannot be had."""
    folder = cache() / f"libfaketime-{LIBFAKETIME}"
    if not folder.is_dir():
        cache().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache()) as made:
            # uv: an environment that uv made has no pip.
            uv = (sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--python", sys.executable)
            _run("libfaketime", *uv, "--target", f"{made}/it", f"libfaketime=={LIBFAKETIME}")
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
    environment = {**configured(), "HOME": str(Path.home()), "npm_config_update_notifier": "false"}
    try:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSTALL_S)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{what}: its installation did not end within {INSTALL_S} s")
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit {done.returncode}").splitlines()[-1]
        pytest.skip(f"{what}: cannot be installed: {said}")
