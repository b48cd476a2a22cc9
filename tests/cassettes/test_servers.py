"""What an MCP server is called."""

from __future__ import annotations

import pytest

from secondtake.cassettes.servers import server_name


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["npx", "-y", "@modelcontextprotocol/server-filesystem@2025.1.1", "/home/me/project"], "modelcontextprotocol-server-filesystem"),
        (["uvx", "mcp-server-git", "--repository", "."], "mcp-server-git"),
        (["python3.12", "-m", "my_server"], "my-server"),
        (["/usr/bin/python", "-u", "/opt/tools/Search Server.py"], "search-server"),
        (["node", "dist/index.js"], "index"),
        (["docker", "run", "-i", "--rm", "mcp/postgres"], "postgres"),
        (["/opt/bin/github-mcp-server", "stdio"], "github-mcp-server"),
        (["./---"], "server"),
    ],
)
def test_it_is_named_after_what_is_run(command: list[str], name: str) -> None:
    """Issue 4, item 6: the host of its exchanges; the same from another directory."""
    assert server_name(command) == name
