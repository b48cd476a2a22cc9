"""opencode: a title call beside the first call; on the first run in a HOME it also fetches its plugin's packages in the background."""

from __future__ import annotations

from secondtake.harness.drivers.base import Driver

OPENCODE = Driver(
    name="opencode",
    programs=("opencode",),
    package="npm:opencode-ai",
    measured="1.18.33",
    headless=lambda task: ("opencode", "run", "-m", "anthropic/claude-sonnet-4-5", task),
    environment={"OPENCODE_DISABLE_AUTOUPDATE": "1"},
    switches=(
        "OPENCODE_CONFIG",
        "OPENCODE_CONFIG_CONTENT",
        "OPENCODE_CONFIG_DIR",
        "OPENCODE_DISABLE_AUTOUPDATE",
        "OPENCODE_DISABLE_CLAUDE_CODE",
        "OPENCODE_DISABLE_CLAUDE_CODE_PROMPT",
        "OPENCODE_DISABLE_CLAUDE_CODE_SKILLS",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS",
        "OPENCODE_DISABLE_EXTERNAL_SKILLS",
        "OPENCODE_DISABLE_LSP_DOWNLOAD",
        "OPENCODE_DISABLE_MODELS_FETCH",
        "OPENCODE_DISABLE_PROJECT_CONFIG",
        "OPENCODE_MODELS_URL",
        "OPENCODE_PERMISSION",
        "OPENCODE_PURE",
    ),
    closed_stdin=True,
    rules=("AGENTS.md", "CLAUDE.md", "~/.config/opencode/AGENTS.md", "~/.claude/CLAUDE.md"),
    seed=(".config/opencode", ".local/share/opencode/auth.json", ".cache/opencode"),
    exits="",
    notes=(
        "a failed command's result says nothing of its exit code",
        "packages it fetches for itself in the background are side traffic (cassettes/bursts.py)",
    ),
)
