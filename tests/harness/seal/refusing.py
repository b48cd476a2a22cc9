"""A machine that allows less: runs a program under a filter that refuses what is named. `python refusing.py WORD… -- PROGRAM ARGUMENT…`

`users`: no new user namespace. `namespaces`: none at all. `landlock`: no such system call.
"""

from __future__ import annotations

import errno
import os
import sys

from secondtake.harness.seal import kernel
from secondtake.harness.seal.bpf import IF_EQUAL, LOAD, RETURN, Line, assemble

IF_ANY_BIT = 0x45
UNSHARE = {"x86_64": 272, "aarch64": 97}[os.uname().machine]
LANDLOCK = (444, 445, 446)
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


def refusing(words: list[str]) -> bytes:
    """The program. Architecture is not looked at: what runs under it is ours."""
    refused = kernel.CLONE_NEWUSER if "users" in words else 0
    if "namespaces" in words:
        refused |= kernel.CLONE_NEWUSER | kernel.CLONE_NEWNET | kernel.CLONE_NEWNS
    lines: list[Line] = [(LOAD, 0), (IF_EQUAL, UNSHARE, "unshare")]
    lines += [(IF_EQUAL, number, "unknown") for number in LANDLOCK if "landlock" in words]
    lines += [
        (RETURN, _ALLOW),
        "unshare",
        (LOAD, 16),
        (IF_ANY_BIT, refused, "refused"),
        (RETURN, _ALLOW),
        "refused",
        (RETURN, _ERRNO | errno.EPERM),
        "unknown",
        (RETURN, _ERRNO | errno.ENOSYS),
    ]
    return assemble(lines)


if __name__ == "__main__":
    end = sys.argv.index("--")
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    kernel.seccomp(refusing(sys.argv[1:end]))
    os.execvp(sys.argv[end + 1], sys.argv[end + 1 :])
