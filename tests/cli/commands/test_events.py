"""`events`: what happened, in order, from the cassette alone."""

from __future__ import annotations

import hashlib
import json
import stat
from pathlib import Path

from secondtake.cassettes.exchange import Answer, Answered, Channel, Request
from secondtake.cassettes.store import Store
from tests.cli.scenes import ASK, CALLS, JSON, Command, body, exchange, keep

RESULT = (
    b'{"model":"hasty-20260101","max_tokens":64,"messages":[{"role":"user","content":"fix it"},{"role":"assistant","content":'
    b'[{"type":"tool_use","id":"toolu_1","name":"run","input":{"command":"make test"}}]},{"role":"user","content":[{"type":'
    b'"tool_result","tool_use_id":"toolu_1","content":"2 failed \\u001b]0;evil\\u0007"}]}],"tools":[{"name":"run","input_schema":{}}]}'
)
DONE = b'{"id":"msg_2","type":"message","role":"assistant","model":"hasty-20260101","content":[{"type":"text","text":"Done."}],\
"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":2}}'


def kept(store: Store) -> None:
    """Two model calls with a tool call between them, and a miss."""
    url = ("POST", "https", "api.provider.example", 443, b"/v1/messages", "HTTP/1.1", JSON)
    page = Request("GET", "https", "web.example", 443, b"/new")
    keep(
        store,
        "story",
        [
            (exchange(1, Channel.MODEL, Request(*url, body(ASK)), Answer(200, fields=JSON, body=body(CALLS))), [ASK, CALLS]),
            (exchange(2, Channel.WEB, page, Answer(424), answered=Answered.MISS, details={"miss": "new-resource"}), []),
            (exchange(3, Channel.MODEL, Request(*url, body(RESULT)), Answer(200, fields=JSON, body=body(DONE))), [RESULT, DONE]),
        ],
    )


def test_the_log_is_in_order_and_matches_results_to_calls(command: Command, store: Store) -> None:
    """Issue 3.7, DESIGN 5: the fixed names, from the cassette alone."""
    kept(store)
    ran = command("events", "story", "--json")
    log = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.code == 0
    assert [(one["sequence"], one["event"], one["exchange"]) for one in log] == [
        (0, "model_request", 1),
        (1, "model_response", 1),
        (2, "tool_call", 1),
        (3, "miss", 2),
        (4, "tool_result", 3),
        (5, "model_request", 3),
        (6, "model_response", 3),
        (7, "stop", None),
    ]
    assert {one["version"] for one in log} == {1}
    assert {one["run_id"] for one in log} == {"story"}
    assert (log[4]["tool"], log[4]["call_exchange"], log[4]["matched"]) == ("run", 1, True)
    assert log[3]["kind"] == "new-resource"


def test_a_person_reads_it_as_a_table_without_recorded_control_characters(command: Command, store: Store) -> None:
    """DESIGN 7: untrusted recorded text never reaches a terminal raw."""
    kept(store)
    ran = command("events", "story")
    assert "\x1b" not in ran.out
    assert 'tool_call       hasty-20260101  run {"command":"make test"}' in ran.out
    assert "tool_result     hasty-20260101  run, called in 1" in ran.out
    assert "new-resource: GET https://web.example/new" in ran.out
    assert "200 answered, stop end, served by hasty-20260101, 9 in, 2 out" in ran.out
    assert ran.err == "\nstory: 8 events, closed\n"


def test_each_payload_that_is_named_by_hash_is_written_out_once_and_for_us_only(command: Command, store: Store, tmp_path: Path) -> None:
    """Issue 3.7: large payloads by hash, with --artifacts DIR to write them out."""
    kept(store)
    folder = tmp_path / "artifacts"
    first = command("events", "story", "--json", "--artifacts", str(folder))
    log = [json.loads(line) for line in first.out.splitlines()]
    named = {value for one in log for key, value in one.items() if key.endswith("_sha256") and value}
    files = {path.name: path for path in folder.iterdir()}
    assert set(files) == named
    for digest, path in files.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert RESULT in {path.read_bytes() for path in files.values()}
    before = {path: path.stat().st_mtime_ns for path in files.values()}
    assert command("events", "story", "--json", "--artifacts", str(folder)).out == first.out
    assert {path: path.stat().st_mtime_ns for path in files.values()} == before


def test_artifacts_that_cannot_be_written_are_bad_input(command: Command, store: Store, tmp_path: Path) -> None:
    """Said before anything is read."""
    (tmp_path / "file").write_text("")
    ran = command("events", "incident", "--artifacts", str(tmp_path / "file" / "x"))
    assert (ran.code, ran.out) == (64, "")
    assert "cannot write artifacts" in ran.err


def test_a_recording_without_a_model_has_an_empty_log(command: Command, store: Store) -> None:
    """A plain `pip install`."""
    keep(store, "plain", [(exchange(1, Channel.WEB, Request("GET", "https", "web.example", 443, b"/"), Answer(200)), [])])
    assert command("events", "plain", "--json").out == ""


def test_a_recording_without_a_model_says_where_to_look(command: Command, store: Store) -> None:
    """STYLE 4.6: an empty log is no dead end."""
    page = Request("GET", "https", "web.example", 443, b"/")
    keep(store, "pages", [(exchange(1, Channel.WEB, page, Answer(200)), [])])
    ran = command("events", "pages")
    assert ran.err.splitlines()[-2:] == [
        "pages: 0 events, closed",
        "no model and no MCP server was asked; `secondtake show pages` lists what was",
    ]
