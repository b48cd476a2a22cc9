"""A person with real tools: an empty home and store, `secondtake` as a process of its own, and a machine without a network.

No index is named here. Which one pip, uv and npm ask is what this machine's own configuration, or their default, says.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

SECONDTAKE = (sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT / '.src')!r}); from secondtake.cli.main import main; main()")
"""The program, from this checkout, whatever is installed."""

PATIENCE_S = 150
"""Far above what any command here takes; only a hang reaches it."""

_KEPT = re.compile(
    r"PATH|LANG|LC_\w+|(https?|all|no)_proxy|SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE|PIP_(CERT|INDEX_URL|TRUSTED_HOST)"
    r"|UV_(DEFAULT_INDEX|INDEX_URL)|NODE_EXTRA_CA_CERTS|GIT_SSL_CAINFO|npm_config_(registry|cafile)",
    re.IGNORECASE,
)
"""What of this machine's environment the tools keep: how to reach an index, and whom to trust."""


def offline() -> tuple[str, ...]:
    """The beginning of a command line that runs in a network namespace with nothing but loopback in it.

    Skips the test where the system refuses namespaces.
    """
    made = ("unshare", "-n") if os.getuid() == 0 else ("unshare", "-rn")
    start = (*made, "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
    refusal = _refusal(start)
    if refusal:
        pytest.skip(f"network namespaces: {refusal}")
    return start


@cache
def _refusal(start: tuple[str, ...]) -> str:
    try:
        tried = subprocess.run([*start, "true"], capture_output=True, text=True, timeout=PATIENCE_S)
    except FileNotFoundError as error:
        return f"no {error.filename} on this machine"
    return tried.stderr.strip() or f"unshare exits with {tried.returncode}" if tried.returncode else ""


def inside(pid: int) -> tuple[str, ...]:
    """The beginning of a command line that runs in the network namespace of process `pid`."""
    how = ("--net",) if os.getuid() == 0 else ("--user", "--preserve-credentials", "--net")
    return ("nsenter", f"--target={pid}", *how)


_OF_PIP = {"index-url": ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"), "cert": ("PIP_CERT",), "trusted-host": ("PIP_TRUSTED_HOST",)}


@cache
def configured() -> Mapping[str, str]:
    """How this machine says that an index is reached: from its environment, and from what pip's and npm's configuration files add."""
    found = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
    said = _said("pip", "config", "list")
    for key, names in _OF_PIP.items():
        if match := re.search(rf"^(?:global|install|site|user)\.{key}='(\S+)'$", said, re.MULTILINE):
            found |= {name: match[1] for name in names if name not in found}
    for key in ("registry", "cafile"):
        value = _said("npm", "config", "get", key)
        if value not in ("", "null", "undefined"):
            found.setdefault(f"npm_config_{key}", value)
    return found


def _said(*command: str) -> str:
    if shutil.which(command[0]) is None:
        return ""
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S).stdout.strip()


def tool(name: str) -> str:
    """The path of a program, beside this Python or on PATH; skips the test where it is not installed."""
    found = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        pytest.skip(f"no {name} on this machine")
    return found


@dataclass(frozen=True, slots=True)
class Ran:
    """What one command did. `said` is its standard error, where prose and the tool's own output are."""

    code: int
    out: str
    said: str

    @property
    def result(self) -> dict[str, Any]:
        """The object that `--json` printed last."""
        made: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return made

    def clean(self) -> dict[str, Any]:
        """The object, after making sure that nothing was to be reported."""
        assert self.code == 0, self.out + self.said
        assert self.result["verdict"] == "clean", self.out
        return self.result

    def kinds(self) -> list[str]:
        """The classes of its misses."""
        return [miss["kind"] for miss in self.result["misses"]]


@dataclass
class Scene:
    """One store, and the places a tool may write to."""

    root: Path
    extra: dict[str, str] = field(default_factory=dict)
    """Variables for `secondtake` and its agent, beside the machine's own."""
    homes: int = 0

    @property
    def store(self) -> Path:
        return self.root / "store"

    def folder(self, name: str) -> Path:
        """A folder that is empty."""
        made = self.root / name
        made.mkdir(parents=True)
        return made

    def environment(self) -> dict[str, str]:
        """The machine's, with a new home, so that nothing a tool cached before is there; configuration files of pip are left out."""
        self.homes += 1
        home = self.folder(f"home-{self.homes}")
        return {
            **configured(),
            "HOME": str(home),
            "TMPDIR": str(home),
            "SECONDTAKE_STORE": str(self.store),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "npm_config_update_notifier": "false",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            **self.extra,
        }

    def run(self, *arguments: str, before: Sequence[str] = (), cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Ran:
        """Run `secondtake` to its end."""
        where = cwd or self.workspace()
        done = subprocess.run(
            [*before, *SECONDTAKE, *arguments],
            env=self.environment() if env is None else env,
            cwd=where,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def workspace(self) -> Path:
        """Where the tools run unless told otherwise."""
        made = self.root / "work"
        made.mkdir(exist_ok=True)
        return made

    def record(self, name: str, *agent: str, options: Sequence[str] = (), cwd: Path | None = None) -> Ran:
        """`secondtake record NAME -- AGENT`, with the world reachable."""
        return self.run("record", "--json", *options, name, "--", *agent, cwd=cwd)

    def replay(self, name: str, *agent: str, options: Sequence[str] = (), cwd: Path | None = None) -> Ran:
        """`secondtake replay NAME -- AGENT`, proxy and agent in an empty network namespace."""
        return self.run("replay", "--json", *options, name, "--", *agent, before=offline(), cwd=cwd)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """What `show NAME --json` prints."""
        shown = self.run("show", name, "--json")
        assert shown.code == 0, shown.said
        return [json.loads(line) for line in shown.out.splitlines()]

    @contextmanager
    def proxy(self, mode: str, *arguments: str, before: Sequence[str] = ()) -> Iterator[Running]:
        """`secondtake proxy MODE …`, ready; ended by force where the test did not end it."""
        with self.proxy_by([*before, *SECONDTAKE, "proxy", mode, "--json", *arguments]) as running:
            yield running

    @contextmanager
    def proxy_by(self, command: Sequence[str]) -> Iterator[Running]:
        """The same by a command line that ends in a proxy."""
        started = subprocess.Popen(
            command,
            env=self.environment(),
            cwd=self.workspace(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with started:
            try:
                assert started.stdout is not None
                line = started.stdout.readline()
                assert line, started.communicate()[1]
                yield Running(started, json.loads(line), self)
            finally:
                started.kill()


@dataclass
class Running:
    """A proxy that accepts connections."""

    process: subprocess.Popen[str]
    ready: dict[str, Any]
    scene: Scene

    def tool(self, *command: str, before: Sequence[str] = (), cwd: Path | None = None) -> Ran:
        """Run a tool in the environment that the proxy announced, in the proxy's own network namespace."""
        done = subprocess.run(
            [*inside(self.process.pid), *before, *command],
            env={**self.scene.environment(), **self.ready["environment"]},
            cwd=cwd or self.scene.workspace(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def stop(self, number: signal.Signals = signal.SIGINT) -> Ran:
        """End it; what it says last is the result."""
        self.process.send_signal(number)
        out, said = self.process.communicate(timeout=PATIENCE_S)
        return Ran(self.process.returncode, out, said)

    def forget_peak(self) -> int:
        """Begin anew with the highest memory; returns the present one in bytes."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")
        return self._status("VmRSS")

    def peak(self) -> int:
        """The most memory it has held since then, in bytes."""
        return self._status("VmHWM")

    def _status(self, name: str) -> int:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE)[1]) * 1024  # type: ignore[index]  # proc(5): always there


def tree(folder: Path, *, without: str = "") -> dict[str, str]:
    """Every file below `folder` by relative path, with its SHA-256, or where a link leads to; paths that match `without` are left out."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if without and re.search(without, name):
            continue
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            with path.open("rb") as file:
                found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def size_of(folder: Path) -> int:
    """Bytes of all files below `folder`."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def shell(text: str) -> tuple[str, ...]:
    """A command line for `sh`."""
    return ("sh", "-ec", text)


def joined(*words: str | Path) -> str:
    """Words as a shell reads them back."""
    return shlex.join(map(str, words))
