"""What an exchange is for, by the shape of the protocol, never by the host's name. First match wins; what has no shape is `web`.

The head alone says most; `classify` with the body says the rest (telemetry batches, token requests, JSON-RPC, model calls on any path).
Each row of the tables names where its shape was seen. A row is a path, and where the path alone is too common, what the body must hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address

from secondtake.cassettes.adapters import recognise as model_adapter
from secondtake.cassettes.adapters import upgrades_to_model
from secondtake.cassettes.exchange import Channel, Request
from secondtake.cassettes.indexes import PATH_BYTES, has_type, index_request, is_vcs, marks

type Recognise = Callable[[Request, bytes | None], str | None]

LOOKED_AT_BYTES = 64 * 1024
"""Of a body, what the shapes below look at."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A path, fully matched without query, and what the start of the body must hold, if anything."""

    path: re.Pattern[bytes]
    body: re.Pattern[bytes] | None
    source: str


def _shapes(*rows: tuple[bytes, bytes, str]) -> tuple[Shape, ...]:
    return tuple(Shape(re.compile(path), re.compile(body) if body else None, source) for path, body, source in rows)


TELEMETRY = _shapes(
    (rb".*/v1/(?:metrics|traces|logs)", rb'(?s)^\s*\{.*"resource(?:Metrics|Spans|Logs)"', "OTLP/HTTP with JSON (OpenTelemetry protocol)"),
    (rb".*/otlp/v1/(?:metrics|traces|logs)", b"", "OTLP/HTTP below a prefix, as Codex sends it"),
    (rb".*/event_logging/(?:v\d+/)?batch", b"", "Claude Code"),
    (rb".*/analytics-events/events|.*/codex/analytics-events.*", b"", "Codex with a login"),
    (rb"/log", rb"log_source|log_event|clientInfo|client_info", "Clearcut, by Gemini CLI"),
    (rb"/", rb'(?s)^\s*\{(?=.*"events"\s*:\s*\[)(?=.*"session"\s*:)(?=.*"app"\s*:)', "monitoring beacon, by Qwen Code"),
    (rb"/(?:batch|capture|e|i/v0/e|track|engage)/?", rb'"(?:api_key|token|distinct_id|\$lib|writeKey)"', "PostHog, Mixpanel"),
    (rb"/v1/(?:batch|track|identify|page|screen|group|alias)", rb'"(?:writeKey|anonymousId|messageId|userId)"', "Segment HTTP API"),
    (rb"/api/\d+/(?:envelope|store|security|minidump)/?", b"", "Sentry ingestion"),
    (rb"(?:/v1)?/(?:rgstr|log_event)", b"", "Statsig events"),
    (rb"/2/httpapi|/batch", rb'"(?:api_key|events)"', "Amplitude"),
    (rb"/api/v2/(?:rum|logs|spans|series)|/api/v0\.2/(?:traces|stats)", b"", "Datadog intake"),
    (rb".*/(?:telemetry|metrics)/(?:events?|batch|report|usage)", b"", "common names of usage endpoints"),
)

AUTH = _shapes(
    (rb".*/oauth2?/(?:v[\d.]+/)?(?:token|revoke|introspect|device(?:/code|_authorization)?|access_token|par|authorize)", b"", "OAuth 2"),
    (rb".*/(?:oauth|login)/(?:oauth/)?(?:access_token|device/code|token)", b"", "OAuth 2 device flow"),
    (rb".*/(?:devicecode|device_authorization|device/(?:code|token|auth)|deviceauth/(?:usercode|token))", b"", "RFC 8628"),
    (rb".*/(?:token|access_token|sts|oauth|openid-connect/token)/?", rb"grant_?[tT]ype", "RFC 6749 token request, form or JSON"),
    (rb"/", rb"(?:^|&)Action=(?:AssumeRole\w*|Get(?:Session|Federation)Token|GetCallerIdentity)(?:&|$)", "AWS STS query API"),
    (rb".*/(?:federation/credentials|meta-data/iam/security-credentials/?.*|latest/api/token|v2/credentials/.*)", b"", "AWS credentials"),
    (rb".*/(?:client/)?register", rb'"(?:redirect_uris|clientType)"', "RFC 7591, AWS IAM Identity Center: client registration"),
    (rb".*/serviceAccounts/[^/]+:generate(?:AccessToken|IdToken)", b"", "Google IAM credentials"),
    (rb"(?:.*/)?tokeninfo", b"", "Google OAuth 2"),
    (rb"/api/oauth/claude_cli/create_api_key", b"", "Claude Code"),
    (rb".*/instance/service-accounts/.*/(?:token|identity)|/metadata/identity/oauth2/token", b"", "instance identity"),
    (rb".*/copilot_internal/v\d+/token|.*/copilot_internal/user", b"", "Copilot token exchange"),
    (rb"/-/(?:user/.*|v1/login.*|npm/v1/tokens?.*)", b"", "npm login"),
    (rb".*/app/installations/\d+/access_tokens", b"", "app installation tokens"),
)

CONTROL = _shapes(
    (rb".*/models(?:/[^/:]+)?|.*/api/(?:tags|ps|show|version)", b"", "model lists"),
    (rb".*/codex/models|.*/backend-api/(?:wham|plugins|ps)/.*|.*/codex/(?:config|usage|version).*", b"", "Codex"),
    (
        rb"/api/(?:eval/.*|claude_(?:code|cli)/.*|claude_code_penguin_mode|oauth/(?:profile|usage|account.*|claude_cli/roles))",
        b"",
        "Claude Code",
    ),
    (rb"/mcp-registry/.*|/v0(?:\.\d+)?/servers(?:/.*)?", b"", "MCP registry"),
    (rb"/api\.json", b"", "opencode's model table"),
    (rb".*/model_prices_and_context_window(?:_backup)?\.json", b"", "litellm's price table"),
    (rb"(?:/v1)?/(?:initialize|get_config|download_config_specs(?:/.*)?)", b"", "Statsig configuration"),
    (rb"/(?:decide|flags)/?|/api/feature(?:_flag|s)/.*|/sdk/(?:evalx?|latest-all|goals)/.*|/(?:api/)?client/features", b"", "flags"),
    (rb"/v1internal:(?:loadCodeAssist|onboardUser|listExperiments|retrieveUserQuota|getCode\w+)", b"", "Gemini Code Assist"),
)

_WORDS = re.compile(
    rb"/v1/(?:metrics|traces|logs|batch|track|identify|page|screen|group|alias|initialize|get_config|rgstr|log_event|login)"
    rb"|otlp|event_logging|analytics|/log$|/batch|/capture|/e/?$|/i/v0|/track|/engage|/envelope|/store|/security|/minidump|rgstr|log_event|httpapi|/api/v"
    rb"|telemetry|metrics/|oauth|login|device|token|/sts|credentials|meta-data|copilot|/user|identity|models|/api/|backend-api|codex|mcp-registry|/servers|api\.json"
    rb"|/register|:generate|model_prices|initialize|get_config|download_config|decide|flags|features|/sdk/|v1internal:|^/$"
)
"""A path without any of these has no shape in the tables."""

_RPC = re.compile(rb'(?s)^\s*[\[{].{0,4096}?"jsonrpc"\s*:\s*"2\.0"')
_RPC_METHOD = re.compile(rb'"method"\s*:\s*"(?:initialize|ping|(?:tools|resources|prompts|notifications|completion|logging)/)')
_GRANT = re.compile(rb"(?:^|&)(?:grant_type=(?:authorization_code|refresh_token|client_credentials|password|urn)|client_assertion_type=)")


def classify(request: Request, content: bytes | None = None, *, recognise: Recognise = model_adapter) -> tuple[Channel, str | None]:
    """The channel, and the adapter of a model call. `content` is the body without content codings, None where it is not there yet."""
    if request.scheme == "stdio":
        return Channel.MCP, None
    told = marks(request.fields)
    if is_vcs(request, told):
        return Channel.VCS, None
    path = request.path.partition(b"?")[0]
    shaped = _shaped(request, path, content) if len(path) <= PATH_BYTES and _wordy(path) else None
    if shaped is Channel.AUTH:
        return shaped, None
    if index_request(request, told) is not None:
        return Channel.INDEX, None
    if told.mcp or (content and _is_rpc(request, content)) or _is_mcp_stream(request, path):
        return Channel.MCP, None
    if shaped is Channel.TELEMETRY:
        return shaped, None
    if request.method == "POST":
        adapter = recognise(request, content)
        if adapter is not None:
            return Channel.MODEL, adapter
    elif upgrades_to_model(request):
        return Channel.MODEL, None
    if shaped is not None:
        return shaped, None
    if content and _GRANT.search(content[:LOOKED_AT_BYTES]) is not None and has_type(request.fields, b"x-www-form-urlencoded"):
        return Channel.AUTH, None
    return (Channel.LOOPBACK if is_loopback(request.host) else Channel.WEB), None


@lru_cache(maxsize=4096)
def _wordy(path: bytes) -> bool:
    return _WORDS.search(path) is not None


def _shaped(request: Request, path: bytes, content: bytes | None) -> Channel | None:
    start = (content or b"")[:LOOKED_AT_BYTES]
    if _found(AUTH, path, start):
        return Channel.AUTH
    if request.method == "POST":
        protobuf = has_type(request.fields, b"application/x-protobuf") and TELEMETRY[0].path.fullmatch(path) is not None
        if protobuf or _found(TELEMETRY, path, start):
            return Channel.TELEMETRY
    return Channel.CONTROL if _found(CONTROL, path, start) else None


def _found(shapes: tuple[Shape, ...], path: bytes, start: bytes) -> bool:
    return any(shape.path.fullmatch(path) is not None and (shape.body is None or shape.body.search(start) is not None) for shape in shapes)


def _is_rpc(request: Request, content: bytes) -> bool:
    """A JSON-RPC call of one of MCP's methods (MCP specification, streamable HTTP), sent before there is a session."""
    start = content[:LOOKED_AT_BYTES]
    return request.method == "POST" and _RPC.search(start) is not None and _RPC_METHOD.search(start) is not None


def _is_mcp_stream(request: Request, path: bytes) -> bool:
    """A stream of events opened at a path that the transport before streamable HTTP uses by convention (MCP 2024-11-05, HTTP with SSE)."""
    return request.method == "GET" and path.endswith(b"/sse") and has_type(request.fields, b"text/event-stream")


@lru_cache(maxsize=4096)
def is_loopback(host: str) -> bool:
    """Whether a key host names this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    if not host or not (host[0].isdigit() or ":" in host):
        return False
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
