"""What stands where a secret stood: as long as it, printable, safe in JSON, URLs, forms and headers, and recognisable.

The grammar, after the public prefix of the value, if it has one and there is room:

    _2T.ccc.ffffffffffffff…xx_     from 22 bytes: kind code, 13 characters of fingerprint, filler `x`
    _2T.cccxx_                     from 8 bytes, or where a fingerprint would be a guessing oracle: kind code, filler
    _2T.opq.fffffff_               from 16 bytes: perhaps a secret; its fingerprint is part of what it is
    _2T.xx_                        from 5 bytes: no room for a kind
    xxxx                           below that; cannot be recognised later

`collapse` turns each into the same bytes whatever the fingerprint, the filler and the prefix were, so that a request made with a
rotated key equals the recorded one.
"""

from __future__ import annotations

import base64
import hmac
import re

from secondtake.cassettes.kinds import BY_NAME, OPAQUE, PREFIX

MARK = b"_2T."
_PATTERN = rb"_2T\.(?:opq\.(?P<opaque>[a-z2-7]{7,13})x*|(?P<code>(?!opq)[a-z0-9]{3})(?:\.[a-z2-7]{13})?x*|x{0,2})_"
PLACEHOLDER = re.compile(_PATTERN)
_PREFIX_MAX = 24
_PREFIX_LAST = frozenset(b"-_.A3iaJ2")
"""The bytes a public prefix may end with; looked at before any expression is."""
SEALED_BYTES = 32
_FINGERPRINT = 13
ENTROPY_BITS = 80
"""Below this a fingerprint is left out (SECURITY C4)."""


def code(kind: str) -> bytes:
    """Three characters for `kind`; a kind outside the table gets one made from its name."""
    known = BY_NAME.get(kind)
    if known is not None:
        return known.code.encode()
    return b"z" + base64.b32encode(hmac.digest(b"kind", kind.encode(), "sha256"))[:2].lower()


def fingerprint(key: bytes, kind: str, value: bytes) -> str:
    """65 bits that say "the same credential" to whoever holds the store's key, and nothing to anybody else."""
    digest = hmac.digest(key, kind.encode() + b"\x00" + value, "sha256")
    return base64.b32encode(digest)[:_FINGERPRINT].decode().lower()


def sealed(digest: bytes) -> bytes:
    """What is kept of a body that is withheld: its keyed digest, so that two different ones are not taken for one another."""
    mark = base64.b32encode(digest)[:_FINGERPRINT].decode().lower()
    return placeholder(OPAQUE, SEALED_BYTES, mark=mark)


def placeholder(kind: str, length: int, *, prefix: bytes = b"", mark: str | None = None) -> bytes:
    """Exactly `length` bytes for a value of `kind` that begins with the public `prefix`. `mark` is its fingerprint."""
    room = length - len(prefix)
    if prefix and room < 8:
        prefix, room = b"", length
    if room < 5:
        return prefix + b"x" * room
    if room < 8:
        return prefix + MARK + b"x" * (room - 5) + b"_"
    head = MARK + code(kind)
    if mark is not None and kind == OPAQUE and room >= 16:
        head += b"." + mark[: room - 9].encode()
    elif mark is not None and kind != OPAQUE and room >= 9 + _FINGERPRINT:
        head += b"." + mark.encode()
    elif kind == OPAQUE:
        head = MARK + code("query-key")
    return prefix + head + b"x" * (room - len(head) - 1) + b"_"


def _prefix_before(content: bytes, at: int) -> int:
    """Where the public prefix that ends at `at` begins, or `at`."""
    if at == 0 or content[at - 1] not in _PREFIX_LAST:
        return at
    for begin in range(max(0, at - _PREFIX_MAX), at):
        found = PREFIX.match(content, begin)
        if found is not None and found.end() == at:
            return begin
    return at


def placed(content: bytes) -> list[tuple[int, int]]:
    """The ranges of `content` that are placeholders already, public prefixes included."""
    if MARK not in content:
        return []
    return [(_prefix_before(content, found.start()), found.end()) for found in PLACEHOLDER.finditer(content)]


def is_placeholder(value: bytes) -> bool:
    """Whether all of `value` is one placeholder."""
    ranges = placed(value)
    return len(ranges) == 1 and ranges[0] == (0, len(value))


def collapse(content: bytes) -> bytes:
    """Turn every placeholder into the canonical form of its kind, `_2T.ccc_`.

    The result has another length. Fingerprint, filler and public prefix go; an opaque one keeps its fingerprint. Idempotent. Content
    without a placeholder is returned as it is, in one search. Two placeholders too short to carry a kind are equal only when as long.
    """
    if MARK not in content:
        return content
    parts: list[bytes] = []
    at = 0
    for found in PLACEHOLDER.finditer(content):
        parts.append(content[at : max(at, _prefix_before(content, found.start()))])
        kind = found["code"]
        if kind is not None:
            parts.append(MARK + kind + b"_")
        else:
            parts.append(found[0])
        at = found.end()
    parts.append(content[at:])
    return b"".join(parts)
