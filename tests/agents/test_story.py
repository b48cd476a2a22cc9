"""One story, from the incident to the table: a real agent on a small repository with a red test, two models, five takes of each."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from secondtake.cassettes.store import Store
from secondtake.cassettes.takes import Control, decode
from secondtake.harness.demo.repository import SPLIT_FIXED, SPLIT_ROUNDED_UP, prepare
from secondtake.harness.drivers import DRIVERS
from secondtake.harness.fixture import load
from secondtake.harness.provider import Provider, Reply, Scene, ToolCall
from tests.agents.casts import ANTHROPIC, Cast
from tests.agents.installs import installed
from tests.agents.runs import Run, begun, provided
from tests.harness.takes import with_checks
from tests.tools.scene import Ran

HASTY, CAREFUL = "claude-sonnet-4-5-20250929", "claude-opus-4-5-20251101"
TASK = "The tests of this repository fail. Find the bug and fix it. `python3 check.py` runs the tests."
HOST, DOCS = "api.anthropic.com", "docs.example"
LOOK = f"curl -s https://{DOCS}/rounding; python3 check.py"


def runs(command: str) -> ToolCall:
    return ToolCall("bash", {"command": command})


def writes(text: str) -> ToolCall:
    return ToolCall("write", {"path": "bill/split.py", "content": text})


SCENES = (
    Scene(
        (
            Reply("I will read how to round, and run the tests.", (runs(LOOK),)),
            Reply("The division rounds down. I will round up instead.", (writes(SPLIT_ROUNDED_UP),)),
            Reply("Fixed: shares are rounded up now. The tests should pass."),
        ),
        model=HASTY,
    ),
    Scene(
        (
            Reply("I will read, and run the tests.", (runs(LOOK), runs("cat bill/split.py"))),
            Reply("The remainder is dropped.", (writes(SPLIT_FIXED),)),
            Reply("Now the tests again.", (runs("python3 check.py"),)),
            Reply("Fixed. All three tests pass."),
        ),
        model=CAREFUL,
    ),
)

CAST = replace(Cast(DRIVERS["pi"], ANTHROPIC, (HOST,), ()), aside=SCENES)
COMMAND = ("pi", "--provider", "anthropic", "--model", HASTY, "-p", TASK)


class Story:
    """The incident as a fixture, and the provider that goes on."""

    def __init__(self, run: Run, provider: Provider) -> None:
        self.run = run
        self.routes = [word for host in (HOST, DOCS) for word in ("--route", f"{host}={provider.base_url}")]
        for folder in (run.place.work, run.place.home, run.place.temporary):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        prepare(run.place.work)
        self.recorded = self.secondtake("record", "incident", "--json", *self.routes, "--", *COMMAND)
        self.made = self.secondtake("fixture", "create", "bill", "--from", "incident")
        with_checks(load("bill", Store(run.store)))

    def secondtake(self, *arguments: str) -> Ran:
        return self.run.secondtake(*arguments, place=self.run.place)

    def matrix(self, *more: str) -> Ran:
        models = ("--model", HASTY, "--model", CAREFUL)
        return self.secondtake("matrix", "bill", *models, *self.routes, "--seal", "require", "--yes", *more)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Recorded once."""
    run = begun(CAST, installed(CAST.driver), tmp_path_factory.mktemp("story"))
    with provided(CAST) as provider:
        yield Story(run, provider)


def test_the_incident_becomes_a_fixture(story: Story) -> None:
    """Issue 6: the agent says that it is fixed, and the tests are red."""
    assert story.recorded.result["agent_status"] == 0, story.recorded.said
    assert story.made.code == 0, story.made.said


def test_two_models_five_takes_each_make_the_table(story: Story, tmp_path: Path) -> None:
    """Issue 6: sealed, the right numbers, the right signatures, `controlled`; the control arm reproduces the incident."""
    page = tmp_path / "report.html"
    ran = story.matrix("--repeats", "5", "--jobs", "2", "--json", "--html", str(page))
    assert ran.code == 0, ran.said
    said = ran.result
    hasty, careful = said["rows"]
    assert (hasty["model"], careful["model"]) == (HASTY, CAREFUL)
    assert (hasty["rate"]["passed"], hasty["rate"]["runs"], hasty["same"], hasty["control"]) == (0, 5, 5, True)
    assert (careful["rate"]["passed"], careful["rate"]["runs"], careful["failures"]) == (5, 5, [])
    assert [round(careful["rate"]["interval"][end], 2) for end in ("low", "high")] == [0.57, 1.0]
    (failure,) = hasty["failures"]
    assert (failure["count"], failure["recorded"]) == (5, True)
    assert "FAIL test_nobody_pays_a_cent_too_much" in failure["text"]
    assert [hasty["used"]["model_calls"]["median"], careful["used"]["model_calls"]["median"]] == [3, 4]
    assert [row["contaminated"] + row["infrastructure"] + row["invalid"] for row in said["rows"]] == [0, 0]
    shown = story.secondtake("report", said["matrix"])
    assert shown.code == 0, shown.said
    told = shown.out + shown.said
    assert told.startswith("REPRODUCED 5/5 (same signature)  ·  controlled\n")
    heads = "model", "repeats", "pass rate", "median calls", "failure signature"
    assert any(all(head in line for head in heads) for line in told.splitlines())
    assert "Comparison study" not in told
    takes = [json.loads(line) for line in story.secondtake("ls", "--json").out.splitlines()]
    names = [take["name"] for take in takes if take["name"].startswith(said["matrix"])]
    assert len(names) == 12  # ten, and a warm-up for each arm
    with Store(story.run.store).open(names[-1]) as kept:
        take = decode(kept.meta["take"])
        assert (take.control, take.tier, take.commands_from, take.proof) == (Control.CONTROLLED, "sealed", "kernel", "medium")
    assert "<script src" not in page.read_text()
    apart = story.secondtake("diff", f"{said['matrix']}-1-1", f"{said['matrix']}-2-1", "--json")
    assert apart.code == 103, apart.said


def test_with_one_channel_live_it_is_partially_controlled(story: Story) -> None:
    """Issue 6: and says which. The agent's shell reads a page that was recorded, and is let go."""
    ran = story.secondtake("run", "bill", "--model", CAREFUL, *story.routes, "--live", "web", "--json")
    assert ran.code == 0, ran.said
    assert (ran.result["outcome"], ran.result["control"]) == ("pass", "partially controlled")
    assert ran.result["label"] == "partially controlled: web (1 request) answered live"
    assert ran.result["study"] == "Comparison study, not proof of a model regression. Not held: web (1 request) answered live."
