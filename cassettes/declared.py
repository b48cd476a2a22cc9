"""Rules a person declares: what of a request does not count. One rule a line, each line TOML, as misses and `calibrate` write them:

    ignore = { method = "POST", host = "api.provider.example", path = "/v1/messages", body = "metadata.session_id" }

A rule that would forgive more than a value that varies by itself is refused with the reason: what two requests are about must count.
Pure: the text of a file in, rules out.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, fields

from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.misses import printable
from secondtake.cassettes.normalise import Rule, Steps, ignore, ignore_query, steps

MOST_RULES = 1000
PATTERN_CHARACTERS = 500

WORK = frozenset(
    (
        "messages", "input", "contents", "content", "parts", "part", "text", "system", "instructions", "prompt", "systemInstruction",
        "system_instruction", "tools", "functions", "functionDeclarations", "description", "arguments", "args", "parameters",
        "input_schema", "output", "response", "result", "data", "params", "body",
    )
)  # fmt: skip
"""Members that hold what was said, asked or called: never forgiven whole."""

SHAPE = frozenset(("model", "role", "type", "name", "method", "command"))
"""Members that say what something is."""

PROSE = (
    "Fix the failing test, then say what you did and why.",
    "Change line 12 of page 3 to 42, and add 2026 to the list.",
    "decade facade added face bead cafe",
)
"""A pattern that matches in one of these matches what people and models write."""


@dataclass(frozen=True, slots=True)
class Declared:
    """One rule. `method`, `host` and `path` (without query) may be empty and match any then.

    `body`: a place, such as `messages[*].id`; with `text`, a regular expression, only what it matches in a string there. Or `query`: a key.
    """

    method: str = ""
    host: str = ""
    path: str = ""
    body: str = ""
    text: str = ""
    query: str = ""

    @property
    def line(self) -> str:
        """As it stands in a file."""
        told = ", ".join(f"{one.name} = {_quoted(value)}" for one in fields(self) if (value := getattr(self, one.name)))
        return f"ignore = {{ {told} }}"

    @property
    def rule(self) -> Rule:
        """As requests are compared by it."""
        path = self.path.encode("utf-8", "surrogateescape")
        if self.query:
            return ignore_query(self.query, method=self.method, host=self.host, path=path)
        return ignore(self.body, method=self.method, host=self.host, path=path, text=self.text)


def parse(text: str, source: str) -> tuple[Declared, ...]:
    """The rules of a file. `source` names it in errors.

    Raises:
        BadInput: a line is no rule, or forgives too much; the message says which line, and why.
    """
    found = []
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if not line or line.startswith("#"):
            continue
        where = f"{source}, line {number}"
        rule = _read(line, where)
        why = too_broad(rule)
        if why is not None:
            raise BadInput(f"{where}: the rule is refused: {why}", hint="name a narrower place; `secondtake calibrate` proposes some")
        found.append(rule)
        if len(found) > MOST_RULES:
            raise BadInput(f"{source}: more than {MOST_RULES} rules")
    return tuple(found)


def rules_of(declared: Iterable[Declared]) -> tuple[Rule, ...]:
    """Each once, in order."""
    return tuple(one.rule for one in dict.fromkeys(declared))


def _read(line: str, where: str) -> Declared:
    hint = 'a rule is one line: ignore = { method = "POST", host = "…", path = "/…", body = "PLACE" }'
    try:
        told = tomllib.loads(line)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{where}: {printable(str(error))}", hint=hint) from error
    values = told.get("ignore")
    known = {one.name for one in fields(Declared)}
    if len(told) != 1 or not isinstance(values, dict) or not values.keys() <= known or not all(isinstance(v, str) for v in values.values()):
        raise BadInput(f"{where}: not a rule", hint=f"{hint}; it may say {', '.join(sorted(known))}")
    return Declared(**values)


def too_broad(rule: Declared) -> str | None:
    """Why a rule forgives more than a volatile value, in words; None where it does not."""
    if bool(rule.body) == bool(rule.query):
        return "it must name one place, `body` or `query`"
    if rule.query:
        return "it would forgive every key of the query" if "*" in rule.query else None
    way = steps(rule.body)
    if rule.text:
        return _pattern(rule.text) or ("it would forgive the model" if way == ("model",) else None)
    return _place(rule.body, way)


def _pattern(text: str) -> str | None:
    if len(text) > PATTERN_CHARACTERS:
        return f"its pattern is longer than {PATTERN_CHARACTERS} characters"
    try:
        pattern = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        return f"`{printable(text, 80)}` is no regular expression: {printable(str(error), 80)}"
    if pattern.search("") is not None:
        return f"`{printable(text, 80)}` matches nothing at all too, so every string"
    for prose in PROSE:
        if (found := pattern.search(prose)) is not None:
            return f"`{printable(text, 80)}` matches what people and models write, such as `{found.group()[:20]}`"
    return None


def _place(place: str, way: Steps) -> str | None:
    names = [step for step in way if isinstance(step, str)]
    if not names:
        return "it would forgive everything"
    if way == ("model",):
        return "it would forgive the model"
    if way[0] in ("messages", "input", "contents") and len(names) == 1:
        return f"`{place}` is a whole message"
    if way[-1] is None:
        return f"`{place}` forgives every member of `{names[-1]}`; name one"
    if names[-1] in ("arguments", "args") or (names[-1] == "input" and len(names) > 1):
        return f"`{place}` holds the arguments of a tool call"
    if names[-1] in WORK:
        return f"`{place}` is content; with `text` a pattern says which part of it varies"
    if names[-1] in SHAPE:
        return f"`{place}` says what it is about, not when or by whom it was sent"
    return None


def _quoted(value: str) -> str:
    if "\\" in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
