"""What a Bedrock `invoke` gives back is the vendor's own format: told apart by what comes first."""

from __future__ import annotations

from secondtake.cassettes.adapters.base import Fault, Json
from secondtake.cassettes.adapters.framing import Assembly
from secondtake.cassettes.adapters.reading import mapping


class Invoked:
    """Hands all it is given to one of two assemblies of one draft; of a third format only the fault is known."""

    def __init__(self, messages: Assembly, chat: Assembly) -> None:
        chat.draft = messages.draft
        self.draft = messages.draft
        self._messages = messages
        self._chat = chat

    def whole(self, body: Json) -> None:
        chosen = self._choose(body)
        if chosen is not None:
            chosen.whole(body)

    def event(self, name: str, data: Json) -> None:
        chosen = self._choose(data)
        if chosen is not None:
            chosen.event(name, data)

    def end(self) -> None:
        """Chat's stream has no `[DONE]` here: a finish reason is its end."""
        if self.draft.stop is not None and any(key == "text" or isinstance(key, tuple) for key in self.draft.blocks):
            self.draft.complete = True

    def _choose(self, data: Json) -> Assembly | None:
        body = mapping(data)
        if "choices" in body:
            return self._chat
        if "type" in body or "content" in body or "input_tokens" in body or "completion" in body:
            return self._messages
        if not self.draft.faults and self.draft.error is None:
            self.draft.fault(Fault("unknown-dialect", "an answer only this model's vendor reads"))
        return None
