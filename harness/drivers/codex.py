"""Codex: asks its model over a WebSocket first, and for a stream of events where that is refused; its side calls are not waited for."""

from __future__ import annotations

from secondtake.harness.drivers.base import Driver

CODEX = Driver(
    name="codex",
    programs=("codex",),
    package="npm:@openai/codex",
    measured="0.171.0",
    headless=lambda task: ("codex", "exec", "--dangerously-bypass-approvals-and-sandbox", task),
    switches=("OPENAI_BASE_URL",),
    closed_stdin=True,
    rules=("AGENTS.md", "AGENTS.override.md", ".codex/config.toml", "~/.codex/AGENTS.md", "~/.codex/config.toml"),
    seed=(".codex/config.toml", ".codex/auth.json", ".codex/models_cache.json"),
    exits="`Process exited with code N` before `Output:`, always; with the lite models `exit_code` in JSON",
    notes=(
        "`codex exec` reads its key from CODEX_API_KEY; with OPENAI_API_KEY alone it asks without one",
        "an answer of 400 or 429 to its WebSocket ends the run, 426 sends it to the stream at once",
        "the order of a command's standard output and error is the order in which it read them",
    ),
)
