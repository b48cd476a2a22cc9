"""The noise floor of a fixture: its checks on the untouched tree, before any model is asked. Kept in the store by the fixture's digest.

Kept for a fixture only that has the same digest; deleting the folder costs the time of running its checks once more.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.errors import BadInput, RecordedError
from secondtake.harness.acceptance.floors import floor
from secondtake.harness.acceptance.patching import expected
from secondtake.harness.acceptance.scene import Floor, Scene, decode_floor, encode_floor
from secondtake.harness.capturing import Snapshot
from secondtake.harness.collecting import LIMITS, content_in
from secondtake.harness.equipment import equipped
from secondtake.harness.performing import needs, on_stage
from secondtake.harness.scenery import scenery
from secondtake.harness.seal.values import Wanted

if TYPE_CHECKING:
    from pathlib import Path

    from secondtake.cassettes.exchange import Digest
    from secondtake.cassettes.trees import Entry
    from secondtake.harness.fixture import Fixture
    from secondtake.harness.plan import Stage

FLOORS = "floors"
"""The folder of a store that holds them."""

FLOOR_BYTES = 16 * 1024 * 1024
NOWHERE = 9
"""The port of the proxy that a floor has none of: discard. Its checks find no network, as those of a take."""


async def floor_of(stage: Stage, fixture: Fixture, *, seal: str = "auto") -> Floor | None:
    """Return the noise floor of a fixture, from the store or by running its checks once; None where it has no checks.

    Raises:
        SealBroken, WouldAct, Corrupt, NotStored: as for a take.
    """
    if not fixture.acceptance.check and not fixture.failure.check:
        return None
    place = stage.store.root / FLOORS / f"{fixture.digest}.json"
    kept = _kept(place)
    if kept is not None:
        return kept
    made = await _made(stage, fixture, seal)
    _keep(place, made)
    return made


async def _made(stage: Stage, fixture: Fixture, seal: str) -> Floor:
    async with _scene(stage, fixture, seal, {}) as untouched:
        good = _known_good(fixture, untouched)
        if good is None:
            return await floor(fixture.acceptance, fixture.failure, untouched)
        async with _scene(stage, fixture, seal, good) as patched:
            return await floor(fixture.acceptance, fixture.failure, untouched, replace(patched, start=untouched.final))


def _known_good(fixture: Fixture, untouched: Scene) -> Mapping[str, str | None] | None:
    """What each file of the known-good tree holds that is not as in the untouched one; None where the fixture names no such tree.

    Raises:
        BadInput: the patch cannot be read, or does not fit.
    """
    name = fixture.acceptance.known_good
    if name is None:
        return None
    entries = untouched.final.by_path()

    def text(path: str) -> str | None:
        entry = entries.get(os.fsencode(path))
        content = untouched.after(entry) if entry is not None else None
        try:
            return None if content is None else content.decode("utf-8")
        except UnicodeDecodeError:
            return None

    try:
        patch = (fixture.root / name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read the known-good patch {name}: {error}") from error
    return expected(patch, text)


@asynccontextmanager
async def _scene(stage: Stage, fixture: Fixture, seal: str, other: Mapping[str, str | None]) -> AsyncIterator[Scene]:
    """Give the restored scene, with `other` texts in some of its files, as a take that touched nothing would leave it."""
    with fixture.open_cassette() as cassette, fixture.open_stage() as trees, ExitStack() as cleanup:
        environ = fixture.scene.environment({name: value for name, value in stage.environ.items() if name != "TMPDIR"})
        person = replace(stage, environ=environ)
        equipment = cleanup.enter_context(equipped(person))
        scene = cleanup.enter_context(scenery(fixture, cassette, shown=needs((), environ, equipment.bundle)))
        for path, text in other.items():
            _put(scene.work, path, text)
        begun_s = stage.monotonic_s()
        async with on_stage(
            (),
            equipment,
            NOWHERE,
            scene.standing,
            wanted=Wanted(seal),
            writable=(scene.folder,),
            now_us=lambda: round((stage.monotonic_s() - begun_s) * 1_000_000),
        ) as bare:
            scene.refuse_in_reach(bare)
            home, cwd = scene.home_on(bare), scene.cwd_on(bare)
            actor = replace(person, home=home, cwd=cwd, environ={**environ, "HOME": str(home)})
            acting = replace(bare, equipment=replace(equipment, stage=actor))
            tree = Snapshot(scene.work, _named, equipment.redactor, limits=LIMITS, clock_s=stage.monotonic_s).take().tree
            texts = {digest_of(text.encode()): text.encode() for text in other.values() if text is not None}

            def content(entry: Entry) -> bytes | None:
                changed = texts.get(entry.digest) if entry.digest is not None else None
                return content_in(trees, entry) if changed is None else changed

            yield Scene(
                workspace=scene.work,
                start=tree,
                final=tree,
                before=content,
                after=content,
                environ=acting.environment({}),
                prefix=acting.prefix,
                fixture=fixture.root,
                redactor=equipment.redactor,
                inside=None if cwd == scene.work else str(cwd),
                monotonic_s=stage.monotonic_s,
            )


def _put(work: Path, path: str, text: str | None) -> None:
    """Write, or remove, one file of a scratch workspace. Raises BadInput: it would not be inside of it."""
    target = work / path
    if not target.parent.resolve().is_relative_to(work.resolve()) or target.is_symlink():
        raise BadInput(f"the known-good patch changes {path}, which is not a file of the workspace")
    if text is None:
        target.unlink(missing_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8", newline="")


def _named(_kind: str, content: bytes) -> Digest:
    return digest_of(content)


def _kept(place: Path) -> Floor | None:
    try:
        with place.open("rb") as file:
            return decode_floor(json.loads(file.read(FLOOR_BYTES)))
    except (OSError, ValueError, RecursionError, RecordedError):
        return None


def _keep(place: Path, made: Floor) -> None:
    """A floor that cannot be kept is made again the next time."""
    new = place.with_name(f".new-{os.getpid()}-{place.name}")
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new.write_text(json.dumps(encode_floor(made), sort_keys=True), encoding="utf-8")
        new.replace(place)
    except OSError:
        new.unlink(missing_ok=True)
