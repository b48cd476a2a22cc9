"""Listening, and stopping."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from secondtake.cassettes.errors import BadInput
from secondtake.proxy.server import CannotListen, Proxy
from tests.proxy.world import reply, simple, world

OK = reply(simple(b"ok"))


async def test_a_port_in_use_is_one_clear_error(tmp_path: Path) -> None:
    """Issue 2, bad input."""
    async with world(tmp_path, {b"/": OK}) as w:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with pytest.raises(CannotListen) as caught:
                await w.record(port=port)
            w.proxy = None
        assert str(caught.value) == f"port in use: 127.0.0.1:{port}"
        assert caught.value.hint


async def test_it_listens_on_loopback_unless_a_credential_is_asked_for(tmp_path: Path) -> None:
    """C-02."""
    async with world(tmp_path, {b"/": OK}) as w:
        wire = await w.record()
        assert w.proxy is not None
        assert w.proxy._server is not None
        assert {s.getsockname()[0] for s in w.proxy._server.sockets} == {"127.0.0.1"}
        settings = type(wire.settings)(wire.settings.mode, wire.settings.trust, host="0.0.0.0")
        with pytest.raises(BadInput, match="needs a proxy credential"):
            Proxy(settings, wire)


async def test_stopping_closes_every_connection(tmp_path: Path) -> None:
    async with world(tmp_path, {b"/": OK}) as w:
        wire = await w.record()
        client = await w.client()
        await w.stop(0)
        assert (await client.rest()).raw == b""
        assert wire.handlers == set()
