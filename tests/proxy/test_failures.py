"""What is said of an origin that did not answer."""

from __future__ import annotations

import pytest

from secondtake.cassettes.exchange import Ending
from secondtake.cassettes.redact import Known, Redactor
from secondtake.proxy.failures import MESSAGE_CHARACTERS, explain
from secondtake.proxy.http1 import UNREADABLE
from secondtake.proxy.routes import Route

ROUTE = Route(("origin.example", 443), tls=True)


@pytest.mark.parametrize(
    ("message", "ending"),
    [
        ("Certificate verify failed", Ending.TLS_FAILED),
        ("no answer from 192.0.2.1 within 30 s", Ending.TIMEOUT),
        ("timed out", Ending.TIMEOUT),
        ("server closed connection", Ending.RESET),
        ("connection reset by peer", Ending.RESET),
        (UNREADABLE + "two lengths", Ending.RESET),
        ("connection refused", Ending.REFUSED),
    ],
)
def test_what_went_wrong_says_how_it_ended(message: str, ending: Ending) -> None:
    """DESIGN 4: the endings of an exchange."""
    assert explain(message, ROUTE, Redactor(key=b"k" * 32)) == (message, ending)


def test_what_an_origin_sent_is_redacted_and_bounded() -> None:
    """T-K1: a head that cannot be read is quoted."""
    key = b"kR7wQ2mZ9xT4vB6nL1cY8pD3"
    redactor = Redactor([Known("api-key", key)], key=b"k" * 32)
    text, ending = explain(f"{UNREADABLE}junk\n{key.decode()} " + "x" * 1000, ROUTE, redactor)
    assert key.decode() not in text
    assert "\n" not in text
    assert len(text) == MESSAGE_CHARACTERS
    assert ending is Ending.RESET
