"""What each agent plays in these tests: the keys it gets, the hosts that are the scripted provider's, and a task in its own tools' names.

The turns act by relative paths, so that they can be played anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from secondtake.harness.drivers import DRIVERS, Driver
from secondtake.harness.provider import Reply, Scene, Script, ToolCall

TASK = "Write a greeting and a list, then say that you are done."
OTHER_TASK = "Translate the readme into French."

ANTHROPIC = {"ANTHROPIC_API_KEY": "sk-ant-test-0123456789abcdef"}
DAY = "2026-01-01T00:00:00+00:00"

AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "A Person"), ("EMAIL", "person@mail.example"), ("DATE", DAY))
}

OPENAI = {"OPENAI_API_KEY": "sk-test-0123456789abcdef"}


@dataclass(frozen=True, slots=True)
class Cast:
    """One agent in these tests. `first` is how many assistant turns it writes itself before the model's first one."""

    driver: Driver
    environment: Mapping[str, str]
    hosts: tuple[str, ...]
    """Asked by the agent, and answered by the scripted provider: models as the script says, all else with 404."""
    turns: tuple[Reply, ...]
    aside: tuple[Scene, ...] = ()
    """Scenes of other calls: titles, routers."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What the task leaves in the workspace, by path."""
    first: int = 0
    others: tuple[str, ...] = ()
    """Words that a person adds to the command."""
    own: str = ""
    """What the agent keeps for itself in the workspace, and is not looked at (regular expression)."""
    said: str = ""
    """What of its words differs from run to run (regular expression)."""

    @property
    def name(self) -> str:
        return self.driver.name

    def script(self) -> Script:
        return Script((*self.aside, Scene((*[Reply("(not asked)")] * self.first, *self.turns))))

    def command(self, task: str = TASK) -> tuple[str, ...]:
        return (*self.driver.headless(task), *self.others)


def turns(shell: str, write: ToolCall | None, more: Mapping[str, object], *, command: str = "command") -> tuple[Reply, ...]:
    """Three calls, one of a command that fails, then text. `command` is what the shell tool calls its command, `more` what it
    wants beside it."""
    listed = write or ToolCall(shell, {command: "printf 'one\\ntwo\\n' > list.txt", **more})
    return (
        Reply("I will begin.", (ToolCall(shell, {command: "echo hello > hello.txt && cat hello.txt", **more}),)),
        Reply("", (listed,)),
        Reply("", (ToolCall(shell, {command: "wc -l list.txt; exit 3", **more}),)),
        Reply("All is done."),
    )


def changed(name: str, before: str, after: str) -> str:
    """How aider's models change a passage of a file; nothing before it makes a new file."""
    return f"{name}\n```\n<<<<<<< SEARCH\n{before}=======\n{after}>>>>>>> REPLACE\n```\n"


LEFT = {"hello.txt": "hello\n", "list.txt": "one\ntwo\n"}

ROUTER = Scene(
    (Reply('{"complexity_reasoning": "two files", "complexity_score": 10, "reasoning": "easy", "model_choice": "flash"}'),), model="*-lite"
)
"""Gemini CLI asks a small model which one to ask."""

STARTUP = r"\[STARTUP\] .*"
"""Gemini CLI and its kin measure their own start, and complain of it on some of them."""

TITLE = Scene((Reply('{"title": "A greeting"}'),), model="*haiku*")

CASTS: tuple[Cast, ...] = (
    Cast(
        DRIVERS["pi"],
        ANTHROPIC,
        ("api.anthropic.com",),
        turns("bash", ToolCall("write", {"path": "list.txt", "content": LEFT["list.txt"]}), {}),
        files=LEFT,
    ),
    Cast(
        DRIVERS["opencode"],
        ANTHROPIC,
        ("api.anthropic.com", "models.opencode.ai"),
        turns("bash", ToolCall("write", {"filePath": "list.txt", "content": LEFT["list.txt"]}), {"description": "a step"}),
        (TITLE,),
        files=LEFT,
    ),
    Cast(
        DRIVERS["claude"],
        ANTHROPIC,
        ("api.anthropic.com",),
        turns("Bash", ToolCall("Write", {"file_path": "list.txt", "content": LEFT["list.txt"]}), {"description": "a step"}),
        (TITLE,),
        files=LEFT,
    ),
    Cast(
        DRIVERS["qwen"],
        {**OPENAI, "OPENAI_BASE_URL": "https://api.provider.example/v1", "OPENAI_MODEL": "gpt-5"},
        ("api.provider.example", "gb4w8c3ygj-default-sea.rum.aliyuncs.com"),
        turns("run_shell_command", None, {"is_background": False}),
        files=LEFT,
        first=1,
        said=STARTUP,
    ),
    Cast(
        DRIVERS["codex"],
        {"CODEX_API_KEY": "sk-test-0123456789abcdef"},
        ("api.openai.com", "chatgpt.com", "ab.chatgpt.com", "github.com", "api.github.com"),
        turns("exec_command", None, {}, command="cmd"),
        files=LEFT,
        others=("-m", "gpt-5.1-codex"),
        said=r"session id: \S+|20\S+Z ERROR .*",
    ),
    Cast(
        DRIVERS["gemini"],
        {"GEMINI_API_KEY": "AIzaSyTest-0123456789abcdefghijklmnopqrs"},
        ("generativelanguage.googleapis.com", "play.googleapis.com"),
        turns(
            "run_shell_command", ToolCall("write_file", {"file_path": "list.txt", "content": LEFT["list.txt"]}), {"description": "a step"}
        ),
        (ROUTER,),
        files=LEFT,
        said=STARTUP,
    ),
    Cast(
        DRIVERS["mini-swe-agent"],
        OPENAI,
        ("api.openai.com", "raw.githubusercontent.com"),
        (
            *turns("bash", None, {})[:-1],
            Reply("All is done.", (ToolCall("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}),)),
        ),
        files=LEFT,
        said=r"\d\d:\d\d:\d\d",
    ),
    Cast(
        DRIVERS["aider"],
        {**OPENAI, **AUTHOR},
        ("api.openai.com", "raw.githubusercontent.com"),
        (Reply("I write both.\n\n" + "\n".join(changed(name, "", text) for name, text in LEFT.items())),),
        (Scene((Reply("docs: a greeting and a list"),), model="gpt-4o-mini"),),
        files=LEFT,
        first=2,
        own=r"^\.(aider|gitignore$)",
    ),
)
