"""JSON-RPC as MCP uses it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.canonical import Json
from secondtake.cassettes.rpc import Kind, Name, error, events_renamed, read, renamed, renames


def line(**message: object) -> bytes:
    """A message as a line."""
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


@pytest.mark.parametrize(
    ("data", "kind", "method", "name", "token"),
    [
        (line(id=1, method="tools/list"), Kind.REQUEST, "tools/list", ("int", 1), None),
        (line(id="1", method="a", params={"_meta": {"progressToken": "t"}}), Kind.REQUEST, "a", ("str", "1"), ("str", "t")),
        (line(method="notifications/initialized"), Kind.NOTIFICATION, "notifications/initialized", None, None),
        (line(method="notifications/progress", params={"progressToken": 4}), Kind.NOTIFICATION, "notifications/progress", None, ("int", 4)),
        (line(id=1, result={}), Kind.REPLY, "", ("int", 1), None),
        (line(id=None, error={"code": -32700}), Kind.REPLY, "", None, None),
        (line(id=2**60, method="a"), Kind.REQUEST, "a", None, None),
        (b"[]\n", Kind.OTHER, "", None, None),
        (b"Listening on stdio\n", Kind.OTHER, "", None, None),
        (b'{"method":"a","id":1}\n', Kind.OTHER, "", None, None),
    ],
)
def test_messages_are_told_apart(data: bytes, kind: Kind, method: str, name: object, token: object) -> None:
    """JSON-RPC 2.0 sections 4 and 5; MCP progress."""
    said = read(data)
    assert (said.kind, said.method, said.name, said.token, said.data) == (kind, method, name, token, data)


@given(st.binary(max_size=60))
def test_no_line_is_too_strange_to_be_read(data: bytes) -> None:
    """Untrusted is the default."""
    assert read(data).data == data
    assert renamed(data, {("int", 1): 2}) == data or read(data).kind is not Kind.OTHER


def test_an_answer_gets_the_ids_of_the_request_it_is_given_to() -> None:
    """Issue 4, item 6: ids mapped, progress tokens too; a request of the server's keeps its own."""
    by = renames(
        line(id=1, method="a", params={"_meta": {"progressToken": 1}}), line(id=9, method="a", params={"_meta": {"progressToken": "p"}})
    )
    assert by in ({("int", 1): 9}, {("int", 1): "p"})  # one name, two meanings: the last wins
    by = renames(
        line(id=1, method="a", params={"_meta": {"progressToken": "t"}}), line(id=9, method="a", params={"_meta": {"progressToken": "p"}})
    )
    assert json.loads(renamed(line(id=1, result={"id": 1}), by)) == {"jsonrpc": "2.0", "id": 9, "result": {"id": 1}}
    progress = line(method="notifications/progress", params={"progressToken": "t", "progress": 1})
    assert json.loads(renamed(progress, by))["params"] == {"progressToken": "p", "progress": 1}
    for other in (line(id=1, method="roots/list"), line(id=2, result={}), b"garbage\n"):
        assert renamed(other, by) == other


def test_the_same_ids_leave_the_same_bytes() -> None:
    """Byte for byte, where nothing has to be replaced."""
    asked = line(id=1, method="a")
    assert renames(asked, asked) == {}
    spaced = b'{ "jsonrpc" : "2.0", "id" : 1, "result" : 1.0 }\r\n'
    assert renamed(spaced, {}) is spaced
    assert renamed(spaced, {("int", 1): 2}).endswith(b"\r\n")


def test_server_sent_events_are_renamed_in_their_data() -> None:
    """MCP, streamable HTTP: a message an event."""
    by: dict[Name, Json] = {("int", 1): 5}
    content = b"event: message\r\nid: 1\r\ndata: " + line(id=1, result={}).strip() + b"\r\n\r\n: ping\r\n\r\n"
    told = events_renamed(content, by)
    assert told.startswith(b"event: message\r\nid: 1\r\ndata: {")
    assert told.endswith(b"}\r\n\r\n: ping\r\n\r\n")
    assert json.loads(told.split(b"data: ")[1].split(b"\r\n")[0])["id"] == 5


def test_an_error_of_ours_is_a_json_rpc_error() -> None:
    """Issue 4, item 6: a miss is a JSON-RPC error, code -32000."""
    told = json.loads(error(("int", 3), "not recorded", kind="new-resource"))
    assert told == {
        "jsonrpc": "2.0",
        "id": 3,
        "error": {"code": -32000, "message": "not recorded", "data": {"secondtake": "new-resource"}},
    }
