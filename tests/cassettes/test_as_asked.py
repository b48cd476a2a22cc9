"""An answer of an MCP server over HTTP, given to another request id."""

from __future__ import annotations

import gzip
import json

from secondtake.cassettes.as_asked import NOTE
from secondtake.cassettes.exchange import Answer, Answered, Channel, Fields, Request
from secondtake.cassettes.memory import MemoryCassette, digest_of
from secondtake.cassettes.player import Live, Player, Serve
from tests.cassettes.test_rpc import line

JSON: Fields = ((b"content-type", b"application/json"),)
EVENTS: Fields = ((b"content-type", b"text/event-stream"),)
ASK = Request("POST", "https", "mcp.example", 443, b"/mcp", fields=JSON)


def played(fields: Fields, received: bytes, sent: bytes, live: bytes) -> tuple[Serve, bytes]:
    """What a client is given for `live`, where `sent` was recorded."""
    cassette = MemoryCassette()
    cassette.record(ASK, Answer(200, fields=fields), sent=sent, received=received, channel=Channel.MCP)
    found = Player(cassette).session().answer(ASK, Live(len(live), digest_of(live), live))
    assert isinstance(found, Serve)
    return found, found.body.read(0, found.body.size_bytes)


ONE, OTHER = line(id=1, method="tools/list"), line(id=8, method="tools/list")
RESULT = line(id=1, result={"tools": []}).strip()


def test_the_same_id_is_given_the_same_bytes() -> None:
    """Recorded bytes are served unchanged."""
    found, body = played(JSON, RESULT, ONE, ONE)
    assert (found.answered, body, found.notes) == (Answered.EXACT, RESULT, ())


def test_another_id_is_given_its_own_and_told() -> None:
    """Issue 4, item 6: ids normalised, and the client knows its answer."""
    found, body = played((*JSON, (b"content-length", b"%d" % len(RESULT)), (b"etag", b'"x"')), RESULT, ONE, OTHER)
    assert (found.answered, found.notes) == (Answered.NORMALISED, (NOTE,))
    assert json.loads(body) == {"jsonrpc": "2.0", "id": 8, "result": {"tools": []}}
    assert dict(found.answer.fields)[b"content-length"] == b"%d" % len(body)
    assert b"etag" not in dict(found.answer.fields)


def test_events_and_coded_bodies_are_given_too() -> None:
    """MCP, streamable HTTP: a JSON body or a stream, in any coding."""
    stream = b"event: message\ndata: " + RESULT + b"\n\n"
    _, body = played(EVENTS, stream, ONE, OTHER)
    assert b'"id":8' in body
    coded = gzip.compress(stream)
    again, decoded = played((*EVENTS, (b"content-encoding", b"gzip")), coded, ONE, OTHER)
    assert decoded == body
    assert b"content-encoding" not in dict(again.answer.fields)


def test_what_holds_no_such_id_is_left_as_it_is() -> None:
    """An error without an id, or no answer at all."""
    for received in (b"", b"not JSON", line(id=None, error={"code": 1})):
        found, body = played(JSON, received, ONE, OTHER)
        assert (body, found.notes) == (received, ())
