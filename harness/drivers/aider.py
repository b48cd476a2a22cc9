"""aider: no tools; the model's text is an edit, and a second model writes the message of the commit that aider makes of it."""

from __future__ import annotations

from secondtake.harness.drivers.base import Driver

AIDER = Driver(
    name="aider",
    programs=("aider",),
    package="pip:aider-chat",
    measured="0.86.2",
    headless=lambda task: ("aider", "--model", "gpt-4o", "--message", task, "--yes"),
    environment={
        "AIDER_ANALYTICS": "false",
        "AIDER_CHECK_UPDATE": "false",
        "AIDER_SHOW_RELEASE_NOTES": "false",
        "PYTHONHASHSEED": "0",
    },
    switches=(
        "AIDER_ANALYTICS",
        "AIDER_AUTO_COMMITS",
        "AIDER_CHECK_UPDATE",
        "AIDER_EDIT_FORMAT",
        "AIDER_GITIGNORE",
        "AIDER_MAP_TOKENS",
        "AIDER_MODEL",
        "AIDER_SHOW_RELEASE_NOTES",
        "AIDER_WEAK_MODEL",
        "LITELLM_LOCAL_MODEL_COST_MAP",
        "OPENAI_API_BASE",
        "OPENAI_BASE_URL",
    ),
    closed_stdin=True,
    rules=("CONVENTIONS.md", ".aider.conf.yml", ".aider.model.settings.yml", "~/.aider.conf.yml"),
    seed=(".aider.conf.yml", ".aider", ".env"),
    notes=(
        "it lists several files of a chat in the order of a set: the same in each run by PYTHONHASHSEED, another in another workspace",
        "one user in ten, by a random number, sends telemetry unless it is switched off, as the driver does",
        "it writes its history beside the code (.aider*), with the time of day, and so a replayed tree differs there",
        "it ends with 0 also where no model answered",
    ),
)
