"""An exchange as a line of JSON, as a row of a table, and as a page to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from secondtake.cassettes.exchange import Answer, Exchange, Fields, Request
from secondtake.cassettes.mcp import SCHEME
from secondtake.cli.render.escape import visible_bytes_line, visible_line
from secondtake.cli.render.words import duration, size

if TYPE_CHECKING:
    from secondtake.cassettes.index import Row


def line_fields(exchange: Exchange) -> dict[str, object]:
    """Return the fields of one line of `show --json`. Offsets are microseconds since the recording began."""
    answer = exchange.answer
    return {
        "seq": exchange.seq,
        "method": exchange.request.method,
        "url": exchange.request.url,
        "status": answer.status if answer else None,
        "channel": str(exchange.channel),
        "answered": str(exchange.answered),
        "ended": str(exchange.ended),
        "request_sha256": exchange.request.body.digest,
        "response_sha256": answer.body.digest if answer else None,
        "request_bytes": exchange.request.body.size_bytes,
        "response_bytes": answer.body.size_bytes if answer else None,
        "started_us": exchange.started_us,
        "response_us": exchange.started_us + answer.offset_us if answer else None,
        "ended_us": exchange.ended_us,
    }


def page_fields(exchange: Exchange) -> dict[str, object]:
    """Return all that is kept of one exchange but its bodies, for `show NAME SEQ --json`."""
    answer = exchange.answer
    return {
        **line_fields(exchange),
        "adapter": exchange.adapter,
        "request": _request_fields(exchange.request),
        "response": _answer_fields(answer) if answer else None,
        "forwarded": list(exchange.forwarded),
        "redactions": [
            {"side": str(r.side), "place": r.place, "start": r.start, "stop": r.stop, "kind": r.kind, "fingerprint": r.fingerprint}
            for r in exchange.redactions
        ],
        "notes": list(exchange.notes),
        "details": dict(exchange.details),
    }


def _request_fields(request: Request) -> Mapping[str, object]:
    return {
        "protocol": request.protocol,
        "target": request.path,
        "host": request.host,
        "port": request.port,
        "named": {"connect": request.named.connect, "sni": request.named.sni, "host": request.named.host},
        "fields": _pairs(request.fields),
        "trailers": _pairs(request.trailers),
        "pieces": len(request.body.pieces),
    }


def _answer_fields(answer: Answer) -> Mapping[str, object]:
    return {
        "protocol": answer.protocol,
        "reason": answer.reason,
        "synthetic": answer.synthetic,
        "interim": [{"status": i.status, "fields": _pairs(i.fields), "offset_us": i.offset_us} for i in answer.interim],
        "fields": _pairs(answer.fields),
        "trailers": _pairs(answer.trailers),
        "pieces": len(answer.body.pieces),
    }


def _pairs(fields: Fields) -> list[list[str]]:
    return [[name.decode("utf-8", "backslashreplace"), value.decode("utf-8", "backslashreplace")] for name, value in fields]


def page_head(exchange: Exchange) -> Iterator[str]:
    """Yield the lines before the request body: what it was for, its head."""
    adapter = f" ({exchange.adapter})" if exchange.adapter else ""
    yield visible_line(f"exchange {exchange.seq}  {exchange.channel}{adapter}  started at {duration(exchange.started_us)}")
    yield ""
    request = exchange.request
    yield visible_line(f"> {request.method} {request.url}{'' if request.scheme == SCHEME else f' {request.protocol}'}")
    yield from (f"> {line}" for line in _field_lines(request.fields))


def page_answer(exchange: Exchange) -> Iterator[str]:
    """Yield the lines of the answer's head, or that there was none."""
    answer = exchange.answer
    if answer is None:
        yield "< no answer"
        return
    for interim in answer.interim:
        yield visible_line(f"< {interim.status} {visible_bytes_line(interim.reason)}")
        yield from (f"< {line}" for line in _field_lines(interim.fields))
    made = "  (made by the proxy)" if answer.synthetic else ""
    protocol = "" if exchange.request.scheme == SCHEME else f" {visible_line(answer.protocol)}"
    yield f"< {answer.status} {visible_bytes_line(answer.reason)}{protocol}  after {duration(answer.offset_us)}{made}"
    yield from (f"< {line}" for line in _field_lines(answer.fields))


def page_tail(exchange: Exchange) -> Iterator[str]:
    """Yield the lines after the answer's body: how it ended, what was changed, what to know."""
    if exchange.answer:
        yield from (f"< {line}  (trailer)" for line in _field_lines(exchange.answer.trailers))
    yield f"ended: {exchange.ended} after {duration(max(0, exchange.ended_us - exchange.started_us))}"
    call = exchange.details.get("model_call")
    if isinstance(call, Mapping):
        served = call.get("served")
        who = ", ".join(map(str, served)) if isinstance(served, list | tuple) and served else "not named"
        yield visible_line(f"retake: call {call.get('step')}, sent as {call.get('forwarded')}, served by {who} ({call.get('proof')})")
    for rule in exchange.forwarded:
        yield visible_line(f"forwarded with: {rule}")
    for redaction in exchange.redactions:
        yield visible_line(f"redacted: {redaction.kind} in {redaction.side} {redaction.place}, bytes {redaction.start}-{redaction.stop}")
    for note in exchange.notes:
        yield visible_line(f"note: {note}")


def body_line(size_bytes: int, digest: str, pieces: int) -> str:
    """Return the line that stands for a body."""
    cut = f" in {pieces:,} pieces" if pieces > 1 else ""
    return f"[{size(size_bytes)}{cut}, sha256 {digest[:12]}]"


def _field_lines(fields: Fields) -> Iterator[str]:
    for name, value in fields:
        yield f"{visible_bytes_line(name)}: {visible_bytes_line(value)}"


def row_url(row: Row) -> str:
    """Return the URL of an index row."""
    path = row.path if isinstance(row.path, bytes) else row.path.encode()
    return Request(row.method, row.scheme, row.host, row.port, path).url
