"""`grep`: where a text stands in what the agent sent and received."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from secondtake.cassettes.exchange import Body, Exchange, Fields
from secondtake.cassettes.limits import BODY_IN_MEMORY_BYTES
from secondtake.cli.options import Surface, name_argument, surface_options
from secondtake.cli.render.escape import visible_bytes_line

if TYPE_CHECKING:
    from secondtake.cassettes.cassette import Cassette

AROUND_BYTES = 60
"""How much of the surrounding text is shown on either side of a hit."""

HITS_PER_PLACE = 20


@click.command("grep")
@name_argument()
@click.argument("pattern", metavar="PATTERN")
@click.option("--ignore-case", "-i", is_flag=True, help="Upper and lower case are the same.")
@click.option("--fixed", "-F", is_flag=True, help="PATTERN is plain text, not a regular expression.")
@surface_options
def command(surface: Surface, name: str, pattern: str, ignore_case: bool, fixed: bool) -> int:
    """Find a text in URLs, fields and decoded bodies.

    PATTERN is a regular expression on bytes. Exits 0 whether or not something was found; bodies over 8 MiB are passed over and said so.
    """
    try:
        wanted = re.compile(re.escape(pattern.encode()) if fixed else pattern.encode(), re.IGNORECASE if ignore_case else 0)
    except re.error as error:
        raise click.BadParameter(f"{pattern!r} is not a regular expression: {error}", param_hint="PATTERN") from error
    cassette = surface.store().open(name)
    hits = passed_over = 0
    try:
        for seq in sorted(row.seq for row in cassette.rows):
            exchange = cassette.exchange(seq)
            for place, content in _places(cassette, exchange):
                if content is None:
                    passed_over += 1
                    continue
                for start, stop in _spans(wanted, content):
                    hits += 1
                    _print_hit(surface, seq, place, content, start, stop)
    finally:
        cassette.close()
    if passed_over:
        surface.warn(f"{passed_over} bodies were passed over: larger than 8 MiB, or not decodable within the limits")
    if not hits and not surface.json:
        surface.say(f"no hit in {cassette.name}")
    return 0


def _spans(wanted: re.Pattern[bytes], content: bytes) -> Iterator[tuple[int, int]]:
    for number, match in enumerate(wanted.finditer(content)):
        if number == HITS_PER_PLACE:
            return
        yield match.span()


def _places(cassette: Cassette, exchange: Exchange) -> Iterator[tuple[str, bytes | None]]:
    """Yield each searchable part of an exchange by name; None for a body that cannot be searched."""
    request, answer = exchange.request, exchange.answer
    yield "url", request.url.encode()
    yield "request fields", _joined(request.fields)
    yield from _body(cassette, exchange, "request", request.body)
    if answer:
        yield "response fields", _joined(answer.fields)
        yield from _body(cassette, exchange, "response", answer.body)


def _joined(fields: Fields) -> bytes:
    return b"\n".join(name + b": " + value for name, value in fields)


def _body(cassette: Cassette, exchange: Exchange, side: str, body: Body) -> Iterator[tuple[str, bytes | None]]:
    from secondtake.cli.render.bodies import codings_kept, decoded_body

    if body.size_bytes:
        small = body.size_bytes <= BODY_IN_MEMORY_BYTES
        yield f"{side} body", decoded_body(cassette.body(body), codings_kept(exchange, side)) if small else None


def _print_hit(surface: Surface, seq: int, place: str, content: bytes, start: int, stop: int) -> None:
    before, hit, after = content[max(0, start - AROUND_BYTES) : start], content[start:stop], content[stop : stop + AROUND_BYTES]
    if surface.json:
        from secondtake.cli.render.objects import as_line

        print(as_line({"seq": seq, "place": place, "start": start, "stop": stop, "before": before, "hit": hit, "after": after}))
        return
    around = visible_bytes_line(before.rpartition(b"\n")[2] + hit + after.partition(b"\n")[0])
    print(f"{seq}\t{place}\t{around}")
