"""Core metadata out of a wheel."""

from __future__ import annotations

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.exchange import Bytes
from secondtake.cassettes.wheels import metadata

PATH = b"/packages/demo_pkg-1.0-py3-none-any.whl"
TEXT = b"Metadata-Version: 2.1\nName: demo-pkg\n"


def archive(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED, comment: bytes = b"") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        for name, content in members.items():
            file.writestr(name, content)
        file.comment = comment
    return out.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
@pytest.mark.parametrize("comment", [b"", b"a comment of some length" * 100])
def test_the_member_is_found_whatever_stands_around_it(method: int, comment: bytes) -> None:
    """PEP 427, PEP 658."""
    wheel = archive({"demo_pkg/a.py": b"x" * 9000, "demo_pkg-1.0.dist-info/METADATA": TEXT, "z": b"y"}, method, comment)
    assert metadata(Bytes(wheel), PATH) == TEXT


def test_of_several_the_one_of_this_package_is_taken() -> None:
    """A vendored dist-info folder lies deeper; a second at the top is another's."""
    members = {"other-1.dist-info/METADATA": b"no", "demo_pkg-1.0.dist-info/METADATA": TEXT, "v/x-1.dist-info/METADATA": b"no"}
    assert metadata(Bytes(archive(members)), PATH) == TEXT
    assert metadata(Bytes(archive({"a-1.dist-info/METADATA": b"1", "b-1.dist-info/METADATA": b"2"})), PATH) is None


def test_what_is_too_large_packed_otherwise_or_damaged_is_none() -> None:
    """B-11: bounded before it is read."""
    assert metadata(Bytes(archive({"demo_pkg-1.0.dist-info/METADATA": bytes(5 << 20)})), PATH) is None
    assert metadata(Bytes(archive({"demo_pkg-1.0.dist-info/METADATA": TEXT}, zipfile.ZIP_BZIP2)), PATH) is None
    wheel = bytearray(archive({"demo_pkg-1.0.dist-info/METADATA": TEXT}, zipfile.ZIP_STORED))
    wheel[wheel.index(b"Metadata")] ^= 1
    assert metadata(Bytes(bytes(wheel)), PATH) is None
    assert metadata(Bytes(archive({"demo_pkg/a.py": b""})), PATH) is None


@given(st.data())
def test_any_damage_gives_the_metadata_or_none(data: st.DataObject) -> None:
    """B-11: hostile bytes."""
    wheel = bytearray(archive({"demo_pkg/a.py": b"x" * 50, "demo_pkg-1.0.dist-info/METADATA": TEXT}))
    for _ in range(data.draw(st.integers(0, 4))):
        wheel[data.draw(st.integers(0, len(wheel) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(wheel)))
    assert metadata(Bytes(bytes(wheel[cut:])), PATH) in (TEXT, None)
    assert metadata(Bytes(bytes(wheel[:cut])), PATH) in (TEXT, None)
