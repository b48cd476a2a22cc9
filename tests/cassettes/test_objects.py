"""Large bodies as files."""

from __future__ import annotations

import hashlib
import itertools
import os
import subprocess
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import objects
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.files import DiskFiles, Region
from secondtake.cassettes.limits import BLOCK_BYTES
from secondtake.cassettes.store import Store
from tests.cassettes.scenes import noise, prose, read_body, record_large

files = DiskFiles()


def keep(root: Path, data: bytes, step: int) -> tuple[Digest, bool]:
    spool = objects.Spool.begin(files, root / "spool")
    for at in range(0, len(data), step):
        spool.add(data[at : at + step])
    return spool.keep(root)


def opened(root: Path, digest: Digest, packed: bool) -> Region:
    fd = files.open_read(root, objects.object_parts(digest, packed))
    return Region(files, fd, 0, files.size(fd))


@pytest.mark.parametrize("size", [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES + 17])
@pytest.mark.parametrize("kind", ["noise", "prose"])
def test_how_a_body_was_cut_never_changes_its_object(tmp_path: Path, size: int, kind: str) -> None:
    """B-14: same content, same file, however it came."""
    data = noise(size, 1) if kind == "noise" else (prose(200_000, 1) * (size // 200_000 + 1))[:size]
    whole = []
    for number, step in enumerate((4096, 1_000_003, max(size, 1))):
        (tmp_path / str(number)).mkdir()
        digest, packed = keep(tmp_path / str(number), data, step)
        assert digest == digest_of(data)
        whole.append((tmp_path / str(number)).joinpath(*objects.object_parts(digest, packed)).read_bytes())
        source = objects.open_object(opened(tmp_path / str(number), digest, packed), digest, packed, size)
        assert source.read(0, size + 1) == data
        for at, length in ((size // 2, 5), (size - 3, 10), (BLOCK_BYTES - 2, 4), (size, 5)):
            assert source.read(max(at, 0), length) == data[max(at, 0) : max(at, 0) + length]
    assert whole[0] == whole[1] == whole[2]
    assert packed == (kind == "prose" and size > 1)


def test_sha256sum_checks_a_large_body_without_our_software(tmp_path: Path) -> None:
    """B-03: the file's name is what sha256sum prints of it; compressed ones are read by any zstd."""
    store = Store(tmp_path)
    writer = store.create("one", meta={})
    plain, _ = record_large(writer, 1, noise(3_000_000, 1))
    packed, _ = record_large(writer, 2, prose(200_000, 2) * 20)
    writer.close(meta={})
    assert plain.answer is not None
    assert packed.answer is not None
    digest = plain.answer.body.digest
    path = tmp_path / "objects" / digest[:2] / digest
    printed = subprocess.run(["sha256sum", str(path)], capture_output=True, text=True, check=True).stdout
    assert printed.split()[0] == path.name
    digest = packed.answer.body.digest
    path = tmp_path / "objects" / digest[:2] / f"{digest}.zst"
    seen = hashlib.sha256()
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as reader:
        while data := reader.read(65536):
            seen.update(data)
    assert seen.hexdigest() == digest
    assert path.stat().st_size < 4_000_000 / 2


def test_a_file_that_four_runs_ask_for_is_stored_once(tmp_path: Path) -> None:
    """T-I5, scaled to 30 MB: the second record adds less than 1 KB."""
    store = Store(tmp_path)
    data = os.urandom(30_000_000)
    sizes = []
    for run in range(4):
        writer = store.create(f"run-{run}", meta={})
        one, error = record_large(writer, 1, data, 1_000_000)
        assert error is None
        writer.close(meta={})
        sizes.append(sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()))
    assert sizes[0] > 30_000_000
    assert all(after - before < 1024 for before, after in itertools.pairwise(sizes))
    assert sum(1 for path in (tmp_path / "objects").rglob("*") if path.is_file()) == 1
    with store.open("run-3") as cassette:
        assert one.answer is not None
        assert read_body(cassette, one.answer.body) == data


@pytest.mark.parametrize("how", ["flip", "cut", "grow", "gone"])
@pytest.mark.parametrize("kind", ["noise", "prose"])
def test_a_damaged_object_is_an_error_before_its_first_byte(tmp_path: Path, kind: str, how: str) -> None:
    """B-03, DESIGN 4: damage is an error, never absent, never other data."""
    store = Store(tmp_path)
    writer = store.create("one", meta={})
    one, _ = record_large(writer, 1, noise(1_500_000, 1) if kind == "noise" else prose(150_000, 1) * 10)
    writer.close(meta={})
    (path,) = [path for path in (tmp_path / "objects").rglob("*") if path.is_file()]
    data = bytearray(path.read_bytes())
    path.unlink()
    if how != "gone":
        if how == "flip":
            data[len(data) // 2] ^= 1
        path.write_bytes(data[:-1] if how == "cut" else bytes(data) + (b"x" if how == "grow" else b""))
    assert one.answer is not None
    with store.open("one") as cassette, pytest.raises(Corrupt):
        cassette.body(one.answer.body).read(0, 1)
    report = store.verify("one")
    assert [fault.name for fault in report.faults] == ["object_missing" if how == "gone" else "object_damaged"]
    assert report.faults[0].seq == 1
    assert report.exit_code == 1
    assert store.verify("one", quick=True).exit_code == (0 if how == "flip" else 1)


def test_every_flipped_bit_of_a_block_table_is_damage(tmp_path: Path) -> None:
    """B4.4: the metadata of a compressed object."""
    digest, packed = keep(tmp_path, prose(100_000, 1) * 25, 1_000_000)
    path = tmp_path.joinpath(*objects.object_parts(digest, packed))
    good = path.read_bytes()
    path.chmod(0o600)
    table = 8 + 3 * 8 + 9
    for bit in range(8 * table):
        data = bytearray(good)
        data[len(data) - table + bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        region = opened(tmp_path, digest, packed)
        with pytest.raises(Corrupt):
            objects.open_object(region, digest, packed, 2_500_000).read(0, 10)
        files.close(region.fd)


@given(st.binary(max_size=60))
def test_any_bytes_as_a_compressed_object_are_damage(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """B4.8: the parser never crashes, and allocates nothing for a table that lies."""
    path = tmp_path_factory.getbasetemp() / "object"
    path.write_bytes(data + objects._FOOTER.pack(len(data) // 8, 0, objects._FOOTER_MAGIC))
    fd = files.open_read(path.parent, [path.name])
    with pytest.raises(Corrupt):
        objects.open_object(Region(files, fd, 0, files.size(fd)), digest_of(b"x"), True, 1).read(0, 1)
    files.close(fd)
