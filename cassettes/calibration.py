"""What differs from run to run of one scene, and the rules that would forgive exactly that. Pure: requests as compared in, values out.

Two replays are held against the recording and against each other. A rule is proposed where a value is of a shape that nobody writes (a
UUID, a time, random letters and digits), by its place, or, inside a longer text, by the words before it and its shape. What differs in
words is listed, and no rule is proposed for it. A proposal is taken only when it is not too broad (declared.py) and makes no two recorded
requests one (merging.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Final

from secondtake.cassettes.canonical import Document, Json, dump_json, query_pairs, split_target
from secondtake.cassettes.catalogue import Catalogue
from secondtake.cassettes.declared import Declared, too_broad
from secondtake.cassettes.exchange import Answered, Request
from secondtake.cassettes.match import aimed, meaning, normal_key
from secondtake.cassettes.memory import digest_of
from secondtake.cassettes.misses import Miss, printable
from secondtake.cassettes.normalise import Steps
from secondtake.cassettes.served import Serve

MOST_LEAVES = 10_000
"""Places that are looked at in one pair of requests."""

MOST_FIELDS = 200
TOKENS = 4000
"""Words of two texts that are aligned, after equal ends are cut; longer ones get no rule."""

CONTEXT_CHARACTERS = 32
SHOWN_CHARACTERS = 60

type Run = tuple[Asked, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of a replay that was not found by its bytes, redacted. `seq`: the recorded exchange that answered it, or came closest."""

    request: Request
    content: bytes | None
    seq: int | None
    answered: Answered

    @classmethod
    def of(cls, request: Request, content: bytes | None, found: Serve | Miss) -> Asked:
        """From what a player was asked and said."""
        if isinstance(found, Miss):
            return cls(request, content, found.nearest.seq if found.nearest else None, Answered.MISS)
        return cls(request, content, found.seq or None, found.answered)


@dataclass(frozen=True, slots=True)
class Varying:
    """One place that differs. Values are shown on one line; None where the place is absent, or the run never came there."""

    adapter: str | None
    method: str
    host: str
    path: str
    where: str
    """`body`, `query`, `path`, or another part of a request."""
    place: str
    recorded: str | None
    first: str | None
    second: str | None
    between: bool
    """The two replays differ here as well."""
    times: int
    rule: Declared | None
    why_not: str | None
    """Why no rule is proposed."""


class Absent:
    """The value of a place that is not there."""


ABSENT: Final = Absent()

type Side = Json | Absent


@dataclass(slots=True)
class _Seen:
    """All that was seen at one place."""

    adapter: str | None
    request: Request
    where: str
    way: Steps
    values: list[tuple[Side, Side]] = field(default_factory=list)
    """(recorded, live) of every request."""
    by_run: list[dict[int, Side]] = field(default_factory=lambda: [{}, {}])
    """Live values by recorded exchange."""
    ways: set[Steps] = field(default_factory=set)


def varying(catalogues: tuple[Catalogue, Catalogue], runs: tuple[Run, Run]) -> tuple[Varying, ...]:
    """Every place at which the requests of two replays differ from the recorded ones, with a rule where one is safe.

    `catalogues`: one for each run, with its rules (what they forgive does not differ) and its aliases. Raises Corrupt.
    """
    found: dict[tuple[str, str, bytes, str, tuple[object, ...]], _Seen] = {}
    for number, run in enumerate(runs):
        for asked in run:
            if asked.seq is None or len(found) >= MOST_FIELDS:
                continue
            exchange = catalogues[number].cassette.exchange(asked.seq)
            for where, way, recorded, live in _pair(catalogues[number], exchange.request, asked):
                path = split_target(asked.request.path)[0]
                key = (asked.request.method, asked.request.host, path, where, tuple("#" if isinstance(s, int) else s for s in way))
                seen = found.setdefault(key, _Seen(exchange.adapter, asked.request, where, way))
                seen.values.append((recorded, live))
                seen.by_run[number].setdefault(asked.seq, live)
                seen.ways.add(way)
    return tuple(_told(seen) for seen in found.values())


def _pair(catalogue: Catalogue, recorded: Request, asked: Asked) -> Iterator[tuple[str, Steps, Side, Side]]:
    """Yield (where, place, recorded, live) of every difference of one pair."""
    live, rules = asked.request, catalogue.rules
    (path_a, query_a), (path_b, query_b) = split_target(aimed(recorded, rules)), split_target(aimed(live, rules))
    if path_a != path_b:
        yield "path", (), path_a.decode("utf-8", "backslashreplace"), path_b.decode("utf-8", "backslashreplace")
        return
    queries = [dict(query_pairs(query or b"")) for query in (query_a, query_b)]
    for key in sorted(queries[0].keys() | queries[1].keys()):
        sides: list[Side] = [_text(query[key]) if key in query else ABSENT for query in queries]
        if sides[0] != sides[1]:
            yield "query", (_text(key),), sides[0], sides[1]
    kept = catalogue.request_content(recorded)
    if kept is None or asked.content is None:
        return
    before = catalogue.told(meaning(recorded, kept, rules), recorded=True)
    now = catalogue.told(meaning(live, asked.content, rules))
    if before.json is not None and now.json is not None:
        for number, (way, was, has) in enumerate(_leaves(before.json, now.json, ())):
            if number >= MOST_LEAVES:
                return
            yield "body", way, was, has
    elif _opaque(before) != _opaque(now):
        yield "body", (), f"{len(before.content)} bytes", f"{len(now.content)} bytes"


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "backslashreplace")


def _opaque(found: Document) -> object:
    return found.form or found.multipart or found.content


def _leaves(recorded: Side, live: Side, way: Steps) -> Iterator[tuple[Steps, Side, Side]]:
    if isinstance(recorded, dict) and isinstance(live, dict):
        for key in sorted(recorded.keys() | live.keys()):
            yield from _leaves(recorded.get(key, ABSENT), live.get(key, ABSENT), (*way, key))
    elif isinstance(recorded, list) and isinstance(live, list) and len(recorded) == len(live):
        for index, (was, has) in enumerate(zip(recorded, live, strict=True)):
            yield from _leaves(was, has, (*way, index))
    elif type(recorded) is not type(live) or recorded != live:
        yield way, recorded, live


# --- what to say of a place


def _told(seen: _Seen) -> Varying:
    recorded = seen.values[0][0]
    common = sorted(seen.by_run[0].keys() & seen.by_run[1].keys())
    between = any(seen.by_run[0][seq] != seen.by_run[1][seq] for seq in common)
    first = next(iter(seen.by_run[0].values()), ABSENT)
    second = seen.by_run[1].get(common[0], ABSENT) if common else next(iter(seen.by_run[1].values()), ABSENT)
    way = _generalised(seen.ways)
    place = written(way)
    path = printable(_text(split_target(seen.request.path)[0]), 300)
    rule, why_not = _proposed(seen, way, path, between=between)
    was, one, two = _shown(recorded, first, second)
    return Varying(
        adapter=seen.adapter,
        method=seen.request.method,
        host=seen.request.host,
        path=path,
        where=seen.where,
        place=printable(place, 200),
        recorded=was,
        first=one,
        second=two,
        between=between,
        times=len(seen.values),
        rule=rule,
        why_not=why_not,
    )


def _generalised(ways: set[Steps]) -> Steps:
    """One place for several that differ in indexes only."""
    return tuple(None if len(set(each)) > 1 else each[0] for each in zip(*sorted(ways, key=repr), strict=True))


def written(way: Steps) -> str:
    """A place as rules write it."""
    out = ""
    for step in way:
        match step:
            case None:
                out += "[*]"
            case int():
                out += f"[{step}]"
            case _ if step.replace("_", "").replace("-", "").isalnum():
                out += f".{step}" if out else step
            case _:
                out += f'["{step}"]'
    return out


def _shown(*values: Side) -> list[str | None]:
    """Each value on a line, cut to where they begin to differ."""
    texts = [value for value in values if isinstance(value, str)]
    begin = 0
    if len(texts) > 1:
        shortest = min(map(len, texts))
        same = next((index for index in range(shortest) if len({text[index] for text in texts}) > 1), shortest)
        begin = max(0, same - 20) if max(map(len, texts)) > SHOWN_CHARACTERS else 0
    return [_line(value, begin) for value in values]


def _line(value: Side, begin: int) -> str | None:
    match value:
        case Absent():
            return None
        case str():
            piece = value[begin : begin + SHOWN_CHARACTERS]
            return printable(("…" if begin else "") + piece + ("…" if begin + SHOWN_CHARACTERS < len(value) else ""), 200)
        case dict():
            return f"an object of {len(value)}"
        case list():
            return f"an array of {len(value)}"
        case _:
            return dump_json(value).decode()


def _proposed(seen: _Seen, way: Steps, path: str, *, between: bool) -> tuple[Declared | None, str | None]:
    method, host = seen.request.method, seen.request.host
    if seen.where == "path":
        return None, "the path says what is asked for"
    sides = [side for pair in seen.values for side in pair]
    if any(isinstance(side, Absent) for side in sides):
        return None, "it is there in some requests only"
    if not between and not all(shape(side) in TELLING for side in sides if isinstance(side, str) and shape(side)):
        return None, AGREE
    if seen.where == "query":
        if all(isinstance(side, str) and shape(side) for side in sides):
            return _safe(Declared(method, host, path, query=str(way[0])))
        return None, "the values do not look random"
    if not way:
        return None, "the bodies are no JSON, and are compared as they are"
    numbers = all(isinstance(side, int | float) and not isinstance(side, bool) for side in sides)
    if numbers:
        if not between:
            return None, AGREE
        return _safe(Declared(method, host, path, written(way)))
    if not all(isinstance(side, str) for side in sides):
        return None, "more than one value differs here: the conversation went another way"
    texts = [(str(was), str(has)) for was, has in seen.values]
    if all(shape(side) for pair in texts for side in pair):
        rule = Declared(method, host, path, written(way))
        if too_broad(rule) is None:
            return rule, None
    patterns: dict[str, None] = {}
    for was, has in texts:
        for name, pattern in _patterns(was, has):
            if pattern is None:
                return None, "it differs in words, not in random values"
            if not between and name not in TELLING:
                return None, AGREE
            patterns[pattern] = None
    if not patterns:
        return None, "it differs in words, not in random values"
    return _safe(Declared(method, host, path, written(way), text="|".join(patterns)))


def _safe(rule: Declared) -> tuple[Declared | None, str | None]:
    why = too_broad(rule)
    return (rule, None) if why is None else (None, f"a rule would be too broad: {why}")


# --- shapes of values that nobody writes

_SHAPES = (
    ("uuid", r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}", True),
    ("time", r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?", True),
    ("date", r"\d{4}-\d\d-\d\d", False),
    ("clock", r"\d\d:\d\d:\d\d(?:\.\d+)?", False),
    ("count", r"\d+(?:\.\d+)?", False),
    ("hex", r"[0-9a-fA-F]{6,}", False),
    ("mixed", r"(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{6,}", False),
)
"""(name, pattern, whether it says enough without the words before it), the narrowest first."""


TELLING = frozenset(("uuid", "time", "date", "clock"))
"""Shapes of values that come from a clock or from chance even where both replays agree."""

AGREE = "both replays agree on another value than was recorded: it follows from something that changed"


def shape(text: str) -> str | None:
    """The name of the shape that all of a text has, or None: it may be somebody's words."""
    return next((name for name, pattern, _ in _SHAPES if re.fullmatch(pattern, text)), None)


_WORD = re.compile(r"[\w:.+-]*[\w+]|\s+|.", re.DOTALL)


def _patterns(was: str, has: str) -> Iterator[tuple[str, str | None]]:
    """Yield shape and pattern of each span in which two texts differ; no pattern for one that is words."""
    before, after = _WORD.findall(was), _WORD.findall(has)
    start = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    left, right = before[start : len(before) - end], after[start : len(after) - end]
    if max(len(left), len(right)) > TOKENS:
        yield "", None
        return
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        yield _pattern("".join(before[: start + i1]), "".join(left[i1:i2]), "".join(right[j1:j2]))


def _pattern(context: str, was: str, has: str) -> tuple[str, str | None]:
    for name, form, enough in _SHAPES:
        if re.fullmatch(form, was) and re.fullmatch(form, has):
            words = re.split(r"[\n\r]", context)[-1][-CONTEXT_CHARACTERS:]
            words = re.sub(r"^\S*\s(?=.)|^.*\d", "", words) if len(words) == CONTEXT_CHARACTERS else re.sub(r"^.*\d", "", words)
            if not words.strip():
                return name, form if enough else None
            return name, re.escape(words).replace("\\ ", " ") + form + "(?![0-9A-Za-z])"
    return "", None


def proposals(found: Sequence[Varying]) -> tuple[Declared, ...]:
    """The rules of all places, each once."""
    return tuple(dict.fromkeys(one.rule for one in found if one.rule is not None))


def unforgiven(catalogue: Catalogue, run: Run) -> int:
    """How many requests of a run are still not the recorded ones by the rules of `catalogue`. Raises Corrupt."""
    left = 0
    for asked in run:
        if asked.seq is None:
            left += 1
            continue
        recorded = catalogue.cassette.exchange(asked.seq).request
        kept = catalogue.request_content(recorded)
        digest, now = recorded.body.digest, digest_of(asked.content or b"")
        aliases = catalogue.recorded_aliases or catalogue.aliases
        was = normal_key(recorded, kept, digest, rules=catalogue.rules, aliases=aliases)
        left += was != normal_key(asked.request, asked.content, now, rules=catalogue.rules, aliases=catalogue.aliases)
    return left
