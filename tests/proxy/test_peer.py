"""Who is at the other end of a loopback connection."""

from __future__ import annotations

import ipaddress
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from secondtake.proxy.peer import from_proc, from_sock_diag, peer_process, peer_uid

type Pair = tuple[socket.socket, socket.socket]

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no /proc/net and no sock_diag but on Linux")


def connect(address: str, *, dual_stack: bool = False) -> Pair:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as server:
        port = server.getsockname()[1]
        client = socket.socket(socket.AF_INET6 if dual_stack else family)
        client.connect((f"::ffff:{address}" if dual_stack else address, port))
        accepted, _ = server.accept()
    return client, accepted


@pytest.fixture(params=["127.0.0.1", "127.0.0.2", "::1", "dual"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    made = connect("127.0.0.1", dual_stack=True) if request.param == "dual" else connect(request.param)
    yield made
    for each in made:
        each.close()


def ends(accepted: socket.socket) -> tuple[tuple[str, int], tuple[str, int]]:
    return accepted.getpeername()[:2], accepted.getsockname()[:2]


@pytest.mark.loopback
def test_a_connection_of_ours_is_known_as_ours(pair: Pair) -> None:
    """C-03: IPv4, another loopback address, IPv6, and a dual-stack client of an IPv4 listener."""
    assert peer_uid(*ends(pair[1])) == os.getuid()


@pytest.mark.loopback
@pytest.mark.parametrize("way", [from_sock_diag, from_proc])
def test_both_ways_of_asking_agree(way: Callable[..., int | None], pair: Pair) -> None:
    """C-03: where netlink is not to be had, the tables in /proc say the same."""
    (client, client_port), (server, server_port) = ends(pair[1])
    first, second = (ipaddress.ip_address(address.removeprefix("::ffff:")) for address in (client, server))
    assert way((first, client_port), (second, server_port)) == os.getuid()


@pytest.mark.loopback
@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a process of another user")
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_connection_of_another_user_is_known_as_theirs(address: str) -> None:
    """C-03: a second local user cannot use the proxy."""
    program = (
        "import os, socket, sys, encodings.idna\nos.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "socket.create_connection((sys.argv[1], int(sys.argv[2]))).recv(1)"
    )
    with socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET) as server:
        server.settimeout(10)
        child = subprocess.Popen([sys.executable, "-c", program, address, str(server.getsockname()[1])])
        accepted, _ = server.accept()
        with accepted:
            uid = peer_uid(*ends(accepted))
        assert child.wait(10) == 0
    assert uid == 65534


@pytest.mark.loopback
def test_a_connection_that_its_owner_has_closed_belongs_to_nobody() -> None:
    """C-03: an orphaned socket shows user 0 in the tables; that is not root asking."""
    client, accepted = connect("127.0.0.1")
    with accepted:
        asked = ends(accepted)
        client.close()
        assert peer_uid(*asked) is None


@pytest.mark.loopback
def test_the_process_at_the_other_end_is_found(pair: Pair) -> None:
    """For the hint: whose connection it is. Nobody holds one that is closed."""
    client, accepted = pair
    assert peer_process(*ends(accepted)) == os.getpid()
    asked = ends(accepted)
    client.close()
    assert peer_process(*asked) is None


@pytest.mark.loopback
def test_a_listener_is_not_taken_for_a_client() -> None:
    """C-03: the kernel's look-up falls back to a listener on the asked address; nobody is connected from there."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as other:
        assert peer_uid(other.getsockname(), server.getsockname()) is None


@pytest.mark.parametrize("client", [("192.0.2.1", 4711), ("not an address", 1), ("", 0), ("2001:db8::1", 4711)])
def test_what_is_not_on_this_machine_is_unknown(client: tuple[str, int]) -> None:
    """C-03: where it cannot be known a credential is asked."""
    assert peer_uid(client, ("127.0.0.1", 8080)) is None


def test_a_table_is_read_by_both_addresses_and_an_orphan_is_skipped(tmp_path: Path) -> None:
    """proc_net_tcp: both ends of the connection stand in it; the row whose local end is the client's is meant; inode 0 is an orphan."""

    def word(text: str) -> str:
        packed = ipaddress.ip_address(text).packed
        return "".join(f"{int.from_bytes(packed[at : at + 4], sys.byteorder):08X}" for at in range(0, len(packed), 4))

    def row(local: str, remote: str, uid: int, inode: int) -> str:
        return f"   0: {local} {remote} 01 00000000:00000000 00:00000000 00000000 {uid:5d}        0 {inode} 1 0 20 4 30 10 -1\n"

    one, two = f"{word('127.0.0.1')}:1F90", f"{word('127.0.0.1')}:C001"
    (tmp_path / "tcp").write_text("  sl  local_address rem_address …\n" + row(one, two, 7, 11) + row(two, one, 1001, 12))
    home = ipaddress.ip_address("127.0.0.1")
    assert from_proc((home, 0xC001), (home, 0x1F90), tmp_path) == 1001
    (tmp_path / "tcp").write_text(row(two, one, 0, 0))
    assert from_proc((home, 0xC001), (home, 0x1F90), tmp_path) is None
    assert from_proc((home, 0xC001), (home, 0x1F90), tmp_path / "absent") is None
