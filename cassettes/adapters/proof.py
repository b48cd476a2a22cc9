"""Which model answered, and how well that is proven (PROVIDERS A5, A-06); and how a live call came out (A-12)."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from secondtake.cassettes.adapters.base import ModelAnswer, Served
from secondtake.cassettes.adapters.recognition import family_of


class Strength(StrEnum):
    """How much the answer's own word is worth."""

    STRONG = "strong"
    """The provider names who sampled, or gave a fuller name than was asked."""
    MEDIUM = "medium"
    """The vendor's own host names the model, or a fingerprint stands beside an echo."""
    WEAK = "weak"
    """An echo of the name asked for."""
    NONE = "none"
    """No model is named."""


class Verdict(StrEnum):
    VERIFIED = "verified"
    MISMATCH = "mismatch"
    UNVERIFIED = "unverified"
    """Nothing, or only an echo: never counted as verified."""


@dataclass(frozen=True, slots=True)
class Proof:
    verdict: Verdict
    strength: Strength
    served: tuple[Served, ...]
    reasons: tuple[str, ...]


class Outcome(StrEnum):
    """How a model call came out, for what counts in an experiment."""

    ANSWERED = "answered"
    INFRASTRUCTURE = "infrastructure"
    """429, 5xx, a time-out, a cut stream: not the model's doing."""
    INCOMPATIBLE = "incompatible"
    """The provider refuses this request for this model (parameters, betas, context, tools)."""
    RETIRED = "retired"
    """The provider no longer, or never, knew this ID."""


_GEOGRAPHY = re.compile(r"^(?:us-gov|us|eu|apac|au|jp|ca|global)\.(?=[a-z0-9-]+\.)")
_VENDOR = re.compile(r"^(?:(?:anthropic|amazon|meta|mistral|cohere|openai|google)\.|[a-z0-9._-]+/)")
_NUMBERED = re.compile(r"-v\d+(?::\d+(?::\d+k)?)?$")
_DATED = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|\d{4}|\d{3}|\d{2}-\d{2})$")


def bare(identity: str) -> str:
    """An ID without what platforms put around it: resource prefixes, geography, vendor, `-vN:M`, `@` for `-`."""
    name = identity.rpartition("/models/")[2].removeprefix("models/").lower()
    name = _VENDOR.sub("", _GEOGRAPHY.sub("", name))
    return _NUMBERED.sub("", name).replace("@", "-")


def same(asked: str, served: str) -> bool:
    """Whether an answer from `served` may be one from `asked`: equal, or the dated form of it, as platforms spell them."""
    a, b = bare(asked), bare(served)
    return a == b or (b.startswith(a) and _DATED.fullmatch(b[len(a) :]) is not None)


def prove(adapter: str, host: str, asked: Collection[str], answer: ModelAnswer) -> Proof:
    """Judge who served against the IDs that were forwarded (the pin; its like in fallbacks and advisors).

    Any named model that is none of them is a mismatch, whatever else was named. A deployment's name cannot be compared
    with the model behind it: what Azure names is shown, and stays unverified unless the pin names that model.
    """
    served = answer.served
    foreign = [one for one in served if not any(same(pin, one.model) for pin in asked)]
    if adapter == "azure-openai" and foreign and all(one.role == "answer" for one in foreign):
        return Proof(Verdict.UNVERIFIED, Strength.WEAK, served, ("a deployment's name says nothing of the model behind it",))
    if foreign:
        shorter = [one for one in foreign if any(same(one.model, pin) for pin in asked)]
        if len(shorter) < len(foreign):
            names = ", ".join(f"{one.model} ({one.where})" for one in foreign if one not in shorter)
            return Proof(Verdict.MISMATCH, Strength.STRONG, served, (f"answered by {names}",))
        return Proof(Verdict.UNVERIFIED, Strength.WEAK, served, ("a shorter name than the pin's was given back",))
    if not served:
        return Proof(Verdict.UNVERIFIED, Strength.NONE, served, ("the answer names no model",))
    strength, reason = _strength(adapter, host, asked, answer)
    return Proof(Verdict.UNVERIFIED if strength is Strength.WEAK else Verdict.VERIFIED, strength, served, (reason,))


def _strength(adapter: str, host: str, asked: Collection[str], answer: ModelAnswer) -> tuple[Strength, str]:
    places = {one.where.partition("[")[0] for one in answer.served}
    family = family_of(host)
    fuller = any(one.role == "answer" and bare(one.model) not in {bare(pin) for pin in asked} for one in answer.served)
    if "trace.promptRouter.invokedModelId" in places or "remote_model" in places:
        return Strength.STRONG, "the router names whom it invoked"
    if adapter in ("gateway", "ollama") or family in ("", "gateway", "ollama"):
        if any(signal.detail.startswith("x-litellm-model-id") for signal in answer.signals):
            return Strength.MEDIUM, "the gateway names the deployment that served"
        return Strength.WEAK, "an echo, from a host that may map any name"
    if "usage.iterations" in places:
        return Strength.STRONG, "`usage.iterations` names who sampled"
    if "modelVersion" in places:
        return Strength.STRONG, "`modelVersion`"
    if adapter in ("anthropic", "vertex", "bedrock"):
        return Strength.MEDIUM, "the message's `model`"
    if fuller:
        return Strength.STRONG, "a dated name was given back for the one asked"
    if any(signal.kind == "fingerprint" for signal in answer.signals):
        return Strength.MEDIUM, "an echo beside a `system_fingerprint`"
    return Strength.WEAK, "an echo of the name asked for"


def outcome(status: int, answer: ModelAnswer) -> Outcome:
    """How a live call came out. An answer whose own end was seen is complete, however the socket ended."""
    error = answer.error
    if status in (408, 429) or status >= 500 or (error is not None and error.infrastructure):
        return Outcome.INFRASTRUCTURE
    if status >= 400 or error is not None:
        unknown = status == 404 or (error is not None and ("not_found" in error.type or "NOT_FOUND" in error.type))
        gone = error is not None and re.search(r"model|deployment", error.message + error.type, re.IGNORECASE) is not None
        return Outcome.RETIRED if unknown and gone else Outcome.INCOMPATIBLE
    if answer.complete:
        return Outcome.ANSWERED
    return Outcome.INFRASTRUCTURE
