"""Which commands two runs ran and how each ended: by the kernel's log where both have one, else by tool calls and their results."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from secondtake.cassettes.adapters.base import Json
from secondtake.cassettes.diff.alignment import Mark, align
from secondtake.cassettes.diff.decisions import Call, Course
from secondtake.cassettes.diff.sameness import Sameness, parsed
from secondtake.cassettes.execs import Claim, Command
from secondtake.cassettes.execs import Mark as Accounting
from secondtake.cassettes.execs import compare as account

COMMAND_KEYS = ("command", "cmd", "script")
"""Arguments (in lower case) that hold a command line."""

_SHELLS = frozenset(("sh", "bash", "zsh", "dash"))


class Whence(StrEnum):
    """Who says that a command ran."""

    KERNEL = "kernel"
    TRAFFIC = "model traffic"


@dataclass(frozen=True, slots=True)
class Ran:
    """One command. `ended`: an exit code, `signal N`, `failed` where only that is known, empty where nothing is."""

    line: str
    program: str
    ended: str = ""


@dataclass(frozen=True, slots=True)
class Log:
    """The commands of one run, in order. `own`: commands the agent ran by itself, not compared; `not_run`: asked for, and not seen."""

    whence: Whence
    ran: tuple[Ran, ...]
    own: int = 0
    not_run: int = 0


@dataclass(frozen=True, slots=True)
class Together:
    """Two commands side by side; a side is None where it ran no such command. `same` is the command's sameness, not its end's."""

    a: Ran | None
    b: Ran | None
    same: bool

    @property
    def other_end(self) -> bool:
        """The same command, which ended otherwise."""
        return self.same and self.a is not None and self.b is not None and self.a.ended != self.b.ended


@dataclass(frozen=True, slots=True)
class Commanded:
    """The second layer. Both logs are of one kind: what one side alone could tell is not compared."""

    a: Log
    b: Log
    together: tuple[Together, ...]
    bounded: bool = False

    @property
    def differs(self) -> bool:
        return any(not one.same or one.other_end for one in self.together)

    @property
    def first(self) -> Together | None:
        """The first command that is not the same, or ended otherwise."""
        return next((one for one in self.together if not one.same or one.other_end), None)


def command_of(call: Call) -> str | None:
    """The command line a tool call asks for; None for a call that runs none."""
    value = parsed(call.arguments)
    if not isinstance(value, dict):
        return None
    for key, inner in value.items():
        if key.lower() in COMMAND_KEYS:
            return _line(inner)
    return None


def _line(value: Json) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        words = [str(word) for word in value]
        if len(words) == 3 and words[0].rpartition("/")[2] in _SHELLS and words[1] in ("-c", "-lc"):
            return words[2]
        return shlex.join(words)
    return None


def by_traffic(course: Course) -> Log:
    """The commands of a run by its tool calls and their results, in order; those of one turn sorted."""
    made = []
    for decision in course.decisions:
        for call in decision.calls:
            line = command_of(call)
            if line is not None:
                made.append(Ran(line, program(line), _ended(call)))
    return Log(Whence.TRAFFIC, tuple(made))


def _ended(call: Call) -> str:
    if call.result is None:
        return ""
    if call.result.exit_code is not None:
        return str(call.result.exit_code)
    return "failed" if call.result.is_error else ""


def by_kernel(commands: Sequence[Command], claimed: Sequence[Claim], same: Sameness) -> Log:
    """The commands of a run as the kernel saw them: those that answer a tool call, and what they ran in turn.

    In the order of the calls, those of one turn sorted; what one call ran in order of its start.
    """
    found: list[tuple[int, str, int, int, Ran]] = []
    own = not_run = 0
    for one in account(commands, claimed):
        if one.mark is Accounting.NOT_RUN:
            not_run += 1
        elif one.mark is Accounting.AGENT or one.command is None or one.claim is None:
            own += 1
        else:
            command, claim = commands[one.command], claimed[one.claim]
            text = claim.command if isinstance(claim.command, str) else shlex.join(claim.command)
            ran = Ran(same.text(shlex.join(command.argv)), (command.argv or ("",))[0].rpartition("/")[2], _status(command))
            found.append((claim.exchange, same.text(text), one.claim, command.started_us, ran))
    found.sort(key=lambda row: row[:4])
    return Log(Whence.KERNEL, tuple(row[4] for row in found), own, not_run)


def _status(command: Command) -> str:
    if command.signal is not None:
        return f"signal {command.signal}"
    return "" if command.exit_code is None else str(command.exit_code)


def compare(a: Log, b: Log) -> Commanded:
    """Set the commands of two runs side by side. Both logs must be of one kind."""
    assert a.whence is b.whence
    aligned = align([_mark(one) for one in a.ran], [_mark(one) for one in b.ran])
    together = tuple(
        Together(None if pair.a is None else a.ran[pair.a], None if pair.b is None else b.ran[pair.b], pair.same) for pair in aligned.pairs
    )
    return Commanded(a, b, together, aligned.bounded)


def _mark(one: Ran) -> Mark:
    return Mark(one.line, (one.program,))


_BEFORE = frozenset(("sudo", "env", "time", "nohup", "exec", "command", "timeout"))
_MODULES = ("python", "python3", "py")
_INTERPRETERS = frozenset(("python", "python3", "py", "node", "ruby", "perl", "php", "bash", "sh", "deno", "bun"))
"""Programs that run a file: which one tells what was done."""
_READERS = frozenset(("cat", "head", "tail", "sed", "less", "nl", "bat"))
"""Programs that show a file: which one tells what was done."""
_WITH_SUBCOMMANDS = frozenset([
    "apt", "apt-get", "brew", "bundle", "cargo", "composer", "docker", "dotnet", "gh", "git", "go", "gradle", "hatch", "just", "kubectl",
    "make", "mvn", "nox", "npm", "npx", "pip", "pip3", "pnpm", "poetry", "rails", "rake", "systemctl", "task", "terraform", "tox", "uv",
    "yarn",
])  # fmt: skip


def words_of(line: str) -> list[str]:
    """The words of the command that counts: behind `cd … &&`, assignments and `timeout 60`; the first of a pipe."""
    try:
        words = shlex.split(line, comments=False, posix=True)
    except ValueError:
        words = line.split()
    part: list[str] = []
    for word in [*words, "&&"]:
        if word in ("&&", ";", "||", "|", "|&"):
            if part and part[0] not in ("cd", "export", "set", "source", "."):
                break
            part = []
            continue
        if not part and (word in _BEFORE or _assigns(word) or word.replace(".", "").rstrip("s").isdigit()):
            continue
        part.append(word)
    return part or words[:1]


def _assigns(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()


def program(line: str) -> str:
    """What a command line comes to: `pytest`, `git diff`, `python -m unittest`, `node x.js`, `cat foo.py`."""
    words = words_of(line)
    if not words:
        return ""
    name = words[0].rpartition("/")[2]
    if name in _MODULES and len(words) > 2 and words[1] == "-m":
        return f"python -m {words[2]}"
    rest = [word for word in words[1:] if not word.startswith("-")]
    if name in _INTERPRETERS and rest and words[1] == rest[0]:
        return f"{name} {rest[0]}"
    if name in _WITH_SUBCOMMANDS and rest and rest[0].replace("-", "").replace(":", "").isalnum():
        return f"{name} {rest[0]}"
    return f"{name} {rest[-1]}" if name in _READERS and rest else name
