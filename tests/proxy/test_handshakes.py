"""One handshake per tool."""

from __future__ import annotations

import os
import select
import shutil
import socket
import ssl
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from secondtake.proxy.authority import Authority
from secondtake.proxy.environment import TRUST_VARIABLES, child_environment
from secondtake.proxy.handshakes import (
    NOT_INSTALLED,
    PROBES,
    ZONE,
    Finished,
    Listener,
    Probe,
    Result,
    Seen,
    Verdict,
    examine,
    judge,
    run_program,
)
from secondtake.proxy.tools import TOOL_VARIABLES

BUNDLE = Path("/run/b.pem")
CURL = next(probe for probe in PROBES if probe.tool == "curl")


@pytest.fixture
def authority(tmp_path: Path) -> Iterator[Authority]:
    with Authority.create(tmp_path / "runs", now=datetime.now(UTC)) as made:
        yield made


@pytest.mark.parametrize(
    ("seen", "finished", "verdict", "detail"),
    [
        (Seen(True), Finished(22, ""), Verdict.CAPTURED, ""),
        (Seen(True), Finished(None, ""), Verdict.CAPTURED, ""),
        (Seen(False, refusal="unknown ca"), Finished(60, ""), Verdict.NOT_TRUSTED, "SSL_CERT_FILE or CURL_CA_BUNDLE"),
        (None, Finished(6, "x\ncurl: (6) Could not resolve host\n\n"), Verdict.BYPASSED, "Could not resolve host"),
        (None, Finished(0, ""), Verdict.BYPASSED, "nothing reached"),
        (None, Finished(1, f"error sending request for url (https://{CURL.host}/)"), Verdict.BYPASSED, "error sending"),
        (None, Finished(1, "error: no toolchain is installed"), Verdict.FAILED, "ended with 1 before"),
        (None, Finished(None, "still trying"), Verdict.TIMED_OUT, "still trying"),
        (None, Finished(NOT_INSTALLED, ""), Verdict.ABSENT, "not installed"),
    ],
)
def test_what_the_listener_saw_decides(seen: Seen | None, finished: Finished, verdict: Verdict, detail: str) -> None:
    """DESIGN 7, doctor: what would and would not be captured; and why not."""
    result = judge(CURL, seen, finished, {"CURL_CA_BUNDLE": "/run/b.pem"}, BUNDLE, "/usr/bin/curl")
    assert result.verdict is verdict
    assert detail in result.detail
    assert result.variable == (None if verdict is Verdict.ABSENT else "CURL_CA_BUNDLE")


def test_every_probe_is_of_a_tool_in_the_table_and_has_its_own_host() -> None:
    """RFC 6761: below `invalid`, so that a bypass reaches nobody."""
    assert all(probe.tool in TOOL_VARIABLES for probe in PROBES)
    assert len({probe.host for probe in PROBES}) == len(PROBES)
    assert ZONE.endswith(".invalid")
    assert all(
        any("{host}" in text for text in (*probe.arguments, *probe.extra.values(), *probe.files.values())) or probe.tool == "java"
        for probe in PROBES
    )


def exchange(port: int, host: str, trust: Path | None) -> None:
    """What a client does: CONNECT, handshake, request."""
    context = ssl.create_default_context(cafile=str(trust) if trust else None)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as tcp:
        tcp.sendall(f"CONNECT {host}:443 HTTP/1.1\r\nUser-Agent: fake/1\r\n\r\n".encode())
        assert tcp.recv(1024).startswith(b"HTTP/1.1 200")
        with context.wrap_socket(tcp, server_hostname=host) as tls:
            tls.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert tls.recv(1024).startswith(b"HTTP/1.1 404")


@pytest.mark.loopback
def test_programs_are_tried_with_what_they_need_and_judged_by_what_came(authority: Authority, tmp_path: Path) -> None:
    """DESIGN 7, doctor: with fakes for the programs: one that trusts, one that does not, one that goes around, one that is not there."""
    probes = [Probe(tool, tool, ("{host}", "{folder}"), {"WHERE": "{folder}"}, {"f": "{host}"}) for tool in ("curl", "git", "node", "uv")]

    def run(arguments: Sequence[str], environment: Mapping[str, str], folder: Path, timeout_s: float) -> Finished:
        program, host, where = arguments
        assert where == str(folder) == environment["WHERE"]
        assert (folder / "f").read_text() == host
        port = int(environment["HTTPS_PROXY"].rpartition(":")[2])
        if program == "/bin/node":
            return Finished(1, "ENOTFOUND")
        if program == "/bin/git":
            with pytest.raises(ssl.SSLCertVerificationError):
                exchange(port, host, None)
            return Finished(128, "")
        exchange(port, host, authority.ca_path)
        return Finished(0, "")

    told: list[Result] = []
    results = examine(
        authority,
        lambda port: child_environment({}, port=port, bundle=BUNDLE),
        bundle=BUNDLE,
        probes=probes,
        run=run,
        which=lambda program, path: None if program == "uv" else f"/bin/{program}",
        on_result=told.append,
    )
    assert [(result.tool, result.verdict, result.variable) for result in results] == [
        ("curl", Verdict.CAPTURED, "SSL_CERT_FILE"),
        ("git", Verdict.NOT_TRUSTED, "GIT_SSL_CAINFO"),
        ("node", Verdict.BYPASSED, "NODE_EXTRA_CA_CERTS"),
        ("uv", Verdict.ABSENT, None),
    ]
    assert sorted(told, key=lambda result: result.tool) == results


@pytest.mark.loopback
def test_a_listener_survives_whatever_is_sent(authority: Authority) -> None:
    """Hostile input: no CONNECT, no TLS, nothing at all."""
    with Listener(authority, ["a.example"]) as listener:
        for first in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00", b"CONNECT a.example:443 HTTP/1.1\r\n\r\nnot tls at all\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", listener.port), timeout=10) as tcp:
                tcp.sendall(first)
                tcp.shutdown(socket.SHUT_WR)
                while tcp.recv(4096):
                    pass
        seen = listener.seen("a.example")
        assert seen is not None
        assert not seen.request
        exchange(listener.port, "a.example", authority.ca_path)
        exchange(listener.port, "a.example", authority.ca_path)
        seen = listener.seen("a.example")
        assert seen is not None
        assert (seen.request, seen.user_agent) == (True, "fake/1")


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="no pidfd_open on this system")
def test_a_program_that_does_not_end_is_killed_with_its_children(tmp_path: Path) -> None:
    """DESIGN 7, doctor: with a time-out; nothing is left running."""
    script = "sleep 600 & echo $! > child; echo started; wait"
    finished = run_program(["sh", "-c", script], dict(os.environ), tmp_path, 1.0)
    assert finished.status is None
    assert "started" in finished.output
    child = int((tmp_path / "child").read_text())
    try:
        ending = os.pidfd_open(child)
    except ProcessLookupError:
        return
    # The kernel kills in its own time; the descriptor becomes readable when it has.
    with os.fdopen(ending):
        assert select.select([ending], [], [], 10)[0]


def test_a_program_ends_as_it_ends(tmp_path: Path) -> None:
    """Status, both outputs together, no standard input, the given folder and environment."""
    code = "import os, sys; print(sys.stdin.read() + os.getcwd()); print(os.environ['A'], file=sys.stderr); sys.exit(3)"
    finished = run_program([sys.executable, "-c", code], {"A": "é"}, tmp_path, 20)
    assert finished.status == 3
    assert str(tmp_path) in finished.output
    assert run_program([str(tmp_path / "absent")], {}, tmp_path, 1).status == NOT_INSTALLED


@pytest.mark.loopback
@pytest.mark.tools
@pytest.mark.parametrize("trusting", [True, False])
def test_the_tools_of_this_machine_behave_as_the_table_says(trusting: bool, authority: Authority, tmp_path: Path) -> None:
    """T-O4: curl, python, git and node against a real handshake, with the block and without its trust part."""
    base = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    probes = [probe for probe in PROBES if probe.tool in {"curl", "git", "python urllib", "node"} and shutil.which(probe.program)]
    assert probes

    def environment(port: int) -> dict[str, str]:
        child = child_environment(base, port=port, bundle=authority.ca_path)
        return child if trusting else {name: value for name, value in child.items() if name not in TRUST_VARIABLES}

    for result in examine(authority, environment, bundle=authority.ca_path, probes=probes):
        wanted = Verdict.BYPASSED if result.tool == "node" else Verdict.CAPTURED if trusting else Verdict.NOT_TRUSTED
        assert result.verdict is wanted, result
