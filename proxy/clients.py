"""Who the clients are: what each calls itself, or else which program holds its socket; and which of them trusted us.

Only for what a person is told when a client breaks off: nothing is decided by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from mitmproxy.connection import Client

from secondtake.proxy.outcome import Outcome, TlsFailure
from secondtake.proxy.peer import Endpoint, peer_process
from secondtake.proxy.tools import command_of

LOOKUPS = 16
"""For so many connections to a host the program is looked up while nobody was heard there. Each look costs some milliseconds."""

NAME_CHARACTERS = 200

SILENT = "closed without a request"

BROKEN_OFF = "disconnected during the handshake"
"""How mitmproxy words the end of a client that gave no reason; one that distrusts a certificate says so in an alert."""


def peer_command(client: Endpoint, server: Endpoint) -> str:
    """The program at the other end of a connection, as `tools.guess` reads it; empty where it cannot be known."""
    pid = peer_process(client, server)
    return (command_of(pid) or "") if pid is not None else ""


class Clients:
    """Of one proxy. Tells `outcome` of those that would not trust us."""

    def __init__(self, outcome: Outcome, command: Callable[[Endpoint, Endpoint], str] = peer_command) -> None:
        self._outcome = outcome
        self._command = command
        self._names: dict[Client, str] = {}
        self._looks: Counter[str] = Counter()
        self._hosts: set[str] = set()
        """Where some client was heard inside TLS."""

    def greeted(self, client: Client, agents: Sequence[bytes], host: str) -> None:
        """Remember what a client calls itself. One that says nothing is looked up now: once it has broken off it may be gone."""
        if agents:
            self._names[client] = agents[0][:NAME_CHARACTERS].decode("latin-1")
        elif host and host not in self._hosts and self._looks[host] < LOOKUPS:
            self._looks[host] += 1
            there, here = client.peername, client.sockname
            self._names[client] = self._command((there[0], there[1]), (here[0], here[1]))

    def left(self, client: Client) -> None:
        """The connection is gone."""
        self._names.pop(client, None)

    def refused(self, client: Client, host: str) -> None:
        """The handshake failed. Where some client was heard before, one that breaks off without a word is taken for one that ended."""
        if host in self._hosts and BROKEN_OFF in (client.error or ""):
            self.silent(client, host)
            return
        self._outcome.tls_failures.append(TlsFailure(host, client.error or "", self._names.get(client, "")))

    def heard(self, client: Client, host: str) -> None:
        """The client spoke inside TLS: it trusts us."""
        self._hosts.add(host)
        self._outcome.trusting.add((host, self._names.get(client, "")))

    def silent(self, client: Client, host: str) -> None:
        """The client left after the handshake without a word: as one does that looks at the certificate only then, or needs no more."""
        self._outcome.silent.append(TlsFailure(host, SILENT, self._names.get(client, "")))
