"""mini-swe-agent: one tool, answers that are not streamed, and a table of prices from its model library's repository."""

from __future__ import annotations

from secondtake.harness.drivers.base import Driver

MINI = Driver(
    name="mini-swe-agent",
    programs=("mini", "mini-swe-agent"),
    package="pip:mini-swe-agent",
    measured="2.4.6",
    headless=lambda task: ("mini", "-m", "openai/gpt-4o", "-t", task, "-y", "--exit-immediately"),
    environment={"MSWEA_CONFIGURED": "true"},
    switches=(
        "LITELLM_LOCAL_MODEL_COST_MAP",
        "MSWEA_COST_TRACKING",
        "MSWEA_MODEL_NAME",
        "OPENAI_API_BASE",
        "OPENAI_BASE_URL",
    ),
    closed_stdin=True,
    seed=(".config/mini-swe-agent/.env",),
    exits='`"returncode": N` in the JSON of its tool result, always',
    notes=(
        "a model call that is refused with 400 is tried again ten times, over minutes: a replay ends it after a miss",
        "its prompt names the kernel, with its release",
        "it ends by a tool call that prints COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
    ),
)
