"""Qwen Code: one conversation in Chat Completions, and a monitoring beacon at the start."""

from __future__ import annotations

from secondtake.harness.drivers.base import Driver

QWEN = Driver(
    name="qwen",
    programs=("qwen",),
    package="npm:@qwen-code/qwen-code",
    measured="0.15.10",
    headless=lambda task: ("qwen", "--auth-type", "openai", "-p", task, "--yolo"),
    switches=("OPENAI_BASE_URL", "OPENAI_MODEL", "QWEN_MODEL", "QWEN_SANDBOX"),
    closed_stdin=True,
    rules=("QWEN.md", "AGENTS.md", "~/.qwen/QWEN.md"),
    seed=(".qwen/settings.json", ".qwen/oauth_creds.json", ".qwen/installation_id"),
    exits="`Exit Code: N` on a line of its own, always",
    notes=("its first message lists the workspace, and names a file of HOME by its path relative to the workspace",),
)
