"""What a recording says about its stage."""

from __future__ import annotations

from pathlib import Path

import pytest

from secondtake.cassettes import layout, stages
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.stages import Staged, Turn, staged
from secondtake.cassettes.store import Store

ONE, TWO = digest_of(b"one"), digest_of(b"two")
FULL = Staged(ONE, TWO, ONE, (Turn(1, 0, ONE), Turn(3, 9, TWO)), TWO, ("a socket",), 5, 100, 0.25, "/repo")


def test_it_is_what_it_says_when_packed() -> None:
    """Contract: the map in `meta` under `stage`."""
    assert stages.unpack(layout.unpack(layout.pack(FULL.packed()))) == FULL
    assert stages.unpack({}) == Staged()
    assert Staged().packed() == {}
    assert FULL.named() == (ONE, TWO)
    assert FULL.packed()["turns"] == [[1, 0, ONE], [3, 9, TWO]]


@pytest.mark.parametrize(
    "value", [[], {"workspace": 3}, {"workspace": "abc"}, {"turns": [[1, 2]]}, {"turns": [[1, 2, "x"]]}, {"not_captured": [1]}]
)
def test_anything_else_is_damage(value: object) -> None:
    """B-11: meta comes from strangers."""
    with pytest.raises(Corrupt):
        stages.unpack(value)


def test_a_recording_that_died_says_what_was_known(tmp_path: Path) -> None:
    """Issue 5: the stage of a killed recording is not lost with its closing record."""
    store = Store(tmp_path)
    writer = store.create("closed", meta={})
    writer.keep(stages.KIND, layout.pack({"workspace": ONE}))
    writer.keep(stages.KIND, layout.pack({"workspace": ONE, "final": TWO}))
    writer.close(meta={})
    with store.open("closed") as cassette:
        assert staged(cassette) == Staged(workspace=ONE, final=TWO)
    writer = store.create("without", meta={})
    writer.close(meta={})
    with store.open("without") as cassette:
        assert staged(cassette) is None
    writer = store.create("said", meta={})
    writer.close(meta={"stage": FULL.packed()})
    with store.open("said") as cassette:
        assert staged(cassette) == FULL
