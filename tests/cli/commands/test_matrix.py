"""`matrix`: a fixture, several models, several repeats of each."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from secondtake.cassettes.store import Store
from secondtake.cassettes.takes import Outcome
from secondtake.harness.demo import CAREFUL, HASTY
from secondtake.harness.matrix import session
from secondtake.harness.matrix.cells import Cell
from secondtake.harness.matrix.state import Matrices
from tests.cli.scenes import Command
from tests.harness.matrix.scenes import FakeRunner
from tests.harness.takes import staged

pytestmark = pytest.mark.loopback


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a fixture in it."""
    folder = tmp_path_factory.mktemp("recorded")

    async def made() -> None:
        async with staged(folder):
            pass

    asyncio.run(made())
    return folder / "store"


class Theatre:
    """Takes that nobody plays: what each cell comes to."""

    def __init__(self, root: Path) -> None:
        self.runner = FakeRunner(Store(root), of=self.of)
        self.outcomes: dict[str, Outcome] = {HASTY: Outcome.SAME}
        self.ends_after: int | None = None

    def of(self, cell: Cell) -> Outcome:
        if self.ends_after is not None and len(self.runner.cells) > self.ends_after:
            raise KeyboardInterrupt
        return self.outcomes.get(cell.arm.name, Outcome.PASS)


@pytest.fixture
def theatre(here: Path, tmp_path: Path, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> Theatre:
    shutil.copytree(recorded, tmp_path / "store")
    made = Theatre(tmp_path / "store")
    monkeypatch.setattr(session, "Playhouse", lambda *_: made.runner)

    async def no_floor(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr(session, "floor_of", no_floor)
    return made


MODELS = ("--model", HASTY, "--model", CAREFUL)


def test_the_table_is_printed_and_every_form_of_it_written(command: Command, theatre: Theatre, tmp_path: Path) -> None:
    """Issue 6: one command; cost and outlook first, progress, the table of the design."""
    ran = command("matrix", "bill", *MODELS, "--repeats", "2", "--yes", "--html", str(tmp_path / "r.html"))
    assert ran.code == 0, ran.err
    assert "2 arms, 2 repeats each and 2 warm-ups" in ran.err
    assert "at most     144 model calls" in ran.err
    assert "[6/6]" in ran.err
    assert ran.out.startswith("REPRODUCED 2/2 (same signature)  ·  controlled\n")
    assert f"{HASTY} (baseline, control)" in ran.out
    assert (tmp_path / "r.html").exists()
    (matrix,) = Matrices(theatre.runner.store.root).ids()
    assert matrix.startswith("bill-")
    assert matrix in ran.out


def test_a_matrix_that_was_broken_off_goes_on(command: Command, theatre: Theatre) -> None:
    """Issue 6: resumable; nothing is run twice, and more repeats top it up."""
    theatre.ends_after = 3
    asked = ("matrix", "bill", *MODELS, "--repeats", "2", "--yes", "--json")
    broken = command(*asked)
    assert broken.code == 130
    assert "what is closed stays" in broken.err
    theatre.ends_after = None
    assert command(*asked).code == 104
    said = json.loads(command(*asked, "--resume").out)
    assert (said["ran"], said["takes"], said["warm_ups"], said["complete"], said["exit_code"]) == (3, 4, 2, True, 0)
    more = json.loads(command(*asked, "--repeats", "3", "--resume").out)
    assert (more["ran"], more["looks"], [row["repeats"] for row in more["rows"]]) == (2, [2, 3], [3, 3])


def test_axes_are_rows(command: Command, theatre: Theatre, tmp_path: Path) -> None:
    """DESIGN 6: instructions, parameters, tools and agent, one changed thing per arm, named."""
    (tmp_path / "OLD.md").write_text("Be quick.")
    old = f"old prompt={tmp_path / 'OLD.md'}:AGENTS.md"
    axes = ["--instructions", old, "--parameters", "temperature=0.2", "--parameters", "effort=low"]
    axes += ["--tools", "read_file,run", "--agent", "codex exec 'fix it'"]
    said = json.loads(command("matrix", "bill", *MODELS, *axes, "--repeats", "1", "--no-warm-up", "--yes", "--json").out)
    assert [row["arm"] for row in said["rows"]] == [
        HASTY,
        CAREFUL,
        f"{CAREFUL} with old prompt",
        f"{CAREFUL} with temperature=0.2",
        f"{CAREFUL} with effort=low",
        f"{CAREFUL} with tools read_file, run",
        f"{CAREFUL} with agent codex exec 'fix it'",
    ]
    changes = {cell.arm.name.partition(" with ")[2]: cell.arm.change for cell in theatre.runner.cells}
    assert {name: change.value for name, change in changes.items() if change is not None and name != "old prompt"} == {
        "temperature=0.2": ["temperature=0.2"],
        "effort=low": ['effort="low"'],
        "tools read_file, run": ["read_file", "run"],
        "agent codex exec 'fix it'": ["codex", "exec", "fix it"],
    }


def test_cells_that_are_left_make_another_exit_code(command: Command, theatre: Theatre, tmp_path: Path) -> None:
    """0 every cell is settled, 103 some are left, 107 infrastructure failed every attempt of one."""
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"models": {name: {"input": 3, "output": 15} for name in (HASTY, CAREFUL)}}))
    dear = command("matrix", "bill", *MODELS, "--yes", "--max-cost", "0.3", "--prices", str(prices))
    assert dear.code == 103
    assert "not finished: 9 cells left; --max-cost 0.3" in dear.err
    theatre.outcomes[CAREFUL] = Outcome.INFRASTRUCTURE
    asked = ("matrix", "bill", *MODELS, "--as", "other", "--repeats", "1", "--no-warm-up", "--attempts", "1", "--yes", "--json")
    said = json.loads(command(*asked).out)
    assert (said["exit_code"], said["rows"][1]["given_up"]) == (107, 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "give --yes"),
        (("--yes", "--max-cost", "1"), "--max-cost needs --prices"),
        (("--yes", "--credential-env", "A", "--credential-command", "b"), "exclude each other"),
        (("--yes", "--instructions", "x=missing.md"), "is no file"),
        (("--yes", "--parameters", "temperature"), "not PATH=JSON"),
        (("--yes", "--parameters", "model=1"), "not a parameter"),
        (("--yes", "--tools", "a,,b"), "not NAME,NAME"),
        (("--yes", "--agent", "'"), "No closing quotation"),
        (("--yes", "--agent", ""), "an empty command"),
        (("--yes", "--html", "missing/r.html"), "is no folder"),
        (("--yes", "--as", "../x"), "not a cassette name"),
        (("--yes", "--gateway", "ftp://x"), "is not an http or https URL"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_sealed(
    command: Command, theatre: Theatre, options: tuple[str, ...], said: str
) -> None:
    """Exit 64, and nothing is spent."""
    ran = command("matrix", "bill", *MODELS, *options)
    assert ran.code == 64, ran.err
    assert said in ran.err
    assert theatre.runner.cells == []
    assert Matrices(theatre.runner.store.root).ids() == []
