"""The runtime file of a running proxy."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from secondtake.proxy import runtime
from secondtake.proxy.runtime import Runtime, Stale


def ours(port: int = 8080, **changes: object) -> Runtime:
    pid = os.getpid()
    made = Runtime(port, pid, runtime.process_start(pid), "record", "/run/bundle.pem", "refactor-demo", credential="user:s3cret")
    return replace(made, **changes)  # type: ignore[arg-type]  # the fields are named where it is called


def test_what_was_written_is_read_and_private(tmp_path: Path) -> None:
    """DESIGN 7: a runtime file per port; C-18: 0600 in 0700 whatever the umask."""
    before = os.umask(0)
    try:
        path = runtime.write(tmp_path / "run", ours())
    finally:
        os.umask(before)
    assert runtime.read(tmp_path / "run", 8080) == ours()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["proxy-8080.json"]


def test_no_proxy_on_the_port_is_stale_and_names_those_that_run(tmp_path: Path) -> None:
    """DESIGN 7: `env --port P` fails clearly; STYLE 4.6: what came closest."""
    runtime.write(tmp_path, ours(8081))
    with pytest.raises(Stale, match=r"no proxy is known on port 8080; running: 8081") as raised:
        runtime.read(tmp_path, 8080)
    assert raised.value.pid is None
    assert raised.value.hint


def test_a_dead_process_is_stale_and_named(tmp_path: Path) -> None:
    """DESIGN 7: fails clearly when stale."""
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    runtime.write(tmp_path, ours(pid=done.pid))
    with pytest.raises(Stale, match=f"process {done.pid}") as raised:
        runtime.read(tmp_path, 8080)
    assert raised.value.pid == done.pid


def test_a_process_id_used_again_is_stale(tmp_path: Path) -> None:
    """DESIGN 7: a process is its ID and its start time."""
    runtime.write(tmp_path, ours(started="another boot:1"))
    with pytest.raises(Stale):
        runtime.read(tmp_path, 8080)
    assert runtime.running(tmp_path) == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"port": "x"}', b"\xff\xfe", b"[" * 60_000, json.dumps({"port": 1, "pid": 2}).encode(), b"null"]
)
def test_what_is_no_runtime_file_is_no_proxy(content: bytes, tmp_path: Path) -> None:
    """DESIGN 7: a file of anything else in that place leads to the same clear error."""
    (tmp_path / "proxy-8080.json").write_bytes(content)
    with pytest.raises(Stale):
        runtime.read(tmp_path, 8080)
    assert runtime.running(tmp_path) == []


def test_a_later_version_may_say_more(tmp_path: Path) -> None:
    """Fields that this version does not know are passed over."""
    path = runtime.write(tmp_path, ours())
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 2, "mood": "fine"}))
    assert runtime.read(tmp_path, 8080) == ours()


def test_the_running_are_listed_by_port_and_the_rest_is_swept(tmp_path: Path) -> None:
    """DESIGN 7: after a kill the next start cleans up."""
    for port in (9000, 8080):
        runtime.write(tmp_path, ours(port))
    runtime.write(tmp_path, ours(7000, started="long ago"))
    assert [each.port for each in runtime.running(tmp_path)] == [8080, 9000]
    runtime.sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["proxy-8080.json", "proxy-9000.json"]
    assert runtime.running(tmp_path / "absent") == []


def test_only_the_owner_takes_its_file_away(tmp_path: Path) -> None:
    """A proxy that ends late does not take the file of its successor on the same port."""
    path = runtime.write(tmp_path, ours())
    runtime.remove(tmp_path, 8080, pid=os.getpid() + 1)
    assert path.exists()
    runtime.remove(tmp_path, 8080, pid=os.getpid())
    runtime.remove(tmp_path, 8080)
    assert not path.exists()


def test_the_credential_is_not_shown(tmp_path: Path) -> None:
    """C-18: nothing that is printed or logged holds it."""
    assert "s3cret" not in repr(ours(upstream="http://a:s3cret@proxy.example:1"))


def test_a_program_name_with_spaces_and_parentheses_does_not_confuse(tmp_path: Path) -> None:
    """proc_pid_stat(5): the second field is whatever the program is called."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text("7 (a) b (c)) S " + " ".join(str(number) for number in range(4, 53)))
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text("b00t\n")
    assert runtime.process_start(7, tmp_path) == "b00t:22"
    assert runtime.process_start(8, tmp_path) == ""
