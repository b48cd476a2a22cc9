"""Who plays the part, by whose credential, within which bounds: what was typed, judged against the recording before anything is sent."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from secondtake.cassettes import adapters
from secondtake.cassettes.casting import Casting
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.history import Recorded as Call
from secondtake.cassettes.history import recorded
from secondtake.cassettes.pins import PinClass, provider_of
from secondtake.cassettes.stops import PRICES_BYTES, Price, Stops, read_prices
from secondtake.cassettes.swap import check_rules
from secondtake.harness.results import Used
from secondtake.harness.toolcalls import content_of, kept_decoded, model_exchanges
from secondtake.proxy.credentials import Credentials, FromCommand, FromEnvironment, Learns
from secondtake.proxy.retake import Retake
from secondtake.proxy.signing import Signer

if TYPE_CHECKING:
    from secondtake.cassettes.exchange import Exchange
    from secondtake.cassettes.memory import Recorded
    from secondtake.harness.plan import Bounds, Recast, Stage


@dataclass(frozen=True, slots=True)
class Cast:
    """A retake's cast, ready for the wire."""

    recast: Recast
    retake: Retake
    castings: tuple[Casting, ...]
    """One for a retake, one for each model of a probe."""

    @property
    def labels(self) -> tuple[str, ...]:
        """What must be said wherever the take is compared with another."""
        recast = self.recast
        unpinned = [pin for casting in self.castings for pin in casting.unpinned]
        judged = [pin for casting in self.castings for pin in casting.labels]
        found = [f"unpinned: {pin}" for pin in unpinned]
        found += [f"versioned: {pin.id}" for pin in judged if pin.pin_class is PinClass.VERSIONED]
        found += [f"retired: {pin.id}" for pin in judged if pin.retired]
        if recast.gateway is not None:
            found.append("gateway")
        if recast.from_step:
            found.append(f"from step {recast.from_step}")
        found += [f"rule: {name}" for name in sorted(self.retake.rules)]
        if recast.strip_reasoning:
            found.append("reasoning stripped")
        return tuple(dict.fromkeys(found))

    @property
    def used(self) -> Used:
        """What the calls took so far."""
        stops = self.retake.stops
        priced = self.recast.bounds.prices is not None
        unknown = not priced or bool(stops.unpriced)
        return Used(stops.tokens, stops.uncounted, None if unknown else stops.cost, tuple(stops.unpriced) if priced else (), priced)

    def told(self, redacted: Callable[[str], str]) -> dict[str, object]:
        """What a take says of its cast: plain values, no credential."""
        recast = self.recast
        castings = [
            {**casting.described(), "gateway": redacted(recast.gateway) if recast.gateway is not None else None}
            for casting in self.castings
        ]
        source = "agent"
        if recast.credential_env is not None:
            source = f"env:{recast.credential_env}"
        elif recast.credential_command is not None:
            source = "command"
        elif recast.gateway is not None:
            source = "none"
        return {
            "casting": castings[0] if len(castings) == 1 else castings,
            "rules": sorted(self.retake.rules),
            "strip_reasoning": recast.strip_reasoning,
            "from_step": recast.from_step,
            "stops": {key: value for key, value in self.retake.stops.described().items() if key.startswith("max_")},
            "credential": source,
            "labels": list(self.labels),
        }


@dataclass(frozen=True, slots=True)
class Asking:
    """One place where the recording asks a model."""

    adapter: str
    host: str
    port: int


def asked_in(cassette: Recorded) -> tuple[Asking, ...]:
    """Where the recording asks models, each place once, in order of first asking."""
    found: dict[Asking, None] = {}
    for exchange in model_exchanges(cassette):
        adapter = exchange.adapter
        if adapter is None:
            sent = content_of(cassette, exchange.request.body, exchange.request.fields, decoded=kept_decoded(exchange, "request"))
            adapter = adapters.recognise(exchange.request, sent) if sent is not None else None
        if adapter is not None:
            found[Asking(adapter, exchange.request.host, exchange.request.port)] = None
    return tuple(found)


def cast_of(stage: Stage, cassette: Recorded, recast: Recast, redactor: Learns, *, kind: type[Retake] = Retake) -> Cast:
    """Judge what was asked for. `stage` has the user's own environment.

    Raises:
        BadInput: a model is not held fixed, a rule or a price is not known, there is no such credential, or it is not clear for whom it is.
    """
    places = asked_in(cassette)
    earlier = earlier_in(cassette) if recast.from_step and recast.strip_reasoning else None
    casting = casting_of(stage, recast, places, recast.models)
    stops = stops_of(recast.bounds)
    stops.refuse_unpriced(casting.pins)
    return Cast(
        recast,
        kind(
            casting=casting,
            stops=stops,
            rules=check_rules(recast.rules),
            strip_reasoning=recast.strip_reasoning,
            from_step=recast.from_step,
            gateway=recast.gateway,
            earlier=earlier,
            credentials=credentials_of(stage, recast, places, redactor),
            signer=Signer(stage.environ, redactor=redactor, now=stage.now),
        ),
        (casting,),
    )


def earlier_in(cassette: Recorded) -> Callable[[str], Call | None]:
    """Give a recorded call by the ID of its answer, where the provider held the history. The cassette is read when it is first asked."""

    @cache
    def calls() -> Mapping[str, int]:
        return dict(_identified(cassette))

    def earlier(identity: str) -> Call | None:
        seq = calls().get(identity)
        found = None if seq is None else _recorded(cassette, cassette.exchange(seq))
        return None if found is None else found[1]

    return earlier


def _identified(cassette: Recorded) -> Iterator[tuple[str, int]]:
    for exchange in model_exchanges(cassette):
        if exchange.adapter in _HOLDING and (found := _recorded(cassette, exchange)) is not None:
            yield found[0], exchange.seq


_HOLDING = ("openai-responses", "azure-openai")
"""Formats whose providers hold a history under the ID of an answer."""


def _recorded(cassette: Recorded, exchange: Exchange) -> tuple[str, Call] | None:
    request, answer = exchange.request, exchange.answer
    if answer is None:
        return None
    asked = content_of(cassette, request.body, request.fields, decoded=kept_decoded(exchange, "request"))
    said = content_of(cassette, answer.body, answer.fields, decoded=kept_decoded(exchange, "response"))
    return None if asked is None or said is None else recorded(asked, answer.status, answer.fields, said)


def casting_of(stage: Stage, recast: Recast, places: Sequence[Asking], models: Sequence[str]) -> Casting:
    """Judge the pins by the tables of those whom the recording asks.

    Raises:
        BadInput: one is an alias, a router or a deployment, and `--allow-unpinned` is not given.
    """
    providers = {provider_of(place.adapter, place.host) for place in places}
    return Casting.of(models, allow_unpinned=recast.allow_unpinned, gateway=recast.gateway, providers=providers, on=stage.now().date())


def stops_of(bounds: Bounds) -> Stops:
    """The bounds with their prices.

    Raises:
        BadInput: the price file cannot be read, or is none.
    """
    prices: dict[str, Price] = {}
    if bounds.prices is not None:
        try:
            with bounds.prices.open("rb") as file:
                prices = read_prices(file.read(PRICES_BYTES + 1))
        except OSError as error:
            raise BadInput(f"cannot read the prices in {bounds.prices}: {error.strerror or error}") from error
    return Stops(max_calls=bounds.calls, max_tokens=bounds.tokens, max_seconds=bounds.seconds, max_cost=bounds.cost, prices=prices)


def credentials_of(stage: Stage, recast: Recast, places: Sequence[Asking], redactor: Learns) -> Credentials | None:
    """The credential to put on model calls. None: the agent's own goes where the agent sends it.

    To a gateway the agent's never goes: it is taken off, whether another one is given or not.

    Raises:
        BadInput: the variable is not set, or the recording does not say for which one host the credential is.
    """
    elsewhere = recast.gateway is not None
    if recast.credential_env is not None:
        if not stage.environ.get(recast.credential_env, "").strip():
            raise BadInput(f"the variable {recast.credential_env} (--credential-env) is not set", hint=f"export {recast.credential_env}=…")
        source: FromEnvironment | FromCommand | None = FromEnvironment(recast.credential_env)
    elif recast.credential_command is not None:
        source = FromCommand(recast.credential_command)
    elif elsewhere:
        source = None
    else:
        return None
    hosts = None
    if not elsewhere:
        hosts = frozenset(f"{place.host}:{place.port}" for place in places)
        if len(hosts) != 1:
            said = f"asks models at {len(hosts)} hosts ({', '.join(sorted(hosts))})" if hosts else "asks no model"
            raise BadInput(
                f"a credential is for one host, and the recording {said}",
                hint=f"with --gateway URL, model calls and the credential go there: --gateway {shlex.quote('https://gateway.example/v1')}",
            )
    return Credentials(source, hosts=hosts, environ=stage.environ, redactor=redactor, now=stage.now, elsewhere=elsewhere)
