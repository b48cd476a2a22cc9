"""A miss: what was asked and not recorded, of which class, and what came closest. Values and their one-line texts.

The search is in nearest.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from secondtake.cassettes.differences import Difference
from secondtake.cassettes.exchange import Channel, Request

SHOWN_DIFFERENCES = 3
"""Differences named in the one-line text; all that were found are in `Nearest.differences`."""


class MissKind(StrEnum):
    """Why nothing was served. `out-of-scope` and `escape` are said by the wire and the harness, never by a player."""

    EXHAUSTED = "exhausted"
    """Recorded, but each of its answers has been given, and it may not be repeated."""
    VARIANT = "variant"
    """Recorded in another representation (media type, language, coding) than the client reads."""
    RANGE_NOT_RECORDED = "range-not-recorded"
    """Other byte ranges of this file were recorded, not this one and not the whole."""
    KNOWN_INDEX_NEW_FILE = "known-index-new-file"
    """A file of a package whose index page or other files were recorded."""
    NEW_RESOURCE = "new-resource"
    """Nothing like it was recorded."""
    MODEL_DIVERGED = "model-diverged"
    """A model call with other content than any recorded one."""
    WS_REFUSED = "ws-refused"
    """A WebSocket upgrade, and no messages of one were kept."""
    WS_DIVERGED = "ws-diverged"
    """A WebSocket message that the recorded conversation does not have in that place."""
    PUSH_REFUSED = "push-refused"
    """A `git push`: it would change another repository, and is refused in replay unless asked for."""
    WITHHELD = "withheld"
    """Recorded, but nothing of its answer's body was kept, because what it held could not be judged (redact.py)."""
    OUT_OF_SCOPE = "out-of-scope"
    ESCAPE = "escape"


@dataclass(frozen=True, slots=True)
class Nearest:
    """The recorded exchange that came closest. `rule` is the line that would make the two equal, where there is one."""

    seq: int
    method: str
    url: str
    status: int | None
    differences: tuple[Difference, ...] = ()
    more: int = 0
    """Differences found beyond those listed."""
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class Miss:
    """Nothing recorded answers this request. `message` is one printable line without secrets."""

    kind: MissKind
    nearest: Nearest | None
    message: str
    channel: Channel
    adapter: str | None = None
    burst: bool = False
    """Of what an agent fetches for itself in the background (bursts.py), of which some was recorded: told 404, and no miss."""


_WHY = {
    MissKind.EXHAUSTED: "every recorded answer to it has been given",
    MissKind.VARIANT: "recorded, but not in a form this client reads",
    MissKind.RANGE_NOT_RECORDED: "other ranges of it were recorded, not this one",
    MissKind.KNOWN_INDEX_NEW_FILE: "not recorded, though other files of its index were",
    MissKind.NEW_RESOURCE: "not recorded",
    MissKind.MODEL_DIVERGED: "not recorded: this model call differs from every recorded one",
    MissKind.WS_REFUSED: "websockets are not replayed",
    MissKind.WS_DIVERGED: "the client says what it did not say while recording",
    MissKind.PUSH_REFUSED: "a push is refused in replay",
    MissKind.WITHHELD: "recorded, but the body of its answer was withheld",
    MissKind.OUT_OF_SCOPE: "out of scope",
    MissKind.ESCAPE: "went around the proxy",
}

_CONTROL = re.compile(r"[^ -~\u00a1-\ud7ff\ue000-\ufffd\U00010000-\U0003fffd]|[\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def printable(text: str, most: int = 400) -> str:
    """`text` on one line: control, direction and surrogate characters shown as escapes, cut to `most` characters."""
    shown = _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def shown_on_a_line(item: Difference) -> Difference:
    """Recorded and live text on one line, without control characters."""
    recorded = None if item.recorded is None else printable(item.recorded, 120)
    live = None if item.live is None else printable(item.live, 120)
    return Difference(item.where, printable(item.path, 200), recorded, live)


def describe(kind: MissKind, request: Request, nearest: Nearest | None) -> str:
    """The one line of a miss. `request` must be redacted."""
    line = f"replay: {printable(request.method, 20)} {printable(request.url, 200)}: {_WHY[kind]}"
    if nearest is not None:
        line += f"; closest: exchange {nearest.seq}, {printable(nearest.method, 20)} {printable(nearest.url, 200)}"
        if nearest.differences:
            first = nearest.differences[:SHOWN_DIFFERENCES]
            shown = ", ".join(f"{item.where} `{item.path}`" if item.path else item.where for item in first)
            rest = len(nearest.differences) + nearest.more - SHOWN_DIFFERENCES
            line += f", differs at {shown}" + (f" and {rest} more" if rest > 0 else "")
    return printable(line, 900)
