"""The view of the file system: what is hidden, kept, and where the agent stands. The mounts themselves: test_sealing.py."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from secondtake.harness.seal import mounts
from secondtake.harness.seal.mounts import View, host_sockets, visible


def view(folder: Path, *binds: dict[str, Any], environ: dict[str, str] | None = None, **order: Any) -> View:
    return View({"binds": binds, "readable": [], "cwd": str(folder), **order}, environ or {}, [])


def test_the_sockets_of_this_machine_are_found_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D-07: each one that a process is bound to, in a path with a space too."""
    monkeypatch.chdir(tmp_path)
    path = Path(os.path.relpath("/tmp", "/")) / f"secondtake test {os.getpid()}"
    place = "/" + str(path)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(place)
        try:
            assert place in host_sockets()
            assert visible([place, "/nonexistent", "/etc/passwd"]) == [place]
        finally:
            Path(place).unlink()


def test_the_agent_stands_where_we_do_as_it_is_seen_inside(tmp_path: Path) -> None:
    """A launch from the copy, from the recorded place, or from a folder that is hidden."""
    made = view(Path("/recorded"), {"source": "/copy", "target": "/recorded", "writable": True})
    assert made.standing("/copy/sub") == "/recorded/sub"
    assert made.standing("/copyother") == "/recorded"
    assert made.standing(str(tmp_path)) == str(tmp_path)


def test_programs_and_home_in_a_hidden_folder_are_kept_but_not_what_a_bind_covers(tmp_path: Path) -> None:
    """An agent installed below /tmp, or below /run, starts as elsewhere."""
    made = view(
        Path("/tmp/work/sub"),
        {"source": "/copy", "target": "/tmp/work", "writable": True},
        environ={"PATH": "/usr/bin:/tmp/venv/bin:/run/sw/bin:relative", "HOME": "/tmp/home"},
        readable=["/tmp/work/bundle", "/etc/given"],
    )
    assert made._needed(["/tmp", "/run"]) == {"/tmp/venv", "/run/sw", "/tmp/home"}
    assert mounts.outermost(["/a/b/c", "/a/b", "/a/bc"]) == ["/a/b", "/a/bc"]


def test_search_domains_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name exists inside, so a search list would make the first wrong one of them the answer."""
    given = tmp_path / "resolv.conf"
    given.write_text("# kept\nnameserver 192.0.2.53\nsearch one.example two.example\ndomain x\noptions edns0\n")
    monkeypatch.setattr(mounts, "_RESOLV", str(given))
    assert mounts._without_search() == b"# kept\nnameserver 192.0.2.53\noptions edns0\n"
    monkeypatch.setattr(mounts, "_RESOLV", str(tmp_path / "none"))
    assert mounts._without_search() is None
