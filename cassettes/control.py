"""What an agent asks its maker besides the model: flags, settings, policies, model lists. They steer it, so it gets the recorded answers.

Such requests carry what is new in each run (device and session ids, the client's version, times), so their content is no key. They are
the same question when they go to the same endpoint and agree in what TABLE says that the question is. Measured (AGENTS.md 2, 3, 5.8):
replacing a recorded 404 by an empty 200 breaks two agents and slows a third, so what was not recorded is told 404, and nothing is made up.

Paths by shape, as in channels.py, which says that a request is `control` at all.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from urllib.parse import parse_qsl

from secondtake.cassettes import limits

PAGING = frozenset(
    (
        "after", "after_id", "before", "before_id", "cursor", "page", "page_token", "pagetoken", "offset", "limit", "page_size", "pagesize",
        "search", "q", "query", "filter",
    )
)  # fmt: skip
"""Query names that make another question of any endpoint: which part of a list. Lower-case. All others are of the run."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Endpoints of one shape, and what of a request is the question there, besides PAGING."""

    path: re.Pattern[bytes]
    query: frozenset[str]
    """Query names, lower-case."""
    members: frozenset[str]
    """Top-level members of a JSON body."""
    source: str
    varies: str
    """What was seen to differ between two runs of the same task, or may."""


def _rows(*rows: tuple[bytes, str, str, str, str]) -> tuple[Endpoint, ...]:
    return tuple(
        Endpoint(re.compile(path), frozenset(query.split()), frozenset(members.split()), source, varies)
        for path, query, members, source, varies in rows
    )


TABLE = _rows(
    (rb"/api/eval/.*", "", "", "Claude Code 2.1, AGENTS 3", "device and session ids in the body"),
    (rb"/api/claude_(?:code|cli)/.*|/api/claude_code_penguin_mode", "", "", "Claude Code 2.1, AGENTS 3", "versions in the query"),
    (rb"/api/oauth/(?:profile|usage|account.*|claude_cli/roles)", "", "", "Claude Code with a login", "nothing known"),
    (rb"/mcp-registry/.*|/v0(?:\.\d+)?/servers(?:/.*)?", "version visibility", "", "Claude Code 2.1; MCP registry API", "limits"),
    (rb".*/backend-api/(?:codex|wham|ps|plugins)/.*", "", "", "Codex 0.171, AGENTS 3", "client_version; account ids in the path"),
    (rb"/api\.json", "", "", "opencode 1.18, AGENTS 3", "trace headers"),
    (rb".*/model_prices_and_context_window(?:_backup)?\.json", "", "", "litellm (mini-swe-agent, aider), AGENTS 3", "how often: 3 to 6"),
    (rb"/v1internal:\w+", "", "", "Gemini Code Assist", "metadata and project of the machine in the body"),
    (rb".*/api/show", "", "model name", "Ollama API", "nothing"),
    (rb".*/models(?:/[^/:]+)?|.*/api/(?:tags|ps|version)", "", "", "model lists of every provider", "client_version"),
    (
        rb"(?:/v1)?/(?:initialize|get_config|download_config_specs(?:/.*)?)",
        "",
        "",
        "Statsig HTTP API",
        "user, session and time in the body",
    ),
    (rb"/(?:decide|flags)/?", "", "", "PostHog API", "distinct id and time in the body"),
    (rb"/sdk/(?:evalx?|latest-all|goals)/.*|/api/feature.*|/(?:api/)?client/features", "", "", "LaunchDarkly, Unleash", "context"),
)
"""First match wins; an endpoint without a row is asked by its path and PAGING alone."""

_ANY = Endpoint(re.compile(rb".*"), frozenset(), frozenset(), "", "")

_VOLATILE = re.compile(
    rb"/(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32,64}|(?:org|user|acc|account|session|device)[-_][0-9A-Za-z]{16,})(?=/|$)"
)


def endpoint(path: bytes) -> bytes:
    """The path of a request target, with what names an account, a device or a session taken out."""
    return _VOLATILE.sub(b"/*", path.partition(b"?")[0])


def question(target: bytes, content: bytes | None) -> tuple[object, ...]:
    """What of a control request is asked: two are the same where this is equal and the method, host and `endpoint` are.

    `content` is the body without codings, None where it cannot be read.
    """
    path, _, query = target.partition(b"?")
    row = next((one for one in TABLE if one.path.fullmatch(path) is not None), _ANY)
    names = PAGING | row.query
    try:
        pairs = parse_qsl(query.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=limits.FIELD_COUNT)
    except ValueError:
        pairs = []
    asked = sorted((name, value) for name, value in pairs if name.lower() in names)
    return (*asked, *(sorted(_members(content, row.members)) if row.members else ()))


def _members(content: bytes | None, names: frozenset[str]) -> list[tuple[str, str]]:
    try:
        document = json.loads(content or b"")
    except (ValueError, RecursionError):
        return []
    return [(name, str(document[name])) for name in names if name in document] if isinstance(document, dict) else []


def is_transient(status: int) -> bool:
    """Whether a client that gets this status asks again and again: replayed as often as recorded, and not repeated after."""
    return status >= 500 or status in (408, 425, 429)
