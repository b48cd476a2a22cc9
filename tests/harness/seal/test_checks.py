"""The self-test where nothing is sealed: it must find the ways out."""

from __future__ import annotations

import os
import socket

from secondtake.harness.seal import checks


def test_on_an_open_machine_the_ways_out_are_found() -> None:
    """D-02: a check that could not fail would say nothing."""
    with (
        socket.create_server(("127.0.0.1", 0)) as port,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as abstract,
    ):
        name = f"secondtake-test-checks-{os.getpid()}"
        abstract.bind(f"\0{name}")
        abstract.listen()
        given, other = socket.socketpair()
        assert checks._tried("x", lambda: checks._connect("127.0.0.1", port.getsockname()[1])) == ["x"]
        assert checks._tried("x", lambda: checks._unix(f"\0{name}")) == ["x"]
        assert checks._tried("x", lambda: checks._unix("/nonexistent")) == []
        assert checks._is_open(given.fileno())
        given.close()
        other.close()


def test_what_is_swallowed_is_not_refused() -> None:
    """A packet that vanishes may have gone anywhere."""

    def silent() -> None:
        raise TimeoutError

    assert checks._tried("x", silent) == ["x was not refused, but swallowed"]


def test_a_standard_stream_that_is_a_connection_is_a_hole() -> None:
    """Given by who started us; it is told, not closed."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as connected:
        assert checks.network_connection(connected.fileno())
    one, other = socket.socketpair()
    with one, other, open(os.devnull) as file:
        assert not checks.network_connection(one.fileno())
        assert not checks.network_connection(file.fileno())
