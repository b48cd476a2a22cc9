"""A request as another model gets it: the model's ID replaced by byte at every place that names one, and nothing else (A-03, A-04).

The body is decoded, cut or spliced by byte range, and coded again as it came; it is never re-serialised. What stays equal:
every other byte of the decoded body, the path, the fields and their order. What follows the body: `content-length`, and
digests of the body, which go. Credentials are not this module's: they stand as the agent sent them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from secondtake.cassettes import adapters, settings, stripping
from secondtake.cassettes.adapters import CallKind, ModelRequest, Patch, Place, PlaceKind
from secondtake.cassettes.casting import Casting, Unmapped
from secondtake.cassettes.content import Opaque, codings, decode, encode
from secondtake.cassettes.errors import BadInput, RecordedError, TooLarge
from secondtake.cassettes.exchange import Fields, Request
from secondtake.cassettes.history import Recorded
from secondtake.cassettes.misses import printable
from secondtake.cassettes.pins import provider_of

RULES: dict[str, str] = {
    Patch.DROP_SAMPLING.value: "temperature, top_p, top_k: several reasoning models refuse them",
    Patch.DROP_THINKING.value: "the request for thinking or effort: its form differs between models",
    Patch.DROP_TOOL_CHOICE.value: "a forced tool: refused by models that always think",
    Patch.DROP_FALLBACKS.value: "other models to ask when the first declines, and a gateway's route",
    Patch.DROP_ADVISOR.value: "tools that consult a second model",
}
"""Named compatibility rules (PROVIDERS A3), each off unless asked for by its name, each use told as `request_patched`."""

DROP_BETA = "drop-beta:"
"""`drop-beta:NAME` takes one beta out of `anthropic-beta`, and out of the `anthropic_beta` list of a body."""

ID_CHARACTERS = 512
"""How much of a requested ID is kept: it is the agent's to choose, and may be anything."""

_DIGESTS = frozenset({b"content-md5", b"content-digest", b"repr-digest", b"digest"})
"""Fields that say what the body was; of another body they would be wrong (RFC 9530)."""


@dataclass(frozen=True, slots=True)
class Swap:
    """What is sent. `request` has the path and the fields to send, `content` the bytes of the body as coded on the wire.

    `requested`: each ID that was named, the asked one first; `forwarded`: the pin asked for it; `pins`: every pin now named,
    `forwarded` first. `notes`: one line for each thing that was changed beyond the IDs, by the name of its rule.
    """

    requested: tuple[str, ...]
    forwarded: str
    request: Request
    content: bytes
    notes: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """Why this request is not sent. `kind`: `unmapped`, `unpinned`, `indirect`, `no-model`, `unreadable`, `held`, `emptied`, `kind`."""

    reason: str
    kind: str


def check_rules(names: Collection[str]) -> frozenset[str]:
    """Return the rules by their names.

    Raises:
        BadInput: one is not known or not written as it should be; the hint lists those that are.
    """
    for name in filter(settings.is_setting, names):
        settings.check(name)
    others = [name for name in names if not settings.is_setting(name)]
    unknown = sorted(name for name in others if name not in RULES and not (name.startswith(DROP_BETA) and name != DROP_BETA))
    if unknown:
        known = f"{', '.join(RULES)}, {DROP_BETA}NAME, {settings.SET}PATH=JSON, {settings.ONLY_TOOLS}NAME,…"
        raise BadInput(f"no rule is called `{unknown[0]}`", hint=f"known: {known}")
    return frozenset(names)


def prepare(
    request: Request,
    content: bytes,
    adapter: str,
    casting: Casting,
    *,
    rules: Collection[str] = frozenset(),
    strip_reasoning: bool = False,
    continues: bool = False,
    own: Collection[str] = frozenset(),
    earlier: Callable[[str], Recorded | None] | None = None,
) -> Swap | Refused:
    """Return the request as another model gets it, or why it is not sent.

    `content`: the body as the agent sent it, content codings and all. `continues`: the history was made by the recorded
    model (`--from-step`), so what is bound to it is refused, or with `strip_reasoning` taken out (A-11); `own` and `earlier`
    are `stripping.strip`'s.

    Raises:
        BadInput: an adapter or a rule that is not known. What is in the request never raises.
    """
    wanted = check_rules(rules)
    names = codings(request.fields)
    plain = _decoded(content, names)
    if isinstance(plain, Refused):
        return plain
    body, notes = plain, list[str]()
    try:
        body, patched = _patched(body, wanted)
        notes += patched
        if continues:
            stripped = stripping.strip(adapter, request, body, allowed=strip_reasoning, own=own, earlier=earlier)
            if isinstance(stripped, stripping.Held):
                return Refused(stripped.reason, "held")
            body = stripped.content
            notes += stripped.notes
    except RecordedError as error:
        return Refused(f"the body cannot be edited: {error}", "unreadable")
    asked = adapters.read_request(adapter, request, body)
    changes = _changes(asked, casting, provider_of(adapter, request.host))
    if isinstance(changes, Refused):
        return changes
    try:
        path = adapters.splice_path(request.path, changes)
        body = adapters.splice(body, changes)
    except RecordedError as error:
        return Refused(f"the model cannot be replaced: {error}", "unreadable")
    sent = content if body == plain else encode(body, names)
    fields, dropped = _fields(request.fields, wanted, len(sent), changed=sent != content)
    notes += dropped
    main = next(place for place in asked.places if place.kind is PlaceKind.MODEL and place.id == asked.model)
    ids = (main.id, *(place.id for place in changes))
    pins = (changes[main], *changes.values())
    return Swap(
        requested=tuple(dict.fromkeys(printable(one, ID_CHARACTERS) for one in ids)),
        forwarded=changes[main],
        request=replace(request, path=path, fields=fields),
        content=sent,
        notes=tuple(notes),
        pins=tuple(dict.fromkeys(pins)),
    )


def _decoded(content: bytes, names: Sequence[str]) -> bytes | Refused:
    try:
        plain = decode(content, names)
    except TooLarge as error:
        return Refused(f"the body cannot be read: {error}", "unreadable")
    if isinstance(plain, Opaque):
        return Refused(f"the body cannot be read: {plain.reason}", "unreadable")
    return plain


def _changes(asked: ModelRequest, casting: Casting, provider: str) -> dict[Place, str] | Refused:
    """The pin for each place, or why there is none. Places that name a model which does not act are left out."""
    if asked.kind not in (CallKind.COMPLETION, CallKind.COUNT):
        return Refused(f"a call of the kind `{asked.kind}` is never sent to another model", "kind")
    changes: dict[Place, str] = {}
    for place in asked.places:
        match place.kind:
            case PlaceKind.AUXILIARY:
                continue
            case PlaceKind.INDIRECT:
                return Refused(f"`{place.path}` ({printable(place.id, 80)}) leaves the choice of the model to the provider", "indirect")
            case _:
                try:
                    changes[place] = casting.pin_for(place.id, provider)
                except RecordedError as error:
                    kind = "unmapped" if isinstance(error, Unmapped) else "unpinned"
                    hint = f"; {error.hint}" if error.hint else ""
                    return Refused(f"`{printable(place.path, 200)}`: {error}{hint}", kind)
    if asked.model is None or not any(place.kind is PlaceKind.MODEL for place in changes):
        faults = "; ".join(fault.message for fault in asked.faults)
        return Refused(f"no place names the model: {faults or 'nothing was found'}", "no-model")
    return changes


def _patched(body: bytes, rules: frozenset[str]) -> tuple[bytes, list[str]]:
    patches = [Patch(name) for name in RULES if name in rules]
    made = adapters.patch(body, patches) if patches else None
    notes = [f"request_patched: {one.patch}: `{one.path}` ({one.size_bytes} bytes)" for one in made.applied] if made else []
    body = made.content if made else body
    betas = _betas(rules)
    if betas:
        body, gone = stripping.without_listed(body, ("anthropic_beta",), betas)
        notes += [f"request_patched: {DROP_BETA}{beta}: `anthropic_beta`" for beta in gone]
    body, changed = settings.applied(body, rules)
    return body, [*notes, *changed]


def _betas(rules: frozenset[str]) -> frozenset[str]:
    return frozenset(name.removeprefix(DROP_BETA) for name in rules if name.startswith(DROP_BETA))


def _fields(fields: Fields, rules: frozenset[str], size_bytes: int, *, changed: bool) -> tuple[Fields, list[str]]:
    """The fields to send, and what was changed in them beyond the length."""
    notes: list[str] = []
    betas = _betas(rules)
    if betas:
        fields, gone = adapters.without_betas(fields, betas)
        notes += [f"request_patched: {DROP_BETA}{beta}: field `anthropic-beta`" for beta in gone]
    if not changed:
        return fields, notes
    kept: list[tuple[bytes, bytes]] = []
    for name, value in fields:
        lower = name.lower()
        if lower in _DIGESTS:
            notes.append(f"digest-dropped: field `{lower.decode('ascii')}` was of the body as the agent sent it")
        else:
            kept.append((name, b"%d" % size_bytes if lower == b"content-length" else value))
    return tuple(kept), notes
