"""Tests as values: which test, how it ended, and what two names of one test have in common.

Every test program writes a name of its own form for one and the same test (`tests/test_a.py::TestC::test_m`, `tests.test_a.TestC::test_m`).
A name is therefore compared word by word, from its end: a person may leave out its beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from secondtake.cassettes.digest import digest_of

ID_CHARACTERS = 500
"""A longer name is cut, and ends in a digest of the whole."""

TESTS = 200_000
"""Tests read from one report."""


class State(StrEnum):
    """How a test ended. A test that is expected to fail, and does, was skipped: it says nothing."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    """It, or what it needs, broke before it could pass or fail."""
    SKIPPED = "skipped"

    @property
    def red(self) -> bool:
        """Failed or broken."""
        return self in (State.FAILED, State.ERROR)


@dataclass(frozen=True, slots=True)
class Test:
    """One test of a report."""

    __test__ = False  # no test of ours, whatever pytest thinks of the name
    id: str
    state: State


@dataclass(frozen=True, slots=True)
class Report:
    """What one run said of its tests, in its order, each test once: of several results of one test the worst."""

    form: str
    """`junit`, `pytest`, `tap`, `go`, `cargo`, `jest`, `node`."""
    tests: tuple[Test, ...]
    complete: bool = True
    """Every test that ran is listed. Many programs name only what failed."""
    _by_word: Mapping[str, tuple[Test, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found: dict[str, list[Test]] = {}
        for test in self.tests:
            found.setdefault(_bare(words(test.id)[-1]), []).append(test)
        object.__setattr__(self, "_by_word", {word: tuple(tests) for word, tests in found.items()})

    def counted(self, state: State) -> int:
        """How many ended so."""
        return sum(test.state is state for test in self.tests)

    def find(self, wanted: str) -> Found:
        """The test that `wanted` names: literally, or by its last words. A name without parameters means all of that test's."""
        asked = words(wanted)
        near = self._by_word.get(_bare(asked[-1]), ())
        for alike in (lambda test: test.id == wanted, lambda test: _ends(words(test.id), asked)):
            hits = tuple(test for test in near if alike(test))
            if hits:
                return Found(hits, len(hits) > 1)
        if asked[-1] != _bare(asked[-1]):
            return Found((), False)
        family = tuple(test for test in near if _ends((*words(test.id)[:-1], _bare(words(test.id)[-1])), asked))
        return Found(family, len({(*words(test.id)[:-1], _bare(words(test.id)[-1])) for test in family}) > 1)


@dataclass(frozen=True, slots=True)
class Found:
    """What a name stands for in a report. `ambiguous`: for more than one test."""

    tests: tuple[Test, ...]
    ambiguous: bool


_SPLIT = re.compile(r"\.py(?=::)|::|/|\\|\.| > | › ")


def words(name: str) -> tuple[str, ...]:
    """The words of a test's name, outermost first; parameters in brackets stay with the last. At least one, which may be empty."""
    head, bracket, parameters = name.partition("[")
    parts = [part.strip() for part in _SPLIT.split(head)]
    found = [part for part in parts if part] or [""]
    if bracket:
        found[-1] += bracket + parameters
    return tuple(found)


def _bare(word: str) -> str:
    return word.partition("[")[0]


def _ends(words_of: tuple[str, ...], with_: tuple[str, ...]) -> bool:
    return words_of[-len(with_) :] == with_


_WORST = (State.SKIPPED, State.PASSED, State.FAILED, State.ERROR)


def report(form: str, tests: Iterable[tuple[str, State]], *, complete: bool = True) -> Report:
    """A report of `tests`, each name once: two results of one name become the worse of them."""
    found: dict[str, State] = {}
    for name, state in tests:
        short = shortened(name)
        if short not in found and len(found) >= TESTS:
            complete = False
            continue
        before = found.get(short)
        found[short] = state if before is None or _WORST.index(state) > _WORST.index(before) else before
    return Report(form, tuple(Test(name, state) for name, state in found.items()), complete)


def shortened(name: str) -> str:
    """A name as it is kept: one line, bounded, without control characters."""
    line = "".join(character if character.isprintable() else " " for character in name).strip()
    if len(line) <= ID_CHARACTERS:
        return line
    return f"{line[: ID_CHARACTERS - 14]}…{digest_of(line.encode())[:12]}"
