"""Where an agent acts, and what it must find there."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from secondtake.harness.launch import Finished
from secondtake.harness.performing import ROOMS, Performed, escape_problems, installed, needs
from secondtake.harness.results import Verdict
from secondtake.harness.seal import Attempt, Tier

FINISHED = Finished(status=0, signal=None, pid=1, timed_out=False, interrupted=False, strays=0, left=0)


def performed(*attempts: Attempt) -> Performed:
    return Performed(FINISHED, Tier.SEALED, (), attempts, (), at_recorded_path=True)


def test_a_program_is_found_with_all_it_was_installed_with(tmp_path: Path) -> None:
    """Issue 5.4: HOME is not the person's, and yet an agent that lies there starts."""
    program = tmp_path / "lib" / "node_modules" / "agent" / "cli.js"
    program.parent.mkdir(parents=True)
    program.write_text("")
    (program.parent / "package.json").write_text("{}")
    link = tmp_path / "bin" / "agent"
    link.parent.mkdir()
    link.symlink_to(program)
    found = set(installed(link))
    assert {link, link.parent, tmp_path / "lib", program, program.parent, tmp_path / "lib" / "node_modules"} <= found
    assert tmp_path not in found


def test_what_starts_the_agent_is_found_within_the_seal(tmp_path: Path) -> None:
    """Issue 5.4: our own interpreter and files, and the trust bundle."""
    bundle = tmp_path / "bundle.pem"
    bundle.write_text("")
    found = needs([sys.executable], {}, bundle)
    assert {bundle, ROOMS, Path(sys.base_prefix)} <= set(found)


def test_an_attempt_to_leave_makes_a_replay_unclean_and_a_recording_not() -> None:
    """D-04: each refused attempt is told, with where it went."""
    seen = performed(Attempt(5, "tcp", "192.0.2.3", 22, None), Attempt(9, "dns", "192.0.2.53", None, "evil.example"))
    (told,) = escape_problems(seen)
    assert (told.kind, told.verdict) == ("escape", Verdict.DIVERGED)
    assert "2 (tcp 192.0.2.3:22, dns evil.example)" in told.message
    assert [problem.verdict for problem in escape_problems(seen, recording=True)] == [Verdict.CLEAN]
    assert escape_problems(performed()) == ()


def test_a_seal_that_could_not_be_had_is_told_with_why_and_what_is_open() -> None:
    """D-01: named in the summary; a person who wants none gets no word of it."""
    weaker = replace(performed(), tier=Tier.FENCED, refused=("sealed: unshare is refused",), holes=("UDP is not confined",))
    (told,) = escape_problems(weaker)
    assert (told.kind, told.verdict) == ("seal", Verdict.CLEAN)
    assert told.message == "the seal is fenced only (sealed: unshare is refused); open: UDP is not confined"
    assert escape_problems(replace(weaker, refused=())) == ()
    assert escape_problems(weaker, recording=True) == ()
