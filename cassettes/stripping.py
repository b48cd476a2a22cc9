"""What another model cannot go on from, taken out of a recorded history by named rules (A-11, PROVIDERS A3).

With `--from-step N` the first N model calls are played, so what the agent sends afterwards holds thinking, signatures and
cipher text of the recorded model. Another model refuses them, or drops them without a word. Here they are cut by byte range;
nothing is re-serialised. What the live model gave itself in this take (`own`) stays: everything else is foreign, so that what
could not be read counts as foreign.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from secondtake.cassettes import adapters, foreign
from secondtake.cassettes.adapters import HeldKind
from secondtake.cassettes.adapters.reading import loads, string
from secondtake.cassettes.exchange import Request
from secondtake.cassettes.foreign import SKIP_SIGNATURE, Bound, is_own, keys
from secondtake.cassettes.history import REBUILD, Recorded, rebuild
from secondtake.cassettes.json_cuts import cut, ranges
from secondtake.cassettes.json_places import Step, items, splice
from secondtake.cassettes.misses import printable

EMPTIED = "strip-emptied"

RULES: dict[str, str] = {
    **foreign.RULES,
    EMPTIED: "messages of which nothing is left",
    REBUILD: "`previous_response_id` of a recorded answer, replaced by the items it stands for",
}
"""Every rule by its name, as it stands in the take. All come with `--strip-reasoning`; none is used without it."""

_NAMED = 5
"""How many places a refusal names."""

_LISTS = keys("messages.[].content", "contents.[].parts")
_MESSAGES = keys("messages.[]", "contents.[]")


@dataclass(frozen=True, slots=True)
class Stripped:
    """The decoded body without what was foreign. `notes`: one line for each thing that went."""

    content: bytes
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """Why this history cannot be continued."""

    reason: str


def strip(
    adapter: str,
    request: Request,
    content: bytes,
    *,
    allowed: bool,
    own: Collection[str] = frozenset(),
    earlier: Callable[[str], Recorded | None] | None = None,
) -> Stripped | Held:
    """Return the decoded body without what is foreign to the model that goes on; or why it cannot go on.

    `allowed`: `--strip-reasoning` was given; without it anything foreign is refused, and named. `own`: what the live model
    gave in this take (`ownership.Given`). `earlier`: a recorded answer by its ID, so that a
    history which the provider held can be rebuilt.

    Raises:
        NotJson, TooLarge: the body cannot be walked.
    """
    notes: list[str] = []
    if allowed:
        if earlier is not None:
            content, notes = rebuild(content, earlier, lambda identity: is_own(identity, own))
        content, cuts = _cut(content, own)
        notes += cuts
    problem = _problem(adapter, request, content, own, allowed=allowed)
    return Stripped(content, tuple(notes)) if problem is None else Held(problem)


def without_listed(content: bytes, path: tuple[str, ...], names: Collection[str]) -> tuple[bytes, tuple[str, ...]]:
    """Return the body without the strings `names` in the list at `path`, and which were there.

    Raises:
        NotJson, TooLarge: the body cannot be walked.
    """
    content, cuts = cut(content, [(*path, Step.EACH)], lambda _, value: string(loads(value)) in names)
    return content, tuple(str(loads(one.value)) for one in cuts)


def _cut(content: bytes, own: Collection[str]) -> tuple[bytes, list[str]]:
    """What is replaced, in its place; what is cut, with its commas; then the messages of which nothing is left."""
    found = foreign.foreign(content, own)
    notes = [_note(one) for one in found]
    skip = f'"{SKIP_SIGNATURE}"'.encode()
    replaced = [one.item for one in found if one.rule == "skip-thought-signature"]
    going = [one.item for one in found if one.rule != "skip-thought-signature"]
    changes = [(item.value_start, item.stop, skip) for item in replaced]
    content = splice(content, changes + [(start, stop, b"") for start, stop in ranges(going)])
    if going:
        emptied = {item.path[:-2] for item in going}
        emptied &= _empty(content)
        if emptied:
            content, gone = cut(content, _MESSAGES, lambda item, _: item.path in emptied)
            notes += [f"request_patched: {EMPTIED}: `{one.path}`" for one in gone]
    return content, notes


def _note(one: Bound) -> str:
    item = one.item
    return f"request_patched: {one.rule}: `{item.dotted}` ({item.stop - item.value_start} bytes)"


def _empty(content: bytes) -> set[tuple[str | int, ...]]:
    """The messages whose list of parts is empty."""
    return {item.path[:-1] for item in items(content, _LISTS) if content[item.value_start : item.stop].translate(None, b" \t\r\n") == b"[]"}


def _problem(adapter: str, request: Request, content: bytes, own: Collection[str], *, allowed: bool) -> str | None:
    """Why the history cannot be continued by another model, or None."""
    left = [] if allowed else [one for one in foreign.foreign(content, own) if not one.plain]
    if left:
        places = _listed([one.item.dotted for one in left])
        return f"{places}: bound to the recorded model; --strip-reasoning takes such things out and lists each"
    held = adapters.read_request(adapter, request, content).held
    state = [one for one in held if one.kind in _KEPT and not is_own(one.id, own) and _of_the_run(one)]
    if state:
        places = _listed([f"{one.path} ({printable(one.id, 60)})" for one in state])
        return f"{places}: kept by the provider for the recorded run; another run cannot use it"
    sealed = _unknown([one.path for one in held if one.kind not in _KEPT], content, own)
    return f"{_listed(sealed)}: bound to the recorded model, and no rule takes it out" if sealed else None


_KEPT = (HeldKind.STATE, HeldKind.FILE)


def _of_the_run(one: adapters.Held) -> bool:
    """Whether it came to be in the recorded run. What the agent is set up with (vector stores, public files) is there for any run."""
    if one.kind is HeldKind.STATE:
        return True
    if one.path.endswith("vector_store_ids"):
        return False
    return "://" not in one.id or "/files/" in one.id


def _unknown(paths: list[str], content: bytes, own: Collection[str]) -> list[str]:
    """What the adapter says is sealed, and the rules do not know: a safeguard against formats that grow."""
    if not paths:
        return []
    elements = {item.dotted.removeprefix("request."): content[item.value_start : item.stop] for item in items(content, _ELEMENTS)}
    unknown = []
    for path in paths:
        value = next((value for dotted, value in _prefixes(path, elements)), None)
        left = {SKIP_SIGNATURE} if value is None else set(foreign.tokens(loads(value)))
        if value is None or not all(is_own(token, own) for token in left - {SKIP_SIGNATURE}):
            unknown.append(path)
    return unknown


_ELEMENTS = keys("messages.[].content.[]", "messages.[].reasoning_details", "contents.[].parts.[]", "input.[]")


def _prefixes(path: str, elements: dict[str, bytes]) -> list[tuple[str, bytes]]:
    return [(front, elements[front]) for front in (path, path.rpartition(".")[0]) if front in elements]


def _listed(places: list[str]) -> str:
    more = len(places) - _NAMED
    return ", ".join(places[:_NAMED]) + (f" and {more} more" if more > 0 else "")
