"""Naming bytes by their SHA-256."""

from __future__ import annotations

import hashlib

from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.exchange import Digest

DIGEST_BYTES = 32


def digest_of(data: bytes | bytearray | memoryview) -> Digest:
    """The name of `data`."""
    return Digest(hashlib.sha256(data).hexdigest())


def raw(digest: Digest) -> bytes:
    """The 32 bytes a digest stands for. Raises BadInput for anything but 64 lower-case hexadecimal digits."""
    try:
        data = bytes.fromhex(digest)
    except ValueError:
        data = b""
    if len(data) != DIGEST_BYTES or data.hex() != digest:
        raise BadInput(f"not a digest: {digest[:80]!r}")
    return data


def named(data: bytes) -> Digest:
    """The digest that 32 bytes stand for. Raises BadInput for any other length."""
    if len(data) != DIGEST_BYTES:
        raise BadInput(f"a digest has {DIGEST_BYTES} bytes, not {len(data)}")
    return Digest(data.hex())
