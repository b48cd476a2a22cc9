"""The outside of a seal: it gives the order, takes the sockets that were made inside, and is what answers on them.

Everything runs on the caller's event loop. One gateway serves every start of an agent with its prefix; each has a network of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import socket
import struct
from collections.abc import Callable, Coroutine, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from secondtake.harness.seal.names import AAAA, A, Names, answered
from secondtake.harness.seal.network import CAPTURED
from secondtake.harness.seal.packets import own_addresses, seen
from secondtake.harness.seal.relay import PIECE_BYTES, Relay, close, tunnel
from secondtake.harness.seal.values import Attempt, Seal

MOST_ATTEMPTS = 10_000
"""Attempts kept; an agent that makes more has shown what it does."""

_MESSAGE_BYTES = 64 * 1024
_DESCRIPTORS = 32
_PAUSE_S = 0.05
"""How long no connection is taken when we have no descriptor left for one."""

_END_S = 5.0
_IP_PKTINFO = 8
_SOL_PACKET, _PACKET_STATISTICS = 263, 6


@dataclass(slots=True)
class Started:
    """What one start of the prefix came to."""

    tier: str = ""
    trial: bool = False
    refused: str | None = None
    problems: tuple[str, ...] | None = None
    """What the self-test found; None where it was not reached."""
    holes: tuple[str, ...] = ()
    sockets: list[socket.socket] = field(default_factory=list)
    control: socket.socket | None = None
    witness: socket.socket | None = None


class Gateway:
    """One seal's. `order` is what is asked of the inside, beyond what only we know."""

    def __init__(
        self,
        run_dir: Path,
        order: Mapping[str, Any],
        seal: Seal,
        *,
        proxy_port: int,
        credential: str | None,
        now_us: Callable[[], int],
        known_hosts: Set[str] | None,
    ) -> None:
        self.path = run_dir / f"seal-{secrets.token_hex(6)}.sock"
        self.order = dict(order)
        self.seal = seal
        self.proxy_port = proxy_port
        self.credential = credential
        self.now_us = now_us
        self.known_hosts = known_hosts
        self.names = Names()
        self.asked: set[str] = set()
        self.datagrams: set[tuple[str, int | None, int | None]] = set()
        self.own = own_addresses()
        self.nonce = f"{secrets.token_hex(8)}.seal.invalid"
        self.started: list[Started] = []
        self.layer: list[int] = []
        """The namespaces that hold the layer: of users, where it has its own, and of mounts."""
        self.buffer = memoryview(bytearray(PIECE_BYTES))
        self.loop = asyncio.get_running_loop()
        self.doors: list[socket.socket] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.sessions: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Listen for the inside, and set up what the self-test must not reach."""
        _sweep(self.path.parent)
        control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.doors.append(control)
        folder = os.open(self.path.parent, os.O_PATH | os.O_DIRECTORY)
        try:
            short = len(os.fsencode(self.path)) < 108
            control.bind(os.fspath(self.path) if short else f"/proc/self/fd/{folder}/{self.path.name}")
        finally:
            os.close(folder)
        self.path.chmod(0o600)
        control.listen(16)
        control.setblocking(False)
        abstract = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        port = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.doors += [abstract, port]
        name = f"secondtake-{secrets.token_hex(8)}"
        abstract.bind(f"\0{name}")
        abstract.listen(1)
        port.bind(("127.0.0.1", 0))
        port.listen(1)
        self.order |= {
            "port": self.proxy_port, "nonce": self.nonce, "abstract": name, "host_port": port.getsockname()[1], "control": str(self.path),
        }  # fmt: skip
        self._spawn(self._controls(control), self.tasks)

    async def close(self) -> None:
        """End whatever still runs inside, and take everything away."""
        for started in self.started:
            if started.control is not None:
                with contextlib.suppress(OSError):
                    started.control.send(b"end")
        if self.sessions:
            await asyncio.wait(self.sessions, timeout=_END_S)
        for task in (*self.sessions, *self.tasks):
            task.cancel()
        await asyncio.gather(*self.sessions, *self.tasks, return_exceptions=True)
        for door in self.doors:
            door.close()
        self.path.unlink(missing_ok=True)
        for descriptor in self.layer:
            os.close(descriptor)  # nobody is left in it: with this the kernel takes it away
        self.layer = []

    def _spawn(self, work: Coroutine[Any, Any, None], among: set[asyncio.Task[None]]) -> None:
        task = self.loop.create_task(work)
        among.add(task)
        task.add_done_callback(among.discard)

    async def _controls(self, control: socket.socket) -> None:
        while True:
            given, _ = await self.loop.sock_accept(control)
            user = struct.unpack("3i", given.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
            if user == os.geteuid():
                self._spawn(self._session(given), self.sessions)
            else:
                given.close()

    async def _session(self, control: socket.socket) -> None:
        """One start, from its greeting to its end."""
        control.setblocking(False)
        started = Started(control=control)
        self.started.append(started)
        try:
            while True:
                message, descriptors = await self._message(control)
                if message is None:
                    return
                answer = json.dumps(self._obey(started, message, descriptors)).encode()
                if "tier" in message and not started.trial and self.layer:
                    socket.send_fds(control, [answer], self.layer)
                else:
                    control.send(answer)
        except OSError:
            return
        finally:
            self._look(started)
            for each in started.sockets:
                self.loop.remove_reader(each)
                each.close()
            started.control = started.witness = None
            control.close()

    async def _message(self, control: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
        while True:
            ready = self.loop.create_future()
            self.loop.add_reader(control, lambda ready=ready: ready.done() or ready.set_result(None))  # type: ignore[misc]
            try:
                await ready
            finally:
                self.loop.remove_reader(control)
            try:
                data, descriptors, _, _ = socket.recv_fds(control, _MESSAGE_BYTES, _DESCRIPTORS)
            except BlockingIOError:
                continue
            try:
                message = json.loads(data) if data else None
            except ValueError:
                message = None
            return (message if isinstance(message, dict) else None), descriptors

    def _obey(self, started: Started, message: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        if "tier" in message:
            started.tier, started.trial = str(message["tier"]), bool(message["trial"])
            return self.order
        if "holes" in message:
            started.holes = tuple(map(str, message["holes"]))
            if not started.trial:
                self.seal.holes = tuple(dict.fromkeys((*self.seal.holes, *started.holes)))
        if "roles" in message:
            started.sockets = [socket.socket(fileno=descriptor) for descriptor in descriptors]
            for role, given in zip(message["roles"], started.sockets, strict=True):
                self._serve(started, role, given)
        elif "layer" in message and not started.trial and not self.layer:
            self.layer = descriptors
        else:
            for descriptor in descriptors:
                os.close(descriptor)
        if "refused" in message:
            started.refused = str(message["refused"])
        if "problems" in message:
            started.problems = (*message["problems"], *self._written_through(message.get("written", ())))
            self._forget(started)
        return {"go": started.refused is None and not started.problems}

    def _written_through(self, paths: Sequence[str]) -> list[str]:
        """Of the files that the self-test made, those that are there for real."""
        found = []
        for path in paths:
            if self.nonce in os.path.basename(path) and os.path.lexists(path):
                found.append(f"what is written in {os.path.dirname(path)} is written for real")
                with contextlib.suppress(OSError):
                    os.unlink(path)
        return found

    def _serve(self, started: Started, role: str, given: socket.socket) -> None:
        given.setblocking(False)
        match role:
            case "proxy":
                self.loop.add_reader(given, self._accept, given, self._to_proxy)
            case "captured":
                self.loop.add_reader(given, self._accept, given, self._captured)
            case "dns-tcp":
                self.loop.add_reader(given, self._accept, given, self._dns_stream)
            case "dns-udp":
                self.loop.add_reader(given, self._dns, given)
            case _:
                started.witness = given

    def _accept(self, listener: socket.socket, serve: Callable[[socket.socket], Coroutine[Any, Any, None]]) -> None:
        try:
            client, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:
            self.loop.remove_reader(listener)
            self.loop.call_later(_PAUSE_S, self._again, listener, serve)
            return
        client.setblocking(False)
        self._spawn(serve(client), self.tasks)

    def _again(self, listener: socket.socket, serve: Callable[[socket.socket], Coroutine[Any, Any, None]]) -> None:
        if listener.fileno() >= 0:
            self.loop.add_reader(listener, self._accept, listener, serve)

    async def _to_proxy(self, client: socket.socket) -> None:
        await self._relayed(client, None)

    async def _captured(self, client: socket.socket) -> None:
        """A connection that was to go elsewhere: the name it was given for, or the address, through a tunnel."""
        address, port = client.getsockname()[:2]
        if address.startswith("127.") or address == "::1":
            close(client, reset=True)  # nobody listens on this port of loopback but us
            return
        await self._relayed(client, (self.names.of(address) or address, port))

    async def _relayed(self, client: socket.socket, target: tuple[str, int] | None) -> None:
        upstream = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        upstream.setblocking(False)
        relay = None
        try:
            await self.loop.sock_connect(upstream, ("127.0.0.1", self.proxy_port))
            if target is not None and (rest := await tunnel(upstream, *target, self.credential)):
                await self.loop.sock_sendall(client, rest)
            relay = Relay(client, upstream, self.buffer)
            await relay.done
        except OSError:
            return
        finally:
            if relay is not None:
                relay.end(reset=relay.open_ways == 2)  # who has said its last word has not broken off
            else:
                close(client, reset=True)
                close(upstream, reset=True)

    def _dns(self, given: socket.socket) -> None:
        """Every datagram that waits; the answer comes from the address that was asked."""
        for _ in range(1024):
            try:
                query, ancillary, _, peer = given.recvmsg(4096, 256)
            except OSError:
                return
            reply = self._reply(query)
            if reply is None:
                continue
            source = []
            for level, kind, data in ancillary:
                if level == socket.IPPROTO_IP and kind == _IP_PKTINFO:
                    source = [(level, kind, struct.pack("=i4s4x", 0, data[8:12]))]
                elif level == socket.IPPROTO_IPV6 and kind == socket.IPV6_PKTINFO:
                    source = [(level, kind, data[:16] + bytes(4))]
            with contextlib.suppress(OSError):
                given.sendmsg([reply], source, 0, peer)

    async def _dns_stream(self, client: socket.socket) -> None:
        """DNS over TCP: a length before each message (RFC 1035 section 4.2.2)."""
        with client, contextlib.suppress(OSError):
            held = b""
            while piece := await self.loop.sock_recv(client, 4096):
                held += piece
                while len(held) >= 2 and len(held) >= (end := 2 + int.from_bytes(held[:2], "big")):
                    reply, held = self._reply(held[2:end]), held[end:]
                    if reply is not None:
                        await self.loop.sock_sendall(client, len(reply).to_bytes(2, "big") + reply)

    def _reply(self, query: bytes) -> bytes | None:
        answer = answered(query, self.names)
        if answer is None:
            return None
        name = answer.name
        if name is not None and name != self.nonce and name not in self.asked and len(self.asked) < MOST_ATTEMPTS:
            self.asked.add(name)
            self.seal.names.append(name)
            loopback = name == "localhost" or name.endswith(".localhost")
            if self.known_hosts is not None and answer.kind in (A, AAAA) and name not in self.known_hosts and not loopback:
                self._attempt("dns", name, None, name)
        return answer.reply

    def _forget(self, started: Started) -> None:
        """The self-test is over: what the witness saw until now was that. From here on it is the agent."""
        if started.witness is not None:
            with contextlib.suppress(OSError):
                while started.witness.recv(256):
                    pass
            self.loop.add_reader(started.witness, self._look, started)

    def _look(self, started: Started) -> None:
        if started.witness is None or started.problems is None:
            return
        with contextlib.suppress(OSError):
            while packet := started.witness.recv(256):
                found = seen(packet)
                if found is None or found.address in self.own or (found.kind == "tcp" and found.port in CAPTURED):
                    continue
                if found.kind != "tcp":
                    key = (found.address, found.port, found.source)
                    if key in self.datagrams:
                        continue
                    self.datagrams.add(key)
                self._attempt(found.kind, found.address, found.port, self.names.of(found.address))
        # What came faster than it was read is counted by the kernel, since the last time it was asked (packet(7)).
        _, lost = struct.unpack("=II", started.witness.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))
        if lost:
            self._attempt("unseen", f"{lost} packets", None, None)

    def _attempt(self, kind: str, address: str, port: int | None, name: str | None) -> None:
        if len(self.seal.attempts) < MOST_ATTEMPTS:
            self.seal.attempts.append(Attempt(self.now_us(), kind, address, port, name))


def _sweep(folder: Path) -> None:
    """Remove the sockets of gateways that were killed."""
    for path in folder.glob("seal-*.sock"):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
            try:
                probe.connect(os.fspath(path))
            except ConnectionRefusedError:
                path.unlink(missing_ok=True)
