"""Where a matrix stands: its sealed design in STORE/matrices/ID/design.json, and everything else in the takes of the store.

Beside the design only a `lock`, which is empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from secondtake.cassettes import names
from secondtake.cassettes.cassette import State
from secondtake.cassettes.errors import Corrupt, Locked, NameTaken, NotFound, NotStored, RecordedError
from secondtake.cassettes.files import DiskFiles, Files, errno_name
from secondtake.cassettes.takes import decode as decode_take
from secondtake.harness.matrix.cells import Named
from secondtake.harness.matrix.design import DESIGN_BYTES, Design, decode, differences

if TYPE_CHECKING:
    from secondtake.cassettes.store import Store

FOLDER = "matrices"
FILE = "design.json"
NEW = ".new"
LOCK = "lock"


class Matrices:
    """The sealed designs of one store. Nothing is made on disk before the first is sealed."""

    def __init__(self, root: Path, *, files: Files | None = None) -> None:
        self._root = root
        self._files = DiskFiles() if files is None else files

    def ids(self) -> list[str]:
        """Every matrix, in order of name."""
        found = self._files.names(self._root / FOLDER)
        return [name for name in found if names.is_name(name) and self._files.status(self._root / FOLDER / name / FILE) is not None]

    def resolve(self, text: str) -> str:
        """The full ID for an ID or a unique beginning of one. Raises NotFound, BadInput."""
        names.check(text)
        known = self.ids()
        begin = [text] if text in known else [one for one in known if one.startswith(text)]
        if len(begin) == 1:
            return begin[0]
        if begin:
            raise NotFound(f"`{text}` is the beginning of {len(begin)} matrices: {', '.join(begin[:5])}", hint="give more of the ID")
        near = [one for one in known if names.closest(text, [one[: len(text)]])][:3]
        closest = f"; closest: {', '.join(near)}" if near else ""
        raise NotFound(f"no matrix `{text}` in {self._root}{closest}", hint="`secondtake matrix FIXTURE --model PIN` begins one")

    def read(self, matrix: str) -> Design:
        """The sealed design. Raises NotFound, Corrupt, TooNew."""
        try:
            fd = self._files.open_read(self._root, [FOLDER, names.check(matrix), FILE])
        except OSError as error:
            raise NotFound(f"no matrix `{matrix}` in {self._root}") from error
        try:
            content = self._files.read(fd, 0, min(self._files.size(fd), DESIGN_BYTES + 1))
        except OSError as error:
            raise Corrupt(f"the design of `{matrix}` cannot be read: {error.strerror}") from error
        finally:
            self._files.close(fd)
        design = decode(content)
        if design.id != matrix:
            raise Corrupt(f"the design in {FOLDER}/{matrix} is that of {design.id}")
        return design

    def looked_up(self, design: Design, *, resume: bool) -> Design:
        """The design that is to be run: `design`, or with `resume` the one that has its ID. Nothing is written.

        A resumed design with more repeats is topped up: the new number is added to its looks. Fewer repeats change nothing.

        Raises:
            NameTaken: it exists, and was not to be resumed; NotFound: there is none to resume; Corrupt, TooNew, BadInput.
        """
        matrix = names.check(design.id)
        if self._files.status(self._root / FOLDER / matrix / FILE) is None:
            if resume:
                raise NotFound(f"no matrix of this design in {self._root}{self._nearest(design)}", hint="leave out --resume to begin it")
            return design
        if not resume:
            raise NameTaken(f"matrix `{matrix}` exists", hint="--resume goes on with it; --as NAME begins another")
        held = self.read(matrix)
        if design.repeats > held.repeats:
            held = replace(held, looks=(*held.looks, design.repeats))
        # What changes no result is as it is asked for now; sealed it stays as it was.
        return replace(held, jobs=design.jobs, pacing=design.pacing, max_cost=design.max_cost)

    def seal(self, design: Design) -> Design:
        """Make it durable before the first call: a new design whole, of one that is there only the repeats that were added.

        Returns what is sealed. Raises NotStored, Corrupt, TooNew.
        """
        if self._files.status(self._root / FOLDER / design.id / FILE) is None:
            self._write(design)
            return design
        held = self.read(design.id)
        if design.looks != held.looks:
            held = replace(held, looks=design.looks)
            self._write(held)
        return held

    def _nearest(self, design: Design) -> str:
        for matrix in reversed(self.ids()):
            try:
                other = self.read(matrix)
            except RecordedError:
                continue
            if other.fixture == design.fixture:
                return f"; `{matrix}` differs in {', '.join(differences(other, design))}"
        return ""

    def _write(self, design: Design) -> None:
        folder = self._root / FOLDER / design.id
        files = self._files
        try:
            files.make_folder(folder)
            beside = folder / (FILE + NEW)
            if files.status(beside) is not None:
                files.remove(beside)  # of a run that was killed while it wrote
            fd = files.create(beside)
            try:
                files.write(fd, design.content)
                files.sync(fd)
            finally:
                files.close(fd)
            files.rename(beside, folder / FILE)
            files.sync_folder(folder)
        except OSError as error:
            raise NotStored(f"the design of `{design.id}` cannot be kept: {error.strerror or error}", reason=errno_name(error)) from error

    @contextmanager
    def held(self, matrix: str) -> Iterator[None]:
        """Have it alone, from before `begin` on: two processes at one matrix would run cells twice. Raises Locked, NotStored, BadInput."""
        folder = self._root / FOLDER / names.check(matrix)
        try:
            self._files.make_folder(folder)
            fd = self._files.open_lock(folder / LOCK)
        except OSError as error:
            raise NotStored(f"matrix `{matrix}` cannot be kept: {error.strerror or error}", reason=errno_name(error)) from error
        try:
            if not self._files.lock(fd, exclusive=True, wait=False):
                raise Locked(f"matrix `{matrix}` is being run", hint="wait for it to end")
            yield
        finally:
            self._files.close(fd)


def takes_of(store: Store, matrix: str) -> tuple[tuple[Named, ...], tuple[str, ...]]:
    """The closed takes of a matrix, in order of name, and the names of those that were begun and never closed.

    Raises:
        Corrupt, TooNew: a take of this matrix cannot be read; it is not passed over, which would run its cell twice.
    """
    found: list[Named] = []
    cut: list[str] = []
    for summary in store.list():
        name, ours = summary.name, summary.name.startswith(f"{matrix}-")
        if summary.state is State.DAMAGED and ours:
            raise Corrupt(f"take `{name}` cannot be read: {summary.trouble}", hint=f"secondtake verify {name}")
        if summary.state is not State.CLOSED:
            if ours:
                cut.append(name)
            continue
        try:
            with store.open(name) as cassette:
                kept = cassette.meta.get("take")
            take = None if kept is None else decode_take(kept)
        except NotFound:
            continue  # taken away meanwhile
        except RecordedError:
            if ours:
                raise
            continue
        if take is not None and take.matrix == matrix:
            found.append(Named(name, take))
    return tuple(found), tuple(cut)
