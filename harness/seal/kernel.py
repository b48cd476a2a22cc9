"""Linux system calls that Python has no function for. Standard library only: this is loaded before the agent, with `-I -S`.

Numbers are those of `sched.h`, `sys/mount.h`, `sys/prctl.h` and `asm-generic/unistd.h`; the ones used are the same on every architecture.
"""

from __future__ import annotations

import ctypes
import os
import struct

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 32, 0x1000, 0x4000, 0x40000
MNT_DETACH = 2

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER = 1, 4, 22, 24, 36
PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 38, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
SECCOMP_MODE_FILTER = 2

_CLOSE_RANGE, _LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 436, 444, 445, 446
_CAP_VERSION_3 = 0x20080522
_LANDLOCK_VERSION = 1
_LANDLOCK_RULE_NET_PORT = 2
_LANDLOCK_CONNECT_TCP = 2
_LANDLOCK_SCOPE_ABSTRACT_UNIX = 1

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Enter new namespaces, of the kinds in `flags` (unshare(2))."""
    _checked(_libc.unshare(flags))


def setns(descriptor: int, kind: int) -> None:
    """Enter a namespace that exists (setns(2))."""
    _checked(_libc.setns(descriptor, kind))


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """mount(2)."""
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind, data)]
    _checked(_libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]))


def pivot_root(new: str, old: str) -> None:
    """pivot_root(2), which no C library wraps: its number is per architecture."""
    number = {"x86_64": 155, "aarch64": 41, "riscv64": 41}[os.uname().machine]
    _checked(_libc.syscall(ctypes.c_long(number), os.fsencode(new), os.fsencode(old)))


def unmount(target: str) -> None:
    """Take away what is mounted there, as soon as nobody uses it."""
    _checked(_libc.umount2(os.fsencode(target), MNT_DETACH))


def prctl(option: int, value: int, more: int = 0) -> None:
    """prctl(2) with numbers."""
    _checked(_libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(more), ctypes.c_ulong(0), ctypes.c_ulong(0)))


def seccomp(program: bytes) -> None:
    """Put a filter over this process and all that come of it; needs `PR_SET_NO_NEW_PRIVS` first (seccomp(2))."""
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HP", len(program) // 8, ctypes.addressof(instructions))
    _checked(_libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), header, ctypes.c_ulong(0), ctypes.c_ulong(0)))


def capset(kept: int) -> None:
    """Hold the capabilities in the bit set `kept` and no others, and hand on none by themselves (capabilities(7))."""
    low, high = kept & 0xFFFFFFFF, kept >> 32
    _checked(_libc.capset(struct.pack("Ii", _CAP_VERSION_3, 0), struct.pack("6I", low, low, 0, high, high, 0)))


def drop_bounding(kept: int) -> None:
    """Make it impossible to gain a capability that is not in `kept`."""
    for capability in range(64):
        if not kept >> capability & 1:
            try:
                prctl(PR_CAPBSET_DROP, capability)
            except OSError:  # this kernel has no capability of that number
                return


def close_from(first: int) -> None:
    """Close every descriptor from `first` on (close_range(2), Linux 5.9)."""
    if _libc.syscall(ctypes.c_long(_CLOSE_RANGE), ctypes.c_uint(first), ctypes.c_uint(0xFFFFFFFF), ctypes.c_uint(0)) != 0:
        os.closerange(first, os.sysconf("SC_OPEN_MAX"))


def signal_descriptor(numbers: set[int]) -> int:
    """A descriptor that gives these signals, once they are blocked, with who sent them (signalfd(2)); close-on-exec, non-blocking."""
    mask = sum(1 << number - 1 for number in numbers).to_bytes(128, "little")
    descriptor = int(_libc.signalfd(-1, mask, os.O_CLOEXEC | os.O_NONBLOCK))
    _checked(0 if descriptor >= 0 else -1)
    return descriptor


def landlock_version() -> int:
    """The kernel's Landlock ABI, 0 where there is none (landlock(7))."""
    number = _libc.syscall(ctypes.c_long(_LANDLOCK_CREATE), None, ctypes.c_size_t(0), ctypes.c_uint(_LANDLOCK_VERSION))
    return max(0, int(number))


def landlock_tcp(port: int, version: int) -> None:
    """TCP connects to `port` only, from here on, for this process and all that come of it. ABI 4; 6 also shuts abstract sockets out."""
    scoped = _LANDLOCK_SCOPE_ABSTRACT_UNIX if version >= 6 else 0
    ruleset = struct.pack("=QQQ", 0, _LANDLOCK_CONNECT_TCP, scoped)[: 24 if version >= 6 else 16]
    made = int(_libc.syscall(ctypes.c_long(_LANDLOCK_CREATE), ruleset, ctypes.c_size_t(len(ruleset)), ctypes.c_uint(0)))
    _checked(0 if made >= 0 else -1)
    rule = struct.pack("=QQ", _LANDLOCK_CONNECT_TCP, port)
    _checked(_libc.syscall(ctypes.c_long(_LANDLOCK_ADD), made, ctypes.c_int(_LANDLOCK_RULE_NET_PORT), rule, ctypes.c_uint(0)))
    _checked(_libc.syscall(ctypes.c_long(_LANDLOCK_RESTRICT), made, ctypes.c_uint(0)))
    os.close(made)


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
