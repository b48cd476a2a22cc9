"""Who the clients are, and which of them trusted us."""

from __future__ import annotations

from pathlib import Path

import pytest
from mitmproxy.connection import Client

from secondtake.proxy.clients import LOOKUPS, SILENT, Clients
from secondtake.proxy.outcome import Outcome, TlsFailure
from secondtake.proxy.peer import Endpoint
from tests.proxy.world import HOST, reply, simple, until, world


def connection(port: int = 4711) -> Client:
    return Client(peername=("127.0.0.1", port), sockname=("127.0.0.1", 8080))


class Looks:
    """Answers with a name, and counts."""

    def __init__(self) -> None:
        self.asked: list[Endpoint] = []

    def __call__(self, client: Endpoint, server: Endpoint) -> str:
        self.asked.append(client)
        return "python3 pip"


def test_a_client_is_known_by_what_it_calls_itself() -> None:
    """For the hint: the User-Agent of CONNECT tells, and nothing is looked up."""
    outcome, looks, client = Outcome(), Looks(), connection()
    clients = Clients(outcome, looks)
    clients.greeted(client, [b"uv/0.13.9"], HOST)
    clients.refused(client, HOST)
    assert outcome.tls_failures == [TlsFailure(HOST, "", "uv/0.13.9")]
    assert not looks.asked


def test_one_that_says_nothing_is_looked_up_until_somebody_was_heard_at_that_host() -> None:
    """The same: pip and npm name themselves only inside TLS. Looking costs milliseconds, so it is bounded."""
    outcome, looks, client = Outcome(), Looks(), connection()
    clients = Clients(outcome, looks)
    clients.greeted(client, [], HOST)
    clients.silent(client, HOST)
    assert outcome.silent == [TlsFailure(HOST, SILENT, "python3 pip")]
    for _ in range(2 * LOOKUPS):
        clients.greeted(connection(), [], HOST)
    assert len(looks.asked) == LOOKUPS
    clients.greeted(connection(), [], "other.example")
    clients.heard(client, "other.example")
    clients.greeted(connection(), [], "other.example")
    assert len(looks.asked) == LOOKUPS + 1
    assert outcome.trusting == {("other.example", "python3 pip")}


def test_a_handshake_broken_off_where_others_were_heard_is_no_distrust() -> None:
    """T-O2: an agent that ends breaks off what it has under way; a certificate that is refused is refused by an alert."""
    outcome, client = Outcome(), connection()
    clients = Clients(outcome, Looks())
    client.error = "The client disconnected during the handshake. If this happens consistently, …"
    clients.refused(client, HOST)
    clients.heard(connection(1), HOST)
    clients.refused(client, HOST)
    assert (len(outcome.tls_failures), outcome.silent) == (1, [TlsFailure(HOST, SILENT, "")])
    client.error = "The client does not trust the proxy's certificate for web.example (unknown ca)"
    clients.refused(client, HOST)
    assert len(outcome.tls_failures) == 2


def test_nothing_is_kept_of_a_connection_that_is_gone() -> None:
    """T-J3: memory stays flat."""
    outcome, client = Outcome(), connection()
    clients = Clients(outcome, Looks())
    clients.greeted(client, [b"curl/7.88.1"], HOST)
    clients.left(client)
    clients.refused(client, HOST)
    assert outcome.tls_failures[0].client == ""


@pytest.mark.loopback
async def test_a_client_that_leaves_after_the_handshake_is_told_from_one_that_speaks(tmp_path: Path) -> None:
    """The issue's last line: GnuTLS looks at the certificate after the handshake, and leaves without a word."""
    async with world(tmp_path, {b"/one": reply(simple(b"1"))}) as w:
        wire = await w.record()
        await w.get("/one")
        assert {host for host, _ in wire.outcome.trusting} == {HOST}
        assert not wire.outcome.silent
        client = await w.client()
        await client.close()
        await until(lambda: wire.outcome.silent)
        assert [(failure.host, failure.error) for failure in wire.outcome.silent] == [(HOST, SILENT)]
        assert not wire.outcome.tls_failures
