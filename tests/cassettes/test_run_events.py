"""The ordered log of a whole cassette."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from secondtake.cassettes import execs, takes
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.event import Event
from secondtake.cassettes.execs import Command
from secondtake.cassettes.run_events import ESCAPES, EXEC, fixture_of, log_of
from secondtake.cassettes.store import Store
from tests.cassettes.scenes import commit
from tests.cassettes.test_takes import TAKE
from tests.cli.scenes import sample

AGENT = Command(10, 0, ("agent", "fix it"), "/repo", 1_000, 9_000_000, 0, None)
STATUS = Command(11, 10, ("git", "status"), "/repo", 2_000, 3_000, 128, None)


def log(store: Store, name: str, **closing: object) -> list[Event]:
    """A take of one exchange, and its log."""
    kind = closing.pop("kind", takes.KIND)
    writer = store.create(name, meta={"kind": kind, "command": ["agent", "fix it"], "cwd": "/repo"})
    one, bodies = sample()[0]
    assert commit(writer, one, {digest_of(data): data for data in bodies}) is None
    writer.keep(EXEC, execs.encode([AGENT, STATUS]))
    writer.close(meta=closing)
    with store.open(name) as cassette:
        return list(log_of(cassette))


def test_a_take_says_what_the_harness_saw_in_its_place(tmp_path: Path) -> None:
    """DESIGN 5: start, exec, escape, exit and the verdict stand among the model's events, by time; the verdict is last."""
    kept = takes.encode(replace(TAKE, fixture="bill", outcome=takes.Outcome.PASS, reason="all held"))
    escapes = [[2_500, "tcp", "10.0.0.1", 443, "db.example"], ["broken"], [1, "tcp"]]
    closing = {takes.KIND: kept, ESCAPES: escapes, "agent_status": 0, "elapsed_us": 9_500_000, "stopped": None}
    found = log(Store(tmp_path), "bill-take-1", **closing)
    kinds = [one.event.value for one in found]
    seen = [kind for kind in kinds if kind in {"start", "exec", "escape", "exit", "verdict"}]
    assert seen == ["start", "exec", "exec", "escape", "exit", "verdict"]
    assert kinds[-2:] == ["exit", "verdict"]
    assert "model_request" in kinds
    assert [one.sequence for one in found] == list(range(len(found)))
    assert [one.offset_us for one in found] == sorted(one.offset_us for one in found)
    by_kind = {one.event.value: one.data for one in found}
    assert (by_kind["exec"]["argv"], by_kind["exec"]["exit_code"], by_kind["exec"]["mark"]) == (["git", "status"], 128, "agent-initiated")
    assert by_kind["escape"] == {"kind": "tcp", "address": "10.0.0.1", "port": 443, "name": "db.example"}
    assert (by_kind["exit"]["exit_code"], by_kind["exit"]["stopped"]) == (0, None)
    assert (by_kind["verdict"]["outcome"], by_kind["verdict"]["reason"]) == ("pass", "all held")
    with Store(tmp_path).open("bill-take-1") as cassette:
        assert fixture_of(cassette) == "bill"


def test_a_recording_has_the_events_of_its_exchanges_and_no_others(tmp_path: Path) -> None:
    """Issue 4: a replay's own log is held against that of the recording, and no replay is a take."""
    found = log(Store(tmp_path), "one", kind="recording", agent_status=0)
    assert not {"start", "exec", "exit", "verdict"} & {one.event.value for one in found}
    with Store(tmp_path).open("one") as cassette:
        assert fixture_of(cassette) is None


def test_a_take_that_was_killed_has_no_end_and_no_verdict(tmp_path: Path) -> None:
    """A cassette without a closing record is no take, and its log is what was kept."""
    store = Store(tmp_path)
    writer = store.create("cut", meta={"kind": takes.KIND, "command": ["agent"]})
    writer.keep(EXEC, execs.encode([AGENT]))
    writer.abandon()
    with store.open("cut") as cassette:
        assert [one.event.value for one in log_of(cassette)][:1] == ["start"]
        assert {one.event.value for one in log_of(cassette)} <= {"start", "exec"}
