"""What came closest, within bounds."""

from __future__ import annotations

import json
import time

from secondtake.cassettes.exchange import Answer, Channel, Request
from secondtake.cassettes.memory import MemoryCassette, MemoryRow, digest_of, fields
from secondtake.cassettes.misses import Miss, MissKind, Nearest
from secondtake.cassettes.player import Live, Player


def ask(path: str, *head: str, method: str = "GET", host: str = "web.example") -> Request:
    return Request(method, "https", host, 443, path.encode(), fields=fields(*head))


def miss(cassette: MemoryCassette, request: Request, content: bytes = b"") -> Miss:
    found = Player(cassette).session().answer(request, Live(len(content), digest_of(content), content))
    assert isinstance(found, Miss)
    return found


def near(cassette: MemoryCassette, request: Request, content: bytes = b"") -> Nearest:
    found = miss(cassette, request, content).nearest
    assert found is not None
    return found


JSON = "Content-Type: application/json"


def test_a_miss_among_fifty_thousand_is_answered_at_once() -> None:
    """T-A14: 64 candidates, 50 ms."""
    cassette = MemoryCassette()
    cassette.record(ask("/items/0/detail"), Answer(200))
    template = cassette.rows[0]
    rows = [
        MemoryRow(
            n, template.channel, "GET", "https", "web.example", 443, b"/items/%d/detail" % n, 200, template.ended, template.keys,
            template.request_digest, 0, template.response_digest, 0, n, False,
        )
        for n in range(1, 50_001)
    ]  # fmt: skip
    cassette._rows = rows
    session = Player(cassette).session()
    live = Live(0, digest_of(b""), b"")
    session.answer(ask("/nothing"), live)
    spent = []
    for path in ("/items/77777/detail", "/items/x", "/other/path/here"):
        start = time.process_time()
        found = session.answer(ask(path), live)
        spent.append(time.process_time() - start)
        assert isinstance(found, Miss)
        assert found.nearest is not None
    assert min(spent) < 0.05
    assert max(spent) < 0.2


def test_the_nearest_has_the_same_path_and_names_the_query_key() -> None:
    """A: which field?"""
    cassette = MemoryCassette()
    cassette.record(ask("/search?q=a&page=1"), Answer(200))
    cassette.record(ask("/searching"), Answer(200))
    found = near(cassette, ask("/search?page=2&q=a"))
    assert found.seq == 1
    assert [(item.where, item.path, item.recorded, item.live) for item in found.differences] == [("query", "page", "1", "2")]


def test_a_form_key_and_a_method_are_named() -> None:
    """A."""
    cassette = MemoryCassette()
    form = "Content-Type: application/x-www-form-urlencoded"
    cassette.record(ask("/f", form, method="POST"), Answer(200), sent=b"a=1&b=2")
    found = near(cassette, ask("/f", form, method="POST"), b"b=3&a=1")
    assert [(item.where, item.path) for item in found.differences] == [("form", "b")]
    found = near(cassette, ask("/f", form, method="PUT"), b"a=1&b=2")
    assert [(item.where, item.recorded, item.live) for item in found.differences] == [("method", "POST", "PUT")]


def test_the_line_that_would_forgive_the_difference_can_be_pasted() -> None:
    """DESIGN 3: in the words the user can paste into the rules."""
    cassette = MemoryCassette()
    cassette.record(ask("/api", JSON, method="POST"), Answer(200), sent=b'{"run":"a","x":1}')
    found = near(cassette, ask("/api", JSON, method="POST"), b'{"run":"b","x":1}')
    assert found.rule == 'ignore = { method = "POST", host = "web.example", path = "/api", body = "run" }'
    assert near(cassette, ask("/api", JSON, method="POST"), b'{"x":1}').rule is None


def test_of_many_calls_the_one_that_differs_least_is_named() -> None:
    """T-A7, T-A14."""
    cassette = MemoryCassette()

    def call(*texts: str) -> bytes:
        return json.dumps({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": text} for text in texts]}).encode()

    for length in range(1, 6):
        cassette.record(ask("/v1/messages", JSON, method="POST"), Answer(200), sent=call(*"abcdef"[:length]), channel=Channel.MODEL)
    found = miss(cassette, ask("/v1/messages", JSON, method="POST"), call("a", "b", "Z"))
    assert found.kind is MissKind.MODEL_DIVERGED
    assert found.nearest is not None
    assert found.nearest.seq == 3
    assert [item.path for item in found.nearest.differences] == ["messages[2].content"]


def test_another_host_is_never_the_nearest() -> None:
    """A: a nearest recording must help."""
    cassette = MemoryCassette()
    cassette.record(ask("/a", host="one.example"), Answer(200))
    assert miss(cassette, ask("/a", host="two.example")).nearest is None


def test_control_characters_never_reach_the_message() -> None:
    """DESIGN 7: untrusted text never reaches a terminal raw."""
    cassette = MemoryCassette()
    cassette.record(ask("/a\x1b[31m", JSON, method="POST"), Answer(200), sent=b'{"k\\n\\u001b[2J":"a\\u202e\\nb"}')
    found = miss(cassette, ask("/a\x1b[31m", JSON, method="POST"), b'{"k\\n\\u001b[2J":"c"}')
    assert found.nearest is not None
    for text in (found.message, *(part or "" for item in found.nearest.differences for part in (item.path, item.recorded, item.live))):
        assert text.isprintable()
