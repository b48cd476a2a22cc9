"""Bad input: one clear line, a hint, the exit code of the table, and nothing lost (issue 2, last paragraph)."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from secondtake.cassettes import journal as journals
from secondtake.cassettes.exchange import Channel, Request
from secondtake.cassettes.records import Head
from secondtake.cassettes.store import Store
from secondtake.harness.provider import make_identity
from tests.cli.scenes import PROGRAM, Command, environment


def journal(tmp_path: Path) -> Path:
    """The journal of the sample cassette."""
    return tmp_path / "store" / "cassettes" / "incident" / "journal"


@pytest.fixture
def damaged(store: Store, tmp_path: Path) -> Store:
    """The sample with one flipped bit in the middle of its journal, and no index to hide it."""
    path = journal(tmp_path)
    path.chmod(0o600)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    (path.parent / "index").unlink(missing_ok=True)  # a small journal has none
    return store


def test_a_damaged_cassette_is_named_and_never_taken_for_absent(command: Command, damaged: Store) -> None:
    """Issue 2: damaged cassette. DESIGN 4: damage is an error, never "absent"."""
    ran = command("verify", "incident")
    assert ran.code == 104
    assert "error" in ran.out
    for arguments in (("replay", "incident", "--in-place", "--", "true"), ("export", "incident", "x.take")):
        ran = command(*arguments)
        assert ran.code == 104, (arguments, ran)
        assert ran.err.startswith("error: ")
        assert "no cassette" not in ran.err
    assert not Path("x.take").exists()


def test_a_newer_format_says_to_update(command: Command, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 2: newer format. B-09: refuse with "needs version X"."""
    with monkeypatch.context() as later:
        later.setattr(journals, "MAJOR", journals.MAJOR + 1)
        store.create("later", meta={}).close(meta={})
    ran = command("show", "later")
    assert ran.code == 104
    assert "version" in ran.err
    assert "hint: " in ran.err


def test_a_recording_that_died_is_there(command: Command, here: Path, tmp_path: Path) -> None:
    """DESIGN 4: opening a died one just works; what was in flight is named."""
    writer = Store(tmp_path / "store").create("died", meta={})
    writer.write([Head(1, 0, Channel.WEB, Request("GET", "https", "web.example", 443, b"/slow"))])
    writer.abandon()
    assert "died" in command("ls").out
    ran = command("show", "died")
    assert ran.code == 0
    assert "died: 0 exchanges, died" in ran.err
    replayed = command("replay", "died", "--", "true")
    assert replayed.code == 0
    assert "note: the recording did not end by itself (died)" in replayed.err


def limited(arguments: list[str], size_bytes: int) -> subprocess.CompletedProcess[str]:
    """Run a command whose files may not grow beyond `size_bytes`: to the store, a disk that is full."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, size_bytes))

    return subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, env=environment(), preexec_fn=limit, timeout=120)


class Big(BaseHTTPRequestHandler):
    """Sends 3 MB that do not compress, whatever it is asked for."""

    protocol_version = "HTTP/1.1"
    body = os.urandom(3_000_000)

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200)
        self.send_header("content-length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def big() -> Any:
    """A server of big answers."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Big)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


GET_TWICE = """
import urllib.error, urllib.request as r
for _ in range(2):
    try: print(len(r.urlopen('https://web.example/', timeout=60).read()))
    except urllib.error.HTTPError as error: print(error.code)
"""


@pytest.mark.loopback
@pytest.mark.parametrize(("strict", "printed"), [((), "3000000\n3000000\n"), (("--strict",), "3000000\n424\n")])
def test_a_full_disk_ends_the_recording_and_not_the_agent(
    here: Path, big: ThreadingHTTPServer, strict: tuple[str, ...], printed: str
) -> None:
    """B-05: record-failed with the reason, the agent's traffic goes on untouched, the exit code says so; --strict refuses what follows."""
    route = f"web.example=http://127.0.0.1:{big.server_port}"
    ran = limited(["record", "full", "--route", route, *strict, "--", sys.executable, "-c", GET_TWICE], 1_000_000)
    assert ran.stdout == printed
    assert ran.returncode == 104
    assert "not clean: the recording failed (EFBIG)" in ran.stderr
    assert "next: " not in ran.stderr


@pytest.mark.loopback
def test_an_origin_whose_certificate_is_not_trusted_is_said_to_be_so(command: Command, here: Path) -> None:
    """Issue 2: upstream TLS failure. C-07: never "insecure"; the agent gets our 502, the summary the reason."""
    identity = make_identity(["web.example"])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Big)
    server.socket = identity.context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    code = "import urllib.error, urllib.request as r\ntry: r.urlopen('https://web.example/', timeout=60)\n"
    code += "except urllib.error.HTTPError as error: print(error.code)"
    try:
        ran = command("record", "page", "--route", f"web.example=https://127.0.0.1:{server.server_port}", "--", sys.executable, "-c", code)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert ran.out == "502\n"
    assert "note: no answer from https://web.example/: " in ran.err
    assert "certificate" in ran.err.lower()


def test_a_client_certificate_that_is_none_is_refused_before_anything_runs(command: Command, here: Path) -> None:
    """One line, and no cassette is begun."""
    assert command("record", "x", "--client-cert", "web.example=missing.pem", "--", "true").code == 64
    assert command("ls").out == ""
