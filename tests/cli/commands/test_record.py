"""`record`: run an agent behind the recorder."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from secondtake.cassettes.store import Store
from tests.cli.scenes import GET, Command, python

pytestmark = pytest.mark.loopback


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
