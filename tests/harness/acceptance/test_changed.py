"""Each kind of assertion that needs no command: files, patches, lock files, secrets, commands, resources."""

from __future__ import annotations

from pathlib import Path

import pytest

from secondtake.cassettes.events import Event, EventKind
from secondtake.cassettes.takes import Resources
from secondtake.cassettes.trees import changes, patch
from tests.harness.acceptance.scenes import ENVIRON, called, ran, said, scene

BEFORE = {"src/total.py": "def total():\n    return 41\n", "tests/test_total.py": "test\n", "README.md": "shop\n"}
FIXED = BEFORE | {"src/total.py": "def total():\n    return 42\n"}
PATCH = """\
--- a/src/total.py
+++ b/src/total.py
@@ -1,2 +1,2 @@
 def total():
-    return 41
+    return 42
"""
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"
KEY = "sk-ant-api03-" + "a1B2" * 12


class TestFiles:
    def test_only_allowed_files_changed(self, tmp_path: Path) -> None:
        """Issue 6.1: by pattern, and what running the tests leaves behind is no change."""
        after = FIXED | {"src/__pycache__/total.pyc": "x", ".pytest_cache/v": "x"}
        assert said(scene(tmp_path, BEFORE, after), "only-changed", paths=["src/**"]) == (True, "changed: src/total.py")
        held, evidence = said(scene(tmp_path / "b", BEFORE, after | {"a": "", "b": "", "c": "", "d": ""}), "only-changed", paths=["src/**"])
        assert (held, evidence) == (False, "changed too: a, b, c and 1 more")
        assert said(scene(tmp_path / "c", BEFORE), "only-changed", paths=[]) == (True, "nothing changed")

    def test_both_ends_of_a_rename_are_touched(self, tmp_path: Path) -> None:
        """A test that is moved away is a test that was touched."""
        after = {**BEFORE, "src/old_test.py": BEFORE["tests/test_total.py"]}
        del after["tests/test_total.py"]
        at = scene(tmp_path, BEFORE, after)
        assert said(at, "untouched", paths=["tests"]) == (False, "touched: tests/test_total.py")
        assert said(at, "only-changed", paths=["src"])[0] is False
        assert said(scene(tmp_path / "b", BEFORE, FIXED), "untouched", paths=["tests"]) == (True, "untouched")

    def test_a_required_file_is_there(self, tmp_path: Path) -> None:
        """Issue 6.1: with a pattern, or a digest; a folder is there when something is in it."""
        at = scene(tmp_path, {}, {"a/CHANGES.md": "one\n- a cent\n", "link": "-> a"})
        assert said(at, "file", path="a/CHANGES.md") == (True, "a/CHANGES.md is there")
        assert said(at, "file", path="a")[0] is True
        assert said(at, "file", path="b") == (False, "b is not there")
        assert said(at, "file", path="b", present=False)[0] is True
        assert said(at, "file", path="a", present=False) == (False, "a is there")
        assert said(at, "file", path="a/CHANGES.md", matches=r"^- a cent$")[0] is True
        assert said(at, "file", path="a/CHANGES.md", matches="euro")[0] is False
        assert said(at, "file", path="a/CHANGES.md", sha256="0" * 64)[0] is False
        assert said(at, "file", path="link", matches="x") == (False, "link is no file")

    def test_content_that_was_not_kept_is_not_judged(self, tmp_path: Path) -> None:
        """A digest of a redacted file is not the file's."""
        at = scene(tmp_path, {}, {"a": "x"}, notes={"a": "redacted"})
        assert said(at, "file", path="a", matches="x")[0] is None

    def test_lock_files_do_not_drift(self, tmp_path: Path) -> None:
        """Issue 6.1: in any folder; some may be allowed, others named."""
        after = {**BEFORE, "web/package-lock.json": "{}"}
        at = scene(tmp_path, BEFORE, after)
        assert said(at, "no-lockfile-drift") == (False, "changed: web/package-lock.json")
        assert said(at, "no-lockfile-drift", allow=["web/**"])[0] is True
        assert said(scene(tmp_path / "b", BEFORE, FIXED), "no-lockfile-drift", also=["src/total.py"])[0] is False
        assert said(scene(tmp_path / "c", BEFORE, FIXED), "no-lockfile-drift") == (True, "no lock file changed")


class TestDiff:
    def test_the_changes_are_those_of_the_patch(self, tmp_path: Path) -> None:
        """Issue 6.1: however the agent came there."""
        assert said(scene(tmp_path, BEFORE, FIXED), "diff", patch=PATCH) == (True, "as expected: src/total.py")
        assert said(scene(tmp_path / "b", BEFORE, BEFORE), "diff", patch=PATCH) == (False, "not as expected: src/total.py")
        more = scene(tmp_path / "c", BEFORE, FIXED | {"x": ""})
        assert said(more, "diff", patch=PATCH) == (False, "as expected, but changed too: x")
        assert said(more, "diff", patch=PATCH, others="any")[0] is True

    def test_white_space_is_compared_as_asked(self, tmp_path: Path) -> None:
        """An editor that trims lines made the same fix."""
        after = BEFORE | {"src/total.py": "def total():\n    return 42  \n\n"}
        at = scene(tmp_path, BEFORE, after)
        assert said(at, "diff", patch=PATCH)[0] is True
        assert said(at, "diff", patch=PATCH, whitespace="exact")[0] is False
        wide = scene(tmp_path / "b", BEFORE, BEFORE | {"src/total.py": "def total():\n\treturn   42\n"})
        assert (said(wide, "diff", patch=PATCH)[0], said(wide, "diff", patch=PATCH, whitespace="any")[0]) == (False, True)

    def test_it_may_be_contents_or_a_file_of_the_fixture(self, tmp_path: Path) -> None:
        """A person gives what there is."""
        (tmp_path / "fixture").mkdir()
        (tmp_path / "fixture/fix.patch").write_text(PATCH)
        at = scene(tmp_path, BEFORE, FIXED, fixture=tmp_path / "fixture")
        assert said(at, "diff", patch_file="fix.patch")[0] is True
        assert said(at, "diff", contents={"src/total.py": FIXED["src/total.py"]})[0] is True
        assert said(at, "diff", patch_file="no.patch") == (None, "no.patch is not in the fixture")

    def test_a_patch_that_does_not_fit_the_start_is_the_fixtures_fault(self, tmp_path: Path) -> None:
        """It is not judged, rather than failed."""
        held, evidence = said(scene(tmp_path, FIXED, FIXED), "diff", patch=PATCH)
        assert (held, evidence) == (None, "the expected patch does not fit src/total.py at line 1")

    def test_the_patch_a_take_shows_is_one_it_can_be_held_to(self, tmp_path: Path) -> None:
        """A person copies the good take's patch into the fixture: additions, removals, renames, odd names, no line end."""
        before = {"a": "1\n2\n3\n", "gone": "x\n", "moved": "m\n" * 9, "é b": "old"}
        after = {"a": "1\n3\n4", "new/f": "n\n", "there/moved": "m\n" * 9, "é b": "new"}
        at = scene(tmp_path, before, after)
        text = patch(changes(at.start, at.final), at.before, at.after)
        assert said(at, "diff", patch=text, whitespace="exact")[0] is True


class TestSecrets:
    @pytest.mark.parametrize("line", [f"key = '{KEY}'", "url = https://me:hunter2hunter2@db.example/x", PEM])
    def test_a_credential_that_was_added_is_found(self, tmp_path: Path, line: str) -> None:
        """Issue 6.1: no secrets in the diff; the evidence does not repeat it."""
        held, evidence = said(scene(tmp_path, BEFORE, BEFORE | {"src/total.py": f"{line}\n"}), "no-secrets")
        assert held is False
        assert evidence.startswith("src/total.py: ")
        assert not any(part in evidence for part in (KEY, "hunter2", "MIIE"))

    def test_one_that_was_there_before_was_not_added(self, tmp_path: Path) -> None:
        """Only what the take brought in counts."""
        before = {"a": f"{KEY}\n"}
        assert said(scene(tmp_path, before, {"a": f"more\n  {KEY}\n"}), "no-secrets")[0] is True

    def test_one_of_the_environment_is_known_by_its_value(self, tmp_path: Path) -> None:
        """Whatever it looks like."""
        at = scene(tmp_path, {}, {"a": "x = correct-horse-battery\n"}, environ=ENVIRON | {"DB_PASSWORD": "correct-horse-battery"})
        held, evidence = said(at, "no-secrets")
        assert held is False
        assert "correct-horse" not in evidence

    def test_one_that_was_hidden_when_the_tree_was_kept_is_still_one(self, tmp_path: Path) -> None:
        """The kept tree holds placeholders, and no content of credential files."""
        hidden = "key = sk-ant-_2T.ank.abcdefghijklmxxxx_\n"
        assert said(scene(tmp_path, {}, {"a": hidden}, notes={"a": "redacted"}), "no-secrets")[0] is False
        at = scene(tmp_path / "b", {}, {".env": ""}, notes={".env": "placeholder"})
        assert said(at, "no-secrets") == (False, ".env is a credential file")

    def test_what_was_not_kept_was_not_searched(self, tmp_path: Path) -> None:
        """A large file is not taken for a clean one."""
        at = scene(tmp_path, {}, {"big": "x"}, notes={"big": "too-large"})
        assert said(at, "no-secrets") == (None, "not kept, so not searched: big")


class TestCommands:
    def test_forbidden_commands_are_found_wherever_they_were_seen(self, tmp_path: Path) -> None:
        """Issue 6.1: over commands seen by the kernel, and in tool calls."""
        for changed in (
            {"commands": [ran("git", "push", "--force")]},
            {"commands": [ran("/bin/sh", "-c", "cd x && git push")]},
            {"events": [called("bash", '{"command": "make && git\\u0020push"}')]},
            {"events": [called("shell", '{"command": ["git", "push"]}')]},
            {"events": [called("run", "git push")]},
        ):
            held, evidence = said(scene(tmp_path, {}, **changed), "no-commands", patterns=["rm -rf /", r"git push\b"])
            assert held is False, changed
            assert evidence.startswith(r"`git push\b` matches `")

    def test_other_commands_are_none_of_them(self, tmp_path: Path) -> None:
        """And who saw them is said."""
        at = scene(tmp_path, {}, commands=[ran("git", "status")], events=[called("bash", '{"command": "ls"}')])
        assert said(at, "no-commands", patterns=["push"]) == (True, "none of 2 commands (kernel and model traffic)")

    def test_arguments_that_were_not_kept_are_not_taken_for_harmless(self, tmp_path: Path) -> None:
        """Long ones stand in a payload; without it, nobody knows."""
        long = Event(EventKind.TOOL_CALL, 0, 0, 1, "m", {"tool": "bash", "arguments": None, "arguments_sha256": "ab"})
        assert said(scene(tmp_path, {}, events=[long]), "no-commands", patterns=["push"])[0] is None
        kept = Event(EventKind.TOOL_CALL, 0, 0, 1, "m", {"tool": "bash", "arguments": None, "arguments_sha256": "ab"}, {"ab": b"git push"})
        assert said(scene(tmp_path, {}, events=[kept]), "no-commands", patterns=["push"])[0] is False


class TestWithin:
    @pytest.mark.parametrize(
        ("bounds", "held", "evidence"),
        [
            ({"model_calls": 3, "tool_calls": 2}, True, "3 model calls of 3, 2 tool calls of 2"),
            ({"model_calls": 2, "seconds": 60}, False, "3 model calls of 2"),
            ({"tokens": 100}, None, "how many tokens were used is not known"),
            ({"tokens": 100, "model_calls": 1}, False, "3 model calls of 1"),
        ],
    )
    def test_it_used_no_more(self, tmp_path: Path, bounds: dict[str, int], held: bool | None, evidence: str) -> None:
        """Issue 6.1: model calls, tool calls, tokens, seconds; what is not known is not taken for nothing."""
        assert said(scene(tmp_path, {}, resources=Resources(3, 2, None, None, 9.5)), "within", **bounds) == (held, evidence)

    def test_what_was_stopped_did_not_end(self, tmp_path: Path) -> None:
        """A stopping rule keeps any bound."""
        at = scene(tmp_path, {}, resources=Resources(3, 2, 1, None, 9.5), stopped="--max-calls 3: 3 were made")
        assert said(at, "within", model_calls=5) == (False, "stopped: --max-calls 3: 3 were made")
