"""A kept body as it can be read: content encodings undone, within the limits."""

from __future__ import annotations

from collections.abc import Iterator

from secondtake.cassettes.content import Opaque, codings, decode, decoded
from secondtake.cassettes.errors import TooLarge
from secondtake.cassettes.exchange import Exchange, Source

PART_BYTES = 1024 * 1024


def codings_kept(exchange: Exchange, side: str) -> tuple[str, ...]:
    """Return the content codings that stand over a kept body; none where the redactor had to undo them (`redactions` says where)."""
    message = exchange.request if side == "request" else exchange.answer
    if message is None or exchange.details.get(f"{side}_kept") == "decoded":
        return ()
    return codings(message.fields)


def decoded_body(source: Source, names: tuple[str, ...]) -> bytes | None:
    """Return a small body with its content encodings undone; None where that cannot be done within the limits."""
    whole = source.read(0, source.size_bytes)
    try:
        content = decode(whole, names)
    except TooLarge:
        return None
    return None if isinstance(content, Opaque) else content


def parts(source: Source, names: tuple[str, ...]) -> Iterator[bytes]:
    """Yield a body in parts, with the codings `names` undone.

    Raises:
        TooLarge: decoded, it would be over a limit.
        BadInput: it is not what its `content-encoding` says (it was cut short).
    """
    if names:
        yield from decoded(source, names)
        return
    offset = 0
    while part := source.read(offset, PART_BYTES):
        yield part
        offset += len(part)


def binary(content: bytes) -> bool:
    """Say whether `content` is not text: it holds a NUL, or much of it is not UTF-8."""
    if b"\0" in content:
        return True
    text = content.decode("utf-8", "replace")
    return text.count("\ufffd") * 20 > len(text)
