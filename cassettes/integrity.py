"""Whether the files of a package index are the ones its pages announced, by their SHA-256 (CASES T-N7). Pure.

Reads what a recording kept: simple-index pages (PEP 503's HTML with `#sha256=`, PEP 691's JSON) and the digests of whole files.
A file that was cut, a partial answer, or one under a content coding says nothing.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote, urldefrag, urljoin

import orjson

from secondtake.cassettes.content import codings, plain
from secondtake.cassettes.exchange import Channel, Digest, Ending, Fields
from secondtake.cassettes.limits import DECODED_BYTES
from secondtake.cassettes.memory import Recorded, Row

_LINK = re.compile(rb"""href\s*=\s*["']([^"'#\s]+)#sha256=([0-9a-fA-F]{64})["'&]""")
_JSON = re.compile(rb"json", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A file that is not what its index says. `page` and `file` are sequence numbers."""

    page: int
    file: int
    url: str
    announced: Digest
    kept: Digest


def mismatches(cassette: Recorded) -> Iterator[Mismatch]:
    """Every recorded file whose digest differs from what a recorded page of its index announced.

    Raises:
        Corrupt: a page's bytes are not the kept ones.
    """
    files = {_key(_url(row)): row for row in cassette.rows if _is_whole(row) and row.channel is Channel.INDEX}
    if not files:
        return
    told: set[tuple[int, str]] = set()
    for row in cassette.rows:
        if row.channel is not Channel.INDEX or not _is_whole(row) or row.response_size > DECODED_BYTES:
            continue
        answer = cassette.exchange(row.seq).answer
        if answer is None or (content := plain(_all(cassette, row), answer.fields)) is None:
            continue
        for url, digest in announced(content, answer.fields, _url(row)):
            found = files.get(_key(url))
            if found is None or found.response_digest == digest or (found.seq, digest) in told:
                continue
            kept = cassette.exchange(found.seq).answer
            if kept is None or codings(kept.fields):
                continue
            told.add((found.seq, digest))
            yield Mismatch(row.seq, found.seq, url, digest, found.response_digest)


def announced(content: bytes, fields: Fields, base: str) -> Iterator[tuple[str, Digest]]:
    """The files a page links to with a SHA-256: absolute URL without fragment, and the digest."""
    media = next((value for name, value in fields if name.lower() == b"content-type"), b"")
    if _JSON.search(media):
        yield from _of_json(content, base)
        return
    for link, digest in _LINK.findall(content):
        yield urljoin(base, html.unescape(link.decode("utf-8", "replace"))), Digest(digest.decode().lower())


def _of_json(content: bytes, base: str) -> Iterator[tuple[str, Digest]]:
    try:
        page = orjson.loads(content)
    except orjson.JSONDecodeError:
        return
    files = page.get("files") if isinstance(page, dict) else None
    for file in files if isinstance(files, list) else ():
        if not isinstance(file, dict) or not isinstance(file.get("url"), str):
            continue
        hashes = file.get("hashes")
        digest = hashes.get("sha256") if isinstance(hashes, dict) else None
        if isinstance(digest, str) and re.fullmatch(r"[0-9a-fA-F]{64}", digest):
            yield urldefrag(urljoin(base, file["url"]))[0], Digest(digest.lower())


def _is_whole(row: Row) -> bool:
    return row.method == "GET" and row.status == 200 and row.ended is Ending.COMPLETE and not row.synthetic


def _url(row: Row) -> str:
    host = f"[{row.host}]" if ":" in row.host else row.host
    port = "" if row.port == {"http": 80, "https": 443}.get(row.scheme) else f":{row.port}"
    return f"{row.scheme}://{host}{port}{row.path.decode('ascii', 'replace')}"


def _key(url: str) -> str:
    """One spelling for a URL and its percent-encoded twin."""
    return unquote(url)


def _all(cassette: Recorded, row: Row) -> bytes:
    answer = cassette.exchange(row.seq).answer
    if answer is None:
        return b""
    source = cassette.body(answer.body)
    return source.read(0, source.size_bytes)
