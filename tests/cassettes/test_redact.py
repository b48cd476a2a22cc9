"""The one redactor: T-K1 to T-K7, C-09 to C-13 as far as this version promises them."""

import base64
import gzip
import json
import random
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import quote, urlencode

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from secondtake.cassettes import limits, places, secrets
from secondtake.cassettes.exchange import Answer, Fields, Interim, Request, Side
from secondtake.cassettes.match import request_keys
from secondtake.cassettes.placeholder import is_placeholder
from secondtake.cassettes.redact import Known, Redactor, collapse

STORE = b"k" * 32
KEY = b"sk-ant-api03-R2D2c3poBB8xyzQm9vS2VlcGVyMTIzNDU2Nzg5MGFiY2RlZg-AA"
OTHER = b"sk-ant-api03-" + bytes(reversed(KEY[13:])) + b"-longer"
ODD = b'p@ss/w0rd+"quoted"\\and=more'
JSON: Fields = ((b"Content-Type", b"application/json"),)
FORM: Fields = ((b"content-type", b"application/x-www-form-urlencoded"),)


def redactor(*values: bytes) -> Redactor:
    return Redactor([Known("anthropic-api-key", value, "env:ANTHROPIC_API_KEY") for value in values], key=STORE)


def request(path: bytes = b"/v1/messages", fields: Fields = (), trailers: Fields = ()) -> Request:
    return Request("POST", "https", "api.provider.example", 443, path, fields=fields, trailers=trailers)


def traces(secret: bytes, content: bytes) -> bool:
    """Whether `secret` is in `content` raw, JSON-escaped, URL-encoded or in base64 at any alignment."""
    text = secret.decode()
    forms = {secret, json.dumps(text)[1:-1].encode(), json.dumps(json.dumps(text))[3:-3].encode(), quote(secret, safe="").encode()}
    forms |= {base64.b64encode(b"\0" * lead + secret)[4:-4] for lead in range(3)}
    forms |= {base64.urlsafe_b64encode(b"\0" * lead + secret)[4:-4] for lead in range(3)}
    return any(form in content for form in forms)


# ---- heads ----


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"authorization", b"Bearer %s"),
        (b"x-api-key", b"%s"),
        (b"X-Goog-Api-Key", b"%s"),
        (b"api-key", b"%s"),
        (b"cookie", b"a=b; sid=%s; c=d"),
        (b"proxy-authorization", b"Bearer %s"),
        (b"x-corp-token", b"%s"),
        (b"x-note", b"the key is %s, keep it"),
        (b"referer", b"https://h.example/?api_key=%s"),
    ],
)
def test_a_key_in_a_field_is_hidden_and_as_long(name: bytes, value: bytes) -> None:
    """T-K1: fields; the public prefix stays, the length stays."""
    given_fields = ((b"Host", b"h"), (name, value.replace(b"%s", KEY)), (b"accept", b"*/*"))
    kept, redactions = redactor().request(request(fields=given_fields))
    assert kept.fields[1][0] == name
    assert len(kept.fields[1][1]) == len(given_fields[1][1])
    assert not traces(KEY, kept.fields[1][1])
    assert b"sk-ant-api03-_2T.ant." in kept.fields[1][1]
    assert kept.fields[0] == given_fields[0]
    assert kept.fields[2] == given_fields[2]
    [mark] = [one for one in redactions if one.kind == "anthropic-api-key"]
    assert given_fields[1][1][mark.start : mark.stop] == KEY
    assert mark.place.startswith("field:")
    assert mark.side is Side.REQUEST


def test_the_basic_credential_and_what_is_in_it() -> None:
    """T-K1: base64 undone; the password is then found in a body too."""
    one = redactor()
    kept, _ = one.request(request(fields=((b"authorization", b"Basic " + base64.b64encode(b"user:gizmo-4711-x")),)))
    assert kept.fields[0][1].startswith(b"Basic _2T.bas")
    assert b"gizmo-4711-x" not in one.body(b'{"t":"pw is gizmo-4711-x"}', JSON, Side.REQUEST).content


@pytest.mark.parametrize(
    "path",
    [b"/v1beta/models?key=%s", b"/x?a=1&api_key=%s&b=2", b"/x?access_token=%s", b"/%s/path", b"http://u:%s@h.example/x", b"/p?q=%s"],
)
def test_a_key_in_the_target_is_hidden_and_as_long(path: bytes) -> None:
    """T-K1: `?key=`, userinfo, and by value anywhere."""
    whole = path.replace(b"%s", KEY)
    kept, redactions = redactor().request(request(whole))
    assert len(kept.path) == len(whole)
    assert not traces(KEY, kept.path)
    assert redactions


def test_userinfo_with_an_at_sign_inside() -> None:
    """T-K1."""
    kept, _ = redactor().answer(Answer(302, fields=((b"Location", b"https://bob:p@ssw0rd-77@git.example/r?x=1"),)))
    assert b"ssw0rd" not in kept.fields[0][1]
    assert kept.fields[0][1].endswith(b"@git.example/r?x=1")


def test_answers_trailers_and_interim_heads_too() -> None:
    """C4: set-cookie, trailers, 103."""
    secret = b"zq81-secret-cookie-value-93"
    given_answer = Answer(
        200,
        fields=((b"set-cookie", b"sid=" + secret + b"; Path=/; HttpOnly"), (b"x-id", b"1")),
        interim=(Interim(103, b"", ((b"x-auth-token", secret),), 5),),
        trailers=((b"x-echo", secret),),
    )
    kept, redactions = redactor().answer(given_answer)
    assert not traces(secret, repr(kept).encode())
    assert kept.fields[0][1].endswith(b"; Path=/; HttpOnly")
    assert {one.place.partition(":")[0] for one in redactions} == {"field", "interim", "trailer"}


def test_a_head_without_a_credential_is_the_same_value() -> None:
    """F: fields go unchanged; rate limits and ids reach the agent (T-F4)."""
    head = request(b"/a?b=c", ((b"X-WeIrD", b"\xe9\xff"), (b"idempotency-key", b"8e03978e-40d5-43dd-bc93-6894a57f9324")))
    assert redactor(KEY).request(head) == (head, ())
    answer = Answer(429, fields=((b"anthropic-ratelimit-tokens-remaining", b"80000"), (b"retry-after", b"7")))
    assert redactor(KEY).answer(answer)[0] is answer


def test_two_uses_of_one_key_are_seen_as_one() -> None:
    """C-11: same fingerprint with one store key, another with another."""
    head = request(fields=((b"x-api-key", KEY),))
    first, again = (redactor().request(head)[1][0].fingerprint for _ in range(2))
    assert first == again is not None
    assert Redactor(key=b"o" * 32).request(head)[1][0].fingerprint != first
    assert redactor().request(request(fields=((b"x-api-key", OTHER),)))[1][0].fingerprint != first


def test_what_can_be_guessed_gets_no_fingerprint() -> None:
    """C4: a fingerprint of a password would be an oracle for whoever gets the store's key."""
    _, redactions = redactor().request(request(fields=((b"authorization", b"Basic dXNlcjpwYXNzd29yZDE="), (b"x-api-key", b"hunter22"))))
    assert [one.fingerprint for one in redactions] == [None, None]


# ---- bodies ----

ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "gzip, br": lambda data: brotli.compress(gzip.compress(data)),
}
WRITINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda value: json.dumps({"content": "KEY=" + value.decode() + "\n"}).encode(),
    "json in json": lambda value: json.dumps({"arguments": json.dumps({"cmd": json.dumps(value.decode())})}).encode(),
    "unicode escapes": lambda value: b'{"x":"' + "".join(f"\\u{byte:04x}" for byte in value).encode() + b'"}',
    "url": lambda value: json.dumps({"url": "https://h/?q=" + quote(value, safe="")}).encode(),
    "base64": lambda value: json.dumps({"b": base64.b64encode(b"user:" + value + b"\n").decode()}).encode(),
    "base64 url": lambda value: json.dumps({"b": base64.urlsafe_b64encode(b"x" + value).decode()}).encode(),
}


@pytest.mark.parametrize("coding", ENCODERS)
@pytest.mark.parametrize("writing", WRITINGS)
@pytest.mark.parametrize("value", [KEY, ODD])
@pytest.mark.parametrize("side", Side)
def test_no_planted_secret_survives(coding: str, writing: str, value: bytes, side: Side) -> None:
    """C-09, T-K6: every writing under every coding, in requests and in answers."""
    plain = WRITINGS[writing](value)
    fields = (*JSON, (b"content-encoding", coding.encode())) if coding else JSON
    kept = redactor(value).body(ENCODERS[coding](plain), fields, side)
    assert kept.redactions
    assert kept.withheld is None
    assert not traces(value, kept.content)
    assert len(kept.content) == len(plain)
    assert kept.decoded is bool(coding)
    json.loads(kept.content)


def test_json_and_form_fields() -> None:
    """T-K1: JSON `api_key`, form `client_secret`, whatever their value."""
    kept = redactor().body(b'{"api_key": "a-b-c-d", "model": "m"}', JSON, Side.REQUEST)
    assert kept.content == b'{"api_key": "_2T.xx_", "model": "m"}'
    kept = redactor().body(urlencode({"client_secret": "s3cr3t!", "grant_type": "x"}).encode(), FORM, Side.REQUEST)
    assert b"s3cr3t" not in kept.content
    assert kept.content.endswith(b"&grant_type=x")


def test_a_form_served_as_json_stays_json() -> None:
    """K: a placeholder is safe in JSON."""
    body = json.dumps({"access_token": 'tök"en-0123456789-abcdefgh', "n": [1]}).encode()
    assert json.loads(redactor().body(body, JSON, Side.RESPONSE).content)["n"] == [1]


UNTOUCHED: list[tuple[bytes, Fields]] = [
    (json.dumps({"id": "toolu_01A09q90qw90lq917835lq9", "call_id": "call_0a1B2c3D4e5F6g7H8i9J0kLm"}).encode(), JSON),
    (json.dumps({"type": "thinking", "signature": base64.b64encode(random.Random(1).randbytes(900)).decode()}).encode(), JSON),
    (json.dumps({"encrypted_content": base64.urlsafe_b64encode(random.Random(2).randbytes(900)).decode()}).encode(), JSON),
    (json.dumps({"integrity": "sha512-" + base64.b64encode(random.Random(3).randbytes(64)).decode()}).encode(), JSON),
    (json.dumps({"source": {"type": "base64", "data": base64.b64encode(random.Random(4).randbytes(60_000)).decode()}}).encode(), JSON),
    (json.dumps({"url": "data:image/png;base64," + base64.b64encode(random.Random(5).randbytes(20_000)).decode()}).encode(), JSON),
    (b"PK\x03\x04" + random.Random(6).randbytes(5000), ((b"content-type", b"application/octet-stream"),)),
    (b"\x89PNG" + random.Random(9).randbytes(5000), ((b"content-type", b"image/png"),)),
    (gzip.compress(b"tar" + KEY), ((b"content-type", b"application/x-tar"), (b"content-encoding", b"gzip"))),
    (bytes(range(256)) * 3, ()),
    (b"", JSON),
]


@pytest.mark.parametrize(("content", "fields"), UNTOUCHED)
@pytest.mark.parametrize("side", Side)
def test_protocol_values_images_and_wheels_are_untouched(content: bytes, fields: Fields, side: Side) -> None:
    """T-K4, T-E1, T-E6: byte for byte."""
    kept = redactor(KEY).body(content, fields, side)
    assert (kept.content, kept.redactions, kept.decoded, kept.withheld) == (content, (), False, None)


@pytest.mark.parametrize("media", [b"application/zip", b"image/png", b"application/octet-stream"])
def test_what_is_no_text_is_searched_for_what_cannot_stand_there_by_chance(media: bytes) -> None:
    """T-K1, T-K4: a known value of 16 bytes or more, as it is, in whatever body; the rest stays byte for byte, at its place."""
    content = b"PK\x03\x04\x00\xff" + KEY + b"\xfe"
    fields = ((b"content-type", media),)
    for side in Side:
        kept = redactor(KEY).body(content, fields, side)
        assert not traces(KEY, kept.content)
        assert (len(kept.content), kept.content[:6], kept.content[-1:]) == (len(content), content[:6], b"\xfe")
        assert [(one.place, one.start, one.stop) for one in kept.redactions] == [("binary", 6, 6 + len(KEY))]


@pytest.mark.parametrize("value", [b"hunter2-abcdef9", b"correct-horse-x"])
def test_short_values_are_left_where_no_text_is(value: bytes) -> None:
    """T-K4: fifteen bytes may be a word of a served archive; on its way out an upload is searched for them all the same."""
    content, fields = b"\x89PNG\x00" + value, ((b"content-type", b"image/png"),)
    known = Redactor([Known("password", value)], key=b"k" * 32)
    assert known.body(content, fields, Side.RESPONSE).content == content
    assert value not in known.body(content, fields, Side.REQUEST).content


def test_thousands_of_random_signatures_hold_no_key() -> None:
    """T-K4: shapes are not found in base64 by chance."""
    noise = base64.b64encode(random.Random(7).randbytes(600_000)).decode()
    body = json.dumps({"parts": [noise[at : at + 64] for at in range(0, len(noise), 64)]}).encode()
    assert redactor(KEY).body(body, JSON, Side.REQUEST).redactions == ()


def test_octet_stream_that_is_text_is_searched() -> None:
    """K: a server that does not say what it sends."""
    kept = redactor(KEY).body(b"token=" + KEY, ((b"content-type", b"application/octet-stream"),), Side.RESPONSE)
    assert not traces(KEY, kept.content)


def test_replay_with_another_key_matches() -> None:
    """T-K3, C-13: rotated to another length, in plain, in a URL and in JSON."""
    kept = []
    for value in (KEY, OTHER):
        one = redactor(value)
        body = json.dumps({"a": f"env: {value.decode()}", "b": json.dumps(value.decode())}).encode()
        head, _ = one.request(request(b"/x?api_key=" + value))
        kept.append((collapse(head.path), collapse(one.body(body, JSON, Side.REQUEST).content)))
    assert kept[0] == kept[1]


def test_replay_with_a_dummy_key_matches() -> None:
    """C-13: a dummy without the public prefix is of the kind of its variable."""
    real, dummy = redactor(KEY), redactor(b"dummy-key-of-secondtake-0")
    body = b'{"env":"ANTHROPIC_API_KEY=%s","api_key":"%s"}'
    kept = [collapse(one.body(body.replace(b"%s", value), JSON, Side.REQUEST).content)
            for one, value in ((real, KEY), (dummy, b"dummy-key-of-secondtake-0"))]  # fmt: skip
    assert kept[0] == kept[1]


def test_a_value_learned_in_a_head_is_found_in_bodies() -> None:
    """DESIGN 4: every value seen in a credential field; agents leak their own key through `env`."""
    one = redactor()
    one.request(request(fields=((b"authorization", b"Bearer opaque-corp-token-1"),)))
    for side in Side:
        assert b"opaque-corp" not in one.body(b'{"out":"T=opaque-corp-token-1"}', JSON, side).content


def test_a_word_in_a_guessed_field_is_not_cut_out_of_texts() -> None:
    """`x-model-key: claude-opus` hides that field; the agent still sees the word elsewhere."""
    one = redactor()
    one.request(request(fields=((b"x-model-key", b"claude-opus-large"), (b"cookie", b"theme=solarized-dark"))))
    text = b'{"m":"claude-opus-large solarized-dark"}'
    assert one.body(text, JSON, Side.RESPONSE).content == text


def test_a_login_answer_is_learned_and_withheld() -> None:
    """DESIGN 3, 4: auth bodies are not stored; their tokens are known from then on."""
    one = redactor()
    body = b'{"token_type":"Bearer","expires_in":3600,"access_token":"mF_9.B5f-4.1JqM-zz","account":{"email":"a@b.example"}}'
    kept = one.withhold_auth(body, JSON)
    told = json.loads(kept.content)
    assert len(kept.content) == len(body)
    assert (told["token_type"], told["expires_in"]) == ("Bearer", 3600)
    assert b"mF_9" not in kept.content
    assert b"a@b.example" not in kept.content
    assert b"mF_9" not in one.body(b"x mF_9.B5f-4.1JqM-zz", JSON, Side.REQUEST).content


@pytest.mark.parametrize(
    ("content", "fields"),
    [
        (b"<html>code 1234</html>", ((b"content-type", b"text/html"),)),
        (b"\x00\x01binary", ()),
        (b"eyJ.plain.text token", ((b"content-type", b"text/plain"),)),
    ],
)
def test_a_login_body_of_no_known_form_is_withheld(content: bytes, fields: Fields) -> None:
    """Fails closed."""
    kept = redactor().withhold_auth(content, fields)
    assert kept.withheld
    assert is_placeholder(kept.content)


def test_a_login_form_keeps_its_names() -> None:
    """C4: OAuth bodies."""
    kept = redactor().withhold_auth(b"grant_type=refresh_token&refresh_token=r-1&client_id=cid-0123456", FORM, Side.REQUEST)
    assert kept.content.startswith(b"grant_type=refresh_token&refresh_token=xxx&client_id=_2T.aut")


# ---- failing ----


def test_a_failing_detector_withholds_the_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """C-10: fails closed, marked, never open; two different bodies stay different."""

    def broken(content: bytes) -> list[object]:
        raise RuntimeError("boom")

    monkeypatch.setattr(places, "signed_urls", broken)
    one = redactor(KEY)
    first, second = (one.body(KEY + tail, JSON, Side.REQUEST) for tail in (b"1", b"2"))
    assert first.withheld == "the redactor failed: RuntimeError"
    assert not traces(KEY, first.content)
    assert first.content != second.content
    assert collapse(first.content) == first.content


def test_a_bomb_is_withheld() -> None:
    """C-17, B-11: over a cap nothing is kept, and it costs little."""
    bomb = gzip.compress(bytes(4 * 1024 * 1024))
    kept = redactor(KEY).body(bomb, (*JSON, (b"content-encoding", b"gzip")), Side.RESPONSE)
    assert kept.withheld
    assert len(kept.content) == 32


def test_an_unknown_coding_is_withheld_unless_it_is_text() -> None:
    """What cannot be read cannot be judged; a wrong label on plain text is common and harmless."""
    fields = (*JSON, (b"content-encoding", b"x-secret"))
    assert redactor(KEY).body(b"\x00\xff\xfe" + KEY, fields, Side.RESPONSE).withheld
    kept = redactor(KEY).body(b'{"a":"' + KEY + b'"}', fields, Side.RESPONSE)
    assert not kept.withheld
    assert not kept.decoded
    assert not traces(KEY, kept.content)


def test_a_compressed_body_cut_short_is_searched_as_far_as_it_goes() -> None:
    """T-B4: a reset in the middle."""
    whole = gzip.compress(b'{"a":"' + KEY + b'"}' + random.Random(8).randbytes(9000).hex().encode())
    kept = redactor(KEY).body(whole[:-2000], (*JSON, (b"content-encoding", b"gzip")), Side.RESPONSE)
    assert kept.decoded
    assert not traces(KEY, kept.content)
    assert kept.content.startswith(b'{"a":"sk-ant')
    assert kept.described(((b"content-encoding", b"gzip"), *JSON)) == JSON


def test_without_a_hit_a_compressed_body_stays_as_it_was() -> None:
    """E: exactly the bytes of the wire."""
    body = gzip.compress(b'{"a":"b"}')
    kept = redactor(KEY).body(body, (*JSON, (b"content-encoding", b"gzip")), Side.RESPONSE)
    assert kept.content is body
    assert not kept.decoded


# ---- properties ----

alphabet = st.sampled_from(
    [
        KEY,
        ODD,
        b"ghp_0123456789abcdefghijklmnopqrstuvwxyz",
        b'"api_key":"',
        b'"',
        b"{",
        b"}",
        b"\\",
        b"\\u002d",
        b"?key=",
        b"%2D",
        b"&",
        b"=",
        b"https://u:",
        b"@h/",
        b'\\"access_token\\": \\"abcdef\\"',
        b"_2T.ant_",
        b"sk-",
        b"eyJ",
        b" ",
        base64.b64encode(KEY),
        base64.b64encode(b"ab" + ODD),
        quote(ODD, safe="").encode(),
        b"x",
        b"\xff",
    ]
)
soup = st.lists(alphabet, max_size=14).map(b"".join)
known = st.sampled_from([(), (KEY,), (KEY, ODD)])


@given(soup, known, st.sampled_from(Side), st.sampled_from([JSON, FORM, ()]))
@settings(max_examples=100)
def test_redacting_a_body_is_idempotent_deterministic_and_length_preserving(
    content: bytes, values: tuple[bytes, ...], side: Side, fields: Fields
) -> None:
    """C-10."""
    one = redactor(*values)
    kept = one.body(content, fields, side)
    assert kept.withheld is None
    assert len(kept.content) == len(content)
    assert one.body(kept.content, fields, side).content == kept.content
    assert redactor(*values).body(content, fields, side) == kept
    if fields or side is Side.REQUEST:
        assert not any(value in kept.content for value in values)
    for mark in kept.redactions:
        assert 0 <= mark.start < mark.stop <= len(content)


@given(st.lists(st.tuples(st.sampled_from([b"authorization", b"x-a", b"cookie", b"Location", b"x-secret"]), soup), max_size=4), soup, known)
@settings(max_examples=60)
def test_redacting_a_head_is_idempotent_and_length_preserving(
    fields: list[tuple[bytes, bytes]], path: bytes, values: tuple[bytes, ...]
) -> None:
    """C-10, T-K1."""
    one = redactor(*values)
    head = request(b"/" + path, tuple(fields))
    kept, _ = one.request(head)
    assert [(name, len(value)) for name, value in kept.fields] == [(name, len(value)) for name, value in fields]
    assert len(kept.path) == len(head.path)
    assert one.request(kept)[0] == kept
    for value in values:
        assert not any(value in text for _, text in kept.fields)
        assert value not in kept.path


@given(st.binary(max_size=2000), st.sampled_from(Side), st.sampled_from([JSON, FORM, ()]))
def test_arbitrary_bytes_never_break_it(content: bytes, side: Side, fields: Fields) -> None:
    """B4.8: a parser edge."""
    one = redactor(KEY)
    assert one.body(content, fields, side).withheld is None
    one.withhold_auth(content, fields, side)


@given(st.text(max_size=200))
def test_messages_keep_their_length_of_text(text: str) -> None:
    """`text` is for people and never fails."""
    assert redactor(KEY).text(text + KEY.decode()).find(KEY.decode()) < 0


def test_messages_hide_what_they_quote() -> None:
    """DESIGN 4: reports and logs pass the same redactor."""
    text = redactor().text(f"GET https://u:p@ss-99@h/x?api_key=abcdefgh1 failed, authorization: Bearer tok-1, {KEY.decode()}")
    assert "p@ss" not in text
    assert "abcdefgh1" not in text
    assert "tok-1" not in text
    assert KEY.decode() not in text
    assert text.startswith("GET https://u:")


def test_the_forwarder_uses_the_same_table() -> None:
    """T-K7: every field the table names is hidden; a forwarder asks the same `header_kind`."""
    one = redactor()
    for name in secrets.HEADERS:
        kept, _ = one.request(request(fields=((name, b"sid=0123-a-value-of-its-own"),)))
        assert b"value-of-its-own" not in kept.fields[0][1], name


def test_what_is_learned_is_bounded_and_the_environment_stays() -> None:
    """T-J3: session cookies and signatures come new with each connection; the set searched for must not grow with them."""
    one = redactor(KEY)
    for at in range(3 * limits.LEARNED_VALUES):
        one.request(request(fields=((b"authorization", b"Bearer token-number-%06d-abcdef" % at),)))
    newest = b"token-number-%06d-abcdef" % (3 * limits.LEARNED_VALUES - 1)
    assert len(one.needles.known) == limits.LEARNED_VALUES + 1
    assert not traces(KEY, one.body(b"x " + KEY, JSON, Side.RESPONSE).content)
    assert newest not in one.body(b"x " + newest, JSON, Side.RESPONSE).content


def test_signatures_are_hidden_and_not_remembered() -> None:
    """C4: SigV4 changes with every request."""
    one = redactor()
    value = b"AWS4-HMAC-SHA256 Credential=AKIAQRSTUVWXYZ234567/20260101/r/s3/aws4_request, Signature=" + b"0a1b" * 16
    kept, _ = one.request(request(b"/o?X-Amz-Signature=" + b"9f8e" * 16, ((b"authorization", value),)))
    assert b"0a1b" not in kept.fields[0][1]
    assert b"9f8e" not in kept.path
    assert list(one.needles.known) == [b"AKIAQRSTUVWXYZ234567"]


HOSTILE = [
    (b'name="password"\n', (b"content-type", b"multipart/form-data; boundary=x")),
    (b'name="password"\r\n\r\n', (b"content-type", b"multipart/form-data; boundary=x")),
    (b"-----BEGIN A A A A PRIVATE KEY-----", JSON[0]),
    (b'"password":"', JSON[0]),
    (b'\\"password\\":\\"', JSON[0]),
    (b"\\u0041\\", JSON[0]),
    (b"%2525", JSON[0]),
    (b"://a:b", JSON[0]),
    (b"?api_key=", FORM[0]),
    (b"_2T.", JSON[0]),
    (b"eyJaaaaaaaaaaa.", JSON[0]),
]


@pytest.mark.parametrize(("unit", "field"), HOSTILE)
@pytest.mark.parametrize("side", Side)
def test_work_grows_with_the_length_and_not_with_its_square(unit: bytes, field: tuple[bytes, bytes], side: Side) -> None:
    """B4.8: a body made to be slow to search costs about as much per byte when it is sixteen times as long."""
    spent = []
    for size in (4_000, 64_000):
        content, tries = unit * (size // len(unit)), []
        for _ in range(2):
            one = redactor(ODD)
            began = time.process_time()
            one.body(content, (field,), side)
            tries.append(time.process_time() - began)
        spent.append(min(tries))
    assert spent[1] < 16 * 5 * spent[0] + 0.02


def test_more_credentials_than_are_listed_withhold_the_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """B-11: bounded; nothing of it is kept."""
    monkeypatch.setattr(limits, "REDACTIONS", 10)
    assert redactor(KEY).body((KEY + b" ") * 10, JSON, Side.RESPONSE).withheld is None
    assert redactor(KEY).body((KEY + b" ") * 11, JSON, Side.RESPONSE).withheld == "more than 10 credentials in one place"


@pytest.mark.parametrize("coding", ENCODERS)
@pytest.mark.parametrize("live_value", [OTHER, b"secondtake-replay-anthropic-api-key"])
def test_the_key_of_a_request_survives_a_rotated_key(coding: str, live_value: bytes) -> None:
    """T-K3, T-K6, C-13, B4.9: match(redact(x)) is the same on both sides, under any coding, with another key or none."""
    fields = (*JSON, (b"content-encoding", coding.encode())) if coding else JSON

    def key(value: bytes) -> bytes:
        one = redactor(value)
        body = json.dumps(
            {"model": "m", "messages": [{"role": "user", "content": f"ANTHROPIC_API_KEY={value.decode()}\n"}], "api_key": value.decode()}
        )
        head, _ = one.request(request(b"/v1/messages?api_key=" + value, fields))
        kept = one.body(ENCODERS[coding](body.encode()), fields, Side.REQUEST)
        return request_keys(replace(head, fields=kept.described(head.fields)), kept.content).normal

    assert key(KEY) == key(live_value)


def test_the_key_of_a_request_tells_ordinary_values_apart() -> None:
    """A: `?key=` of a service that is no credential, and two bodies that could not be read."""
    one = redactor(KEY)
    paths = (b"/kv?key=config/production/settings", b"/kv?key=config/production/databases", b"/kv?key=user_1", b"/kv?key=user_2")
    assert len({request_keys(one.request(request(path))[0], b"").normal for path in paths}) == 4
    opaque = (*JSON, (b"content-encoding", b"x-own"))
    bodies = [one.body(b"\x00\xff" + tail, opaque, Side.REQUEST).content for tail in (b"1", b"2")]
    assert len({request_keys(request(fields=JSON), body).normal for body in bodies}) == 2
