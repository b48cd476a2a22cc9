"""`[failure]`, `[acceptance]` and `[stop]` of a fixture.toml: what a person may write there, checked as it is read.

Each section is a list of checks, each check a table with a name and a kind; docs/acceptance.md shows one of each. Fixtures come
from strangers: paths stay inside the workspace, numbers are bounded, unknown keys are errors.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.takes import Signature
from secondtake.harness.acceptance.globs import CACHES

PATTERN_CHARACTERS = 1000
TEXT_CHARACTERS = 1024 * 1024
CHECKS = 200
TIMEOUT_S = 600.0
REPEAT = 20


def _words(value: object) -> object:
    """A command line as a list; a text is split as a shell would, but no shell reads it."""
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError as error:
        raise ValueError(f"cannot be split into words: {error}") from None


def _inside(path: str) -> str:
    """A path that stays in the folder it is relative to."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\0" in path or "\\" in path:
        raise ValueError("must be a relative path without `..`")
    return str(PurePosixPath(path))


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is no regular expression: {error}") from None
    return text


def _plain(text: str) -> str:
    if not text.strip() or any(character < " " for character in text):
        raise ValueError("must be one line of text")
    return text


type Name = Annotated[str, Field(min_length=1, max_length=120), AfterValidator(_plain)]
type Word = Annotated[str, Field(max_length=32_768)]
type Command = Annotated[tuple[Word, ...], BeforeValidator(_words), Field(min_length=1, max_length=1000)]
type Inside = Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_inside)]
type Glob = Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_inside)]
"""`*` and `?` stay within a folder, `**` crosses folders; a path that names a folder is all in it."""
type Pattern = Annotated[str, Field(min_length=1, max_length=PATTERN_CHARACTERS), AfterValidator(_pattern)]
type Text = Annotated[str, Field(max_length=TEXT_CHARACTERS)]
type Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
type Count = Annotated[int, Field(ge=0, le=10**15)]
type Exit = Annotated[int, Field(ge=0, le=255)]
type Seconds = Annotated[float, Field(gt=0, le=86_400 * 30, allow_inf_nan=False)]
type Whitespace = Literal["exact", "trailing", "any"]
"""`exact`: every byte; `trailing`: not at the end of lines and of the file, nor how lines end; `any`: runs of white space are one."""


class Section(BaseModel):
    """What all tables here share."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Check(Section):
    """One assertion. `name` is what reports call it; unique in its section."""

    name: Name


class Runs(Check):
    """A check that runs a command in the final workspace, without a shell."""

    run: Command
    cwd: Inside | None = None
    """Relative to the workspace, where not in its root."""
    env: dict[Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$")], Word] = {}
    """Added to the cleaned environment."""
    timeout_s: Seconds = TIMEOUT_S
    repeat: Annotated[int, Field(ge=1, le=REPEAT)] = 1
    """Run so many times: all must agree, else the check cannot be judged (`flaky: 2 of 3`)."""


class CommandCheck(Runs):
    """How a command ends: a test command that is green or red, or any program of one's own, which says by its exit code."""

    kind: Literal["command"]
    exit: Literal["zero", "nonzero"] | Exit | Annotated[tuple[Exit, ...], Field(min_length=1)] = "zero"
    """126 and 127 (not started) and 125 (`cannot be judged`, as for `git bisect run`) count only where they are named."""


class SuiteCheck(Runs):
    """Tests by identity. An ID may be shortened from its beginning as long as one test only is meant."""

    kind: Literal["tests"]
    report: Glob | None = None
    """Files the command writes (JUnit XML, JSON), deleted before it runs; None: what it prints."""
    format: Literal["auto", "junit", "pytest", "tap", "go", "cargo", "jest", "node"] = "auto"
    passing: tuple[Name, ...] = ()
    """These must be in the report, and pass."""
    failing: tuple[Name, ...] = ()
    """These must be in the report, and fail."""
    others: Literal["any", "unbroken"] = "any"
    """`unbroken`: whatever passed on the untouched tree still passes, and none of it is missing."""

    @model_validator(mode="after")
    def _asks_something(self) -> SuiteCheck:
        if not self.passing and not self.failing and self.others == "any":
            raise ValueError('names no test: give `passing`, `failing`, or `others = "unbroken"`')
        return self


class OutputCheck(Runs):
    """A command that must succeed, and what it printed, or wrote to `file`, compared: a build that is ok but makes something else."""

    kind: Literal["output"]
    file: Inside | None = None
    """Compare this file, deleted before the command runs; None: standard output."""
    equals: Text | None = None
    equals_file: Inside | None = None
    """A file of the fixture's folder."""
    sha256: Sha256 | None = None
    matches: Pattern | None = None
    expect: Literal["same", "different"] = "same"
    whitespace: Whitespace = "trailing"
    """For `equals`."""

    @model_validator(mode="after")
    def _one_way(self) -> OutputCheck:
        _exactly_one(self, "equals", "equals_file", "sha256", "matches")
        return self


class LintCheck(Runs):
    """A linter: its exit code, or how many lines of what it prints match `finding`."""

    kind: Literal["lint"]
    finding: Pattern | None = None
    """One finding a line. None: it must exit with zero."""
    at_most: Count | Literal["floor"] = "floor"
    """`floor`: as many as on the untouched tree."""


class DiffCheck(Check):
    """The take's changes are those of an expected patch, however they came about."""

    kind: Literal["diff"]
    patch: Text | None = None
    """A unified diff against the start."""
    patch_file: Inside | None = None
    """A file of the fixture's folder."""
    contents: dict[Inside, Text] | None = None
    """Or the contents of files at the end."""
    whitespace: Whitespace = "trailing"
    others: Literal["unchanged", "any"] = "unchanged"
    """Whether further files may have changed."""
    ignore: Annotated[tuple[Glob, ...], Field(max_length=1000)] = CACHES

    @model_validator(mode="after")
    def _one_way(self) -> DiffCheck:
        _exactly_one(self, "patch", "patch_file", "contents")
        return self


class OnlyChangedCheck(Check):
    """Nothing but these files was added, changed or removed."""

    kind: Literal["only-changed"]
    paths: Annotated[tuple[Glob, ...], Field(max_length=1000)]
    """None of them: nothing may have changed at all."""
    ignore: Annotated[tuple[Glob, ...], Field(max_length=1000)] = CACHES


class UntouchedCheck(Check):
    """None of these files was added, changed or removed."""

    kind: Literal["untouched"]
    paths: Annotated[tuple[Glob, ...], Field(min_length=1, max_length=1000)]


class NoCommandsCheck(Check):
    """No command that was run, and no argument of a tool call, matches."""

    kind: Literal["no-commands"]
    patterns: Annotated[tuple[Pattern, ...], Field(min_length=1, max_length=100)]


class FileCheck(Check):
    """A file is there at the end, with what it must hold; or is not."""

    kind: Literal["file"]
    path: Inside
    present: bool = True
    matches: Pattern | None = None
    sha256: Sha256 | None = None

    @model_validator(mode="after")
    def _absent_has_no_content(self) -> FileCheck:
        if not self.present and (self.matches or self.sha256):
            raise ValueError("a file that must be absent has no content to compare")
        return self


class WithinCheck(Check):
    """The agent came to an end of its own within these."""

    kind: Literal["within"]
    model_calls: Count | None = None
    tool_calls: Count | None = None
    tokens: Count | None = None
    seconds: Seconds | None = None

    @model_validator(mode="after")
    def _asks_something(self) -> WithinCheck:
        if (self.model_calls, self.tool_calls, self.tokens, self.seconds) == (None,) * 4:
            raise ValueError("has no bound: give `model_calls`, `tool_calls`, `tokens` or `seconds`")
        return self


class NoSecretsCheck(Check):
    """What was added holds no credential."""

    kind: Literal["no-secrets"]


class NoLockfileDriftCheck(Check):
    """No lock file changed."""

    kind: Literal["no-lockfile-drift"]
    allow: Annotated[tuple[Glob, ...], Field(max_length=1000)] = ()
    also: Annotated[tuple[Glob, ...], Field(max_length=1000)] = ()
    """Further files to take as lock files."""


type AnyCheck = Annotated[
    CommandCheck
    | SuiteCheck
    | OutputCheck
    | LintCheck
    | DiffCheck
    | OnlyChangedCheck
    | UntouchedCheck
    | NoCommandsCheck
    | FileCheck
    | WithinCheck
    | NoSecretsCheck
    | NoLockfileDriftCheck,
    Field(discriminator="kind"),
]
type Checks = Annotated[tuple[AnyCheck, ...], Field(max_length=CHECKS)]


class FailureSignature(Section):
    """The incident's signature, part by part (docs/acceptance.md); the ID takes are compared by is made of these."""

    exit: Text = ""
    first: Text = ""
    tool: Text = ""
    stop: Text = ""

    def value(self) -> Signature:
        """As takes have it."""
        return Signature.of((("exit", self.exit), ("first", self.first), ("tool", self.tool), ("stop", self.stop)))

    @classmethod
    def of(cls, signature: Signature) -> FailureSignature:
        """The table of a signature that was computed."""
        return cls(**dict(signature.parts))


class Failure(Section):
    """What went wrong in the incident. All of its checks hold on a tree where it did."""

    summary: Annotated[str, Field(max_length=2000)] = ""
    """For people."""
    check: Checks = ()
    signature: FailureSignature | None = None

    @model_validator(mode="after")
    def _names(self) -> Failure:
        _unique(self.check)
        return self


class Acceptance(Section):
    """What success is: all checks hold."""

    check: Checks = ()
    known_good: Inside | None = None
    """A patch in the fixture's folder that makes the start tree good: all checks must hold there (the noise floor)."""

    @model_validator(mode="after")
    def _names(self) -> Acceptance:
        _unique(self.check)
        return self


class Stop(Section):
    """When a take stops asking, at the wire. What is left out is not bounded."""

    calls: Count | None = None
    """Model calls."""
    tokens: Count | None = None
    """In and out."""
    seconds: Seconds | None = None
    cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """In the unit of the prices given."""


class Bundle(Section):
    """The three sections together."""

    failure: Failure = Field(default_factory=Failure)
    acceptance: Acceptance = Field(default_factory=Acceptance)
    stop: Stop = Field(default_factory=Stop)


def read(tables: Mapping[str, object]) -> Bundle:
    """Read the sections out of a parsed fixture.toml; its other tables are not looked at.

    Raises:
        BadInput: each fault, with the table it stands in.
    """
    mine = {name: tables[name] for name in Bundle.model_fields if name in tables}
    try:
        return Bundle.model_validate(mine)
    except ValidationError as error:
        raise BadInput("\n".join(explained(error, mine)), hint="docs/acceptance.md shows one of each kind") from None


def explained(error: ValidationError, tables: Mapping[str, object] | None = None) -> Iterator[str]:
    """Each fault on a line: where, by the check's own name, and what. No value is repeated: it may be a credential."""
    for fault in error.errors(include_url=False, include_input=False):
        where: list[str] = []
        at: object = tables
        for step in fault["loc"]:
            if isinstance(step, int):
                at = at[step] if isinstance(at, (list, tuple)) and step < len(at) else None
                name = at.get("name") if isinstance(at, Mapping) else None
                where[-1:] = [
                    f"{where[-1] if where else ''}[{name!r}]" if isinstance(name, str) else f"{where[-1] if where else ''}[{step}]"
                ]
            elif isinstance(at, Mapping) and step not in at and step in KINDS:
                continue  # the discriminator, which pydantic names as if it were a key
            else:
                at = at.get(step) if isinstance(at, Mapping) else None
                where.append(step)
        message = fault["msg"].removeprefix("Value error, ")
        yield f"{'.'.join(where) or 'fixture.toml'}: {message[:1].lower()}{message[1:]}"


KINDS = (
    "command", "tests", "output", "lint", "diff", "only-changed", "untouched", "no-commands", "file", "within", "no-secrets",
    "no-lockfile-drift",
)  # fmt: skip


def referenced(*sections: Failure | Acceptance) -> tuple[str, ...]:
    """The files of the fixture's folder that checks compare with; they belong into its digest."""
    names = [section.known_good for section in sections if isinstance(section, Acceptance) and section.known_good is not None]
    for section in sections:
        for check in section.check:
            match check:
                case OutputCheck(equals_file=str(name)) | DiffCheck(patch_file=str(name)):
                    names.append(name)
                case _:
                    pass
    return tuple(dict.fromkeys(names))


def _unique(checks: tuple[AnyCheck, ...]) -> None:
    names = [check.name for check in checks]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two checks are named {twice[0]!r}")


def _exactly_one(check: Check, *names: str) -> None:
    given = [name for name in names if getattr(check, name) is not None]
    if len(given) != 1:
        raise ValueError(f"needs exactly one of {', '.join(f'`{name}`' for name in names)}; it has {len(given)}")
