"""Exit codes."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from secondtake.cassettes import errors
from secondtake.cli.exits import MEANINGS, Exit, Unusable, code_for, exit_of
from secondtake.harness.results import SealBroken, Verdict, WouldAct

PAGE = Path(__file__).parents[2] / "docs" / "exit-codes.md"


def test_the_page_holds_the_same_table() -> None:
    """DESIGN 7: one documented table."""
    rows = dict(re.findall(r"^\| (\d+) \| (.+?) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert rows == {str(int(code)): meaning for code, meaning in MEANINGS.items()}
    assert set(MEANINGS) == set(Exit)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.NotFound("x"), 104),
        (errors.NameTaken("x"), 104),
        (errors.Locked("x"), 104),
        (errors.Corrupt("x"), 104),
        (errors.TooNew("x"), 104),
        (errors.TooLarge("x"), 104),
        (errors.NotStored("x", reason="ENOSPC"), 104),
        (errors.BadInput("x"), 64),
        (Unusable("x"), 64),
        (WouldAct("x"), 105),
        (SealBroken("x"), 106),
        (click.UsageError("x"), 64),
        (click.BadParameter("x"), 64),
        (PermissionError(13, "Permission denied", "x"), 104),
        (KeyboardInterrupt(), 130),
        (ValueError("x"), 70),
    ],
)
def test_each_error_has_its_code(error: BaseException, code: int) -> None:
    """DESIGN 7: usage 64, internal 70, store 104, original workspace 105."""
    assert code_for(error) == code


def test_every_error_of_the_store_has_a_code_of_its_own_choosing() -> None:
    """No error of `cassettes` is ever an internal fault."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.RecordedError)]
    for kind in kinds:
        error = kind("x", reason="EIO") if kind is errors.NotStored else kind("x")
        assert code_for(error) is not Exit.INTERNAL


@pytest.mark.parametrize(
    ("verdict", "status", "code"),
    [
        (Verdict.CLEAN, 7, 7),
        (Verdict.CLEAN, None, 0),
        (Verdict.DIVERGED, 0, 103),
        (Verdict.STORE, 1, 104),
        (Verdict.FAULT, 0, 70),
    ],
)
def test_a_clean_run_exits_as_its_agent_did(verdict: Verdict, status: int | None, code: int) -> None:
    """DESIGN 7: the agent's own status when clean, otherwise ours."""
    assert exit_of(verdict, status) == code
