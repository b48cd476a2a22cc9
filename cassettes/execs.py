"""Commands as the kernel saw them, and how they stand to the tool calls of the model's traffic (SECURITY D-11).

The model's traffic says what an agent was told to run and what the model was told came of it; the kernel says what was executed and
how it ended. Neither alone is the truth: an agent runs commands of its own, and can tell of commands it never ran.

Arguments and paths are bytes to the kernel; here they are text with `surrogateescape`, so that each gives its bytes back.
"""

from __future__ import annotations

import json
import re
import shlex
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from secondtake.cassettes.errors import Corrupt, TooLarge
from secondtake.cassettes.events import Event, EventKind
from secondtake.cassettes.limits import EXEC_ARGUMENTS, EXEC_LOG_BYTES, EXECS

VERSION = 1
SLACK_US = 250_000
"""How far the clocks of proxy and kernel log may be apart, and how long an agent may go on with a command whose result it has sent."""


@dataclass(frozen=True, slots=True)
class Command:
    """One program executed. Times are since the recording began, in microseconds.

    `parent`: process ID of the nearest process above that executed something under the tracer; 0 for the agent itself.
    `cwd`: empty where it is not known. `exit_code` and `signal`: both None where the end was not seen, or was none (`replaced`).
    """

    pid: int
    parent: int
    argv: tuple[str, ...]
    cwd: str
    started_us: int
    ended_us: int | None
    exit_code: int | None
    signal: int | None
    program: str = ""
    """Path of the file executed, as it was given to the kernel; a script's is the script's."""
    replaced: bool = False
    """The process executed another program (`exec` in a shell): that one has the end."""
    cut: bool = False
    """Arguments are missing or shortened; they were over what a tracer keeps."""


def encode(commands: Iterable[Command]) -> bytes:
    """Return the bytes of an artifact of kind `exec`: one JSON object a line, ASCII, the first says the version."""
    lines = [json.dumps({"execs": VERSION})]
    lines += [json.dumps(_fields(command), ensure_ascii=True, separators=(",", ":")) for command in commands]
    return "\n".join(lines).encode("ascii") + b"\n"


def decode(data: bytes) -> tuple[Command, ...]:
    """Read an artifact of kind `exec`.

    Raises:
        Corrupt: it is not one.
        TooLarge: more than any tracer of ours keeps.
    """
    if len(data) > EXEC_LOG_BYTES:
        raise TooLarge(f"a command log of {len(data)} bytes; {EXEC_LOG_BYTES} are read")
    head, _, rest = data.partition(b"\n")
    try:
        version = json.loads(head)["execs"]
    except (ValueError, RecursionError, TypeError, KeyError) as error:
        raise Corrupt("not a command log: its first line says no version") from error
    if version != VERSION:
        raise Corrupt(f"a command log of version {version!r}; {VERSION} is read")
    lines = rest.splitlines()
    if len(lines) > EXECS:
        raise TooLarge(f"a command log of {len(lines)} commands; {EXECS} are read")
    return tuple(_command(line, number) for number, line in enumerate(lines, 2))


def redacted(commands: Iterable[Command], text: Callable[[str], str]) -> tuple[Command, ...]:
    """Return the commands with `text` (the redactor's) applied to every argument and path. Nothing is stored without it."""
    return tuple(
        replace(one, argv=tuple(text(word) for word in one.argv), cwd=text(one.cwd), program=text(one.program)) for one in commands
    )


class Mark(StrEnum):
    """How a command, or a tool call, is accounted for."""

    MATCHED = "matched"
    """A command that a tool call asked for, and what that command ran."""
    AGENT = "agent-initiated"
    """A command that no tool call asked for; the agent itself is one."""
    NOT_RUN = "claimed-but-not-run"
    """A tool call with a command that the kernel did not see."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A tool call that says a command. `command` is a shell's text, or a list of words as the call gave it."""

    exchange: int
    call_id: str
    tool: str
    command: str | tuple[str, ...]
    called_us: int
    answered_us: int | None
    """When the request that told the result began; None where it was never told."""
    exit_code: int | None
    """What the model was told; None where it was not told one."""


@dataclass(frozen=True, slots=True)
class Accounted:
    """A command, a claim, or both. `command` and `claim` are places in the sequences that were compared."""

    mark: Mark
    command: int | None
    claim: int | None
    exit_agrees: bool | None = None
    """For the command that answers a claim: does its end agree with what the model was told? None where either says nothing."""
    note: str = ""


def claims(events: Iterable[Event]) -> tuple[Claim, ...]:
    """Return the tool calls among `events` whose arguments hold a command, in order. Calls that the provider runs are left out."""
    found: list[Claim] = []
    open_calls: dict[tuple[int | None, str], list[int]] = {}
    for event in events:
        if event.event is EventKind.TOOL_CALL and not event.data.get("server_side") and event.exchange is not None:
            command = _said(_arguments(event))
            if command is None:
                continue
            call_id = str(event.data.get("call_id") or "")
            open_calls.setdefault((event.exchange, call_id), []).append(len(found))
            tool = str(event.data.get("tool") or "")
            found.append(Claim(event.exchange, call_id, tool, command, event.offset_us, None, None))
        elif event.event is EventKind.TOOL_RESULT:
            called, call_id = event.data.get("call_exchange"), str(event.data.get("call_id") or "")
            asked = called if isinstance(called, int) else None
            waiting = open_calls.get((asked, call_id)) or open_calls.get((asked, ""))
            if waiting:
                at, code = waiting.pop(0), event.data.get("exit_code")
                found[at] = replace(found[at], answered_us=event.offset_us, exit_code=code if isinstance(code, int) else None)
    return tuple(found)


def compare(commands: Sequence[Command], claimed: Sequence[Claim]) -> tuple[Accounted, ...]:
    """Account for every command, then for every claim that none answers.

    A claim is answered by the command whose arguments say it best: its text as an argument (a shell's `-c`), inside one (agents wrap
    it), its words as the arguments, or one of its simple commands (a shell that stays). Only commands that started while
    the agent had the call and had not told its result are looked at. What a matched command ran is matched with it.
    """
    order = sorted(range(len(commands)), key=lambda at: commands[at].started_us)
    starts = [commands[at].started_us for at in order]
    answers: dict[int, int] = {}
    for number, claim in enumerate(claimed):
        low = bisect_left(starts, claim.called_us - SLACK_US)
        high = len(starts) if claim.answered_us is None else bisect_left(starts, claim.answered_us + SLACK_US)
        wanted = _Wanted.of(claim.command)
        window = (at for at in order[low:high] if at not in answers)
        best = max(((wanted.score(commands[at].argv), -place, at) for place, at in enumerate(window)), default=None)
        if best is not None and best[0]:
            answers[best[2]] = number
    return (*_commands(commands, claimed, order, answers), *_unanswered(claimed, set(answers.values())))


def _commands(
    commands: Sequence[Command], claimed: Sequence[Claim], order: Sequence[int], answers: Mapping[int, int]
) -> Iterator[Accounted]:
    by_process: dict[int, int | None] = {}
    replaced: set[int] = set()
    marks: dict[int, Accounted] = {}
    for at in order:
        command = commands[at]
        number = answers.get(at)
        goes_on = command.pid in replaced
        agrees = None
        if number is not None:
            agrees = _agrees(_final(commands, at, order), claimed[number])
        elif goes_on:
            number = by_process.get(command.pid)
        else:
            number = by_process.get(command.parent)
        by_process[command.pid] = number
        (replaced.add if command.replaced else replaced.discard)(command.pid)
        marks[at] = Accounted(Mark.AGENT if number is None else Mark.MATCHED, at, number, agrees)
    for at in range(len(commands)):
        yield marks[at]


def _final(commands: Sequence[Command], at: int, order: Sequence[int]) -> Command:
    """The last program of the process that began as `commands[at]`: its end is the command's end."""
    command = commands[at]
    if not command.replaced:
        return command
    for later in order[order.index(at) + 1 :]:
        if commands[later].pid == command.pid:
            command = commands[later]
            if not command.replaced:
                break
    return command


def _unanswered(claimed: Sequence[Claim], answered: set[int]) -> Iterator[Accounted]:
    for number, claim in enumerate(claimed):
        if number not in answered:
            builtin = _Wanted.of(claim.command).only_builtins
            note = "a shell that stays runs these words itself, which no kernel log shows" if builtin else ""
            yield Accounted(Mark.NOT_RUN, None, number, None, note)


def _agrees(command: Command, claim: Claim) -> bool | None:
    status = command.exit_code if command.signal is None else 128 + command.signal
    if status is None or claim.exit_code is None:
        return None
    return claim.exit_code in {status, None if command.signal is None else -command.signal}


_BUILTINS = frozenset([
    ":", ".", "alias", "bg", "bind", "break", "builtin", "cd", "command", "continue", "declare", "echo", "eval", "exit", "export",
    "false", "fg", "getopts", "hash", "jobs", "let", "local", "printf", "pwd", "read", "readonly", "return", "set", "shift", "shopt",
    "source", "test", "times", "trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset", "wait", "[", "[[",
])  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A claim's command in the forms in which it can be executed."""

    text: str
    quoted: tuple[str, ...]
    words: tuple[str, ...]
    simple: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, command: str | tuple[str, ...]) -> _Wanted:
        if isinstance(command, tuple):
            # `["bash", "-lc", TEXT]`: executed as it is, or the text by another shell.
            text = command[-1].strip() if len(command) == 3 and command[1].startswith("-") and command[1].endswith("c") else ""
            return cls(text, _quoted(text), command, _simple(text) if text else (command,))
        text = command.strip()
        simple = _simple(text)
        return cls(text, _quoted(text), simple[0] if len(simple) == 1 else (), simple)

    @property
    def only_builtins(self) -> bool:
        return bool(self.simple) and all(words[0] in _BUILTINS for words in self.simple)

    def score(self, argv: tuple[str, ...]) -> int:
        """How well `argv` says this: 0 not at all."""
        if not argv:
            return 0
        if self.text and any(word.strip() == self.text for word in argv[1:]):
            return 5
        if self.words and argv == self.words:
            return 5
        if self.text and any(_within(form, word) for word in argv[1:] for form in self.quoted if len(word) > len(form)):
            return 4
        if self.words and _same(argv, self.words):
            return 3
        return 2 if any(_same(argv, words) for words in self.simple) else 0


def _same(argv: tuple[str, ...], words: tuple[str, ...]) -> bool:
    """The words, but for where the program lies."""
    return argv[1:] == words[1:] and argv[0].rpartition("/")[2] == words[0].rpartition("/")[2]


def _quoted(text: str) -> tuple[str, ...]:
    """The text as it stands inside an agent's wrapper: as it is, or quoted in one of the two ways programs quote for a shell."""
    return tuple(dict.fromkeys((text, text.replace("'", "'\"'\"'"), text.replace("'", "'\\''")))) if text else ()


def _within(text: str, word: str) -> bool:
    """`text` stands in `word` as a whole: no letter goes on at either end."""
    at = word.find(text)
    while at >= 0:
        before, after = word[at - 1 : at], word[at + len(text) : at + len(text) + 1]
        if not (_joined(before, text[0]) or _joined(text[-1], after)):
            return True
        at = word.find(text, at + 1)
    return False


def _joined(left: str, right: str) -> bool:
    return bool(re.fullmatch(r"[\w./-]{2}", left + right))


def _simple(text: str) -> tuple[tuple[str, ...], ...]:
    """The simple commands of a shell's text, as far as they can be read without being a shell; empty where they cannot."""
    if len(text) > _READ_CHARACTERS:
        return ()
    reader = shlex.shlex(text.replace("\n", " ; "), posix=True, punctuation_chars=True)
    reader.commenters = ""
    try:
        words = list(reader)
    except ValueError:
        return ()
    found: list[tuple[str, ...]] = []
    now: list[str] = []
    target = False
    for word in [*words, ";"]:
        marks = bool(word) and set(word) <= set(";&|()<>")
        if target and not marks:
            target = False
        elif marks and set(word) & set("<>"):
            target = True
            if now and now[-1].isdigit() and len(now[-1]) == 1:
                now.pop()  # the descriptor of `2>`
        elif marks or (word in {"{", "}"} and not now):
            if now:
                found.append(tuple(now))
            now = []
        elif now or not re.fullmatch(r"[A-Za-z_]\w*=.*", word, re.DOTALL):
            now.append(word)
    return tuple(found)


_READ_CHARACTERS = 20_000
_COMMAND_KEYS = ("command", "cmd", "script", "commands")
"""Where tools of known agents put what they run: `command` (Claude Code, Codex, Gemini CLI, Qwen Code, opencode, pi, mini-swe-agent),
`cmd` (Codex' `exec_command`)."""


def _arguments(event: Event) -> str:
    inline = event.data.get("arguments")
    if isinstance(inline, str):
        return inline
    named = event.data.get("arguments_sha256")
    payload = event.payloads.get(named, b"") if isinstance(named, str) else b""
    return payload.decode("utf-8", "surrogatepass")


def _said(arguments: str) -> str | tuple[str, ...] | None:
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    for key in _COMMAND_KEYS:
        said = value.get(key)
        if isinstance(said, str) and said.strip():
            return said
        if isinstance(said, list) and said and all(isinstance(word, str) for word in said):
            return tuple(said)
    return None


_SHORT = {"pid": "p", "parent": "pp", "argv": "a", "cwd": "d", "started_us": "s", "ended_us": "e", "exit_code": "x", "signal": "k"}
_SHORT |= {"program": "f", "replaced": "r", "cut": "c"}


def _fields(command: Command) -> dict[str, object]:
    return {short: getattr(command, name) for name, short in _SHORT.items() if not _absent(getattr(command, name))}


def _absent(value: object) -> bool:
    """What the reader takes to be so where nothing is said; a zero is said."""
    return value is None or value is False or value == ""


def _command(line: bytes, number: int) -> Command:
    try:
        told: Any = json.loads(line)
        command = Command(
            pid=told["p"],
            parent=told["pp"],
            argv=tuple(told["a"]),
            cwd=told.get("d", ""),
            started_us=told["s"],
            ended_us=told.get("e"),
            exit_code=told.get("x"),
            signal=told.get("k"),
            program=told.get("f", ""),
            replaced=told.get("r", False),
            cut=told.get("c", False),
        )
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError) as error:
        raise Corrupt(f"a command log's line {number} is no command") from error
    numbers = (command.pid, command.parent, command.started_us)
    perhaps = (command.ended_us, command.exit_code, command.signal)
    texts = (*command.argv, command.cwd, command.program)
    if not (
        all(type(one) is int for one in numbers)
        and all(one is None or type(one) is int for one in perhaps)
        and all(isinstance(one, str) for one in texts)
        and isinstance(command.replaced, bool)
        and isinstance(command.cut, bool)
        and len(command.argv) <= EXEC_ARGUMENTS
    ):
        raise Corrupt(f"a command log's line {number} is no command")
    return command
