"""Which credentials a recording used: kind, place, host, scope where the traffic says it. Never a value; organisations by hash."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from secondtake.cassettes.canonical import Json
from secondtake.cassettes.envelope import UNKNOWN
from secondtake.cassettes.exchange import Channel, Exchange, Fields, Side
from secondtake.cassettes.grants import form_of
from secondtake.cassettes.placeholder import is_placeholder
from secondtake.cassettes.stages import META, unpack
from secondtake.harness.toolcalls import content_of, kept_decoded

if TYPE_CHECKING:
    from secondtake.cassettes.memory import Recorded

_SCOPES = (b"x-oauth-scopes", b"x-accepted-oauth-scopes")
"""GitHub's, in answers (docs.github.com, "Scopes for OAuth apps")."""

_ORGANISATIONS = (b"openai-organization", b"openai-project", b"anthropic-organization-id", b"x-goog-user-project", b"chatgpt-account-id")
_SCOPE_MEMBERS = ("scope", "scopes")
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,200}")
"""RFC 6749 3.3: what one scope may be made of."""

_MOST = 100
"""Scopes listed of one credential."""

_ACCOUNT_CHARACTERS = 12


def used_credentials(cassette: Recorded, meta: Mapping[str, object]) -> Json:
    """Return what was sent and what was got, each once, and which variables and files held one while recording.

    Raises:
        Corrupt: recorded bytes are damaged.
    """
    found: dict[tuple[str, str, str], _Scopes] = {}
    for seq in sorted(row.seq for row in cassette.rows):
        exchange = cassette.exchange(seq)
        scopes = None
        for kind, place in _places(exchange):
            scopes = _Scopes.of(cassette, exchange) if scopes is None else scopes
            found.setdefault((kind, place, exchange.request.host), _Scopes()).join(scopes)
    variables = meta.get("credentials")
    names = [name for name in variables if isinstance(name, str)] if isinstance(variables, list | tuple) else []
    return {
        "used": [{"kind": kind, "place": place, "host": host, **scopes.told()} for (kind, place, host), scopes in sorted(found.items())],
        "variables": [*sorted(names)],
        "files": [
            {"path": path, "kind": kind, "scope": scope or UNKNOWN}
            for path, kind, scope, _ in (unpack(meta[META]).credentials if META in meta else ())
        ],
    }


def _places(exchange: Exchange) -> Iterator[tuple[str, str]]:
    """What was used as a credential: in the head or target of a request, or in either body of a login. Not what an agent merely quotes."""
    for each in exchange.redactions:
        if each.side is Side.REQUEST and each.place.partition(":")[0] in ("field", "query", "userinfo", "path"):
            yield each.kind, each.place
        elif exchange.channel is Channel.AUTH and each.place.partition(":")[0] == "body":
            yield each.kind, "login" if each.side is Side.RESPONSE else "grant"


class _Scopes:
    """What a credential is good for, as far as the traffic says."""

    def __init__(self) -> None:
        self.scopes: set[str] = set()
        self.accounts: set[str] = set()

    @classmethod
    def of(cls, cassette: Recorded, exchange: Exchange) -> _Scopes:
        made = cls()
        answer = exchange.answer
        fields: Fields = (*exchange.request.fields, *(answer.fields if answer is not None else ()))
        for name, value in fields:
            if name.lower() in _SCOPES:
                made.scopes.update(_split(value.decode("latin-1")))
            elif name.lower() in _ORGANISATIONS and value.strip() and not is_placeholder(value.strip()):
                made.accounts.add(_hashed(value.strip()))
        if exchange.channel is Channel.AUTH:
            sent = content_of(cassette, exchange.request.body, exchange.request.fields, decoded=kept_decoded(exchange, "request"))
            made._form(form_of(exchange.request, sent))
            if answer is not None:
                came = content_of(cassette, answer.body, answer.fields, decoded=kept_decoded(exchange, "response"))
                made._form(form_of(exchange.request, came))
        return made

    def _form(self, members: Mapping[str, str]) -> None:
        for name in _SCOPE_MEMBERS:
            self.scopes.update(_split(members.get(name, "")))

    def join(self, other: _Scopes) -> None:
        self.scopes |= other.scopes
        self.accounts |= other.accounts

    def told(self) -> dict[str, Json]:
        """`unknown` where the traffic does not say."""
        return {
            "scope": [*sorted(self.scopes)[:_MOST]] if self.scopes else UNKNOWN,
            "account": [*sorted(self.accounts)] if self.accounts else UNKNOWN,
        }


def _split(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,]+", text) if _SCOPE.fullmatch(word) and not is_placeholder(word.encode("latin-1", "replace"))]


def _hashed(value: bytes) -> str:
    """An organisation or project is personal: that it is another one can be told, which it is cannot without guessing."""
    return hashlib.sha256(b"secondtake account\0" + value).hexdigest()[:_ACCOUNT_CHARACTERS]
