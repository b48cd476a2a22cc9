"""What was typed is judged before anything is sealed or sent."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from secondtake.cassettes.errors import BadInput
from secondtake.harness.demo import CAREFUL, HASTY
from secondtake.harness.fixture import Fixture
from secondtake.harness.matrix.cells import rounds
from secondtake.harness.matrix.design import Axis, Change
from secondtake.harness.matrix.planning import Instructions, Wanted, label_of, planned
from secondtake.harness.plan import Bounds, HostRules, Recast, Stage
from tests.harness.takes import staged

pytestmark = pytest.mark.loopback


@dataclass(frozen=True, slots=True)
class World:
    """A fixture and the stage it is on; its provider is gone."""

    stage: Stage
    fixture: Fixture


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    async def made() -> World:
        async with staged(tmp_path_factory.mktemp("world")) as found:
            return World(found.scene.stage, found.fixture)

    return asyncio.run(made())


NOTHING = Recast(())
WIRE = HostRules()


def test_the_design_holds_what_was_asked_and_what_is_known(world: World) -> None:
    """Issue 6: pins with their class, the control arm marked, the fixture's digest and its stopping rules, an order that is its own."""
    plan = planned(world.stage, world.fixture, Wanted((CAREFUL,), repeats=4, jobs=2), NOTHING, WIRE)
    design = plan.design
    assert [(arm.name, arm.pin_class, arm.control, arm.provider) for arm in design.arms] == [
        (CAREFUL, "snapshot", False, "api.provider.example"),
        (HASTY, "snapshot", True, "api.provider.example"),
    ]
    assert (design.fixture, design.fixture_digest, design.limits.calls, design.limits.seconds) == ("bill", world.fixture.digest, 8, 60)
    assert design.id == planned(world.stage, world.fixture, Wanted((CAREFUL,), repeats=9, jobs=1), NOTHING, WIRE).design.id
    alone = planned(world.stage, world.fixture, Wanted((CAREFUL,), control=False), NOTHING, WIRE)
    assert [arm.name for arm in alone.design.arms] == [CAREFUL]
    assert [spent.calls for spent in plan.recorded] == [4]


def test_the_estimate_is_the_recordings_usage_at_the_given_prices(world: World, tmp_path: Path) -> None:
    """Issue 6: a cost bound first."""
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"models": {name: {"input": 3, "output": 15} for name in (HASTY, CAREFUL)}}))
    recast = Recast((), bounds=Bounds(prices=prices))
    plan = planned(world.stage, world.fixture, Wanted((HASTY, CAREFUL), repeats=2), recast, WIRE)
    told = plan.estimate(())
    usage = plan.recorded[0].usage
    assert told.takes == len(rounds(plan.design)) == 6
    assert told.cost == pytest.approx(6 * ((usage.input or 0) * 3 + (usage.output or 0) * 15) / 1e6)
    assert told.most_calls == 6 * 3 * 8
    prices.write_text(json.dumps({"models": {HASTY: {"input": 3, "output": 15}}}))
    with pytest.raises(BadInput, match=CAREFUL):
        planned(world.stage, world.fixture, Wanted((HASTY, CAREFUL), max_cost=1.0), recast, WIRE)
    assert planned(world.stage, world.fixture, Wanted((HASTY, CAREFUL)), recast, WIRE).estimate(()).unpriced == (CAREFUL,)


def test_other_instructions_are_an_arm_of_the_last_model(world: World, tmp_path: Path) -> None:
    """DESIGN 6: the row `candidate with old prompt`; what the file holds is sealed by its digest."""
    old = tmp_path / "OLD.md"
    old.write_text("Be quick.")
    asked = Wanted((HASTY, CAREFUL), instructions=(Instructions("old prompt", old, "AGENTS.md"),))
    plan = planned(world.stage, world.fixture, asked, NOTHING, WIRE)
    assert [arm.name for arm in plan.design.arms] == [HASTY, CAREFUL, f"{CAREFUL} with old prompt"]
    assert plan.files == {f"{CAREFUL} with old prompt": {"AGENTS.md": old}}
    old.write_text("Be slow.")
    assert planned(world.stage, world.fixture, asked, NOTHING, WIRE).design.id != plan.design.id


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Wanted((HASTY, HASTY)), "twice"),
        (Wanted(("latest",)), "latest"),
        (Wanted((CAREFUL,), instructions=(Instructions("x", Path("/nonexistent/x"), "A.md"),)), "cannot read"),
        (Wanted((CAREFUL,), instructions=(Instructions("x", Path(__file__), "../A.md"),)), "no path within the workspace"),
        (Wanted((CAREFUL,), instructions=(Instructions("x", Path(__file__)),)), "names no file of rules"),
        (Wanted((CAREFUL,), changes=(Change(Axis.PARAMETERS, "x", ["model=1"]),)), "not a parameter"),
        (Wanted((CAREFUL,), changes=(Change(Axis.TOOLS, "x", ["a"]), Change(Axis.TOOLS, "x", ["b"]))), "two arms have one name"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_run_is_refused(world: World, wanted: Wanted, said: str) -> None:
    """Before anything is sealed or spent."""
    with pytest.raises(BadInput, match=said):
        planned(world.stage, world.fixture, wanted, NOTHING, WIRE)


def test_a_credential_is_not_sealed(world: World) -> None:
    """Secrets never reach the disk: a design is kept as it is typed."""
    key = "sk-ant-api03-" + "Zk3vQ9xT1mB7wL5nR2cY8dF4gH6jK0pS" * 3
    wanted = Wanted((CAREFUL,), changes=(Change(Axis.AGENT, "agent", ["agent", "--key", key]),))
    with pytest.raises(BadInput, match="holds a credential"):
        planned(world.stage, world.fixture, wanted, NOTHING, WIRE)


def test_an_unpinned_model_is_labelled_where_it_is_allowed(world: World) -> None:
    """DESIGN 5: `--allow-unpinned` labels the take, and the row."""
    plan = planned(world.stage, world.fixture, Wanted(("latest",)), replace(NOTHING, allow_unpinned=True), WIRE)
    assert [(arm.name, arm.unpinned) for arm in plan.design.arms] == [("latest", True), (HASTY, False)]


def test_what_else_changes_a_result_is_part_of_the_design(world: World) -> None:
    """A matrix that is gone on with runs under the same rules, with the same channels live."""
    wanted = Wanted((HASTY, CAREFUL))
    plan = planned(world.stage, world.fixture, wanted, replace(NOTHING, rules=("drop-sampling",)), HostRules(live=("web",)))
    assert plan.design.options == ("--rule drop-sampling", "--live web")
    assert plan.design.id != planned(world.stage, world.fixture, wanted, NOTHING, WIRE).design.id


@pytest.mark.parametrize(("name", "label"), [("bill", "bill"), ("My Fix!", "My-Fix"), ("..", "matrix"), ("ü", "matrix"), ("a/b", "a-b")])
def test_a_fixtures_name_begins_the_id(name: str, label: str) -> None:
    """It becomes part of names of cassettes."""
    assert label_of(name) == label
