"""Where credentials stand by place."""

import json
from urllib.parse import urlencode

import pytest

from secondtake.cassettes import places
from secondtake.cassettes.kinds import OPAQUE
from secondtake.cassettes.needles import Hit

PAT = b"ghp_0123456789abcdefghijklmnopqrstuvwxyz"


def cut(text: bytes, hits: list[Hit]) -> list[bytes]:
    return [text[hit.start : hit.stop] for hit in hits]


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        (b"Authorization", b"Bearer abc.def", [b"abc.def"]),
        (b"authorization", b"token " + PAT, [PAT]),
        (b"authorization", b"Basic dXNlcjpwYXNz", [b"dXNlcjpwYXNz"]),
        (b"authorization", b"raw-value-without-scheme", [b"raw-value-without-scheme"]),
        (b"Authorization", b"  Bearer   abc  ", [b"abc"]),
        (b"x-api-key", b"k1", [b"k1"]),
        (b"cookie", b'a=1; b="two"; flag; c=3=4', [b"1", b"two", b"flag", b"3=4"]),
        (b"Set-Cookie", b"sid=abc; Path=/; HttpOnly; Max-Age=10", [b"abc"]),
        (b"set-cookie", b"sid=; Expires=Thu, 01 Jan 1970 00:00:00 GMT", []),
        (
            b"authorization",
            b"AWS4-HMAC-SHA256 Credential=AKIAQRSTUVWXYZ234567/20260101/r/s3/aws4_request, SignedHeaders=host, Signature=0a0b0c",
            [b"AKIAQRSTUVWXYZ234567", b"0a0b0c"],
        ),
        (b"authorization", b'Digest username="u", nonce="n", response="6629fae49393"', [b"6629fae49393"]),
    ],
)
def test_the_credential_in_a_field_is_found_and_nothing_else(name: bytes, value: bytes, secret: list[bytes]) -> None:
    """T-K1: scheme words, cookie names and attributes, SigV4 scope stay readable."""
    kind = "cookie" if b"cookie" in name.lower() else "bearer-token"
    assert cut(value, list(places.field(name, value, kind))) == secret


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        (b"https://user:p@ssw0rd@host.example/x", [b"p@ssw0rd"]),
        (b"https://user:p@ss:w@rd@host.example:8443/x?y=@z", [b"p@ss:w@rd"]),
        (b"https://" + PAT + b"@host.example/r.git", [PAT]),
        (b"https://host.example/a@b:c@d", []),
        (b"/v1?key=AIzaSyA1234567890abcdefghijklmnopqrstuv&alt=sse", [b"AIzaSyA1234567890abcdefghijklmnopqrstuv"]),
        (b"/v1?API_KEY=abc&x=1;client_secret=d%20e", [b"abc", b"d%20e"]),
        (b"/o?X-Amz-Signature=" + b"ab" * 32 + b"&X-Amz-Date=20260101T000000Z", [b"ab" * 32]),
        (b"/cb#access_token=zzz&token_type=bearer", [b"zzz"]),
        (b"/kv?key=user_1&token=page2&state=open", []),
        (b"/plain", []),
    ],
)
def test_userinfo_and_query_credentials_of_a_url(url: bytes, secret: list[bytes]) -> None:
    """T-K1: `?key=`, userinfo with an `@` inside; an ordinary `?key=` is an ordinary value (A)."""
    assert cut(url, [hit for _, hit in places.url(url)]) == secret


def test_a_long_ordinary_value_under_an_ambiguous_name_is_opaque() -> None:
    """Hidden, but never taken for another value."""
    [(place, hit)] = places.url(b"/kv?key=config/production/settings")
    assert (place, hit.kind) == ("query:key", OPAQUE)


def test_basic_credentials_give_their_secret_parts() -> None:
    """K: the password inside is then found anywhere."""
    assert places.basic_parts(b"dXNlcjpwYXNz") == [b"pass"]
    assert places.basic_parts(b"eC1hY2Nlc3MtdG9rZW46c2VjcmV0LTEyMw==") == [b"secret-123"]
    assert places.basic_parts(b"not base64!") == []


LAYERS = [0, 1, 2, 3]


@pytest.mark.parametrize("layers", LAYERS)
@pytest.mark.parametrize("value", ["simple-value-1", 'with "quotes" and \\ slashes', "ends with \\", "tab\tnewline\n"])
def test_json_fields_are_found_at_every_depth_of_quoting(layers: int, value: str) -> None:
    """K: JSON in a string of JSON, as tool results quote it; the range is exact and the value is the value itself."""
    text = json.dumps({"a": 1, "client_secret": value, "z": "after"})
    for _ in range(layers):
        text = json.dumps({"text": text})
    [hit] = places.json_fields(text.encode(), served=False)
    written = json.dumps(value)[1:-1]
    for _ in range(layers):
        written = json.dumps(written)[1:-1]
    assert text.encode()[hit.start : hit.stop].decode() == written
    assert hit.value.decode() == value


@pytest.mark.parametrize(
    "name", ["api_key", "apiKey", "API-KEY", "access_token", "refreshToken", "id_token", "password", "SecretAccessKey"]
)
def test_json_names_in_any_spelling(name: str) -> None:
    """C4: the fields of login bodies, in snake, camel and kebab case."""
    assert len(list(places.json_fields(json.dumps({name: "value-0123456789"}).encode(), served=False))) == 1


@pytest.mark.parametrize(
    "text", [b'{"token":"the","logprob":-0.1}', b'{"password":{"type":"string"}}', b'{"api_key":""}', b'{"max_tokens":5}']
)
def test_ordinary_json_is_left_alone(text: bytes) -> None:
    """Token probabilities and schemas are not credentials."""
    assert not list(places.json_fields(text, served=False))


def test_malformed_json_is_searched_all_the_same() -> None:
    """K: a body cut short still holds what it held."""
    text = b'{"a": [1, {"access_token" : "tok-0123456789abcdef", '
    assert cut(text, list(places.json_fields(text, served=False))) == [b"tok-0123456789abcdef"]
    assert not list(places.json_fields(b'{"access_token": "never closed', served=False))


def test_what_an_agent_is_shown_keeps_its_examples() -> None:
    """An answer is acted on: documentation keeps `"password": "string"`; a token answer does not keep its token."""
    quoted = b'{\\"access_token\\":\\"abcdefghijklmnopqrstuv\\"}'
    served = b'{"password":"correct-horse-battery","access_token":"abcdefghijklmnopqrstuv","text":"' + quoted + b'"}'
    assert cut(served, list(places.json_fields(served, served=True))) == [b"abcdefghijklmnopqrstuv"]


def test_multipart_fields() -> None:
    """K: a form with parts."""
    part = b'--b\r\nContent-Disposition: form-data; name="%s"\r\nContent-Type: text/plain\r\n\r\n%s\r\n'
    text = part % (b"client_secret", b"top-secret") + part % (b"x", b"open") + b"--b--\r\n"
    assert cut(text, list(places.multipart_fields(text))) == [b"top-secret"]


def test_form_fields() -> None:
    """T-K1: form `client_secret`."""
    text = urlencode({"grant_type": "x", "client_secret": "s p@ce", "scope": "a b"}).encode()
    assert cut(text, [hit for _, hit in places.query(text, 0, len(text))]) == [b"s+p%40ce"]


@pytest.mark.parametrize("around", [b"%s", b"key=%s\n", b'"%s"', b"\\n%s\\n", b"\\u000a%s", b"export K=%s;", b"(%s)", b"https://h/%s?x"])
def test_a_key_is_known_by_its_shape_wherever_it_stands(around: bytes) -> None:
    """C4: prompts and tool results; the escape before it is not part of it."""
    text = around.replace(b"%s", PAT)
    assert cut(text, list(places.shaped(text))) == [PAT]


@pytest.mark.parametrize(
    "text",
    [
        b"toolu_01A09q90qw90lq917835lq9",
        b"call_abcdefghijklmnopqrstuvwx",
        b"sha512-Kz0r0Jb5pG0xG4Yq1rW0b7o3u2Yk1yWcU4qQ6eQ3xS3b3m2i8o1uYw==",
        b"msg_01XFDUDYJgAACzvnptvVoYEL",
        b"risk-assessment-task-force-number-one",
        b"npm_config_registry_and_more_names",
        b"xAKIAQRSTUVWXYZ234567",
    ],
)
def test_protocol_values_are_not_keys(text: bytes) -> None:
    """T-K4."""
    assert not list(places.shaped(text))


def test_a_private_key_block_is_found() -> None:
    """C4: what lies between the armour lines."""
    text = b"-----BEGIN OPENSSH PRIVATE KEY-----\\nb3BlbnNzaC1rZXktdjEAAAAA\\n-----END OPENSSH PRIVATE KEY-----"
    assert cut(text, list(places.shaped(text))) == [b"\\nb3BlbnNzaC1rZXktdjEAAAAA\\n-----"[:-5]]


def test_urls_in_text() -> None:
    """C4: git remotes, pre-signed URLs; variables and templates stay."""
    text = b"origin https://me:p@ss-1@git.example/r.git and https://me:$TOKEN@git.example/ and https://h/x?a=1&access_token=abcdefgh12"
    assert cut(text, list(places.userinfo_in_text(text))) == [b"p@ss-1"]
    assert cut(text, list(places.queries_in_text(text))) == [b"abcdefgh12"]
    signed = b'"href":"https://s/o?X-Amz-Date=1\\u0026X-Amz-Signature=' + b"ab" * 32 + b'"'
    assert cut(signed, list(places.signed_urls(signed))) == [b"ab" * 32]


def test_a_login_body_keeps_only_its_shape() -> None:
    """DESIGN 3: bodies of logins are never stored; names, types and lifetimes may be."""
    text = b'{"token_type":"Bearer","expires_in":3600,"access_token":"a","x":["b",{"y":"c"}],"scope":"repo"}'
    assert cut(text, list(places.auth_strings(text))) == [b"a", b"b", b"c"]


def test_fields_quoted_in_a_message() -> None:
    """Logs and errors pass the same rules."""
    text = b"upstream said 401 for authorization: Bearer abc123"
    assert cut(text, list(places.lines(text))) == [b"abc123"]
