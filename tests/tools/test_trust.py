"""Real clients that were not told of our authority: the run is not clean, and the result names the variable this tool reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from secondtake.proxy.environment import TRUST_VARIABLES
from tests.tools.scene import Ran, Scene, tool
from tests.tools.servers import Origin

HOST = "files.example"
URL = f"https://{HOST}/hello"
UNTOLD = ("env", *(word for name in TRUST_VARIABLES for word in ("-u", name)))
"""Starts a command without any variable that says whom to trust."""


def hint(ran: Ran) -> str:
    """The one problem's hint, after making sure that it is the handshake."""
    assert ran.code == 103, ran.out
    problems = [problem for problem in ran.result["problems"] if problem["kind"] == "tls-failed"]
    assert len(problems) == 1, ran.out
    assert HOST in problems[0]["message"]
    assert problems[0]["hint"] in ran.said
    return str(problems[0]["hint"])


def untrusting(local: Scene, served: Origin, *client: str, variables: Sequence[str] = ()) -> str:
    """Record a client that does not trust us; the hint."""
    words = [word for name in variables for word in ("-u", name)]
    return hint(local.record("untold", *UNTOLD, *words, *client, options=served.route(HOST)))


def test_curl_is_told_its_variable(local: Scene, served: Origin) -> None:
    """The issue's last line: "client that does not trust the CA (say which variable that tool reads)": curl."""
    said = untrusting(local, served, tool("curl"), "-sS", URL)
    assert said.startswith("curl ")
    assert "SSL_CERT_FILE or CURL_CA_BUNDLE" in said
    assert str(local.store) in said


def test_git_is_told_its_variable(local: Scene, served: Origin) -> None:
    """The same: git on Debian reads neither of curl's two."""
    said = untrusting(local, served, tool("git"), "ls-remote", f"https://{HOST}/git/none.git")
    assert said.startswith("git ")
    assert "GIT_SSL_CAINFO" in said


def test_pip_is_told_its_variable(local: Scene, served: Origin, python: Path) -> None:
    """The same: pip, which says nothing of itself to a proxy."""
    asked = ("-m", "pip", "download", "--retries", "0", "--dest", str(local.root / "d"), "--index-url", f"https://{HOST}/simple/", "none")
    said = untrusting(local, served, str(python), *asked)
    assert said.startswith("pip ")
    assert "PIP_CERT" in said


def test_uv_is_told_its_variable(local: Scene, served: Origin, python: Path, uv: str) -> None:
    """The same: uv, with roots of its own."""
    install = ("pip", "install", "--no-cache", "--python", str(python), "--target", str(local.root / "t"))
    said = untrusting(local, served, "env", "UV_HTTP_RETRIES=0", uv, *install, "--default-index", f"https://{HOST}/simple/", "none")
    assert said.startswith("uv ")
    assert "SSL_CERT_FILE" in said


def test_npm_is_told_its_variable(local: Scene, served: Origin, npm: str) -> None:
    """The same: npm, which would retry for more than 40 s."""
    said = untrusting(local, served, npm, "view", "--fetch-retries=0", f"--registry=https://{HOST}/", "none")
    assert said.startswith("npm ")
    assert "NODE_EXTRA_CA_CERTS" in said


def test_python_is_told_its_variable(local: Scene, served: Origin, python: Path) -> None:
    """The same: a script that uses Python's own library."""
    said = untrusting(local, served, str(python), "-c", f"import urllib.request; urllib.request.urlopen({URL!r})")
    assert said.startswith("python urllib ")
    assert "SSL_CERT_FILE" in said


def test_the_bundle_serves_all_of_them(local: Scene, served: Origin, python: Path, uv: str) -> None:
    """The other side: with the variables left as they are, each of them gets through (T-O4)."""
    git, curl = tool("git"), tool("curl")
    script = (
        f"{curl} -sS {URL}\n"
        f"{git} ls-remote https://{HOST}/git/none.git || true\n"
        f"{python} -c 'import urllib.request; print(urllib.request.urlopen(\"{URL}?urllib\").read())'\n"
        f"{python} -m pip download -q --retries 0 --dest d --index-url https://{HOST}/simple/ none || true\n"
        f"UV_HTTP_RETRIES=0 {uv} pip compile --no-cache -q --default-index https://{HOST}/uv/simple/ none.in || true\n"
    )
    (local.workspace() / "none.in").write_text("none\n")
    recorded = local.record("told", "sh", "-c", script, options=served.route(HOST)).clean()
    assert sum(recorded["exchanges"].values()) >= 5


@pytest.mark.parametrize("mode", ["record", "replay"])
def test_it_is_said_in_both_modes(local: Scene, served: Origin, mode: str) -> None:
    """A replay whose client distrusts us is no clean one either."""
    curl = tool("curl")
    local.record("told", curl, "-sS", URL, options=served.route(HOST)).clean()
    ran = (
        local.replay("told", *UNTOLD, curl, "-sS", URL)
        if mode == "replay"
        else local.record("untold", *UNTOLD, curl, "-sS", URL, options=served.route(HOST))
    )
    assert "SSL_CERT_FILE" in hint(ran)
