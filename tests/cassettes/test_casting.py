"""Which pin is asked for which ID, and what is refused before anything is sent."""

from __future__ import annotations

from datetime import date

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.casting import MAX_ENTRIES, Casting, Unmapped, Unpinned
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.pins import PinClass

PIN = "claude-opus-4-6"
ARN = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-haiku-4-5-20251001-v1:0"


def test_one_pin_stands_for_every_call() -> None:
    """A-05: `--model PIN`."""
    casting = Casting.of([PIN])
    assert casting.pin_for("claude-sonnet-4-5", "anthropic") == PIN
    assert casting.pin_for("", "anthropic") == PIN


def test_an_id_without_an_entry_is_refused_and_not_guessed() -> None:
    """A-05: `--model REQUESTED=PIN`; the hint says what to add."""
    casting = Casting.of([f"claude-sonnet-4-5={PIN}"])
    assert casting.pin_for("claude-sonnet-4-5", "anthropic") == PIN
    with pytest.raises(Unmapped, match="claude-haiku-4-5") as raised:
        casting.pin_for("claude-haiku-4-5", "anthropic")
    assert raised.value.hint is not None
    assert "--model claude-haiku-4-5=PIN" in raised.value.hint


def test_an_entry_of_its_own_comes_before_the_one_for_all() -> None:
    """A-05: agents use several models; the small one may have another pin."""
    casting = Casting.of([PIN, "small=claude-haiku-4-5-20251001"])
    assert casting.pin_for("small", "anthropic") == "claude-haiku-4-5-20251001"
    assert casting.pin_for("large", "anthropic") == PIN


@pytest.mark.parametrize(
    ("entry", "requested", "pin"),
    [
        (f"opus={ARN}", "opus", ARN),
        (f"{ARN}={PIN}", ARN, PIN),
        ("*=odd=name-2026-01-01", "anything", "odd=name-2026-01-01"),
        ("a=odd=name-2026-01-01", "a", "odd=name-2026-01-01"),
        (f" opus = {PIN} ", "opus", PIN),
    ],
)
def test_the_first_equals_sign_divides(entry: str, requested: str, pin: str) -> None:
    """A-05: ARNs hold colons and slashes; a pin may hold an equals sign."""
    assert Casting.of([entry], allow_unpinned=True).pin_for(requested, "bedrock") == pin


@pytest.mark.parametrize(
    "models", [[], [""], ["="], [f"={PIN}"], ["a="], ["a b"], ["a\nb"], ["a=b\u202e"], ["a=.."], ["."], ["x"] * (MAX_ENTRIES + 1)]
)
def test_what_names_no_model_is_refused(models: list[str]) -> None:
    """A-05: white space, direction marks and nothing at all."""
    with pytest.raises(BadInput):
        Casting.of(models, allow_unpinned=True)


def test_two_pins_for_one_id_are_refused_and_the_same_twice_is_one() -> None:
    """A-05: which of two was meant is not guessed."""
    with pytest.raises(BadInput, match="two pins for every call"):
        Casting.of([PIN, "claude-sonnet-4-6"])
    with pytest.raises(BadInput, match="two pins for `a`"):
        Casting.of([f"a={PIN}", "a=claude-sonnet-4-6"])
    assert dict(Casting.of([PIN, f"*={PIN}"]).pins) == {"*": PIN}


@pytest.mark.parametrize(
    ("model", "provider", "kind", "candidate"),
    [
        ("claude-sonnet-4-5", "anthropic", "an alias", "claude-sonnet-4-5-20250929"),
        ("gpt-5-chat-latest", "openai", "an alias", "gpt-5-2025-08-07"),
        ("openrouter/auto", "gateway", "a router", None),
        ("my-deployment", "azure-openai", "a deployment", None),
    ],
)
def test_what_nothing_holds_is_refused_with_dated_candidates(model: str, provider: str, kind: str, candidate: str | None) -> None:
    """A-05: alias, router and deployment stop at start-up; the error says what to take."""
    with pytest.raises(Unpinned, match=kind) as raised:
        Casting.of([model], providers=[provider])
    assert raised.value.hint is not None
    assert (candidate or "--allow-unpinned") in raised.value.hint


def test_allowed_unpinned_the_take_is_labelled() -> None:
    """A-05: the report prints the class of each model."""
    casting = Casting.of(["claude-sonnet-4-5", f"big={PIN}"], allow_unpinned=True, providers=["anthropic"])
    assert casting.unpinned == ("claude-sonnet-4-5",)
    assert {one.id: one.pin_class for one in casting.labels} == {"claude-sonnet-4-5": PinClass.ALIAS, PIN: PinClass.SNAPSHOT}
    told = casting.described()
    assert told["unpinned"] == ["claude-sonnet-4-5"]
    assert isinstance(told["tables"], dict)
    assert told["tables"].keys() >= {"anthropic", "openai"}
    assert msgpack.unpackb(msgpack.packb(told)) == told


def test_a_pin_held_by_one_of_the_recorded_providers_is_taken_and_refused_at_the_other() -> None:
    """A-05: a casting is judged for all, each call for its own provider."""
    casting = Casting.of([PIN], providers=["openai", "anthropic"])
    assert [one.provider for one in casting.labels] == ["anthropic"]
    assert casting.pin_for("x", "anthropic") == PIN
    with pytest.raises(Unpinned, match="openai"):
        casting.pin_for("x", "openai")


def test_behind_a_gateway_its_own_table_judges() -> None:
    """A-05: a gateway maps any name as it sees fit, so only a dated one holds anything there."""
    with pytest.raises(Unpinned, match="gateway"):
        Casting.of([PIN], gateway="https://gate.example/v1", providers=["anthropic"])
    casting = Casting.of(["claude-haiku-4-5-20251001"], gateway="https://gate.example/v1", providers=["anthropic"])
    assert casting.labels[0].provider == "gateway"
    assert casting.pin_for("x", "anthropic") == "claude-haiku-4-5-20251001"


def test_a_retired_pin_is_labelled_and_not_refused() -> None:
    """A-05: a take whose pin is gone is `retired`, not failed; the provider says so."""
    casting = Casting.of(["gpt-4o-2024-08-06"], on=date(2027, 2, 1))
    assert casting.labels[0].retired
    assert not Casting.of(["gpt-4o-2024-08-06"], on=date(2026, 2, 1)).labels[0].retired


@given(st.lists(st.text(max_size=12), max_size=4))
def test_any_entries_make_a_casting_or_a_bad_input(models: list[str]) -> None:
    """A-05: nothing else comes of what a person types."""
    try:
        casting = Casting.of(models, allow_unpinned=True)
    except BadInput:
        return
    assert all(pin for pin in casting.pins.values())
