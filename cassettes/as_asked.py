"""An answer of an MCP server over HTTP, with the ids and progress tokens of the request it is given to (rpc.py)."""

from __future__ import annotations

from dataclasses import replace

from secondtake.cassettes import content as codings
from secondtake.cassettes import limits
from secondtake.cassettes.canonical import media_type
from secondtake.cassettes.derived import NO_BYTES, with_changes
from secondtake.cassettes.errors import TooLarge
from secondtake.cassettes.exchange import EMPTY, Body, Bytes
from secondtake.cassettes.negotiation import field
from secondtake.cassettes.rpc import events_renamed, renamed, renames
from secondtake.cassettes.served import Serve

NOTE = "ids of the recorded request replaced by the client's"


def as_asked(serve: Serve, recorded: bytes | None, live: bytes | None) -> Serve:
    """The same answer where the client's ids are the recorded ones; else with the client's. `recorded`, `live`: both requests' bodies."""
    by = renames(recorded, live) if recorded and live else {}
    if not by or not 0 < serve.body.size_bytes <= limits.BODY_IN_MEMORY_BYTES:
        return serve
    answer = serve.answer
    names = codings.codings(answer.fields)
    whole: bytes | codings.Opaque = serve.body.read(0, serve.body.size_bytes)
    if names and isinstance(whole, bytes):
        try:
            whole = codings.decode(whole, names)
        except TooLarge:
            return serve
    if isinstance(whole, codings.Opaque):
        return serve
    events = media_type(answer.fields).startswith(b"text/event-stream")
    told = events_renamed(whole, by) if events else renamed(whole, by)
    if told == whole:
        return serve
    changes = {**NO_BYTES, b"content-encoding": None, b"etag": None}
    if field(answer.fields, b"content-length") is not None:
        changes[b"content-length"] = b"%d" % len(told)
    fields = with_changes(answer.fields, changes)
    return replace(serve, answer=replace(answer, fields=fields, body=Body(EMPTY, len(told))), body=Bytes(told), notes=(*serve.notes, NOTE))
