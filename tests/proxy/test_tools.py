"""Which tool trusts what, and the hint when one does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from secondtake.proxy.tools import TOOL_VARIABLES, command_of, guess, trust_hint


@pytest.mark.parametrize(
    ("trace", "tool"),
    [
        ("curl/7.88.1", "curl"),
        ("git/2.39.5", "git"),
        ("pip/26.3 {}", "pip"),
        ("uv/0.13.9", "uv"),
        ('uv/0.13.9 {"installer":{"name":"uv","subcommand":["pip","install"]}}', "uv"),
        ("python pip", "pip"),
        ("npm/11.19.1 node/v20.20.2 linux x64", "npm"),
        ("node", "node"),
        ("undici", "node"),
        ("Python-urllib/3.12", "python urllib"),
        ("python-requests/2.34.0", "requests"),
        ("python-httpx/0.28.1", "httpx"),
        ("Python/3.12 aiohttp/3.14.0", "aiohttp"),
        ("cargo/1.95.0", "cargo"),
        ("Go-http-client/1.1", "go"),
        ("Java/17.0.15", "java"),
        ("aws-cli/2.0 Python/3.12", "aws"),
        ("claude-cli/2.1.197 (external, sdk-cli)", "claude"),
        ("codex_exec/0.171.0", "codex"),
        ("GeminiCLI/0.61.0 (linux; x64)", "gemini"),
        ("opencode/1.18.33", "opencode"),
        ("QwenCode/0.15.10", "qwen"),
        ("git-remote-https origin", "git"),
        ("python3 aider", "aider"),
        ("python3 mini", "mini-swe-agent"),
        ("python3.12", "python urllib"),
    ],
)
def test_a_tool_is_known_by_what_it_says_of_itself(trace: str, tool: str) -> None:
    """Issue: a client that does not trust the CA: say which variable that tool reads."""
    found = guess(trace)
    assert found is not None
    assert found.name == tool


@pytest.mark.parametrize("trace", ["", None, "Mozilla/5.0", "gopher", "curling", "digit", "pipeline"])
def test_an_unknown_client_is_not_guessed(trace: str | None) -> None:
    """Better no name than a wrong one."""
    assert guess(trace) is None


def test_the_more_telling_trace_comes_first() -> None:
    """An agent's own name over the library it is built with."""
    found = guess(None, "", "claude-cli/2.1", "node")
    assert found is not None
    assert found.name == "claude"


@pytest.mark.parametrize("tool", list(TOOL_VARIABLES))
def test_each_hint_names_what_to_set_and_to_what(tool: str) -> None:
    """Issue: say which variable that tool reads."""
    hint = trust_hint("api.provider.example", TOOL_VARIABLES[tool], Path("/run/b.pem"))
    known = TOOL_VARIABLES[tool]
    assert tool in hint
    assert "api.provider.example" in hint
    assert all(name in hint for name in (*known.trusts, *(known.ignores if known.trusts else ())))
    assert known.note in hint
    assert not known.trusts or hint.endswith("set it to /run/b.pem")


def test_the_hint_for_an_unknown_client_names_both_ways_out() -> None:
    """T-O6: a client that pins its certificates is told of --passthrough."""
    hint = trust_hint("api.provider.example", None, Path("/run/b.pem"))
    assert "secondtake env" in hint
    assert "--passthrough api.provider.example" in hint


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="no /proc on this machine")
def test_a_process_is_named_by_its_program_and_script(tmp_path: Path) -> None:
    """The interpreter says little, the script says all; arguments may name other tools and do not count."""
    script = tmp_path / "aider"
    script.write_text("print(flush=True)\ninput()")
    with subprocess.Popen([sys.executable, str(script), "curl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        named = command_of(child.pid)
        child.communicate(b"\n")
    assert named == f"{Path(sys.executable).name} aider"
    assert command_of(child.pid) is None
    assert command_of(os.getpid()) is not None


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (b"/usr/bin/python3\0-m\0pip\0install\0flask\0", "python3 pip"),
        (b"python3\0-c\0import pip\0", "python3"),
        (b"/usr/bin/node\0/usr/bin/npm\0ci\0", "node npm"),
        (b"npm install --registry=https://index.example/\0\0\0", "npm"),
        (b"", None),
    ],
)
def test_a_process_is_named_by_its_program_and_script_or_module(tmp_path: Path, line: bytes, named: str | None) -> None:
    """For the hint: an interpreter says nothing; what it runs does. npm gives itself a title with all its arguments."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cmdline").write_bytes(line)
    assert command_of(7, tmp_path) == named
