"""Runs a program as another user of this machine, for tests that root runs.

A script: `python users.py UID [cover] [disk:FOLDER] PATH… -- PROGRAM ARGUMENT…`

In a mount namespace of its own the PATHs, which the program needs, are made reachable where a folder above is closed to others (a
Python below root's home). `cover` hides a part of `/proc`. FOLDER becomes a disk of its own, that user's, and FOLDER.conf a
mounted file, as container engines do it. In FOLDER/deep the kernel lays no further overlay over the two that are there.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from secondtake.harness.seal import kernel


def reachable(path: Path) -> None:
    """Put an open folder with nothing but the way to `path` over the first closed one above it."""
    for above in reversed(path.parents):
        if not above.stat().st_mode & stat.S_IXOTH:
            held = os.open(path, os.O_PATH)
            kernel.mount("tmpfs", str(above), "tmpfs", 0, "mode=755")
            path.mkdir(parents=True)
            kernel.mount(f"/proc/self/fd/{held}", str(path), None, kernel.MS_BIND | kernel.MS_REC)
            os.close(held)
            return


def main(arguments: list[str]) -> None:
    """Become that user, then the program."""
    user, (paths, command) = int(arguments[0]), (arguments[1 : (end := arguments.index("--"))], arguments[end + 1 :])
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    if "cover" in paths:  # as container engines do
        paths.remove("cover")
        kernel.mount("tmpfs", "/proc/driver", "tmpfs", 0)
    for word in [each for each in paths if each.startswith("disk:")]:
        paths.remove(word)
        disk = word.removeprefix("disk:")
        kernel.mount("tmpfs", disk, "tmpfs", 0, f"uid={user},gid={user},mode=755")
        for name in ("low", "mid", "u", "w", "u2", "w2", "deep"):
            Path(disk, name).mkdir()
        for name in ("file", "low/file"):
            Path(disk, name).write_text("on the disk\n")
        for name in ("file", "low", "low/file", "u", "u2"):
            os.chown(f"{disk}/{name}", user, user)
        for lower, number, place in (("low", "", "mid"), ("mid", "2", "deep")):
            upper = f"upperdir={disk}/u{number},workdir={disk}/w{number}"
            kernel.mount("overlay", f"{disk}/{place}", "overlay", 0, f"lowerdir={disk}/{lower},{upper}")
        kernel.mount(f"{disk}.conf", f"{disk}.conf", None, kernel.MS_BIND)
    for path in dict.fromkeys(paths):
        reachable(Path(path).resolve())
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
