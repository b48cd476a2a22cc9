"""Files of a workspace that steer an agent or pin what it installs: each with the SHA-256 of its redacted content.

A digest of a file in which something was redacted counts placeholders by their kind, so it is the same on a machine whose store has another
key, and no guess of a secret can be checked against it.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from secondtake.cassettes.canonical import Json
from secondtake.cassettes.envelope import UNKNOWN
from secondtake.cassettes.placeholder import collapse

LOCKS = frozenset(
    (
        "Cargo.lock", "Gemfile.lock", "Pipfile.lock", "bun.lock", "bun.lockb", "composer.lock", "deno.lock", "flake.lock", "go.sum",
        "gradle.lockfile", "mix.lock", "npm-shrinkwrap.json", "package-lock.json", "packages.lock.json", "pdm.lock", "pnpm-lock.yaml",
        "poetry.lock", "pylock.toml", "requirements.txt", "uv.lock", "yarn.lock",
        ".nvmrc", ".node-version", ".python-version", ".ruby-version", ".tool-versions", "go.mod", "rust-toolchain", "rust-toolchain.toml",
    )
)  # fmt: skip
"""Files that say which versions are installed or run."""

MCP = (
    ".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json", "opencode.json", ".gemini/settings.json", ".qwen/settings.json",
    ".codex/config.toml",
)  # fmt: skip
"""Files of a workspace in which agents find MCP servers."""

SETTINGS = (
    ".claude/settings.json", ".claude/settings.local.json", ".codex/config.toml", ".gemini/settings.json", ".qwen/settings.json",
    ".aider.conf.yml", "opencode.json",
)  # fmt: skip
"""Files of a workspace that say what an agent may do."""

_SERVERS = ("mcpServers", "servers", "mcp", "mcp_servers")
_PASSED_BY = frozenset((".git", ".hg", ".svn", ".tox", ".venv", "__pycache__", "node_modules", "site-packages", "target", "vendor", "venv"))
_DEPTH = 6
_ENTRIES = 50_000
_FILE_BYTES = 8 * 1024 * 1024

type Redact = Callable[[bytes], bytes]
"""What takes secrets out of a file's content."""


def digested(root: Path, paths: Iterable[str], redact: Redact, *, home: Path | None = None) -> dict[str, Json]:
    """Return the files that are there, with their digests. A path that begins with `~/` is one of `home`."""
    found: dict[str, Json] = {}
    for path in paths:
        base = home if path.startswith("~/") else root
        digest = None if base is None else digest_of_file(base / path.removeprefix("~/"), redact)
        if digest is not None:
            found[path] = digest
    return found


def digest_of_file(path: Path, redact: Redact) -> str | None:
    """The digest of a file's redacted content; None where there is none, `unknown` where it cannot be read or is too large."""
    content = read(path)
    if content is None:
        return None
    return UNKNOWN if isinstance(content, str) else hashlib.sha256(collapse(redact(content))).hexdigest()


def read(path: Path) -> bytes | str | None:
    """A file's content; None where there is no file, `unknown` where it cannot be read. What is no plain file is not opened."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return None
        if path.stat().st_size > _FILE_BYTES:
            return UNKNOWN
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return UNKNOWN


def locks(root: Path, redact: Redact) -> Json:
    """Return every lock file of a workspace with its digest. Installed packages and version control are passed by."""
    found: dict[str, Json] = {}
    pending: list[tuple[Path, int]] = [(root, 0)]
    left = _ENTRIES
    while pending:
        folder, depth = pending.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            left -= 1
            if left < 0:
                return {**found, "": UNKNOWN}
            if entry.is_dir(follow_symlinks=False):
                if depth < _DEPTH and entry.name not in _PASSED_BY:
                    pending.append((Path(entry.path), depth + 1))
            elif entry.name in LOCKS and entry.is_file(follow_symlinks=False):
                found[os.path.relpath(entry.path, root)] = digest_of_file(Path(entry.path), redact)
    return found


def mcp_config(root: Path, redact: Redact) -> Json:
    """Return the MCP servers that files of the workspace name, with the file's digest."""
    found: dict[str, Json] = {}
    for path in MCP:
        content = read(root / path)
        if content is None:
            continue
        servers = UNKNOWN if isinstance(content, str) else _servers(content, toml=path.endswith(".toml"))
        if servers is not None:
            found[path] = {"servers": servers, "sha256": digest_of_file(root / path, redact)}
    return found


def _servers(content: bytes, *, toml: bool) -> Json:
    """The servers' names; None where the file is about something else."""
    try:
        document = tomllib.loads(content.decode("utf-8")) if toml else json.loads(content)
    except (ValueError, RecursionError):
        return UNKNOWN
    if not isinstance(document, Mapping):
        return UNKNOWN
    named = [name for member in _SERVERS if isinstance(inner := document.get(member), Mapping) for name in inner]
    return [*sorted({str(name) for name in named})] if named else None


def permissions(root: Path, command: Sequence[str], redact: Redact) -> Json:
    """Return what says what the agent may do: options of its command line, and files of settings in the workspace."""
    words = ("permission", "approv", "sandbox", "yolo", "allowed", "disallowed", "dangerous", "auto-", "yes", "trust")
    flags = [word for word in command[1:] if word.startswith("-") and any(part in word.lower() for part in words)]
    return {"options": [*flags], "settings": digested(root, SETTINGS, redact)}
