"""What the witness of a sealed network saw: first packets of connections, and datagrams, to addresses that lead nowhere. Pure."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

_TCP, _UDP = 6, 17


@dataclass(frozen=True, slots=True)
class Seen:
    """One packet: where it was to go. `source` is the port it came from; `kind` is `tcp`, `udp`, or `ip` for any other protocol."""

    kind: str
    address: str
    port: int | None
    source: int | None


def seen(packet: bytes) -> Seen | None:
    """Read the head of an IP packet; None where it is cut short, or is none."""
    if len(packet) < 20:
        return None
    version = packet[0] >> 4
    if version == 4:
        protocol, start, destination = packet[9], (packet[0] & 15) * 4, packet[16:20]
    elif version == 6 and len(packet) >= 40:
        protocol, start, destination = packet[6], 40, packet[24:40]
    else:
        return None
    address = str(ipaddress.ip_address(destination))
    if protocol not in (_TCP, _UDP):
        return Seen("ip", address, None, None)
    if len(packet) < start + 4:
        return None
    source, port = struct.unpack_from(">HH", packet, start)
    return Seen("tcp" if protocol == _TCP else "udp", address, port, source)


def own_addresses(proc: Path = Path("/proc/net")) -> frozenset[str]:
    """Return the addresses of this machine: a server that an agent starts for itself may listen on one."""
    found = set()
    try:
        lines = (proc / "fib_trie").read_text().splitlines()
    except OSError:
        lines = []
    for line, following in pairwise(lines):
        if following.strip() == "/32 host LOCAL":
            found.add(line.split()[-1])
    try:
        found |= {str(ipaddress.ip_address(bytes.fromhex(line.split()[0]))) for line in (proc / "if_inet6").read_text().splitlines()}
    except OSError:
        pass
    return frozenset(found)
