"""Each kind of assertion that runs a command: when it holds, when not, and when that cannot be said."""

from __future__ import annotations

from pathlib import Path

import pytest

from secondtake.harness.acceptance.scene import Floor
from tests.harness.acceptance.scenes import ENVIRON, PYTHON, bundle, judged, one, prints, said, scene

RA = """\
=========================== short test summary info ============================
PASSED tests/test_a.py::test_ok
PASSED tests/test_a.py::test_p[1]
PASSED tests/test_a.py::test_p[2]
FAILED tests/test_a.py::test_bad - AssertionError: no
========================= 1 failed, 3 passed in 0.12s ==========================
"""
GREEN = RA.replace("FAILED tests/test_a.py::test_bad - AssertionError: no\n", "PASSED tests/test_a.py::test_bad\n").replace(
    "1 failed, 3 passed", "4 passed"
)
COUNTING = """\
import pathlib
path = pathlib.Path("runs")
number = int(path.read_text()) + 1 if path.exists() else 1
path.write_text(str(number))
raise SystemExit(0 if number % 3 else 1)
"""


@pytest.mark.parametrize(
    ("wanted", "status", "held"),
    [
        ("zero", 0, True),
        ("zero", 1, False),
        ("nonzero", 1, True),
        ("nonzero", 0, False),
        (3, 3, True),
        (3, 1, False),
        ([0, 5], 5, True),
        ([127], 127, True),
    ],
)
def test_a_command_is_judged_by_its_exit_code(tmp_path: Path, wanted: object, status: int, held: bool) -> None:
    """Issue 6.1: a test command that is green or red; a custom command by its exit code."""
    checked = one(scene(tmp_path, {}), "command", run=prints("", status), exit=wanted)
    assert (checked.held, checked.exit_class, checked.evidence) == (held, str(status), f"exit {status}")


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (["no-such-tool-of-anybodys"], "no such command on PATH"),
        (["/bin/sh", "-c", "no-such-tool-of-anybodys"], "could not be started (exit 127)"),
        (["/bin/sh", "-c", "exit 125"], "it says that it cannot judge (exit 125)"),
        (["/bin/sh", "-c", "kill -9 $$"], "SIGKILL"),
    ],
)
def test_what_could_not_run_is_neither_red_nor_green(tmp_path: Path, run: list[str], why: str) -> None:
    """A missing tool must not count as the red test of the incident."""
    for wanted in ("zero", "nonzero"):
        held, evidence = said(scene(tmp_path / wanted, {}), "command", run=run, exit=wanted)
        assert held is None
        assert why in evidence


def test_a_command_that_does_not_end_is_ended_and_not_judged(tmp_path: Path) -> None:
    """Its whole tree goes with it, and the signature says so."""
    at = scene(tmp_path, {})
    checked = one(at, "command", run=["/bin/sh", "-c", "sleep 100 & echo $! >pid; wait"], timeout_s=0.5)
    assert (checked.held, checked.evidence, checked.exit_class) == (None, "it did not end in time", "timed out")
    assert not Path("/proc", (at.workspace / "pid").read_text().strip()).exists()


def test_runs_that_differ_are_flaky_and_not_judged(tmp_path: Path) -> None:
    """Issue 6.1: with `repeat`, all must agree."""
    at = scene(tmp_path, {"count.py": COUNTING})
    held, evidence = said(at, "command", run=[PYTHON, "-I", "count.py"], repeat=3)
    assert (held, evidence) == (None, "flaky: 2 of 3; exit 1")
    assert (at.workspace / "runs").read_text() == "3"


def test_two_checks_in_a_row_with_one_command_share_its_run(tmp_path: Path) -> None:
    """The failure's red test and the acceptance's green one are one run of the suite."""
    at = scene(tmp_path, {"count.py": COUNTING})
    run = [PYTHON, "-I", "count.py"]
    made = bundle("command", run=run).model_copy(update={"failure": bundle("command", section="failure", run=run, exit="nonzero").failure})
    assert [(checked.section, checked.held) for checked in judged(at, made)] == [("failure", False), ("acceptance", True)]
    assert (at.workspace / "runs").read_text() == "1"


def test_a_command_finds_its_place_and_no_credential(tmp_path: Path) -> None:
    """The environment says where the workspace is and which take it is; keys of the agent's are not in it."""
    secret = "sk-ant-api03-" + "a1B2" * 12
    at = scene(
        tmp_path,
        {"sub/x": ""},
        take="red-1",
        environ=ENVIRON | {"MY_TOKEN": "opaque-value-1234", "PLAIN": secret, "CARGO_HOME": "/c", "SECONDTAKE_PROXY": "p"},
    )
    code = "import os, json; print(json.dumps([dict(os.environ), os.getcwd()]))"
    checked = one(at, "output", run=[PYTHON, "-I", "-c", code], cwd="sub", env={"EXTRA": "1"}, matches="nothing of the kind")
    assert checked.held is False
    code = (
        "import os, sys; e = os.environ; "
        "sys.exit(not (e['SECONDTAKE_WORKSPACE'] == os.path.dirname(os.getcwd()) and e['SECONDTAKE_TAKE'] == 'red-1' and e['EXTRA'] == '1'"
        " and e['CARGO_HOME'] == '/c' and not {'MY_TOKEN', 'PLAIN', 'SECONDTAKE_PROXY'} & set(e)))"
    )
    assert said(at, "command", run=[PYTHON, "-I", "-c", code], cwd="sub", env={"EXTRA": "1"}) == (True, "exit 0")


def test_a_command_stands_behind_the_seals_prefix(tmp_path: Path) -> None:
    """The caller's seal holds for checks too; a folder below the workspace is entered inside of it."""
    at = scene(tmp_path, {"sub/x": ""}, prefix=("/usr/bin/env", "SEALED=1"))
    run = ["/bin/sh", "-c", 'test "$SEALED" = 1 && test -f x']
    assert said(at, "command", run=run, cwd="sub") == (True, "exit 0")
    assert said(scene(tmp_path / "b", {"sub": "-> /tmp"}), "command", run=run, cwd="sub")[0] is None


def test_evidence_is_short_on_one_line_and_without_secrets(tmp_path: Path) -> None:
    """What an agent made a program print ends in reports."""
    secret = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3gH6"
    text = f"\x1b[31mError: {secret} \u202e{'x' * 3000}\x1b[0m\n"
    checked = one(scene(tmp_path, {}), "command", run=prints(text, 1))
    assert checked.held is False
    assert secret not in checked.evidence + checked.first
    assert "\x1b" not in checked.evidence
    assert "\u202e" not in checked.evidence
    assert len(checked.evidence) <= 400


class TestTests:
    """Tests by identity."""

    def test_named_tests_pass_or_fail(self, tmp_path: Path) -> None:
        """Issue 6.1: these must pass, these must fail, whatever the exit code is."""
        run = prints(RA, 1)
        at = scene(tmp_path, {})
        assert said(at, "tests", run=run, passing=["test_ok"], failing=["tests/test_a.py::test_bad"]) == (
            True,
            "exit 1; 3 passed, 1 failed",
        )
        checked = one(at, "tests", run=run, passing=["tests/test_a.py::test_bad", "test_ok"])
        assert (checked.held, checked.exit_class, checked.first) == (False, "1", "tests/test_a.py::test_bad")
        assert said(at, "tests", run=run, failing=["test_ok"])[0] is False

    def test_a_name_without_parameters_means_all_of_them(self, tmp_path: Path) -> None:
        """As pytest has it."""
        run = prints(
            RA.replace("PASSED tests/test_a.py::test_p[2]", "FAILED tests/test_a.py::test_p[2]").replace("1 failed, 3", "2 failed, 2")
        )
        checked = one(scene(tmp_path, {}), "tests", run=run, passing=["test_p"])
        assert (checked.held, checked.first) == (False, "tests/test_a.py::test_p[2]")

    def test_a_missing_test_did_not_pass(self, tmp_path: Path) -> None:
        """An agent that deletes the red test has not made it green; where the report names only failures, that cannot be said."""
        at = scene(tmp_path, {})
        assert said(at, "tests", run=prints(GREEN), passing=["test_gone"])[0] is False
        quiet = "FAILED tests/test_a.py::test_bad - no\n1 failed, 3 passed in 0.12s\n"
        quiet = "=== short test summary info ===\n" + quiet
        held, evidence = said(at, "tests", run=prints(quiet, 1), passing=["test_ok"])
        assert held is None
        assert "`-rA`" in evidence

    def test_an_ambiguous_name_is_not_guessed(self, tmp_path: Path) -> None:
        """Two tests of one name in two files."""
        text = GREEN.replace("PASSED tests/test_a.py::test_p[1]", "PASSED tests/test_b.py::test_ok")
        held, evidence = said(scene(tmp_path, {}), "tests", run=prints(text), passing=["test_ok"])
        assert held is None
        assert "names 2 tests" in evidence

    def test_no_other_test_broke_is_judged_against_the_floor(self, tmp_path: Path) -> None:
        """What was red before may be red; what was green and is red, or gone, broke."""
        before = frozenset({"tests/test_a.py::test_ok", "tests/test_a.py::test_p[1]", "tests/test_a.py::test_p[2]"})
        at = scene(tmp_path, {}, floor=Floor((), passing={"it": before}))
        assert said(at, "tests", run=prints(RA, 1), others="unbroken")[0] is True
        broken = RA.replace("PASSED tests/test_a.py::test_p[1]", "ERROR tests/test_a.py::test_p[1] - x")
        checked = one(at, "tests", run=prints(broken, 1), others="unbroken")
        assert (checked.held, checked.first) == (False, "tests/test_a.py::test_p[1]")
        quiet = RA.replace("PASSED tests/test_a.py::test_p[1]\n", "")
        assert said(at, "tests", run=prints(quiet, 1), others="unbroken")[0] is None  # 3 passed, 2 are listed: it may be the third
        text = RA.replace("PASSED tests/test_a.py::test_p[1]\n", "").replace("3 passed", "2 passed")
        checked = one(at, "tests", run=prints(text, 1), others="unbroken")
        assert (checked.held, checked.first) == (False, "tests/test_a.py::test_p[1]")
        assert "passed before, and now is missing" in checked.evidence
        held, evidence = said(scene(tmp_path / "b", {}), "tests", run=prints(RA, 1), others="unbroken")
        assert held is None
        assert "noise floor" in evidence

    def test_a_report_file_is_new_or_there_is_none(self, tmp_path: Path) -> None:
        """A file that an agent left in place of the report is deleted before the run."""
        xml = '<testsuite><testcase classname="a" name="t"/></testsuite>'
        at = scene(tmp_path, {"out/r.xml": xml})
        held, evidence = said(at, "tests", run=prints("", 0), report="out/*.xml", passing=["a::t"])
        assert (held, evidence) == (None, "exit 0: the command wrote no out/*.xml")
        write = [PYTHON, "-I", "-c", f"import pathlib; pathlib.Path('out/r.xml').write_text({xml!r})"]
        assert said(at, "tests", run=write, report="out/*.xml", passing=["a::t"]) == (True, "exit 0; 1 passed")
        assert said(at, "tests", run=write, report="out/r.xml", passing=["a::t"]) == (True, "exit 0; 1 passed")

    def test_a_link_is_no_report(self, tmp_path: Path) -> None:
        """A link an agent left could name any file of the person's."""
        xml = tmp_path / "outside.xml"
        xml.write_text('<testsuite><testcase classname="a" name="t"/></testsuite>')
        run = ["/bin/sh", "-c", f"ln -sf {xml} r.xml"]
        assert said(scene(tmp_path, {}), "tests", run=run, report="r.xml", passing=["a::t"])[0] is None
        assert xml.exists()

    def test_a_suite_that_cannot_be_read_is_red_only_if_it_failed(self, tmp_path: Path) -> None:
        """A suite that breaks on import failed; one that says nothing at all was not judged."""
        at = scene(tmp_path, {})
        checked = one(at, "tests", run=prints("SyntaxError: invalid syntax\n", 2), passing=["t"])
        assert (checked.held, checked.exit_class, checked.first) == (False, "2", "SyntaxError: invalid syntax")
        assert said(at, "tests", run=prints("", 0), passing=["t"])[0] is None


class TestOutput:
    """A build that is ok, and what it makes."""

    def test_a_build_that_is_ok_but_whose_output_differs(self, tmp_path: Path) -> None:
        """Issue 6.1: it is a condition of a failure, and the opposite of a success."""
        at = scene(tmp_path, {})
        checked = one(at, "output", run=prints("total 41\n"), equals="total 42")
        assert (checked.held, checked.exit_class, checked.first) == (False, "0", "output differs: line 1, total N")
        assert said(at, "output", run=prints("total 41\n"), equals="total 42", expect="different")[0] is True
        assert said(at, "output", run=prints("total 42 \r\n"), equals="total 42")[0] is True
        assert said(at, "output", run=prints("total 42 \n"), equals="total 42\n", whitespace="exact")[0] is False
        assert said(at, "output", run=prints("total\n 42"), equals="total 42", whitespace="any")[0] is True

    def test_a_build_that_breaks_is_never_as_asked(self, tmp_path: Path) -> None:
        """`different` means that it was built."""
        for expect in ("same", "different"):
            checked = one(scene(tmp_path / expect, {}), "output", run=prints("x", 2), equals="x", expect=expect)
            assert (checked.held, checked.evidence, checked.exit_class) == (False, "exit 2", "2")

    def test_it_may_be_a_file_a_digest_or_a_pattern(self, tmp_path: Path) -> None:
        """And the text may stand in the fixture's folder."""
        fixture = tmp_path / "fixture"
        fixture.mkdir()
        (fixture / "want.txt").write_text("abc\n")
        at = scene(tmp_path, {"out.txt": "abc\n"}, fixture=fixture)
        write = ["/bin/sh", "-c", "echo abc >out.txt"]
        assert said(at, "output", run=write, file="out.txt", equals_file="want.txt")[0] is True
        digest = "edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb"
        assert said(at, "output", run=write, file="out.txt", sha256=digest)[0] is True
        assert said(at, "output", run=prints("abc\n"), sha256=digest)[0] is True
        assert said(at, "output", run=prints("a\nb 3\n"), matches=r"^b \d$")[0] is True
        assert said(at, "output", run=prints("a"), equals_file="none.txt") == (
            None,
            "it could not be judged: none.txt is not in the fixture",
        )
        assert said(at, "output", run=prints("a"), file="out.txt", equals="abc")[1] == "it wrote no out.txt"

    def test_what_goes_to_standard_error_is_no_output(self, tmp_path: Path) -> None:
        """Warnings are not what was built."""
        assert said(scene(tmp_path, {}), "output", run=["/bin/sh", "-c", "echo a; echo b >&2"], equals="a")[0] is True


class TestLint:
    """Linters, by exit code or by the number of findings."""

    def test_findings_are_counted_against_the_floor(self, tmp_path: Path) -> None:
        """Issue 6.1: what was there before is not the model's."""
        run = prints("a.py:1: E501\nb.py:2: F401\nFound 2\n", 1)
        pattern = r"^\S+:\d+: "
        assert said(scene(tmp_path / "a", {}, floor=Floor((), findings={"it": 2})), "lint", run=run, finding=pattern)[0] is True
        checked = one(scene(tmp_path / "b", {}, floor=Floor((), findings={"it": 1})), "lint", run=run, finding=pattern)
        assert (checked.held, checked.evidence) == (False, "2 findings, at most 1: a.py:N: E501")
        assert said(scene(tmp_path / "c", {}), "lint", run=run, finding=pattern)[0] is None
        assert said(scene(tmp_path / "d", {}), "lint", run=run, finding=pattern, at_most=2)[0] is True

    def test_without_a_pattern_the_exit_code_says_it(self, tmp_path: Path) -> None:
        """Most linters end with 1."""
        at = scene(tmp_path, {})
        assert said(at, "lint", run=prints("", 0)) == (True, "exit 0")
        assert said(at, "lint", run=prints("a.py:3: error: bad\n", 1)) == (False, "exit 1: a.py:N: error: bad")


def test_all_checks_are_judged_the_failures_first(tmp_path: Path) -> None:
    """Each with its section, kind and time."""
    made = bundle("no-secrets").model_copy(update={"failure": bundle("no-lockfile-drift", section="failure").failure})
    times = iter([1.0, 1.5, 2.0, 2.25])
    found = judged(scene(tmp_path, {}, monotonic_s=lambda: next(times)), made)
    assert [(one.section, one.kind, one.took_us) for one in found] == [
        ("failure", "no-lockfile-drift", 500_000),
        ("acceptance", "no-secrets", 250_000),
    ]
