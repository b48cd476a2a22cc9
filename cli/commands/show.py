"""`show`: what the agent sent and received."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from secondtake.cassettes.exchange import Body, Exchange
from secondtake.cassettes.limits import BODY_IN_MEMORY_BYTES
from secondtake.cli.exits import Unusable
from secondtake.cli.options import Surface, name_argument, surface_options

PREVIEW_BYTES = 16 * 1024
"""How much of a body the page shows; `--body` gives all of it."""

if TYPE_CHECKING:
    from secondtake.cassettes.cassette import Cassette


@click.command("show")
@name_argument()
@click.argument("seq", metavar="[SEQ]", type=click.IntRange(min=0), required=False)
@click.option("--body", "side", type=click.Choice(["request", "response"]), help="Write the bytes of one body, as on the wire.")
@click.option("--decoded", is_flag=True, help="With --body: undo content encodings.")
@click.option("--force", is_flag=True, help="With --body: write raw bytes to a terminal too.")
@click.option("--channel", multiple=True, help="Only exchanges of this channel (may be repeated).")
@surface_options
def command(surface: Surface, name: str, seq: int | None, side: str | None, decoded: bool, force: bool, channel: tuple[str, ...]) -> int:
    """List a cassette's exchanges, or show one of them.

    On a terminal, recorded text is shown with control characters escaped.
    """
    if side is not None and seq is None:
        raise click.UsageError("--body needs the SEQ of an exchange", click.get_current_context())
    if side is None and (decoded or force):
        raise click.UsageError("--decoded and --force go with --body", click.get_current_context())
    cassette = surface.store().open(name)
    try:
        if seq is None:
            _list(surface, cassette, channel)
        elif side is not None:
            _write_body(cassette, cassette.exchange(seq), side, decoded=decoded, force=force)
        elif surface.json:
            from secondtake.cli.render.exchanges import page_fields
            from secondtake.cli.render.objects import as_line

            print(as_line(page_fields(cassette.exchange(seq))))
        else:
            _page(cassette, cassette.exchange(seq))
    finally:
        cassette.close()
    return 0


def _list(surface: Surface, cassette: Cassette, channels: tuple[str, ...]) -> None:
    rows = sorted((row for row in cassette.rows if not channels or str(row.channel) in channels), key=lambda row: row.seq)
    if surface.json:
        from secondtake.cli.render.exchanges import line_fields
        from secondtake.cli.render.objects import as_line

        for row in rows:
            print(as_line(line_fields(cassette.exchange(row.seq))))
        return
    from secondtake.cli.render.exchanges import row_url
    from secondtake.cli.render.tables import print_table
    from secondtake.cli.render.words import count, duration, size

    print_table(
        [">seq", ">at", "channel", "method", ">status", ">sent", ">received", "ended", "url"],
        (
            [
                str(row.seq),
                duration(row.started_us),
                str(row.channel),
                row.method,
                "-" if row.status is None else str(row.status),
                size(row.request_size),
                size(row.response_size),
                str(row.ended),
                row_url(row),
            ]
            for row in rows
        ),
    )
    surface.say(f"\n{cassette.name}: {count(len(rows), 'exchange')}, {cassette.state}, root {cassette.root or 'none'}")


def _page(cassette: Cassette, exchange: Exchange) -> None:
    from secondtake.cli.render.bodies import codings_kept
    from secondtake.cli.render.exchanges import page_answer, page_head, page_tail

    print("\n".join(page_head(exchange)))
    _preview(cassette, exchange.request.body, codings_kept(exchange, "request"))
    print()
    print("\n".join(page_answer(exchange)))
    if exchange.answer:
        _preview(cassette, exchange.answer.body, codings_kept(exchange, "response"))
    print()
    print("\n".join(page_tail(exchange)))


def _preview(cassette: Cassette, body: Body, names: tuple[str, ...]) -> None:
    from secondtake.cli.render.bodies import binary, decoded_body
    from secondtake.cli.render.escape import visible_bytes
    from secondtake.cli.render.exchanges import body_line

    if not body.size_bytes:
        return
    print()
    if body.size_bytes <= BODY_IN_MEMORY_BYTES:
        source = cassette.body(body)
        content = decoded_body(source, names)
        if content is None:
            content = source.read(0, source.size_bytes)
        if not binary(content[:PREVIEW_BYTES]):
            print(visible_bytes(content[:PREVIEW_BYTES]).rstrip("\n"))
            if len(content) <= PREVIEW_BYTES:
                return
    print(body_line(body.size_bytes, body.digest, len(body.pieces)))


def _write_body(cassette: Cassette, exchange: Exchange, side: str, *, decoded: bool, force: bool) -> None:
    message = exchange.request if side == "request" else exchange.answer
    if message is None:
        raise Unusable(f"exchange {exchange.seq} has no answer: it ended as `{exchange.ended}`")
    from secondtake.cli.render.bodies import binary, codings_kept, parts

    written = parts(cassette.body(message.body), codings_kept(exchange, side) if decoded else ())
    if sys.stdout.isatty() and not force:
        from secondtake.cli.render.escape import visible_bytes

        whole = b"".join(written)
        if binary(whole):
            raise Unusable("the body is binary, and this is a terminal", hint="send it to a file with `> FILE`, or pass --force")
        print(visible_bytes(whole))
        return
    for part in written:
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()
