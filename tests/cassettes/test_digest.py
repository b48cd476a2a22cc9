"""Names of bytes."""

from __future__ import annotations

import pytest

from secondtake.cassettes.digest import digest_of, named, raw
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.exchange import EMPTY, Digest


def test_a_digest_is_what_sha256sum_prints() -> None:
    """B-03: the name of nothing, and of something."""
    assert digest_of(b"") == EMPTY
    assert digest_of(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert named(raw(EMPTY)) == EMPTY


@pytest.mark.parametrize("text", ["", "ab", EMPTY.upper(), EMPTY[:-1], EMPTY + "0", "../" + EMPTY[3:], " " + EMPTY[1:], "e3 " + EMPTY[3:]])
def test_anything_else_is_not_a_digest(text: str) -> None:
    """B4.7: no path, no other spelling."""
    with pytest.raises(BadInput):
        raw(Digest(text))
    with pytest.raises(BadInput):
        named(text.encode()[:31])
