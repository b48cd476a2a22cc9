"""What a matrix will cost is told before, and never as less than is known."""

from __future__ import annotations

import pytest

from secondtake.cassettes.adapters import Usage
from secondtake.cassettes.stops import Price
from secondtake.harness.matrix.cells import rounds
from secondtake.harness.matrix.estimate import Spent, estimate
from tests.harness.matrix.scenes import design

RECORDED = (Spent("main", 10, Usage(1_000_000, 100_000, 400_000, 100_000), 0), Spent("small", 4, Usage(200_000, 0, 0, 0), 0))
ANY = {arm.name: {"*": arm.model} for arm in design().arms}
PRICE = Price(3.0, 15.0, 0.3, 3.75)


def test_the_recordings_usage_is_priced_by_each_arms_pins() -> None:
    """Issue 6: a cost bound first. Cached tokens at their own price, each requested model at its pin's."""
    pins = {**ANY, "new": {"main": "big", "small": "little"}}
    prices = {arm.model: PRICE for arm in design().arms} | {"big": Price(10, 50, 1, 12.5), "little": Price(1, 5)}
    told = estimate(rounds(design()), RECORDED, pins, prices, attempts=3)
    each = (500_000 * 3 + 100_000 * 15 + 400_000 * 0.3 + 100_000 * 3.75) / 1e6 + 0.2 * 3
    swapped = (500_000 * 10 + 100_000 * 50 + 400_000 * 1 + 100_000 * 12.5) / 1e6 + 0.2 * 1
    assert told.per_take == {"old": pytest.approx(each), "other": pytest.approx(each), "new": pytest.approx(swapped)}
    assert told.cost == pytest.approx(5 * (2 * each + swapped))
    assert (told.takes, told.calls, told.tokens) == (15, 15 * 14, 15 * 1_300_000)
    assert (told.unpriced, told.most_calls, told.most_cost) == ((), None, None)


def test_what_is_unknown_is_said_to_be() -> None:
    """A price that is missing, a recorded answer that did not say, a requested model that no pin is given for."""
    prices = {"old-20260101": PRICE, "new-20260601": PRICE, "x": PRICE}
    told = estimate(rounds(design()), RECORDED, ANY, prices, attempts=1)
    assert told.cost is None
    assert told.unpriced == ("other",)
    silent = (Spent("main", 10, Usage(1, 1, 0, 0), 1),)
    assert estimate(rounds(design()), silent, ANY, prices, attempts=1).unpriced == ("new", "old", "other")
    missing = estimate(rounds(design()), RECORDED, {**ANY, "old": {"main": "x"}}, prices, attempts=1)
    assert missing.unpriced == ("old", "other")


def test_where_no_price_of_a_cache_is_given_its_tokens_count_as_fresh() -> None:
    """An estimate may be too high, not unknown."""
    told = estimate(rounds(design(arms=design().arms[:1])), RECORDED[:1], ANY, {"old-20260101": Price(3, 15)}, attempts=1)
    assert told.per_take["old"] == pytest.approx(3 + 1.5)


def test_the_bound_covers_every_attempt_that_infrastructure_can_cause() -> None:
    """At most means at most."""
    told = estimate(rounds(design()), RECORDED, ANY, {}, attempts=3, calls=40, cost_each=0.5)
    assert (told.most_calls, told.most_cost) == (15 * 3 * 40, 15 * 3 * 0.5)
