"""TLS on both sides: contexts made once and shared, so that a new connection costs one handshake and may resume.

Towards the agent: leaves of our authority. Towards origins: always verified, against the bundle of `trust.py`; there is no
switch that turns it off (C-07).
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path

from mitmproxy.connection import Server
from OpenSSL import SSL

from secondtake.proxy.authority import Authority

LEAVES = 512
"""Contexts with their leaf held in memory; the least recently used goes first."""

ALPN = (b"h2", b"http/1.1")

_HOST_FLAGS = SSL._lib.X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | getattr(SSL._lib, "X509_CHECK_FLAG_NEVER_CHECK_SUBJECT", 0)  # type: ignore[attr-defined]
# pyOpenSSL has no public way to ask for a host name check; mitmproxy's own set-up does the same.


def _select(_: SSL.Connection, offered: Sequence[bytes]) -> object:
    """The first of the client's protocols that we speak: it lists them by preference."""
    return next((name for name in offered if name in ALPN), SSL.NO_OVERLAPPING_PROTOCOLS)


def _context(method: int) -> SSL.Context:
    context = SSL.Context(method)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_options(SSL.OP_NO_COMPRESSION | SSL.OP_CIPHER_SERVER_PREFERENCE)
    return context


class AgentTls:
    """What the agent shakes hands with."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority
        self._contexts: OrderedDict[tuple[str, ...], SSL.Context] = OrderedDict()

    def connection(self, names: Sequence[str]) -> SSL.Connection:
        """A server-side connection whose leaf is valid for each of `names` (hosts or addresses)."""
        key = tuple(dict.fromkeys(names))
        context = self._contexts.get(key)
        if context is None:
            leaf = self._authority.leaf(key)
            context = _context(SSL.TLS_SERVER_METHOD)
            context.use_certificate(leaf.certificate)
            context.use_privatekey(leaf.key)
            context.set_alpn_select_callback(_select)  # type: ignore[arg-type]
            context.set_session_id(b"secondtake")
            self._contexts[key] = context
            if len(self._contexts) > LEAVES:
                self._contexts.popitem(last=False)
        else:
            self._contexts.move_to_end(key)
        connection = SSL.Connection(context)
        connection.set_accept_state()
        return connection


class OriginTls:
    """What we shake hands with."""

    def __init__(self, trust: Path, client_certs: Mapping[str, Path]) -> None:
        self._trust = trust
        self._client_certs = client_certs
        self._contexts: dict[Path | None, SSL.Context] = {}

    def connection(self, server: Server, offered: Sequence[bytes]) -> SSL.Connection:
        """A client-side connection that verifies the origin by name (or by address)."""
        name = server.sni or (server.address[0] if server.address else "")
        certificate = self._client_certs.get(name)
        context = self._contexts.get(certificate)
        if context is None:
            context = _context(SSL.TLS_CLIENT_METHOD)
            context.set_verify(SSL.VERIFY_PEER, None)
            context.load_verify_locations(str(self._trust))
            if certificate is not None:
                context.use_certificate_chain_file(str(certificate))
                context.use_privatekey_file(str(certificate))
            self._contexts[certificate] = context
        connection = SSL.Connection(context)
        parameters = SSL._lib.SSL_get0_param(connection._ssl)  # type: ignore[attr-defined]
        SSL._lib.X509_VERIFY_PARAM_set_hostflags(parameters, _HOST_FLAGS)  # type: ignore[attr-defined]
        try:
            packed = ipaddress.ip_address(name).packed
        except ValueError:
            host = name.encode("idna")
            connection.set_tlsext_host_name(host)
            done = SSL._lib.X509_VERIFY_PARAM_set1_host(parameters, host, len(host))  # type: ignore[attr-defined]
        else:
            done = SSL._lib.X509_VERIFY_PARAM_set1_ip(parameters, packed, len(packed))  # type: ignore[attr-defined]
        if done != 1:
            raise RuntimeError(f"cannot verify the name {name!r}")
        offers = [alpn for alpn in offered if alpn in ALPN]
        if offers:
            connection.set_alpn_protos(offers)
        connection.set_connect_state()
        return connection
