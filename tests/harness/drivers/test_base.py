"""The known agents: found by program, told what they lack."""

from __future__ import annotations

from pathlib import Path

import pytest

from secondtake.cassettes.errors import BadInput
from secondtake.harness.drivers import DRIVERS, Driver, driver_for, seeds

PLAIN = Driver(
    "plain", ("plain",), "npm:plain", "1", lambda task: ("plain", task), {"A": "1"}, {"B": "2"}, switches=("S",), seed=(".plain",)
)


@pytest.mark.parametrize("driver", DRIVERS.values(), ids=DRIVERS.keys())
def test_each_driver_says_what_is_needed(driver: Driver) -> None:
    """Issue 4.1: how to start it headless, its package and version; a rules file is relative to workspace or HOME."""
    assert driver.headless("do it")[0] in driver.programs
    assert "do it" in driver.headless("do it")
    registry, _, package = driver.package.partition(":")
    assert registry in {"npm", "pip"}
    assert package
    assert driver.measured[0].isdigit()
    assert all(not name.startswith("/") for name in (*driver.rules, *driver.seed))
    assert DRIVERS[driver.name] is driver


def test_the_page_about_agents_has_each_driver() -> None:
    """docs/agents.md: name and version as they are here."""
    page = (Path(__file__).parents[3] / "docs/agents.md").read_text()
    for driver in DRIVERS.values():
        assert f"| `{driver.name}` | {driver.measured} |" in page, driver.name


def test_no_two_drivers_claim_one_program() -> None:
    """`auto` must not depend on the order of the list."""
    programs = [program for driver in DRIVERS.values() for program in driver.programs]
    assert len(programs) == len(set(programs))


def test_the_driver_is_that_of_the_program_wherever_it_is() -> None:
    """`secondtake record -- /opt/x/claude` is Claude Code too; any other command has none."""
    assert driver_for(["/opt/x/claude", "-p", "x"]) is DRIVERS["claude"]
    assert driver_for(["claude-code-wrapper"]) is None
    assert driver_for(["./my-agent"], "claude") is DRIVERS["claude"]
    assert driver_for(["claude"], "none") is None
    assert driver_for([]) is None
    with pytest.raises(BadInput, match="no driver `x`"):
        driver_for(["claude"], "x")


def test_what_the_person_set_stays() -> None:
    """A driver adds what is missing, and changes nothing."""
    assert PLAIN.told({}, root=False) == {"A": "1"}
    assert PLAIN.told({"A": "mine"}, root=True) == {"B": "2"}
    assert PLAIN.switched({"S": "", "T": "1"}) == {"S": ""}


def test_a_seed_is_what_is_there(tmp_path: Path) -> None:
    """AGENTS 5.22: first-run state."""
    assert seeds(PLAIN, tmp_path) == ()
    (tmp_path / ".plain").mkdir()
    assert seeds(PLAIN, tmp_path) == (".plain",)
