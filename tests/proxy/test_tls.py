"""Contexts are made once and shared."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from mitmproxy.connection import Server
from OpenSSL import SSL

from secondtake.proxy import tls
from secondtake.proxy.authority import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.create(tmp_path, now=datetime.now(UTC))


def test_one_context_for_each_set_of_names(authority: Authority) -> None:
    agent = tls.AgentTls(authority)
    first, again = agent.connection(["a.example"]), agent.connection(["a.example", "a.example"])
    assert first.get_context() is again.get_context()
    assert agent.connection(["b.example"]).get_context() is not first.get_context()


def test_the_least_recently_used_leaf_goes_first(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    """What many hosts cost in memory is bounded."""
    monkeypatch.setattr(tls, "LEAVES", 2)
    agent = tls.AgentTls(authority)
    first = agent.connection(["a.example"]).get_context()
    agent.connection(["b.example"])
    assert agent.connection(["a.example"]).get_context() is first
    agent.connection(["c.example"])
    assert agent.connection(["a.example"]).get_context() is first
    assert len(agent._contexts) == 2


@pytest.mark.parametrize("name", ["origin.example", "192.0.2.1", "2001:db8::1", "bücher.example"])
def test_an_origin_is_always_verified_by_its_name(authority: Authority, name: str) -> None:
    """C-07: there is no way to ask for less."""
    origin = tls.OriginTls(authority.ca_path, {})
    connection = origin.connection(Server(address=(name, 443), sni=name), [b"h2", b"spdy/1"])
    assert connection.get_context().get_verify_mode() == SSL.VERIFY_PEER
