"""One event of an ordered log: its kind, its value, and its line of JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from secondtake.cassettes.adapters.base import Json
from secondtake.cassettes.adapters.reading import digest

INLINE_CHARACTERS = 2000
"""Arguments up to this length stand in the event itself too; longer ones by hash only."""


class EventKind(StrEnum):
    MODEL_REQUEST = "model_request"
    MODEL_RESPONSE = "model_response"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    RETRY = "retry"
    MISS = "miss"
    STREAM_ERROR = "stream_error"
    SIGNAL = "signal"
    """What the provider reported that an experiment must show: `input_transformation`, `cache_miss`, `fallback`, `provider_side_effect`."""
    UNREAD = "unread"
    """A model exchange that no adapter could read."""
    MCP_CALL = "mcp_call"
    """A request that a client sent to an MCP server: its tool calls, and all else it asks."""
    MCP_RESULT = "mcp_result"
    STOP = "stop"
    START = "start"
    """This and what follows are what the harness saw of a take: the agent was started."""
    EXEC = "exec"
    """A program was executed, as the kernel saw it."""
    ESCAPE = "escape"
    """An attempt to reach something beside the proxy. It was refused."""
    EXIT = "exit"
    """The agent ended."""
    VERDICT = "verdict"
    """How the take counts, and why. The last event."""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the log. `offset_us`: since the recording began. `exchange`: the exchange's `seq`; None where it is about none.

    `model`: the ID asked for. A key of `data` that ends in `_sha256` names a payload or a kept body.
    """

    event: EventKind
    sequence: int
    offset_us: int
    exchange: int | None
    model: str | None
    data: Mapping[str, Json] = field(default_factory=dict)
    payloads: Mapping[str, bytes] = field(default_factory=dict)
    """Bytes by their SHA-256."""


def fields(event: Event, *, run_id: str | None = None, fixture: str | None = None) -> dict[str, Json]:
    """The event as one object. The names `run_id`, `fixture`, `model`, `event`, `tool`, `exit_code` and `stdout_sha256` are fixed."""
    return {
        "run_id": run_id,
        "fixture": fixture,
        "model": event.model,
        "event": event.event.value,
        "sequence": event.sequence,
        "offset_us": event.offset_us,
        "exchange": event.exchange,
        **event.data,
    }


def line(event: Event, *, run_id: str | None = None, fixture: str | None = None) -> str:
    """The event as one line of JSON, without its end."""
    return json.dumps(fields(event, run_id=run_id, fixture=fixture), ensure_ascii=True, separators=(",", ":"))


def payload(payloads: dict[str, bytes], text: str) -> str | None:
    """Keep text among the payloads; return its name, or None for no text."""
    if not text:
        return None
    name = digest(text)
    payloads[name] = text.encode("utf-8", "surrogatepass")
    return name
