"""Names of cassettes; what a store does with them is in test_store."""

from __future__ import annotations

import pytest

from secondtake.cassettes import names
from secondtake.cassettes.errors import BadInput


@pytest.mark.parametrize("name", ["a", "7", "refactor-demo", "run.2024-01-01", "a_b+c=d,e@f", "x" * 128])
def test_ordinary_names_are_taken(name: str) -> None:
    """Letters, digits and a few marks that every file system keeps."""
    assert names.check(name) == name
    assert names.is_name(name)


@pytest.mark.parametrize("name", ["", ".new-0-x", ".", "a/..", "NUL\0", "a.take", "x" * 129, "ﬁ", "a\u200b", "\ud800"])
def test_others_are_refused_with_a_hint(name: str) -> None:
    """B4.7: and what a store makes for itself is never taken for a cassette."""
    assert not names.is_name(name)
    with pytest.raises(BadInput) as caught:
        names.check(name)
    assert caught.value.hint
    assert str(caught.value).isascii() or "…" in str(caught.value)


def test_a_path_is_told_from_a_name() -> None:
    """DESIGN 7: NAME is a cassette in the store, or a path to an exported file."""
    assert [names.looks_like_path(one) for one in ("a.take", "./a", "/x/a.take", "a", "@last")] == [True, True, True, False, False]
