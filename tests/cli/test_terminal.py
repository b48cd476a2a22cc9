"""What reaches a terminal (SECURITY C5, C-14)."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from secondtake.cassettes.store import Store
from tests.cli.scenes import PROGRAM, environment


def on_terminal(*arguments: str) -> tuple[int, bytes]:
    """Run a command with a terminal as its standard output; returns its exit code and every byte the terminal was sent."""
    master, slave = pty.openpty()
    told = {**environment(), "TERM": "xterm-256color"}
    process = subprocess.Popen([*PROGRAM, *arguments], stdout=slave, stderr=slave, stdin=subprocess.DEVNULL, env=told)
    os.close(slave)
    sent = bytearray()
    try:
        while data := os.read(master, 65536):
            sent += data
    except OSError:  # Linux says EIO when the last writer is gone
        pass
    os.close(master)
    return process.wait(), bytes(sent)


@pytest.mark.parametrize(
    "arguments", [("show", "incident", "2"), ("show", "incident", "2", "--body", "response"), ("grep", "incident", "evil")]
)
def test_recorded_escape_sequences_never_reach_a_terminal(store: Store, arguments: tuple[str, ...]) -> None:
    """C-14: under a pty, nothing that changes its state is sent."""
    code, sent = on_terminal(*arguments)
    assert code == 0
    assert b"\\x1b]0;evil\\x07" in sent
    assert b"\x1b" not in sent
    assert b"\x07" not in sent
    assert "\u202e".encode() not in sent


def test_binary_is_not_written_to_a_terminal_unless_forced(store: Store) -> None:
    """As curl does."""
    code, sent = on_terminal("show", "incident", "3", "--body", "response")
    assert code == 64
    assert b"error: the body is binary, and this is a terminal" in sent
    code, sent = on_terminal("show", "incident", "3", "--body", "response", "--force")
    assert code == 0
    assert b"\xfe\xff" in sent


def test_a_pipe_gets_the_bytes_as_they_are(store: Store, tmp_path: Path) -> None:
    """DESIGN 7: `show NAME SEQ --body` writes the raw bytes as they were on the wire."""
    ran = subprocess.run([*PROGRAM, "show", "incident", "3", "--body", "response"], capture_output=True, env=environment())
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, bytes(range(256)) * 4, b"")


def test_a_table_on_a_terminal_is_cut_to_its_width_and_escaped(store: Store) -> None:
    """A long URL never breaks the table; the only sequences are our own for bold."""
    code, sent = on_terminal("show", "incident", "-q")
    assert code == 0
    assert set(sent.split(b"\x1b")[1:]) <= {part for part in sent.split(b"\x1b")[1:] if part.startswith((b"[1m", b"[0m"))}
