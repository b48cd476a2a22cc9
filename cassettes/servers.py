"""What an MCP server is called, by its command line: what is run, not what runs it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

RUNNERS = frozenset(("npx", "bunx", "uvx", "pnpm", "yarn", "node", "bun", "deno", "uv", "docker", "podman", "pipx", "sh", "bash", "env"))
_PYTHON = re.compile(r"python[\d.]*")
_WORDS = frozenset(("run", "exec", "dlx", "tool", "x"))


def server_name(command: Sequence[str]) -> str:
    """A short name, of the characters of a host name."""
    program = PurePath(command[0]).name
    words = list(command[1:])
    chosen = program
    if program in RUNNERS or _PYTHON.fullmatch(program):
        if "-m" in words[:-1]:
            chosen = words[words.index("-m") + 1]
        else:
            chosen = next((word for word in words if not word.startswith("-") and word not in _WORDS), program)
    chosen = PurePath(chosen.rstrip("/")).name if not chosen.startswith("@") else chosen
    name = re.sub(r"[^a-z0-9.-]+", "-", re.sub(r"\.(?:py|js|mjs|ts|sh)$|(?<=.)@[^/]*$", "", chosen.lower())).strip("-.")
    return name[:60] or "server"
