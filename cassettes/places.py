"""Where credentials stand by place: in a field, a query, a URL, a JSON or form field. Returns ranges, changes nothing.

Bodies are never parsed and written anew: one pass of a regular expression finds the names, and a range is the bytes between two
quotes, so that malformed JSON, JSON inside JSON and text that only quotes JSON are all handled alike.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote_to_bytes

from secondtake.cassettes.kinds import LEADS, OPAQUE, WHOLE, looks_random, value_kind
from secondtake.cassettes.needles import Hit
from secondtake.cassettes.placeholder import is_placeholder
from secondtake.cassettes.secrets import AUTH_BODY_PLAIN, BODY, DOCUMENTED, QUERY, QUERY_PERHAPS, header_kind
from secondtake.cassettes.stretches import Stretches
from secondtake.cassettes.tokens import is_public_url
from secondtake.cassettes.views import unescaped

VALUE_BYTES = 256 * 1024
"""A JSON string longer than this is not a credential."""

FORM = {**BODY, **QUERY}
"""Names of form fields."""
_SCHEME = re.compile(rb"\s*([A-Za-z][A-Za-z0-9._-]{0,39})[ \t]+(?=\S)")
_SIGV4 = re.compile(rb"Credential=([^/,\s]+)|Signature=([0-9a-fA-F]+)")
_PARAMETER = re.compile(rb'(response|cnonce|oauth_token|oauth_signature|oauth_consumer_key|signature|token)="([^"]*)"', re.IGNORECASE)
_GENERIC_USERS = frozenset(b"x-access-token x-oauth-basic oauth2 git __token__ api apikey token user".split()) | {b""}


def _hit(value: bytes, start: int, stop: int, kind: str) -> Iterator[Hit]:
    part = value[start:stop]
    if part and not is_placeholder(part):
        yield Hit(start, stop, value_kind(part) or kind, part)


def field(name: bytes, value: bytes, kind: str) -> Iterator[Hit]:
    """The credential in the value of a field whose name says it holds one. The scheme word, cookie names and attributes stay."""
    lower = name.lower()
    if lower.startswith(b"cookie"):
        yield from cookies(value, kind)
    elif lower.startswith(b"set-cookie"):
        yield from cookies(value.partition(b";")[0], kind)
    else:
        yield from _authorization(value, kind)


def cookies(value: bytes, kind: str = "cookie") -> Iterator[Hit]:
    """Each cookie's value; a cookie without `=` is all value."""
    at = 0
    for pair in value.split(b";"):
        name, equals, inner = pair.partition(b"=")
        begin = at + len(name) + len(equals) if equals else at
        inner = inner if equals else name
        begin += len(inner) - len(inner.lstrip())
        inner = inner.strip()
        if len(inner) >= 2 and inner[:1] == inner[-1:] == b'"':
            begin, inner = begin + 1, inner[1:-1]
        yield from _hit(value, begin, begin + len(inner), kind)
        at += len(pair) + 1


def _authorization(value: bytes, kind: str) -> Iterator[Hit]:
    scheme = _SCHEME.match(value)
    if scheme is None:
        begin = len(value) - len(value.lstrip())
        yield from _hit(value, begin, begin + len(value.strip()), kind)
        return
    word = scheme[1].lower()
    begin, stop = scheme.end(), len(value.rstrip())
    if word == b"basic":
        yield from _hit(value, begin, stop, "basic-credential")
    elif word.startswith(b"aws4-"):
        for found in _SIGV4.finditer(value):
            group = 1 if found[1] is not None else 2
            yield from _hit(value, *found.span(group), "aws-access-key-id" if group == 1 else "aws-signature")
    elif word in {b"digest", b"oauth", b"signature", b"hawk"}:
        parameters = [found.span(2) for found in _PARAMETER.finditer(value)]
        for span in parameters or [(begin, stop)]:
            yield from _hit(value, *span, kind)
    else:
        yield from _hit(value, begin, stop, kind)


def basic_parts(value: bytes) -> list[bytes]:
    """The secret parts of a Basic credential, base64 undone; none when it is not one."""
    try:
        decoded = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return []
    user, colon, password = decoded.partition(b":")
    if not colon:
        return []
    parts = [] if user.lower() in _GENERIC_USERS or (password and value_kind(user) is None) else [user]
    return parts + ([password] if password and password.lower() not in _GENERIC_USERS else [])


def query(text: bytes, start: int, stop: int, *, names: Mapping[bytes, str] = QUERY) -> Iterator[tuple[bytes, Hit]]:
    """The credentials among `name=value` pairs of `text[start:stop]`, with the name of each."""
    at = start
    for pair in re.split(rb"[&;]", text[start:stop]):
        name, equals, value = pair.partition(b"=")
        begin = at + len(name) + len(equals)
        at += len(pair) + 1
        if not value:
            continue
        key = unquote_to_bytes(name).strip().lower()
        kind = names.get(key)
        perhaps = QUERY_PERHAPS.get(key)
        if kind is None and perhaps is not None and len(value) >= 16:
            kind = perhaps if looks_random(value) else OPAQUE
        if kind is None or is_placeholder(value):
            continue
        plain = unquote_to_bytes(value.replace(b"+", b" ")) if b"%" in value else value
        yield key, Hit(begin, begin + len(value), value_kind(plain) or kind, plain)


def url(text: bytes) -> Iterator[tuple[str, Hit]]:
    """Userinfo and query credentials of one URL or origin-form target; `@` inside a password is part of it."""
    scheme = text.find(b"://")
    if scheme >= 0 and not re.search(rb"[/?#]", text[:scheme]):
        begin = scheme + 3
        end = re.compile(rb"[/?#]").search(text, begin)
        stop = end.start() if end else len(text)
        at = text.rfind(b"@", begin, stop)
        if at > begin:
            colon = text.find(b":", begin, at)
            first = begin if colon < 0 or colon + 1 == at else colon + 1
            for hit in _hit(text, first, at, "password"):
                yield "userinfo", hit
    mark = text.find(b"?")
    if mark >= 0:
        hash_at = text.find(b"#", mark)
        for key, hit in query(text, mark + 1, len(text) if hash_at < 0 else hash_at):
            yield f"query:{key.decode('ascii', 'replace')}", hit
    hash_at = text.find(b"#")
    if hash_at >= 0:  # the implicit grant answers in the fragment
        for key, hit in query(text, hash_at + 1, len(text)):
            yield f"query:{key.decode('ascii', 'replace')}", hit


# ---- bodies --------------------------------------------------------------------------------------------------------


def _names(names: Iterable[bytes]) -> bytes:
    """An alternation of `names`; where one has `_`, `-` or nothing may stand there too."""
    split = {name for name in names if b"_" in name}
    joined = {name.replace(b"_", b"") for name in split}
    alternatives = [name.replace(b"_", b"[_-]?") for name in split] + [name for name in names if name not in split | joined]
    alternatives.sort()
    alternatives.sort(key=len, reverse=True)
    return b"|".join(alternatives)


_JSON = re.compile(rb'"(' + _names(BODY) + rb')(\\*)"\s*:\s*(\\*)"', re.IGNORECASE)
_BY_BARE_NAME = {name.replace(b"_", b""): kind for name, kind in BODY.items()}
_SERVED_BYTES = 16
_MULTIPART = re.compile(rb'name="(' + _names(BODY) + rb')"[^\r\n]{0,1000}\r?\n(?:[^\r\n]{1,1000}\r?\n){0,8}\r?\n', re.IGNORECASE)
_SIGNED = re.compile(
    rb"(?:[?&;]|\\u0026)(x-amz-signature|x-amz-security-token|x-goog-signature|sig)=([A-Za-z0-9%_.~+/=-]{32,})", re.IGNORECASE
)
_SIGNED_KINDS = {b"x-amz-signature": "aws-signature", b"x-amz-security-token": "aws-session-token"}
_QUERY_TEXT = re.compile(rb"[?&](" + b"|".join(map(re.escape, QUERY)) + rb")=([^&\s\"'<>\\#{}$]{8,})", re.IGNORECASE)
_USERINFO = re.compile(rb"://([^/\s\"'<>\\@:]*):([^/\s\"'<>\\$(){}*]+)@[\w\[]")


def _closing(content: bytes, at: int, slashes: int) -> int:
    """Where the JSON string that began at `at` ends (its last byte + 1), `slashes` being what stands before its quotes; or -1."""
    period = 2 * (slashes + 1)
    quote = content.find(b'"', at, at + VALUE_BYTES)
    while quote >= 0:
        run = quote
        while run > at and content[run - 1] == 0x5C:
            run -= 1
        if (quote - run) % period == slashes:
            return quote - slashes
        quote = content.find(b'"', quote + 1, at + VALUE_BYTES)
    return -1


def json_fields(content: bytes, *, served: bool) -> Iterator[Hit]:
    """String values of credential names in JSON of any depth of quoting. In what is `served` to an agent, which acts on it, only
    what stands in the JSON itself, is long, and where the name is common in documentation looks like a credential.
    """
    for found in _JSON.finditer(content):
        slashes = len(found[2])
        begin, at = found.start(), found.end()
        if len(found[3]) != slashes or content[max(0, begin - slashes) : begin] != b"\\" * slashes or (served and slashes):
            continue
        stop = _closing(content, at, slashes)
        if stop <= at:
            continue
        kind = _BY_BARE_NAME[_bare(found[1])]
        if served and (stop - at < _SERVED_BYTES or (kind in DOCUMENTED and not looks_random(content[at:stop]))):
            continue
        for hit in _hit(content, at, stop, kind):
            yield Hit(at, stop, hit.kind, _unquoted(hit.value, slashes))


def _bare(name: bytes) -> bytes:
    return name.lower().replace(b"_", b"").replace(b"-", b"")


def _unquoted(value: bytes, slashes: int) -> bytes:
    """The value itself: as many layers of JSON escapes undone as its quotes show."""
    while b"\\" in value:
        view = unescaped(value)
        if view is None:
            break
        value = view.content
        if not slashes:
            break
        slashes >>= 1
    return value


def multipart_fields(content: bytes) -> Iterator[Hit]:
    """Values of credential names in multipart/form-data: up to the line that begins with `--`."""
    end = -1
    for found in _MULTIPART.finditer(content):
        begin = found.end()
        if end < begin:
            end = content.find(b"\n--", begin)
            if end < 0:
                break
        stop = end - 1 if content[end - 1 : end] == b"\r" else end
        if 0 < stop - begin <= VALUE_BYTES:
            yield from _hit(content, begin, stop, _BY_BARE_NAME[_bare(found[1])])


def signed_urls(content: bytes) -> Iterator[Hit]:
    """Signatures of pre-signed URLs written in text."""
    if b"ig=" not in content and b"ignature=" not in content and b"oken=" not in content:
        return
    for found in _SIGNED.finditer(content):
        yield from _hit(content, *found.span(2), _SIGNED_KINDS.get(found[1].lower(), "url-signature"))


def queries_in_text(content: bytes) -> Iterator[Hit]:
    """Query credentials of URLs written in text."""
    if b"?" in content:
        for found in _QUERY_TEXT.finditer(content):
            yield from _hit(content, *found.span(2), QUERY[found[1].lower()])


def userinfo_in_text(content: bytes) -> Iterator[Hit]:
    """Passwords of URLs written in text (`git remote -v` in a tool result)."""
    if b"@" not in content:
        return
    for found in _USERINFO.finditer(content):
        yield from _hit(content, *found.span(2), "password")


_TOKENS = Stretches(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-", 20)
_PEM = re.compile(rb"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY-----")
_PEM_BYTES = 16 * 1024
_BASE64_MORE = frozenset({b"+", b"/"})
_IN_BASE64 = frozenset({"google-api-key"})
"""Kinds without a character that base64 does not have: looked at only outside of it."""


def shaped(content: bytes) -> Iterator[Hit]:
    """Values that show by their shape what they are, whatever stands around them."""
    for start, _ in _TOKENS.find(content):
        begin = start
        if start and content[start - 1] == 0x5C:  # the n of \n, the u000a of \u000a
            begin += 5 if content[start : start + 1] == b"u" else 1
        if content[begin : begin + 3] not in LEADS:
            continue
        for kind, whole in WHOLE:
            value = whole.match(content, begin)
            if value is None:
                continue
            stop = value.end()
            after, before = content[stop : stop + 1], content[begin - 1 : begin] if begin else b""
            if after.isalnum() or (kind.name in _IN_BASE64 and (after in _BASE64_MORE or before in _BASE64_MORE)):
                continue
            yield from _hit(content, begin, stop, kind.name)
            break
    if b"PRIVATE KEY-----" in content:
        yield from _armoured(content)


def _armoured(content: bytes) -> Iterator[Hit]:
    """What stands between the lines that begin and end a private key."""
    end = -1
    for found in _PEM.finditer(content):
        begin = found.end()
        if end < begin:
            end = content.find(b"-----END", begin)
            if end < 0:
                break
        if 16 <= end - begin <= _PEM_BYTES:
            yield from _hit(content, begin, end, "private-key")


_STRING = re.compile(rb'"((?:[^"\\]|\\.)*)"(\s*:)?', re.DOTALL)


def auth_strings(content: bytes) -> Iterator[Hit]:
    """Every string value of a login's JSON but those whose name says they may stay readable, and URLs that only say where to go next."""
    name = b""
    for found in _STRING.finditer(content):
        if found[2] is not None:
            name = found[1].lower()
        elif name not in AUTH_BODY_PLAIN and not is_public_url(found[1].decode("latin-1")):
            yield from _hit(content, *found.span(1), _BY_BARE_NAME.get(_bare(name), "auth-body"))


_LINE = re.compile(rb"(?<![\w-])([A-Za-z][A-Za-z0-9-]{2,60}): ?")


def lines(content: bytes) -> Iterator[Hit]:
    """Credential fields quoted in a message: `authorization: Bearer …`, up to the end of the line."""
    done = 0
    for found in _LINE.finditer(content):
        kind = header_kind(found[1])
        begin = found.end()
        if kind is None or begin < done:
            continue
        end = content.find(b"\n", begin)
        done = len(content) if end < 0 else end
        for hit in field(found[1], content[begin:done], kind):
            yield Hit(begin + hit.start, begin + hit.stop, hit.kind, hit.value)


def form_values(content: bytes) -> Iterator[Hit]:
    """Every value of a form but those whose name says they may stay readable."""
    at = 0
    for pair in content.split(b"&"):
        name, equals, value = pair.partition(b"=")
        begin = at + len(name) + len(equals)
        at += len(pair) + 1
        key = name.strip().lower()
        if value.strip() and key not in AUTH_BODY_PLAIN and not is_placeholder(value.strip()):
            plain = unquote_to_bytes(value.strip())
            yield Hit(begin, begin + len(value.rstrip()), value_kind(plain) or FORM.get(key, "auth-body"), plain)
