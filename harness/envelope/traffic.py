"""What the recorded traffic says of the envelope: pure functions over a cassette, so they work for any that was ever recorded.

Prompts, tools and parameters are read from requests as they are compared (docs/matching.md): dates an agent writes there itself, numbers of
this run and placeholders do not count, the directory the agent ran in has a name. So two runs of one scene give equal digests.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from secondtake.cassettes import adapters
from secondtake.cassettes.adapters import CallKind, ModelRequest, Opaque, Role, Text
from secondtake.cassettes.canonical import Json, dump_json, parse_json
from secondtake.cassettes.envelope import UNKNOWN, Layer
from secondtake.cassettes.errors import RecordedError
from secondtake.cassettes.events import contents
from secondtake.cassettes.exchange import Channel, Exchange, Fields, Request
from secondtake.cassettes.frames import listed
from secondtake.cassettes.lanes import calls
from secondtake.cassettes.match import meaning
from secondtake.cassettes.normalise import Aliases
from secondtake.cassettes.pins import explain
from secondtake.cassettes.pins.explain import provider_of
from secondtake.cassettes.placeholder import collapse
from secondtake.harness.envelope.credentials import used_credentials
from secondtake.harness.ruling import told_aliases
from secondtake.harness.toolcalls import content_of, kept_decoded, model_exchanges

if TYPE_CHECKING:
    from secondtake.cassettes.memory import Recorded

TASK_CHARACTERS = 2_000
"""Of the task, for people; its SHA-256 is of all of it."""

OF_THIS_RUN = "(of this run)"
_OF_THIS_RUN = frozenset(
    ("client_metadata", "conversation", "metadata", "previous_response_id", "prompt_cache_key", "safety_identifier", "session_id", "user")
)
"""Parameters that name a person, a session or an earlier answer: that they are there counts, their value does not."""

_MCP = re.compile(r"mcp__(.+?)__.+")
"""How agents name the tools of an MCP server (Claude Code, Qwen Code, Codex)."""

_CLIENT: Mapping[bytes, str] = {
    b"user-agent": "user_agent",
    b"x-stainless-lang": "sdk",
    b"x-stainless-package-version": "sdk_version",
    b"x-stainless-runtime": "runtime",
    b"x-stainless-runtime-version": "runtime_version",
    b"x-stainless-timeout": "timeout_s",
    b"anthropic-version": "api_version",
    b"anthropic-beta": "betas",
}
"""Fields by which an agent says what it is, and how it asks."""

_SHORTER = 2
"""A conversation with fewer turns than its longest by this factor was shortened."""


def traffic_layers(cassette: Recorded, meta: Mapping[str, object]) -> dict[Layer, dict[str, Json]]:
    """Return the fields that the recorded traffic says. Without a model call that can be read, those of the model stay unknown.

    Raises:
        Corrupt: recorded bytes are damaged.
    """
    seen = _Seen(_words(meta))
    retries = _Retries()
    for exchange in model_exchanges(cassette):
        seen.client(exchange.request.fields)
        retries.take(exchange)
        for request, read in _requests(cassette, exchange, told_aliases(meta)):
            seen.take(request.host, read)
    root = meta.get("parent_root", getattr(cassette, "root", None))
    mcp = sorted({row.host for row in cassette.rows if row.channel is Channel.MCP})
    found = seen.layers(mcp)
    found[Layer.ORCHESTRATOR]["retry"] = retries.told()
    found[Layer.EXTERNAL] = {
        "cassette": root if isinstance(root, str) else UNKNOWN,
        "hosts": _hosts(cassette),
        "credentials": used_credentials(cassette, meta),
    }
    return found


def system_by_call(cassette: Recorded, meta: Mapping[str, object]) -> tuple[tuple[int, str | None], ...]:
    """Return (exchange, SHA-256 of its system prompt) for every model call that could be read, in order; None where it has none."""
    return tuple(
        (exchange.seq, _digest("\n".join(read.system)) if read.system else None)
        for exchange in model_exchanges(cassette)
        for _, read in _requests(cassette, exchange, told_aliases(meta))
        if read.kind is CallKind.COMPLETION
    )


def _requests(cassette: Recorded, exchange: Exchange, aliases: Aliases) -> Iterator[tuple[Request, ModelRequest]]:
    """Each request to a model in an exchange, read as it is compared. What no adapter knows is left out."""
    for request, sent in _sent(cassette, exchange):
        adapter = exchange.adapter or adapters.recognise(request, sent)
        if adapter is None:
            continue
        document = meaning(request, sent).json
        content = sent if document is None else dump_json(document)
        try:
            yield request, adapters.read_request(adapter, request, aliases.replace(collapse(content)))
        except RecordedError:
            continue


def _sent(cassette: Recorded, exchange: Exchange) -> Iterator[tuple[Request, bytes]]:
    if listed(exchange.details):
        for part, sent, _ in calls(exchange, contents(cassette)):
            if sent is not None:
                yield part.request, sent
        return
    sent = content_of(cassette, exchange.request.body, exchange.request.fields, decoded=kept_decoded(exchange, "request"))
    if sent is not None:
        yield exchange.request, sent


def _words(meta: Mapping[str, object]) -> tuple[str, ...]:
    command = meta.get("command")
    return tuple(word for word in command if isinstance(word, str)) if isinstance(command, list | tuple) else ()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _canonical(value: Json) -> bytes:
    return dump_json(value)


@dataclass(slots=True)
class _Seen:
    """What the requests of a cassette have told so far."""

    command: tuple[str, ...]
    calls: int = 0
    systems: dict[str, Json] = field(default_factory=dict)
    users: list[str] = field(default_factory=list)
    providers: set[tuple[str, str]] = field(default_factory=set)
    requested: dict[str, Json] = field(default_factory=dict)
    parameters: dict[str, set[bytes]] = field(default_factory=dict)
    tools: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    server_side: set[str] = field(default_factory=set)
    clients: dict[str, set[str]] = field(default_factory=dict)
    longest: dict[str, int] = field(default_factory=dict)
    shortened: int = 0
    compacted: bool = False

    def client(self, fields: Fields) -> None:
        for name, value in fields:
            known = _CLIENT.get(name.lower())
            if known is not None:
                self.clients.setdefault(known, set()).add(collapse(value).decode("utf-8", "replace"))

    def take(self, host: str, read: ModelRequest) -> None:
        self.calls += 1
        self.providers.add((read.adapter, host))
        if read.model is not None:
            self.requested.setdefault(read.model, str(explain(read.model, provider_of(read.adapter, host)).pin_class))
        if read.kind is not CallKind.COMPLETION:
            return
        system = "\n".join(read.system)
        if system:
            self.systems.setdefault(_digest(system), len(system))
        settings: dict[str, Json] = {
            name: OF_THIS_RUN if name in _OF_THIS_RUN else value for name, value in read.parameters.items() if value is not None
        }
        self.parameters.setdefault(read.model or UNKNOWN, set()).add(_canonical({**settings, "stream": read.stream}))
        for tool in read.tools:
            if tool.server_side:
                self.server_side.add(tool.name)
            self.tools.setdefault(tool.name, set()).add((_digest(tool.description), _digest(tool.schema)))
        self._turns(read, system)

    def _turns(self, read: ModelRequest, system: str) -> None:
        texts = [part.text for turn in read.turns if turn.role is Role.USER for part in turn.parts if isinstance(part, Text)]
        if not self.users and texts and (read.tools or self.calls == 1):
            self.users = texts
        self.compacted |= any(isinstance(part, Opaque) and "compact" in part.kind for turn in read.turns for part in turn.parts)
        if read.continues is None and texts:
            conversation = _digest(f"{read.model}\0{system}\0{texts[0]}")
            longest = self.longest.get(conversation, 0)
            self.shortened += len(read.turns) * _SHORTER < longest
            self.longest[conversation] = max(longest, len(read.turns))

    def _task(self) -> Json:
        """The first text of the user that stands on the command line; else the first that is not set between tags by the agent."""
        said = [text for text in self.users if text.strip()]
        if not said:
            return UNKNOWN
        words = [word for word in self.command[1:] if len(word) > 1]
        text = next((text for text in said if any(text.strip() == word.strip() for word in words)), None)
        text = text or next((text for text in said if any(word in text for word in words if " " in word)), None)
        text = text or next((text for text in said if not text.lstrip().startswith("<")), said[0])
        return {"sha256": _digest(text), "text": text[:TASK_CHARACTERS]}

    def layers(self, mcp_hosts: list[str]) -> dict[Layer, dict[str, Json]]:
        orchestrator: dict[str, Json] = {
            "client": {name: [*sorted(values)] for name, values in sorted(self.clients.items())} if self.clients else UNKNOWN,
            "compaction": {"by_provider": self.compacted, "shortened": self.shortened} if self.calls else UNKNOWN,
        }
        if not self.calls:
            tools: dict[str, Json] = {"mcp_servers": {"hosts": list(mcp_hosts), "tools": {}}} if mcp_hosts else {}
            return {Layer.ORCHESTRATOR: orchestrator, Layer.TOOLS: tools}
        servers: dict[str, Json] = {}
        for name in sorted(self.tools):
            if (named := _MCP.fullmatch(name)) is not None:
                servers[named[1]] = int(str(servers.get(named[1], 0))) + 1
        return {
            Layer.ORCHESTRATOR: orchestrator,
            Layer.INSTRUCTIONS: {"system": self.systems, "task": self._task()},
            Layer.MODEL: {
                "providers": [{"format": adapter, "host": host} for adapter, host in sorted(self.providers)],
                "requested": self.requested or UNKNOWN,
                "parameters": {model: [parse_json(each) for each in sorted(sets)] for model, sets in sorted(self.parameters.items())},
            },
            Layer.TOOLS: {
                "offered": {
                    name: [{"description": description, "schema": schema} for description, schema in sorted(forms)]
                    for name, forms in sorted(self.tools.items())
                },
                "server_side": [*sorted(self.server_side)],
                "mcp_servers": {"hosts": list(mcp_hosts), "tools": servers},
            },
        }


@dataclass(slots=True)
class _Retries:
    """Model calls that were made again."""

    calls: int = 0
    counted: int = 0
    failed: set[str] = field(default_factory=set)
    repeated: int = 0

    def take(self, exchange: Exchange) -> None:
        self.calls += 1
        counts = [value for name, value in exchange.request.fields if name.lower() == b"x-stainless-retry-count"]
        self.counted = max([self.counted, *(int(value) for value in counts if value.isdigit() and len(value) < 5)])
        digest = str(exchange.request.body.digest)
        self.repeated += digest in self.failed
        if exchange.answer is None or exchange.answer.status >= 400:
            self.failed.add(digest)

    def told(self) -> Json:
        return {"by_client": self.counted, "same_again": self.repeated} if self.calls else UNKNOWN


def _hosts(cassette: Recorded) -> Json:
    found: dict[str, set[str]] = {}
    for row in cassette.rows:
        default = {"http": 80, "https": 443}.get(row.scheme)
        found.setdefault(str(row.channel), set()).add(row.host if row.port == default else f"{row.host}:{row.port}")
    return {channel: [*sorted(hosts)] for channel, hosts in sorted(found.items())}
