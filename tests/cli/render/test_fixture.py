"""Fixtures as a person reads them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from secondtake.cassettes.envelope import FIELDS, Envelope, Layer, compare, of
from secondtake.cassettes.store import Store
from secondtake.cli.render.fixture import (
    VALUE_CHARACTERS,
    check_fields,
    check_lines,
    check_rows,
    envelope_fields,
    envelope_rows,
    shown_fields,
    shown_lines,
)
from secondtake.harness.fixture import Fixture, load
from secondtake.harness.fixture.checking import Comparison
from tests.harness.fixture.fixtures import folder_of, incident, record


@pytest.fixture(scope="module")
def fixture(tmp_path_factory: pytest.TempPathFactory) -> Fixture:
    """A fixture."""
    root = tmp_path_factory.mktemp("shown")
    store = Store(root / "store")
    record(store, "incident", incident())
    return load(str(folder_of(store, root / "green")), store)


def comparison(fixture: Fixture, recorded: Envelope, now: Envelope) -> Comparison:
    """A comparison of two envelopes."""
    return Comparison(replace(fixture, envelope=recorded), now, compare(recorded, now), ("environment.home",), ("model.requested",))


def test_a_field_that_is_an_object_is_told_member_by_member(fixture: Fixture) -> None:
    """Issue 5: a table by layer, that a person can read."""
    recorded = of({Layer.ENVIRONMENT: {"programs": {"git": "2.39", "node": "20", "go": None}, "cpus": 2}})
    now = of({Layer.ENVIRONMENT: {"programs": {"git": "2.45", "node": "20", "uv": "0.8"}, "cpus": 4}})
    assert list(check_rows(comparison(fixture, recorded, now))) == [
        ["environment", "programs git", "2.39", "2.45"],
        ["environment", "programs go", "null", "(not there)"],
        ["environment", "programs uv", "(not there)", "0.8"],
        ["environment", "cpus", "2", "4"],
    ]


def test_what_is_unknown_on_one_side_is_said(fixture: Fixture) -> None:
    """Issue 5: unknown is no sameness."""
    said = list(check_lines(comparison(fixture, of({}), of({Layer.ENVIRONMENT: {"cpus": 4}}))))
    assert said[0] == "1 field differs: environment"
    assert "not controlled" in said[1]
    assert said[2:] == ["unknown then and now: environment.home", "1 field is told by traffic only: a take compares that"]


def test_a_long_value_is_cut_in_the_table_and_whole_in_the_object(fixture: Fixture) -> None:
    """DESIGN 7: --json tells all."""
    made = comparison(fixture, of({Layer.MODEL: {"parameters": "x" * 500}}), of({}))
    (row,) = check_rows(made)
    assert len(row[2]) == VALUE_CHARACTERS
    fields = check_fields(made)
    assert fields["differences"] == [
        {"layer": "model", "field": "parameters", "recorded": "x" * 500, "now": "unknown", "comparable": False}
    ]
    assert (fields["equal"], fields["layers"]) == (False, ["model"])


def test_an_envelope_is_shown_field_by_field() -> None:
    """All seven layers."""
    rows = list(envelope_rows(of({})))
    assert len(rows) == sum(map(len, FIELDS.values()))
    assert rows[0] == ["repository", "commit", "unknown"]
    assert list(envelope_fields(of({}))) == [str(layer) for layer in Layer]


def test_a_fixture_is_shown_with_its_digest(fixture: Fixture) -> None:
    """Issue 5: the digest is shown by `fixture show`."""
    lines = list(shown_lines(fixture))
    assert lines[0] == "green: claude -p 'make it green'"
    assert f"  digest       {fixture.digest}" in lines
    assert shown_fields(fixture)["digest"] == fixture.digest
    assert shown_fields(fixture)["dir"] == str(Path(fixture.root))
