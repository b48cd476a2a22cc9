"""The self-test of a seal, run where the agent will run and with no more rights than it (D-02). Standard library only.

Each check tries a way out. One that succeeds is a line of the result; an empty result is a seal that holds.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from secondtake.harness.seal import kernel
from secondtake.harness.seal.mounts import visible

_WAIT_S = 2.0
"""How long something that must be refused may take; on loopback the kernel answers at once."""

_LITERALS = (("192.0.2.1", 9), ("198.51.100.7", 22), ("203.0.113.9", 9418), ("2001:db8::1", 22))
"""Addresses for documentation (RFC 5737, RFC 3849), on ports that are not captured."""

_SYNTHETIC = (bytes((198, 18)), bytes((198, 19)))


def sealed_checks(order: Mapping[str, Any], sockets: Sequence[str], kept: Iterable[int]) -> list[str]:
    """Every way out of the namespaces; `kept` are the descriptors that this process itself may hold."""
    problems: list[str] = []
    for address, port in _LITERALS:
        problems += _tried(f"TCP to {address} port {port}", lambda address=address, port=port: _connect(address, port))  # type: ignore[misc]
    for address in ("192.0.2.1", "2001:db8::1"):
        problems += _tried(f"UDP to {address} port 443", lambda address=address: _send(address, 443))  # type: ignore[misc]
    problems += _dns(order["nonce"])
    problems += _tried("a loopback port of the host", lambda: _connect("127.0.0.1", order["host_port"]))
    problems += _tried("an abstract Unix socket of the host", lambda: _unix("\0" + order["abstract"]))
    problems += _tried("a Unix socket of the host", lambda: _unix(order["control"]))
    problems += [f"a Unix socket of the host can be seen: {path}" for path in visible(sockets)[:3]]
    problems += common_checks()
    problems += _tried("a packet socket", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close())
    problems += _tried("switching the network off", _lo_down)
    problems += _tried("entering another network namespace", _setns)
    open_ones = {int(name) for name in os.listdir("/proc/self/fd")} - {0, 1, 2, *kept}
    problems += [f"an inherited descriptor: {number}" for number in sorted(open_ones) if _is_open(number)]
    return problems


def written(order: Mapping[str, Any], home: str) -> list[str]:
    """Try to make a file in HOME, above the working directory, and in the root. Gives those that were made: there are none outside."""
    real = [*(bind["target"] for bind in order["binds"]), *order["writable"]]
    made = []
    for folder in dict.fromkeys(os.path.realpath(each) for each in (home, os.path.dirname(order["cwd"]), "/") if each.startswith("/")):
        if not any(f"{folder}/".startswith(f"{os.path.realpath(each)}/") for each in real):
            path = os.path.join(folder, f".{order['nonce']}-{os.getpid()}")
            with contextlib.suppress(OSError):
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
                made.append(path)
    return made


def common_checks() -> list[str]:
    """What every tier that confines anything refuses."""
    return _tried("a vsock socket", lambda: socket.socket(40, socket.SOCK_STREAM, 0).close())


def fenced_checks(order: Mapping[str, Any]) -> list[str]:
    """Landlock's part: a port of this machine on which somebody does listen."""
    return [*_tried("TCP to another port", lambda: _connect("127.0.0.1", order["host_port"])), *common_checks()]


def _tried(what: str, attempt: Callable[[], None]) -> list[str]:
    try:
        attempt()
    except TimeoutError:
        return [f"{what} was not refused, but swallowed"]
    except OSError:
        return []
    return [what]


def _connect(address: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM) as made:
        made.settimeout(_WAIT_S)
        made.connect((address, port))


def _send(address: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.settimeout(_WAIT_S)
        made.connect((address, port))
        made.send(b"secondtake")
        made.recv(1)  # the refusal arrives as an error of the socket


def _unix(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as made:
        made.connect(path)


def _dns(nonce: str) -> list[str]:
    """A name server, wherever it is, is ours: it knows a name nobody else does."""
    labels = b"".join(bytes([len(label)]) + label for label in nonce.encode().split(b"."))
    query = struct.pack(">6H", 0x5354, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", 1, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.settimeout(_WAIT_S)
        try:
            made.connect(("192.0.2.53", 53))
            made.send(query)
            answer = made.recv(512)
        except OSError as error:
            return [f"no name server answers: {error}"]
    return [] if answer[-4:-2] in _SYNTHETIC else ["a name server that is not ours answers"]


def _lo_down() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, 0x8914, struct.pack("16sH14s", b"lo", 0, b""))


def _setns() -> None:
    descriptor = os.open("/proc/1/ns/net", os.O_RDONLY)
    try:
        kernel.setns(descriptor, kernel.CLONE_NEWNET)
    finally:
        os.close(descriptor)


def _is_open(number: int) -> bool:
    with contextlib.suppress(OSError):
        fcntl.fcntl(number, fcntl.F_GETFD)
        return True
    return False


def network_connection(number: int) -> bool:
    """Say whether a standard stream is a connection of the host's network: a hole that is the caller's own."""
    try:
        given = socket.socket(fileno=os.dup(number))
    except OSError as error:
        return error.errno not in (errno.ENOTSOCK, errno.EBADF)
    with given:
        return given.family in (socket.AF_INET, socket.AF_INET6)
