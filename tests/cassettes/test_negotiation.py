"""Accept and Accept-Encoding."""

from __future__ import annotations

import pytest

from secondtake.cassettes.memory import fields
from secondtake.cassettes.negotiation import Choice, accepts, choices, field, ranking, reads_codings, same_variant


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"text/html", [(b"text/html", 1000)]),
        (b"Text/HTML;Q=0.5, */*; q=0.1", [(b"text/html", 500), (b"*/*", 100)]),
        (b"a/b;level=1;q=0.3", [(b"a/b", 300)]),
        (b"a/b;q=2, c/d;q=-1, e/f;q=x, g/h;q=nan", [(b"a/b", 1000), (b"c/d", 0), (b"e/f", 0), (b"g/h", 0)]),
        (b", ,,", []),
        (b"", []),
        (b"a/b;q=inf", [(b"a/b", 1000)]),
    ],
)
def test_a_list_is_read_with_its_weights(value: bytes, expected: list[tuple[bytes, int]]) -> None:
    """N: weird Accept fields."""
    assert choices(value) == tuple(Choice(*one) for one in expected)


def test_a_field_that_is_far_too_long_names_nothing() -> None:
    """B-11."""
    assert choices(b"a/b," * 4000) == ()


def test_two_clients_that_want_the_same_in_the_same_order_have_one_ranking() -> None:
    """T-N1: pip's and uv's weights differ."""
    assert ranking(b"x/j, y/h;q=0.1, z/t;q=0.01") == ranking(b"z/t;q=0.2,x/j ,y/h;q=0.3")
    assert ranking(b"x/j, y/h;q=0.1") != ranking(b"x/j;q=0.1, y/h")
    assert ranking(b"x/j, y/h;q=0") == ranking(b"x/j")


def test_the_most_specific_range_decides() -> None:
    """RFC 9110 12.5.1."""
    wanted = b"*/*;q=0.1, text/*;q=0.2, text/html;q=0"
    assert accepts(wanted, b"text/html; charset=utf-8") == Choice(b"text/html", 0)
    assert accepts(wanted, b"text/plain") == Choice(b"text/*", 200)
    assert accepts(wanted, b"image/png") == Choice(b"*/*", 100)
    assert accepts(b"text/html", b"image/png") is None


@pytest.mark.parametrize(
    ("recorded", "live", "kind", "expected"),
    [
        (b"a/a", b"a/a", b"a/a", True),
        (b"*/*", b"a/a", b"a/a", True),
        (b"*/*", b"a/a, */*", b"a/a", True),
        (b"*/*", b"a/a, b/b;q=0.5", b"b/b", False),
        (b"a/a, b/b;q=0.5", b"b/b", b"b/b", True),
        (b"a/a", b"a/a, b/b", b"a/a", False),
        (b"a/a, b/b", b"a/a;q=0.5, b/b", b"a/a", True),
        (b"a/a, b/b;q=0.5", b"a/a;q=0.5, b/b", b"a/a", False),
        (b"a/a", b"*/*", b"a/a", False),
        (b"a/a", b"a/*", b"a/a", False),
        (b"a/a", b"b/b", b"a/a", False),
        (b"", b"", b"a/a", True),
    ],
)
def test_a_variant_is_given_only_where_the_origin_would_have_given_it(recorded: bytes, live: bytes, kind: bytes, expected: bool) -> None:
    """T-A12, T-N1."""
    assert same_variant(recorded, live, kind) is expected


@pytest.mark.parametrize(
    ("wanted", "names", "expected"),
    [
        (None, (), True),
        (None, ("gzip",), False),
        (b"gzip", ("gzip",), True),
        (b"x-gzip", ("gzip",), True),
        (b"gzip", ("x-gzip",), True),
        (b"gzip;q=0, *", ("gzip",), False),
        (b"*;q=0.1", ("br",), True),
        (b"gzip, br", ("br", "gzip"), True),
        (b"gzip", ("br", "gzip"), False),
        (b"identity", ("br",), False),
    ],
)
def test_a_client_reads_a_body_when_it_reads_every_coding_of_it(wanted: bytes | None, names: tuple[str, ...], expected: bool) -> None:
    """T-E3."""
    assert reads_codings(wanted, names) is expected


def test_several_lines_of_a_field_are_one_list() -> None:
    """RFC 9110 5.3."""
    head = fields("Accept: a/a", "ACCEPT: b/b")
    assert field(head, b"accept") == b"a/a, b/b"
    assert field(head, b"range") is None
