"""Gemini CLI: a small model is asked first which model is to have the conversation, so that call must be answered as it was."""

from __future__ import annotations

from secondtake.harness.drivers.base import Driver

GEMINI = Driver(
    name="gemini",
    programs=("gemini",),
    package="npm:@google/gemini-cli",
    measured="0.61.0",
    headless=lambda task: ("gemini", "-p", task, "--yolo", "--skip-trust"),
    switches=(
        "CODE_ASSIST_ENDPOINT",
        "GEMINI_CLI_TRUST_WORKSPACE",
        "GEMINI_MODEL",
        "GEMINI_SANDBOX",
        "GEMINI_TELEMETRY_ENABLED",
        "GOOGLE_CLOUD_LOCATION",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_GEMINI_BASE_URL",
        "GOOGLE_GENAI_USE_GCA",
        "GOOGLE_GENAI_USE_VERTEXAI",
        "GOOGLE_VERTEX_BASE_URL",
    ),
    closed_stdin=True,
    rules=("GEMINI.md", ".gemini/settings.json", "~/.gemini/GEMINI.md", "~/.gemini/settings.json"),
    seed=(".gemini/settings.json", ".gemini/oauth_creds.json", ".gemini/installation_id", ".gemini/trustedFolders.json"),
    exits="`Exit Code: N` on a line of its own, when not zero",
    notes=(
        "without --skip-trust it ends with 55 before it asks anything",
        "its first message lists the workspace, and its prompt names the folder it is installed in",
    ),
)
