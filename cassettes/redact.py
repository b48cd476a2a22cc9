"""The one redactor: what enters the store, and a live request before it is compared, passes here.

Returns new values; what it was given is never changed, so the bytes on the wire cannot be. Every placeholder is as long as what it
replaces (placeholder.py). Deterministic for one key and one set of known values, and idempotent. Fails closed: when it cannot say
what a body holds, the body is withheld and marked.

Known values grow: a credential seen in a field, a query or a login answer is looked for anywhere from then on. Secrets are looked for
by place first, so that what is learned in a message is found in the rest of that message.
"""

from __future__ import annotations

import hmac
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from secondtake.cassettes import limits, places
from secondtake.cassettes.content import Decoder, Opaque, codings, decode
from secondtake.cassettes.deltas import hidden, is_stream
from secondtake.cassettes.errors import TooLarge
from secondtake.cassettes.exchange import Answer, Fields, Redaction, Request, Side
from secondtake.cassettes.kinds import BY_NAME, OPAQUE, PREFIX, USED_ONCE, estimated_bits, looks_random, searchable
from secondtake.cassettes.needles import Hit, Needles
from secondtake.cassettes.placeholder import ENTROPY_BITS, collapse, fingerprint, is_placeholder, placed, placeholder, sealed
from secondtake.cassettes.secrets import HEADERS, URL_HEADERS, Known, header_kind
from secondtake.cassettes.settle import merged, settled
from secondtake.cassettes.streams import BINARY, StreamRedactor, binary, media_type

__all__ = ["Known", "RedactedBody", "Redactor", "StreamRedactor", "collapse"]

_NAMES_KEPT = 4096
_HEADS_KEPT = 256
_LEARN_BYTES = 16


@dataclass(frozen=True, slots=True)
class RedactedBody:
    """A body as it may be kept.

    `decoded`: the content codings `codings` were undone, because a secret stood under them; `content` is the decoded bytes and whoever
    serves it applies the codings again or serves it without. Else `content` is as long as what was given, unless it was withheld.
    `withheld` says in one line why nothing is kept; `content` is then a placeholder made of a keyed digest, which is not for serving.
    """

    content: bytes
    redactions: tuple[Redaction, ...] = ()
    decoded: bool = False
    codings: tuple[str, ...] = ()
    withheld: str | None = None

    def described(self, fields: Fields) -> Fields:
        """`fields` as they describe `content`: without the codings that were undone. For matching and decoding, not for serving."""
        return tuple(one for one in fields if one[0].lower() != b"content-encoding") if self.decoded else fields


class Redactor:
    """Hides credentials by place and by value. `key` is the store's: 32 random bytes, kept outside of every cassette.

    Not for several threads at once. `learning=False` keeps the set of known values as it was given.
    """

    def __init__(self, known: Iterable[Known] = (), *, key: bytes, learning: bool = True) -> None:
        self._key = key
        self._learning = learning
        self._needles = self._given = Needles(known)
        self._learned: dict[bytes, Known] = {}
        self._stale = False
        self._kinds: dict[bytes, str | None] = {}
        self._heads: dict[tuple[Fields, Side, str], tuple[Fields, tuple[Redaction, ...]]] = {}
        self._replacements: dict[tuple[str, bytes, bytes], tuple[bytes, str | None]] = {}

    # ---- known values ----

    def learn(self, kind: str, value: bytes, name: str = "") -> None:
        """Look for `value` everywhere from now on. Short values and common words are not; of very many, the newest are."""
        if not self._learning or value in self._given.known:
            return
        seen = self._learned.pop(value, None)
        if seen is None:
            if not searchable(value) or is_placeholder(value):
                return
            self._stale = True
            while len(self._learned) >= limits.LEARNED_VALUES:
                del self._learned[next(iter(self._learned))]
        self._learned[value] = seen or Known(kind, value, name)

    @property
    def needles(self) -> Needles:
        """The values that are known now."""
        if self._stale:
            self._stale = False
            self._heads.clear()
            self._needles = Needles((*self._given.known.values(), *self._learned.values()), like=self._needles)
        return self._needles

    def another(self, *, learning: bool = False) -> Redactor:
        """A redactor for another thread, which knows what this one knows now."""
        made = Redactor(key=self._key, learning=learning)
        made._needles = made._given = self.needles  # a value: both may hold it
        return made

    @property
    def learned(self) -> tuple[Known, ...]:
        """What was learned on the way, the newest last."""
        return tuple(self._learned.values())

    # ---- heads ----

    def request(self, request: Request) -> tuple[Request, tuple[Redaction, ...]]:
        """`request` with fields, trailers, target and host names redacted; the body reference is left alone."""
        return settled(self._request, request)

    def _request(self, request: Request) -> tuple[Request, tuple[Redaction, ...]]:
        side = Side.REQUEST
        hits = list(places.url(request.path))
        for _, hit in hits:
            self._learn_hit(hit, sure=False)
        fields, redactions = self._fields(request.fields, side, "field")
        trailers, more = self._fields(request.trailers, side, "trailer")
        hits += [("path", hit) for hit in self._anywhere(request.path, side)]
        path, at_path = self._apply(request.path, hits, side)
        redactions += more + at_path
        if not redactions:
            return request, ()
        return replace(request, fields=fields, trailers=trailers, path=path), redactions

    def answer(self, answer: Answer) -> tuple[Answer, tuple[Redaction, ...]]:
        """`answer` with fields, interim fields and trailers redacted; the body reference is left alone."""
        return settled(self._answer, answer)

    def _answer(self, answer: Answer) -> tuple[Answer, tuple[Redaction, ...]]:
        side = Side.RESPONSE
        fields, redactions = self._fields(answer.fields, side, "field")
        trailers, more = self._fields(answer.trailers, side, "trailer")
        redactions += more
        interim = []
        for one in answer.interim:
            inner, more = self._fields(one.fields, side, "interim")
            interim.append(replace(one, fields=inner))
            redactions += more
        reason, more = self._apply(answer.reason, [("reason", hit) for hit in self._anywhere(answer.reason, side)], side)
        redactions += more
        if not redactions:
            return answer, ()
        return replace(answer, fields=fields, trailers=trailers, interim=tuple(interim), reason=reason), redactions

    def fields(self, fields: Fields, side: Side, place: str = "trailer") -> tuple[Fields, tuple[Redaction, ...]]:
        """Fields on their own, for example trailers that came last."""
        return settled(lambda given: self._fields(given, side, place), fields)

    def _kind(self, name: bytes) -> str | None:
        try:
            return self._kinds[name]
        except KeyError:
            if len(self._kinds) >= _NAMES_KEPT:
                self._kinds.clear()
            kind = self._kinds[name] = header_kind(name)
            return kind

    def _fields(self, fields: Fields, side: Side, place: str) -> tuple[Fields, tuple[Redaction, ...]]:
        """The same head comes again and again on one connection: it is judged once for one set of known values."""
        if not fields:
            return fields, ()
        _ = self.needles
        kept = self._heads.get((fields, side, place))
        if kept is None:
            kept = self._judged(fields, side, place)
            if len(self._heads) >= _HEADS_KEPT:
                self._heads.clear()
            self._heads[(fields, side, place)] = kept
        return kept

    def _judged(self, fields: Fields, side: Side, place: str) -> tuple[Fields, tuple[Redaction, ...]]:
        found: dict[int, list[tuple[str, Hit]]] = {}
        others: list[int] = []
        for index, (name, value) in enumerate(fields):
            kind = self._kind(name)
            where = f"{place}:{name.decode('latin-1').lower()}"
            if kind is not None:
                hits = list(places.field(name, value, kind))
            else:
                others.append(index)
                hits = [hit for _, hit in places.url(value)] if name.lower() in URL_HEADERS else []
            if hits:
                found[index] = [(where, hit) for hit in hits]
                for hit in hits:
                    self._learn_hit(hit, sure=name.lower() in HEADERS)
        if not self._anywhere(b"\n".join([fields[index][1] for index in others]), side):
            others = [index for index in range(len(fields)) if index not in others]
        else:
            others = list(range(len(fields)))
        for index in others:
            name, value = fields[index]
            more = [(f"{place}:{name.decode('latin-1').lower()}", hit) for hit in self._anywhere(value, side)]
            if more:
                found.setdefault(index, []).extend(more)
        if not found:
            return fields, ()
        kept = list(fields)
        redactions: tuple[Redaction, ...] = ()
        for index, marked in found.items():
            name, value = fields[index]
            value, more_redactions = self._apply(value, marked, side)
            kept[index] = (name, value)
            redactions += more_redactions
        return tuple(kept), redactions

    def _learn_hit(self, hit: Hit, *, sure: bool) -> None:
        """Remember a found value. Unless its place is `sure`, it must look like a credential: a word that is looked for everywhere
        would be cut out of what the agent sees.
        """
        if hit.kind == "basic-credential":
            for part in places.basic_parts(hit.value):
                self.learn("password", part)
        if hit.kind not in USED_ONCE and (looks_random(hit.value) or (sure and hit.kind != "cookie")):
            self.learn(hit.kind, hit.value)

    def _anywhere(self, content: bytes, side: Side) -> list[Hit]:
        """Known values, and on the way out also what shows by its shape that it is a key."""
        hits: list[Hit] = []
        if side is Side.REQUEST:
            hits += places.shaped(content)
            for hit in hits:
                self._learn_hit(hit, sure=True)
        return hits + self.needles.find(content)

    # ---- bodies ----

    def body(self, content: bytes, fields: Fields, side: Side) -> RedactedBody:
        """The body of a message whose head had `fields`, whole. Never raises; what it cannot judge it withholds."""
        return self._closed(self._body, content, fields, side)

    def withhold_auth(self, content: bytes, fields: Fields, side: Side = Side.RESPONSE) -> RedactedBody:
        """The body of a login or token endpoint: the shape stays, no value but a few harmless ones does. Never raises."""
        return self._closed(self._auth_body, content, fields, side)

    def _closed(self, work: Callable[[bytes, Fields, Side], RedactedBody], content: bytes, fields: Fields, side: Side) -> RedactedBody:
        try:
            return work(content, fields, side)
        except TooLarge as error:
            return self._withhold(content, str(error))
        except Exception as error:  # noqa: BLE001  # fail closed, whatever went wrong
            return self._withhold(content, f"the redactor failed: {type(error).__name__}")

    def _withhold(self, content: bytes, why: str) -> RedactedBody:
        return RedactedBody(sealed(hmac.digest(self._key, b"withheld\x00" + content, "sha256")), withheld=why)

    def _plain(self, content: bytes, fields: Fields) -> tuple[bytes, tuple[str, ...]] | RedactedBody | None:
        """The content without codings, and which were undone; None when it is not text; withheld when over a limit."""
        names = codings(fields)
        media = media_type(fields)
        if binary(media):
            return None
        undone = decode(content, names)
        plain = _prefix(content, names) if isinstance(undone, Opaque) else undone
        if plain is None and not binary(b"", content):  # a label that is not true: text all the same
            plain, names = content, ()
        if plain is None:
            return self._withhold(content, "of an unknown or damaged coding, so not searched")
        if binary(media, plain):
            return None
        return plain, names

    def _body(self, content: bytes, fields: Fields, side: Side) -> RedactedBody:
        if not content:
            return RedactedBody(content)
        match self._plain(content, fields):
            case None:
                hits = self.needles.literal(content) if side is Side.REQUEST else self.needles.verbatim(content)
                return RedactedBody(*self._apply(content, [(BINARY, hit) for hit in hits], side))
            case RedactedBody() as withheld:
                return withheld
            case plain, names:
                pass
        kept, redactions = settled(lambda given: self._text_body(given, media_type(fields), side), plain)
        if not redactions:
            return RedactedBody(content)
        return RedactedBody(kept, redactions, decoded=bool(names), codings=names)

    def _text_body(self, plain: bytes, media: bytes, side: Side) -> tuple[bytes, tuple[Redaction, ...]]:
        over: tuple[Redaction, ...] = ()
        if side is Side.RESPONSE and self.needles and is_stream(media, plain):
            plain, over = hidden(plain, self.needles.find, self.replacement)
        hits = [*places.signed_urls(plain), *places.json_fields(plain, served=side is Side.RESPONSE)]
        if side is Side.REQUEST:
            hits += (*places.userinfo_in_text(plain), *places.queries_in_text(plain))
            if media == b"application/x-www-form-urlencoded":
                hits += [hit for _, hit in places.query(plain, 0, len(plain), names=places.FORM)]
            elif media.startswith(b"multipart/"):
                hits += places.multipart_fields(plain)
        for hit in hits:
            self._learn_hit(hit, sure=False)
        hits += self._anywhere(plain, side)
        kept, redactions = self._apply(plain, [("body", hit) for hit in hits], side)
        return kept, over + redactions

    def _auth_body(self, content: bytes, fields: Fields, side: Side) -> RedactedBody:
        if not content:
            return RedactedBody(content)
        match self._plain(content, fields):
            case None:
                return self._withhold(content, "a login's body that is not text")
            case RedactedBody() as withheld:
                return withheld
            case plain, names:
                pass
        if plain.lstrip()[:1] in (b"{", b"["):
            find: Callable[[bytes], Iterable[Hit]] = places.auth_strings
        elif media_type(fields) == b"application/x-www-form-urlencoded" or re.fullmatch(rb"[\w.%+-]+=[^\s<>]*", plain.strip()):
            find = places.form_values
        else:
            return self._withhold(content, "a login's body that is neither JSON nor a form")
        kept, redactions = settled(lambda given: self._auth_text(given, find, side), plain)
        if not redactions:
            return RedactedBody(content)
        return RedactedBody(kept, redactions, decoded=bool(names), codings=names)

    def _auth_text(self, plain: bytes, find: Callable[[bytes], Iterable[Hit]], side: Side) -> tuple[bytes, tuple[Redaction, ...]]:
        hits = list(find(plain))
        for hit in hits:
            self._learn_hit(hit, sure=hit.kind not in ("auth-body", "password") and len(hit.value) >= _LEARN_BYTES)
        hits += self._anywhere(plain, Side.REQUEST)
        return self._apply(plain, [("body", hit) for hit in hits], side)

    def bare(self, content: bytes) -> bytes:
        """Bytes that are no message, with placeholders: a file that is no text, the names in a folder. By shape, and by values that are
        nothing else by chance: a password that is a word stands in many names."""
        apart = content.replace(b"-", b" ")  # names are put together with hyphens: `backup-ghp_…`
        hits = [*places.shaped(content), *places.shaped(apart), *(hit for hit in self.needles.literal(content) if looks_random(hit.value))]
        return self._apply(content, [("bare", hit) for hit in hits], Side.REQUEST)[0] if hits else content

    def streaming(self, fields: Fields = (), side: Side = Side.RESPONSE) -> StreamRedactor:
        """For a body that is too large to hold: known values only, decoded on the way where it has a content coding."""
        seal = hmac.new(self._key, b"withheld\x00", "sha256")
        return StreamRedactor(self.needles, self.replacement, seal, fields=fields, media=media_type(fields), side=side)

    def text(self, text: str) -> str:
        """`text` for a message or a log: the same rules, on one line or many."""
        content = text.encode("utf-8", "surrogatepass")
        hits = [*places.shaped(content), *places.userinfo_in_text(content), *places.signed_urls(content)]
        hits += (*places.queries_in_text(content), *places.json_fields(content, served=False), *places.lines(content))
        hits += self.needles.find(content)
        kept, _ = self._apply(content, [("text", hit) for hit in hits], Side.REQUEST)
        return kept.decode("utf-8", "surrogatepass")

    # ---- putting placeholders in ----

    def replacement(self, hit: Hit, written: bytes) -> tuple[bytes, str | None]:
        """The placeholder for `written`, which stands for `hit.value`, and the fingerprint for the record."""
        known = self._replacements.get((hit.kind, hit.value, written))
        if known is None:
            if len(self._replacements) >= _NAMES_KEPT:
                self._replacements.clear()
            known = self._replacements[(hit.kind, hit.value, written)] = self._replacement(hit, written)
        return known

    def _replacement(self, hit: Hit, written: bytes) -> tuple[bytes, str | None]:
        kind = BY_NAME.get(hit.kind)
        mark = None
        if hit.kind == OPAQUE or (not (kind is not None and kind.guessable) and estimated_bits(hit.value) >= ENTROPY_BITS):
            mark = fingerprint(self._key, hit.kind, hit.value)
        prefix = PREFIX.match(written)
        return placeholder(hit.kind, len(written), prefix=prefix[0] if prefix else b"", mark=mark), mark

    def _apply(self, content: bytes, hits: list[tuple[str, Hit]], side: Side) -> tuple[bytes, tuple[Redaction, ...]]:
        if not hits:
            return content, ()
        already = placed(content)
        starts = [begin for begin, _ in already]
        parts: list[bytes] = []
        redactions: list[Redaction] = []
        at = 0
        found = merged(hits)
        if len(found) > limits.REDACTIONS:
            raise TooLarge(f"more than {limits.REDACTIONS} credentials in one place")
        for place, hit in found:
            before = bisect_right(starts, hit.start) - 1
            if before >= 0 and hit.stop <= already[before][1]:
                continue
            put, mark = self.replacement(hit, content[hit.start : hit.stop])
            parts += (content[at : hit.start], put)
            redactions.append(Redaction(side, place, hit.start, hit.stop, hit.kind, mark))
            at = hit.stop
        parts.append(content[at:])
        return b"".join(parts), tuple(redactions)


def _prefix(content: bytes, names: tuple[str, ...]) -> bytes | None:
    """What a stream that was cut short decodes to; None when it is not of the coding it names at all."""
    decoder = Decoder(names)
    found = b"".join(decoder.feed(content))
    return found or None
