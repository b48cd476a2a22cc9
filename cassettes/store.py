"""A folder of cassettes. Layout and every byte: docs/format.md.

cassettes/NAME/journal      the recording (locked while it is written)
cassettes/NAME/index        a cache of it
cassettes/NAME/reserve      space kept free, and how much is durable; only while recording
cassettes/NAME/spool-…      a large body on its way to being an object; only while recording
objects/ab/abcdef…          large bodies, by the SHA-256 of their content
lock                        shared by recorders, exclusive for `gc`
key                         the store's redaction key, never exported
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from secondtake.cassettes import bundle, garbage, journal, layout, names, store_key
from secondtake.cassettes.cassette import Cassette, Parts, State
from secondtake.cassettes.errors import Corrupt, Locked, NameTaken, NotFound, NotStored, RecordedError, TooLarge
from secondtake.cassettes.exchange import Digest, Side
from secondtake.cassettes.files import DiskFiles, Files, Region, errno_name
from secondtake.cassettes.folder import INDEX, JOURNAL, MARK_BYTES, RESERVE, RESERVE_BYTES, read_mark, spool_name
from secondtake.cassettes.garbage import CASSETTES, NEW, OLD
from secondtake.cassettes.journal import FrameWriter, Kind
from secondtake.cassettes.limits import INDEX_BYTES, META_BYTES
from secondtake.cassettes.objects import FOLDER as OBJECTS
from secondtake.cassettes.objects import object_parts
from secondtake.cassettes.verify import Report, check
from secondtake.cassettes.writer import Held, Writer

LOCK = "lock"


@dataclass(frozen=True, slots=True)
class Summary:
    """One line of a list."""

    name: str
    state: State
    exchanges: int
    bytes_on_disk: int
    """Of the cassette's own folder; objects are shared and not counted."""
    created: object
    """What the recording's `meta` says under `created`; None when it says nothing."""
    root: str | None
    trouble: str | None = None
    """Why it cannot be opened (state `damaged`)."""
    meta: Mapping[str, object] = field(default_factory=dict)
    """What it says about itself."""


class Store:
    """A folder of cassettes. Nothing is made on disk before the first recording."""

    def __init__(self, root: Path, *, files: Files | None = None) -> None:
        self.root = root
        self._files = DiskFiles() if files is None else files

    # Writing

    def create(self, name: str, *, meta: Mapping[str, object], replace: bool = False) -> Writer:
        """Begin a recording. Raises NameTaken, Locked, NotStored, BadInput, TooLarge."""
        names.check(name)
        start = layout.pack({"meta": layout.ordered(meta)})
        if len(start) > META_BYTES:
            raise TooLarge(f"what recording `{name}` says about itself has {len(start)} bytes, at most {META_BYTES} are kept")
        with self._storing(name):
            store_lock = self._share()
            try:
                self._free(name, replace)
                held, size = self._begin(name, start, store_lock, replace)
            except BaseException:
                self._files.close(store_lock)
                raise
        return Writer(self._files, self.root, self._folder(name), name, held, size)

    def _folder(self, name: str) -> Path:
        return self.root / CASSETTES / name

    @contextlib.contextmanager
    def _storing(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = errno_name(error)
            raise NotStored(f"cassette `{name}` cannot be written in {self.root}: {error.strerror or error}", reason=reason) from error

    def _share(self) -> int:
        """Hold the store's lock as one of many recorders: what they write and do not yet refer to is not collected meanwhile."""
        self._files.make_folder(self.root)
        fd = self._files.open_lock(self.root / LOCK)
        try:
            self._files.lock(fd, exclusive=False, wait=True)
            self._files.make_folder(self.root / CASSETTES)
            self._files.make_folder(self.root / OBJECTS)
        except BaseException:
            self._files.close(fd)
            raise
        return fd

    def _free(self, name: str, replace: bool) -> None:
        """Raises NameTaken, Locked."""
        same = [other for other in self._names() if other.casefold() == name.casefold()]
        for other in same:
            if self._is_recording(other):
                raise Locked(f"cassette `{other}` is being recorded", hint="wait for it to end, or choose another name")
            if not replace or other != name:
                raise NameTaken(f"cassette `{other}` exists", hint="choose another name, or give `--replace`")

    def _begin(self, name: str, start: bytes, store_lock: int, replace: bool) -> tuple[Held, int]:
        """Make the folder beside its place, with a locked journal in it, and rename it there: it appears whole, and is taken once."""
        beside = self._aside(NEW, name)
        opened: list[int] = []
        try:
            fd = self._files.create(beside / JOURNAL)
            opened.append(fd)
            if not self._files.lock(fd, exclusive=True, wait=False):
                raise Locked(f"cassette `{name}` is being recorded")
            head = journal.preface()
            head += FrameWriter().make(Kind.START, start, len(head))
            self._files.write(fd, head)
            reserve = self._files.create(beside / RESERVE)
            self._files.write(reserve, bytes(RESERVE_BYTES))
            self._files.close(reserve)
            reserve = self._files.open_fixed(beside / RESERVE)
            opened.append(reserve)
            self._files.sync(reserve)
            self._files.sync(fd)
            self._files.sync_folder(beside)
            self._place(beside, name, replace)
        except BaseException:
            for one in opened:
                with contextlib.suppress(OSError):
                    self._files.close(one)
            with contextlib.suppress(OSError):
                garbage.erase(self._files, beside)
            raise
        return Held(fd, reserve, store_lock), len(head)

    def _aside(self, prefix: str, name: str) -> Path:
        """A new folder beside the cassettes."""
        number = 0
        while True:
            beside = self.root / CASSETTES / f"{prefix}{number}-{name}"
            try:
                self._files.make_folder_once(beside)
            except FileExistsError:
                number += 1
            else:
                return beside

    def _place(self, beside: Path, name: str, replace: bool) -> None:
        """Move a finished folder to its name. Raises NameTaken."""
        old: Path | None = None
        if replace and self._files.status(self._folder(name)) is not None:
            old = self._aside(OLD, name)
            self._files.rename(self._folder(name), old)
        try:
            self._files.rename(beside, self._folder(name))
        except OSError as error:
            if old is not None:
                with contextlib.suppress(OSError):
                    self._files.rename(old, self._folder(name))
            if errno_name(error) in ("ENOTEMPTY", "EEXIST", "ENOTDIR"):
                raise NameTaken(f"cassette `{name}` exists", hint="choose another name, or give `--replace`") from error
            raise
        try:
            self._files.sync_folder(self.root / CASSETTES)
        except OSError:
            with contextlib.suppress(OSError):
                garbage.erase(self._files, self._folder(name))
            raise
        if old is not None:
            with contextlib.suppress(OSError):
                garbage.erase(self._files, old)

    def remove(self, name: str) -> None:
        """Take a cassette away; its objects stay until `gc`. Raises NotFound, Locked, NotStored."""
        name = self.resolve(name)
        if self._is_recording(name):
            raise Locked(f"cassette `{name}` is being recorded", hint="wait for it to end")
        with self._storing(name):
            old = self._aside(OLD, name)
            self._files.rename(self._folder(name), old)
            self._files.sync_folder(self.root / CASSETTES)
            garbage.erase(self._files, old)

    def key(self, entropy: Callable[[int], bytes]) -> bytes:
        """The store's redaction key: 32 bytes, made with `entropy` the first time. Raises NotStored, Corrupt."""
        with self._storing("key"):
            return store_key.read_or_make(self._files, self.root, entropy)

    # Reading

    def _names(self) -> list[str]:
        found = self._files.names(self.root / CASSETTES)
        return [name for name in found if names.is_name(name)]

    def resolve(self, name: str) -> str:
        """The full name for a name, a unique beginning of one, or `@last`. Raises NotFound, BadInput."""
        known = self._names()
        if name == names.LAST:
            if not known:
                raise NotFound(f"no cassette is in {self.root} yet", hint="record one: `secondtake record NAME -- COMMAND`")
            return max(known, key=lambda one: (self._modified(one), one))
        names.check(name)
        if name in known:
            return name
        begin = [one for one in known if one.startswith(name)]
        if len(begin) == 1:
            return begin[0]
        if begin:
            shown = ", ".join(begin[:5]) + (", …" if len(begin) > 5 else "")
            raise NotFound(f"`{name}` is the beginning of {len(begin)} cassettes: {shown}", hint="give more of the name")
        near = names.closest(name, known)
        closest = f"; closest: {', '.join(near)}" if near else ""
        raise NotFound(f"no cassette `{name}` in {self.root}{closest}", hint="`secondtake ls` lists them")

    def _modified(self, name: str) -> int:
        status = self._files.status(self._folder(name) / JOURNAL)
        return 0 if status is None else status.modified_ns

    def _is_recording(self, name: str) -> bool:
        try:
            fd = self._files.open_read(self.root, [CASSETTES, name, JOURNAL])
        except OSError:
            return False
        try:
            return self._locked(fd)
        finally:
            self._files.close(fd)

    def _locked(self, fd: int) -> bool:
        """Whether a recorder holds the journal. The lock is only tried; one on a medium that knows no locks is held by nobody."""
        try:
            if not self._files.lock(fd, exclusive=False, wait=False):
                return True
            self._files.unlock(fd)
        except OSError:
            pass
        return False

    def open(self, name: str) -> Cassette:
        """A cassette by name, unique beginning, `@last`, or the path of an exported file. Raises NotFound, Corrupt, TooNew, BadInput."""
        if names.looks_like_path(name):
            return bundle.open_file(self._files, Path(name))
        return Cassette(self._parts(self.resolve(name)))

    def _parts(self, name: str) -> Parts:
        base = [CASSETTES, name]
        opened: list[int] = []

        def region(parts: list[str]) -> Region:
            fd = self._files.open_read(self.root, parts)
            opened.append(fd)
            return Region(self._files, fd, 0, self._files.size(fd))

        def release(one: Region) -> None:
            if one.fd in opened:
                opened.remove(one.fd)
                self._files.close(one.fd)

        def close() -> None:
            while opened:
                self._files.close(opened.pop())

        def spool(seq: int, side: Side) -> Region | None:
            try:
                return region([*base, spool_name(seq, side)])
            except OSError:
                return None

        def stored(digest: Digest, packed: bool) -> Region:
            return region(list(object_parts(digest, packed)))

        try:
            fd = self._files.open_read(self.root, [*base, JOURNAL])
        except OSError as error:
            raise Corrupt(f"cassette `{name}` has no readable journal: {error.strerror}") from error
        opened.append(fd)
        try:
            recording = self._locked(fd)
            # In this order: a recorder that closes in between is seen as closed, by its closing record.
            mark = read_mark(self._small([*base, RESERVE], MARK_BYTES) or b"")
            whole = Region(self._files, fd, 0, self._files.size(fd))
            return Parts(name, whole, self._small([*base, INDEX], INDEX_BYTES), recording, mark, stored, spool, release, close)
        except BaseException:
            close()
            raise

    def _small(self, parts: list[str], limit: int) -> bytes | None:
        """A file of at most `limit` bytes (of a longer one, its beginning), or None."""
        try:
            fd = self._files.open_read(self.root, parts)
        except OSError:
            return None
        try:
            return self._files.read(fd, 0, min(self._files.size(fd), limit))
        except OSError:
            return None
        finally:
            self._files.close(fd)

    def list(self) -> list[Summary]:
        """Every cassette, in order of name. Never raises for a damaged one: it is listed as such."""
        return [self._summary(name) for name in self._names()]

    def _summary(self, name: str) -> Summary:
        size = 0
        for one in self._files.names(self._folder(name)):
            status = self._files.status(self._folder(name) / one)
            size += 0 if status is None else status.allocated_bytes
        try:
            with Cassette(self._parts(name)) as cassette:
                meta = cassette.meta
                return Summary(name, cassette.state, len(cassette.rows), size, meta.get("created"), cassette.root, meta=meta)
        except (RecordedError, OSError) as error:
            return Summary(name, State.DAMAGED, 0, size, None, None, str(error))

    def verify(self, name: str, *, quick: bool = False, subset: tuple[int, int] | None = None, root: str | None = None) -> Report:
        """Check a cassette, or an exported file. Raises NotFound, BadInput; damage is in the report."""
        if names.looks_like_path(name):
            return self._verify_file(Path(name), quick=quick, subset=subset, root=root)
        full = self.resolve(name)
        return check(full, lambda: self._parts(full), quick=quick, subset=subset, root=root)

    def _verify_file(self, path: Path, *, quick: bool = False, subset: tuple[int, int] | None = None, root: str | None = None) -> Report:
        report = check(str(path), lambda: bundle.parts(self._files, path), quick=quick, subset=subset, root=root)
        if quick or subset is not None or not report.readable:
            return report
        return dataclasses.replace(report, faults=(*report.faults, *bundle.sums_faults(self._files, path)))

    def export(self, name: str, path: Path) -> None:
        """Write a cassette and its objects as one file; same content, same bytes. Raises NotFound, Corrupt, Locked, NotStored."""
        full = self.resolve(name)
        with Cassette(self._parts(full)) as cassette, self._storing(str(path)):
            bundle.write(self._files, cassette, path)

    def import_(self, path: Path, name: str | None = None) -> str:
        """Take in an exported file under `name` (default: what the file is called). Returns the name. Every byte is checked first.

        Raises NotFound, NameTaken, Corrupt, TooNew, TooLarge, NotStored, BadInput.
        """
        chosen = names.check(path.name.removesuffix(names.EXPORTED) if name is None else name)
        report = self._verify_file(path)
        if not report.readable or report.damaged:
            raise Corrupt(f"{path} is damaged: {report.faults[0]}", faults=report.faults)
        with self._storing(chosen):
            lock = self._share()
            beside: Path | None = None
            try:
                self._free(chosen, replace=False)
                beside = self._aside(NEW, chosen)
                bundle.take_in(self._files, path, self.root, beside)
                self._place(beside, chosen, replace=False)
            except BaseException:
                if beside is not None:
                    with contextlib.suppress(OSError):
                        garbage.erase(self._files, beside)
                raise
            finally:
                self._files.close(lock)
        return chosen

    def gc(self, *, dry_run: bool = False) -> garbage.Collected:
        """Remove objects no cassette refers to, and what interrupted recordings left behind. Raises Locked while a recording runs,
        Corrupt when a cassette cannot be read (what it refers to is then unknown), NotStored."""
        if self._files.status(self.root) is None:
            return garbage.Collected((), 0)
        with self._storing("gc"):
            fd = self._files.open_lock(self.root / LOCK)
            try:
                if not self._files.lock(fd, exclusive=True, wait=False):
                    raise Locked("a recording is running in this store", hint="run `secondtake gc` when it has ended")
                used: set[tuple[Digest, bool]] = set()
                for name in self._names():
                    with Cassette(self._parts(name)) as cassette:
                        used.update(cassette.objects())
                return garbage.collect(self._files, self.root, used, dry_run=dry_run)
            finally:
                self._files.close(fd)
