"""Known values in every form they may be written in."""

import base64
import json
from urllib.parse import quote, quote_plus

from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.needles import Needles, base64_forms
from secondtake.cassettes.secrets import Known

SECRET = b's3cret+value/with=odd"chars\\and-more'
WRITTEN = [
    SECRET,
    json.dumps(SECRET.decode()).encode(),
    json.dumps(json.dumps(SECRET.decode())).encode(),
    json.dumps({"a": json.dumps({"b": json.dumps(SECRET.decode())})}).encode(),
    quote(SECRET, safe="").encode(),
    quote(quote(SECRET, safe=""), safe="").encode(),
    quote_plus(SECRET).lower().encode(),
    "".join(f"\\u{byte:04x}" for byte in SECRET).encode(),
    "".join(f"\\u{byte:04X}" for byte in SECRET).encode(),
    "".join(f"%{byte:02x}" for byte in SECRET).encode(),
]


def found(content: bytes, *values: bytes) -> list[bytes]:
    return [content[hit.start : hit.stop] for hit in Needles(Known("k", value) for value in values).find(content)]


def test_every_written_form_is_found() -> None:
    """K, C-09: plain, JSON-escaped, \\u-escaped, URL-encoded, nested."""
    for written in WRITTEN:
        for around in (b"%s", b'{"x": "%s"}', b"a" * 5000 + b" %s " + b"b" * 5000):
            assert found(around.replace(b"%s", written), SECRET), written


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(text, text.map(lambda one: f"0a-{one}-b9"), st.integers(0, 3), st.booleans(), st.booleans())
def test_a_string_quoted_up_to_three_times_is_found_whole(before: str, secret: str, layers: int, ascii_only: bool, slashed: bool) -> None:
    """C4: JSON inside JSON by either kind of writer; the range is exactly what was written."""
    parts = [before, secret]
    for _ in range(layers):
        parts = [json.dumps(one, ensure_ascii=ascii_only)[1:-1] for one in parts]
        if slashed:
            parts = [one.replace("/", "\\/") for one in parts]
    content = "".join(parts).encode()
    if len(set(secret.encode())) >= 4 and len(secret.encode()) >= 8:
        assert parts[1].encode() in found(content, secret.encode())


@given(st.binary(max_size=9), st.binary(max_size=9))
def test_base64_is_found_at_every_alignment(before: bytes, after: bytes) -> None:
    """K: the value inside a larger base64 text, both alphabets."""
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        content = encode(before + SECRET + after)
        covered = {at for hit in Needles([Known("k", SECRET)]).find(content) for at in range(hit.start, hit.stop)}
        first, last = len(before) * 8 // 6, ((len(before) + len(SECRET)) * 8 - 1) // 6
        assert set(range(first, last + 1)) <= covered, "every character that carries a bit of the value"


def test_forms_of_base64_are_not_too_short() -> None:
    """A short form would be found everywhere."""
    assert all(len(form) >= 8 for form in base64_forms(b"12345678"))


def test_short_and_common_values_are_not_looked_for() -> None:
    """K."""
    assert not Needles([Known("k", b"short"), Known("k", b"password")])


def test_the_first_kind_of_a_value_stays() -> None:
    """The environment's name for a value wins over a later place."""
    first = Needles([Known("first", SECRET)])
    needles = Needles([*first.known.values(), Known("second", SECRET), Known("x", b"other-value-9")], like=first)
    assert {hit.kind for hit in needles.find(SECRET + b" other-value-9")} == {"first", "x"}


@given(st.binary(max_size=300))
def test_nothing_is_found_where_nothing_is(content: bytes) -> None:
    """No false alarms on arbitrary bytes."""
    assert found(content, b"0123-a-value-that-is-absent") == []
