"""An exchange as a line, a row and a page."""

from __future__ import annotations

from dataclasses import replace

from secondtake.cassettes.exchange import Answered, Interim
from secondtake.cassettes.mcp import ANSWERED, message_request
from secondtake.cli.render.exchanges import line_fields, page_answer, page_fields, page_head, page_tail
from tests.cli.scenes import sample

FIELDS = [
    "seq",
    "method",
    "url",
    "status",
    "channel",
    "answered",
    "ended",
    "request_sha256",
    "response_sha256",
    "request_bytes",
    "response_bytes",
    "started_us",
    "response_us",
    "ended_us",
]
"""DESIGN 7: these names are fixed; sizes and offsets follow them."""


def test_a_line_has_exactly_the_fields_of_the_contract() -> None:
    """DESIGN 7."""
    for exchange, _ in sample():
        assert list(line_fields(exchange)) == FIELDS


def test_how_a_request_was_answered_is_told() -> None:
    """T-Q3: exact, normalised, derived and miss, per exchange (a take records them)."""
    assert {line_fields(replace(sample()[0][0], answered=kind))["answered"] for kind in Answered} == {str(kind) for kind in Answered}


def test_a_page_has_every_head_in_order() -> None:
    """Duplicates, case and order are kept, so they are shown."""
    exchange = sample()[0][0]
    assert exchange.answer is not None
    twice = ((b"Set-Cookie", b"a"), (b"set-cookie", b"b"))
    answer = replace(exchange.answer, fields=twice, interim=(Interim(103, b"Early Hints", ((b"link", b"</x>"),), 1),), synthetic=True)
    shown = list(page_answer(replace(exchange, answer=answer)))
    assert shown[:2] == ["< 103 Early Hints", "< link: </x>"]
    assert shown[-2:] == ["< Set-Cookie: a", "< set-cookie: b"]
    assert "(made by the proxy)" in shown[2]
    page = page_fields(replace(exchange, answer=answer))
    assert page["response"]["fields"] == [["Set-Cookie", "a"], ["set-cookie", "b"]]  # type: ignore[index]


def test_trailers_rules_and_notes_stand_at_the_end() -> None:
    """C-08: what was forwarded otherwise is listed."""
    exchange = sample()[0][0]
    assert exchange.answer is not None
    answer = replace(exchange.answer, trailers=((b"checksum", b"1\x1b"),))
    shown = list(page_tail(replace(exchange, answer=answer, forwarded=("route",), notes=("x\ny",))))
    assert shown[0] == "< checksum: 1\\x1b  (trailer)"
    assert "forwarded with: route" in shown
    assert "note: x\\ny" in shown


def test_a_message_over_standard_input_is_not_said_to_be_http() -> None:
    """Issue 4.6: what is shown is what was there."""
    exchange = replace(sample()[0][0], request=message_request("git", "tools/call"), answer=ANSWERED)
    assert "> POST stdio://git/tools/call" in list(page_head(exchange))
    assert next(iter(page_answer(exchange))).startswith("< 200 OK  after ")
