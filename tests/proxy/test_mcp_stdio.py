"""The side of an MCP server that the agent sees: finding the run, reading lines. Whole sessions: tests/cli/commands/test_mcp.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from secondtake.proxy.mcp_stdio import Line, NoRun, lines, run_of, serve


def processes(folder: Path, *chain: tuple[int, dict[str, str]]) -> Path:
    """A `/proc` in which each process is the parent of the one before; the first is ours."""
    for (pid, environ), parent in zip(chain, [*(pid for pid, _ in chain[1:]), 1], strict=True):
        (folder / str(pid)).mkdir(parents=True)
        (folder / str(pid) / "stat").write_text(f"{pid} (a (b) c) S {parent} 1 1 0")
        (folder / str(pid) / "environ").write_bytes(b"\0".join(f"{name}={value}".encode() for name, value in environ.items()))
    return folder


def test_the_run_is_our_own_variable_or_that_of_the_nearest_process_above(tmp_path: Path) -> None:
    """Issue 4, item 6: agents start servers with few variables (the MCP SDKs pass six)."""
    ours, url = os.getpid(), "http://127.0.0.1:4242"
    assert run_of({"SECONDTAKE_PROXY": url}, tmp_path / "nowhere") == url
    above = processes(
        tmp_path / "a", (ours, {}), (400, {"PATH": "/bin"}), (300, {"SECONDTAKE_PROXY": url}), (200, {"SECONDTAKE_PROXY": "x"})
    )
    assert run_of({}, above) == url
    assert run_of({}, processes(tmp_path / "b", (ours, {}), (400, {}), (300, {}))) is None


def test_where_nobody_can_tell_nothing_is_assumed(tmp_path: Path) -> None:
    """Fail closed, with what to do."""
    with pytest.raises(NoRun) as raised:
        run_of({}, tmp_path / "nowhere")
    assert raised.value.hint is not None
    assert "--alone" in raised.value.hint


@pytest.mark.parametrize(
    ("written", "longest", "read"),
    [
        (b"a\nbb\r\n\n", 100, [Line(b"a\n"), Line(b"bb\r\n"), Line(b"\n")]),
        (b"a\nlast", 100, [Line(b"a\n"), Line(b"last")]),
        (b"", 100, []),
        (b"0123456789abc\nd\n", 5, [Line(b"0123456789abc\n", whole=False), Line(b"d\n")]),
        (b"0123456789", 5, [Line(b"0123456789", whole=False)]),
    ],
)
def test_lines_are_read_as_they_come_each_with_its_end(written: bytes, longest: int, read: list[Line]) -> None:
    """Issue 4, item 6: byte for byte."""
    ours, theirs = os.pipe()
    os.write(theirs, written)
    os.close(theirs)
    assert list(lines(ours, longest)) == read
    os.close(ours)


def test_a_line_beyond_the_limit_goes_through_in_parts() -> None:
    """Issue 4, item 6: any size within limits; beyond, the agent's traffic goes on."""
    ours, theirs = os.pipe()
    os.write(theirs, b"x" * 10)
    found = lines(ours, 5)
    parts = [next(found)]
    os.write(theirs, b"y\nz\n")
    parts += [next(found), next(found)]
    assert parts == [Line(b"x" * 10, whole=False), Line(b"y\n", whole=False), Line(b"z\n")]
    os.close(theirs)
    assert list(found) == []
    os.close(ours)


def test_a_run_that_does_not_answer_is_named() -> None:
    """Fail closed: the caller starts nothing."""
    with pytest.raises(NoRun, match="does not answer"):
        serve(["never"], "never", "http://127.0.0.1:9", lambda _text: None)
