"""`grep`: where a text stands in what the agent sent and received."""

from __future__ import annotations

import gzip
import json

from secondtake.cassettes.exchange import Answer, Channel, Request
from secondtake.cassettes.store import Store
from tests.cli.scenes import Command, body, exchange, keep


def test_urls_fields_and_decoded_bodies_are_searched(command: Command, store: Store) -> None:
    """Also what was compressed on the wire."""
    wire = gzip.compress(b"needle in the body", mtime=0)
    request = Request("GET", "https", "web.example", 443, b"/needle", fields=((b"x-a", b"needle"),))
    answer = Answer(200, fields=((b"content-encoding", b"gzip"), (b"x-b", b"needle")), body=body(wire))
    keep(store, "hay", [(exchange(1, Channel.WEB, request, answer), [wire])])
    hits = [json.loads(line)["place"] for line in command("grep", "hay", "needle", "--json").out.splitlines()]
    assert hits == ["url", "request fields", "response fields", "response body"]


def test_a_body_that_cannot_be_read_is_said_to_be_passed_over(command: Command, store: Store) -> None:
    """ "No hit" must not be said of what was not searched."""
    answer = Answer(200, fields=((b"content-encoding", b"br"),), body=body(b"not brotli"))
    keep(store, "odd", [(exchange(1, Channel.WEB, Request("GET", "https", "web.example", 443, b"/"), answer), [b"not brotli"])])
    assert "warning: 1 bodies were passed over" in command("grep", "odd", "x").err


def test_many_hits_in_one_place_are_bounded(command: Command, store: Store) -> None:
    """Hostile input: a megabyte of one letter prints a screen, not a megabyte of lines."""
    content = b"a" * 100_000
    answer = Answer(200, body=body(content))
    keep(store, "long", [(exchange(1, Channel.WEB, Request("GET", "https", "web.example", 443, b"/"), answer), [content])])
    assert len(command("grep", "long", "aaa").out.splitlines()) == 20
