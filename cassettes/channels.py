"""What an exchange is for, by the shape of the protocol, never by the host's name. First match wins; what has no shape is `web`."""

from __future__ import annotations

from collections.abc import Callable

from secondtake.cassettes.adapters import recognise as model_adapter
from secondtake.cassettes.exchange import Channel, Request

type Recognise = Callable[[Request, bytes | None], str | None]


def classify(request: Request, content: bytes | None = None, *, recognise: Recognise = model_adapter) -> tuple[Channel, str | None]:
    """The channel, and the adapter of a model call. `content` is the body without content codings, None where it is not there yet."""
    adapter = recognise(request, content)
    if adapter is not None:
        return Channel.MODEL, adapter
    return Channel.WEB, None
