"""The variables that point a process at us: their names, what they replace, and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote

from secondtake.proxy.upstream import FORMER, OURS

PROXY_VARIABLES = ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy")

TRUST_VARIABLES = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "npm_config_cafile",
    "CARGO_HTTP_CAINFO",
    "CODEX_CA_CERTIFICATE",
    "AWS_CA_BUNDLE",
    "DENO_CERT",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "NIX_SSL_CERT_FILE",
    "BUNDLE_SSL_CA_CERT",
    "COMPOSER_CAFILE",
    "HEX_CACERTS_PATH",
    "YARN_HTTPS_CA_FILE_PATH",
    "HTTPLIB2_CA_CERTS",
)
"""Each is set to the bundle: system roots, the user's own authorities, and ours."""

EXCEPTION_VARIABLES = ("NO_PROXY", "no_proxy")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""Reached directly: a server the agent starts for itself is its own affair."""

SHADOWING = (
    "ALL_PROXY",
    "FTP_PROXY",
    "WS_PROXY",
    "WSS_PROXY",
    "NPM_CONFIG_PROXY",
    "NPM_CONFIG_HTTPS_PROXY",
    "NPM_CONFIG_HTTP_PROXY",
    "NPM_CONFIG_NOPROXY",
    "NPM_CONFIG_CAFILE",
    "NPM_CONFIG_CA",
    "YARN_HTTPS_PROXY",
    "YARN_HTTP_PROXY",
    "PIP_PROXY",
    "CARGO_HTTP_PROXY",
    "GIT_PROXY_COMMAND",
    "GLOBAL_AGENT_HTTP_PROXY",
    "GLOBAL_AGENT_HTTPS_PROXY",
    "GLOBAL_AGENT_NO_PROXY",
    "GIT_SSL_CAPATH",
)
"""Taken out in any case of letters: each would send a tool elsewhere, or have it trust something else than the bundle."""

BEFORE = "SECONDTAKE_BEFORE"
"""In a shell only: what the block replaced or took out, as a URL query, so that `undo` gives it back."""

UNVERIFIED = ("NODE_TLS_REJECT_UNAUTHORIZED", "GIT_SSL_NO_VERIFY", "PYTHONHTTPSVERIFY")
"""Left as the user set them: they change what the agent does, not what we do. `doctor` mentions them."""


@dataclass(frozen=True, slots=True)
class Block:
    """What is set and what is taken out, beyond the caller's environment."""

    set: Mapping[str, str]
    unset: tuple[str, ...]


def applied(change: Block, base: Mapping[str, str]) -> dict[str, str]:
    """Return `base` with the change made."""
    gone = set(change.unset)
    return {name: value for name, value in base.items() if name not in gone} | dict(change.set)


def undo(environ: Mapping[str, str]) -> Block:
    """What takes a shell back to where it was before `exports`, for `env --unset`; empty in one that does not point at us."""
    ours = environ.get(OURS)
    if not ours:
        return Block({}, ())
    names = {*PROXY_VARIABLES, *EXCEPTION_VARIABLES, *TRUST_VARIABLES, OURS, FORMER, BEFORE}
    names |= {name for name, value in environ.items() if value == ours}
    if environ.get("npm_config_proxy") == ours:
        names.add("npm_config_noproxy")
    back = restored(environ)
    count = environ.get("GIT_CONFIG_COUNT", "")
    if count.isdecimal() and len(count) < 6 and environ.get(f"GIT_CONFIG_VALUE_{int(count) - 1}") == ours:
        # A count without its values is an error to git; a caller's own entries stay.
        names |= {"GIT_CONFIG_COUNT", f"GIT_CONFIG_KEY_{int(count) - 1}"}
        if int(count) > 1:
            back["GIT_CONFIG_COUNT"] = str(int(count) - 1)
    return Block(back, tuple(sorted((names & environ.keys()) - back.keys())))


def restored(environ: Mapping[str, str]) -> dict[str, str]:
    """What `env --unset` sets again: all that `exports` replaced, or at least the proxy as `SECONDTAKE_UPSTREAM` kept it."""
    if before := environ.get(BEFORE, ""):
        return dict(parse_qsl(before, keep_blank_values=True, errors="surrogateescape"))
    value = environ.get(FORMER, "")
    if not value:
        return {}
    if not value.startswith(("https=", "http=", "no=")):
        return dict.fromkeys(PROXY_VARIABLES, value)
    parts = {name: unquote(text, errors="surrogateescape") for name, _, text in (part.partition("=") for part in value.split(";"))}
    names = {"https": ("HTTPS_PROXY", "https_proxy"), "http": ("HTTP_PROXY", "http_proxy"), "no": EXCEPTION_VARIABLES}
    return {name: parts[part] for part, variables in names.items() if part in parts for name in variables}
