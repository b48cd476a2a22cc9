"""Provider-neutral values, and what every adapter must do. Values and protocols only.

A model call is read into turns, tools, calls, results and parameters that are equal whichever wire format carried
them. What could not be read is a `Fault` in the value, never an exception: recorded bytes are hostile input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from secondtake.cassettes.exchange import Fields, Request

type Json = bool | int | float | str | list[Json] | dict[str, Json] | None


class CallKind(StrEnum):
    """What a call to a model host asks for. Only COMPLETION and COUNT are ever forwarded in a retake."""

    COMPLETION = "completion"
    COUNT = "count"
    """Counts tokens of a prompt; carries the model ID, and the prompt as it stands in the live run."""
    EMBEDDING = "embedding"
    """Embeddings, moderation, images, audio: names another model on purpose; replayed, never swapped."""
    BATCH = "batch"
    """Many requests in one body; model IDs inside. Refused in a retake."""


@dataclass(frozen=True, slots=True)
class Call:
    """Which adapter reads this request, and what it asks for."""

    adapter: str
    kind: CallKind


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer of our own in the provider's error shape. `fields` hold no framing: that is the wire's."""

    status: int
    fields: Fields
    body: bytes


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that could not be read. `kind` is stable: `not-json`, `too-large`, `too-deep`, `not-utf8`, `framing`,
    `checksum`, `unknown-dialect`, `arguments`, `no-model`, `shape`."""

    kind: str
    message: str


class Role(StrEnum):
    """Who speaks in a turn. Tool results are a turn of their own, whichever role carries them on the wire."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Thinking shown or hidden. `bound`: it carries a signature or cipher text tied to model, prefix or account."""

    text: str
    bound: bool = False


@dataclass(frozen=True, slots=True)
class ToolCall:
    """`arguments` is canonical JSON (sorted keys, no spaces) where it parses; else the text as sent and not `well_formed`.

    `form` is `json`, or `text` for tools that take free text (OpenAI custom tools). `id` is empty where the provider gave none.
    `server_side`: run by the provider, so not observable on the wire (A-14).
    """

    id: str
    name: str
    arguments: str
    form: str = "json"
    well_formed: bool = True
    server_side: bool = False


@dataclass(frozen=True, slots=True)
class ToolResult:
    """`text` joins the text of the result's parts; `is_error` is None where the wire format does not say."""

    call_id: str
    name: str
    text: str
    is_error: bool | None = None


@dataclass(frozen=True, slots=True)
class Media:
    """An image, document or sound, by kind and, where the bytes are in the body, the SHA-256 of its text as sent."""

    kind: str
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Opaque:
    """A block only the provider can read, or of a kind not known here."""

    kind: str


type Part = Text | Reasoning | ToolCall | ToolResult | Media | Opaque


@dataclass(frozen=True, slots=True)
class Turn:
    role: Role
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool the model may call. `schema` is canonical JSON; `server_side`: the provider runs it."""

    name: str
    description: str = ""
    schema: str = "{}"
    server_side: bool = False


class PlaceKind(StrEnum):
    """What a model-bearing place is for, and so what a swap does with it."""

    MODEL = "model"
    """The model asked. Rewritten."""
    FALLBACK = "fallback"
    """Asked when the first refuses or fails. Rewritten."""
    ADVISOR = "advisor"
    """A second model the first may consult. Rewritten."""
    ROUTE = "route"
    """A gateway's list of candidates. Rewritten."""
    INDIRECT = "indirect"
    """The model is chosen elsewhere (stored prompt, agent, `route`, `fallbacks: "default"`). A swap is refused."""
    AUXILIARY = "auxiliary"
    """Names a model that is not the actor (moderation, image generation, transcription). Never touched."""


class Escape(StrEnum):
    """How an ID is written at its place."""

    JSON = "json"
    PATH = "path"
    """Percent-encoded in the request target; `@` and `:` stand as they are only where the old ID had them so."""


@dataclass(frozen=True, slots=True)
class Place:
    """One place that names a model. `start`/`stop` are byte offsets: in the decoded body, of the text between the quotes;
    for `Escape.PATH`, in `Request.path`. A duplicated key gives one place each."""

    path: str
    kind: PlaceKind
    start: int
    stop: int
    id: str
    escape: Escape = Escape.JSON


class HeldKind(StrEnum):
    """Why part of a request cannot be continued by another model or from a recording (A-11)."""

    STATE = "state"
    """The conversation, or part of it, is kept by the provider under this ID."""
    FILE = "file"
    """An object of the account: uploaded file, container, cached content, vector store."""
    SIGNATURE = "signature"
    """Thinking with a signature bound to model and prefix."""
    ENCRYPTED = "encrypted"
    """Reasoning or a compaction only the provider can read."""


@dataclass(frozen=True, slots=True)
class Held:
    kind: HeldKind
    path: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request to a model, provider-neutral.

    `parameters` uses one name for one thing (`max_tokens`, `temperature`, `top_p`, `top_k`, `stop`, `seed`, `tool_choice`,
    `reasoning`); what has no neutral name stands under its name on the wire.
    """

    adapter: str
    kind: CallKind
    model: str | None
    places: tuple[Place, ...] = ()
    system: tuple[str, ...] = ()
    turns: tuple[Turn, ...] = ()
    tools: tuple[Tool, ...] = ()
    parameters: Mapping[str, Json] = field(default_factory=dict)
    stream: bool = False
    held: tuple[Held, ...] = ()
    continues: str | None = None
    """The ID of the earlier answer this request goes on from, where the provider holds the history."""
    faults: tuple[Fault, ...] = ()


class Stop(StrEnum):
    """Why the model stopped. The word on the wire is kept beside it."""

    END = "end"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    SEQUENCE = "stop_sequence"
    CONTEXT = "context_window"
    FILTERED = "filtered"
    REFUSED = "refused"
    PAUSED = "paused"
    COMPACTED = "compacted"
    MALFORMED = "malformed_call"
    CANCELLED = "cancelled"
    PENDING = "pending"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens. None: not said. `input` includes what came from or went to a cache, as billed or not; `output` includes reasoning.
    `partial`: the answer ended before the provider's final count."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Served:
    """A model the answer says took part. `where` is the field; `role` is `answer`, `fallback`, `advisor` or `router`."""

    model: str
    where: str
    role: str = "answer"


@dataclass(frozen=True, slots=True)
class ProviderError:
    """An error the provider reported, as a status or inside a stream. `infrastructure`: overload, rate or time, not the model's doing."""

    type: str
    message: str
    infrastructure: bool
    in_stream: bool = False


@dataclass(frozen=True, slots=True)
class Signal:
    """Something the provider reported that an experiment must show: `input_transformation`, `cache_miss`, `fallback`,
    `provider_side_effect`, `service_tier`, `fingerprint`, `gateway`."""

    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a model answered. One assistant turn. `complete`: the wire format's own end was seen, whatever the socket did."""

    adapter: str
    turn: Turn = Turn(Role.ASSISTANT, ())
    stop: Stop | None = None
    stop_wire: str | None = None
    usage: Usage = Usage()
    served: tuple[Served, ...] = ()
    id: str | None = None
    error: ProviderError | None = None
    complete: bool = False
    signals: tuple[Signal, ...] = ()
    faults: tuple[Fault, ...] = ()

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Every tool call of the turn, in order."""
        return tuple(part for part in self.turn.parts if isinstance(part, ToolCall))

    @property
    def text(self) -> str:
        """All text of the turn, joined."""
        return "".join(part.text for part in self.turn.parts if isinstance(part, Text))


@dataclass(frozen=True, slots=True)
class Target:
    """A request's address, computed once for all adapters. `path` has no query and no trailing slash.

    `family` is a hint: whose host this is by the table of hosts, or "" (`recognition.py`). It settles which of two equal
    formats is spoken and lets a path alone decide; a format is never recognised by it alone.
    """

    path: bytes
    query: bytes = b""
    family: str = ""


class AnswerReader(Protocol):
    """Reads one answer from decoded body bytes, as they come. Does no I/O; never raises for what it is given."""

    @property
    def complete(self) -> bool:
        """The wire format's own end has been seen."""
        ...

    def receive(self, data: bytes) -> None:
        """Take the next bytes, cut anywhere. b"" says that the body has ended."""
        ...

    def answer(self) -> ModelAnswer:
        """What is known so far; final after the end."""
        ...


class Adapter(Protocol):
    """Reads one provider's wire format. Stateless; pure."""

    @property
    def name(self) -> str: ...

    def claims(self, target: Target, body: Mapping[str, Json] | None) -> CallKind | None:
        """Say whether this is a call in this format. `body` is None when it is not there yet, or cannot be read on a host
        of a known family; then the path alone must be unmistakable."""
        ...

    def read_request(self, request: Request, content: bytes) -> ModelRequest:
        """Read a request; `content` is the body without content codings."""
        ...

    def reader(self, request: Request, status: int, fields: Fields) -> AnswerReader:
        """Return a reader for the answer with this head."""
        ...

    def refuse(self, kind: str, message: str) -> Refusal:
        """Make an error answer a client of this provider shows at once and does not retry."""
        ...
