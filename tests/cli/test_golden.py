"""Whole commands: command, exit code, standard output and standard error together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from secondtake.cassettes.store import Store
from tests.cli.scenes import Command

CASES = {
    "ls": ("ls",),
    "ls-json": ("ls", "--json"),
    "show": ("show", "incident"),
    "show-json": ("show", "incident", "--json"),
    "show-prefix": ("show", "inc", "--channel", "model"),
    "show-last": ("show", "@last", "-q"),
    "show-model": ("show", "incident", "1"),
    "show-tricks": ("show", "incident", "2"),
    "show-blob": ("show", "incident", "3"),
    "show-unanswered": ("show", "incident", "4"),
    "show-one-json": ("show", "incident", "1", "--json"),
    "grep": ("grep", "incident", "make|naïve"),
    "grep-json": ("grep", "incident", "EVIL", "-i", "--json"),
    "grep-nothing": ("grep", "incident", "a.b", "-F"),
    "events": ("events", "incident"),
    "events-json": ("events", "incident", "--json"),
    "diff": ("diff", "incident", "incident"),
    "diff-json": ("diff", "incident", "@last", "--layer", "decisions", "--json"),
    "pin": ("pin", "claude-sonnet-4-5", "--on", "2026-11-30"),
    "pin-held-json": ("pin", "claude-opus-4-6", "--on", "2026-11-30", "--json"),
    "error-no-model": ("retake", "incident", "--", "true"),
    "error-alias": ("retake", "incident", "--model", "latest", "--in-place", "--", "true"),
    "error-no-credential": ("retake", "incident", "--model", "m-20260101", "--credential-env", "NOT_SET", "--in-place", "--", "true"),
    "error-unknown-rule": ("retake", "incident", "--model", "m-20260101", "--rule", "drop-all", "--in-place", "--", "true"),
    "error-retake-original-workspace": ("retake", "incident", "--model", "m-20260101", "--", "true"),
    "error-probe-no-decision": ("probe", "incident", "3", "--model", "m-20260101"),
    "verify": ("verify", "incident"),
    "verify-json": ("verify", "incident", "--json"),
    "verify-other-root": ("verify", "incident", "--root", "0" * 64),
    "gc-dry": ("gc", "--dry-run"),
    "error-unknown-cassette": ("show", "incidemt"),
    "error-unknown-cassette-json": ("verify", "incidemt", "--json"),
    "error-unknown-exchange": ("show", "incident", "99"),
    "error-diff-one": ("diff", "incident"),
    "error-diff-no-tree": ("diff", "incident", "incident", "--layer", "tree"),
    "error-diff-unknown": ("diff", "incident", "incidemt"),
    "error-diff-arms": ("diff", "--arms", "incident", "@last"),
    "error-diff-no-matrix": ("diff", "--arms", "incident"),
    "error-blame-no-stage": ("blame", "incident", "Makefile"),
    "error-no-answer": ("show", "incident", "4", "--body", "response"),
    "error-body-without-seq": ("show", "incident", "--body", "request"),
    "error-decoded-alone": ("show", "incident", "1", "--decoded"),
    "error-unknown-command": ("recrod", "x"),
    "error-no-command": (),
    "error-unknown-option": ("ls", "--frob"),
    "error-no-agent": ("record", "x"),
    "error-agent-without-dashes": ("replay", "incident", "make"),
    "error-agent-missing": ("record", "x", "--", "no-such-agent"),
    "error-agent-file-missing": ("record", "x", "--", "./no-such-agent"),
    "error-bad-name": ("record", "../x", "--", "true"),
    "error-name-taken": ("record", "incident", "--", "true"),
    "error-replace-and-as": ("record", "x", "--replace", "--as", "y", "--", "true"),
    "error-bad-route": ("record", "x", "--route", "host", "--", "true"),
    "error-route-twice": ("record", "x", "--route", "a=http://b", "--route", "A=http://c", "--", "true"),
    "error-route-with-password": ("record", "x", "--route", "a=http://user:pass@b", "--", "true"),
    "error-no-client-cert": ("record", "x", "--client-cert", "a=none.pem", "--", "true"),
    "error-original-workspace": ("replay", "incident", "--", "true"),
    "error-workspace-and-in-place": ("replay", "incident", "--workspace", ".", "--in-place", "--", "true"),
    "error-keep-alone": ("replay", "incident", "--keep", "--", "true"),
    "error-bad-pattern": ("grep", "incident", "("),
    "error-bad-subset": ("verify", "incident", "--subset", "3/2"),
    "error-import-missing": ("import", "none.take"),
    "fixture-ls-none": ("fixture", "ls"),
    "error-fixture-no-stage": ("fixture", "create", "incident"),
    "error-fixture-unknown": ("fixture", "show", "grene"),
    "error-fixture-unknown-json": ("fixture", "check", "grene", "--json"),
    "error-fixture-no-toml": ("fixture", "restore", "./", "into"),
    "error-fixture-bad-name": ("fixture", "create", "../x", "--from", "incident", "--workspace", "."),
    "error-fixture-import-missing": ("fixture", "import", "none.fixture"),
    "error-export-nowhere": ("export", "incident", "none/x.take"),
    "error-no-proxy": ("env",),
    "error-no-proxy-there": ("env", "--port", "1"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_command_says_what_it_says(name: str, golden: Command, store: Store) -> None:
    """STYLE, uv: a command, and beside it its exit code, stdout and stderr.

    Issue 2, bad input: one error line and at most one hint, nothing on standard output but with --json. DESIGN 7: --json prints versioned
    objects. C-14: the sample is full of escape sequences, and none is printed raw.
    """
    ran = golden(name, *CASES[name])
    for text in (ran.out, ran.err):
        assert "\x1b" not in text
        assert "\u202e" not in text
    if name.startswith("error-"):
        lines = ran.err.splitlines()
        assert [line for line in lines if line.startswith("error: ")] == lines[:1]
        assert lines[1:] == [] or (lines[1] == "" and lines[2].startswith("hint: ") and len(lines) == 3)
        assert (ran.out == "") != ("--json" in CASES[name])
    if "--json" in CASES[name]:
        assert ran.out
        assert all(json.loads(line)["version"] == 1 for line in ran.out.splitlines())


def test_golden_files_have_a_case() -> None:
    """A golden file that no case writes is stale."""
    assert {path.stem for path in (Path(__file__).parent / "golden").glob("*.txt")} == set(CASES)
