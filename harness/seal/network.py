"""The network inside: loopback alone, to which every address leads, and our sockets on it. Standard library only, loaded before the agent.

Any address is local (a route of type `local` for everything, "AnyIP"), so what an agent connects to arrives at a listening socket of ours
if there is one on that port, and is refused by the kernel if not. The sockets are made inside and used outside.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import socket
import struct

from secondtake.harness.seal.bpf import (
    AND,
    HEADER_LENGTH_TO_X,
    IF_EQUAL,
    LOAD,
    LOAD_BYTE,
    LOAD_BYTE_AT_X,
    LOAD_HALF,
    LOAD_HALF_AT_X,
    RETURN,
    assemble,
)

CAPTURED = (443, 80)
"""TCP ports that are taken to the proxy whatever the address."""

NAME_SERVERS = 4
"""Sockets that take DNS, side by side: some hundred lookups at once overflow one, and a lost one costs its program five seconds."""

_SIOCSIFFLAGS = 0x8914
_UP_RUNNING = 0x41
_RTM_NEWROUTE, _REQUEST_ACK_CREATE_EXCL = 24, 0x605
_TABLE_MAIN, _BOOT, _HOST_SCOPE, _TYPE_LOCAL = 254, 3, 254, 2
_RTA_OIF, _RTA_PREFSRC = 4, 7
_IP_PKTINFO, _IPV6_FREEBIND, _SO_ATTACH_FILTER, _SO_RCVBUFFORCE = 8, 78, 26, 33
_ETH_P_ALL = 0x0003
_SYN, _ACK = 0x02, 0x10
_SEEN_BYTES = 96


def raise_loopback() -> None:
    """Bring `lo` up; its own addresses come by themselves."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", _UP_RUNNING, b""))


def route_everything(family: int) -> None:
    """Make every address of the family local. IPv4 programs that ask for their own address are told 127.0.0.1."""
    link = struct.pack("HHI", 8, _RTA_OIF, socket.if_nametoindex("lo"))
    source = struct.pack("HH4s", 8, _RTA_PREFSRC, socket.inet_aton("127.0.0.1")) if family == socket.AF_INET else b""
    scope = _HOST_SCOPE if family == socket.AF_INET else 0
    body = struct.pack("BBBBBBBBI", family, 0, 0, 0, _TABLE_MAIN, _BOOT, scope, _TYPE_LOCAL, 0) + link + source
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        netlink.send(struct.pack("IHHII", 16 + len(body), _RTM_NEWROUTE, _REQUEST_ACK_CREATE_EXCL, 1, 0) + body)
        number = struct.unpack_from("i", netlink.recv(4096), 16)[0]
    if number:
        raise OSError(-number, os.strerror(-number))


def open_sockets(proxy_port: int) -> list[tuple[str, socket.socket]]:
    """Every socket that is used outside, each with its role: `proxy`, `captured`, `dns-udp`, `dns-tcp`, `witness`."""
    raise_loopback()
    route_everything(socket.AF_INET)
    try:
        route_everything(socket.AF_INET6)
        six = True
    except OSError as error:  # no IPv6 in this kernel, or it is switched off: then there is nothing to capture either
        if error.errno not in (errno.EOPNOTSUPP, errno.EAFNOSUPPORT, errno.EACCES, errno.EPERM):
            raise
        six = False
    made = [("proxy", _listening(("127.0.0.1", proxy_port), socket.AF_INET))]
    if six:
        with contextlib.suppress(OSError):
            made.append(("proxy", _listening(("::1", proxy_port), socket.AF_INET6)))
    everywhere = [(socket.AF_INET, "0.0.0.0"), *([(socket.AF_INET6, "::")] if six else [])]  # noqa: S104 - all of a network of its own
    for family, address in everywhere:
        made += [("captured", _listening((address, port), family)) for port in CAPTURED if port != proxy_port]
        made.append(("dns-tcp", _listening((address, 53), family)))
        made += [("dns-udp", _answering(address, family)) for _ in range(NAME_SERVERS)]
    made.append(("witness", _witness()))
    return made


def _answering(address: str, family: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        made.setsockopt(socket.IPPROTO_IPV6, _IPV6_FREEBIND, 1)
    else:
        made.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
    _roomy(made)
    made.bind((address, 53))
    return made


def _roomy(given: socket.socket) -> None:
    """Let much wait to be read: as much as any user may ask for, and as root more."""
    for option in (socket.SO_RCVBUF, _SO_RCVBUFFORCE):
        with contextlib.suppress(OSError):
            given.setsockopt(socket.SOL_SOCKET, option, 8 << 20)


def _listening(address: tuple[str, int], family: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    made.bind(address)
    made.listen(1024)
    return made


def _witness() -> socket.socket:
    """A packet socket that is given the head of each first packet of a TCP connection, and of each UDP packet, but for DNS."""
    made = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
    program = witness_filter()
    held = ctypes.create_string_buffer(program, len(program))
    made.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(program) // 8, ctypes.addressof(held)))
    _roomy(made)
    made.bind(("lo", _ETH_P_ALL))
    return made


def witness_filter() -> bytes:
    """Return the program of the witness: packets to an address that is not loopback, each once; of TCP only what opens a connection."""
    ancillary, protocol, packet_type, outgoing = 0xFFFFF000, 0, 4, 4
    return assemble(
        [
            (LOAD, ancillary + packet_type),
            (IF_EQUAL, outgoing, "no"),
            (LOAD, ancillary + protocol),
            (IF_EQUAL, 0x86DD, "six"),
            (IF_EQUAL, 0x0800, "four"),
            (RETURN, 0),
            "four",
            (LOAD_BYTE, 16),
            (IF_EQUAL, 127, "no"),
            (HEADER_LENGTH_TO_X, 0),
            (LOAD_BYTE, 9),
            (IF_EQUAL, socket.IPPROTO_TCP, "tcp four"),
            (IF_EQUAL, socket.IPPROTO_UDP, "udp four"),
            (IF_EQUAL, socket.IPPROTO_ICMP, "no"),
            (RETURN, _SEEN_BYTES),
            "tcp four",
            (LOAD_BYTE_AT_X, 13),
            (AND, _SYN | _ACK),
            (IF_EQUAL, _SYN, "opens four"),
            (RETURN, 0),
            "opens four",
            (LOAD_HALF_AT_X, 2),
            *((IF_EQUAL, port, "no") for port in CAPTURED),
            (RETURN, _SEEN_BYTES),
            "udp four",
            (LOAD_HALF_AT_X, 2),
            (IF_EQUAL, 53, "no"),
            (RETURN, _SEEN_BYTES),
            "six",
            (LOAD, 24),
            (IF_EQUAL, 0, "low"),
            (LOAD_BYTE, 6),
            (IF_EQUAL, socket.IPPROTO_TCP, "tcp six"),
            (IF_EQUAL, socket.IPPROTO_UDP, "udp six"),
            (IF_EQUAL, socket.IPPROTO_ICMPV6, "no"),
            (RETURN, _SEEN_BYTES),
            "low",  # 32 bits of zero at the start: ::1, or no address of a machine
            (LOAD, 36),
            (IF_EQUAL, 1, "no"),
            (RETURN, _SEEN_BYTES),
            "tcp six",
            (LOAD_BYTE, 40 + 13),
            (AND, _SYN | _ACK),
            (IF_EQUAL, _SYN, "opens six"),
            (RETURN, 0),
            "opens six",
            (LOAD_HALF, 40 + 2),
            *((IF_EQUAL, port, "no") for port in CAPTURED),
            (RETURN, _SEEN_BYTES),
            "udp six",
            (LOAD_HALF, 40 + 2),
            (IF_EQUAL, 53, "no"),
            (RETURN, _SEEN_BYTES),
            "no",
            (RETURN, 0),
        ]
    )
