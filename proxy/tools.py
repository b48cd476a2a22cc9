"""Which tool trusts what: through which variable, and through which it does not. Measured, with versions, where a note says so.

For `doctor`, and for the hint when a client breaks off the handshake because it does not know our authority.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ToolVariables:
    """How one tool is told of proxy and trust."""

    name: str
    trusts: tuple[str, ...]
    """Variables that work; any one of them is enough."""
    ignores: tuple[str, ...] = ()
    """Variables that do not, though one might expect it."""
    note: str = ""
    proxied: bool = True
    """Whether the proxy variables alone bring it to us."""
    late: bool = False
    """Looks at our certificate when the handshake is done, and leaves without a word (GnuTLS)."""


TOOL_VARIABLES: Mapping[str, ToolVariables] = {
    tool.name: tool
    for tool in (
        ToolVariables(
            "curl", ("SSL_CERT_FILE", "CURL_CA_BUNDLE"), ("REQUESTS_CA_BUNDLE",), "a `proxy` or `cacert` line in .curlrc decides over both"
        ),
        ToolVariables("git", ("GIT_SSL_CAINFO",), ("SSL_CERT_FILE", "CURL_CA_BUNDLE"), "Debian's git is built on GnuTLS", late=True),
        ToolVariables(
            "pip",
            ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"),
            note="before 24.2 not through SSL_CERT_FILE; since then through the system store and it",
        ),
        ToolVariables("uv", ("SSL_CERT_FILE", "SSL_CERT_DIR"), ("REQUESTS_CA_BUNDLE",)),
        ToolVariables(
            "npm",
            ("NODE_EXTRA_CA_CERTS", "npm_config_cafile"),
            ("SSL_CERT_FILE",),
            "with SSL_CERT_FILE alone it retries for more than 40 s",
        ),
        ToolVariables(
            "node",
            ("NODE_EXTRA_CA_CERTS",),
            ("SSL_CERT_FILE",),
            "plain scripts use no proxy: Node 20 never, 22.21 and 24 with NODE_USE_ENV_PROXY=1",
            proxied=False,
        ),
        ToolVariables("python urllib", ("SSL_CERT_FILE",), ("REQUESTS_CA_BUNDLE",)),
        ToolVariables("requests", ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"), ("SSL_CERT_FILE",)),
        ToolVariables("httpx", ("SSL_CERT_FILE", "SSL_CERT_DIR"), ("REQUESTS_CA_BUNDLE",)),
        ToolVariables(
            "aiohttp",
            ("SSL_CERT_FILE",),
            ("REQUESTS_CA_BUNDLE",),
            "uses the proxy only with ClientSession(trust_env=True)",
            proxied=False,
        ),
        ToolVariables("cargo", ("CARGO_HTTP_CAINFO", "SSL_CERT_FILE"), ("CURL_CA_BUNDLE",)),
        ToolVariables("go", ("SSL_CERT_FILE", "SSL_CERT_DIR"), note="on macOS and Windows Go asks the system store only"),
        ToolVariables(
            "java",
            (),
            ("SSL_CERT_FILE",),
            "reads no variable for proxy or trust; needs system properties (JAVA_TOOL_OPTIONS), which every JVM then prints",
            proxied=False,
        ),
        ToolVariables("deno", ("DENO_CERT",)),
        ToolVariables("aws", ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE")),
        ToolVariables("claude", ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")),
        ToolVariables("codex", ("SSL_CERT_FILE", "CODEX_CA_CERTIFICATE"), ("NODE_EXTRA_CA_CERTS",)),
        ToolVariables("gemini", ("NODE_EXTRA_CA_CERTS",)),
        ToolVariables("opencode", ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")),
        ToolVariables("qwen", ("NODE_EXTRA_CA_CERTS",)),
        ToolVariables("pi", ("NODE_EXTRA_CA_CERTS",)),
        ToolVariables("mini-swe-agent", ("SSL_CERT_FILE",), ("REQUESTS_CA_BUNDLE",)),
        ToolVariables("aider", ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"), note="needs both: one for the model, one for its side calls"),
    )
}

_AGENTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), tool)
    for pattern, tool in (
        (r"claude", "claude"),
        (r"codex", "codex"),
        (r"gemini", "gemini"),
        (r"opencode", "opencode"),
        (r"qwen", "qwen"),
        (r"\bmini(-swe-agent)?\b", "mini-swe-agent"),
        (r"\baider\b", "aider"),
        (r"\bgit\b|git-remote", "git"),
        (r"\buvx?\b", "uv"),
        (r"\bpip\b", "pip"),
        (r"\bnpm\b|\bnpx\b", "npm"),
        (r"\bcargo\b", "cargo"),
        (r"\bdeno\b", "deno"),
        (r"aws-cli|\bboto", "aws"),
        (r"python-requests", "requests"),
        (r"python-httpx", "httpx"),
        (r"aiohttp", "aiohttp"),
        (r"python-urllib", "python urllib"),
        (r"\bcurl\b", "curl"),
        (r"go-http-client|\bgo\b", "go"),
        (r"\bjava\b", "java"),
        (r"\bnode\b|\bbun\b|undici", "node"),
        (r"\bpython[0-9.]*\b", "python urllib"),
    )
)
"""Searched in order: the agent before the library it is built with."""


def guess(*traces: str | None) -> ToolVariables | None:
    """The tool that left these traces, most telling first: User-Agent of the CONNECT, command line of the peer."""
    for trace in filter(None, traces):
        for pattern, tool in _AGENTS:
            if pattern.search(trace):
                return TOOL_VARIABLES[tool]
    return None


def trust_hint(host: str, tool: ToolVariables | None, bundle: Path) -> str:
    """What to tell the user when a client breaks off the handshake for `host` because it does not trust our authority."""
    if tool is None:
        return (
            f"a client does not trust the certificate shown for {host}; start it with the variables of `secondtake env` "
            f"(each names {bundle}), or pass a client that pins its certificates with --passthrough {host}"
        )
    if not tool.trusts:
        return f"{tool.name} does not trust the certificate shown for {host}: {tool.note}"
    read = " or ".join(tool.trusts)
    unread = f", not {' or '.join(tool.ignores)}" if tool.ignores else ""
    note = f" ({tool.note})" if tool.note else ""
    return f"{tool.name} does not trust the certificate shown for {host}: it reads {read}{unread}{note}; set it to {bundle}"


def command_of(pid: int, proc: Path = Path("/proc")) -> str | None:
    """Name and first words of a process, for `guess`; None where they cannot be read."""
    try:
        words = (proc / str(pid) / "cmdline").read_bytes()[:4096].split(b"\0")
    except OSError:
        return None
    # The program, and the script or module an interpreter runs; not the arguments, which may name other tools.
    named = words[:1]
    if words[1:2] == [b"-m"]:
        named += words[2:3]
    elif not words[1:2] or not words[1].startswith(b"-"):
        named += words[1:2]
    if b" " in named[0]:
        named[0] = named[0].partition(b" ")[0]  # a title that the program gave itself, with all its arguments, as npm does
    return " ".join(Path(word.decode(errors="replace")).name for word in named if word) or None
