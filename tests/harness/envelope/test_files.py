"""Files of a workspace that steer an agent."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from secondtake.cassettes.envelope import UNKNOWN
from secondtake.cassettes.exchange import Side
from secondtake.cassettes.redact import Redactor
from secondtake.harness.envelope import files


def plain(content: bytes) -> bytes:
    """Redact nothing."""
    return content


def redacting(key: bytes) -> files.Redact:
    """The redactor of a store with this key."""
    redactor = Redactor(key=key)
    return lambda content: redactor.body(content, (), Side.REQUEST).content


def test_rules_are_found_in_the_workspace_and_in_home(tmp_path: Path) -> None:
    """Issue 5: rules files of the driver with digests."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "AGENTS.md").write_bytes(b"be brief")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "CLAUDE.md").write_bytes(b"be kind")
    found = files.digested(tmp_path / "work", ("AGENTS.md", "none.md", "~/.claude/CLAUDE.md"), plain, home=tmp_path)
    assert found == {
        "AGENTS.md": hashlib.sha256(b"be brief").hexdigest(),
        "~/.claude/CLAUDE.md": hashlib.sha256(b"be kind").hexdigest(),
    }


def test_a_file_with_a_secret_has_one_digest_in_every_store_and_none_by_which_it_can_be_guessed(tmp_path: Path) -> None:
    """DESIGN 4: no unkeyed digest of unredacted content is kept where something was redacted."""
    content = b'{"mcpServers":{"t":{"env":{"TOKEN":"ghp_0123456789abcdefghijABCDEFGHIJ012345"}}}}'
    (tmp_path / ".mcp.json").write_bytes(content)
    one, two = (files.mcp_config(tmp_path, redacting(key)) for key in (b"1" * 32, b"2" * 32))
    assert one == two
    assert isinstance(one, dict)
    assert one[".mcp.json"] != {"servers": ["t"], "sha256": hashlib.sha256(content).hexdigest()}


def test_lock_files_are_found_in_the_project_and_not_in_what_it_installed(tmp_path: Path) -> None:
    """Issue 5: lock file digests in the workspace."""
    for name in ("uv.lock", "web/package-lock.json", "node_modules/x/yarn.lock", ".git/go.sum", "notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    assert list(files.locks(tmp_path, plain)) == ["uv.lock", "web/package-lock.json"]  # type: ignore[arg-type]


def test_a_link_out_of_the_workspace_is_not_followed_to_lock_files(tmp_path: Path) -> None:
    """A workspace comes from strangers."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "uv.lock").write_text("x")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "in").symlink_to(tmp_path / "outside")
    (tmp_path / "work" / "uv.lock").symlink_to(tmp_path / "outside" / "uv.lock")
    assert files.locks(tmp_path / "work", plain) == {}


def test_a_pipe_in_place_of_a_file_is_not_opened(tmp_path: Path) -> None:
    """Opening it would wait for ever."""
    os.mkfifo(tmp_path / "AGENTS.md")
    assert files.digested(tmp_path, ("AGENTS.md",), plain) == {}


def test_a_file_that_is_too_large_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 5: `unknown`, never left out."""
    monkeypatch.setattr(files, "_FILE_BYTES", 3)
    (tmp_path / "AGENTS.md").write_text("long")
    assert files.digested(tmp_path, ("AGENTS.md",), plain) == {"AGENTS.md": UNKNOWN}


def test_mcp_servers_are_named_and_a_file_about_something_else_is_left_out(tmp_path: Path) -> None:
    """DESIGN 6: MCP servers."""
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text('[mcp_servers.tickets]\ncommand = "x"\n')
    (tmp_path / "opencode.json").write_text('{"theme": "dark"}')
    (tmp_path / ".mcp.json").write_text("{")
    found = files.mcp_config(tmp_path, plain)
    assert isinstance(found, dict)
    assert {path: one["servers"] for path, one in found.items() if isinstance(one, dict)} == {
        ".mcp.json": UNKNOWN,
        ".codex/config.toml": ["tickets"],
    }


def test_permissions_are_the_options_and_the_settings(tmp_path: Path) -> None:
    """DESIGN 6: permissions."""
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text("{}")
    said = files.permissions(tmp_path, ("claude", "-p", "allow --yes", "--dangerously-skip-permissions"), plain)
    assert said == {
        "options": ["--dangerously-skip-permissions"],
        "settings": {".claude/settings.json": hashlib.sha256(b"{}").hexdigest()},
    }
