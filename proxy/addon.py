"""What the connections of one proxy share, and the hooks they ask: who may come in, what may go out, what is counted.

The five places that mitmproxy's core asks of us: `client_connected` (is the peer our user?), `first_layer`, `hook` (TLS and the
like, answered in place), `server_connect` (the gate: no connection without a grant) and `Await` (commit, room, pace).
"""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
from collections.abc import Callable, Sequence

from mitmproxy.connection import Server
from mitmproxy.net.server_spec import ServerSpec
from mitmproxy.proxy import commands, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http._hooks import HttpConnectUpstreamHook
from mitmproxy.proxy.layers.tls import TlsFailedClientHook, TlsStartClientHook, TlsStartServerHook

from secondtake.cassettes import adapters
from secondtake.cassettes.channels import classify
from secondtake.cassettes.errors import NotStored, RecordedError
from secondtake.cassettes.exchange import EMPTY, Answered, Channel, Ending, Request
from secondtake.cassettes.logins import answer_locally
from secondtake.cassettes.misses import Miss
from secondtake.cassettes.normalise import NO_ALIASES, Aliases
from secondtake.cassettes.player import Live, Player, Serve, Session
from secondtake.cassettes.redact import Redactor
from secondtake.cassettes.writer import Writer
from secondtake.proxy import addresses, peer
from secondtake.proxy.authority import Authority
from secondtake.proxy.clients import Clients
from secondtake.proxy.framing import values
from secondtake.proxy.handler import WireHandler
from secondtake.proxy.layers import Front, shown_host
from secondtake.proxy.outcome import Missed, Outcome
from secondtake.proxy.policy import Mode, Policy, Refuse, is_websocket
from secondtake.proxy.refusals import Refusals
from secondtake.proxy.retake import Retake
from secondtake.proxy.routes import Route, Routes, choose, spec
from secondtake.proxy.settings import Settings
from secondtake.proxy.shims import Shims
from secondtake.proxy.tape import Tape, Tapes
from secondtake.proxy.tls import AgentTls, OriginTls

logger = logging.getLogger(__name__)

NEW_SESSION_AFTER_S = 2.0
"""A client that comes after so long without any connection begins a new replay session (DESIGN 3)."""


class Wire:
    """Shared by every connection of one proxy."""

    def __init__(
        self,
        settings: Settings,
        authority: Authority,
        *,
        redactor: Redactor,
        now_us: Callable[[], int],
        now_s: Callable[[], int],
        writer: Writer | None = None,
        player: Player | None = None,
        retake: Retake | None = None,
        known_hosts: frozenset[str] = frozenset(),
        resolver: addresses.Resolver | None = None,
    ) -> None:
        self.settings = settings
        self.policy = Policy(settings.mode, settings.quiet_telemetry, settings.strict, settings.live, settings.extend)
        self.redactor = redactor
        self.now_us = now_us
        """Microseconds since this proxy began; never goes back."""
        self.now_s = now_s
        """Seconds since 1970, as the agent's clock has them: what a login answered here is dated by."""
        self.refusals = Refusals()
        self.retake = retake
        self.outcome = Outcome()
        self.on_miss: Callable[[Missed], None] = lambda _missed: None
        """Told of each miss when it is counted, which is before the client is."""
        self.on_model: Callable[[int], None] = lambda _seq: None
        """Told of each model request that is recorded, by its number, when its head has come."""
        self.routes = Routes.of(settings.routes)
        self.upstream = settings.upstream
        self.rules = addresses.Rules(loopback=settings.loopback)
        self.agent_tls = AgentTls(authority)
        self.origin_tls = OriginTls(settings.trust, settings.client_certs)
        self.handlers: set[WireHandler] = set()
        self._tapes: Tapes | None = None
        self._player: Player | None = None
        self._known_hosts = known_hosts
        self._resolver = resolver
        self._sessions: dict[str, Session] = {}
        self._last_left_us: int | None = None
        self.clients = Clients(self.outcome)
        self.shims = Shims(self)
        self.attach(writer=writer, player=player)

    def attach(self, *, writer: Writer | None = None, player: Player | None = None, aliases: Aliases = NO_ALIASES) -> None:
        """What to record into or to answer from, once the port is known, which is among the aliases. Before the first client."""
        if writer is not None:
            self._tapes = Tapes(writer, self.redactor, self.now_us, self.outcome, aliases)
        self._player = player or self._player

    def listening(self, port: int) -> None:
        """The port is known: it is never an origin, and never our own way out."""
        self.rules = addresses.Rules(own_ports=frozenset({port}), loopback=self.settings.loopback)
        self.upstream = self.settings.upstream.excluding({port})

    # -- who may come in -----------------------------------------------------------------------------------------------

    def client_connected(self, handler: WireHandler) -> str | None:
        """Why a connection is refused; None where it is not (C-03)."""
        self.handlers.add(handler)
        if self.settings.uid is not None:
            client, server = handler.client.peername, handler.client.sockname
            found = peer.peer_uid((client[0], client[1]), (server[0], server[1]))
            if found not in (self.settings.uid, 0) and (found is not None or self.settings.credential is None):
                self.outcome.strangers += 1
                return "the connection does not belong to this user"
        paused = self._last_left_us is not None and self.now_us() - self._last_left_us > NEW_SESSION_AFTER_S * 1e6
        if paused and not self.settings.one_session:
            self.new_sessions()
        self._last_left_us = None
        return None

    def admit(self, handler: WireHandler, given: Sequence[bytes]) -> bool:
        """Whether the client gave our credential, where one is asked for. Its user name says whose session it is."""
        user, password = "", ""
        if given:
            scheme, _, encoded = given[0].partition(b" ")
            if scheme.lower() == b"basic":
                try:
                    user, _, password = base64.b64decode(encoded, validate=True).decode("utf-8", "replace").partition(":")
                except (binascii.Error, ValueError):
                    return self.settings.credential is None
        if self.settings.credential is None:
            handler.user = user or handler.user
            return True
        if handler.admitted and not given:
            return True
        expected_user, _, expected = self.settings.credential.partition(":")
        # Whoever knows the password may call itself what it likes: the name only chooses the session.
        if expected and hmac.compare_digest(password.encode(), expected.encode()):
            handler.user = user if user != expected_user else ""
            handler.admitted = True
            return True
        return False

    def greeted(self, handler: WireHandler, agents: Sequence[bytes], host: str = "") -> None:
        """Remember what a client calls itself, for the hint if it will not trust us at `host`."""
        self.clients.greeted(handler.client, agents, host)

    def disconnected(self, handler: WireHandler) -> None:
        """A connection is gone: what it was still recording ends here."""
        self.handlers.discard(handler)
        self.clients.left(handler.client)
        for tape in list(handler.tapes):
            tape.cut(Ending.CLIENT_LEFT, "the client's connection ended")
        if not self.handlers:
            self._last_left_us = self.now_us()

    def new_sessions(self) -> None:
        """Every queue begins anew: another run of the same scene."""
        self._sessions.clear()

    def session(self, handler: WireHandler) -> Session:
        """The queues this connection plays from."""
        assert self._player is not None
        name = handler.user or ""
        if name not in self._sessions:
            self._sessions[name] = self._player.session(name)
            self.outcome.sessions += 1
        return self._sessions[name]

    def play(self, handler: WireHandler, request: Request, live: Live) -> Serve | Miss:
        """Ask the cassette. Raises Corrupt where the recorded bytes are damaged."""
        found = self.session(handler).answer(request, live)
        if found.channel is not Channel.AUTH:
            return found
        return answer_locally(request, live.content, found, now_s=self.now_s()) or found

    def sessions(self) -> tuple[Session, ...]:
        """Those of now."""
        return tuple(self._sessions.values())

    # -- what mitmproxy asks -------------------------------------------------------------------------------------------

    def first_layer(self, context: Context, handler: WireHandler) -> layer.Layer:
        """Every connection begins at the front door."""
        context.layers.clear()
        return Front(context, self, handler)

    def hook(self, hook: commands.StartHook) -> None:
        """Answered in place; the ones that are not named here need no answer."""
        if isinstance(hook, TlsStartClientHook):
            context = hook.data.context
            names = [context.client.sni or (context.server.address or ("localhost",))[0]]
            if context.server.address and context.server.address[0] not in names:
                names.append(context.server.address[0])
            hook.data.ssl_conn = self.agent_tls.connection(names)
        elif isinstance(hook, TlsStartServerHook):
            server = hook.data.conn
            assert isinstance(server, Server)
            if server.sni is None:
                server.sni = server.address[0] if server.address else None
            offered = server.alpn_offers or hook.data.context.client.alpn_offers
            hook.data.ssl_conn = self.origin_tls.connection(server, list(offered))
        elif isinstance(hook, TlsFailedClientHook):
            self.clients.refused(hook.data.context.client, shown_host(hook.data.context))
        elif isinstance(hook, HttpConnectUpstreamHook):
            host, port = hook.flow.request.host, hook.flow.request.port
            via = self.upstream.via("https", host, port)
            if via is not None and via.authorization is not None:
                hook.flow.request.headers["Proxy-Authorization"] = via.authorization.decode("ascii")

    def server_connect(self, handler: WireHandler, connection: Server) -> str | None:
        """The gate: a connection nobody was granted is not opened, in whatever way it was asked for."""
        address = connection.address
        if address is not None and (address[0], address[1]) in handler.grants and self.policy.mode is not Mode.REPLAY:
            return None
        self.outcome.blocked.append(f"{address[0]}:{address[1]}" if address else "?")
        return "the gate is closed: this connection was not granted"

    async def resolve(self, host: str, port: int, *, trusted: bool) -> list[tuple[str, int]]:
        """Resolve once, judge, and return what may be connected to. Raises OSError with the reason."""
        try:
            if trusted:
                own = addresses.Rules(own_ports=self.rules.own_ports, loopback=True)
                if (literal := addresses.literal(host)) is not None:
                    own.judge_name(host, port)
                    return [(str(literal), port)]
                found = await (self._resolver or addresses.system_resolver)(host, port)
                return [(address, port) for address in found]
            chosen = await addresses.resolve(host, port, self.rules, self._resolver)
        except (RecordedError, UnicodeError) as error:
            raise OSError(str(error)) from error
        return [(str(address), port) for address in chosen]

    def crashed(self, handler: WireHandler, error: Exception) -> None:
        """A fault of ours. It ends one connection, is told, and makes the run not clean."""
        logger.error("internal error", exc_info=error)
        self.outcome.crashed.append(self.redactor.text(f"{type(error).__name__}: {error}"))

    def refuse_tunnel(self, host: str, port: int) -> bytes | None:
        """With --only-hosts, other hosts get 403 before TLS: a constrained CA would look like a TLS error (DESIGN 7)."""
        if self.settings.only_hosts and not any(_covers(rule, host) for rule in self.settings.only_hosts):
            self.outcome.refused["only-hosts"] += 1
            return self.refusals.forbidden_tunnel(f"{host} is not among --only-hosts")
        return None

    def passes_through(self, handler: WireHandler, host: str, port: int) -> ServerSpec | bool:
        """Whether a tunnel is relayed unread (`--passthrough`): False, or True, or the proxy to go through."""
        if self.policy.mode is not Mode.RECORD or not any(_covers(rule, host) for rule in self.settings.passthrough):
            return False
        self.outcome.passed_through[host] += 1
        via = self.upstream.via("https", host, port)
        handler.grant(via.address if via else (host, port), trusted=via is not None)
        return spec(via) if via else True

    def not_http(self, handler: WireHandler, connect: str | None, start: bytes) -> None:
        """A client that speaks no HTTP was closed."""
        self.outcome.not_http.append((connect or "", start))

    # -- what a request is ---------------------------------------------------------------------------------------------

    def classify(self, request: Request) -> Channel:
        """By the head; a model's socket counts as a model call."""
        if is_websocket(request) and adapters.upgrades_to_model(request):
            return Channel.MODEL
        return classify(request, None)[0]

    def forbidden(self, request: Request) -> str | None:
        """Why this host must not be asked, in words (C-04); None where it may."""
        elsewhere = self.retake is not None and self.retake.gateway is not None
        if elsewhere or self.routes.find(request) is not None:
            return None
        try:
            self.rules.judge_name(request.host, request.port)
        except addresses.Forbidden as error:
            return str(error)
        return None

    def route(self, request: Request, connect: tuple[str, int] | None) -> Route:
        """Where a live request goes; in a retake, to the gateway where there is one."""
        gateway = self.retake.gateway if self.retake is not None else None
        if gateway is not None:
            return choose(request, connect, Routes.of({request.host: gateway}), self.upstream)
        return choose(request, connect, self.routes, self.upstream)

    def drops_validators(self, request: Request, channel: Channel) -> bool:
        """A warm client cache must not leave a cassette full of 304s: the one declared change to index GETs (DESIGN 3)."""
        return (
            channel is Channel.INDEX
            and request.method == "GET"
            and not values(request.fields, b"range")
            and bool(values(request.fields, b"if-none-match") or values(request.fields, b"if-modified-since"))
        )

    # -- recording -----------------------------------------------------------------------------------------------------

    @property
    def failed(self) -> NotStored | None:
        """Why this recording can store nothing any more."""
        return self.outcome.failed

    @property
    def keeps_played(self) -> bool:
        """Whether what is played is written as well: on a retake's take, for a replay's events."""
        return self._tapes is not None

    def tape(self, request: Request, channel: Channel, handler: WireHandler) -> Tape:
        """Begin to write one exchange."""
        assert self._tapes is not None
        made = self._tapes.begin(request, channel, handler.tapes)
        if channel is Channel.MODEL:
            self.on_model(made.seq)
        return made

    def tape_beside(self, request: Request, channel: Channel, beside: set[Tape]) -> Tape:
        """The same, for one that outlives the connection it was told on."""
        assert self._tapes is not None
        return self._tapes.begin(request, channel, beside)

    async def room(self) -> None:
        """Wait while the writer is far behind."""
        if self._tapes is not None:
            await self._tapes.room()

    async def drained(self, grace_s: float) -> None:
        """Let what is being recorded end by itself for so long, then end it."""
        if self._tapes is not None:
            await self._tapes.drained(grace_s)

    # -- counting ------------------------------------------------------------------------------------------------------

    def counted(self, channel: Channel, how: Answered, *, reused: bool = False, told: Channel | None = None) -> None:
        """A request was answered. `told`: its channel by its body too, where that is known."""
        self.outcome.course.answered(told or channel, how)
        self.outcome.requests += 1
        self.outcome.answered[how] += 1
        if how is Answered.LIVE:
            self.outcome.live[channel] += 1
        self.outcome.channels[channel] += 1
        self.outcome.reused += reused

    def served(self, request: Request, channel: Channel, serve: Serve) -> None:
        """A request was answered from the cassette."""
        self.counted(channel, serve.answered, reused=serve.reused, told=serve.channel)
        if serve.answered is Answered.POSITIONAL:
            self.outcome.course.placed(self.redactor.request(request)[0], serve)

    def counted_local(self, request: Request, channel: Channel, decision: Refuse) -> None:
        """A request was answered by us."""
        self.outcome.refused[decision.reason] += 1
        missed = decision.reason in ("miss", "names-disagree")
        told = decision.miss.channel if decision.miss is not None else None
        self.counted(channel, Answered.MISS if missed else Answered.LOCAL, told=told)
        if decision.miss is not None and decision.reason == "miss":
            self.missed(request, channel, decision.miss)

    def missed(self, request: Request, channel: Channel, miss: Miss) -> None:
        """The request counted last could not be answered from the cassette."""
        shown = self.redactor.request(request)[0]
        missed = Missed(self.outcome.requests, request.method, shown.url, channel, miss, self.now_us())
        self.outcome.course.missed(shown, miss)
        self.outcome.misses.append(missed)
        self.on_miss(missed)

    def unreachable(self, request: Request, why: str) -> None:
        """No origin answered."""
        self.outcome.unreachable.append((self.redactor.request(request)[0].url, self.redactor.text(why)))

    def damaged(self, request: Request, error: RecordedError) -> None:
        """The cassette holds damage where this request's answer should be."""
        self.outcome.requests += 1
        self.outcome.answered[Answered.MISS] += 1
        self.outcome.damaged.append(str(error))

    def host_known(self, request: Request) -> bool:
        """Whether the recording ever spoke to this host."""
        return request.host in self._known_hosts

    def answer_before_body(self, handler: WireHandler, request: Request) -> Serve | None:
        """The final answer this request was given before it sent its body, if it was (T-C7)."""
        session, nothing = self.session(handler), Live(0, EMPTY, b"")
        begun = (session.begun(request, one, nothing) for one in session.beginnings(request))
        found = next(filter(None, begun), None) or self.play(handler, request, nothing)
        if isinstance(found, Serve) and found.answered is Answered.EXACT:
            self.counted(self.classify(request), found.answered, reused=found.reused)
            return found
        return None


def _covers(rule: str, host: str) -> bool:
    """`example.com` covers itself; `*.example.com` and `.example.com` cover what is below it."""
    rule = rule.lower().removeprefix("*")
    return host.endswith(rule) if rule.startswith(".") else host == rule
