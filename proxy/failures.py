"""Why no answer came from an origin: in words that may be shown and kept, and how the exchange ended."""

from __future__ import annotations

import re

from secondtake.cassettes.exchange import Ending
from secondtake.cassettes.redact import Redactor
from secondtake.proxy.http1 import UNREADABLE
from secondtake.proxy.routes import Route

MESSAGE_CHARACTERS = 600
"""How much of what went wrong is told."""

_REFUSED_CONNECT = re.compile(r"refused HTTP CONNECT request: ([0-9]{3})")
"""How mitmproxy words what a chained proxy answered."""


def explain(message: str, route: Route, redactor: Redactor) -> tuple[str, Ending]:
    """`message` as mitmproxy or our parsers worded it; it may quote what the origin sent."""
    unreadable = message.startswith(UNREADABLE)
    if route.proxy is not None and (refused := _REFUSED_CONNECT.search(message)) is not None:
        message = route.proxy.explain(int(refused[1]), *route.address)
    message = " ".join(redactor.text(message).split())[:MESSAGE_CHARACTERS]
    if "certificate" in message.lower() or "tls" in message.lower():
        return message, Ending.TLS_FAILED
    if "within" in message or "timed out" in message.lower():
        return message, Ending.TIMEOUT
    if unreadable or message == "server closed connection" or "reset" in message:
        return message, Ending.RESET
    return message, Ending.REFUSED
