"""`replay`: as it was; nothing leaves."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from secondtake.cassettes.store import Store
from secondtake.harness import standin, stopping
from secondtake.harness.demo import agent_environment, prepare
from tests.cli.models import AGENT, running
from tests.cli.scenes import ASK, GET, Command, keep, python, sample

pytestmark = pytest.mark.loopback


def test_what_was_recorded_is_played_with_the_origin_gone(command: Command, route: tuple[str, str], origin: ThreadingHTTPServer) -> None:
    """Issue 2: a person works, pulls the cable, and does it all again from the cassette. DESIGN 7: the agent's own status."""
    recorded = command("record", "page", *route, *python(GET + "\nsys.exit(7)", "/a", "/b"))
    assert (recorded.code, recorded.out) == (7, "hello /a\nhello /b\n")
    origin.shutdown()
    origin.server_close()
    replayed = command("replay", "page", *python(GET + "\nsys.exit(5)", "/b", "/a"))
    assert (replayed.code, replayed.out) == (5, "hello /b\nhello /a\n")
    assert "  exact            2\n" in replayed.err


def test_a_miss_is_named_with_the_nearest_and_exits_103(command: Command, route: tuple[str, str], origin: ThreadingHTTPServer) -> None:
    """T-Q1, DESIGN 3: a miss never reaches the network, and the run is not clean."""
    command("record", "page", *route, *python(GET, "/a"))
    asked = list(origin.asked)  # type: ignore[attr-defined]
    replayed = command("replay", "page", "--json", *python("import sys, subprocess as s\n" + GET.replace("'/'", "''"), "/never"))
    said = json.loads(replayed.out)
    assert replayed.code == said["exit_code"] == 103
    assert said["agent_status"] == 1
    assert [(miss["kind"], miss["nearest_seq"]) for miss in said["misses"]] == [("new-resource", 1)]
    assert sum(said["answered"].values()) == said["requests"] == 1
    assert [row["seq"] for row in said["unplayed"]] == [1]
    assert "miss (new-resource): GET https://web.example/never\n  closest: exchange 1" in replayed.err
    assert origin.asked == asked  # type: ignore[attr-defined]


PERSISTENT = """
import sys, time, urllib.error, urllib.request as r
for left in range(int(sys.argv[1]), 0, -1):
    try:
        r.urlopen(r.Request("https://api.provider.example/v1/messages", headers={"x-api-key": "k"}, data=MODEL), timeout=20)
    except urllib.error.HTTPError as error:
        print(error.code, flush=True)
    time.sleep(0.02)
sys.exit(9)
"""


@pytest.mark.parametrize(("options", "status"), [((), 143), (("--keep-going",), 9)])
def test_an_agent_that_will_not_take_a_miss_is_ended(
    command: Command, store: Store, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], status: int
) -> None:
    """Issue 4, AGENTS 5.10: who asks on and on after a model call that missed is ended, unless told otherwise."""
    monkeypatch.setattr(stopping, "STOP_AFTER_S", 0.1)
    code = "MODEL = " + repr(ASK.replace(b"fix it", b"break it")) + PERSISTENT
    tries = "3" if options else "3000"
    replayed = command("replay", "incident", "--json", "--in-place", *options, *python(code, tries))
    said = json.loads(replayed.out.splitlines()[-1])
    assert (said["exit_code"], said.get("agent_status")) == (103, status), replayed
    assert said["misses"][0]["channel"] == "model"
    assert ("stopped" in [problem["kind"] for problem in said["problems"]]) is not bool(options)


def test_an_agent_that_prints_its_environment_is_matched_all_the_same(
    command: Command, route: tuple[str, str], here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DESIGN 3: what we put into the child's environment, and where it runs, stands in the key by name; C-13: no credential is needed."""
    code = (
        "import os, urllib.request as r\nr.urlopen(r.Request('https://web.example/', headers={'content-type': 'text/plain'}, "
        "data='\\n'.join(sorted(f'{k}={v}' for k, v in os.environ.items() if k != 'OLDPWD')).encode()), timeout=20)"
    )
    monkeypatch.setenv("PROVIDER_API_KEY", "sk-test-4f9a8b7c6d5e4f3a2b1c")
    monkeypatch.setenv("PWD", str(here))
    assert command("record", "page", *route, *python(code)).code == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("PWD", str(elsewhere))
    monkeypatch.delenv("PROVIDER_API_KEY")
    ran = command("replay", "page", *python(code))
    assert ran.code == 0, ran.err
    assert "  normalised       1\n" in ran.err


WRITES = "import pathlib as p\np.Path('made.txt').write_text('x')\nprint(p.Path.cwd())\n"


def test_recorded_tool_calls_run_in_a_scratch_copy(command: Command, here: Path, store: Store) -> None:
    """DESIGN 6, a replay cannot hurt: the copy is changed, the original is not, and the copy goes."""
    (here / "code.txt").write_text("as it was")
    ran = command("replay", "incident", "--workspace", ".", *python(WRITES + "print(p.Path('code.txt').read_text())"))
    where, text = ran.out.splitlines()
    assert text == "as it was"
    assert Path(where) != here
    assert sorted(path.name for path in here.iterdir()) == ["code.txt"]
    assert not Path(where).exists()


def test_a_scratch_copy_is_kept_on_request(command: Command, here: Path, store: Store) -> None:
    """The person on the incident may want to look at what the agent left."""
    ran = command("replay", "incident", "--workspace", ".", "--keep", "--json", *python(WRITES))
    kept = Path(json.loads(ran.out)["ran_in"])
    assert (kept / "made.txt").exists()


def test_in_place_first_says_what_the_tool_calls_do(command: Command, here: Path, store: Store) -> None:
    """DESIGN 6: unless --in-place, which first prints what the recorded tool calls would do."""
    ran = command("replay", "incident", "--in-place", *python(WRITES))
    assert (here / "made.txt").exists()
    assert "the recorded model asks for 1 tool call" in ran.err
    assert '  1 run {"command":"make test"}' in ran.err


def test_nothing_runs_where_a_tool_call_would_act_on_the_original(command: Command, here: Path, store: Store) -> None:
    """DESIGN 6: elsewhere they refuse, exit 105, naming the directory."""
    ran = command("replay", "incident", *python(WRITES))
    assert ran.code == 105
    assert str(here) in ran.err
    assert list(here.iterdir()) == []


def test_a_tool_call_by_full_path_acts_on_the_copy_at_the_recorded_place(command: Command, here: Path, tmp_path: Path) -> None:
    """DESIGN 6: they start in a scratch copy, at the recorded path where namespaces allow."""
    if subprocess.run([sys.executable, "-I", "-S", standin.__file__, str(tmp_path), str(here)], capture_output=True).returncode != 0:
        pytest.skip("no mount namespaces here")
    keep(Store(tmp_path / "store"), "absolute", sample(), cwd=str(here))
    (here / "code.txt").write_text("as it was")
    code = f"import pathlib as p\nf = p.Path({str(here / 'code.txt')!r})\nprint(p.Path.cwd(), f.read_text())\nf.write_text('changed')"
    ran = command("replay", "absolute", "--workspace", ".", "--keep", "--json", *python(code))
    assert f"{here} as it was\n" in ran.err
    assert (here / "code.txt").read_text() == "as it was"
    assert (Path(json.loads(ran.out)["ran_in"]) / "code.txt").read_text() == "changed"


def test_a_replays_events_are_those_of_the_recording(command: Command, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 4: the replay's own log, in the words of `events --json`; only how each answer was given and when is another."""
    with running(tmp_path) as made:
        for name, value in agent_environment(dict(os.environ)).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("SSL_CERT_FILE", str(made.ca_path))
        prepare(here)
        assert command("record", "incident", "--route", made.route, *AGENT).code == 0
    log = tmp_path / "replay.jsonl"
    ran = command("replay", "incident", "--workspace", str(prepare(tmp_path / "fresh")), "--events", str(log), *AGENT)
    assert ran.code == 0, ran.err
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    recorded = [json.loads(line) for line in command("events", "incident", "--json").out.splitlines()]
    replayed = [json.loads(line) for line in log.read_text().splitlines()]
    assert {one["answered"] for one in replayed if one["event"] == "model_response"} <= {"exact", "normalised"}
    own = {"offset_us", "duration_us", "answered", "request_sha256", "stdout_sha256", "response_sha256"}

    def told(events: list[dict[str, object]]) -> list[dict[str, object]]:
        return [{key: value for key, value in one.items() if key not in own} for one in events]

    assert told(replayed) == told(recorded)
    assert len(recorded) > 10


def test_events_that_cannot_be_written_are_bad_input_before_anything_runs(command: Command, store: Store, tmp_path: Path) -> None:
    """Said before the agent starts."""
    ran = command("replay", "incident", "--in-place", "--events", str(tmp_path / "none" / "x"), *python("open('ran', 'w')"))
    assert (ran.code, ran.out) == (64, "")
    assert "cannot write events" in ran.err
    assert not Path("ran").exists()
