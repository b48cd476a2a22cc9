"""The one zip: exactly as written, or refused."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import zipped
from secondtake.cassettes.errors import Corrupt, TooLarge
from secondtake.cassettes.files import DiskFiles, Region
from secondtake.cassettes.limits import EXPORT_MEMBERS
from secondtake.cassettes.zipped import Member

files = DiskFiles()


class Held(DiskFiles):
    """A file in memory."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, fd: int, offset: int, size: int) -> bytes:
        return self.data[offset : offset + size] if offset >= 0 else b""


def region(data: bytes) -> Region:
    return Region(Held(data), 0, 0, len(data))


def build(contents: dict[str, bytes]) -> bytes:
    import zlib

    members, end = zipped.placed([Member(name, len(data), zlib.crc32(data)) for name, data in contents.items()])
    out = b"".join(zipped.local_header(member) + contents[member.name] for member in members)
    assert len(out) == end
    return out + zipped.directory(members, end)


OBJECT = "objects/ab/" + "ab" * 32
CONTENTS = {"journal": b"j" * 100, "README.txt": b"read me", OBJECT: b"o" * 50, OBJECT + ".zst": b""}


def test_any_zip_program_reads_what_is_written() -> None:
    """DESIGN 4: a zip a stranger can open."""
    with zipfile.ZipFile(io.BytesIO(build(CONTENTS))) as archive:
        assert archive.testzip() is None
        assert {one.filename: archive.read(one) for one in archive.infolist()} == CONTENTS
        assert {one.date_time for one in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_members_are_read_back_in_order() -> None:
    """B-14: sorted, whatever the order they were given in."""
    data = build(CONTENTS)
    assert data == build(dict(reversed(CONTENTS.items())))
    members = zipped.read(region(data))
    assert [one.name for one in members] == sorted(CONTENTS)
    for one in members:
        assert data[one.content_at : one.content_at + one.size_bytes] == CONTENTS[one.name]


@pytest.mark.parametrize(("size", "at"), [(5 * 2**32, 0), (10, 7 * 2**32), (2**32 - 1, 2**32 - 1)])
def test_large_members_have_large_fields(size: int, at: int) -> None:
    """Over 4 GiB: zip64, as other programs read it."""
    member = Member("journal", size, 1, at)
    assert zipped._members(zipped._central(member), 1) == [member]


@given(st.data())
def test_a_changed_byte_outside_the_contents_is_refused(data: st.DataObject) -> None:
    """B4.7: no second reading, no slack, no comment, no other name."""
    good = build(CONTENTS)
    inside = {at for one in zipped.read(region(good)) for at in range(one.content_at, one.content_at + one.size_bytes)}
    at = data.draw(st.sampled_from([at for at in range(len(good)) if at not in inside]))
    bad = bytearray(good)
    bad[at] ^= 1 << data.draw(st.integers(0, 7))
    # A checksum is the one field that header and directory could be changed in together; the content is compared with it on import.
    with pytest.raises((Corrupt, TooLarge)):
        zipped.read(region(bytes(bad)))


@pytest.mark.parametrize(
    "name",
    [
        "../journal",
        "/journal",
        "a\\b",
        "journal\0",
        "JOURNAL",
        "objects/../journal",
        "objects/ab/" + "cd" * 32,
        "objects/AB/" + "AB" * 32,
        "C:journal",
    ],
)
def test_a_name_that_no_cassette_has_is_refused(name: str) -> None:
    """B-12, B4.7: no paths from data."""
    assert not zipped.allowed(name)
    data = build({name: b""})
    with pytest.raises(Corrupt):
        zipped.read(region(data))


@pytest.mark.parametrize("how", ["deflated", "comment", "prefix", "suffix", "twice", "symlink", "empty", "gap"])
def test_zips_of_other_programs_are_refused(how: str, tmp_path: Path) -> None:
    """B4.7: compression (and so bombs), comments, duplicates, links, slack."""
    good = build({"journal": b"j" * 100})
    out = io.BytesIO()
    mode = zipfile.ZIP_DEFLATED if how == "deflated" else zipfile.ZIP_STORED
    with zipfile.ZipFile(out, "w", mode) as archive:
        one = zipfile.ZipInfo("journal")
        if how == "symlink":
            one.external_attr = 0o120777 << 16
        archive.writestr(one, bytes(100), compress_type=mode)
        if how == "twice":
            with pytest.warns(UserWarning, match="Duplicate"):
                archive.writestr("journal", b"again")
        if how == "comment":
            archive.comment = b"x"
    data = {"prefix": b"x" + good, "suffix": good + b"x", "empty": b"", "gap": good[:30] + b"x" + good[30:]}.get(how, out.getvalue())
    with pytest.raises(Corrupt):
        zipped.read(region(data))


def test_a_million_claimed_members_are_refused_at_once() -> None:
    """B-11, B4.7: 10^6 entries, and counts that lie."""
    good = bytearray(build({"journal": b""}))
    at = len(good) - 22
    good[at + 10 : at + 12] = b"\xfe\xff"
    with pytest.raises(Corrupt):
        zipped.read(region(bytes(good)))
    end64 = zipped._END64.pack(0x06064B50, 44, 45, 45, 0, 0, EXPORT_MEMBERS + 1, EXPORT_MEMBERS + 1, 10, 0)
    locator = zipped._LOCATOR.pack(0x07064B50, 0, 0, 1)
    end = zipped._END.pack(0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    with pytest.raises(TooLarge):
        zipped.read(region(end64 + locator + end))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_zip_or_refused(data: bytes) -> None:
    """B4.8: the parser never crashes."""
    for candidate in (data, data + build({})[-22:]):
        try:
            zipped.read(region(candidate))
        except (Corrupt, TooLarge):
            pass
