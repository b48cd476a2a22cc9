"""The one module that touches the disk."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from secondtake.cassettes.files import DiskFiles, Region, ShortWrite, errno_name

files = DiskFiles()


def test_a_short_write_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SECURITY B2: a full disk takes what fits and raises nothing."""
    fd = files.create(tmp_path / "a")
    write = os.write
    monkeypatch.setattr(os, "write", lambda to, data: write(to, bytes(data)[: len(data) // 2]))
    with pytest.raises(ShortWrite) as caught:
        files.write(fd, b"12345678")
    assert errno_name(caught.value) == "short-write"
    files.close(fd)


def test_the_reason_of_a_short_write_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T-R15, B-05: ENOSPC and EDQUOT are told apart by the attempt that follows a short write."""
    fd = files.create(tmp_path / "a")
    answers: list[int | OSError] = [3, OSError(errno.EDQUOT, "quota")]

    def write(_: int, __: bytes) -> int:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="quota") as caught:
        files.write(fd, b"12345678")
    assert errno_name(caught.value) == "EDQUOT"
    files.close(fd)


def test_nothing_is_created_over_anything(tmp_path: Path) -> None:
    """B-12: O_EXCL, also over a link that leads nowhere."""
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("link", "a", "a"):
        if name == "a" and not (tmp_path / "a").exists():
            files.close(files.create(tmp_path / "a"))
            continue
        with pytest.raises(FileExistsError):
            files.create(tmp_path / name)
    assert not (tmp_path / "elsewhere").exists()


def test_reading_follows_no_link_and_opens_no_device(tmp_path: Path) -> None:
    """B-12, B4.7: at any step below the root."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_bytes(b"x")
    (tmp_path / "l").symlink_to("d")
    (tmp_path / "d" / "l").symlink_to("f")
    os.mkfifo(tmp_path / "d" / "p")
    files.close(files.open_read(tmp_path, ["d", "f"]))
    for parts in (["l", "f"], ["d", "l"], ["d", "p"], ["d"], ["d", "none"]):
        with pytest.raises(OSError):
            files.open_read(tmp_path, parts)
    assert files.names(tmp_path / "l") == []
    assert files.names(tmp_path / "none") == []
    assert files.status(tmp_path / "none") is None


def test_folders_are_private_and_made_once(tmp_path: Path) -> None:
    """C-18: every missing parent too."""
    files.make_folder(tmp_path / "a" / "b" / "c")
    files.make_folder(tmp_path / "a" / "b" / "c")
    assert [stat.S_IMODE((tmp_path / part).stat().st_mode) for part in ("a", "a/b", "a/b/c")] == [0o700] * 3


def test_a_lock_is_held_by_one(tmp_path: Path) -> None:
    """B-10: exclusive against all, shared against exclusive, and gone with its descriptor."""
    one, two = files.open_lock(tmp_path / "lock"), files.open_lock(tmp_path / "lock")
    assert files.lock(one, exclusive=True, wait=False)
    assert not files.lock(two, exclusive=False, wait=False)
    files.unlock(one)
    assert files.lock(two, exclusive=False, wait=False)
    assert files.lock(one, exclusive=False, wait=False)
    files.close(one)
    assert files.lock(two, exclusive=True, wait=False)
    files.close(two)


def test_a_region_is_all_that_can_be_read_of_it(tmp_path: Path) -> None:
    """A member of an exported file is read as if it were a file."""
    (tmp_path / "f").write_bytes(b"0123456789")
    fd = files.open_read(tmp_path, ["f"])
    region = Region(files, fd, 2, 5)
    assert [region.read(0, 100), region.read(3, 1), region.read(5, 1), region.read(-1, 3)] == [b"23456", b"5", b"", b""]
    files.close(fd)
