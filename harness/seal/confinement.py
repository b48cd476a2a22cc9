"""What an agent may not do once it runs: system calls, capabilities, descriptors. Standard library only, loaded before the agent."""

from __future__ import annotations

import errno
import os

from secondtake.harness.seal import kernel
from secondtake.harness.seal.bpf import IF_AT_LEAST, IF_EQUAL, LOAD, RETURN, Line, assemble

_FAMILIES = (1, 2, 10, 16, 38)
"""unix, inet, inet6, netlink, alg. All others are refused as unknown: vsock leads to the host, packet past the capture, and no
program of an agent's has been seen to need bluetooth, can, tipc or the like."""

_IO_URING_SETUP = 425
_ARCHITECTURES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198), "riscv64": (0xC00000F3, 198)}
"""By machine: the audit number, and that of socket(2)."""
_I386, _I386_SOCKET, _I386_SOCKETCALL = 0x40000003, 359, 102
_X32 = 0x40000000

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000

ROOT_KEEPS = sum(1 << number for number in (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 18, 29, 31))
"""What a root agent keeps: power over files and users (chown, dac_override, dac_read_search, fowner, fsetid, kill, setgid, setuid,
setpcap, net_bind_service, sys_chroot, audit_write, setfcap), without which tar, apt and git do not behave as they do without us.
None of these reaches the namespaces of the seal."""


def socket_filter(machine: str) -> bytes | None:
    """The seccomp program: no socket family but a few, no io_uring (its socket operation would go past this filter).

    None on a machine whose numbers are not known here.
    """
    if machine not in _ARCHITECTURES:
        return None
    audit, socket_number = _ARCHITECTURES[machine]
    wide = machine == "x86_64"
    lines: list[Line] = [
        (LOAD, 4),
        (IF_EQUAL, audit, "native"),
        *([(IF_EQUAL, _I386, "i386")] if wide else []),
        (RETURN, _ERRNO | errno.ENOSYS),
        "native",
        (LOAD, 0),
        *([(IF_AT_LEAST, _X32, "unknown")] if wide else []),
        (IF_EQUAL, socket_number, "family"),
        (IF_EQUAL, _IO_URING_SETUP, "refused"),
        (RETURN, _ALLOW),
        "i386",
        (LOAD, 0),
        (IF_EQUAL, _I386_SOCKET, "family"),
        (IF_EQUAL, _I386_SOCKETCALL, "unknown"),
        (IF_EQUAL, _IO_URING_SETUP, "refused"),
        (RETURN, _ALLOW),
        "family",
        (LOAD, 16),
        *((IF_EQUAL, family, "allowed") for family in _FAMILIES),
        (RETURN, _ERRNO | errno.EAFNOSUPPORT),
        "allowed",
        (RETURN, _ALLOW),
        "unknown",
        (RETURN, _ERRNO | errno.ENOSYS),
        "refused",
        (RETURN, _ERRNO | errno.EPERM),
    ]
    return assemble(lines)


def confine(*, capabilities: bool = True) -> None:
    """Give up what is not needed, for good: called in the process that becomes the agent, last."""
    if capabilities:
        kept = ROOT_KEEPS if os.geteuid() == 0 else 0
        kernel.prctl(kernel.PR_CAP_AMBIENT, kernel.PR_CAP_AMBIENT_CLEAR_ALL)
        try:
            kernel.drop_bounding(kept)
            kernel.capset(kept)
        except OSError:  # less is held than that already
            kernel.capset(0)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    program = socket_filter(os.uname().machine)
    if program is not None:
        kernel.seccomp(program)
