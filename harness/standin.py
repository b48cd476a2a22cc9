"""Runs a command in a mount namespace in which a scratch copy stands at the place of the original. A script of its own, run with -I -S.

    python -I -S standin.py COPY ORIGINAL PROGRAM [ARGUMENT…]

Whatever the command does under ORIGINAL it does to COPY; for every other process nothing changes. As root a mount namespace is enough;
others get a user namespace with it, in which they keep their user ID (user_namespaces(7)), so set-user-ID programs do not work there.
Ends with the shell's 126 or 127 where the program cannot be executed, and with `NO_NAMESPACE` where the kernel refuses.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from pathlib import Path

NO_NAMESPACE = 97
"""Exit status: the kernel allows no mount namespace here. Nothing was run."""

# sched.h and sys/mount.h, the same on every Linux architecture.
_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000


def main(arguments: Sequence[str]) -> int:
    """Enter the namespace and become the program. Returns only when that failed."""
    copy, original, *command = arguments
    here = Path.cwd()
    try:
        _enter()
        _mount(copy.encode(sys.getfilesystemencoding(), "surrogateescape"), os.fsencode(original), _MS_BIND | _MS_REC)
        # The directory we stand in is still the one below the mount.
        os.chdir(here)
    except OSError as error:
        sys.stderr.write(f"secondtake: no scratch copy at {original}: {error.strerror}\n")
        return NO_NAMESPACE
    if not command:
        return 0
    try:
        os.execvp(command[0], command)  # noqa: S606  # becoming the person's own program is what this is for
    except OSError as error:
        sys.stderr.write(f"secondtake: cannot start {command[0]}: {error.strerror}\n")
        return 127 if isinstance(error, FileNotFoundError) else 126


def _enter() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    flags = _CLONE_NEWNS if user == 0 else _CLONE_NEWNS | _CLONE_NEWUSER
    _checked(libc.unshare(flags))
    if user != 0:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    # Else what is mounted here would be mounted for everyone, where / is shared (systemd makes it so).
    _mount(b"none", b"/", _MS_REC | _MS_PRIVATE)


def _mount(source: bytes, target: bytes, flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    _checked(libc.mount(source, target, None, ctypes.c_ulong(flags), None))


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
