"""When a retake stops asking: at the wire, whatever the agent wants (DESIGN 5).

A rule trips before a call is sent, never in one: a call that has begun is read to its end, so the last one may go past a
bound by its own size. What is not known is never taken for nothing: a call whose price or usage cannot be told is shown as
unknown, and under a bound on cost or tokens it is the last one.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from secondtake.cassettes.adapters import Usage
from secondtake.cassettes.errors import BadInput

MILLION = 1_000_000
PRICES_BYTES = 1024 * 1024
"""A price file."""


class Rule(StrEnum):
    """Which rule tripped."""

    CALLS = "max-calls"
    TOKENS = "max-tokens"
    SECONDS = "max-seconds"
    COST = "max-cost"


@dataclass(frozen=True, slots=True)
class Price:
    """What one model costs, per million tokens, in the unit of the file. None: not given, so unknown where it is needed."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


@dataclass(frozen=True, slots=True)
class Tripped:
    """A rule that was reached. `used` and `limit` are in the rule's own unit: calls, tokens, seconds, money."""

    rule: Rule
    limit: float
    used: float
    message: str


@dataclass(slots=True)
class Stops:
    """The bounds of one retake, and what has been used of them. None: no bound. One writer; not thread safe.

    `tokens` counts input (cached or not) and output. `seconds` run from `began_us`, the clock of `before`.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None
    max_cost: float | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)
    began_us: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    """Of the calls whose price is known."""
    unpriced: list[str] = field(default_factory=list)
    """Models whose calls have no known cost, each once."""
    uncounted: int = 0
    """Calls whose answer did not say, or did not finish saying, how many tokens it took."""
    _open: int = 0

    def __post_init__(self) -> None:
        for name in ("max_calls", "max_tokens", "max_seconds", "max_cost"):
            bound = getattr(self, name)
            if bound is not None and not (bound >= 0 and math.isfinite(bound)):
                raise BadInput(f"`--{name.replace('_', '-')}` must not be negative: {bound}")

    def refuse_unpriced(self, pins: Mapping[str, str] | tuple[str, ...] | list[str]) -> None:
        """Say before anything is sent that a bound on cost cannot be kept.

        Raises:
            BadInput: `max_cost` is given, and one of the pins has no price.
        """
        if self.max_cost is None:
            return
        names = pins.values() if isinstance(pins, Mapping) else pins
        missing = [pin for pin in dict.fromkeys(names) if pin not in self.prices]
        if missing:
            raise BadInput(
                f"--max-cost cannot be kept: the price of {', '.join(missing)} is unknown",
                hint='--prices FILE with [models."ID"] input, output (per million tokens)',
            )

    def before(self, now_us: int) -> Tripped | None:
        """Whether another call may not be sent: the first rule that has been reached."""
        if self.max_calls is not None and self.calls >= self.max_calls:
            return Tripped(Rule.CALLS, self.max_calls, self.calls, f"--max-calls {self.max_calls}: {self.calls} were made")
        if self.max_tokens is not None:
            if self.tokens >= self.max_tokens:
                return Tripped(Rule.TOKENS, self.max_tokens, self.tokens, f"--max-tokens {self.max_tokens}: {self.tokens} were used")
            if self.uncounted:
                why = f"--max-tokens {self.max_tokens}: an answer did not say how many it used, so what is left is unknown"
                return Tripped(Rule.TOKENS, self.max_tokens, self.tokens, why)
        seconds = (now_us - self.began_us) / MILLION
        if self.max_seconds is not None and seconds >= self.max_seconds:
            return Tripped(Rule.SECONDS, self.max_seconds, seconds, f"--max-seconds {self.max_seconds:g}: {seconds:.1f} have passed")
        if self.max_cost is not None:
            if self.cost >= self.max_cost:
                return Tripped(Rule.COST, self.max_cost, self.cost, f"--max-cost {self.max_cost:g}: {self.cost:.4f} were spent")
            if self.unpriced:
                why = f"--max-cost {self.max_cost:g}: what {', '.join(self.unpriced)} cost is unknown"
                return Tripped(Rule.COST, self.max_cost, self.cost, why)
        return None

    def sent(self) -> None:
        """A call is on its way. Told here, calls in parallel cannot all pass the same bound; a caller that does not tell has them
        counted when they end."""
        self.calls += 1
        self._open += 1

    def after(self, usage: Usage, model: str, *, answered: bool = True) -> float | None:
        """Count what a call took, when its answer has ended; return its cost, None where that is unknown.

        `answered`: False where the provider refused the call (429, 5xx, 4xx), which takes nothing if it names no tokens.
        """
        if self._open:
            self._open -= 1
        else:
            self.calls += 1
        if not answered and usage.input is None and usage.output is None:
            return 0.0
        counted = usage.input is not None and usage.output is not None and not usage.partial
        self.tokens += (usage.input or 0) + (usage.output or 0)
        if not counted:
            self.uncounted += 1
        spent = cost(usage, self.prices.get(model)) if counted else None
        if spent is None:
            if model not in self.unpriced:
                self.unpriced.append(model)
            return None
        self.cost += spent
        return spent

    def described(self) -> dict[str, object]:
        """What a take says of its bounds and their use: plain values."""
        return {
            "max_calls": self.max_calls,
            "max_tokens": self.max_tokens,
            "max_seconds": self.max_seconds,
            "max_cost": self.max_cost,
            "calls": self.calls,
            "tokens": self.tokens,
            "uncounted": self.uncounted,
            "cost": None if self.unpriced else self.cost,
            "known_cost": self.cost,
            "unpriced": list(self.unpriced),
        }


def cost(usage: Usage, price: Price | None) -> float | None:
    """What one call cost; None where a price or a count that it needs is unknown. Cached tokens are part of `input`."""
    if price is None or usage.input is None or usage.output is None:
        return None
    read, written = usage.cache_read or 0, usage.cache_write or 0
    if (read and price.cache_read is None) or (written and price.cache_write is None):
        return None
    fresh = max(usage.input - read - written, 0)
    total = fresh * price.input + usage.output * price.output + read * (price.cache_read or 0) + written * (price.cache_write or 0)
    return total / MILLION


def read_prices(content: bytes) -> dict[str, Price]:
    """Read a price file: TOML or JSON, `models."ID"` with `input`, `output`, and where there is a cache `cache_read`, `cache_write`.

    Raises:
        BadInput: not such a file; the message says where.
    """
    if len(content) > PRICES_BYTES:
        raise BadInput(f"a price file of more than {PRICES_BYTES} bytes")
    try:
        text = content.decode("utf-8-sig")
        raw = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"the price file is neither TOML nor JSON: {error}") from None
    models = raw.get("models") if isinstance(raw, dict) else None
    if not isinstance(models, dict):
        raise BadInput("the price file has no `models`", hint='[models."ID"] input = 3.0, output = 15.0 (per million tokens)')
    return {name: _price(name, entry) for name, entry in models.items()}


def _price(name: str, entry: object) -> Price:
    if not isinstance(entry, dict):
        raise BadInput(f"the price of `{name}` is no table", hint="input = 3.0, output = 15.0 (per million tokens)")
    unknown = entry.keys() - {"input", "output", "cache_read", "cache_write"}
    if unknown:
        raise BadInput(f"the price of `{name}` has `{min(map(str, unknown))}`; known are input, output, cache_read, cache_write")
    found: dict[str, float] = {}
    for key, value in entry.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not (value >= 0 and math.isfinite(value)):
            raise BadInput(f"the price of `{name}`: `{key}` is no number of zero or more")
        found[key] = float(value)
    if not {"input", "output"} <= found.keys():
        raise BadInput(f"the price of `{name}` needs `input` and `output`")
    return Price(found["input"], found["output"], found.get("cache_read"), found.get("cache_write"))
