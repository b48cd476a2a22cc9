"""The network inside, made in a process of its own: what arrives where, and what the witness is given."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from secondtake.harness.seal.network import witness_filter
from tests.harness.seal.scenes import ROOT

MADE = """
import json, os, socket
from secondtake.harness.seal import kernel, network
from secondtake.harness.seal.packets import seen
try:
    kernel.unshare(kernel.CLONE_NEWNET | (0 if os.geteuid() == 0 else kernel.CLONE_NEWUSER))
except OSError as error:
    print(json.dumps({"refused": str(error)}))
    raise SystemExit
sockets = network.open_sockets(8123)
roles = sorted({role for role, _ in sockets})
witness = dict(sockets)["witness"]
witness.settimeout(0)
def tried(kind, address, port, family=socket.AF_INET):
    with socket.socket(family, kind) as made:
        try:
            made.connect((address, port))
            if kind == socket.SOCK_DGRAM:
                made.send(b"x")
            return made.getsockname()[0]
        except OSError as error:
            return error.strerror
ends = [
    tried(socket.SOCK_STREAM, "192.0.2.1", 443), tried(socket.SOCK_STREAM, "127.0.0.1", 8123), tried(socket.SOCK_STREAM, "127.0.0.1", 9),
    tried(socket.SOCK_STREAM, "192.0.2.1", 22), tried(socket.SOCK_DGRAM, "192.0.2.1", 53), tried(socket.SOCK_DGRAM, "192.0.2.1", 443),
    tried(socket.SOCK_DGRAM, "127.0.0.1", 999),
]
six = os.path.exists("/proc/net/if_inet6")
if six:
    ends += [tried(socket.SOCK_STREAM, "::1", 9, socket.AF_INET6), tried(socket.SOCK_STREAM, "2001:db8::1", 22, socket.AF_INET6)]
packets = []
try:
    while True:
        found = seen(witness.recv(256))
        packets.append([found.kind, found.address, found.port])
except BlockingIOError:
    pass
print(json.dumps({"roles": roles, "ends": ends, "packets": packets, "six": six}))
"""


def test_every_address_is_here_and_the_witness_sees_what_was_to_go_elsewhere() -> None:
    """D1, AnyIP: captured ports connect, others are refused, loopback is not looked at; a program that asks is 127.0.0.1."""
    done = subprocess.run([sys.executable, "-c", MADE], env={"PYTHONPATH": str(ROOT / ".src")}, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    if "refused" in said:
        pytest.skip(f"no network namespace here: {said['refused']}")
    assert said["roles"] == ["captured", "dns-tcp", "dns-udp", "proxy", "witness"]
    refused = "Connection refused"
    assert said["ends"][:7] == ["127.0.0.1", "127.0.0.1", refused, refused, "127.0.0.1", "127.0.0.1", "127.0.0.1"]
    assert said["ends"][7:] == [refused] * (2 * said["six"])
    assert said["packets"][:2] == [["tcp", "192.0.2.1", 22], ["udp", "192.0.2.1", 443]]
    assert said["packets"][2:] == [["tcp", "2001:db8::1", 22]] * said["six"]


def test_the_filter_is_a_program() -> None:
    """Eight bytes an instruction; its last says no."""
    assert len(witness_filter()) % 8 == 0
    assert witness_filter()[-8:] == bytes([6, 0, 0, 0, 0, 0, 0, 0])
