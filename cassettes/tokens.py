"""Tokens that stand in for real ones: as long, with the same public beginning, parsed by the same clients, worth nothing to anybody.

Two halves. While recording, `described` says of a token (RFC 7519) what may be kept: its header, its public claims, its sizes; everything
personal in it becomes a stand-in of the same form. In replay, `web_token` and `opaque` make one. Deterministic: a value depends on its
name and form, never on the one it stands for, so that it can be no oracle for guessing.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from uuid import UUID

from secondtake.cassettes.content import plain
from secondtake.cassettes.exchange import Fields
from secondtake.cassettes.kinds import PREFIX, looks_random, value_kind

TOKENS = "tokens"
"""The name in `Exchange.details` under which a recording keeps `tokens_in`."""

LIFETIME_S = 20 * 24 * 3600
"""How long a stand-in says it lasts. Longer than any run; below 2^31 ms, beyond which a timer of Node fires at once."""

WORD = b"secondtake"
SIGNATURE_BYTES = 342
"""Length of a signature nothing is known of: RS256 with 2,048 bits, written in base64."""

TOKEN_BYTES = 16 * 1024
"""A longer token is not looked into."""
_DEPTH = 5
_ITEMS = 64
_TEXT = 256

TIMES = frozenset(("iat", "nbf", "exp", "auth_time", "updated_at", "rat"))
PUBLIC = frozenset(
    (
        "iss", "aud", "azp", "client_id", "cid", "appid", "scope", "scp", "scopes", "token_use", "token_type", "typ", "ver", "version",
        "acr", "amr", "idtyp", "gty", "chatgpt_plan_type",
    )
)  # fmt: skip
"""Claims that say what a token is for, not whose it is (RFC 7519 4.1, RFC 9068 2.2). Their values are kept."""

_BASE64 = re.compile(rb"[A-Za-z0-9_-]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_HEADER = {"alg": "RS256", "typ": "JWT"}


# ---- what a token is, while recording ------------------------------------------------------------------------------


def described(token: bytes) -> dict[str, object] | None:
    """What may be kept of a signed JSON Web Token: `header`, `claims` without a person in them, `signature` in bytes. None of another."""
    parts = token.split(b".")
    if len(token) > TOKEN_BYTES or len(parts) != 3:
        return None
    header, claims = _decoded(parts[0]), _decoded(parts[1])
    if header is None or claims is None:
        return None
    kept = {name: value for name, value in header.items() if name in ("alg", "typ") and isinstance(value, str) and _fits(value, 16)}
    return {"header": kept, "claims": _public(claims, _DEPTH), "signature": len(parts[2])}


def payload(token: bytes) -> dict[str, object] | None:
    """The claims of a JSON Web Token, unchecked and as they are: for looking something up, never for keeping. None of another."""
    parts = token.split(b".")
    return _decoded(parts[1]) if len(token) <= TOKEN_BYTES and len(parts) == 3 else None


def _decoded(part: bytes) -> dict[str, object] | None:
    if _BASE64.fullmatch(part) is None:
        return None
    try:
        found = json.loads(base64.urlsafe_b64decode(part + b"=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _public(claims: Mapping[str, object], depth: int) -> dict[str, object]:
    return {name: _claim(name, value, depth) for name, value in list(claims.items())[:_ITEMS] if _fits(name) and not _secret(name)}


def _claim(name: str, value: object, depth: int) -> object:
    match value:
        case None | bool():
            return value
        case int() | float():
            return 0
        case str():
            return value if name in PUBLIC and _fits(value) and not _secret(value) else stand_in(name, value)
        case dict() if depth:
            return _public(value, depth - 1)
        case list() if depth:
            return [_claim(name, one, depth - 1) for one in value[:_ITEMS]]
        case _:
            return None


def _fits(text: str, most: int = _TEXT) -> bool:
    """Whether a record can hold it: short, and no half of a surrogate pair, which JSON can write and UTF-8 cannot."""
    return len(text) <= most and not re.search("[\ud800-\udfff]", text)


def _secret(text: str) -> bool:
    return value_kind(text.encode("utf-8", "replace")) is not None


def tokens_in(content: bytes, fields: Fields) -> dict[str, object]:
    """Every web token in the JSON of a login's answer, by its place (`a.b[0]`), as `described` says it. Empty where there is none."""
    read = plain(content, fields)
    if read is None or read.lstrip()[:1] not in (b"{", b"["):
        return {}
    try:
        document = json.loads(read)
    except (ValueError, RecursionError):
        return {}
    found: dict[str, object] = {}
    pending: list[tuple[str, object]] = [("", document)]
    while pending and len(found) < _ITEMS:
        place, value = pending.pop()
        if isinstance(value, dict):
            pending += ((f"{place}.{name}" if place else name, one) for name, one in value.items() if _fits(name))
        elif isinstance(value, list):
            pending += ((f"{place}[{index}]", one) for index, one in enumerate(value[:_ITEMS]))
        elif isinstance(value, str) and value.startswith("eyJ") and (told := described(value.encode("utf-8", "replace"))) is not None:
            found[place] = told
    return found


# ---- making one ----------------------------------------------------------------------------------------------------


def web_token(name: str, told: Mapping[str, object] | None, *, now_s: int, size_bytes: int | None = None) -> bytes:
    """A JSON Web Token that parses, is valid from now on and is signed by nobody.

    With the header, claims and signature length of `told` (as `described` makes it), else with few claims; as long as `size_bytes`
    where no signature length is known and that leaves room for one.
    """
    told = told or {}
    header = told.get("header")
    claims = told.get("claims")
    signature = told.get("signature")
    body: dict[str, object] = dict(claims) if isinstance(claims, dict) else {"iss": "secondtake", "jti": letters(name, 16).decode()}
    for when in TIMES & body.keys() | {"iat"}:
        body[when] = now_s
    body["exp"] = now_s + LIFETIME_S
    start = b".".join(_segment(part) for part in (header if isinstance(header, dict) and header else _HEADER, body))
    if not isinstance(signature, int) or not 0 <= signature <= TOKEN_BYTES:
        left = (size_bytes or 0) - len(start) - 1
        signature = left if left >= 43 and left % 4 != 1 else SIGNATURE_BYTES
    return start + b"." + _unsigned(signature)


def _segment(value: object) -> bytes:
    return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).rstrip(b"=")


def _unsigned(size_bytes: int) -> bytes:
    """Base64 of a text that says it is no signature."""
    text = b"secondtake stand-in, not a signature. "
    return base64.urlsafe_b64encode(text * (size_bytes // 48 + 2))[:size_bytes]


def opaque(name: str, size_bytes: int, *, prefix: bytes = b"") -> bytes:
    """A token nobody parses: `prefix`, our word, letters and digits. At least one byte behind the prefix."""
    room = max(size_bytes - len(prefix), 1)
    lead = WORD + b"-" if room > len(WORD) + 8 else b""
    return prefix + lead + letters(name, room - len(lead))


def letters(name: str, count: int, alphabet: bytes = _ALPHABET) -> bytes:
    """`count` letters that depend on `name` alone."""
    stream = hashlib.shake_256(b"secondtake stand-in\x00" + name.encode("utf-8", "replace")).digest(count)
    return bytes(alphabet[byte % len(alphabet)] for byte in stream)


def prefix_of(value: bytes) -> bytes:
    """The public beginning of a credential of a known kind, or nothing."""
    found = PREFIX.match(value)
    return found[0] if found is not None else b""


def stand_in(name: str, text: str) -> str:
    """What is put for a personal value: of the same form, and the same for every value of this name."""
    if _UUID.fullmatch(text) or (len(text) == 36 and name.lower().endswith(("id", "uuid", "sub"))):
        return str(UUID(bytes=hashlib.sha256(b"secondtake stand-in\x00" + name.encode("utf-8", "replace")).digest()[:16], version=4))
    if "email" in name.lower() or re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", text):
        return "secondtake@replay.invalid"
    if text.startswith(("https://", "http://")):
        return "https://replay.invalid/"
    if len(text) == 12 and "account" in name.lower():
        return "0" * 12
    return opaque(name, len(text)).decode() if text else ""


_PUBLIC_URL = re.compile(r"https?://[A-Za-z0-9.-]+(?::\d{1,5})?(?:/[A-Za-z0-9._~/-]*)?")


def is_public_url(text: str) -> bool:
    """Whether a URL in a login's answer only says where something is: no user, no query, no part that could be a secret."""
    if len(text) > _TEXT or _PUBLIC_URL.fullmatch(text) is None:
        return False
    return all(len(part) <= 24 and not looks_random(part.encode()) and not _secret(part) for part in text.split("/")[3:])
