"""The demo's failing repository: a bill splitter that loses cents, and the tests that say so. Written by code, the same each time."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

FIXED_DATE = "2026-01-01T12:00:00+00:00"

SPLIT = '''\
"""Split a bill among friends."""


def split(total_cents: int, people: int) -> list[int]:
    """What each person pays, in cents."""
    share = total_cents // people
    return [share] * people
'''

SPLIT_ROUNDED_UP = '''\
"""Split a bill among friends."""


def split(total_cents: int, people: int) -> list[int]:
    """What each person pays, in cents."""
    share = -(-total_cents // people)
    return [share] * people
'''

SPLIT_FIXED = '''\
"""Split a bill among friends."""


def split(total_cents: int, people: int) -> list[int]:
    """What each person pays, in cents; the first ones pay the cents that are left over."""
    share, left = divmod(total_cents, people)
    return [share + 1] * left + [share] * (people - left)
'''

TESTS = """\
import unittest

from bill.split import split


class SplitTest(unittest.TestCase):
    def test_an_even_bill(self):
        self.assertEqual(split(900, 3), [300, 300, 300])

    def test_nothing_is_lost(self):
        self.assertEqual(sum(split(1000, 3)), 1000)

    def test_nobody_pays_a_cent_too_much(self):
        shares = split(1001, 4)
        self.assertLessEqual(max(shares) - min(shares), 1)
        self.assertEqual(sum(shares), 1001)


if __name__ == "__main__":
    unittest.main()
"""

CHECK = '''\
"""Run the tests and print one line for each, without times or paths: the same state prints the same text."""

import sys
import unittest

sys.dont_write_bytecode = True


class Lines(unittest.TestResult):
    def addSuccess(self, test):
        print("ok  ", test.id().rpartition(".")[2])

    def addFailure(self, test, error):
        super().addFailure(test, error)
        print("FAIL", test.id().rpartition(".")[2] + ":", error[1])

    def addError(self, test, error):
        super().addError(test, error)
        print("FAIL", test.id().rpartition(".")[2] + ":", repr(error[1]))


result = unittest.defaultTestLoader.discover("tests", top_level_dir=".").run(Lines())
sys.exit(0 if result and result.wasSuccessful() else 1)
'''

README = """\
# bill

Splits a bill among friends. `python3 check.py` runs the tests.
"""

FILES = {
    "README.md": README,
    "bill/__init__.py": "",
    "bill/split.py": SPLIT,
    "check.py": CHECK,
    "tests/__init__.py": "",
    "tests/test_split.py": TESTS,
}


def prepare(directory: Path) -> Path:
    """Write the failing repository into `directory`, which may exist if it is empty, and return it.

    Where git is there, it becomes a repository of one commit with a fixed author and date.

    Raises:
        FileExistsError: there is something in `directory`.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise FileExistsError(f"not empty: {directory}")
    for name, text in FILES.items():
        file = directory / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
        file.chmod(0o644)
    if git := shutil.which("git"):
        # No configuration but this: hooks, signing or a default branch of the user's would make another commit.
        environment = {
            "PATH": str(Path(git).parent),
            "HOME": str(directory),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_AUTHOR_NAME": "demo",
            "GIT_AUTHOR_EMAIL": "demo@example.invalid",
            "GIT_AUTHOR_DATE": FIXED_DATE,
            "GIT_COMMITTER_NAME": "demo",
            "GIT_COMMITTER_EMAIL": "demo@example.invalid",
            "GIT_COMMITTER_DATE": FIXED_DATE,
        }
        for command in (
            ["init", "--quiet", "--template=", "--initial-branch=main"],
            ["add", "."],
            ["commit", "--quiet", "--message=A bill splitter"],
        ):
            subprocess.run([git, "-C", str(directory), *command], env=environment, check=True, stdin=subprocess.DEVNULL)
    return directory
