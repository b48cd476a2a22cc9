"""`show`: what the agent sent and received."""

from __future__ import annotations

import gzip
import json
import subprocess
from dataclasses import replace

import pytest

from secondtake.cassettes.exchange import Answer, Channel, Request
from secondtake.cassettes.store import Store
from tests.cli.scenes import PAGE, PROGRAM, Command, body, environment, exchange, keep


@pytest.fixture
def packed(store: Store) -> bytes:
    """A cassette `packed` with one gzip answer; returns its bytes on the wire."""
    wire = gzip.compress(b'{"a": 1}\n', mtime=0)
    answer = Answer(200, b"OK", fields=((b"Content-Encoding", b"gzip"),), body=body(wire))
    keep(store, "packed", [(exchange(1, Channel.WEB, Request("GET", "https", "web.example", 443, b"/"), answer), [wire])])
    return wire


def written(*arguments: str) -> bytes:
    """What a command writes into a pipe."""
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, env=environment(), check=True).stdout


def test_a_body_is_written_as_on_the_wire_or_decoded(packed: bytes) -> None:
    """DESIGN 7: `--body` writes the raw bytes as they were on the wire; `--decoded` undoes content encodings."""
    assert written("show", "packed", "1", "--body", "response") == packed
    assert written("show", "packed", "1", "--body", "response", "--decoded") == b'{"a": 1}\n'
    assert written("show", "packed", "1", "--body", "request") == b""


def test_the_page_shows_a_body_decoded(command: Command, packed: bytes) -> None:
    """For reading."""
    assert '\n{"a": 1}\n' in command("show", "packed", "1").out


def test_a_body_that_is_not_of_its_coding_is_shown_as_it_is(command: Command, store: Store) -> None:
    """Cut short, or mislabelled: the page still shows something, `--decoded` says why not."""
    answer = Answer(200, b"OK", fields=((b"Content-Encoding", b"br"),), body=body(PAGE))
    keep(store, "odd", [(exchange(1, Channel.WEB, Request("GET", "https", "web.example", 443, b"/"), answer), [PAGE])])
    assert "naïve" in command("show", "odd", "1").out
    ran = command("show", "odd", "1", "--body", "response", "--decoded")
    assert (ran.code, ran.out) == (64, "")
    assert ran.err.startswith("error: ")


def test_rows_are_in_the_order_of_the_requests(command: Command, store: Store) -> None:
    """DESIGN 3: the journal is in order of end, `seq` is request start and what people see."""
    request = Request("GET", "https", "web.example", 443, b"/")
    first, second = (exchange(seq, Channel.WEB, request, Answer(200, body=body(PAGE))) for seq in (1, 2))
    keep(store, "crossed", [(second, [PAGE]), (replace(first, ended_us=9_000_000), [PAGE])])
    assert [json.loads(line)["seq"] for line in command("show", "crossed", "--json").out.splitlines()] == [1, 2]


def test_an_exported_file_is_shown_without_a_store(command: Command, store: Store) -> None:
    """DESIGN 7: NAME is a cassette in the store, or a path to an exported file."""
    assert command("export", "incident", "a.take").code == 0
    assert command("show", "a.take", "--json").out == command("show", "incident", "--json").out


def test_an_unknown_channel_shows_nothing(command: Command, store: Store) -> None:
    """The filter is by the words of DESIGN 1."""
    assert command("show", "incident", "--channel", "vcs", "--json").out == ""
