"""The runtime file: what a running proxy leaves behind for `env --port P`, one per port, in a directory of mode 0700.

A process is named by its ID and its start time, since IDs are used again; a file whose process is gone is stale and says so.

* Stale                    the proxy that wrote the file is gone, or there is none on that port
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from secondtake.cassettes.errors import RecordedError

VERSION = 1
_LARGEST_BYTES = 64 * 1024


class Stale(RecordedError):
    """No living proxy on that port. `pid` is the process that was, where known."""

    def __init__(self, message: str, *, pid: int | None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.pid = pid


@dataclass(frozen=True, slots=True)
class Runtime:
    """One running proxy."""

    port: int
    pid: int
    started: str
    """Start time of the process as the kernel tells it (`process_start`); empty where it does not."""
    mode: str
    bundle: str
    """Path of the trust bundle: system roots, the user's own, and our authority."""
    cassette: str
    host: str = "127.0.0.1"
    credential: str | None = field(default=None, repr=False)
    """`user:secret` where the proxy asks for one."""
    upstream: str | None = field(default=None, repr=False)
    """What `SECONDTAKE_UPSTREAM` is to say: the former proxy. May hold a password."""


def write(directory: Path, runtime: Runtime) -> Path:
    """Write the file of this port, replacing a former one at once. Mode 0600 whatever the umask."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    directory.chmod(0o700)
    path = _path(directory, runtime.port)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    fd = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        os.fchmod(fd, 0o600)
        json.dump({"version": VERSION, **asdict(runtime)}, file, sort_keys=True)
    beside.replace(path)
    return path


def read(directory: Path, port: int) -> Runtime:
    """The proxy that runs on `port`.

    Raises:
        Stale: there is none, or its process is gone; the message names the process.
    """
    hint = "start one with `secondtake proxy record NAME` or `secondtake proxy replay NAME`"
    path = _path(directory, port)
    runtime = _load(path)
    if runtime is None:
        others = ", ".join(str(other.port) for other in running(directory))
        more = f"; running: {others}" if others else ""
        raise Stale(f"no proxy is known on port {port}{more}", pid=None, hint=hint)
    if not is_alive(runtime):
        raise Stale(f"the proxy on port {port} (process {runtime.pid}) is gone; its settings lead nowhere", pid=runtime.pid, hint=hint)
    return runtime


def running(directory: Path) -> list[Runtime]:
    """The living proxies, by port."""
    found = (_load(path) for path in directory.glob("proxy-*.json"))
    return sorted((runtime for runtime in found if runtime is not None and is_alive(runtime)), key=lambda runtime: runtime.port)


def remove(directory: Path, port: int, *, pid: int | None = None) -> None:
    """Take the file away; with `pid` only if it is still that process's."""
    path = _path(directory, port)
    if pid is not None and ((runtime := _load(path)) is None or runtime.pid != pid):
        return
    path.unlink(missing_ok=True)


def sweep(directory: Path) -> None:
    """Take away the files of processes that are gone."""
    for path in directory.glob("proxy-*.json"):
        if (runtime := _load(path)) is None or not is_alive(runtime):
            path.unlink(missing_ok=True)


def process_start(pid: int, proc: Path = Path("/proc")) -> str:
    """When the process started, in the kernel's own words (boot and ticks); empty where it cannot be known."""
    with suppress(OSError, IndexError, UnicodeDecodeError):
        # The second field is the program's name in parentheses and may hold anything: count from the last one (proc_pid_stat(5)).
        ticks = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()[19]
        boot = (proc / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}:{ticks}"
    return ""


def is_alive(runtime: Runtime) -> bool:
    """Whether the very process that wrote the file still runs."""
    if runtime.pid <= 0:
        return False
    if sys.platform != "win32":
        try:
            os.kill(runtime.pid, 0)
        except ProcessLookupError:
            return False
        except (PermissionError, OverflowError):
            return False
    return process_start(runtime.pid) == runtime.started


def _path(directory: Path, port: int) -> Path:
    return directory / f"proxy-{port:d}.json"


def _load(path: Path) -> Runtime | None:
    """None for what is no runtime file of ours: it is only a hint where a proxy may be, never data to keep."""
    try:
        with path.open("rb") as file:
            values = json.loads(file.read(_LARGEST_BYTES))
        known = {each.name for each in fields(Runtime)}
        runtime = Runtime(**{name: value for name, value in values.items() if name in known})
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    texts = (runtime.started, runtime.mode, runtime.bundle, runtime.cassette, runtime.host)
    sound = all(isinstance(number, int) for number in (runtime.port, runtime.pid)) and all(isinstance(text, str) for text in texts)
    return runtime if sound else None
