"""What a packet was for."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from secondtake.harness.seal.packets import Seen, own_addresses, seen


def four(protocol: int, address: str, rest: bytes, options: bytes = b"") -> bytes:
    words = 5 + len(options) // 4
    return struct.pack(">B8xB2x4s4s", 0x40 | words, protocol, b"\x7f\0\0\1", socket.inet_aton(address)) + options + rest


def six(protocol: int, address: str, rest: bytes) -> bytes:
    return struct.pack(">B5xBx16s16s", 0x60, protocol, b"", socket.inet_pton(socket.AF_INET6, address)) + rest


def test_ports_are_found_behind_options_and_in_both_families() -> None:
    """D-04: address and port."""
    ports = struct.pack(">HH", 5000, 22)
    assert seen(four(6, "192.0.2.1", ports)) == Seen("tcp", "192.0.2.1", 22, 5000)
    assert seen(four(17, "192.0.2.1", ports, options=bytes(8))) == Seen("udp", "192.0.2.1", 22, 5000)
    assert seen(six(6, "2001:db8::1", ports)) == Seen("tcp", "2001:db8::1", 22, 5000)
    assert seen(four(132, "192.0.2.1", ports)) == Seen("ip", "192.0.2.1", None, None)


def test_what_is_cut_short_or_no_packet_is_nothing() -> None:
    """The witness reads heads only."""
    assert seen(b"") is None
    assert seen(b"\x50" + bytes(40)) is None
    assert seen(four(6, "192.0.2.1", b"\0\0")) is None


@given(st.binary(max_size=120))
def test_any_bytes_are_survived(packet: bytes) -> None:
    """They come from the agent."""
    seen(packet)


def test_the_machines_own_addresses_are_read(tmp_path: Path) -> None:
    """A server on one of them is the agent's own."""
    lines = [
        "     +-- 192.0.2.0/24 2 0 2",
        "        |-- 192.0.2.0",
        "           /24 link UNICAST",
        "        |-- 192.0.2.9",
        "           /32 host LOCAL",
    ]
    (tmp_path / "fib_trie").write_text("\n".join(lines))
    (tmp_path / "if_inet6").write_text("20010db8000000000000000000000005 02 40 00 80 eth0\n")
    assert own_addresses(tmp_path) == {"192.0.2.9", "2001:db8::5"}
    assert own_addresses(tmp_path / "none") == frozenset()
    assert "127.0.0.1" in own_addresses()
