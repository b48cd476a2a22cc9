"""Where each record goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from secondtake.cassettes import artifacts
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.files import DiskFiles
from secondtake.cassettes.index import NOWHERE, PACKED_OBJECT, PLAIN_OBJECT
from secondtake.cassettes.limits import BODY_IN_MEMORY_BYTES, OBJECT_BYTES
from secondtake.cassettes.placing import Batch, Kept, Placer
from secondtake.cassettes.records import End
from tests.cassettes.scenes import exchange, noise, prose, scene


@pytest.fixture
def placer(tmp_path: Path) -> Placer:
    (tmp_path / "one").mkdir()
    return Placer(DiskFiles(), tmp_path, tmp_path / "one")


def test_a_body_is_placed_once_and_an_exchange_refers_to_it(placer: Placer) -> None:
    """DESIGN 4: identity is the digest; the second exchange with the same body costs no second one."""
    batch = Batch(100)
    one, bodies = scene(1)[0]
    placer.end(batch, End(one, bodies))
    frames = len(batch.frames)
    placer.end(batch, End(one, bodies))
    assert len(batch.frames) == frames + 1
    assert batch.end == 100 + sum(map(len, batch.frames))
    assert placer.tree.size == 2
    with pytest.raises(ValueError, match="no bytes"):
        placer.end(batch, End(exchange(5, b"x" * 99), {}))


@pytest.mark.parametrize(
    ("kind", "content", "place"),
    [
        ("blob", b"small", artifacts.INSIDE),
        ("blob", prose(OBJECT_BYTES * 2, 1), artifacts.INSIDE),
        ("blob", noise(OBJECT_BYTES, 1), PLAIN_OBJECT),
        ("blob", prose(1000, 2) * (BODY_IN_MEMORY_BYTES // 1000 + 1), PACKED_OBJECT),
        ("tree", prose(128, 3), None),
        ("tree", prose(127, 3), artifacts.INSIDE),
        ("envelope", prose(511, 4), artifacts.INSIDE),
        ("envelope", prose(512, 4), PACKED_OBJECT),
    ],
)
def test_an_artifact_goes_where_its_size_and_kind_say(placer: Placer, kind: str, content: bytes, place: object) -> None:
    """format.md: inside its record, a body frame for a tree, a file of its own where it is large and does not compress."""
    batch = Batch(100)
    placer.artifact(batch, Kept(kind, digest_of(content), content, 0))
    (row,) = placer.index.artifacts
    assert row.artifact == (kind, digest_of(content), len(content))
    assert row.content_at == place if place is not None else row.content_at.length > 12
    assert NOWHERE not in (row.at, row.content_at) or place == artifacts.INSIDE


def test_a_stage_that_grows_costs_what_is_new_in_it(placer: Placer) -> None:
    """T-I5: the map is kept whenever it grows."""
    batch = Batch(100)
    said = b"".join(digest_of(b"%d" % number).encode() for number in range(9))
    for size in (400, 464, 528):
        content = said[:size]
        placer.artifact(batch, Kept("stage", digest_of(content), content, 0))
    first, *later = (len(frame) for frame in batch.frames)
    assert max(later) < first - 100, (first, later)


def test_a_file_that_is_not_what_its_digest_says_is_never_placed(placer: Placer, tmp_path: Path) -> None:
    """B-01: what cannot be kept as named is not claimed; its spool is given up."""
    with pytest.raises(ValueError, match="digest"):
        placer.artifact(Batch(100), Kept("blob", Digest("0" * 64), noise(OBJECT_BYTES, 2), 0))
    assert len(placer.index.artifacts) == 0
    placer.drop_spools()
    assert list((tmp_path / "one").iterdir()) == []
