"""Who may come in, and what may go out: the gate, names, credentials, sessions, upgrades, and a corporate network."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
from pathlib import Path

import pytest

from secondtake.cassettes.errors import NotStored
from secondtake.cassettes.exchange import Channel, Ending
from secondtake.proxy.upstream import Upstream
from tests.proxy.world import HOST, Client, World, reply, simple, until, world

OK = reply(simple(b"ok"))
ASK = b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST.encode()


# -- the origin is untouched -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tls", [True, False])
async def test_replay_leaves_a_living_origin_untouched_however_it_is_spoken_to(tmp_path: Path, tls: bool) -> None:
    """T-R8: http, https, h2, CONNECT + http, CONNECT + bytes that are not HTTP, origin-form, and bytes that are nothing."""
    async with world(tmp_path, {b"/": OK, b"/other": OK}, tls=tls) as w:
        await w.record()
        if tls:
            assert (await w.get("/")).body == b"ok"
        before = w.origin.connections
        wire = await w.replay(loopback=True)
        port = w.origin.port
        named = b"%s:%d" % (HOST.encode(), port)

        async def plain(data: bytes) -> bytes:
            client = await w.plain()
            await client.send(data)
            return (await client.rest()).raw if data[:1].islower() or data[:1] < b"A" else (await client.response()).raw

        for target in (named, b"127.0.0.1:%d" % port, b"[::1]:%d" % port, b"localhost:%d" % port):
            assert (await plain(b"GET http://%s/other HTTP/1.1\r\nHost: %s\r\n\r\n" % (target, target))).split(b" ")[1] in (b"404", b"424")
            assert (await plain(b"GET /other HTTP/1.1\r\nHost: %s\r\n\r\n" % target)).split(b" ")[1] in (b"404", b"424")
        assert (await plain(b"GET /other HTTP/1.0\r\n\r\n")).split(b" ")[1] == b"400"
        assert await plain(b"\x05\x01\x00") == b""
        assert await plain(b"ssh-2.0-x\r\n") == b""
        inside = await w.tunnel()
        await inside.send(b"GET /other HTTP/1.1\r\nHost: %s\r\n\r\n" % named)
        assert (await inside.response()).status == 424 if tls else 404
        garbage = await w.tunnel()
        await garbage.send(b"\x00\x01\x02 not http")
        assert (await garbage.rest()).raw == b""
        secure = await w.client()
        await secure.send(b"GET /other HTTP/1.1\r\nHost: %s\r\n\r\n" % named)
        assert (await secure.response()).status in (404, 424)
        second = await w.h2()
        stream = await second.request("/other")
        await second.finished(stream)
        nested = await w.client()
        await nested.send(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (named, named))
        assert (await nested.response()).status == 400
        upgrade = await w.client()
        await upgrade.send(
            b"GET /chat HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n" % named
        )
        assert b"ws-refused" in (await upgrade.response()).head
        assert w.origin.connections == before
        assert wire.outcome.blocked == []
        assert wire.outcome.requests == sum(wire.outcome.answered.values())


async def test_a_connection_without_a_grant_is_not_opened(tmp_path: Path) -> None:
    """The gate is the second lock: even where something asks for a connection in replay, it is refused and told."""
    async with world(tmp_path, {b"/": OK}) as w:
        await w.record()
        wire = await w.replay()
        client = await w.client()
        (handler,) = wire.handlers
        from mitmproxy.connection import Server
        from mitmproxy.proxy import commands

        handler.grant((HOST, w.origin.port), trusted=True)
        command = commands.OpenConnection(Server(address=(HOST, w.origin.port)))
        assert wire.server_connect(handler, command.connection) is not None
        assert wire.outcome.blocked == [f"{HOST}:{w.origin.port}"]
        assert not wire.outcome.clean
        await client.close()


async def test_replay_resolves_nothing(tmp_path: Path) -> None:
    """C-04, T-O5: in replay no name is looked up at all."""
    async with world(tmp_path, {b"/": OK}) as w:
        await w.record()
        await w.get("/")
        assert w.resolved == [HOST]
        await w.replay()
        await w.get("/")
        await w.get("/", host="unheard.example")
        assert w.resolved == [HOST]


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["127.0.0.1", "[::1]"])
async def test_a_tunnel_to_an_address_is_keyed_by_the_name_inside(tmp_path: Path, address: str) -> None:
    """T-R6: CONNECT to an IPv4 and a bracketed IPv6 literal; the leaf is good for the name and the address."""
    async with world(tmp_path, {b"/": OK}) as w:
        await w.record()
        assert (await w.get("/")).body == b"ok"
        await w.replay()
        client = await w.client(address, sni=HOST)
        await client.send(b"GET / HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % (HOST.encode(), w.origin.port))
        assert (await client.response()).body == b"ok"
        bare = await w.tunnel(address)
        context = w.context("http/1.1")
        await bare.writer.start_tls(context, server_hostname=address.strip("[]"))
        await bare.send(b"GET / HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % (HOST.encode(), w.origin.port))
        assert (await bare.response()).body == b"ok"


async def test_names_that_disagree_are_a_note_while_recording_and_a_miss_in_replay(tmp_path: Path) -> None:
    """DESIGN 3: the key host is the CONNECT name; disagreement is an event, in replay a miss."""
    async with world(tmp_path, {b"/": OK}) as w:
        await w.record()
        client = await w.client()
        await client.send(b"GET / HTTP/1.1\r\nHost: fronted.example\r\n\r\n")
        assert (await client.response()).body == b"ok"
        exchange = w.writer.exchanges[0]
        assert (exchange.request.host, exchange.request.named.host) == (HOST, "fronted.example")
        assert any(note.startswith("names-disagree") for note in exchange.notes)
        wire = await w.replay()
        client = await w.client()
        await client.send(b"GET / HTTP/1.1\r\nHost: fronted.example\r\n\r\n")
        assert (await client.response()).status == 424
        assert wire.outcome.answered == {"miss": 1}
        assert not wire.outcome.clean


async def test_the_proxy_is_never_its_own_origin(tmp_path: Path) -> None:
    """C-04: our own port is refused in every spelling, by whatever way it is asked for."""
    async with world(tmp_path, {b"/": OK}) as w:
        wire = await w.record()
        assert w.proxy is not None
        own = w.proxy.port
        for host in (b"127.0.0.1", b"localhost", b"2130706433", b"[::ffff:127.0.0.1]", b"localhost."):
            client = await w.plain()
            await client.send(b"GET http://%s:%d/ HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % (host, own, host, own))
            assert (await client.response()).status == 403, host
        name = await w.tunnel(HOST, own)
        await name.send(b"GET / HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % (HOST.encode(), own))
        assert (await name.response()).status == 502
        assert wire.outcome.unreachable[0][1].endswith("is our own port")


# -- who may come in ---------------------------------------------------------------------------------------------------


async def test_another_users_connection_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C-03: on loopback the peer must be our user."""
    async with world(tmp_path, {b"/": OK}) as w:
        wire = await w.record(uid=12345)
        # Root is let in as well: it could read our memory. Anyone else is not.
        monkeypatch.setattr("secondtake.proxy.peer.peer_uid", lambda client, server: 65534)
        client = await w.plain()
        await client.send(b"CONNECT x:1 HTTP/1.1\r\n\r\n")
        assert (await client.rest()).raw == b""
        assert wire.outcome.strangers == 1


async def test_a_credential_is_asked_for_checked_and_not_recorded(tmp_path: Path) -> None:
    """C-02, C-03: 407 without it, on the same connection too; it neither reaches the origin nor the record."""
    async with world(tmp_path, {b"/": OK}) as w:
        await w.record(credential="agent:s3cret-of-this-run")
        port = w.origin.port
        client = await w.plain()
        head = b"CONNECT %s:%d HTTP/1.1\r\n" % (HOST.encode(), port)
        await client.send(head + b"\r\n")
        assert (await client.response()).status == 407
        await client.send(head + b"Proxy-Authorization: Basic %s\r\n\r\n" % base64.b64encode(b"agent:wrong"))
        assert (await client.response()).status == 407
        given = b"Proxy-Authorization: Basic %s\r\n" % base64.b64encode(b"agent:s3cret-of-this-run")
        await client.send(head + given + b"\r\n")
        assert b" 200 " in await client.until(b"\r\n\r\n")
        await client.writer.start_tls(w.context("http/1.1"), server_hostname=HOST)
        await client.send(b"GET / HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (HOST.encode(), given))
        assert (await client.response()).body == b"ok"
        plain = await w.plain()
        await plain.send(b"GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n" % (HOST.encode(), HOST.encode()))
        assert (await plain.response()).status == 407
        assert b"roxy-" not in w.origin.heads[0]
        assert "s3cret" not in repr(w.writer.exchanges)


async def test_two_agents_and_two_runs_each_have_their_own_queues(tmp_path: Path) -> None:
    """T-R14: by proxy user name at once, and one after the other after a pause without any connection."""
    async with world(tmp_path, {b"/": OK}) as w:
        await w.record()
        await w.get("/", method="POST", body=b"once")
        wire = await w.replay()

        async def ask(user: str) -> int:
            port = w.origin.port
            encoded = base64.b64encode(f"{user}:".encode())
            client = await w.tunnel(HOST, port, fields=b"Proxy-Authorization: Basic %s\r\n" % encoded)
            await client.writer.start_tls(w.context("http/1.1"), server_hostname=HOST)
            await client.send(b"POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: 4\r\n\r\nonce" % HOST.encode())
            status = (await client.response()).status
            await client.close()
            return status

        assert [await ask("agent-1"), await ask("agent-2"), await ask("agent-1")] == [200, 200, 424]
        await until(lambda: not wire.handlers)
        assert wire._last_left_us is not None
        wire._last_left_us -= 3_000_000  # as if two seconds had gone by
        assert await ask("agent-1") == 200
        wire.new_sessions()  # SIGHUP
        assert await ask("agent-1") == 200


async def test_only_hosts_refuses_others_before_tls(tmp_path: Path) -> None:
    """DESIGN 7: a constrained CA would turn a miss into a TLS error that agents retry for half a minute."""
    async with world(tmp_path, {b"/": OK}) as w:
        wire = await w.record(only_hosts=(HOST, "*.provider.example"))
        assert (await w.get("/")).body == b"ok"
        client = await w.plain()
        await client.send(b"CONNECT other.example:443 HTTP/1.1\r\n\r\n")
        got = await client.rest()
        assert (got.status, b"not among --only-hosts" in got.body) == (403, True)
        assert wire.refuse_tunnel("api.provider.example", 443) is None


async def test_a_client_that_does_not_trust_us_is_named(tmp_path: Path) -> None:
    """T-O6, issue 2: the failure is on the outcome with the host and what the client calls itself, and the run is not clean."""
    async with world(tmp_path, {b"/": OK}) as w:
        wire = await w.record()
        client = await w.tunnel(fields=b"User-Agent: pip/99\r\n")
        with pytest.raises(ssl.SSLCertVerificationError):
            await client.writer.start_tls(ssl.create_default_context(), server_hostname=HOST)
        await until(lambda: wire.outcome.tls_failures)
        (failure,) = wire.outcome.tls_failures
        assert (failure.host, failure.client) == (HOST, "pip/99")
        assert not wire.outcome.clean


# -- upgrades ----------------------------------------------------------------------------------------------------------


async def test_a_models_websocket_is_refused_with_426_in_both_modes(tmp_path: Path) -> None:
    """T-H1: the client falls back at once; on the record as ws-refused."""
    async with world(tmp_path, {b"/v1/responses": OK}) as w:
        ask = (
            b"GET /v1/responses HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n"
            % HOST.encode()
        )
        for mode in ("record", "replay"):
            wire = await (w.record() if mode == "record" else w.replay())
            client = await w.client()
            await client.send(ask)
            assert (await client.response()).status == 426
            assert wire.outcome.refused == {"ws-refused": 1}
        assert w.origin.connections == 0
        assert w.writer.exchanges[0].notes == ("refused: ws-refused",)
        assert w.writer.exchanges[0].channel is Channel.MODEL


async def test_another_websocket_is_relayed_and_kept_as_opaque_bytes(tmp_path: Path) -> None:
    """DESIGN 3, Misses: relayed in both directions while recording; `ws-refused` in replay."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        for _ in range(3):
            writer.write(b"<" + await reader.readexactly(3) + b">")
        await writer.drain()
        writer.close()

    async with world(tmp_path, {b"/chat": script}) as w:
        await w.record()
        ask = b"GET /chat HTTP/1.1\r\nHost: %s\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n" % HOST.encode()
        client = await w.client()
        await client.send(ask)
        assert b"101" in await client.until(b"\r\n\r\n")
        for word in (b"one", b"two", b"\x81\x00\xff"):
            await client.send(word)
            assert await client.take(5) == b"<" + word + b">"
        await client.rest()
        await w.stop()
        exchange = w.writer.exchanges[0]
        assert exchange.answer is not None
        assert w.writer.bodies[exchange.request.body.digest] == b"onetwo\x81\x00\xff"
        assert w.writer.bodies[exchange.answer.body.digest] == b"<one><two><\x81\x00\xff>"
        await w.replay()
        client = await w.client()
        await client.send(ask)
        assert b"x-secondtake-miss: ws-refused" in (await client.response()).head


# -- the corporate network ---------------------------------------------------------------------------------------------


class Corporate:
    """A TLS-inspecting proxy that asks for a password, keeps its own root, and forbids CONNECT to port 80."""

    def __init__(self, w: World, context: ssl.SSLContext) -> None:
        self.w = w
        self.context = context
        self.heads: list[bytes] = []
        self.server: asyncio.Server | None = None
        self.port = 0

    async def __aenter__(self) -> Corporate:
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self.server is not None
        self.server.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            if b"Proxy-Authorization: Basic %s" % base64.b64encode(b"corp:p@ss") not in head:
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            elif head.startswith(b"CONNECT"):
                if b":80 " in head:
                    writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
                else:
                    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                    await writer.start_tls(self.context)
                    inner = await reader.readuntil(b"\r\n\r\n")
                    self.heads.append(inner)
                    writer.write(simple(b"inspected"))
            else:
                writer.write(simple(b"absolute"))
            await writer.drain()
        writer.close()


async def test_a_chained_inspecting_proxy_with_its_own_root_and_password(tmp_path: Path) -> None:
    """DESIGN 3, T-R9: TLS through CONNECT with the password added there and kept out of the record; plain http in absolute form."""
    async with world(tmp_path, {b"/": OK}) as w, Corporate(w, w._context) as corporate:
        upstream = Upstream.from_environ(
            {
                "HTTPS_PROXY": f"http://corp:p%40ss@127.0.0.1:{corporate.port}",
                "HTTP_PROXY": f"http://corp:p%40ss@127.0.0.1:{corporate.port}",
                "NO_PROXY": "direct.example",
            }
        )
        await w.record(upstream=upstream, loopback=False)
        assert (await w.get("/")).body == b"inspected"
        assert b"roxy-Auth" not in corporate.heads[1]
        plain = await w.plain()
        await plain.send(b"GET http://index.example/simple/ HTTP/1.1\r\nHost: index.example\r\n\r\n")
        assert (await plain.response()).body == b"absolute"
        assert corporate.heads[2].startswith(b"GET http://index.example/simple/ HTTP/1.1\r\n")
        assert "p@ss" not in repr(w.writer.exchanges)
        assert base64.b64encode(b"corp:p@ss").decode() not in repr(w.writer.exchanges)
        assert w.resolved == []
        direct = await w.client("direct.example")
        await direct.send(b"GET / HTTP/1.1\r\nHost: direct.example\r\n\r\n")
        assert (await direct.response()).status == 502
        assert w.resolved == ["direct.example"]


async def test_a_refusing_upstream_proxy_says_why(tmp_path: Path) -> None:
    """T-R9: what the chained proxy answered to CONNECT is in the client's 502 and in the record."""
    async with world(tmp_path, {b"/": OK}) as w, Corporate(w, w._context) as corporate:
        upstream = Upstream.from_environ({"HTTPS_PROXY": f"http://127.0.0.1:{corporate.port}"})
        wire = await w.record(upstream=upstream)
        got = await w.get("/")
        assert (got.status, b"407" in got.body) == (502, True)
        assert b"user name and password" in got.body
        assert wire.outcome.unreachable
        assert w.writer.exchanges[0].ended is Ending.REFUSED


async def test_an_origin_that_cannot_be_verified_is_a_recorded_failure(tmp_path: Path) -> None:
    """C-07: upstream TLS is always verified; the failure is on the record and played as such."""
    async with world(tmp_path, {b"/": OK}) as w:
        await w.record(trust=w.authority.ca_path)
        got = await w.get("/")
        assert (got.status, b"ertificate" in got.body) == (502, True)
        assert w.writer.exchanges[0].ended is Ending.TLS_FAILED
        await w.replay()
        again = await w.get("/")
        assert (again.status, again.body) == (got.status, got.body)


async def test_passthrough_is_relayed_unread_and_counted(tmp_path: Path) -> None:
    """`--passthrough HOST`: a pinned client sees the origin's own certificate; nothing of it is on the record."""
    async with world(tmp_path, {b"/": OK}) as w:
        wire = await w.record(passthrough=(HOST,))
        client = await w.tunnel()
        own = ssl.create_default_context(cafile=str(w.world_authority.ca_path))
        await client.writer.start_tls(own, server_hostname=HOST)
        await client.send(ASK)
        assert (await client.response()).body == b"ok"
        assert wire.outcome.passed_through == {HOST: 1}
        assert w.writer.exchanges == []


# -- the disk ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strict", [False, True])
async def test_a_full_disk_ends_the_recording_and_not_the_traffic(tmp_path: Path, strict: bool) -> None:
    """B-05, T-L3: the agent's traffic goes on, the outcome says so; only --strict refuses further requests."""
    async with world(tmp_path, {b"/": OK}) as w:
        wire = await w.record(strict=strict)
        w.writer.error = NotStored("no space left", reason="ENOSPC")
        assert (await w.get("/")).body == b"ok"
        assert (await w.get("/")).status == (424 if strict else 200)
        assert wire.outcome.failed is not None
        assert wire.outcome.failed.reason == "ENOSPC"
        assert not wire.outcome.clean


async def test_a_fault_of_ours_ends_one_connection_and_is_told(tmp_path: Path) -> None:
    """T-L6: an exception in our code never hangs a client, and never takes others with it."""
    async with world(tmp_path, {b"/": OK}) as w:
        wire = await w.record()
        bystander: Client = await w.client()
        broken = wire.route
        wire.route = None  # type: ignore[assignment, method-assign]
        assert (await w.raw(ASK)).ended in ("reset", "closed")
        wire.route = broken  # type: ignore[method-assign]
        await bystander.send(ASK)
        assert (await bystander.response()).body == b"ok"
        assert len(wire.outcome.crashed) == 1
        assert not wire.outcome.clean


async def test_a_login_is_answered_with_a_token_that_parses_and_its_own_refresh_token(tmp_path: Path) -> None:
    """DESIGN 3, Misses: the recorded login is withheld; in replay a refresh gets a long-lived stand-in of the same shape."""
    token = b'{"access_token":"sk-ant-oat01-aaaaaaaaaaaaaaaaaaaaaaaaaaaa","refresh_token":"sk-ant-ort01-bbbbbbbbbbbbbb","expires_in":3600}'
    refresh = b'{"grant_type":"refresh_token","refresh_token":"sk-ant-ort01-cccccccccccccccccc","client_id":"x"}'
    json_type = b"Content-Type: application/json\r\n"
    async with world(tmp_path, {b"/v1/oauth/token": reply(simple(token, fields=json_type))}) as w:
        await w.record()
        await w.get("/v1/oauth/token", method="POST", fields=json_type, body=refresh)
        assert w.writer.exchanges[0].channel is Channel.AUTH
        assert b"aaaaaaaaaaaa" not in repr((w.writer.exchanges, w.writer.bodies)).encode()
        wire = await w.replay()
        got = await w.get("/v1/oauth/token", method="POST", fields=json_type, body=refresh)
        answered = json.loads(got.body)
        assert got.status == 200
        assert answered["expires_in"] > 3600
        assert answered["access_token"] != "sk-ant-oat01-aaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        assert dict(wire.outcome.answered) == {"local": 1}
        assert wire.outcome.clean
