"""Known values, looked for in every form they may be written in.

A set of needles is a value: adding one makes a new set. Searching returns ranges of the content, never the content changed.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from urllib.parse import quote, quote_plus

from secondtake.cassettes.kinds import searchable
from secondtake.cassettes.secrets import Known
from secondtake.cassettes.stretches import Stretches
from secondtake.cassettes.views import LAYERS, locate, views

_RUNS = Stretches(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+/%=~-", 16)

_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=")
_HEX = re.compile(r"u[0-9a-f]{4}")
_WINDOW_BYTES = 512 * 1024
_OVERLAP_MOST = 256 * 1024
_WIDEST = 12
"""Views are made of a window at a time, so that 8 MiB of escapes cost no hundreds of MiB; windows overlap by so many longest forms."""
_DIRECT_BYTES = 4096
"""Content shorter than this is searched without looking for runs first."""


CHANCELESS_BYTES = 16
"""A value from this length on that stands in bytes which are no text stands there because somebody put it there."""

_FEW = 6
"""So many values are looked for one by one faster than through runs: gigabytes a second each."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A range that holds a secret. `value` is the secret itself, for its fingerprint; it never leaves this room's memory."""

    start: int
    stop: int
    kind: str
    value: bytes


def base64_forms(value: bytes) -> set[bytes]:
    """The characters of `value` in base64 that do not depend on its neighbours, at each alignment, in both alphabets."""
    found: set[bytes] = set()
    for lead in range(3):
        whole = base64.b64encode(b"\x00" * lead + value)
        skip = (0, 2, 3)[lead]
        stop = (lead + len(value)) * 8 // 6
        form = whole[skip:stop]
        if len(form) >= 8:
            found.add(form)
            found.add(form.translate(bytes.maketrans(b"+/", b"-_")))
    return found


def written_forms(value: bytes) -> set[bytes]:
    """`value` as it is, as JSON writes it up to three times over (each writer's way), and as URLs do."""
    forms = {value}
    text = value.decode("utf-8", "replace")
    if text.encode() == value:
        for ascii_only, slashed in product((True, False), (True, False)):
            written = text
            for _ in range(LAYERS):
                written = json.dumps(written, ensure_ascii=ascii_only)[1:-1]
                if slashed:
                    written = written.replace("/", "\\/")
                forms |= {written.encode(), _HEX.sub(lambda found: found[0].upper().replace("U", "u"), written).encode()}
    for quoted in (quote(value, safe=""), quote(value), quote_plus(value)):
        forms |= {quoted.encode(), re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), quoted).encode()}
    return forms


class Needles:
    """An immutable set of known values, ready to search with."""

    def __init__(self, known: Iterable[Known] = (), *, like: Needles | None = None) -> None:
        """`like` is a set whose work may be taken over for the values that are in both."""
        values: dict[bytes, Known] = {}
        for one in known:
            if searchable(one.value):
                values.setdefault(one.value, one)
        self.known = values
        self._plain: dict[bytes, Known] = {}
        self._base64: dict[bytes, Known] = {}
        self._forms: dict[bytes, tuple[set[bytes], set[bytes]]] = {}
        for value, one in values.items():
            forms = like._forms.get(value) if like is not None else None
            written, encoded = self._forms[value] = forms or (written_forms(value), base64_forms(value))
            for form in written:
                self._plain.setdefault(form, one)
            for form in encoded:
                self._base64.setdefault(form, one)
        self._in_runs = [form for form in (*self._plain, *self._base64) if _RUNS.all_of(form)]
        self._loose = [form for form in (*self._plain, *self._base64) if not _RUNS.all_of(form)]
        self._long = [one for value, one in values.items() if len(value) >= CHANCELESS_BYTES]
        self.longest = max(map(len, (*self._plain, *self._base64)), default=0)
        """Bytes of the longest form."""

    def __bool__(self) -> bool:
        return bool(self.known)

    def find(self, content: bytes) -> list[Hit]:
        """Every place a known value stands in `content`, in any written form and under up to three layers of escapes."""
        if not self.known:
            return []
        hits = self.literal(content)
        overlap = min(_OVERLAP_MOST, self.longest * _WIDEST)
        for begin in range(0, len(content), _WINDOW_BYTES):
            at = max(0, begin - overlap)
            window = content[at : begin + _WINDOW_BYTES]
            for chain in views(window):
                for hit in self.literal(chain[-1].content):
                    start, stop = locate(chain, hit.start, hit.stop)
                    hits.append(Hit(at + start, at + stop, hit.kind, hit.value))
        return hits

    @property
    def some_long(self) -> bool:
        """Whether `verbatim` looks for anything."""
        return bool(self._long)

    def verbatim(self, content: bytes) -> list[Hit]:
        """Where values stand as they are that are too long to stand anywhere by chance: all that is looked for in what is no text."""
        among: Sequence[Known] = self._long
        if len(among) > _FEW and len(content) > _DIRECT_BYTES:
            runs = b"\n".join([content[start:stop] for start, stop in _RUNS.find(content)])
            among = [one for one in among if one.value in runs or not _RUNS.all_of(one.value)]
        hits: list[Hit] = []
        for one in among:
            at = content.find(one.value)
            while at >= 0:
                hits.append(Hit(at, at + len(one.value), one.kind, one.value))
                at = content.find(one.value, at + len(one.value))
        return hits

    def literal(self, content: bytes) -> list[Hit]:
        """As `find`, without looking under escapes. Ranges may overlap."""
        if not self.known:
            return []
        forms = list(self._loose)
        if len(content) <= _DIRECT_BYTES:
            forms += self._in_runs
        else:
            runs = b"\n".join([content[start:stop] for start, stop in _RUNS.find(content)])
            forms += [form for form in self._in_runs if form in runs]
        hits: list[Hit] = []
        for form in forms:
            at = content.find(form)
            while at >= 0:
                stop = at + len(form)
                plain = self._plain.get(form)
                one = plain or self._base64[form]
                hits.append(Hit(at, stop, one.kind, one.value) if plain else _widened(content, at, stop, one))
                at = content.find(form, stop)
        return hits


def _widened(content: bytes, start: int, stop: int, known: Known) -> Hit:
    """One base64 character more on each side: it carries the bits at the edges."""
    if start > 0 and content[start - 1] in _BASE64:
        start -= 1
    if stop < len(content) and content[stop] in _BASE64:
        stop += 1
    return Hit(start, stop, known.kind, known.value)
