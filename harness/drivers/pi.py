"""pi: asks its model and nobody else; two runs send the same bytes."""

from __future__ import annotations

from secondtake.harness.drivers.base import Driver

PI = Driver(
    name="pi",
    programs=("pi",),
    package="npm:@mariozechner/pi-coding-agent",
    measured="0.73.1",
    headless=lambda task: ("pi", "--provider", "anthropic", "--model", "claude-sonnet-4-5", "-p", task),
    switches=("PI_CODING_AGENT_DIR",),
    closed_stdin=True,
    rules=("AGENTS.md", "CLAUDE.md", "~/.pi/agent/AGENTS.md"),
    seed=(".pi/agent/settings.json", ".pi/agent/auth.json", ".pi/agent/models.json"),
    exits="`Command exited with code N` as the last line, when not zero",
    notes=("its system prompt names the date, the workspace and the folder it is installed in",),
)
