"""Judging a take: each assertion of the failure and of the acceptance, with its outcome and its evidence.

In the order they stand, the failure's first. Two checks in a row with the same command share its run. A check that cannot be judged (no
such command, no end in time, results that differ from run to run) is neither held nor not, and a take with such a check cannot pass.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

from secondtake.cassettes import testreports
from secondtake.cassettes.errors import BadInput, RecordedError, TooLarge
from secondtake.cassettes.misses import printable
from secondtake.cassettes.redact import Redactor
from secondtake.cassettes.secrets import known_in_environment
from secondtake.cassettes.signatures import error_line, first_failing, named_test, scrub
from secondtake.cassettes.takes import Checked, Section
from secondtake.cassettes.testcases import Report, State
from secondtake.harness.acceptance import changed, commands
from secondtake.harness.acceptance.commands import Ended, unjudged
from secondtake.harness.acceptance.patterns import search
from secondtake.harness.acceptance.scene import Said
from secondtake.harness.acceptance.schema import (
    AnyCheck,
    CommandCheck,
    DiffCheck,
    FileCheck,
    LintCheck,
    NoCommandsCheck,
    NoLockfileDriftCheck,
    NoSecretsCheck,
    OnlyChangedCheck,
    OutputCheck,
    Runs,
    SuiteCheck,
    UntouchedCheck,
    WithinCheck,
)

if TYPE_CHECKING:
    from secondtake.harness.acceptance.scene import Scene
    from secondtake.harness.acceptance.schema import Acceptance, Failure

EVIDENCE_CHARACTERS = 400


_OF_TREES = (DiffCheck, OnlyChangedCheck, UntouchedCheck, FileCheck, NoSecretsCheck, NoLockfileDriftCheck)


@dataclass(frozen=True, slots=True)
class Judged:
    """One check with all that was found; `checked` is what a take keeps."""

    checked: Checked
    said: Said


async def judge(failure: Failure, acceptance: Acceptance, scene: Scene) -> tuple[Checked, ...]:
    """Judge a take. The trees of `scene` must have been taken before this: commands may change the workspace."""
    return tuple(one.checked for one in await judge_fully(failure, acceptance, scene))


async def judge_fully(failure: Failure, acceptance: Acceptance, scene: Scene, *, is_floor: bool = False) -> tuple[Judged, ...]:
    """As `judge`, with what the noise floor needs to know beside it. `is_floor`: this tree is what others are measured against."""
    judging = _Judging(scene, is_floor=is_floor)
    made: list[Judged] = []
    both: tuple[tuple[Section, tuple[AnyCheck, ...]], ...] = (("failure", failure.check), ("acceptance", acceptance.check))
    for section, checks in both:
        for check in checks:
            began_s = scene.monotonic_s()
            said = await judging.one(check)
            took_us = max(0, round((scene.monotonic_s() - began_s) * 1_000_000))
            evidence = printable(judging.redactor.text(said.evidence), EVIDENCE_CHARACTERS)
            first = printable(judging.redactor.text(said.first), EVIDENCE_CHARACTERS)
            made.append(Judged(Checked(check.name, check.kind, section, said.held, evidence, took_us, said.exit_class, first), said))
    return tuple(made)


class _Judging:
    """The checks of one take, one after the other."""

    def __init__(self, scene: Scene, *, is_floor: bool) -> None:
        self._scene = scene
        self._is_floor = is_floor
        self.redactor = scene.redactor or Redactor(known_in_environment(scene.environ), key=secrets.token_bytes(32))
        self._last: tuple[object, list[Ended]] | None = None
        self._at = 0

    async def one(self, check: AnyCheck) -> Said:
        """Judge one check; what goes wrong in it is its own."""
        try:
            return await self._one(check)
        except (RecordedError, OSError) as error:
            return Said(None, f"it could not be judged: {error}")

    async def _one(self, check: AnyCheck) -> Said:
        if self._scene.unseen and isinstance(check, _OF_TREES):
            return Said(None, self._scene.unseen)
        match check:
            case CommandCheck():
                return await self._repeated(check, lambda: self._command(check))
            case SuiteCheck():
                return await self._repeated(check, lambda: self._suite(check))
            case OutputCheck():
                return await self._repeated(check, lambda: self._output(check))
            case LintCheck():
                return await self._repeated(check, lambda: self._lint(check))
            case DiffCheck():
                return changed.diff(check, self._scene)
            case OnlyChangedCheck():
                return changed.only_changed(check, self._scene)
            case UntouchedCheck():
                return changed.untouched(check, self._scene)
            case NoCommandsCheck():
                return await changed.no_commands(check, self._scene)
            case FileCheck():
                return await changed.file(check, self._scene)
            case WithinCheck():
                return changed.within(check, self._scene)
            case NoSecretsCheck():
                return changed.no_secrets(self._scene, self.redactor.needles)
            case NoLockfileDriftCheck():
                return changed.no_lockfile_drift(check, self._scene)
            case _:
                assert_never(check)

    # ---- commands ----

    async def _repeated(self, check: Runs, once: Callable[[], Awaitable[Said]]) -> Said:
        """All runs must agree. What could not be judged once is not tried again."""
        self._at = 0
        said = [await once()]
        while len(said) < check.repeat and said[-1].held is not None:
            said.append(await once())
        if said[-1].held is None or len({one.held for one in said}) == 1:
            passing = [one.passing for one in said if one.passing is not None]
            findings = [one.findings for one in said if one.findings is not None]
            return replace(
                said[-1],
                passing=frozenset.intersection(*passing) if passing else None,
                findings=max(findings) if findings else None,
            )
        held = sum(one.held is True for one in said)
        differing = next(one for one in said if one.held is False)
        return replace(differing, held=None, evidence=f"flaky: {held} of {len(said)}; {differing.evidence}")

    async def _ran(self, check: Runs, *, stdout_only: bool = False, writes: str | None = None) -> Ended:
        """The next run of a check's command: one that the check before had already, or a new one."""
        key = (check.run, check.cwd, tuple(check.env.items()), check.timeout_s, stdout_only, writes)
        if writes is not None or self._last is None or self._last[0] != key:
            self._last = (key, [])
            self._at = 0
        runs = self._last[1]
        if self._at >= len(runs):
            runs.append(await commands.run(self._scene, check, stdout_only=stdout_only))
        self._at += 1
        return runs[self._at - 1]

    async def _command(self, check: CommandCheck) -> Said:
        named = () if isinstance(check.exit, str) else (check.exit,) if isinstance(check.exit, int) else check.exit
        ended = await self._ran(check)
        why = unjudged(ended, named)
        if why is not None:
            return Said(None, why, ended.exit_class, self._first(ended))
        match check.exit:
            case "zero":
                held = ended.status == 0
            case "nonzero":
                held = ended.status != 0
            case _:
                held = ended.status in named
        first = "" if held else self._first(ended)
        return Said(held, f"exit {ended.status}" + (f": {first}" if first else ""), ended.exit_class, first)

    def _first(self, ended: Ended) -> str:
        """The first failing test where the output is a test report, else the first line that names an error."""
        return first_failing(ended.output, failed=ended.status != 0, root=self._root, roots=self._scene.roots)

    @property
    def _root(self) -> str:
        return self._scene.inside or str(self._scene.workspace)

    # ---- tests by identity ----

    async def _suite(self, check: SuiteCheck) -> Said:
        if check.report is not None:
            stays = commands.removed(self._scene.workspace, check.report)
            if stays is not None:
                return Said(None, stays)
        ended = await self._ran(check, writes=check.report)
        why = unjudged(ended)
        if why is not None:
            return Said(None, why, ended.exit_class, self._first(ended))
        if check.report is None and ended.cut:
            return Said(None, f"it printed more than {commands.OUTPUT_BYTES} bytes", ended.exit_class)
        try:
            report = self._report(check, ended)
        except (BadInput, TooLarge) as error:
            return Said(None if ended.status == 0 else False, f"exit {ended.status}: {error}", ended.exit_class, self._first(ended))
        return self._of_tests(check, ended, report)

    def _report(self, check: SuiteCheck, ended: Ended) -> Report:
        if check.report is None:
            return testreports.parse(ended.output, check.format, root=self._root)
        reports = []
        for path in commands.found(self._scene.workspace, check.report):
            content = commands.read(path, testreports.REPORT_BYTES)
            if content is None:
                raise TooLarge(f"{path.name} is too long to be read")
            reports.append(testreports.parse(content, check.format, root=self._root))
        if not reports:
            raise BadInput(f"the command wrote no {check.report}")
        return testreports.joined(reports)

    def _of_tests(self, check: SuiteCheck, ended: Ended, report: Report) -> Said:
        passing = frozenset(test.id for test in report.tests if test.state is State.PASSED)
        wrong: list[tuple[str, str]] = []  # the test, and what is wrong with it
        unknown: list[str] = []
        for name, red in [*((name, False) for name in check.passing), *((name, True) for name in check.failing)]:
            found = report.find(name)
            if found.ambiguous:
                unknown.append(f"{name} names {len(found.tests)} tests: {found.tests[0].id}, {found.tests[1].id}")
            elif not found.tests:
                missing = f"{name} is not in the report"
                if report.complete:
                    wrong.append((name, missing))
                else:
                    unknown.append(f"{missing}, which does not list all tests (pytest: `-rA`)")
            elif red and not any(test.state.red for test in found.tests):
                wrong.append((found.tests[0].id, f"{found.tests[0].id} {found.tests[0].state}"))
            elif not red and (bad := next((test for test in found.tests if test.state is not State.PASSED), None)) is not None:
                wrong.append((bad.id, f"{bad.id} {bad.state}"))
        if check.others == "unbroken":
            broken, cannot = self._broken(check, report, passing)
            wrong += broken
            unknown += cannot
        counts = ", ".join(f"{number} {state}" for state in State if (number := report.counted(state)))
        told = f"exit {ended.status}; {counts or 'no test'}"
        if wrong:
            order = {test.id: index for index, test in enumerate(report.tests)}
            wrong.sort(key=lambda one: order.get(one[0], len(order)))  # what failed first stands first, what is missing last
            more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
            first = named_test(wrong[0][0], roots=self._scene.roots)
            return Said(False, f"{wrong[0][1]}{more}; {told}", ended.exit_class, first, passing=passing)
        if unknown:
            return Said(None, f"{unknown[0]}; {told}", ended.exit_class, passing=passing)
        return Said(True, told, ended.exit_class, passing=passing)

    def _broken(self, check: SuiteCheck, report: Report, passing: frozenset[str]) -> tuple[list[tuple[str, str]], list[str]]:
        """The tests that pass on the untouched tree and do not here; and why that cannot be said."""
        floor = self._scene.floor
        before = passing if self._is_floor else None if floor is None else floor.passing.get(check.name)
        if before is None:
            return [], ["which tests passed before is not known: there is no noise floor"]
        expected = {test.id for name in check.failing for test in report.find(name).tests}
        lost = before - passing - expected
        states = {test.id: test.state for test in report.tests}
        broken = [(name, f"{name} passed before, and now {states.get(name) or 'is missing'}") for name in sorted(lost)]
        if not report.complete:
            gone = [name for name in sorted(lost) if name not in states]
            broken = [one for one in broken if one[0] in states]
            return broken, [f"{gone[0]} is not in the report, which does not list all tests (pytest: `-rA`)"] if gone else []
        return broken, []

    # ---- output, lint ----

    async def _output(self, check: OutputCheck) -> Said:
        if check.file is not None:
            stays = commands.removed(self._scene.workspace, check.file)
            if stays is not None:
                return Said(None, stays)
        ended = await self._ran(check, stdout_only=True, writes=check.file)
        why = unjudged(ended)
        if why is not None:
            return Said(None, why, ended.exit_class)
        if ended.status != 0:
            return Said(False, f"exit {ended.status}", ended.exit_class, error_line(ended.text, roots=self._scene.roots))
        content, what = ended.output, "its output"
        if check.file is not None:
            what = check.file
            paths = commands.found(self._scene.workspace, check.file)
            data = commands.read(paths[0], commands.OUTPUT_BYTES) if paths else None
            if data is None:
                return Said(False, f"it wrote no {check.file}", ended.exit_class, "no output file")
            content = data
        elif ended.cut:
            return Said(None, f"it printed more than {commands.OUTPUT_BYTES} bytes", ended.exit_class)
        same, unlike = await self._compared(check, content)
        held = same is (check.expect == "same")
        told = f"exit 0, and {what} is {'as given' if same else f'different: {unlike}'}"
        return Said(held, told, ended.exit_class, "" if held else f"output {'as given' if same else f'differs: {unlike}'}")

    async def _compared(self, check: OutputCheck, content: bytes) -> tuple[bool, str]:
        """Whether it is the same, and, scrubbed, the first line that is not."""
        if check.sha256 is not None:
            found = hashlib.sha256(content).hexdigest()
            return found == check.sha256, "its SHA-256"
        text = content.decode("utf-8", "replace")
        if check.matches is not None:
            (hit,) = await search([check.matches], [text])
            return hit is not None, "it does not match"
        wanted = check.equals if check.equals_file is None else changed.fixture_text(self._scene, check.equals_file)
        if changed.alike(text, wanted or "", check.whitespace):
            return True, ""
        have, want = text.split("\n"), (wanted or "").split("\n")
        at = next((i for i, (a, b) in enumerate(zip(have, want, strict=False)) if a != b), min(len(have), len(want)))
        return False, f"line {at + 1}, {scrub(have[at], roots=self._scene.roots) if at < len(have) else 'missing'}"

    async def _lint(self, check: LintCheck) -> Said:
        ended = await self._ran(check)
        why = unjudged(ended)
        if why is not None:
            return Said(None, why, ended.exit_class, self._first(ended))
        if check.finding is None:
            first = "" if ended.status == 0 else self._first(ended)
            return Said(ended.status == 0, f"exit {ended.status}" + (f": {first}" if first else ""), ended.exit_class, first)
        lines = ended.text.split("\n")
        hits = [line for line, hit in zip(lines, await search([check.finding], lines), strict=True) if hit is not None]
        floor = self._scene.floor
        before = len(hits) if self._is_floor else None if floor is None else floor.findings.get(check.name)
        most = before if check.at_most == "floor" else check.at_most
        number = f"{len(hits)} finding{'' if len(hits) == 1 else 's'}"
        if most is None:
            return Said(None, f"{number}; how many there were before is not known", ended.exit_class, findings=len(hits))
        first = scrub(hits[0], roots=self._scene.roots) if len(hits) > most else ""
        told = f"{number}, at most {most}" + (f": {first}" if first else "")
        return Said(len(hits) <= most, told, ended.exit_class, first, findings=len(hits))
