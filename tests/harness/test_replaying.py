"""Where a replayed agent may run, and what a cassette says of itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import cast

import pytest

from secondtake.cassettes.cassette import Cassette
from secondtake.cassettes.exchange import Answer, Channel, Fields, Request
from secondtake.cassettes.memory import MemoryCassette
from secondtake.harness import replaying
from secondtake.harness.performing import Standing
from secondtake.harness.plan import Where
from secondtake.harness.replaying import recorded_start, stand, told
from secondtake.harness.results import WouldAct
from tests.harness.stages import stage_in

JSON: Fields = ((b"content-type", b"application/json"),)


class Recorded(MemoryCassette):
    """A cassette in memory that says something about itself, and keeps no stage."""

    artifacts = ()

    def __init__(self, **meta: object) -> None:
        super().__init__()
        self.meta: Mapping[str, object] = meta


def calling(path: str, **meta: object) -> Cassette:
    """A cassette whose model has the agent write a file."""
    made = Recorded(**meta)
    block = {"type": "tool_use", "id": "toolu_1", "name": "write_file", "input": {"path": path}}
    received = json.dumps({"type": "message", "role": "assistant", "content": [block], "stop_reason": "tool_use"}).encode()
    request = Request("POST", "https", "api.provider.example", 443, b"/v1/messages", fields=JSON)
    sent = json.dumps({"model": "m", "max_tokens": 1, "messages": []}).encode()
    made.record(request, Answer(200, fields=JSON), sent=sent, received=received, channel=Channel.MODEL, adapter="anthropic")
    return cast(Cassette, made)


def plain() -> Cassette:
    """A cassette without a model."""
    made = Recorded()
    made.record(Request("GET", "https", "web.example", 443, b"/"), Answer(200))
    return cast(Cassette, made)


def stood(tmp_path: Path, cassette: Cassette, where: Where, announced: list[str] | None = None) -> Standing:
    """Where the agent would run; what was made for it is gone again."""
    with ExitStack() as cleanup:
        into: list[str] = [] if announced is None else announced
        return stand(stage_in(tmp_path), cassette, "x y", ["make", "it so"], where, into.extend, cleanup)


def test_a_recording_without_tool_calls_plays_where_it_stands(tmp_path: Path) -> None:
    """DESIGN 6: a plain `pip install`."""
    assert stood(tmp_path, plain(), Where()) == Standing(tmp_path)


def test_a_recording_with_tool_calls_is_refused_with_a_line_that_can_be_pasted(tmp_path: Path) -> None:
    """DESIGN 6: exit 105, naming the directory."""
    with pytest.raises(WouldAct, match="write_file in exchange 1") as raised:
        stood(tmp_path, calling("a.txt"), Where())
    assert str(tmp_path) in str(raised.value)
    assert raised.value.hint == f"secondtake replay 'x y' --workspace {tmp_path} -- make 'it so'"


def test_in_place_says_first_what_would_be_done(tmp_path: Path) -> None:
    """DESIGN 6."""
    announced: list[str] = []
    assert stood(tmp_path, calling("a.txt"), Where(in_place=True), announced) == Standing(tmp_path)
    assert announced == ['1 write_file {"path":"a.txt"}']


def test_a_scratch_copy_has_the_name_of_its_original(tmp_path: Path) -> None:
    """Tools print the name of the folder they run in."""
    (tmp_path / "project").mkdir()
    standing = stood(tmp_path, calling("a.txt"), Where(copy_of=tmp_path / "project"))
    where = standing.cwd
    assert standing == Standing(where, where)
    assert where.name == "project"
    assert where != tmp_path / "project"
    assert not where.parent.exists()


def test_a_kept_copy_stays(tmp_path: Path) -> None:
    """--keep."""
    (tmp_path / "project").mkdir()
    where = stood(tmp_path, calling("a.txt"), Where(copy_of=tmp_path / "project", keep=True)).cwd
    assert where.is_dir()
    where.rmdir()
    where.parent.rmdir()


def test_a_copy_elsewhere_is_no_protection_from_a_full_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay cannot hurt: without namespaces, what names the recorded directory would act there; where it is not, nothing can be hurt."""
    monkeypatch.setattr(replaying, "_stand_in", lambda *_: None)
    (tmp_path / "project").mkdir()
    where = Where(copy_of=tmp_path / "project")
    recorded = str(tmp_path / "project")
    with pytest.raises(WouldAct, match="by its full path"):
        stood(tmp_path, calling(f"{recorded}/a.txt", cwd=recorded), where)
    assert stood(tmp_path, calling("a.txt", cwd=recorded), where).prefix == ()
    stood(tmp_path, calling("/gone/project/a.txt", cwd="/gone/project"), where)


@pytest.mark.parametrize("cwd", ["/", "/..", "relative", "", "/a\0b", 7, None, sys.prefix])
def test_what_a_cassette_says_of_its_place_hides_nothing_that_is_needed(tmp_path: Path, cwd: object) -> None:
    """Untrusted: a cassette from elsewhere may name `/`, or where our interpreter is."""
    (tmp_path / "project").mkdir()
    standing = stood(tmp_path, calling("a.txt", cwd=cwd), Where(copy_of=tmp_path / "project"))
    assert standing.prefix == ()
    assert standing.cwd == standing.copy


@pytest.mark.parametrize("created", [None, 7, "yesterday", "2026-11-30", "2026-11-30T12:00:00"])
def test_a_start_that_cannot_be_read_is_none(created: object) -> None:
    """What a recording says about itself is untrusted too; a time without a zone is no time."""
    assert recorded_start(cast(Cassette, Recorded(created=created))) is None


def test_the_recorded_start_is_read() -> None:
    """Leaf certificates are valid at a clock frozen there."""
    assert recorded_start(cast(Cassette, Recorded(created="2026-11-30T12:00:00+00:00"))) == datetime.fromisoformat(
        "2026-11-30T12:00:00+00:00"
    )


@pytest.mark.parametrize(("value", "words"), [(["A", "B"], ("A", "B")), (["A", 7], ("A",)), ("AB", ()), (None, ()), ({"A": 1}, ())])
def test_only_a_list_of_words_is_one(value: object, words: tuple[str, ...]) -> None:
    """Untrusted."""
    assert told(cast(Cassette, Recorded(credentials=value)), "credentials") == words
