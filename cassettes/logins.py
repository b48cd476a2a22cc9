"""Answers logins in replay and in a retake: the recorded answer with stand-ins for its secrets, or one made by the grant's shape.

What the store holds of a login has no secret in it, and placeholders where they stood. A client that parses its token needs better, so
each placeholder becomes a token of the same form and length (tokens.py), and each time is counted from now on: logged in, for long.
An answer whose body was withheld, and a login that was never recorded, are made by shape (grants.py). Nothing is asked of anybody.
A refresh is told to keep the refresh token it sent: the login on disk stays what it was. Recorded refusals stay refusals.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlencode

from secondtake.cassettes import limits
from secondtake.cassettes.content import plain
from secondtake.cassettes.errors import RecordedError
from secondtake.cassettes.exchange import Answer, Answered, Body, Bytes, Channel, Ending, Fields, Request, Source
from secondtake.cassettes.grants import BASE32, Reply, form_of, made
from secondtake.cassettes.misses import Miss, MissKind
from secondtake.cassettes.placeholder import MARK, PLACEHOLDER, placed
from secondtake.cassettes.served import Serve
from secondtake.cassettes.tokens import LIFETIME_S, TOKENS, letters, opaque, stand_in, web_token

UNRECORDED = 0
"""`Serve.seq` of an answer that no exchange gave."""

_TRANSIENT = frozenset((408, 425, 429))
_CHANGED = frozenset((b"content-length", b"content-encoding", b"etag", b"content-md5", b"digest", b"transfer-encoding", b"repr-digest"))
_SECONDS = re.compile(
    r"(?:(?:refresh|access|id|ext|session)_?(?:token_?)?)?expires_?in|refresh_?in|expires_?in_?seconds|lifetime", re.IGNORECASE
)
_UNTIL = re.compile(
    r"(?:.*_?)?(?:expires(?:_?(?:at|on))?|expir(?:y|ation)(?:_?(?:date|time))?|expire_?time|exp|expiresat)|not_?after", re.IGNORECASE
)
_SINCE = re.compile(r"(?:.*_?)?(?:issued_?at|created_?at|not_?before|nbf|iat|auth_?time|last_?updated)", re.IGNORECASE)
_ONLY_X = re.compile(r"x{1,4}")
_MILLISECONDS = 100_000_000_000
"""A time from here on is in milliseconds."""


def answer_locally(request: Request, content: bytes | None, found: Serve | Miss, *, now_s: int) -> Serve | None:
    """The answer to a login instead of what the player said of it; None where `found` stands.

    `content`: the live body as sent, None when it was too large. `now_s`: the client's clock, seconds since 1970. The body of the answer
    may repeat what the request itself sent (its refresh token, its state) and nothing else of it, so it is for this client only.
    """
    if found.channel is not Channel.AUTH:
        return None
    if isinstance(found, Miss):
        if found.kind in (MissKind.WS_REFUSED, MissKind.PUSH_REFUSED):
            return None
        return _by_shape(request, content, now_s)
    status = found.answer.status
    if status >= 400:
        again = found.answered is Answered.LOCAL and (status >= 500 or status in _TRANSIENT)
        return _by_shape(request, content, now_s) if again else None
    return _again(request, content, found, now_s) or _by_shape(request, content, now_s)


def _by_shape(request: Request, content: bytes | None, now_s: int) -> Serve | None:
    reply = made(request, content, now_s=now_s)
    return None if reply is None else _serve(reply)


def _serve(reply: Reply) -> Serve:
    fields: Fields = (*reply.fields, (b"Content-Length", b"%d" % len(reply.body)))
    answer = Answer(reply.status, fields=fields, body=Body(size_bytes=len(reply.body)), synthetic=True)
    notes = (f"a login answered {reply.note}: none was recorded that could be",)
    return Serve(answer, Bytes(reply.body), Ending.COMPLETE, Answered.LOCAL, UNRECORDED, False, notes, channel=Channel.AUTH)


def _again(request: Request, content: bytes | None, found: Serve, now_s: int) -> Serve | None:
    """The recorded answer, filled in. None when its body cannot be read."""
    answer = found.answer
    sent = form_of(request, content)
    fields = tuple((name, _location(value, sent) if name.lower() == b"location" else _bare(name, value)) for name, value in answer.fields)
    if found.body.size_bytes == 0 or request.method == "HEAD":
        filled = None
    elif found.body.size_bytes > limits.BODY_IN_MEMORY_BYTES:
        return None
    else:
        told = (found.details or {}).get(TOKENS)
        filling = _Filling(now_s, sent, told if isinstance(told, Mapping) else {})
        try:
            read = plain(found.body.read(0, found.body.size_bytes), answer.fields)
        except RecordedError:
            return None
        filled = None if read is None else filling.body(read)
        if filled is None:
            return None
    body: Source = found.body
    if filled is not None:
        fields = (*((name, value) for name, value in fields if name.lower() not in _CHANGED), (b"Content-Length", b"%d" % len(filled)))
        body = Bytes(filled)
    answer = replace(answer, fields=fields, interim=(), trailers=(), body=Body(size_bytes=body.size_bytes), synthetic=True)
    notes = (f"a login answered as exchange {found.seq}, with stand-ins for its secrets",)
    return Serve(answer, body, Ending.COMPLETE, Answered.LOCAL, found.seq, found.reused, notes, channel=Channel.AUTH)


def _location(value: bytes, sent: Mapping[str, str]) -> bytes:
    """A redirect with a code: the state that was sent, a code of ours."""
    start, mark, query = value.partition(b"?")
    if MARK not in query:
        return _bare(b"location", value)
    parts = []
    for pair in query.split(b"&"):
        name, equals, inner = pair.partition(b"=")
        if MARK in inner:
            word = name.decode("utf-8", "replace")
            inner = quote(sent.get(word) or opaque(word, len(unquote_to_bytes(inner))).decode(), safe="").encode()
        parts.append(name + equals + inner)
    return start + mark + b"&".join(parts)


def _bare(name: bytes, value: bytes) -> bytes:
    """A field without placeholders: a stand-in where each stood."""
    word = name.decode("latin-1").lower()
    return PLACEHOLDER.sub(lambda mark: opaque(word, len(mark[0])), value) if MARK in value else value


@dataclass(frozen=True, slots=True)
class _Filling:
    """Puts stand-ins into the body of one answer. `told`: what the recording says of its tokens, by place."""

    now_s: int
    sent: Mapping[str, str]
    told: Mapping[str, object]

    def body(self, content: bytes) -> bytes | None:
        """A JSON or a form body filled in; any other that holds no placeholder as it is; None otherwise."""
        text = content.decode("utf-8", "replace").strip()
        if text[:1] in ("{", "["):
            try:
                return json.dumps(self.value("", "", json.loads(text), frozenset()), separators=(",", ":")).encode()
            except (ValueError, RecursionError):
                return None
        if re.fullmatch(r"[\w.%+-]+=[^\s<>]*", text):
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=limits.FIELD_COUNT)
            beside = frozenset(name for name, _ in pairs)
            return urlencode([(name, self.text(name, name, value, beside)) for name, value in pairs]).encode()
        return None if MARK in content else content

    def value(self, name: str, place: str, value: object, beside: frozenset[str]) -> object:
        match value:
            case dict():
                names = frozenset(value)
                return {key: self.value(key, f"{place}.{key}" if place else key, one, names) for key, one in value.items()}
            case list():
                return [self.value(name, f"{place}[{index}]", one, beside) for index, one in enumerate(value)]
            case bool():
                return value
            case int() | float():
                return self.number(name, value)
            case str():
                return self.text(name, place, value, beside)
            case _:
                return value

    def number(self, name: str, value: float) -> float:
        if _SECONDS.fullmatch(name):
            return value if value <= 0 else LIFETIME_S
        if value > 0 and (moment := self.moment(name)) is not None:
            return moment * 1000 if value >= _MILLISECONDS else moment
        return value

    def moment(self, name: str) -> int | None:
        """When this is, if it is a time."""
        if _UNTIL.fullmatch(name):
            return self.now_s + LIFETIME_S
        return self.now_s if _SINCE.fullmatch(name) else None

    def text(self, name: str, place: str, value: str, beside: frozenset[str]) -> str:
        if _SECONDS.fullmatch(name):
            return str(LIFETIME_S)
        moment = self.moment(name)
        if moment is not None:
            return _moment(value, moment)
        hidden = placed(value.encode("utf-8", "replace"))
        if not hidden and not _ONLY_X.fullmatch(value):
            return value
        return self.token(name, place, value, beside)

    def token(self, name: str, place: str, value: str, beside: frozenset[str]) -> str:
        """What stands for a value that was hidden. Its length, its public beginning and its name say of what form."""
        word = name.lower().replace("_", "").replace("-", "")
        start = value.partition(MARK.decode())[0]
        if word == "refreshtoken":
            own = self.sent.get("refresh_token") or self.sent.get("refreshToken")
            if own:
                return own
        told = self.told.get(place)
        if isinstance(told, Mapping) or start == "eyJ" or word in ("idtoken", "jwt"):
            told = told if isinstance(told, Mapping) else None
            return web_token(place, told, now_s=self.now_s, size_bytes=len(value)).decode()
        if word == "accesskeyid":
            return "ASIA" + letters(place, 16, BASE32).decode()
        if word in ("secretaccesskey", "secretkey"):
            return letters(place, len(value)).decode()
        if word == "code" and not beside.isdisjoint(("AccessKeyId", "LastUpdated")):
            return "Success"
        if start:
            return opaque(place, len(value), prefix=start.encode("utf-8", "replace")).decode("utf-8", "replace")
        return stand_in(name, value)


_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_ISO_BYTES = 19


def _moment(value: str, moment: int) -> str:
    """A time in the form `value` has, or had as far as its length tells: digits, or ISO 8601."""
    hidden = bool(placed(value.encode("utf-8", "replace"))) or _ONLY_X.fullmatch(value) is not None
    iso = _ISO.fullmatch(value)
    if iso is not None or (hidden and len(value) >= _ISO_BYTES):
        part = ".000" if iso is not None and iso[1] else ""
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S") + part + "Z"
    if hidden or value.isdigit():
        return str(moment * 1000 if len(value) in (13, 14) else moment)
    return value
