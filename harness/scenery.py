"""The scene of a take, put back: a workspace and a HOME as they were, where the agent will find them, and nothing else of the person's.

A take acts for real, so it never acts on an original: what it stands in is a scratch copy that was restored from the fixture. Within
a seal the copy stands at the recorded path; where no seal can put it there, an agent that could reach the original is not started.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from secondtake.harness.performing import Standing
from secondtake.harness.restore import restore
from secondtake.harness.results import WouldAct
from secondtake.harness.seal.values import Bind
from secondtake.harness.workspace import remove_workspace

if TYPE_CHECKING:
    from secondtake.cassettes.cassette import Cassette
    from secondtake.harness.fixture import Fixture
    from secondtake.harness.performing import Acting


PREFIX = "secondtake-take-"
"""Of a scratch folder's name; the process that made it follows."""
KEPT = "secondtake-kept-"


@dataclass(frozen=True, slots=True)
class Scenery:
    """One take's. Removed with it, unless it is kept."""

    folder: Path
    work: Path
    """The scratch copy of the workspace."""
    home: Path
    """The scratch HOME."""
    recorded_work: Path
    recorded_home: Path | None
    shown: tuple[Path, ...]
    """What the agent must find of the person's files: programs (performing.py, `needs`)."""

    @property
    def standing(self) -> Standing:
        """Where the agent is to stand: at the recorded paths where they exist here, else where the copies are."""
        if not self.recorded_work.is_dir():
            return Standing(self.work, self.work)
        binds = [Bind(self.work, self.recorded_work)]
        home = self.recorded_home
        if home is not None and home.is_dir() and home.resolve() != self.recorded_work.resolve():
            binds.append(Bind(self.home, home))
            # Programs that lie in the person's HOME are shown in the scratch one, and can be read only.
            binds += [Bind(path, path, writable=False) for path in self.shown if _in(path, home) and not _in(path, self.recorded_work)]
        return Standing(self.work, self.work, binds=tuple(binds), inside=self.recorded_work)

    def home_on(self, acting: Acting) -> Path:
        """HOME as the agent is told on that stage."""
        home = self.recorded_home
        bound = acting.seal.binds_done and any(bind.source == self.home for bind in acting.standing.binds)
        return home if bound and home is not None else self.home

    def cwd_on(self, acting: Acting) -> Path:
        """The workspace as the agent sees it on that stage."""
        return self.recorded_work if acting.seal.binds_done and self.standing.binds else self.work

    def refuse_in_reach(self, acting: Acting) -> None:
        """Refuse a stage from which the original workspace could be acted on.

        Raises:
            WouldAct: the recorded directory is there, and the copy does not stand in its place.
        """
        if self.recorded_work.exists() and self.cwd_on(acting) != self.recorded_work:
            why = f" ({'; '.join(acting.seal.refused)})" if acting.seal.refused else ""
            raise WouldAct(
                f"the scratch copy cannot stand in place of {self.recorded_work}, where tool calls by full path would act{why}",
                hint="run it with --seal auto where namespaces work, or where that directory does not exist (a container)",
            )


def _in(path: Path, folder: Path) -> bool:
    return path != folder and path.is_relative_to(folder)


@contextmanager
def scenery(fixture: Fixture, cassette: Cassette, *, shown: Sequence[Path] = (), keep: bool = False) -> Iterator[Scenery]:
    """Restore the scene of `fixture` into a new scratch folder. `cassette`: the opened recording, for what it says of HOME.

    Raises:
        Corrupt: the fixture's trees are damaged.
        BadInput, NotStored: there is no room for it.
    """
    sweep(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=KEPT if keep else f"{PREFIX}{os.getpid()}-"))
    try:
        work, home = folder / "work" / (fixture.workspace.name or "workspace"), folder / "home"
        work.mkdir(parents=True)
        home.mkdir()
        stage = fixture.stage
        assert stage.workspace is not None, "a fixture holds a workspace"
        with fixture.open_stage() as kept:
            restore(kept, stage.workspace, stage.repository, work)
            if fixture.scene.home == "recorded" and stage.home is not None:
                restore(kept, stage.home, None, home)
        yield Scenery(folder, work, home, fixture.workspace, _home(cassette.meta), tuple(shown))
    finally:
        if not keep:
            remove_workspace(folder)


def sweep(temporary: Path) -> None:
    """Remove the scratch folders of ours whose process was killed before it could."""
    for folder in temporary.glob(f"{PREFIX}*-*"):
        pid = folder.name.removeprefix(PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            status = folder.lstat()
            if pid.isdigit() and status.st_uid == os.geteuid() and stat.S_ISDIR(status.st_mode) and not _alive(int(pid)):
                remove_workspace(folder)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _home(meta: Mapping[str, object]) -> Path | None:
    said = meta.get("home")
    return Path(said) if isinstance(said, str) and said.startswith("/") and len(Path(said).parts) > 1 and "\0" not in said else None
