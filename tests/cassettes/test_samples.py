"""Stores of every released format version are read for ever (B4.11)."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import zstandard

from secondtake.cassettes import codec
from secondtake.cassettes.cassette import State
from secondtake.cassettes.exchange import Ending, Side
from secondtake.cassettes.stages import staged
from secondtake.cassettes.store import Store
from secondtake.harness.blame import blame
from secondtake.harness.restore import restored_scratch
from secondtake.harness.snapshot import capture
from tests.cassettes.scenes import assert_holds, read_body
from tests.harness.workspaces import Kept, redactor
from tests.samples import make_v1, make_v1_strands

V1 = Path(__file__).parents[1] / "samples" / "v1"
STRANDS = Path(__file__).parents[1] / "samples" / "v1-strands.take"
STAGE = Path(__file__).parents[1] / "samples" / "v1-stage.take"


def test_a_store_of_version_1_is_read_whole() -> None:
    """B-09, B4.11: exchanges, deltas, both kinds of object, the died cassette, the key."""
    store = Store(V1)
    assert [(one.name, one.state, one.exchanges) for one in store.list()] == [("closed", State.CLOSED, 7), ("died", State.DIED, 4)]
    assert store.verify("closed", root="9094b667cfc28fdc08eb1629cb9de2fa2c1f2de980efa1b0d52fb6d8d5eb2265").faults == ()
    assert store.verify("died").exit_code == 0
    with store.open("closed") as cassette:
        for one, bodies in make_v1.WHAT:
            assert_holds(cassette, one, bodies)
        for seq, data in ((100, make_v1.LARGE), (101, make_v1.PACKED)):
            answer = cassette.exchange(seq).answer
            assert answer is not None
            assert cassette.exchange(seq) == make_v1.large(seq, data)
            assert read_body(cassette, answer.body) == data
    with store.open("died") as cassette:
        assert [row.ended for row in cassette.rows] == [Ending.COMPLETE] * 3 + [Ending.RECORDER_DIED]
        assert_holds(cassette, *make_v1.WHAT[1])
    assert store.key(bytes) == bytes(range(32))


def test_a_file_exported_in_version_1_is_opened_and_imported(tmp_path: Path) -> None:
    """DESIGN 4: `export` and `import` across versions."""
    store = Store(tmp_path)
    assert store.verify(str(V1 / "exported.take")).faults == ()
    assert store.import_(V1 / "exported.take", "again") == "again"
    with store.open("again") as cassette:
        assert_holds(cassette, *make_v1.WHAT[0])


def test_a_recording_of_version_1_1_is_read_whole() -> None:
    """B4.11: bodies in strands; and the bytes are those of 1.1, not what this program would write today."""
    store = Store(V1)
    assert store.verify(str(STRANDS), root="38c4626372fde5009a897c1543efdd9b3037c667357219a68e4f302db0ea495b").faults == ()
    with store.open(str(STRANDS)) as cassette:
        assert (cassette.format, cassette.minor) == (1, 1)
        for one, bodies in make_v1_strands.WHAT:
            assert_holds(cassette, one, bodies)


def test_the_stage_of_a_recording_of_version_1_is_restored(tmp_path: Path) -> None:
    """Issue 5: a workspace that was captured then comes back as it was; made by make_v1_stage.py."""
    store = Store(tmp_path / "store")
    assert store.verify(str(STAGE)).faults == ()
    with store.open(str(STAGE)) as cassette:
        told = staged(cassette)
        assert told is not None
        assert told.final == told.turns[0].tree == "3ac780028df1c6dfe7c19bab9d0def1636e8c5695c76117dd934cd29ddeb13e7"
        assert [(one.change.path, one.step) for one in blame(cassette, b"new.txt")] == [(b"new.txt", 2)]
        place = restored_scratch(cassette, tmp_path)
    assert place == tmp_path / "work"
    again = capture(place, Kept().keep, redactor())
    assert again.fingerprint == "98bcca4b602c05c76fc87479fb8beebef66aa20d8765570d11cd4531405bd611"


def test_the_code_in_the_page_reads_a_strand() -> None:
    """format.md: what it says about strands is enough to read one."""
    page = (Path(__file__).parents[2] / "docs" / "format.md").read_text("utf-8")
    said: dict[str, Any] = {"zstandard": zstandard, "struct": struct}
    exec(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0], said)
    with Store(V1).open(str(STRANDS)) as cassette:
        for side in (Side.REQUEST, Side.RESPONSE):
            bodies = [one.request.body if side is Side.REQUEST else one.answer.body for one, _ in make_v1_strands.WHAT if one.answer]
            at = {body.digest: place for body in bodies if (place := cassette._index.body(body.digest)) and place.length}
            root, *rest = sorted(at, key=lambda digest: at[digest].offset)
            frames = [codec.unpack(cassette._frames.body_at(at[digest])) for digest in rest]
            held = {digest: data for _, bodies in make_v1_strands.WHAT for digest, data in bodies.items()}
            for count, digest in enumerate(rest, 1):
                parts = [(one.data, one.table_bytes) for one in frames[:count]]
                assert said["body"](parts, held[root]) == held[digest]
