"""A layer over the whole file system that is thrown away: what the agent does to files it may see, and nobody else does.

Standard library only, loaded before the agent. The root becomes a folder in memory; in it stands each folder of the real root, under an
overlay whose upper half is in memory too. Reading sees the machine's files, writing copies them up first. What stands there for real is
the binds, and what was named as writable. Nothing of the real tree can be reached by a path, nor what the layer holds but through it.

As root the overlays are the machine's own. In a user namespace two things are otherwise. A folder that holds mounts cannot be layered as
a whole: it is made anew in memory, as the root is, from its entries. And the kernel copies up nothing that belongs to another user, so
that folders of others which lead to what the user may write are made in the upper half beforehand.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from secondtake.harness.seal import kernel
from secondtake.harness.seal.mounts import HIDDEN, NOSUID, View, below, bind, filled, held, outermost, read_only

_HELD = "/proc/self/fd/"
_KERNELS = ("/proc", "/sys", "/dev")
_UNLAYERED = {
    "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs", "fusectl", "hugetlbfs",
    "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "sysfs", "tracefs",
}  # fmt: skip
"""File systems that hold no files: seen as they are, and only to be read."""

_STAGES = ("/run", "/tmp", "/mnt", "/srv", "/media")  # noqa: S108 - covered for as long as the new root is built
_COPIED_BYTES = 1 << 20
_MOST, _MOST_ENTRIES = 200, 5000
"""Layers, and entries of a folder that is made anew."""
_LOOKED, _DEEP = 1000, 3
"""How many folders, beside the uppermost, and how far down, are looked at for what an ordinary user may write below folders of others."""
_OTHERS = ("/boot", "/etc", "/lost+found", "/root", "/usr")
"""Not looked through: what is in them is the machine's. A folder in them that leads to HOME or the like is found all the same."""

_DANGEROUS = ("mem", "kmem", "port", "kmsg", "nvram")


class Mount(NamedTuple):
    """One line of `/proc/self/mountinfo`."""

    kind: str
    closed: bool
    """It can only be read already, or holds no files."""


def mounted(lines: Iterable[bytes]) -> dict[str, Mount]:
    """Return what is mounted where; the last of several at one place, which is the one that is seen. Format: proc_pid_mountinfo(5)."""
    found: dict[str, Mount] = {}
    for line in lines:
        fields = line.split(b" ")
        more = fields.index(b"-")
        path = os.fsdecode(fields[4].decode("unicode_escape").encode("latin-1"))
        kind = fields[more + 1].decode()
        only_read = b"ro" in fields[5].split(b",") or b"ro" in fields[more + 3].split(b",")
        found.pop(path, None)
        found[path] = Mount(kind, only_read or kind in _UNLAYERED)
    return found


class Layered(View):
    """A view in which everything may be changed that the agent may change outside, and nothing is."""

    hides = tuple(path for path in HIDDEN if path != "/tmp")  # noqa: S108 - layered like the rest

    def build(self) -> None:
        """Mount everything but a new `/proc`. Afterwards `closed` names what the layer could not be laid over."""
        kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
        with open("/proc/self/mountinfo", "rb") as file:
            self.mounts = mounted(file.read().splitlines())
        self.closed: list[str] = []
        self.user, self.uid = mapped(), os.geteuid()
        self.laid = self.looked = 0
        hidden = self._hidden()
        wanted = [*self.order["binds"], *({"source": path, "target": path, "writable": True} for path in self._written())]
        wanted.sort(key=lambda each: each["target"].count("/"))
        targets = [each["target"] for each in wanted]
        binds = [(held(each["source"]), each["target"], each["writable"]) for each in wanted]
        shown = [
            (held(path), path, False)
            for path in outermost(self.order["readable"])
            if below(path, targets) and path not in targets and os.path.exists(path)
        ]
        kept = [(held(path), path) for path in outermost(self._needed(hidden)) if path not in targets and os.path.exists(path)]
        modes = [(path, stat.S_IMODE(os.stat(path).st_mode)) for path in hidden]
        lock = os.path.isdir("/run/lock")
        leads = (self.environ.get("HOME", ""), self.order["cwd"], *targets)
        self.leads = [os.path.realpath(path) for path in leads if path.startswith("/")]
        links = {name: os.readlink(f"/{name}") for name in os.listdir("/") if os.path.islink(f"/{name}")}
        tops = [(held(f"/{name}"), name) for name in sorted(os.listdir("/")) if name not in links]
        tops.sort(key=lambda top: not below(self.leads[0], (f"/{top[1]}",)) if self.leads else False)
        below_tops = [] if self.user else self._held_mounts(hidden)
        status = os.stat("/")
        may_write = os.access("/", os.W_OK)
        self.stage = next(path for path in _STAGES if os.path.isdir(path))
        kernel.mount("tmpfs", self.stage, "tmpfs", NOSUID, "mode=755")
        root = self.root = f"{self.stage}/root"
        os.mkdir(root)
        kernel.mount("tmpfs", root, "tmpfs", NOSUID, "mode=755")
        for name, text in links.items():
            os.symlink(text, f"{root}/{name}")
        for descriptor, name in tops:
            self._entry(f"/{name}", f"{_HELD}{descriptor}", f"{root}/{name}", hidden)
        for descriptor, path in below_tops:
            self._mount_again(descriptor, path)
        for path, mode in modes:
            os.makedirs(root + path, exist_ok=True)
            kernel.mount("tmpfs", root + path, "tmpfs", NOSUID, f"mode={mode:o}")
        for descriptor, path in kept:
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                os.makedirs(root + path, exist_ok=True)
                self._place(path, f"{_HELD}{descriptor}", root + path)
            else:
                bind(f"{_HELD}{descriptor}", root + path)
                read_only(root + path)
        os.chmod(root, stat.S_IMODE(status.st_mode) if may_write or not self.user else 0o555)
        os.utime(root, ns=(status.st_atime_ns, status.st_mtime_ns))
        before = f"/.before-{os.urandom(8).hex()}"  # nobody's link leads there
        os.mkdir(root + before)
        kernel.pivot_root(root, root + before)
        os.chdir("/")
        self._private_folders(hidden, lock=lock)
        # From here on a link in a copy, which is a stranger's, leads to nothing but the layer.
        for descriptor, target, writable in (*binds, *shown):
            if not writable and target not in targets and filled(target):
                continue  # the copy holds it too
            bind(f"{_HELD}{descriptor}", target)
            if not writable:
                read_only(target)
        self._resolver(hidden)
        self._mask()
        if os.geteuid() == 0:
            self._mask_devices()
        kernel.unmount(before)
        os.rmdir(before)
        for descriptor in [each[0] for each in (*tops, *below_tops, *kept)] + [each[0] for each in (*binds, *shown)]:
            os.close(descriptor)

    def holes(self) -> list[str]:
        """What the layer could not be laid over, as a phrase."""
        return [f"{', '.join(self.closed)} can only be read"] if self.closed else []

    def _written(self) -> list[str]:
        return outermost(path for path in self.order["writable"] if os.path.exists(path))

    def _hidden(self) -> list[str]:
        """Our own folder too: it holds the key of the authority, and nothing that an agent writes."""
        found = super()._hidden()
        for path in map(os.path.realpath, self.order["private"]):
            if path not in found and not below(path, found):
                found.append(path)
        return found

    def _entry(self, path: str, real: str, to: str, hidden: Sequence[str] = ()) -> None:
        """One entry of a folder that is made anew: of the root, or of one that holds mounts. Sockets, pipes and devices are left out."""
        kind = os.lstat(real).st_mode if not real.startswith(_HELD) else os.stat(real).st_mode
        if stat.S_ISLNK(kind):
            os.symlink(os.readlink(real), to)
        elif stat.S_ISREG(kind):
            if not (os.access(real, os.W_OK) and self._copied(real, to)):
                bind(real, to)
                read_only(to)
        elif stat.S_ISDIR(kind):
            os.mkdir(to)
            if path in _KERNELS:
                kernel.mount(real, to, None, kernel.MS_BIND | kernel.MS_REC)
                if path != "/proc":
                    self._only_read(path, to)
            elif path not in hidden:
                self._place(path, real, to)

    def _place(self, path: str, real: str, to: str) -> None:
        """Lay a layer over a folder; where that cannot be, it can only be read."""
        mount = self.mounts.get(path)
        if not (mount and mount.closed):
            if self.user and any(each.startswith(f"{path}/") for each in self.mounts):
                if self._anew(path, real, to):
                    return
            elif self.laid < _MOST and self._overlay(path, real, to):
                return
            if os.access(real, os.W_OK):
                self.closed.append(path)
        kernel.mount(real, to, None, kernel.MS_BIND | (kernel.MS_REC if self.user else 0))
        self._only_read(path, to)

    def _anew(self, path: str, real: str, to: str) -> bool:
        """A folder with mounts in it, made anew from its entries; False where it holds too many, or cannot be listed."""
        try:
            names = os.listdir(real)
        except OSError:
            return False
        if len(names) > _MOST_ENTRIES:
            return False
        leads = {each[len(path) + 1 :].partition("/")[0] for each in (*self.mounts, *self.leads) if each.startswith(f"{path}/")}
        names.sort(key=lambda name: name not in leads)  # there may be more than can be layered
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                self._entry(f"{path}/{name}", f"{real}/{name}", f"{to}/{name}")
        self._as(to, real)
        return True

    def _copied(self, real: str, to: str) -> bool:
        """Put what is in a file into the layer's; False where that cannot be, or is too much."""
        try:
            status = os.stat(real)
            if status.st_size > _COPIED_BYTES:
                return False
            with open(real, "rb") as source, open(to, "wb") as file:
                file.write(source.read(_COPIED_BYTES))
            os.chmod(to, stat.S_IMODE(status.st_mode))
            os.utime(to, ns=(status.st_atime_ns, status.st_mtime_ns))
        except OSError:
            return False
        return True

    def _overlay(self, path: str, real: str, to: str) -> bool:
        number = self.laid
        self.laid += 1
        upper, work = f"{self.stage}/{number}", f"{self.stage}/{number}w"
        os.mkdir(upper)
        os.mkdir(work)
        made = [(upper, real)]
        if self.user:
            made += self._led(path, real, upper)
        for folder, like in reversed(made):
            self._as(folder, like)
        lower = held(real)
        where = f"lowerdir={_HELD}{lower},upperdir={upper},workdir={work}"
        flags = NOSUID | (kernel.MS_NOEXEC if os.statvfs(real).f_flag & os.ST_NOEXEC else 0)
        try:
            # Redirections let a folder be renamed; without, a program must copy it (EXDEV), as `mv` does.
            for options in ("userxattr,",) if self.user else ("redirect_dir=on,", "", "userxattr,"):
                with contextlib.suppress(OSError):
                    kernel.mount("overlay", to, "overlay", flags, options + where)
                    return True
        finally:
            os.close(lower)
        return False

    def _led(self, path: str, real: str, upper: str) -> list[tuple[str, str]]:
        """Make the folders of others in the upper half that lead to what the user may write. Gives each with the real one."""
        made: dict[str, str] = {}
        for lead in (*self._own(path, real), *(os.path.dirname(lead) for lead in self.leads)):
            if not lead.startswith(f"{path}/"):
                continue
            done = ""
            for name in lead[len(path) + 1 :].split("/"):
                done = f"{done}/{name}"
                if f"{path}{done}" in self.mounts or os.path.islink(real + done):
                    break
                if done not in made:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(upper + done)
                    made[done] = real + done
        return [(upper + done, like) for done, like in made.items()]

    def _own(self, path: str, real: str) -> list[str]:
        """Folders that this user may write in, where the one above belongs to another; and those above folders of this user's."""
        if path in _OTHERS or os.stat(real).st_uid == self.uid:
            return []
        found: list[str] = []
        level = [""]
        for depth in range(_DEEP):
            following = []
            for done in level:
                try:
                    with os.scandir(real + done) as entries:
                        folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
                except OSError:
                    continue
                self.looked += len(folders) if depth else 0
                if depth and self.looked > _LOOKED:
                    return found
                for name in folders:
                    each = f"{done}/{name}"
                    status = os.lstat(real + each)
                    if path + each in self.mounts:
                        continue
                    if status.st_uid == self.uid:
                        if done:
                            found.append(path + done)
                        continue
                    if status.st_mode & 0o22 and os.access(real + each, os.W_OK):
                        found.append(path + each)
                    if status.st_mode & 0o55:
                        following.append(each)
            level = following
        return found

    def _as(self, folder: str, like: str) -> None:
        """Give a folder of the upper half owner, mode and times of the real one; where the owner cannot be, what the user may do there."""
        try:
            status = os.stat(like)
        except OSError:  # there is none: a place for a copy
            return
        mode = stat.S_IMODE(status.st_mode)
        if not self.user:
            os.chown(folder, status.st_uid, status.st_gid)
        elif status.st_uid != self.uid:
            may = sum(bit for bit, right in ((0o400, os.R_OK), (0o200, os.W_OK), (0o100, os.X_OK)) if os.access(like, right))
            mode = mode & 0o1077 | may
        os.chmod(folder, mode)
        os.utime(folder, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _held_mounts(self, hidden: list[str]) -> list[tuple[int, str]]:
        """What is mounted below the folders of the root, the outer ones first."""
        found = []
        for path in sorted(self.mounts):
            if path.count("/") > 1 and not below(path, (*_KERNELS, *hidden)) and path not in hidden and self.mounts[path].kind != "autofs":
                with contextlib.suppress(OSError):
                    found.append((held(path), path))
        return found

    def _mount_again(self, descriptor: int, path: str) -> None:
        """One of these, as root: an overlay shows a single file system, so that each has its own."""
        real, to = f"{_HELD}{descriptor}", self.root + path
        status = os.fstat(descriptor)
        if not os.path.lexists(to) or os.path.islink(to):
            return
        if stat.S_ISDIR(status.st_mode):
            self._place(path, real, to)
        elif not (stat.S_ISREG(status.st_mode) and self._copied(real, to)):
            kernel.mount(real, to, None, kernel.MS_BIND)
            read_only(to)

    def _only_read(self, path: str, to: str) -> None:
        """Take writing away from a folder, and from all that is mounted in it."""
        read_only(to)
        for each in self.mounts:
            if each.startswith(f"{path}/") and self.mounts[each].kind != "devpts":
                with contextlib.suppress(OSError):
                    read_only(self.root + each)

    def _mask_devices(self) -> None:
        """From root: disks, and the machine's memory. Other devices are as they are."""
        for folder, _, names in os.walk("/dev"):
            for name in names:
                path = f"{folder}/{name}"
                with contextlib.suppress(OSError):
                    if stat.S_ISBLK(os.lstat(path).st_mode) or (folder == "/dev" and name in _DANGEROUS):
                        kernel.mount("/dev/null", path, None, kernel.MS_BIND)


def mapped() -> bool:
    """Whether we are in a user namespace that is not the machine's own."""
    with open("/proc/self/uid_map", "rb") as file:
        return file.read().split() != [b"0", b"0", b"4294967295"]
