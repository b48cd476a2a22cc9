"""Whose connection is this? The user ID at the other end of a loopback TCP connection (SECURITY C-03).

Asks the kernel for exactly this socket (`sock_diag`, one netlink message, independent of how many sockets there are), and reads
`/proc/net/tcp{,6}` where that is not to be had. A socket that nobody holds any more belongs to nobody: None, not root.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct
import sys
from pathlib import Path

type Endpoint = tuple[str, int]
"""Address and port; further members of a Python IPv6 address are cut off by the caller."""

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_NO_COOKIE = b"\xff" * 8
_ANY_STATE = 0xFFFFFFFF
_REPLY_BYTES = 8192
_TIMEOUT_S = 1
_HEADER = struct.Struct("=LHHLL")
"""struct nlmsghdr: length, type, flags, sequence, port."""
_REQUEST = struct.Struct("=BBBxL")
"""struct inet_diag_req_v2 before its id: family, protocol, extensions, padding, states."""
_REPLY = struct.Struct("=BBBB48xLLLLL")
"""struct inet_diag_msg: family, state, timer, retransmits, id (48 bytes), expires, rqueue, wqueue, uid, inode."""


def peer_uid(client: Endpoint, server: Endpoint) -> int | None:
    """User ID of the process that opened the connection from `client` to us at `server`.

    None where it cannot be known: not on this machine, another network namespace, already closed, or no such kernel interface.
    """
    if not sys.platform.startswith("linux"):
        return None
    try:
        ends = _parse(client), _parse(server)
    except ValueError:
        return None
    uid = from_sock_diag(*ends)
    return uid if uid is not None else from_proc(*ends)


type _Address = ipaddress.IPv4Address | ipaddress.IPv6Address
type _End = tuple[_Address, int]


def _parse(end: Endpoint) -> _End:
    address = ipaddress.ip_address(end[0].partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address, end[1]


def peer_process(client: Endpoint, server: Endpoint, proc: Path = Path("/proc")) -> int | None:
    """ID of a process that holds the client's end of a connection, the latest started where several do.

    None where it cannot be known. Reads the descriptors of the processes we may look at: some milliseconds.
    """
    if not sys.platform.startswith("linux"):
        return None
    try:
        found = _sock_diag(_parse(client), _parse(server))
    except ValueError:
        return None
    if found is None:
        return None
    mark = f"socket:[{found[1]}]"
    for pid in sorted((int(entry.name) for entry in proc.iterdir() if entry.name.isdigit()), reverse=True):
        # A process may end, or be somebody else's, as we look.
        with contextlib.suppress(OSError):
            for descriptor in (proc / str(pid) / "fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(descriptor.readlink()) == mark:
                        return pid
    return None


def from_sock_diag(client: _End, server: _End) -> int | None:
    """User ID, by netlink."""
    found = _sock_diag(client, server)
    return None if found is None else found[0]


def _sock_diag(client: _End, server: _End) -> tuple[int, int] | None:
    """User ID and inode, by netlink: the client's socket is the one whose source is `client`."""
    family = socket.AF_INET if client[0].version == 4 else socket.AF_INET6
    ports = struct.pack("!HH", client[1], server[1])
    ident = ports + client[0].packed.ljust(16, b"\0") + server[0].packed.ljust(16, b"\0") + bytes(4) + _NO_COOKIE
    body = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, _ANY_STATE) + ident
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG) as netlink:
            netlink.settimeout(_TIMEOUT_S)
            netlink.send(_HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0) + body)
            reply = netlink.recv(_REPLY_BYTES)
    except OSError:
        return None
    if len(reply) < _HEADER.size + _REPLY.size or _HEADER.unpack_from(reply)[1] != _SOCK_DIAG_BY_FAMILY:
        return None
    *_, uid, inode = _REPLY.unpack_from(reply, _HEADER.size)
    # Where there is no such connection the kernel may answer with a listener: its ports are others.
    if reply[_HEADER.size + 4 : _HEADER.size + 8] != ports or not inode:
        return None
    return int(uid), int(inode)


def from_proc(client: _End, server: _End, root: Path = Path("/proc/net")) -> int | None:
    """By reading the socket tables, one read each. An IPv4 connection of a dual-stack program stands in the second."""
    for table, mapped in (("tcp", False), ("tcp6", True)):
        if client[0].version == 6 and not mapped:
            continue
        try:
            text = (root / table).read_bytes()
        except OSError:
            continue
        want = f" {_hex(client, mapped)} {_hex(server, mapped)} ".encode()
        if (at := text.find(want)) < 0:
            continue
        # After the two addresses: state, queues, timer, retransmits, uid, timeout, inode (Documentation/networking/proc_net_tcp).
        rest = text[at + len(want) :].partition(b"\n")[0].split()
        if len(rest) >= 7 and rest[6] != b"0":
            return int(rest[4])
    return None


def _hex(end: _End, mapped: bool) -> str:
    """`0100007F:1F90`: each 32-bit word in this machine's byte order, the port as a number."""
    packed = end[0].packed
    if mapped and len(packed) == 4:
        packed = bytes(10) + b"\xff\xff" + packed
    words = struct.unpack(f"={len(packed) // 4}L", packed)
    return "".join(f"{word:08X}" for word in words) + f":{end[1]:04X}"
