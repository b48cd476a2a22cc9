"""Proxies that stay: runtime files, and what `env` prints."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from secondtake.cassettes.errors import BadInput
from secondtake.harness.running import exports_of, run_directory
from secondtake.proxy import runtime
from tests.harness.stages import stage_in


def leave(tmp_path: Path, port: int, pid: int | None = None) -> None:
    """Leave a runtime file, of this process unless another is given."""
    pid = os.getpid() if pid is None else pid
    started = runtime.process_start(pid)
    runtime.write(
        run_directory(tmp_path / "store"),
        runtime.Runtime(port, pid, started, "record", bundle="/run/bundle.pem", cassette="x", upstream=None),
    )


def test_the_only_proxy_needs_no_port(tmp_path: Path) -> None:
    """DESIGN 7: env [--port P]."""
    leave(tmp_path, 4321)
    lines = exports_of(stage_in(tmp_path), port=None, form="sh", unset=False).splitlines()
    assert "export HTTPS_PROXY=http://127.0.0.1:4321" in lines
    assert "export SSL_CERT_FILE=/run/bundle.pem" in lines


def test_the_former_proxy_is_kept_for_the_next_one(tmp_path: Path) -> None:
    """T-R12: `secondtake proxy` in a shell that is pointed at one already uses the former proxy."""
    leave(tmp_path, 4321)
    text = exports_of(stage_in(tmp_path, HTTPS_PROXY="http://proxy.example:3128"), port=4321, form="sh", unset=False)
    assert "SECONDTAKE_UPSTREAM" in text
    assert "proxy.example:3128" in text


@pytest.mark.parametrize(
    ("ports", "asked", "said"), [((), None, "no proxy is running"), ((1, 2), None, "on ports 1, 2"), ((1,), 2, "running: 1")]
)
def test_what_is_not_one_proxy_is_said(tmp_path: Path, ports: tuple[int, ...], asked: int | None, said: str) -> None:
    """One line that names what runs."""
    for port in ports:
        leave(tmp_path, port)
    with pytest.raises(BadInput, match=said) as raised:
        exports_of(stage_in(tmp_path), port=asked, form="sh", unset=False)
    assert raised.value.hint


def test_a_stale_proxy_is_never_exported(tmp_path: Path) -> None:
    """DESIGN 7: reads the runtime file and fails clearly when stale."""
    leave(tmp_path, 4321, pid=2**22 + 1)
    with pytest.raises(BadInput, match="is gone"):
        exports_of(stage_in(tmp_path), port=4321, form="sh", unset=False)
