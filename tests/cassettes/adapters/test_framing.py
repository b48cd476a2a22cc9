"""How a body is framed is seen from its first byte: what gateways write as content type is no guide."""

from __future__ import annotations

import base64

import pytest

from secondtake.cassettes import adapters
from secondtake.cassettes.adapters.framing import Framing, framing
from secondtake.cassettes.eventstream import encode
from secondtake.cassettes.exchange import Fields, Request
from tests.cassettes.adapters.formats import FORMATS
from tests.cassettes.adapters.scenes import AMZ_FIELDS, JSON_FIELDS, SCENES, SSE_FIELDS

FORM = FORMATS[0]
REQUEST, _ = FORM.request(SCENES[0])


@pytest.mark.parametrize("fields", [JSON_FIELDS, SSE_FIELDS, (), ((b"Content-Type", b"text/plain"),)])
@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\r\n\n", b": ping\n\n"])
def test_a_stream_is_read_under_any_content_type(fields: Fields, before: bytes) -> None:
    """A-08: byte by byte, so that the first byte comes alone."""
    reader = adapters.reader("anthropic", REQUEST, 200, fields)
    for byte in before + FORM.stream(SCENES[0]):
        reader.receive(bytes([byte]))
    assert reader.complete
    reader.receive(b"")
    assert reader.answer().turn.parts == SCENES[0].said


@pytest.mark.parametrize("fields", [JSON_FIELDS, SSE_FIELDS, ()])
def test_a_whole_answer_is_read_under_any_content_type(fields: Fields) -> None:
    """A client may ask for a stream and get one object."""
    reader = adapters.reader("anthropic", REQUEST, 200, fields)
    reader.receive(b"\xef\xbb\xbf \n" + FORM.whole(SCENES[0]))
    reader.receive(b"")
    assert reader.answer().turn.parts == SCENES[0].said


def test_only_binary_and_line_framings_are_taken_from_the_head() -> None:
    """An AWS event stream begins with a length, which may be any byte."""
    assert framing(AMZ_FIELDS) is Framing.EVENTSTREAM
    assert framing(((b"CONTENT-TYPE", b"application/x-ndjson"),)) is Framing.LINES
    assert framing(SSE_FIELDS) is Framing.UNKNOWN


@pytest.mark.parametrize(
    ("status", "body", "faults", "error"),
    [
        (200, b"", ["not-json"], None),
        (200, b"<html>502</html>", ["not-json"], None),
        (502, b"<html>", [], "status_502"),
        (500, b"", [], "status_500"),
        (200, b'{"type":"message","content"', ["not-json"], None),
        (204, b"", ["not-json"], None),
    ],
)
def test_what_is_no_answer_is_a_fault_or_an_error(status: int, body: bytes, faults: list[str], error: str | None) -> None:
    """A-08."""
    reader = adapters.reader("anthropic", REQUEST, status, ())
    reader.receive(body)
    reader.receive(b"")
    reader.receive(b"late")
    answer = reader.answer()
    assert [fault.kind for fault in answer.faults] == faults
    assert (None if answer.error is None else answer.error.type) == error
    assert not answer.complete


def test_a_broken_event_stream_keeps_what_came_before() -> None:
    """A-08: a checksum that fails ends the reading; a chunk that is no base64 does not."""
    request = Request("POST", "https", "h.example", 443, b"/model/a.b/invoke-with-response-stream")
    text = b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}'
    good = encode({":event-type": "chunk"}, b'{"bytes":"' + base64.b64encode(text) + b'"}')
    bad = encode({":event-type": "chunk"}, b'{"bytes":"!"}')
    reader = adapters.reader("bedrock", request, 200, AMZ_FIELDS)
    reader.receive(good + bad + good + good[:-1] + b"\0" + good)
    reader.receive(b"")
    answer = reader.answer()
    assert answer.text == "aa"
    assert [fault.kind for fault in answer.faults] == ["framing", "checksum"]


def test_an_error_message_of_the_framing_itself_is_an_error() -> None:
    """AWS: `:message-type` `error` carries its text in headers."""
    reader = adapters.reader("bedrock", Request("POST", "https", "h.example", 443, b"/model/a.b/converse-stream"), 200, AMZ_FIELDS)
    reader.receive(encode({":message-type": "error", ":error-code": "InternalFailure", ":error-message": "m"}, b""))
    reader.receive(b"")
    error = reader.answer().error
    assert error is not None
    assert (error.type, error.message, error.infrastructure, error.in_stream) == ("InternalFailure", "m", True, True)
