"""What the agent finds in the file system: copies in the place of originals, no door to a service of the host.

Standard library only, loaded before the agent. Everything is mounted in a mount namespace of its own and goes with it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from secondtake.harness.seal import kernel

HIDDEN = ("/run", "/var/run", "/tmp", "/dev/shm")  # noqa: S108 - hidden, not used
"""Folders where services of the host keep their sockets, and other processes their files: an empty one stands in the place of each."""

NOSUID = kernel.MS_NOSUID | kernel.MS_NODEV
_RESOLV = "/etc/resolv.conf"


def host_sockets() -> list[str]:
    """Return the path of every Unix socket that a process of this network namespace is bound to. Called before it is left."""
    with open("/proc/net/unix", "rb") as file:
        lines = file.read().split(b"\n")[1:]
    # Num RefCount Protocol Flags Type St Inode Path; a path may hold spaces.
    paths = (fields[7] for line in lines if len(fields := line.split(None, 7)) == 8)
    return sorted({os.fsdecode(path) for path in paths if path.startswith(b"/")})


class View:
    """One agent's view of the file system, in the making. Descriptors are taken before anything is hidden."""

    hides: tuple[str, ...] = HIDDEN

    def __init__(self, order: Mapping[str, Any], environ: Mapping[str, str], sockets: Sequence[str], programs: Sequence[str] = ()) -> None:
        self.environ = environ
        self.sockets = sockets
        self.programs = programs
        self.order = order
        self.resolv = _without_search()

    def build(self) -> None:
        """Mount everything but `/proc`."""
        kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
        hidden = self._hidden()
        binds = [(held(bind["source"]), bind["target"], bind["writable"]) for bind in self.order["binds"]]
        targets = [bind["target"] for bind in self.order["binds"]]
        # What is named and would be hidden by a bind: only to be read, since it is not a copy.
        binds += [(held(path), path, False) for path in outermost(self.order["readable"]) if below(path, targets) and os.path.exists(path)]
        kept = [(held(path), path) for path in outermost(self._needed(hidden)) if os.path.exists(path)]
        modes = [(path, stat.S_IMODE(os.stat(path).st_mode)) for path in hidden]
        lock = os.path.isdir("/run/lock")
        for path, mode in modes:
            kernel.mount("tmpfs", path, "tmpfs", NOSUID, f"mode={mode:o}")
        self._private_folders(hidden, lock=lock)
        for descriptor, path in kept:
            bind(f"/proc/self/fd/{descriptor}", path)
            os.close(descriptor)
        self._put_in_place(binds, hidden, [path for _, path in kept])
        self._resolver(hidden)
        self._mask()

    def _private_folders(self, hidden: Sequence[str], *, lock: bool) -> None:
        """What is expected to exist in a hidden folder."""
        for path in (self.environ.get("XDG_RUNTIME_DIR", ""), self.environ.get("TMPDIR", "")):
            if below(path, hidden):
                os.makedirs(path, 0o700, exist_ok=True)
        if lock and "/run" in hidden:
            os.makedirs("/run/lock", exist_ok=True)
            os.chmod("/run/lock", 0o1777)  # noqa: S103 - as on every machine that has it

    def _put_in_place(self, binds: Sequence[tuple[int, str, bool]], hidden: Sequence[str], kept: Sequence[str]) -> None:
        """The binds, the outer ones first. They wait in a folder of memory meanwhile, since the root may become another."""
        if not binds:
            return
        targets = [bind["target"] for bind in self.order["binds"]]
        aside = os.path.join(hidden[-1] if "/tmp" not in hidden else "/tmp", "aside")  # noqa: S108 - a folder of memory that is ours
        for number, (descriptor, _, _) in enumerate(binds):
            bind(f"/proc/self/fd/{descriptor}", f"{aside}/{number}")
            os.close(descriptor)
        given = len(self.order["binds"])
        for number, (_, target, writable) in sorted(enumerate(binds), key=lambda bind: (bind[0] >= given, bind[1][1].count("/"))):
            if number >= given and filled(target):
                continue  # the copy holds it too
            in_memory = below(target, [*hidden, *targets]) and not below(target, kept)
            if not os.path.lexists(target) and not in_memory:
                _make_room(target)
            bind(f"{aside}/{number}", target)
            if not writable:
                read_only(target)
        for number in range(len(binds)):
            kernel.unmount(f"{aside}/{number}")
            (os.rmdir if os.path.isdir(f"{aside}/{number}") else os.unlink)(f"{aside}/{number}")
        os.rmdir(aside)

    def join(self) -> None:
        """In a copy of a view that an earlier start has built: hide what has come since."""
        self._mask()

    def standing(self, here: str) -> str:
        """Where the agent stands: where we do, as it is seen inside."""
        for bind in self.order["binds"]:
            if here == bind["source"] or here.startswith(f"{bind['source']}/"):
                return str(bind["target"]) + here[len(bind["source"]) :]
        return here if os.path.isdir(here) else str(self.order["cwd"])

    def _hidden(self) -> list[str]:
        """A folder that is itself named as readable is left as it is, but for the sockets in it."""
        found: list[str] = []
        for path in (*self.hides, self.environ.get("XDG_RUNTIME_DIR", "")):
            real = os.path.realpath(path) if path.startswith("/") else ""
            if real not in ("", "/", *found, *self.order["readable"]) and os.path.isdir(real) and not below(real, found):
                found.append(real)
        return found

    def _needed(self, hidden: Sequence[str]) -> set[str]:
        """What lies in a hidden folder and is needed all the same: where the agent stands, its home, its programs, what was named."""
        wanted = [*self.order["readable"], self.order["cwd"], self.environ.get("HOME", "")]
        for folder in (*self.environ.get("PATH", "").split(":"), *self.programs):
            # The folder above `bin` holds what its programs load.
            above = os.path.dirname(folder.rstrip("/"))
            wanted += [above if below(above, hidden) else folder]
        targets = [bind["target"] for bind in self.order["binds"]]
        found = set()
        for path in wanted:
            for each in {path, os.path.realpath(path)} if path.startswith("/") else ():
                if below(each, hidden) and each not in targets and not below(each, targets):
                    found.add(each.rstrip("/"))
        return found

    def _resolver(self, hidden: Sequence[str]) -> None:
        """Any name server answers here. Search domains are left out: each name exists as it is asked for."""
        if self.resolv is None:
            return
        place = os.path.realpath(_RESOLV)
        if below(place, hidden):
            os.makedirs(os.path.dirname(place), exist_ok=True)
            _write(place, self.resolv)
        elif os.path.exists(place) and "/run" in hidden:
            _write("/run/resolv.conf", self.resolv)
            kernel.mount("/run/resolv.conf", place, None, kernel.MS_BIND)

    def _mask(self) -> None:
        """Put something that is no socket over each socket of the host that can still be seen, wherever it is."""
        for path in self.sockets:
            with contextlib.suppress(OSError):
                if stat.S_ISSOCK(os.lstat(path).st_mode):
                    kernel.mount("/dev/null", path, None, kernel.MS_BIND)


def visible(sockets: Iterable[str]) -> list[str]:
    """Return the sockets of the host that can still be reached by path."""
    found = []
    for path in sockets:
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.stat(path).st_mode):
                found.append(path)
    return found


def own_proc(*, root: bool) -> None:
    """Mount a `/proc` of this process namespace; for root, without the switches that act on the whole machine."""
    kernel.mount("proc", "/proc", "proc", NOSUID | kernel.MS_NOEXEC)
    if root:
        for path in ("/proc/sys", "/proc/sysrq-trigger", "/sys"):
            if os.path.exists(path):
                with contextlib.suppress(OSError):
                    kernel.mount(path, path, None, kernel.MS_BIND | kernel.MS_REC)
                    read_only(path)


def held(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def bind(source: str, target: str) -> None:
    if not os.path.lexists(target):
        if os.path.isdir(source):
            os.makedirs(target, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            _write(target, b"")
    kernel.mount(source, target, None, kernel.MS_BIND | kernel.MS_REC)


def filled(path: str) -> bool:
    """Whether something is there, beyond the empty place that an earlier start with the same binds has made."""
    return os.path.islink(path) or (bool(os.listdir(path)) if os.path.isdir(path) else os.path.exists(path) and os.path.getsize(path) > 0)


def _make_room(target: str) -> None:
    """Make it possible to create `target` without touching the machine: the folder above it becomes one in memory with the same entries."""
    above = os.path.dirname(target)
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    entries = [(name, os.path.join(above, name)) for name in os.listdir(above)]
    links = {name: os.readlink(path) for name, path in entries if os.path.islink(path)}
    kept = [(name, held(path)) for name, path in entries if name not in links]
    place = above if above != "/" else "/tmp/root"  # noqa: S108 - in a folder of memory that is ours
    os.makedirs(place, exist_ok=True)
    kernel.mount("tmpfs", place, "tmpfs", NOSUID, f"mode={stat.S_IMODE(os.stat(above).st_mode):o}")
    for name, text in links.items():
        os.symlink(text, os.path.join(place, name))
    for name, descriptor in kept:
        bind(f"/proc/self/fd/{descriptor}", os.path.join(place, name))
        os.close(descriptor)
    if above == "/":
        os.mkdir(f"{place}/.before")
        kernel.pivot_root(place, f"{place}/.before")
        os.chdir("/")
        kernel.unmount("/.before")
        os.rmdir("/.before")
        for remove in (kernel.unmount, os.rmdir):  # the place as it is seen through the copy of `/tmp`
            with contextlib.suppress(OSError):
                remove(place)


def read_only(target: str) -> None:
    """Take writing away; what the mount forbids already stays forbidden, as a user namespace demands it."""
    forbidden = os.statvfs(target).f_flag & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME | os.ST_NODIRATIME | os.ST_RELATIME)
    # The ST_ bits are those of MS_ but for relatime (statvfs(3), include/linux/statfs.h).
    flags = forbidden & ~os.ST_RELATIME | (1 << 21 if forbidden & os.ST_RELATIME else 0)
    kernel.mount(None, target, None, kernel.MS_BIND | kernel.MS_REMOUNT | kernel.MS_RDONLY | flags)


def below(path: str, folders: Iterable[str]) -> bool:
    return any(path.startswith(f"{folder}/") for folder in folders)


def outermost(paths: Iterable[str]) -> list[str]:
    """Return the paths that lie in no other of them."""
    found: list[str] = []
    for path in sorted(paths):
        if not below(path, found):
            found.append(path)
    return found


def _without_search() -> bytes | None:
    try:
        with open(_RESOLV, "rb") as file:
            text = file.read()
    except OSError:
        return None
    return b"".join(line for line in text.splitlines(keepends=True) if line.split(None, 1)[:1] not in ([b"search"], [b"domain"]))


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
