"""`env`: shell exports that point every tool at a running proxy."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest

from secondtake.cli.commands.env import FORMATS
from secondtake.proxy.environment import Format
from tests.cli.scenes import Command, Proxied


def test_the_formats_are_those_of_the_proxy() -> None:
    """The choice is written out so that --help does not load the proxy."""
    assert set(FORMATS) == {str(form) for form in Format}


def test_unset_needs_no_proxy_and_gives_the_former_one_back(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """DESIGN 7: `--unset`; `env` exports the former proxy as SECONDTAKE_UPSTREAM."""
    assert command("env", "--unset").out == ""
    monkeypatch.setenv("SECONDTAKE_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("SSL_CERT_FILE", "/run/bundle.pem")
    monkeypatch.setenv("PIP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("SECONDTAKE_UPSTREAM", "http://proxy.example:3128")
    lines = command("env", "--unset").out.splitlines()
    assert {"unset SECONDTAKE_PROXY", "unset PIP_PROXY", "unset SSL_CERT_FILE"} <= set(lines)
    assert "export HTTPS_PROXY=http://proxy.example:3128" in lines


@pytest.mark.loopback
def test_a_shell_is_pointed_at_the_proxy_and_back(
    command: Command, proxied: Callable[..., Proxied], monkeypatch: pytest.MonkeyPatch
) -> None:
    """DESIGN 7: to be eval'ed; with two proxies the port must be given."""
    first = proxied("record", "first")
    script = command("env").out + "\necho $HTTPS_PROXY $SECONDTAKE_PROXY\n"
    with monkeypatch.context() as pointed:
        for name, value in json.loads(command("env", "--json").out)["set"].items():
            pointed.setenv(name, value)
        script += command("env", "--unset").out + "\necho [$HTTPS_PROXY]\n"
    shell = subprocess.run(["/bin/sh", "-e", "-c", script], capture_output=True, text=True, check=True, env={})
    url = f"http://127.0.0.1:{first.ready['port']}"
    assert shell.stdout == f"{url} {url}\n[]\n"
    second = proxied("record", "second")
    ran = command("env")
    assert ran.code == 64
    assert "several proxies are running" in ran.err
    told = json.loads(command("env", "--port", str(second.ready["port"]), "--json").out)
    assert told["set"]["https_proxy"] == f"http://127.0.0.1:{second.ready['port']}"
