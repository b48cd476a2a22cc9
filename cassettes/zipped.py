"""The one zip that a cassette makes: members stored, sorted, without times. What is read must be exactly what would be written.

So there are no paths to escape by, no ratios to explode by, no two readings of one file: a member is found only where the writer would have
put it, byte for byte (APPNOTE.TXT 6.3.10, sections 4.3.7, 4.3.12, 4.3.14 to 4.3.16).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from secondtake.cassettes.errors import Corrupt, TooLarge
from secondtake.cassettes.files import Region
from secondtake.cassettes.limits import EXPORT_MEMBERS

_LOCAL = struct.Struct("<IHHHHHIIIHH")
_CENTRAL = struct.Struct("<IHHHHHHIIIHHHHHII")
_END = struct.Struct("<IHHHHIIH")
_END64 = struct.Struct("<IQHHIIQQQQ")
_LOCATOR = struct.Struct("<IIQI")
_DOS_DATE = 0x21
"""1 January 1980, the first day a zip knows."""
_MODE = 0o100600 << 16
_BIG = 0xFFFFFFFF
_MANY = 0xFFFF
_MEMBER = re.compile(r"README\.txt|SHA256SUMS|journal|objects/([0-9a-f]{2})/\1[0-9a-f]{62}(?:\.zst)?")
NAME_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Member:
    """One file in the zip."""

    name: str
    size_bytes: int
    checksum: int
    """CRC-32 of the content."""
    header_at: int = 0

    @property
    def content_at(self) -> int:
        return self.header_at + len(local_header(self))


def allowed(name: str) -> bool:
    """Whether a member may be called so."""
    return len(name) <= NAME_LENGTH and _MEMBER.fullmatch(name) is not None


def local_header(member: Member) -> bytes:
    """What stands before a member's content."""
    name = member.name.encode("ascii")
    big = member.size_bytes >= _BIG
    extra = struct.pack("<HHQQ", 1, 16, member.size_bytes, member.size_bytes) if big else b""
    size = _BIG if big else member.size_bytes
    return _LOCAL.pack(0x04034B50, 45 if big else 20, 0, 0, 0, _DOS_DATE, member.checksum, size, size, len(name), len(extra)) + name + extra


def directory(members: Sequence[Member], start: int) -> bytes:
    """What stands behind the members: the central directory, from offset `start`, and the end records."""
    out = bytearray()
    for member in members:
        out += _central(member)
    size = len(out)
    if len(members) >= _MANY or size >= _BIG or start >= _BIG:
        out += _END64.pack(0x06064B50, _END64.size - 12, 45 | 3 << 8, 45, 0, 0, len(members), len(members), size, start)
        out += _LOCATOR.pack(0x07064B50, 0, start + size, 1)
    count = min(len(members), _MANY)
    out += _END.pack(0x06054B50, 0, 0, count, count, min(size, _BIG), min(start, _BIG), 0)
    return bytes(out)


def _central(member: Member) -> bytes:
    name = member.name.encode("ascii")
    numbers: list[int] = []
    size, at = member.size_bytes, member.header_at
    if size >= _BIG:
        numbers += [size, size]
    if at >= _BIG:
        numbers.append(at)
    extra = struct.pack(f"<HH{len(numbers)}Q", 1, 8 * len(numbers), *numbers) if numbers else b""
    version = 45 if numbers else 20
    size, at = min(size, _BIG), min(at, _BIG)
    fixed = _CENTRAL.pack(
        0x02014B50, version | 3 << 8, version, 0, 0, 0, _DOS_DATE, member.checksum, size, size, len(name), len(extra), 0, 0, 0, _MODE, at
    )
    return fixed + name + extra


def placed(members: Sequence[Member]) -> tuple[list[Member], int]:
    """The members one after the other from offset 0, sorted by name, and where the directory begins."""
    offset = 0
    made: list[Member] = []
    for member in sorted(members, key=lambda one: one.name):
        made.append(Member(member.name, member.size_bytes, member.checksum, offset))
        offset = made[-1].content_at + member.size_bytes
    return made, offset


_FOREIGN = "not an exported cassette, or one that another program wrote again"


def read(region: Region, *, allowed: Callable[[str], bool] = allowed, longest: int = NAME_LENGTH) -> list[Member]:
    """The members of a zip, which is exactly as `local_header` and `directory` make it. Raises Corrupt, TooLarge.

    `allowed`: whether a member may be called so; `longest`: its characters at most.
    """
    count, size, start = _end(region)
    if count > EXPORT_MEMBERS:
        raise TooLarge(f"an exported file has {count} members; at most {EXPORT_MEMBERS} are read")
    if size > count * (_CENTRAL.size + longest + 28) or start + size > region.size_bytes:
        raise Corrupt(_FOREIGN)
    members = _members(region.read(start, size), count, allowed)
    again, end = placed(members)
    if again != members or end != start or len({member.name for member in members}) != count:
        raise Corrupt(_FOREIGN)
    tail = directory(members, start)
    if region.size_bytes != start + len(tail) or region.read(start, len(tail)) != tail:
        raise Corrupt(_FOREIGN)
    for member in members:
        expected = local_header(member)
        if region.read(member.header_at, len(expected)) != expected:
            raise Corrupt(_FOREIGN)
    return members


def _end(region: Region) -> tuple[int, int, int]:
    """Members, size and start of the central directory."""
    data = region.read(region.size_bytes - _END.size, _END.size)
    if len(data) != _END.size:
        raise Corrupt(_FOREIGN)
    magic, _, _, _, count, size, start, comment = _END.unpack(data)
    if magic != 0x06054B50 or comment:
        raise Corrupt(_FOREIGN)
    if count == _MANY or _BIG in (size, start):
        at = region.size_bytes - _END.size - _LOCATOR.size - _END64.size
        data = region.read(at, _END64.size)
        if at < 0 or len(data) != _END64.size:
            raise Corrupt(_FOREIGN)
        _, _, _, _, _, _, _, count, size, start = _END64.unpack(data)
    return count, size, start


def _members(data: bytes, count: int, allowed: Callable[[str], bool] = allowed) -> list[Member]:
    members: list[Member] = []
    at = 0
    for _ in range(count):
        if at + _CENTRAL.size > len(data):
            raise Corrupt(_FOREIGN)
        fixed = _CENTRAL.unpack_from(data, at)
        checksum, size, name_length, extra_length, header_at = fixed[7], fixed[9], fixed[10], fixed[11], fixed[16]
        at += _CENTRAL.size
        name = data[at : at + name_length].decode("latin-1")
        extra = data[at + name_length : at + name_length + extra_length]
        at += name_length + extra_length
        if not allowed(name):
            raise Corrupt(f"an exported file holds a member {name[:NAME_LENGTH]!a}, which none can have")
        numbers = list(struct.unpack(f"<{(len(extra) - 4) // 8}Q", extra[4:])) if len(extra) in (12, 20, 28) else []
        if size == _BIG and len(numbers) >= 2:
            size = numbers[0]
            numbers = numbers[2:]
        if header_at == _BIG and numbers:
            header_at = numbers[0]
        members.append(Member(name, size, checksum, header_at))
    return members
