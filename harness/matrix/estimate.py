"""What a matrix will likely cost, and at most, before its first call: the recording's own usage at each arm's prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from secondtake.cassettes import adapters
from secondtake.cassettes.adapters import CallKind, Usage
from secondtake.cassettes.stops import Price, cost
from secondtake.harness.matrix.cells import Cell
from secondtake.harness.toolcalls import model_exchanges, read_call, socket_calls

if TYPE_CHECKING:
    from secondtake.cassettes.memory import Recorded
    from secondtake.harness.toolcalls import ModelCall


@dataclass(frozen=True, slots=True)
class Spent:
    """What the recording's calls of one model took."""

    model: str
    calls: int
    usage: Usage
    uncounted: int
    """Answers that did not say."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of the cells that are due. The likely numbers are as if every take went as the recording did."""

    takes: int
    calls: int
    tokens: int
    cost: float | None
    """None: an arm has no known price, or the recording does not say what it used."""
    per_take: Mapping[str, float]
    """By arm, where it is known."""
    unpriced: tuple[str, ...]
    """Arms whose cost is unknown."""
    most_calls: int | None
    """By the fixture's stopping rules, with every cell run as often as infrastructure can make it; None: no rule bounds it."""
    most_cost: float | None


def spent_in(cassette: Recorded) -> tuple[Spent, ...]:
    """Add up what the recorded model calls took, by the model that was asked, in order of first asking.

    Raises:
        Corrupt: recorded bytes are damaged.
    """
    found: dict[str, Spent] = {}
    for call in _calls(cassette):
        if call.request.kind is not CallKind.COMPLETION:
            continue
        model = call.request.model or ""
        before = found.get(model, Spent(model, 0, Usage(0, 0, 0, 0), 0))
        usage = call.answer.usage if call.answer is not None else Usage()
        known = usage.input is not None and usage.output is not None
        found[model] = Spent(model, before.calls + 1, _sum(before.usage, usage), before.uncounted + (not known))
    return tuple(found.values())


def _calls(cassette: Recorded) -> Iterable[ModelCall]:
    for exchange in model_exchanges(cassette):
        call = read_call(cassette, exchange)
        if call is not None:
            if call.answer is None or exchange.answer is None:
                continue
            if adapters.outcome(exchange.answer.status, call.answer) is adapters.Outcome.ANSWERED:
                yield call
        else:
            yield from socket_calls(cassette, exchange)


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        (one.input or 0) + (other.input or 0),
        (one.output or 0) + (other.output or 0),
        (one.cache_read or 0) + (other.cache_read or 0),
        (one.cache_write or 0) + (other.cache_write or 0),
    )


def estimate(
    due: Iterable[Cell],
    recorded: tuple[Spent, ...],
    pins: Mapping[str, Mapping[str, str]],
    prices: Mapping[str, Price],
    *,
    attempts: int,
    calls: int | None = None,
    cost_each: float | None = None,
) -> Estimate:
    """Estimate the cells that are due.

    `pins`: by arm, which pin is asked for a requested model (`*` for every other). `calls` and `cost_each`: the bounds of one take.
    """
    cells = list(due)
    arms = {cell.arm.name for cell in cells}
    per_take = {arm: known for arm in arms if (known := _take(recorded, pins[arm], prices)) is not None}
    unpriced = tuple(sorted(arms - per_take.keys()))
    tries = sum(attempts - cell.attempt + 1 for cell in cells)
    return Estimate(
        len(cells),
        len(cells) * sum(one.calls for one in recorded),
        len(cells) * sum((one.usage.input or 0) + (one.usage.output or 0) for one in recorded),
        None if unpriced else sum(per_take[cell.arm.name] for cell in cells),
        per_take,
        unpriced,
        None if calls is None else tries * calls,
        None if cost_each is None else tries * cost_each,
    )


def _take(recorded: tuple[Spent, ...], pins: Mapping[str, str], prices: Mapping[str, Price]) -> float | None:
    """What one take costs at an arm's prices, if it goes as the recording did."""
    total = 0.0
    for one in recorded:
        pin = pins.get(one.model, pins.get("*"))
        price = None if pin is None or one.uncounted else prices.get(pin)
        known = cost(_plain(one.usage, price), price)
        if known is None:
            return None
        total += known
    return total


def _plain(usage: Usage, price: Price | None) -> Usage:
    """Where a price file says nothing of a cache, its tokens are counted as fresh ones: an estimate may be too high, not unknown."""
    if price is not None and (price.cache_read is None or price.cache_write is None):
        return Usage(usage.input, usage.output)
    return usage
