"""`matrix` with everything that can become of a take: each is in the column it belongs to, and in no other."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from secondtake.cassettes.store import Store
from secondtake.harness.demo import CAREFUL, HASTY, TASK, Running, agent_command, agent_environment, prepare
from secondtake.harness.demo.repository import SPLIT_ROUNDED_UP
from secondtake.harness.demo.scripts import script
from secondtake.harness.fixture import load
from secondtake.harness.matrix import session
from secondtake.harness.provider import CutOff, Failure, Reply, Scene, Script, ToolCall
from tests.cli.models import running
from tests.cli.scenes import Command, Ran
from tests.harness.matrix.scenes import FakeClock
from tests.harness.takes import with_checks

pytestmark = pytest.mark.loopback

LOST = "lost-20260101"
"""Reads a page that was not recorded, then makes the hasty model's mistake."""
CUT = "cut-20260101"
"""Its stream ends in the middle, every time."""
BUSY = "busy-20260101"
"""Overloaded at its first call; run again it is as careful as the other."""
PATIENT = "patient-20260101"
"""Answers 429 at first, which the agent gets over."""
LIAR = "liar-20260101"
"""Another model answers."""
ALIAS = "careful-latest"
"""Nothing holds it."""

ARMS = (HASTY, CAREFUL, LOST, CUT, BUSY, PATIENT, LIAR, ALIAS)
REPEATS, ATTEMPTS = 2, 2

FETCH = "python3 -c \"import urllib.request as r; r.urlopen('https://web.example/hint', timeout=20)\""

WAITS = """
import runpy, sys, urllib.error, urllib.request
asked = urllib.request.urlopen
def patient(request, **how):
    try:
        return asked(request, **how)
    except urllib.error.HTTPError as error:
        if error.code != 429:
            raise
        return asked(request, **how)
urllib.request.urlopen = patient
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""The demo's agent, which asks once more after a 429."""


def played() -> Script:
    """The demo's two models, and the others."""
    hasty, careful, *others = script().scenes
    first, *rest = careful.turns
    assert isinstance(first, Reply)

    def begins(model: str, status: int) -> Scene:
        return Scene((Reply(first.text, first.tools, first=(Failure(status),)), *rest), model, TASK)

    wrong = ToolCall("write_file", {"path": "bill/split.py", "content": SPLIT_ROUNDED_UP})
    lost = (Reply("There may be a hint.", (ToolCall("run", {"command": FETCH}),)), Reply("I round up.", (wrong,)), Reply("Fixed."))
    return Script(
        (
            hasty,
            careful,
            Scene(lost, LOST, TASK),
            Scene((Reply("I will run the tests first.", first.tools, broken=CutOff(3)),), CUT, TASK),
            begins(BUSY, 529),
            begins(PATIENT, 429),
            Scene(careful.turns, LIAR, TASK, served=CAREFUL),
            Scene(careful.turns, ALIAS, TASK),
            *others,
        )
    )


@pytest.fixture
def bill(command: Command, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """The hasty model's incident as the fixture `bill`, and the provider that goes on. A provider that is left alone costs no time."""
    monkeypatch.setattr(session, "RealClock", lambda _stage: FakeClock())
    with running(tmp_path, played()) as made:
        for name, value in {**agent_environment(dict(os.environ)), "SSL_CERT_FILE": str(made.ca_path)}.items():
            monkeypatch.setenv(name, value)
        prepare(here)
        agent = [sys.executable, "-I", "-c", WAITS, *agent_command()[2:]]
        for asked in (("record", "incident", "--route", made.route, "--", *agent), ("fixture", "create", "bill", "--from", "incident")):
            ran = command(*asked)
            assert ran.code == 0, ran.err
        with_checks(load("bill", Store(tmp_path / "store")))
        made.provider.seen.clear()
        yield made


def matrix(command: Command, made: Running, *more: str) -> Ran:
    asked = [word for arm in ARMS for word in ("--model", arm)]
    bounds = ("--repeats", str(REPEATS), "--attempts", str(ATTEMPTS), "--jobs", "2", "--no-warm-up", "--allow-unpinned")
    return command("matrix", "bill", *asked, *bounds, "--route", made.route, "--yes", "--json", *more)


def columns(row: dict[str, Any]) -> dict[str, int]:
    """Those that a row has takes in."""
    names = ("same", "other", "contaminated", "infrastructure", "invalid")
    found = {"passed": row["rate"]["passed"], **{name: row[name] for name in names}}
    return {name: number for name, number in found.items() if number}


def rates(row: dict[str, Any]) -> list[tuple[int, int]]:
    """Passes and runs: of what counts, and with the rest counted as failures."""
    return [(row[which]["passed"], row[which]["runs"]) for which in ("rate", "strict")]


def test_each_take_is_in_the_column_it_belongs_to(command: Command, bill: Running, tmp_path: Path) -> None:
    """Issue 6: contamination, infrastructure, a served model other than the pin, an unpinned model, in one run with all of them."""
    junit = tmp_path / "takes.xml"
    ran = matrix(command, bill, "--junit", str(junit))
    assert ran.code == 107, ran.err  # infrastructure failed every attempt of the one that is cut
    said = json.loads(ran.out)
    rows = {row["arm"]: row for row in said["rows"]}
    assert {arm: columns(row) for arm, row in rows.items()} == {
        HASTY: {"same": 2},
        CAREFUL: {"passed": 2},
        LOST: {"contaminated": 2},
        CUT: {"infrastructure": 4},
        BUSY: {"passed": 2, "infrastructure": 1},
        PATIENT: {"passed": 2},
        LIAR: {"invalid": 2},
        ALIAS: {"passed": 2},
    }
    assert {arm: rates(row) for arm, row in rows.items()} == {
        HASTY: [(0, 2), (0, 2)],
        CAREFUL: [(2, 2), (2, 2)],
        LOST: [(0, 0), (0, 2)],
        CUT: [(0, 0), (0, 4)],
        BUSY: [(2, 2), (2, 3)],
        PATIENT: [(2, 2), (2, 2)],
        LIAR: [(0, 0), (0, 0)],
        ALIAS: [(2, 2), (2, 2)],
    }
    assert [arm for arm, row in rows.items() if row["given_up"]] == [CUT]
    assert [arm for arm, row in rows.items() if row["unpinned"]] == [ALIAS]
    assert [arm for arm, row in rows.items() if row["control"]] == [HASTY]
    assert all(row["repeats"] == row["planned"] == REPEATS for row in said["rows"])
    assert (said["complete"], said["headline"]) == (True, "REPRODUCED 2/2 (same signature)")
    assert said["live"] == [[f"model {ALIAS} is held by alias only", 2]]
    assert rows[CAREFUL]["label"] == "controlled"
    _nothing_twice(said, bill)
    _said_to_people(command("report", said["matrix"]).out, said)
    _said_to_programs(ElementTree.parse(junit).getroot())
    asked = len(bill.provider.seen)
    again = json.loads(matrix(command, bill, "--resume").out)
    assert (again["ran"], again["takes"], len(bill.provider.seen)) == (0, said["takes"], asked)


def _nothing_twice(said: dict[str, Any], bill: Running) -> None:
    """Every attempt of every cell once, and the provider saw no call that is in no take."""
    takes = [(row["arm"], take) for row in said["rows"] for take in row["takes"]]
    made = [(arm, take["repeat"], take["attempts"]) for arm, take in takes]
    again = sum(row["infrastructure"] - row["given_up"] for row in said["rows"])
    assert len(made) == len(set(made)) == said["takes"] == said["ran"] == len(ARMS) * REPEATS + again
    asked = Counter(seen.call.model for seen in bill.provider.seen if seen.call is not None)
    kept: Counter[str] = Counter()
    for arm, take in takes:
        kept[arm] += take["model_calls"]
    assert asked == kept
    assert {take["tier"] for _, take in takes} == {"sealed"}


def _said_to_people(shown: str, said: dict[str, Any]) -> None:
    head = f"{said['headline']}  ·  partially controlled: model {ALIAS} is held by alias only\nComparison study, not proof"
    assert shown.startswith(head)
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    for line in (
        f"{ALIAS} (unpinned) 2 2/2 100 % [34–100] 5 –",
        f"{LOST} 0 0 0 2 0 0 0/2 0 % [0–66]",
        f"{CUT} 0 0 0 0 4 (2 run again) 0 0/4 0 % [0–49]",
        f"{BUSY} 2 0 0 0 1 (1 run again) 0 2/3 67 % [21–94]",
        f"{PATIENT} 2 0 0 0 0 0 2/2 100 % [34–100]",
        f"{LIAR} 0 0 0 0 0 2 0/0",
        f"{LOST} no take counts; seal sealed; clock real",
        f"note: {CUT}: 2 of 2 cells were given up; infrastructure failed every attempt.",
        f"note: {LIAR}: 2 invalid, mismatch: another model answered than was asked ({CAREFUL} for {LIAR}), in 5 calls.",
        f"note: {ALIAS}: unpinned; what stands behind {ALIAS} may have changed between takes.",
    ):
        assert line in lines, shown
    lost = "web was asked for what the cassette does not have (https://web.example/hint), before the step that failed."
    assert f"note: {LOST}: 2 contaminated, {lost}" in lines


def _said_to_programs(root: ElementTree.Element) -> None:
    """JUnit: a test of the model's is red where a take counts, and nowhere else."""
    found: dict[str, list[str]] = {}
    for suite in root:
        said = [word for word in ("failures", "errors", "skipped") if suite.attrib[word] != "0"]
        found.setdefault(suite.attrib["name"].split()[1], []).append(said[0] if said else "green")
    assert {arm: sorted(kinds) for arm, kinds in found.items()} == {
        HASTY: ["failures", "failures"],
        CAREFUL: ["green", "green"],
        LOST: ["skipped", "skipped"],
        CUT: ["skipped"] * 4,
        BUSY: ["green", "green", "skipped"],
        PATIENT: ["green", "green"],
        LIAR: ["skipped", "skipped"],
        ALIAS: ["green", "green"],
    }
    assert len({suite.attrib["name"] for suite in root}) == len(root)
