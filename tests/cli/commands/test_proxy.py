"""`proxy`: just the proxy, until interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.scenes import Command, Proxied, python

pytestmark = pytest.mark.loopback


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


def test_off_the_usual_address_whoever_comes_needs_the_credential_that_env_prints(
    command: Command, proxied: Callable[..., Proxied], route: tuple[str, str], tmp_path: Path
) -> None:
    """DESIGN 7, SECURITY C-03: another address of this machine stands in for a network others are on."""
    proxy = proxied("record", "shell", *route, "--listen", "127.0.0.2", "--share", str(tmp_path))
    port = proxy.ready["port"]
    assert proxy.ready["address"] == f"127.0.0.2:{port}"
    told = json.loads(command("env", "--format", "json").out)["set"]
    assert told["SSL_CERT_FILE"] == str(tmp_path / "bundle.pem")
    assert told["HTTPS_PROXY"] == proxy.ready["environment"]["HTTPS_PROXY"]
    assert f"@127.0.0.2:{port}" in told["HTTPS_PROXY"]
    assert f"HTTPS_PROXY={told['HTTPS_PROXY']}" in command("env", "--format", "docker").out.splitlines()
    assert proxy.get("/a").stdout == "hello /a\n"
    uncredited = {**proxy.ready["environment"], "HTTPS_PROXY": f"http://127.0.0.2:{port}", "https_proxy": f"http://127.0.0.2:{port}"}
    get = "import urllib.request as r\nr.urlopen('https://web.example/a', timeout=20)"
    refused = subprocess.run([sys.executable, "-c", get], env={**os.environ, **uncredited}, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 1
    assert "407" in refused.stderr
    code, done = proxy.stop()
    assert (code, done["exchanges"]) == (0, {"web": 1})
    assert command("proxy", "record", "other", "--listen", "192.0.2.1").code == 64
