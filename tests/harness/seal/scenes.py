"""A seal around a proxy that only notes what arrives, and agents that try to get past it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from secondtake.harness.launch import Finished, launch
from secondtake.harness.seal import Seal, Tier, Wanted, sealed
from secondtake.harness.seal.mounts import HIDDEN

ROOT = Path(__file__).resolve().parents[3]
ENV = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}
PREFIXES = (Path(sys.prefix), Path(sys.base_prefix), ROOT)
"""What a Python of ours needs, wherever it lies."""

PYTHON = (sys.executable, "-I", "-S", "-c")


@dataclass(slots=True)
class Proxy:
    """Answers every request and every tunnel with two bytes; `lines` are the first lines it was sent."""

    lines: list[str] = field(default_factory=list)
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.lines.append(head.split(b"\r\n")[0].decode())
            if head.startswith(b"CONNECT"):
                writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
                if not await reader.read(4096):
                    return
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
            await writer.drain()
        writer.close()


@asynccontextmanager
async def proxy() -> AsyncIterator[Proxy]:
    made = Proxy()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    async with server:
        yield made


@asynccontextmanager
async def stand(folder: Path, port: int, **options: Any) -> AsyncIterator[Seal]:
    """A seal, its run directory in `folder`."""
    run_dir = folder / "run"
    run_dir.mkdir(mode=0o700, exist_ok=True)
    given = {"wanted": Wanted.AUTO, "credential": None, "cwd": folder, "readable": PREFIXES, **options}
    began = time.monotonic_ns()
    async with sealed(run_dir=run_dir, proxy_port=port, now_us=lambda: (time.monotonic_ns() - began) // 1000, **given) as seal:
        yield seal


@dataclass(frozen=True, slots=True)
class Ran:
    """How an agent ended, what it said, and what came of its attempts."""

    finished: Finished
    out: str
    seal: Seal
    lines: list[str]

    @property
    def attempts(self) -> set[str]:
        return set(map(str, self.seal.attempts))


async def agent(
    seal: Seal, folder: Path, command: Sequence[str], *, env: Mapping[str, str] | None = None, **options: Any
) -> tuple[Finished, str]:
    """Run a command behind the seal's prefix."""
    output = folder / f"out-{time.monotonic_ns()}"
    with output.open("wb") as file:
        finished = await launch(
            (*seal.prefix, *command),
            env={**ENV, **(env or {})},
            stdout=file,
            stderr=file,
            forward_signals=False,
            **{"cwd": folder, **options},
        )
    return finished, output.read_text(errors="replace")


def run(
    folder: Path,
    *command: str,
    env: Mapping[str, str] | None = None,
    known_hosts: Set[str] | None = None,
    tier: Tier | None = Tier.SEALED,
    where: Path | None = None,
    **options: Any,
) -> Ran:
    """One agent in a seal of its own; skips where the machine cannot have that tier."""

    async def go() -> Ran:
        async with proxy() as standing:
            async with stand(folder, standing.port, known_hosts=known_hosts, **options) as seal:
                if tier is not None and seal.tier is not tier:
                    pytest.skip(f"no tier `{tier}` here: {'; '.join(seal.refused)}")
                told = {"HTTPS_PROXY": f"http://127.0.0.1:{standing.port}", "http_proxy": f"http://127.0.0.1:{standing.port}"}
                finished, out = await agent(seal, folder, command, env={**told, **(env or {})}, cwd=where or folder)
            return Ran(finished, out, seal, standing.lines)

    return asyncio.run(go())


def needs(program: str) -> str:
    """A program of this machine, or a skip that names it."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not on this machine")
    return found


def static_client(folder: Path) -> Path:
    """A C program without a library: it connects to ARGV[1] port ARGV[2], sends a request, prints the answer or why there is none."""
    source = folder / "client.c"
    source.write_text(r"""
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(words[2]))};
    char text[512]; ssize_t got;
    inet_pton(AF_INET, words[1], &to.sin_addr);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(s, (struct sockaddr *)&to, sizeof to)) { printf("%s\n", strerrorname_np(errno)); return 3; }
    dprintf(s, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", words[1]);
    while ((got = read(s, text, sizeof text)) > 0) write(1, text, got);
    return 0;
}
""")
    made = folder / "client"
    subprocess.run([needs("gcc"), "-D_GNU_SOURCE", "-static", "-o", made, source], check=True)
    return made


@dataclass(frozen=True, slots=True)
class Host:
    """What must be as it was."""

    mounts: tuple[str, ...]
    """Where a seal mounts something; others on the machine may do so elsewhere meanwhile."""
    interfaces: tuple[str, ...]
    descriptors: int
    """Our own: a socket that was made inside would keep its network alive."""

    @classmethod
    def now(cls) -> Host:
        return cls(
            tuple(line for line in Path("/proc/self/mountinfo").read_text().splitlines() if _ours(line.split()[4])),
            tuple(sorted(path.name for path in Path("/sys/class/net").iterdir())),
            len(list(Path("/proc/self/fd").iterdir())),
        )


def _ours(place: str) -> bool:
    return place in {"/", "/proc", "/proc/sys", "/sys", "/etc/resolv.conf", "/dev/null", *HIDDEN} or "pytest-of-" in place


@contextlib.contextmanager
def host_unchanged() -> Iterator[None]:
    """Fails where something was left behind."""
    before = Host.now()
    yield
    assert Host.now() == before


OTHER = 1001


@contextlib.contextmanager
def other_user() -> Iterator[Path]:
    """A folder of another user's, not below pytest's own, which are closed to others."""
    if os.geteuid() != 0:
        pytest.skip("root is not who runs the tests; they ran as an ordinary user then")
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, OTHER, OTHER)
        yield Path(folder)


def as_other(
    folder: Path, *words: str, covered: bool = False, disk: Path | None = None, user: int = OTHER
) -> subprocess.CompletedProcess[str]:
    """Our Python as that user, with HOME in `folder`. `covered`, `disk`: users.py."""
    env = ["/usr/bin/env", f"HOME={folder}", f"TMPDIR={folder}", "PYTHONDONTWRITEBYTECODE=1"]
    more = [*(["cover"] if covered else []), *([f"disk:{disk}"] if disk else [])]
    return script("users.py", str(user), *more, *map(str, PREFIXES), "--", *env, sys.executable, *words)


def script(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run one of the scripts beside this file."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT / '.src'}:{ROOT}"}
    return subprocess.run([sys.executable, str(Path(__file__).with_name(name)), *words], cwd=ROOT, env=env, capture_output=True, text=True)
