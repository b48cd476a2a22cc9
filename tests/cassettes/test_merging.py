"""Rules that would make one request of two."""

from __future__ import annotations

import pytest

from secondtake.cassettes.declared import Declared
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.merging import merged, refuse_merging
from tests.cassettes.test_calibration import UUIDS, catalogue


def test_two_requests_that_differ_by_choice_are_not_made_one() -> None:
    """Issue 4, item 3: a rule that makes two different recorded requests equal is refused, with both and the place."""
    rule = Declared(body="page")
    kept = catalogue({"page": 1, "n": 5}, {"page": 2, "n": 5}, {"page": 3, "n": 6}, more=[rule])
    assert merged(kept) == (1, 2, "body `page`")
    with pytest.raises(BadInput, match="exchanges 1 and 2 of the recording one request"):
        refuse_merging(kept, [rule])


def test_the_same_request_asked_again_with_another_random_value_is_no_harm() -> None:
    """Within a key first in, first out."""
    rule = Declared(body="id")
    kept = catalogue({"id": UUIDS[0]}, {"id": UUIDS[1]}, {"id": UUIDS[1]}, more=[rule])
    assert merged(kept) is None
    refuse_merging(kept, [rule])


def test_a_rule_for_other_requests_costs_nothing() -> None:
    """Keys are made anew for the requests a rule is for, and no other."""
    kept = catalogue({"page": 1}, {"page": 2}, more=[Declared(host="elsewhere.example", body="page")])
    assert not any(kept.declared_for(row) for row in kept.rows)
    assert merged(kept) is None
