"""What may stand in a fixture.toml: one of each kind, and what is refused."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.takes import Signature
from secondtake.harness.acceptance.schema import (
    KINDS,
    Acceptance,
    CommandCheck,
    FailureSignature,
    SuiteCheck,
    read,
    referenced,
)

ONE_OF_EACH = """
[failure]
summary = "the total is a cent short"
check = [{ name = "red", kind = "command", run = "python -m pytest -q 'tests/a b.py'", exit = "nonzero" }]
signature = { exit = "1", first = "tests/test_total.py::test_cents", tool = "run", stop = "end" }

[[acceptance.check]]
name = "the test is green"
kind = "tests"
run = ["python", "-m", "pytest", "-rA"]
passing = ["tests/test_total.py::test_cents"]
others = "unbroken"

[[acceptance.check]]
name = "the invoice is right"
kind = "output"
run = "python -m shop"
equals_file = "expected/invoice.txt"

[[acceptance.check]]
name = "no new finding"
kind = "lint"
run = "ruff check"
finding = "^[^ ]+:[0-9]+:"

[[acceptance.check]]
name = "the fix"
kind = "diff"
patch_file = "expected/fix.patch"

[[acceptance.check]]
name = "only the shop"
kind = "only-changed"
paths = ["src/shop/**"]

[[acceptance.check]]
name = "no test was changed"
kind = "untouched"
paths = ["tests"]

[[acceptance.check]]
name = "no force"
kind = "no-commands"
patterns = ["git push"]

[[acceptance.check]]
name = "a note"
kind = "file"
path = "CHANGES.md"
matches = "cent"

[[acceptance.check]]
name = "quick"
kind = "within"
model_calls = 20

[[acceptance.check]]
name = "no secrets"
kind = "no-secrets"

[[acceptance.check]]
name = "locks"
kind = "no-lockfile-drift"

[[acceptance.check]]
name = "ours"
kind = "command"
run = ["./judge.sh"]
exit = [0, 3]
repeat = 3
timeout_s = 20

[stop]
calls = 40
seconds = 600
cost = 1.5
"""


def refused(text: str) -> list[str]:
    with pytest.raises(BadInput) as error:
        read(tomllib.loads(text))
    return str(error.value).split("\n")


def check(rest: str, kind: str = "command") -> str:
    return f'[[acceptance.check]]\nname = "it"\nkind = "{kind}"\n{rest}\n'


def test_one_of_each_kind_is_read() -> None:
    """Issue 6.1: each kind of assertion, written as a person would."""
    bundle = read(tomllib.loads(ONE_OF_EACH))
    assert {one.kind for one in bundle.acceptance.check} == set(KINDS)
    red = bundle.failure.check[0]
    assert isinstance(red, CommandCheck)
    assert red.run == ("python", "-m", "pytest", "-q", "tests/a b.py")
    assert bundle.failure.signature is not None
    assert bundle.failure.signature.value().parts[1] == ("first", "tests/test_total.py::test_cents")
    assert (bundle.stop.calls, bundle.stop.tokens, bundle.stop.cost) == (40, None, 1.5)


def test_what_is_written_out_is_read_back() -> None:
    """`fixture create` writes these tables, and a person edits them."""
    bundle = read(tomllib.loads(ONE_OF_EACH))
    assert read(bundle.model_dump(mode="json", exclude_defaults=True)) == bundle


def test_a_signature_goes_into_its_table_and_comes_back() -> None:
    """The ID is made of what the person reads; it cannot disagree with it."""
    signature = Signature.of((("exit", "1"), ("first", "E"), ("tool", ""), ("stop", "end")))
    assert FailureSignature.of(signature).value() == signature


def test_files_a_check_compares_with_are_named() -> None:
    """They belong into the fixture's digest."""
    bundle = read(tomllib.loads(ONE_OF_EACH))
    assert referenced(bundle.failure, bundle.acceptance) == ("expected/invoice.txt", "expected/fix.patch")


def test_other_tables_are_not_looked_at() -> None:
    """The rest of fixture.toml is the fixture's to check."""
    assert read({"scene": {"x": 1}}).acceptance == Acceptance()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (check('run = "x"\nshell = true'), "acceptance.check['it'].shell: extra inputs are not permitted"),
        (check("run = []"), "acceptance.check['it'].run: "),
        (check('run = "it\'s"'), "acceptance.check['it'].run: cannot be split into words"),
        (check('run = "x"\nexit = 256'), "acceptance.check['it'].exit"),
        (check('run = "x"\ncwd = "../up"'), "acceptance.check['it'].cwd: must be a relative path without `..`"),
        (check('run = "x"\nrepeat = 1000'), "acceptance.check['it'].repeat: input should be less than or equal to 20"),
        (check('run = "x"\ntimeout_s = inf'), "acceptance.check['it'].timeout_s"),
        (check('run = "x"', "tests"), "acceptance.check['it']: names no test: give `passing`"),
        (check('run = "x"', "output"), "acceptance.check['it']: needs exactly one of `equals`"),
        (check('run = "x"\nfinding = "("', "lint"), "acceptance.check['it'].finding: is no regular expression"),
        (check('path = "/etc/passwd"', "file"), "acceptance.check['it'].path: must be a relative path without `..`"),
        (check('path = "a"\npresent = false\nmatches = "x"', "file"), "acceptance.check['it']: a file that must be absent"),
        (check("", "within"), "acceptance.check['it']: has no bound"),
        (check("patterns = []", "no-commands"), "acceptance.check['it'].patterns: "),
        (check("", "mystery"), "acceptance.check['it']: input tag 'mystery' found using 'kind' does not match"),
        ("[[acceptance.check]]\nkind = 'no-secrets'", "acceptance.check[0].name: field required"),
        (check("", "no-secrets") * 2, "acceptance: two checks are named 'it'"),
        ("[stop]\ncalls = -1", "stop.calls: input should be greater than or equal to 0"),
        ("acceptance = 3", "acceptance: input should be a valid dictionary"),
    ],
)
def test_each_fault_is_said_where_it_stands(text: str, fault: str) -> None:
    """A person edits this file: the message names the check and the key."""
    assert refused(text)[0].startswith(fault)


def test_no_value_is_repeated_in_a_fault() -> None:
    """A credential that was put into a check is not put into a terminal."""
    assert "hunter2" not in "\n".join(refused(check('run = "x"\nenv = { "a-b" = "hunter2" }\npassword = "hunter2"')))


def test_a_check_of_tests_may_only_ask_for_the_others() -> None:
    """`No other test broke` is an assertion of its own."""
    (one,) = read(tomllib.loads(check('run = "x"\nothers = "unbroken"', "tests"))).acceptance.check
    assert isinstance(one, SuiteCheck)
    assert (one.passing, one.others) == ((), "unbroken")


def test_the_page_shows_what_is_read() -> None:
    """docs/acceptance.md: its example is a fixture's, and its table has every kind and no other."""
    page = (Path(__file__).parents[3] / "docs/acceptance.md").read_text()
    example = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    assert example is not None
    bundle = read(tomllib.loads(example[1]))
    assert bundle.failure.signature is not None
    assert len(bundle.acceptance.check) == 2
    kinds = page.partition("## Checks")[2].partition("###")[0]
    assert set(re.findall(r"^\| `([a-z-]+)` \|", kinds, re.MULTILINE)) == set(KINDS)
