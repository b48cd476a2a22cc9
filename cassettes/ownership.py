"""What a live model gave in this take, so that its own thinking stays in the history and only the recorded model's goes (A-11).

Each answer is read beside the relay for what a later request can hand back: signatures, cipher text, readable reasoning where that is
all there is, and the IDs of what the provider keeps. Only digests are remembered.
"""

from __future__ import annotations

from collections.abc import Mapping

from secondtake.cassettes.adapters import Json
from secondtake.cassettes.adapters.draft import Draft
from secondtake.cassettes.adapters.framing import BodyReader, framing
from secondtake.cassettes.adapters.reading import mapping, sequence, string
from secondtake.cassettes.exchange import Fields
from secondtake.cassettes.foreign import known, strings, texts, tokens

_IDS = frozenset({"id", "container", "conversation"})
_READABLE = ("reasoning_content", "reasoning", "thinking")


class Given:
    """Reads one answer, cut anywhere, from decoded bytes. `found` is final after `receive(b"")`; never raises for what it is given."""

    def __init__(self, adapter: str, status: int, fields: Fields) -> None:
        self._collector = _Collector()
        self._reader = BodyReader(adapter, self._collector, framing(fields), status)

    def receive(self, data: bytes) -> None:
        """Take the next bytes. b"" says that the body has ended."""
        self._reader.receive(data)

    def found(self) -> frozenset[str]:
        """What `foreign.known` makes of each token the answer gave: for `own` of the requests that follow."""
        return frozenset(known(token) for token in self._collector.tokens())


class _Collector:
    """An assembly that keeps tokens instead of turns. What comes in pieces is joined by its place."""

    def __init__(self) -> None:
        self.draft = Draft()
        self._whole: set[str] = set()
        self._pieces: dict[tuple[str, str], list[str]] = {}

    def whole(self, body: Json) -> None:
        self._walk(body)

    def event(self, name: str, data: Json) -> None:
        event = mapping(data)
        self._walk(event)
        place = str(event.get("index", event.get("contentBlockIndex", 0)))
        for key, text in _deltas(event):
            self._pieces.setdefault((place, key), []).append(text)

    def end(self) -> None:
        """Nothing is known only at the end."""

    def tokens(self) -> frozenset[str]:
        joined = {"".join(pieces) for pieces in self._pieces.values()}
        return frozenset(token for token in self._whole | joined if token)

    def _walk(self, value: Json | Mapping[str, Json]) -> None:
        self._whole.update(tokens(value))
        self._whole.update(texts(value))
        self._whole.update(text for key, text, _ in strings(value) if key in _IDS or key in _READABLE)


def _deltas(event: Mapping[str, Json]) -> list[tuple[str, str]]:
    """The pieces of signatures and reasoning in one event: Messages, Converse, Chat, Ollama."""
    found: list[tuple[str, str]] = []
    delta = mapping(event.get("delta"))
    found += [(key, string(delta.get(key))) for key in ("signature", "thinking")]
    thought = mapping(delta.get("reasoningContent"))
    found += [(key, string(thought.get(key))) for key in ("signature", "text", "redactedContent")]
    for choice in sequence(event.get("choices"))[:1]:
        said = mapping(mapping(choice).get("delta"))
        found += [(key, string(said.get(key))) for key in _READABLE]
    found.append(("thinking", string(mapping(event.get("message")).get("thinking"))))
    return [(key, text) for key, text in found if text]
