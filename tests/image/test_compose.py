"""The compose file: an agent whose only way out is the proxy. Every address is inside namespaces that the test makes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.image.engine import ROOT, Engine, ok, podman_compose

ORIGIN = "192.0.2.80"
"""An address of the host's (RFC 5737), which the proxy reaches through its outer network."""
PORT = 8080
INSIDE = "172.31.250"

BESIDE = """
services:
  agent:
    command: [sleep, "600"]
    stop_signal: SIGKILL
networks:
  inside:
    # Podman has no such option; the test does what it does: see `isolated`.
    driver_opts: !reset {}
"""


@pytest.fixture
def project(podman: Engine) -> Engine:
    """The project's compose file, in a folder of its own."""
    podman_compose()
    shutil.copy(ROOT / "compose.yaml", podman.folder)
    (podman.folder / "beside.yaml").write_text(BESIDE)
    shutil.copy(Path(__file__).with_name("agent_side.py"), podman.folder / "workspace")
    for words in (
        "link add outer type veth peer name beyond",
        "link set beyond up",
        "link set outer up",
        f"address add {ORIGIN}/24 dev outer",
        "route add default dev outer",
    ):
        ok(podman.run("ip", *words.split()))
    return podman


@pytest.fixture
def origin(project: Engine) -> Iterator[list[str]]:
    """What the origin saw, so far as it is read; on every address of the host, the gateway of each network included."""
    words = ["nsenter", f"--target={project.holder}", "--net", sys.executable, str(Path(__file__).with_name("origin.py")), str(PORT)]
    with (project.folder / "origin.log").open("w+") as log:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        seen: list[str] = []
        try:
            yield seen
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def isolated(project: Engine) -> str:
    """Take the host's address off the inner network, as `gateway_mode_ipv4: isolated` has Docker do. Returns the outer one's gateway."""
    links = json.loads(ok(project.run("ip", "-json", "address")))
    addresses = {link["ifname"]: [at["local"] for at in link["addr_info"] if at["family"] == "inet"] for link in links}
    (inner,) = [name for name, held in addresses.items() if f"{INSIDE}.1" in held]
    (outer,) = [held[0] for name, held in addresses.items() if name.startswith("podman") and name != inner]
    ok(project.run("ip", "address", "flush", "dev", inner))
    return str(outer)


def test_the_agent_reaches_the_proxy_and_nothing_else(project: Engine, origin: list[str]) -> None:
    """Issue 5, item 5: by address, by name, by UDP, at the host; and what it asks the proxy for is recorded."""
    ok(project.compose("up", "-d", "--no-build", "proxy"))
    told = ""
    for _ in range(100):  # the proxy's start is seen by asking it; each try takes as long as a command does
        ran = project.compose("exec", "-T", "proxy", "secondtake", "env", "--format", "docker")
        told = ran.stdout
        if ran.returncode == 0:
            break
    assert f"@{INSIDE}.2:8080" in told
    (project.folder / "agent.env").write_text(told)
    ok(project.compose("--profile", "agent", "up", "-d", "--no-build", "agent"))
    outer = isolated(project)
    targets = [f"{INSIDE}.2:8080", f"{INSIDE}.2:22", f"{INSIDE}.1:{PORT}", f"{outer}:{PORT}", f"{ORIGIN}:{PORT}", "[2001:db8::1]:80"]
    urls = f"http://{ORIGIN}:{PORT}/ https://{ORIGIN}:{PORT}/ http://127.0.0.1:9/"
    names = ["api.provider.example", "proxy"]
    side = ("python3", "agent_side.py", *targets, "--", *names)
    seen = json.loads(ok(project.compose("--profile", "agent", "exec", "-T", "--env", f"URLS={urls}", "agent", *side)))
    assert seen["tcp"].pop(f"{INSIDE}.2:8080") == "reached"
    assert seen["tcp"].pop(f"{INSIDE}.2:22") == "ECONNREFUSED"
    assert set(seen["tcp"].values()) <= {"ENETUNREACH", "EHOSTUNREACH", "no answer"}, seen
    assert set(seen["udp"].values()) <= {"ENETUNREACH", "EHOSTUNREACH", "ECONNREFUSED", "no answer"}, seen
    assert set(seen["names"].values()) == {"unknown"}, seen
    assert (seen["shared"], seen["writable"], seen["store"]) == (["bundle.pem"], False, False)
    assert seen["web"][f"http://{ORIGIN}:{PORT}/"] == "the origin"
    # The proxy's certificate is trusted: what fails is the way from there, to an origin that speaks no TLS.
    assert seen["web"][f"https://{ORIGIN}:{PORT}/"] == "status 502"
    ok(project.compose("stop", "proxy"))
    shown = ok(project.compose("run", "--rm", "--no-deps", "-T", "proxy", "show", "session", "--json"))
    exchanges = [json.loads(line) for line in shown.splitlines()]
    assert [(one["url"], one["status"]) for one in exchanges if one["status"] == 200] == [(f"http://{ORIGIN}:{PORT}/", 200)]
    ok(project.compose("--profile", "agent", "down", "--volumes"))
