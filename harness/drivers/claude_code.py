"""Claude Code: flags, settings and a title call beside the conversation; what they answer steers it, so all of it is played."""

from __future__ import annotations

from secondtake.harness.drivers.base import Driver

CLAUDE_CODE = Driver(
    name="claude",
    programs=("claude",),
    package="npm:@anthropic-ai/claude-code",
    measured="2.1.197",
    headless=lambda task: ("claude", "-p", task, "--dangerously-skip-permissions"),
    environment={"DISABLE_AUTOUPDATER": "1"},
    as_root={"IS_SANDBOX": "1"},
    switches=(
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_DEFAULT_HAIKU_MODEL",
        "ANTHROPIC_DEFAULT_OPUS_MODEL",
        "ANTHROPIC_DEFAULT_SONNET_MODEL",
        "ANTHROPIC_MODEL",
        "ANTHROPIC_SMALL_FAST_MODEL",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
        "DISABLE_AUTOUPDATER",
        "DISABLE_ERROR_REPORTING",
        "DISABLE_TELEMETRY",
        "MAX_THINKING_TOKENS",
    ),
    closed_stdin=True,
    rules=("CLAUDE.md", "CLAUDE.local.md", ".claude/settings.json", "~/.claude/CLAUDE.md"),
    seed=(".claude.json", ".claude/settings.json", ".claude/.credentials.json"),
    exits="`Exit code N` as the first line, when not zero",
    notes=(
        "as root it refuses to skip permissions unless IS_SANDBOX=1 is set",
        "without nonessential traffic its prompt names fewer tools, so both runs must have the same setting",
    ),
)
