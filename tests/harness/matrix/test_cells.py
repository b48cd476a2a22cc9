"""Which cells are left, and in which order they run."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from secondtake.cassettes.takes import Outcome
from secondtake.harness.matrix.cells import Cell, Named, due, named_cell, once, rounds
from tests.harness.matrix.scenes import design, take_of


def named(cell: Cell, outcome: Outcome, **changes: object) -> Named:
    return Named(f"{cell.arm.name}-{cell.repeat}-{cell.attempt}", take_of(cell, outcome, **changes))


def test_each_round_runs_each_arm_once_in_an_order_of_its_own() -> None:
    """DESIGN 6: interleaved over arms, so that drift hits all alike; and the order is the design's, not chance."""
    made = design(looks=(20,))
    cells = rounds(made)
    assert cells == rounds(design(looks=(20,)))
    assert [cell.warm_up for cell in cells] == [True] * 3 + [False] * 60
    orders = [tuple(cell.arm.name for cell in cells[start : start + 3]) for start in range(3, 63, 3)]
    assert all(sorted(order) == ["new", "old", "other"] for order in orders)
    assert len(set(orders)) >= 4
    assert [cell.repeat for cell in cells[3:]] == [repeat for repeat in range(1, 21) for _ in range(3)]
    assert {order[0] for order in orders} == {"old", "new", "other"}


def test_topping_up_adds_rounds_and_keeps_the_others() -> None:
    """`--repeats 20` tops up."""
    assert rounds(design(looks=(4, 9)))[: 3 + 12] == rounds(design())


def test_a_cell_is_settled_by_its_take() -> None:
    """Issue 6: resumable; done if and only if a closed take says so, whatever it came to."""
    made = design()
    cells = rounds(made)
    takes = [
        named(cell, outcome)
        for cell, outcome in zip(cells, (Outcome.PASS, Outcome.SAME, Outcome.OTHER, Outcome.CONTAMINATED), strict=False)
    ]
    assert due(made, takes) == cells[4:]
    strange = [Named(one.name, replace(one.take, matrix="another")) for one in takes]
    assert due(made, strange) == cells


def test_infrastructure_is_run_again_up_to_the_bound() -> None:
    """DESIGN 6: infrastructure failures are re-run; the bound is the design's."""
    made = design(attempts=3)
    cell = rounds(made)[3]
    takes: list[Named] = []
    attempts = []
    for _ in range(3):
        (left,) = [one for one in due(made, takes) if one.key == cell.key]
        attempts.append(left.attempt)
        takes.append(named(left, Outcome.INFRASTRUCTURE))
    assert attempts == [1, 2, 3]
    assert cell.key not in {one.key for one in due(made, takes)}


def test_an_invalid_take_is_not_run_again() -> None:
    """A retired pin, or another model that answers, stays so."""
    made = design()
    cell = rounds(made)[3]
    assert cell not in due(made, [named(cell, Outcome.INFRASTRUCTURE, invalid="retired: the provider no longer knows it")])


def test_the_name_of_a_take_is_free() -> None:
    """A killed run leaves a cassette that is not closed; a take never overwrites another."""
    made = design()
    cell = replace(rounds(made)[5], attempt=2)
    used: set[str] = set()
    for _ in range(3):
        used.add(named_cell(made, cell, used.__contains__).name)
    assert len(used) == 3
    assert all(name.startswith(f"{made.id}-") for name in used)
    counted = Counter(named_cell(made, cell, lambda _: False).name for cell in rounds(made))
    assert set(counted.values()) == {1}


def test_a_copy_of_a_take_is_not_counted_twice() -> None:
    """An export that was imported again is the same take."""
    cell = rounds(design())[3]
    first, second = named(cell, Outcome.PASS), Named("copy", take_of(cell, Outcome.PASS))
    again = named(replace(cell, attempt=2), Outcome.PASS)
    kept, copies = once([first, second, again])
    assert len(kept) == 2
    assert len(copies) == 1
