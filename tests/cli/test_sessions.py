"""Record, replay and proxy as a person runs them, against an origin on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from secondtake.cassettes.store import Store
from secondtake.cli.main import run

Ran = Any  # conftest.Ran; a conftest cannot be imported in importlib mode
Command = Callable[..., Ran]

pytestmark = pytest.mark.loopback

GET = (
    "import sys, urllib.request as r\nfor path in sys.argv[1:]: print(r.urlopen('https://web.example' + path, timeout=20).read().decode())"
)


class Origin(BaseHTTPRequestHandler):
    """Says hello to the path it was asked for, or how much it was sent."""

    protocol_version = "HTTP/1.1"
    asked: list[str]

    def do_GET(self) -> None:
        """Answer a GET."""
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        self._say(f"hello {self.path}")

    def do_POST(self) -> None:
        """Answer a POST."""
        self._say(f"got {len(self.rfile.read(int(self.headers['content-length'])))}")

    def _say(self, text: str) -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-type", "text/plain")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def origin() -> Iterator[ThreadingHTTPServer]:
    """A plain HTTP server on loopback that `--route` reaches."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    server.asked = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def route(origin: ThreadingHTTPServer) -> tuple[str, str]:
    """The option that sends web.example to the origin."""
    return ("--route", f"web.example=http://127.0.0.1:{origin.server_port}")


def python(code: str, *arguments: str) -> tuple[str, ...]:
    """An agent: this interpreter, its own code."""
    return ("--", sys.executable, "-c", code, *arguments)


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


def test_json_is_alone_on_standard_output(command: Command, route: tuple[str, str]) -> None:
    """DESIGN 7: --json is one object on stdout; what the agent prints goes to standard error then."""
    ran = command("record", "page", "--json", *route, *python(GET, "/a"))
    said = json.loads(ran.out)
    assert said["name"] == "page"
    assert said["verdict"] == "clean"
    assert said["exchanges"] == {"web": 1}
    assert said["received_bytes"] == len("hello /a")
    assert len(said["root"]) == 64
    assert "hello /a" in ran.err


def test_an_agent_that_a_signal_ended_counts_as_in_a_shell(command: Command, route: tuple[str, str]) -> None:
    """docs/exit-codes.md: 128 + n."""
    code = GET + "\nimport os\nos.kill(os.getpid(), 9)"
    assert command("record", "page", *route, *python(code, "/a")).code == 137


def test_nothing_captured_is_not_clean_and_says_why(command: Command) -> None:
    """T-O2: zero exchanges captured is not clean, with the likely cause."""
    ran = command("record", "idle", *python("pass"))
    assert ran.code == 103
    assert "not clean: nothing came through the proxy" in ran.err
    assert "hint: `secondtake doctor`" in ran.err


def test_a_known_agent_without_a_model_call_is_not_clean(command: Command, route: tuple[str, str], here: Path) -> None:
    """T-O2: zero model exchanges of a coding agent."""
    agent = here / "claude"
    agent.write_text(f"#!{sys.executable}\n{GET}\n")
    agent.chmod(0o755)
    ran = command("record", "idle", *route, "--", "./claude", "/a")
    assert ran.code == 103
    assert "no model call of `./claude` was captured, only 1 other requests" in ran.err


def test_a_client_that_does_not_trust_us_is_told_its_variable(command: Command, route: tuple[str, str]) -> None:
    """Issue 2, bad input: client that does not trust the CA (say which variable that tool reads)."""
    code = (
        "import ssl, urllib.request as r\nc = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)\n"
        "try: r.urlopen('https://web.example/', context=c, timeout=20)\nexcept OSError: pass"
    )
    ran = command("record", "page", *route, *python(code))
    assert ran.code == 103
    assert "a client would not shake hands for web.example" in ran.err
    assert "SSL_CERT_FILE" in ran.err or "secondtake env" in ran.err


def test_no_secret_of_the_environment_reaches_the_store(
    command: Command, route: tuple[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Issue 2, item 7: values of credential environment variables never reach the store: not in a body, not in the command line."""
    secret = "sk-test-4f9a8b7c6d5e4f3a2b1c"
    monkeypatch.setenv("PROVIDER_API_KEY", secret)
    code = "import os, urllib.request as r\nr.urlopen('https://web.example/', data=repr(dict(os.environ)).encode(), timeout=20)"
    assert command("record", "page", *route, *python(code, secret)).code == 0
    files = [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if secret.encode() in path.read_bytes()]
    with Store(tmp_path / "store").open("page") as cassette:
        assert cassette.meta["credentials"] == ["PROVIDER_API_KEY"]
        assert secret not in repr(cassette.meta)


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


def test_names_are_made_up_found_again_and_never_overwritten(command: Command, route: tuple[str, str], tmp_path: Path) -> None:
    """DESIGN 7: NAME is optional, @last and prefixes resolve; an existing NAME is refused but for --replace and --as."""
    first = json.loads(command("record", "--json", *route, *python(GET, "/a")).out)["name"]
    assert json.loads(command("show", "@last", "1", "--json").out)["url"] == "https://web.example/a"
    assert command("record", first, *route, *python(GET, "/b")).code == 104
    assert command("record", first, "--as", "other", *route, *python(GET, "/b")).code == 0
    assert command("record", first, "--replace", *route, *python(GET, "/c")).code == 0
    assert json.loads(command("show", first[:12], "1", "--json").out)["url"] == "https://web.example/c"
    assert {summary.name for summary in Store(tmp_path / "store").list()} == {first, "other"}


def test_the_authority_of_a_run_is_gone_after_it(command: Command, route: tuple[str, str], tmp_path: Path) -> None:
    """C-06, T-O4: the CA is per run, its key 0600 in a 0700 folder, and removed; C-18: whatever the umask."""
    look = "import os, sys, pathlib as p\nb = p.Path(os.environ['SSL_CERT_FILE'])\n"
    look += "print([oct(f.stat().st_mode & 0o777) for f in (b.parent, b.parent / 'mitmproxy-ca.pem')])\n"
    before = os.umask(0)
    try:
        ran = command("record", "page", *route, *python(look + GET, "/a"))
    finally:
        os.umask(before)
    assert ran.out.splitlines()[0] == "['0o700', '0o600']"
    assert [path.name for path in (tmp_path / "store" / "run").iterdir() if path.name.startswith("ca-")] == []
    assert not [path for path in (tmp_path / "store").rglob("*") if path.stat().st_mode & 0o077]


def test_a_store_in_the_workspace_is_refused_unless_asked_for(
    command: Command, here: Path, monkeypatch: pytest.MonkeyPatch, route: tuple[str, str]
) -> None:
    """DESIGN 7: the store is never the agent's workspace, where it would change what the agent sees."""
    monkeypatch.setenv("SECONDTAKE_STORE", str(here / "inside"))
    ran = command("record", "page", *route, *python(GET, "/a"))
    assert (ran.code, ran.out) == (64, "")
    assert "would change what the agent sees" in ran.err
    assert not (here / "inside").exists()
    ran = command("record", "page", "--store", str(here / "inside"), *route, *python(GET, "/a"))
    assert ran.code == 0
    assert "warning: the store" in ran.err


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


def test_demo_tells_the_whole_story(command: Command, tmp_path: Path) -> None:
    """Issue 2, item 6: offline, no key; records the incident, replays it with the provider stopped, shows what the agent saw."""
    ran = command("demo", "--json", "--keep", str(tmp_path / "story"))
    said = json.loads(ran.out)
    assert ran.code == said["exit_code"] == 0, ran.err
    assert said["tests_red"] is True
    assert said["recorded"]["exchanges"] == {"model": 4}
    assert said["replayed"]["answered"]["exact"] == 4
    assert said["replayed"]["misses"] == said["replayed"]["unplayed"] == []
    assert 'calls  run {"command":"python3 check.py"}' in ran.err
    assert "FAIL test_nothing_is_lost" in ran.err
    assert command("verify", "incident", "--store", str(tmp_path / "story" / "store")).code == 0
    assert command("demo", "--keep", str(tmp_path / "story")).code == 64


class Proxied:
    """`secondtake proxy …` in a process of its own, until it is told to stop."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-c", "from secondtake.cli.main import main; main()", "proxy", *arguments, "--json", "-q"]
        path = os.pathsep.join(sys.path)
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.ready = json.loads(line)

    def get(self, *paths: str) -> subprocess.CompletedProcess[str]:
        """Run a client with the environment of the ready line."""
        return subprocess.run(
            [sys.executable, "-c", GET, *paths], env={**os.environ, **self.ready["environment"]}, capture_output=True, text=True, timeout=60
        )

    def stop(self, number: int = signal.SIGINT) -> tuple[int, dict[str, Any]]:
        """Interrupt it; returns its exit code and its last line."""
        self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=60)
        return self.process.returncode, json.loads(out)


@pytest.fixture
def proxied() -> Iterator[Callable[..., Proxied]]:
    """Proxies that are gone at the end of the test."""
    started: list[Proxied] = []

    def start(*arguments: str) -> Proxied:
        started.append(Proxied(*arguments))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.communicate()


def test_a_proxy_records_until_interrupted(
    command: Command, proxied: Callable[..., Proxied], route: tuple[str, str], tmp_path: Path
) -> None:
    """DESIGN 7: `ready` with port, CA bundle and environment as soon as it accepts; `env` reads the runtime file."""
    proxy = proxied("record", "shell", *route)
    assert proxy.ready["event"] == "ready"
    assert Path(proxy.ready["ca_bundle"]).is_file()
    told = command("env", "--format", "json")
    assert json.loads(told.out)["set"]["HTTPS_PROXY"] == f"http://127.0.0.1:{proxy.ready['port']}"
    busy = command("proxy", "record", "other", "--port", str(proxy.ready["port"]))
    assert busy.code == 64
    assert busy.err.startswith("error: port in use")
    assert not (tmp_path / "store" / "cassettes" / "other").exists()
    assert command("record", "shell", "--replace", *python("pass")).code == 104
    assert proxy.get("/a").stdout == "hello /a\n"
    code, done = proxy.stop()
    assert (code, done["event"], done["exchanges"]) == (0, "done", {"web": 1})
    stale = command("env", "--port", str(proxy.ready["port"]))
    assert stale.code == 64
    assert "no proxy is known on port" in stale.err


def test_a_stale_runtime_file_is_said_to_be_stale(command: Command, proxied: Callable[..., Proxied], route: tuple[str, str]) -> None:
    """DESIGN 7: `env --port P` fails clearly when the proxy was killed."""
    proxy = proxied("record", "shell", *route)
    proxy.process.kill()
    proxy.process.wait()
    ran = command("env", "--port", str(proxy.ready["port"]))
    assert ran.code == 64
    assert "is gone" in ran.err
    assert command("show", "shell", "--json").code == 0


def test_hangup_begins_the_recording_anew(command: Command, proxied: Callable[..., Proxied], route: tuple[str, str]) -> None:
    """DESIGN 3: a proxy replay starts a session on SIGHUP; a POST is not repeated within one."""
    post = "import urllib.request as r\nprint(r.urlopen('https://web.example/', data=b'once', timeout=20).read().decode())"
    assert command("record", "page", *route, *python(post)).code == 0
    proxy = proxied("replay", "page")

    def posted() -> int:
        return subprocess.run(
            [sys.executable, "-c", post], env={**os.environ, **proxy.ready["environment"]}, capture_output=True, timeout=60
        ).returncode

    assert [posted(), posted()] == [0, 1]
    proxy.process.send_signal(signal.SIGHUP)
    # The signal is handled before the next connection is: both wake the same loop, and the signal came first.
    assert posted() == 0
    code, done = proxy.stop(signal.SIGTERM)
    assert (code, len(done["misses"]), done["requests"]) == (103, 1, 3)


def test_an_internal_fault_is_one_line_and_code_70(command: Command, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """DESIGN 7: internal error 70 from every command; the traceback only with SECONDTAKE_DEBUG=1."""

    def broken(_self: Store) -> list[object]:
        raise RuntimeError("a\nb")

    monkeypatch.setattr(Store, "list", broken)
    ran = command("ls")
    assert (ran.code, ran.err.splitlines()[0]) == (70, "error: internal fault: RuntimeError: a\\nb")
    assert "Traceback" not in ran.err
    monkeypatch.setenv("SECONDTAKE_DEBUG", "1")
    assert "Traceback" in command("ls").err


def test_a_reader_that_leaves_is_no_error(store: Store) -> None:
    """`secondtake show NAME --json | head -1` ends quietly."""
    command = [sys.executable, "-c", "from secondtake.cli.main import main; main()", "show", "incident", "--json"]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    finally:
        os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, b"")


def test_help_is_quick_because_it_loads_nothing_heavy(here: Path) -> None:
    """The proxy, the crypto library, rich and asyncio are loaded by the commands that need them."""
    code = "import sys\nfrom secondtake.cli.main import run\nrun(['--help'])\nprint(','.join(m for m in sys.modules if '.' not in m))"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    loaded = set(ran.stdout.splitlines()[-1].split(","))
    assert not loaded & {"mitmproxy", "cryptography", "rich", "asyncio", "zstandard", "msgpack", "brotli", "h2", "jinja2", "aiohttp"}


def test_run_is_callable_twice_in_one_process(store: Store) -> None:
    """No state is left behind by a command."""
    assert [run(["ls", "-q"]), run(["ls", "-q"])] == [0, 0]
