"""The recorded exchange that came closest to a request nothing answers. Bounded: `CANDIDATES` rows, `COMPARED_BYTES` of bodies."""

from __future__ import annotations

from collections.abc import Iterator

from secondtake.cassettes.canonical import Document, split_target
from secondtake.cassettes.catalogue import Catalogue
from secondtake.cassettes.declared import Declared, too_broad
from secondtake.cassettes.differences import Difference, Found, body_differences, target_differences
from secondtake.cassettes.exchange import Request
from secondtake.cassettes.match import meaning
from secondtake.cassettes.memory import Row
from secondtake.cassettes.misses import Nearest, printable, shown_on_a_line

CANDIDATES = 64
BODIES = 6
"""Candidates whose bodies are compared, the most alike in size first."""

COMPARED_BYTES = 1024 * 1024
"""Bodies read for one miss, beyond the first; a larger one is compared only when it is the first."""

LARGEST_BYTES = 4 * 1024 * 1024


def nearest(request: Request, content: bytes | None, catalogue: Catalogue) -> Nearest | None:
    """The closest exchange with what differs, or None when nothing was recorded for this host. `request` must be redacted.

    Raises Corrupt.
    """
    candidates = _candidates(request, catalogue)
    if not candidates:
        return None
    size = 0 if content is None else len(content)
    candidates.sort(key=lambda row: _distance(row, request, size))
    best: tuple[int, Row, Found] | None = None
    live: Document | None = None
    read = 0
    for row in candidates[:BODIES]:
        found = Found()
        _head(row, request, found)
        comparable = content is not None and 0 < row.request_size <= LARGEST_BYTES and row.request_size + size > 0
        if comparable and (best is None or read < COMPARED_BYTES) and content is not None:
            if live is None:
                live = catalogue.told(meaning(request, content, catalogue.rules))
            read += row.request_size + size
            recorded = catalogue.cassette.exchange(row.seq).request
            kept = catalogue.request_content(recorded)
            if kept is not None:
                body_differences(catalogue.told(meaning(recorded, kept, catalogue.rules), recorded=True), live, found)
        elif row.request_size != size:
            found.add("body", "", f"{row.request_size} bytes", f"{size} bytes")
        if best is None or found.count < best[0]:
            best = (found.count, row, found)
        if found.count <= 1 and row.path == request.path:
            break
    assert best is not None
    _, row, found = best
    items = tuple(map(shown_on_a_line, found.items))
    rule = _rule(request, items[0]) if items and found.count == len(items) else None
    return Nearest(row.seq, row.method, _url(row), row.status, items, found.count - len(items), rule)


def _candidates(request: Request, catalogue: Catalogue) -> list[Row]:
    """Rows of the same target first, then of ever shorter beginnings of its path, on the same host."""
    here = [row for row in catalogue.rows if row.host == request.host and row.keys is not None]
    path, _ = split_target(request.path)
    chosen: dict[int, Row] = {}
    for begin in _beginnings(path):
        for row in here:
            if row.path.startswith(begin) and row.seq not in chosen:
                chosen[row.seq] = row
                if len(chosen) >= CANDIDATES:
                    return list(chosen.values())
        if len(chosen) >= BODIES:
            break
    return list(chosen.values())


def _beginnings(path: bytes) -> Iterator[bytes]:
    yield path
    at, steps = len(path), 0
    while (at := path.rfind(b"/", 0, at)) > 0 and steps < 6:
        yield path[: at + 1]
        steps += 1
    yield b""


def _distance(row: Row, request: Request, size: int) -> tuple[object, ...]:
    """Smaller is closer: same target, same path, same method; then the longest common beginning; then alike in size; then the latest."""
    same_path = split_target(row.path)[0] == split_target(request.path)[0]
    common = _common(row.path[:512], request.path[:512])
    return (
        not (same_path and row.method == request.method),
        not same_path,
        row.path != request.path,
        -common,
        row.scheme != request.scheme or row.port != request.port,
        row.method != request.method,
        abs(row.request_size - size),
        -row.seq,
    )


def _common(one: bytes, other: bytes) -> int:
    """Length of the common beginning."""
    return next((index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _head(row: Row, request: Request, found: Found) -> None:
    if row.method != request.method:
        found.add("method", "", row.method, request.method)
    if (row.scheme, row.port) != (request.scheme, request.port):
        found.add("host", "", f"{row.scheme}, port {row.port}", f"{request.scheme}, port {request.port}")
    target_differences(row.path, request.path, found)


def _url(row: Row) -> str:
    return Request(row.method, row.scheme, row.host, row.port, row.path).url


def _rule(request: Request, item: Difference) -> str | None:
    """The line that forgives this place, where it would not forgive more than is safe."""
    if item.where != "body" or not item.path or item.recorded is None or item.live is None:
        return None
    path = printable(split_target(request.path)[0].decode("ascii", "backslashreplace"), 200)
    rule = Declared(request.method, request.host, path, item.path)
    return rule.line if too_broad(rule) is None else None
