"""A file that is not what its index announced is told when it is recorded."""

from __future__ import annotations

import hashlib
import json

import pytest

from secondtake.cassettes.exchange import Answer, Channel, Ending, Request
from secondtake.cassettes.integrity import mismatches
from secondtake.cassettes.memory import MemoryCassette

FILE = b"PK wheel bytes"
RIGHT = hashlib.sha256(FILE).hexdigest()
WRONG = hashlib.sha256(b"other").hexdigest()
PAGE_PATH, FILE_PATH = b"/simple/pkg/", b"/files/pkg-1.0+local-py3-none-any.whl"


def page(digest: str, form: str) -> tuple[bytes, bytes]:
    if form == "html":
        return b"text/html", f'<a href="../../files/pkg-1.0%2Blocal-py3-none-any.whl#sha256={digest}">pkg</a>'.encode()
    found = {"url": "https://index.example/files/pkg-1.0%2Blocal-py3-none-any.whl", "hashes": {"sha256": digest}}
    return b"application/vnd.pypi.simple.v1+json", json.dumps({"files": [found, {"url": 3}, "x"]}).encode()


def cassette(digest: str, form: str, *, ended: Ending = Ending.COMPLETE, coding: bytes | None = None) -> MemoryCassette:
    made = MemoryCassette()
    media, content = page(digest, form)
    made.record(
        Request("GET", "https", "index.example", 443, PAGE_PATH),
        Answer(200, fields=((b"Content-Type", media),)),
        received=content,
        channel=Channel.INDEX,
    )
    fields = ((b"Content-Encoding", coding),) if coding else ()
    made.record(
        Request("GET", "https", "index.example", 443, FILE_PATH),
        Answer(200, fields=fields),
        received=FILE,
        channel=Channel.INDEX,
        ended=ended,
    )
    return made


@pytest.mark.parametrize("form", ["html", "json"])
def test_a_file_with_another_digest_is_named(form: str) -> None:
    """T-N7: stored file's sha256 differs from the `#sha256=` of the recorded index."""
    (found,) = mismatches(cassette(WRONG, form))
    assert (found.page, found.file, found.announced, found.kept) == (1, 2, WRONG, RIGHT)
    assert found.url.startswith("https://index.example/files/pkg-1.0")


@pytest.mark.parametrize("form", ["html", "json"])
def test_the_right_digest_in_any_case_is_no_fault(form: str) -> None:
    assert list(mismatches(cassette(RIGHT.upper(), form))) == []


def test_what_is_not_a_whole_plain_file_says_nothing() -> None:
    assert list(mismatches(cassette(WRONG, "html", ended=Ending.RESET))) == []
    assert list(mismatches(cassette(WRONG, "html", coding=b"gzip"))) == []
