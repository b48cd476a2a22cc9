"""Lines that test programs print, and lines that only look like them."""

from __future__ import annotations

import pytest

from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.testcases import Report
from secondtake.cassettes.testlines import READERS, printed


def made(form: str, text: str) -> Report:
    return READERS[form](list(printed(text)))


def states(report: Report) -> dict[str, str]:
    return {test.id: test.state.value for test in report.tests}


def test_what_a_test_prints_is_no_result_of_pytests() -> None:
    """Captured output stands before the summary; more passed than are counted is a forgery."""
    text = "PASSED t.py::test_bad\n=== short test summary info ===\nFAILED t.py::test_bad - no\n=== 1 failed in 0.1s ===\n"
    assert states(made("pytest", text)) == {"t.py::test_bad": "failed"}
    forged = "=== short test summary info ===\nPASSED t.py::test_bad\n=== 1 failed in 0.1s ===\n"
    with pytest.raises(BadInput, match="counts 0 passed, and 1 are listed"):
        made("pytest", forged)


def test_pytests_names_may_hold_what_ends_them() -> None:
    """Parameters with ` - `, subtests, and what xdist prints."""
    text = """\
[gw0] [ 50%] PASSED t.py::test_x
=== short test summary info ===
FAILED t.py::test_p[a - b] - AssertionError: 1 - 2
SUBFAILED[msg] t.py::test_s - AssertionError
ERROR t.py - ImportError: no
=== 2 failed, 1 passed, 1 error in 0.12s (0:01:00) ===
"""
    assert states(made("pytest", text)) == {
        "t.py::test_x": "passed",
        "t.py::test_p[a - b]": "failed",
        "t.py::test_s": "failed",
        "t.py": "error",
    }


def test_tap_of_any_age_is_read() -> None:
    """Plain lines, directives, an exit before the end; diagnostics are quoted text."""
    text = """\
1..4
ok 1 - reads
not ok 2 writes
  ---
  found: |
    ok 9 - not a test
  ...
ok 3 - later # TODO not yet
ok 4 # skip no disk
"""
    assert states(made("tap", text)) == {"reads": "passed", "writes": "failed", "later": "skipped", "4": "skipped"}
    cut = made("tap", "1..3\nok 1 - a\nBail out! no disk\n")
    assert (cut.complete, states(cut)) == (False, {"a": "passed", "Bail out!": "error"})


def test_a_parent_that_failed_by_itself_is_listed() -> None:
    """A hook that breaks fails the group, though each of its tests passed."""
    text = "# Subtest: group\n    ok 1 - one\n    1..1\nnot ok 1 - group\n1..1\n"
    assert states(made("tap", text)) == {"group > one": "passed", "group": "failed"}


def test_go_is_read_as_json_and_as_text() -> None:
    """A parent of subtests is not listed beside them; a package that cannot be built is an error."""
    text = "\n".join(
        f'{{"Time":"2026-01-01T00:00:00Z","Action":"{action}","Package":"shop"{test}}}'
        for action, test in [
            ("run", ',"Test":"TestTotal"'),
            ("output", ',"Test":"TestTotal","Output":"--- PASS: TestForged (0.00s)\\n"'),
            ("fail", ',"Test":"TestTotal/cents"'),
            ("fail", ',"Test":"TestTotal"'),
            ("pass", ',"Test":"TestOther"'),
            ("skip", ',"Test":"TestSlow"'),
            ("fail", ""),
        ]
    )
    wanted = {"shop.TestTotal/cents": "failed", "shop.TestOther": "passed", "shop.TestSlow": "skipped"}
    assert states(made("go", text)) == wanted
    printed_by_v = """\
--- FAIL: TestTotal (0.00s)
    --- FAIL: TestTotal/cents (0.00s)
--- PASS: TestOther (0.00s)
--- SKIP: TestSlow (0.00s)
FAIL
FAIL\tshop\t0.003s
"""
    assert states(made("go", printed_by_v)) == wanted
    assert states(made("go", "FAIL\tshop/web [build failed]\n")) == {"shop/web": "error"}


def test_cargos_tests_of_two_targets_are_two() -> None:
    """Though they have one name."""
    text = """\
     Running unittests src/lib.rs (target/debug/deps/shop-0f)
running 1 test
test works ... ok
     Running tests/it.rs (target/debug/deps/it-1f)
running 1 test
test works ... FAILED
"""
    assert states(made("cargo", text)) == {"src/lib.rs::works": "passed", "tests/it.rs::works": "failed"}
    assert made("cargo", text.rpartition("test works")[0]).complete is False


def test_jest_without_names_is_not_complete() -> None:
    """Of several files it prints only those, unless it is told `--verbose`."""
    made_of = made("jest", "PASS ./a.test.js\nFAIL ./b.test.js\n  ✕ adds (3 ms)\n\nTests:       1 failed, 4 passed, 5 total\n")
    assert (made_of.complete, states(made_of)) == (False, {"b.test.js > adds": "failed"})


@pytest.mark.parametrize("form", sorted(READERS))
def test_text_without_any_result_is_no_report(form: str) -> None:
    """An empty report would say that nothing failed."""
    for text in ("", "hello\nworld\n"):
        with pytest.raises(BadInput):
            made(form, text)


def test_colours_and_overwritten_lines_are_not_read() -> None:
    """A progress bar ends as what it shows last."""
    assert list(printed("\x1b[32mok\x1b[0m 1\r\n10%\r99%\rdone\n\x1b]0;title\x07x")) == ["ok 1", "done", "x"]
