"""One file that holds a cassette: NAME.take, a zip that a stranger can open and check with sha256sum.

Same content, same bytes: no names of people, machines or cassettes and no times are in it.
"""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from secondtake.cassettes import zipped
from secondtake.cassettes.cassette import Cassette, Fault, Parts, Severity, State
from secondtake.cassettes.errors import Corrupt, Locked, NotFound
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.files import COPY_BYTES, Files, Region
from secondtake.cassettes.folder import INDEX_FROM_BYTES, JOURNAL, write_index
from secondtake.cassettes.objects import check, object_parts, open_object
from secondtake.cassettes.zipped import Member

README = "README.txt"
SUMS = "SHA256SUMS"


@dataclass(frozen=True, slots=True)
class _Content:
    """A member and where its bytes are read."""

    member: Member
    sha256: str
    source: Region | bytes | tuple[Digest, bool]
    """An object is opened when it is read, and closed again: there may be more than a process may have files."""


def _readme(cassette_state: str, exchanges: int, root: str | None) -> bytes:
    return (
        "A cassette: what a program sent and received, recorded by secondtake.\n"
        "\n"
        f"state      {cassette_state}\n"
        f"exchanges  {exchanges}\n"
        f"root       {root}\n"
        "\n"
        "journal    every exchange, in order (format: docs/format.md of secondtake)\n"
        "objects/   large bodies; each file is named by the SHA-256 of its content,\n"
        "           those that end in .zst by that of their content decompressed\n"
        "\n"
        "To check it without secondtake:\n"
        "\n"
        "    sha256sum --check SHA256SUMS\n"
        "\n"
        "To look into it:\n"
        "\n"
        "    secondtake show FILE.take\n"
        "    secondtake verify FILE.take --root ROOT\n"
        "\n"
        "The root proves something only against a copy of it that was kept elsewhere.\n"
    ).encode("ascii")


def _parts_of(source: Region | bytes) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    offset = 0
    while data := source.read(offset, COPY_BYTES):
        yield data
        offset += len(data)


def _measure(name: str, source: Region | bytes) -> _Content:
    seen = hashlib.sha256()
    checksum = size = 0
    for data in _parts_of(source):
        seen.update(data)
        checksum = zlib.crc32(data, checksum)
        size += len(data)
    return _Content(Member(name, size, checksum), seen.hexdigest(), source)


def _measure_object(cassette: Cassette, digest: Digest, packed: bool) -> _Content:
    """Raises Corrupt when the object is not what its name says."""
    try:
        with cassette.object_region(digest, packed) as region:
            one = _measure("/".join(object_parts(digest, packed)), region)
            if packed:
                check(open_object(region, digest, packed), digest)
    except OSError as error:
        raise Corrupt(f"object {digest} is missing or cannot be read: {error.strerror}") from error
    if not packed and one.sha256 != digest:
        raise Corrupt(f"object {digest} holds other bytes", hint="restore the file from a copy")
    return _Content(one.member, one.sha256, (digest, packed))


def _sums(contents: list[_Content]) -> bytes:
    lines = [f"{one.sha256}  {one.member.name}\n" for one in sorted(contents, key=lambda one: one.member.name)]
    return "".join(lines).encode("ascii")


def _contents(cassette: Cassette) -> list[_Content]:
    """Everything that goes into the file. Raises Corrupt."""
    if cassette.state is State.RECORDING:
        raise Locked(f"cassette `{cassette.name}` is being recorded", hint="wait for it to end")
    contents = [_measure(README, _readme(cassette.state, len(cassette.rows), cassette.root)), _measure(JOURNAL, cassette.whole)]
    contents += [_measure_object(cassette, digest, packed) for digest, packed in cassette.objects()]
    return [*contents, _measure(SUMS, _sums(contents))]


def _copy(files: Files, fd: int, source: Region | bytes) -> tuple[int, int]:
    """Write all of `source`; its size and CRC-32."""
    checksum = size = 0
    for data in _parts_of(source):
        files.write(fd, data)
        checksum = zlib.crc32(data, checksum)
        size += len(data)
    return size, checksum


def write(files: Files, cassette: Cassette, path: Path) -> None:
    """Write `cassette` to `path`, replacing it only when all is written. Raises Corrupt, Locked, OSError."""
    contents = {one.member.name: one for one in _contents(cassette)}
    members, end = zipped.placed([one.member for one in contents.values()])
    beside = path.with_name(f".{path.name}.new")
    with contextlib.suppress(FileNotFoundError):
        files.remove(beside)
    fd = files.create(beside)
    try:
        try:
            for member in members:
                files.write(fd, zipped.local_header(member))
                source = contents[member.name].source
                if isinstance(source, tuple):
                    with cassette.object_region(*source) as region:
                        found = _copy(files, fd, region)
                else:
                    found = _copy(files, fd, source)
                if found != (member.size_bytes, member.checksum):
                    raise Corrupt(f"cassette `{cassette.name}` changed while it was exported")
            files.write(fd, zipped.directory(members, end))
            files.sync(fd)
        finally:
            files.close(fd)
        files.rename(beside, path)
        files.sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            files.remove(beside)
        raise


@dataclass(frozen=True, slots=True)
class _Opened:
    """An exported file and its members."""

    files: Files
    fd: int
    members: dict[str, Member]

    def region(self, name: str) -> Region:
        """Raises FileNotFoundError."""
        member = self.members.get(name)
        if member is None:
            raise FileNotFoundError(2, "no such member", name)
        return Region(self.files, self.fd, member.content_at, member.size_bytes)


def _open(files: Files, path: Path) -> _Opened:
    """Raises NotFound, Corrupt, TooLarge."""
    try:
        # A link on the way to the file is the caller's own; inside it there are none.
        whole = path.resolve()
        fd = files.open_read(whole.parent, [whole.name])
    except FileNotFoundError as error:
        raise NotFound(f"no file {path}", hint="give the path of a file that `secondtake export` wrote") from error
    except (OSError, RuntimeError) as error:
        raise Corrupt(f"{path} cannot be read: {error}") from error
    try:
        members = {member.name: member for member in zipped.read(Region(files, fd, 0, files.size(fd)))}
        if JOURNAL not in members:
            raise Corrupt(f"{path} holds no cassette")
    except BaseException:
        files.close(fd)
        raise
    return _Opened(files, fd, members)


def parts(files: Files, path: Path) -> Parts:
    """What a Cassette needs, read in place. Raises NotFound, Corrupt, TooLarge."""
    return _parts(_open(files, path), path)


def _parts(opened: _Opened, path: Path) -> Parts:
    closed: list[int] = []

    def stored(digest: Digest, packed: bool) -> Region:
        return opened.region("/".join(object_parts(digest, packed)))

    def close() -> None:
        if not closed:
            closed.append(1)
            opened.files.close(opened.fd)

    return Parts(path.stem, opened.region(JOURNAL), None, False, None, stored, lambda _, __: None, lambda _: None, close)


def open_file(files: Files, path: Path) -> Cassette:
    """The cassette in an exported file. Raises NotFound, Corrupt, TooLarge, TooNew."""
    made = parts(files, path)
    try:
        return Cassette(made)
    except BaseException:
        made.close()
        raise


def sums_faults(files: Files, path: Path) -> list[Fault]:
    """Whether every member is what its checksum, SHA256SUMS and README.txt say, and none is there that the journal does not name."""
    try:
        cassette = open_file(files, path)
    except (Corrupt, OSError):
        return []  # the check of the journal says so
    with cassette:
        try:
            expected = {one.member.name: one for one in _contents(cassette)}
        except (Corrupt, OSError):
            return []
        opened = _open(files, path)
        try:
            wrong = sorted(name for name in expected.keys() | opened.members.keys() if not _same(opened, name, expected.get(name)))
        finally:
            files.close(opened.fd)
    return [Fault("sums_differ", Severity.ERROR, f"{name} is not what the content makes") for name in wrong]


def _same(opened: _Opened, name: str, expected: _Content | None) -> bool:
    member = opened.members.get(name)
    if member is None or expected is None or (member.size_bytes, member.checksum) != (expected.member.size_bytes, expected.member.checksum):
        return False
    return not isinstance(expected.source, bytes) or opened.region(name).read(0, member.size_bytes) == expected.source


def take_in(files: Files, path: Path, store: Path, folder: Path) -> None:
    """Copy the members of a checked file into a store: objects to their place, the journal (and an index) into `folder`.

    Raises Corrupt when the file changed since it was checked, OSError.
    """
    with open_file(files, path) as cassette:
        for digest, packed in cassette.objects():
            _take_object(files, cassette, digest, packed, store, folder)
        fd = files.create(folder / JOURNAL)
        try:
            _copy(files, fd, cassette.whole)
            files.sync(fd)
        finally:
            files.close(fd)
        packed_index = cassette.packed_index()
        if packed_index is not None and cassette.whole.size_bytes >= INDEX_FROM_BYTES:
            write_index(files, folder, packed_index)
        files.sync_folder(folder)


def _take_object(files: Files, cassette: Cassette, digest: Digest, packed: bool, store: Path, folder: Path) -> None:
    beside = folder / "object.new"
    fd = files.create(beside)
    try:
        with cassette.object_region(digest, packed) as region:
            _copy(files, fd, region)
        check(open_object(Region(files, fd, 0, files.size(fd)), digest, packed), digest)
        files.protect(fd)
        files.sync(fd)
    finally:
        files.close(fd)
    place = store.joinpath(*object_parts(digest, packed))
    files.make_folder(place.parent)
    files.rename(beside, place)
    files.sync_folder(place.parent)
