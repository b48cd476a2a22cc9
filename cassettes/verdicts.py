"""What came of one live call: which model answered, how well that is proven, and what was not the model's doing (A-06, A-09, A-12)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from secondtake.cassettes import adapters
from secondtake.cassettes.adapters import Json, ModelAnswer, Outcome, Proof, ProviderError, Strength
from secondtake.cassettes.adapters.proof import bare, same
from secondtake.cassettes.adapters.reading import field_value
from secondtake.cassettes.exchange import Ending, Fields
from secondtake.cassettes.misses import printable
from secondtake.cassettes.pins import PinClass, explain, provider_of


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one live call.

    `served`: the models the answer names, each once; `proof`: `strong`, `medium`, `weak`, or `unverified` where nothing is
    named. `mismatch` makes the take invalid. `infrastructure` says what failed that was not the model; such a call is counted
    and shown, and left out of the pass rate. `incomplete`: the answer did not come to its own end. `retired`: the provider does
    not know the pin (any more). `incompatible`: it refuses this request for this model, and says why.
    """

    served: tuple[str, ...]
    proof: str
    mismatch: bool = False
    infrastructure: str | None = None
    incomplete: bool = False
    retired: bool = False
    incompatible: str | None = None
    verified: bool = False
    """The pin served, by more than an echo."""
    reasons: tuple[str, ...] = ()
    retry_after_s: float | None = None
    """What the provider asked to wait, for the one who runs the take again; nothing here waits."""

    def described(self) -> dict[str, object]:
        """What stands on the exchange (A-06): plain values."""
        return {
            "served": list(self.served),
            "proof": self.proof,
            "verified": self.verified,
            "mismatch": self.mismatch,
            "infrastructure": self.infrastructure,
            "incomplete": self.incomplete,
            "retired": self.retired,
            "incompatible": self.incompatible,
            "reasons": list(self.reasons),
        }


UNVERIFIED = "unverified"

ID_CHARACTERS = 512
MAX_SERVED = 64
"""How much of what an answer names is kept: it is the provider's to choose, and may be anything."""


def judge(
    answer: ModelAnswer | None,
    *,
    adapter: str,
    forwarded: str,
    status: int | None,
    fields: Fields = (),
    ended: Ending = Ending.COMPLETE,
    host: str = "",
    pins: Collection[str] = (),
) -> Verdict:
    """Judge one live call.

    `answer`: as read, None where none could be. `status`: None when no answer came. `host`: where it was sent; an echo from a
    host that may map any name proves little, and an unknown one is such. `pins`: every pin the request named, when more than
    `forwarded`.
    """
    asked = tuple(dict.fromkeys((forwarded, *pins)))
    if status is None:
        why = _no_answer(ended)
        return Verdict((), UNVERIFIED, infrastructure=why, incomplete=True, reasons=(why,))
    if answer is None:
        failed = f"{status} from the provider" if status in (408, 429) or status >= 500 else None
        unread = f"the answer ({status}) could not be read"
        return Verdict((), UNVERIFIED, infrastructure=failed, incomplete=True, reasons=(unread,), retry_after_s=_retry_after(fields))
    proof = adapters.prove(adapter, host, asked, answer)
    twins = _twins(adapter, host, asked, proof)
    came = adapters.outcome(status, answer)
    cut = not answer.complete and answer.error is None and status < 400
    infrastructure = _infrastructure(answer, status, came, ended)
    return Verdict(
        served=tuple(dict.fromkeys(printable(one.model, ID_CHARACTERS) for one in proof.served[:MAX_SERVED])),
        proof=_strength(proof),
        mismatch=proof.verdict is adapters.Verdict.MISMATCH,
        infrastructure=infrastructure,
        incomplete=cut or (answer.error is not None and answer.error.in_stream),
        retired=came is Outcome.RETIRED,
        incompatible=_said(answer, status) if came is Outcome.INCOMPATIBLE else None,
        verified=proof.verdict is adapters.Verdict.VERIFIED and not twins,
        reasons=tuple(printable(reason) for reason in (*proof.reasons, *twins)),
        retry_after_s=_retry_after(fields),
    )


def _strength(proof: Proof) -> str:
    return UNVERIFIED if proof.strength is Strength.NONE else str(proof.strength)


def _twins(adapter: str, host: str, asked: Collection[str], proof: Proof) -> tuple[str, ...]:
    """A dated name for an alias says which model it is. For an ID that is a snapshot itself it is a second snapshot (PROVIDERS A4):
    nothing says that the two are one model, so it verifies nothing, and contradicts nothing."""
    provider = provider_of(adapter, host)
    named = {bare(one.model): one.model for one in proof.served}
    found = []
    for pin in asked:
        others = [model for name, model in named.items() if name != bare(pin) and same(pin, model)]
        if others and explain(pin, provider).pin_class in (PinClass.CONTENT, PinClass.SNAPSHOT):
            found.append(f"`{others[0]}` is a dated twin of `{pin}`: both are snapshots, and nothing says that they are one")
    return tuple(found)


def _no_answer(ended: Ending) -> str:
    match ended:
        case Ending.TIMEOUT:
            return "no answer in time"
        case Ending.TLS_FAILED:
            return "no trusted connection to the provider"
        case Ending.CLIENT_LEFT:
            return "the agent left before an answer came"
        case _:
            return "no answer: the connection failed"


def _infrastructure(answer: ModelAnswer, status: int, came: Outcome, ended: Ending) -> str | None:
    if came is not Outcome.INFRASTRUCTURE:
        return None
    if answer.error is not None:
        where = "in the stream" if answer.error.in_stream else str(status)
        return f"{where}: {_told(answer.error)}"
    if status >= 400:
        return f"{status} from the provider"
    if ended is Ending.CLIENT_LEFT:
        return "the agent left before the answer ended"
    return f"the answer was cut before its own end ({ended})"


def _said(answer: ModelAnswer, status: int) -> str:
    return f"{status}: {_told(answer.error)}" if answer.error is not None else str(status)


def _told(error: ProviderError) -> str:
    return f"{printable(error.type, 80)}: {printable(error.message, 200)}"


def _retry_after(fields: Fields) -> float | None:
    for name, scale in ((b"retry-after-ms", 1000.0), (b"retry-after", 1.0)):
        value = field_value(fields, name)
        if value is not None and value.strip().isdigit() and len(value) < 12:
            return int(value) / scale
    return None


def moved(calls: Iterable[tuple[str, Verdict]]) -> dict[str, tuple[str, ...]]:
    """The IDs that were answered under more than one full name in one take, with those names: they moved while it ran.

    `calls`: the ID that was forwarded, and what came of it. A name that only repeats the ID is no second one.
    """
    names: dict[str, dict[str, str]] = {}
    for forwarded, verdict in calls:
        for model in verdict.served:
            name = bare(model)
            if name != bare(forwarded) and same(forwarded, model):
                names.setdefault(forwarded, {}).setdefault(name, model)
    return {forwarded: tuple(found.values()) for forwarded, found in names.items() if len(found) > 1}


_OF_A_CALL = ("step", "requested", "forwarded", "proof", "mismatch", "infrastructure")


def of_a_call(details: Mapping[str, object]) -> dict[str, Json]:
    """What an event says of a call that was live in a retake, from `Exchange.details`; nothing of any other."""
    call = details.get("model_call")
    return {key: cast(Json, call[key]) for key in _OF_A_CALL if key in call} if isinstance(call, Mapping) else {}


def invalid(verdicts: Mapping[int, Verdict]) -> tuple[int, ...]:
    """The exchanges (by number) at which another model than the pin answered; any makes the take invalid, not failed."""
    return tuple(seq for seq, verdict in sorted(verdicts.items()) if verdict.mismatch)
