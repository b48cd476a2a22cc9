"""What a client is told when the answer is ours: the status and shape that make it stop at once, and say why.

Measured on tools and agents (CASES, "What the status of a refusal does to a tool"): model calls 400 in the provider's own
error shape, package indexes and web 424, hosts that the recording never saw 404, all with `x-should-retry: false`.
"""

from __future__ import annotations

from secondtake.cassettes import adapters
from secondtake.cassettes.errors import RecordedError
from secondtake.cassettes.exchange import Channel, Fields, Request
from secondtake.cassettes.misses import Miss
from secondtake.proxy.local import LocalAnswer
from secondtake.proxy.policy import Refuse

REASON_FIELD = b"x-secondtake"
"""On every answer of ours: the reason in one word."""

MISS_FIELD = b"x-secondtake-miss"

CREDENTIAL = (
    b"HTTP/1.1 407 Proxy Authentication Required\r\n"
    b'Proxy-Authenticate: Basic realm="secondtake"\r\n'
    b"Content-Type: text/plain\r\nContent-Length: 41\r\n\r\n"
    b"secondtake: this proxy asks for its user\n"
)


NO_RETRY: Fields = ((b"x-should-retry", b"false"),)


def _text(status: int, reason: str, line: str, extra: Fields = NO_RETRY) -> LocalAnswer:
    body = f"secondtake: {line}\n".encode("utf-8", "replace")
    fields: Fields = (
        (b"Content-Type", b"text/plain; charset=utf-8"),
        (REASON_FIELD, reason.encode("ascii", "replace")),
        *extra,
        (b"Content-Length", b"%d" % len(body)),
    )
    return LocalAnswer(status, fields, body)


class Refusals:
    """Makes the answers."""

    credential = CREDENTIAL

    def need_credential(self) -> LocalAnswer:
        """For a plain request without our credential."""
        return _text(407, "credential", "this proxy asks for its user", ((b"Proxy-Authenticate", b'Basic realm="secondtake"'),))

    def unreadable(self, why: str) -> LocalAnswer:
        """A request that names no host we could ask."""
        return _text(400, "unreadable", why)

    def forbidden_tunnel(self, why: str) -> bytes:
        """The answer to a CONNECT that is refused before TLS."""
        body = f"secondtake: {why}\n".encode()
        return b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (
            len(body),
            body,
        )

    def unreachable(self, request: Request, why: str) -> LocalAnswer:
        """The origin gave no answer while recording: 502, as any proxy says it. Clients may try again as they would without us."""
        return _text(502, "unreachable", f"{request.method} {request.url}: {why}", ())

    def damaged(self, error: RecordedError) -> LocalAnswer:
        """The cassette holds an answer that is not what it was: an error, never a miss."""
        return _text(424, "damaged", str(error))

    def of(self, decision: Refuse, request: Request, channel: Channel, *, host_known: bool = True) -> LocalAnswer:
        """By reason."""
        if decision.adapter is not None:
            return self.model(decision.adapter, decision.reason)
        match decision.reason:
            case "telemetry":
                return LocalAnswer(204, ((REASON_FIELD, b"telemetry"),), b"")
            case "burst":
                return _text(404, "burst", "not recorded: what an agent fetches in the background differs from run to run", NO_RETRY)
            case "ws-refused":
                # 426: the client falls back to SSE at once (AGENTS 3, Codex).
                return _text(426, "ws-refused", "WebSocket is refused; use the streaming endpoint", ((b"Upgrade", b"HTTP/1.1"),))
            case "strict":
                return _text(424, "strict", "the recording has failed, and --strict refuses what cannot be kept")
            case "miss":
                assert decision.miss is not None
                return self.miss(decision.miss, request, channel, host_known=host_known)
            case "names-disagree":
                return _text(
                    424, "names-disagree", "CONNECT, SNI and Host do not name one host", (*NO_RETRY, (MISS_FIELD, b"out-of-scope"))
                )
            case reason:
                return _text(403, "refused", reason)

    def model(self, adapter: str, why: str) -> LocalAnswer:
        """A model call that is not sent, in its provider's own error shape."""
        shaped = adapters.refusal(adapter, "refused", f"secondtake: {why}")
        fields = tuple(field for field in shaped.fields if field[0].lower() not in (b"content-length", b"x-should-retry"))
        return LocalAnswer(shaped.status, (*fields, *NO_RETRY, (b"Content-Length", b"%d" % len(shaped.body))), shaped.body)

    def miss(self, miss: Miss, request: Request, channel: Channel, *, host_known: bool) -> LocalAnswer:
        """Not on the cassette."""
        kind = str(miss.kind)
        line = f"replay: not recorded ({kind}): {miss.message}"
        extra: Fields = (*NO_RETRY, (MISS_FIELD, kind.encode("ascii", "replace")))
        if channel is Channel.MODEL:
            shaped = adapters.refusal(miss.adapter, kind, f"secondtake: {line}")
            fields = tuple(field for field in shaped.fields if field[0].lower() not in (b"content-length", b"x-should-retry"))
            return LocalAnswer(shaped.status, (*fields, *extra, (b"Content-Length", b"%d" % len(shaped.body))), shaped.body)
        known = (host_known and channel is not Channel.CONTROL) or channel in (Channel.INDEX, Channel.VCS)
        return _text(424 if known else 404, "miss", line, extra)
