"""When a retake stops asking."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.adapters import Usage
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.stops import Price, Rule, Stops, cost, read_prices

PRICES = {"m": Price(3.0, 15.0, 0.3, 3.75), "plain": Price(1.0, 2.0)}
TOOK = Usage(input=1000, output=100)


def test_without_a_bound_nothing_trips() -> None:
    """Issue 3.5: all bounds are off unless given."""
    stops = Stops()
    for _ in range(100):
        stops.after(Usage(), "m")
    assert stops.before(10**15) is None


def test_calls_are_counted_when_they_are_sent() -> None:
    """Issue 3.5: parallel calls cannot all pass the same bound."""
    stops = Stops(max_calls=2)
    stops.sent()
    stops.sent()
    tripped = stops.before(0)
    assert tripped is not None
    assert (tripped.rule, tripped.limit, tripped.used, tripped.message) == (Rule.CALLS, 2, 2, "--max-calls 2: 2 were made")
    stops.after(TOOK, "m")
    stops.after(TOOK, "m")
    assert stops.calls == 2


def test_calls_of_which_the_start_was_not_told_are_counted_when_they_end() -> None:
    """Issue 3.5: none goes uncounted."""
    stops = Stops(max_calls=1)
    assert stops.before(0) is None
    stops.after(TOOK, "m")
    assert stops.before(0) is not None


def test_a_bound_of_zero_lets_nothing_out() -> None:
    """Issue 3.5: the first call is refused."""
    for stops in (Stops(max_calls=0), Stops(max_tokens=0), Stops(max_seconds=0), Stops(max_cost=0, prices=PRICES)):
        assert stops.before(0) is not None


def test_tokens_of_both_sides_count_and_the_last_call_is_read_to_its_end() -> None:
    """Issue 3.5: trips before the next call, never in one."""
    stops = Stops(max_tokens=2000)
    stops.after(TOOK, "m")
    assert stops.before(0) is None
    stops.after(TOOK, "m")
    tripped = stops.before(0)
    assert tripped is not None
    assert (tripped.rule, tripped.used) == (Rule.TOKENS, 2200)


def test_seconds_run_from_the_beginning() -> None:
    """Issue 3.5: the clock is the caller's."""
    stops = Stops(max_seconds=1.5, began_us=1_000_000)
    assert stops.before(2_499_999) is None
    tripped = stops.before(2_500_000)
    assert tripped is not None
    assert tripped.rule is Rule.SECONDS


def test_cost_is_the_sum_of_what_is_known() -> None:
    """Issue 3.5: cached tokens are part of the input, at their own price."""
    stops = Stops(max_cost=0.01, prices=PRICES)
    spent = stops.after(Usage(input=1000, output=100, cache_read=600, cache_write=200), "m")
    assert spent == pytest.approx((200 * 3 + 100 * 15 + 600 * 0.3 + 200 * 3.75) / 1e6)
    assert stops.before(0) is None
    stops.after(Usage(input=3000, output=100), "m")
    tripped = stops.before(0)
    assert tripped is not None
    assert tripped.rule is Rule.COST


@pytest.mark.parametrize(
    ("usage", "model"),
    [
        (TOOK, "unheard-of"),
        (Usage(input=1000), "m"),
        (Usage(output=10), "m"),
        (Usage(), "m"),
        (Usage(input=1000, output=100, partial=True), "m"),
        (Usage(input=1000, output=100, cache_read=1), "plain"),
        (Usage(input=1000, output=100, cache_write=1), "plain"),
    ],
)
def test_what_is_unknown_is_never_taken_for_nothing(usage: Usage, model: str) -> None:
    """Issue 3.5: unknown prices are shown as unknown; under a bound on cost such a call is the last."""
    stops = Stops(max_cost=100, prices=PRICES)
    assert stops.after(usage, model) is None
    assert stops.described()["cost"] is None
    tripped = stops.before(0)
    assert tripped is not None
    assert f"what {model} cost is unknown" in tripped.message


def test_unknown_usage_ends_a_bound_on_tokens() -> None:
    """Issue 3.5: a stream without usage says nothing of what is left."""
    stops = Stops(max_tokens=10_000)
    stops.after(Usage(), "m")
    tripped = stops.before(0)
    assert tripped is not None
    assert "did not say" in tripped.message


def test_a_refused_call_takes_a_call_and_nothing_else() -> None:
    """A-12: a 429 has no usage, and costs none."""
    stops = Stops(max_tokens=10, max_cost=1, prices=PRICES)
    assert stops.after(Usage(), "unheard-of", answered=False) == 0.0
    assert stops.before(0) is None
    assert (stops.calls, stops.unpriced) == (1, [])


def test_a_bound_on_cost_without_prices_is_refused_before_anything_is_sent() -> None:
    """Issue 3.5: what cannot be kept is not promised."""
    Stops(prices={}).refuse_unpriced({"*": "m"})
    Stops(max_cost=1, prices=PRICES).refuse_unpriced(["m"])
    with pytest.raises(BadInput, match="price of x, y is unknown"):
        Stops(max_cost=1, prices=PRICES).refuse_unpriced({"*": "x", "a": "m", "b": "y", "c": "x"})


@pytest.mark.parametrize("bound", [-1, math.nan, math.inf])
@pytest.mark.parametrize("name", ["max_calls", "max_tokens", "max_seconds", "max_cost"])
def test_a_bound_is_zero_or_more(name: str, bound: float) -> None:
    """Issue 3.5: a negative bound is a slip, not an instruction."""
    with pytest.raises(BadInput, match=f"--{name.replace('_', '-')}"):
        Stops(**{name: bound})  # type: ignore[arg-type]


class TestPrices:
    TOML = b'[models."m"]\ninput = 3\noutput = 15.0\ncache_read = 0.3\n'
    JSON = b'\xef\xbb\xbf {"models": {"m": {"input": 3, "output": 15.0, "cache_read": 0.3}}}'

    @pytest.mark.parametrize("content", [TOML, JSON])
    def test_a_price_file_is_toml_or_json(self, content: bytes) -> None:
        """Issue 3.5: per million tokens, in whatever money."""
        assert read_prices(content) == {"m": Price(3.0, 15.0, 0.3)}

    @pytest.mark.parametrize(
        ("content", "why"),
        [
            (b"x", "neither TOML nor JSON"),
            (b"\xff", "neither TOML nor JSON"),
            (b"{" * 5000, "neither TOML nor JSON"),
            (b"{}", "no `models`"),
            (b"[m]\ninput = 1", "no `models`"),
            (b"[models]\nm = 3", "no table"),
            (b"[models.m]\ninput = 1", "needs `input` and `output`"),
            (b"[models.m]\ninput = 1\noutput = -1", "no number"),
            (b"[models.m]\ninput = true\noutput = 1", "no number"),
            (b"[models.m]\ninput = nan\noutput = 1", "no number"),
            (b'[models.m]\ninput = "1"\noutput = 1', "no number"),
            (b"[models.m]\ninput = 1\noutput = 1\ncached = 1", "`cached`"),
            (b"#" * (1024 * 1024 + 1), "more than"),
        ],
    )
    def test_what_is_no_price_file_says_where(self, content: bytes, why: str) -> None:
        """Issue 3.5: a misspelt price is not a price of nothing."""
        with pytest.raises(BadInput, match=why):
            read_prices(content)

    @given(st.binary(max_size=60))
    def test_any_bytes_are_prices_or_a_bad_input(self, content: bytes) -> None:
        """Issue 3.5: the file is the user's, and may be anything."""
        try:
            assert isinstance(read_prices(content), dict)
        except BadInput:
            pass


tokens = st.none() | st.integers(0, 10**6)


@given(st.builds(Usage, input=tokens, output=tokens, cache_read=tokens, cache_write=tokens), st.sampled_from([None, *PRICES.values()]))
def test_a_cost_is_unknown_or_not_negative(usage: Usage, price: Price | None) -> None:
    """Issue 3.5: even where a provider counts more from the cache than it read."""
    spent = cost(usage, price)
    assert spent is None or spent >= 0
    assert spent is not None or price is None or None in (usage.input, usage.output) or price is PRICES["plain"]
