"""Which credentials a recording used."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from secondtake.cassettes.exchange import Answer, Channel, Redaction, Request, Side
from secondtake.cassettes.memory import MemoryCassette
from secondtake.cassettes.stages import Staged
from secondtake.harness.envelope.credentials import used_credentials


def used(cassette: MemoryCassette, **meta: object) -> Any:
    """What a cassette tells of credentials."""
    return used_credentials(cassette, meta)


def with_redaction(cassette: MemoryCassette, seq: int, *redactions: Redaction) -> None:
    """Say that something was hidden in an exchange."""
    cassette.exchanges[seq] = replace(cassette.exchanges[seq], redactions=redactions)


def test_kind_place_and_host_are_kept_and_no_value() -> None:
    """DESIGN 6: credentials: availability, kind and scope, no value."""
    cassette = MemoryCassette()
    fields = ((b"x-api-key", b"sk-_2T.key.aaaaaaaaaaaaaxx_"), (b"openai-organization", b"org-of-somebody"))
    answer = Answer(200, fields=((b"X-OAuth-Scopes", b"repo, read:org"),))
    seq = cassette.record(Request("POST", "https", "api.provider.example", 443, b"/v1/x", fields=fields), answer)
    with_redaction(cassette, seq, Redaction(Side.REQUEST, "field:x-api-key", 0, 27, "api-key", "fp"))
    said = used(cassette, credentials=["A_KEY"])
    (one,) = said["used"]
    assert (one["kind"], one["place"], one["host"]) == ("api-key", "field:x-api-key", "api.provider.example")
    assert one["scope"] == ["read:org", "repo"]
    assert len(one["account"][0]) == 12
    assert said["variables"] == ["A_KEY"]
    assert not any(secret in json.dumps(said) for secret in ("org-of-somebody", "aaaaaaaaaaaaa", "fp"))


def test_the_scope_of_a_login_is_read_from_its_bodies() -> None:
    """Issue 5: scope where it can be read from recorded traffic."""
    cassette = MemoryCassette()
    seq = cassette.record(
        Request("POST", "https", "auth.example", 443, b"/oauth/token", fields=((b"content-type", b"application/json"),)),
        Answer(200, fields=((b"content-type", b"application/json"),)),
        sent=b'{"grant_type":"refresh_token","refresh_token":"_2T.abc.aaaaaaaaaaaaaxx_"}',
        received=b'{"access_token":"_2T.abc.bbbbbbbbbbbbbxx_","scope":"user:inference user:profile"}',
        channel=Channel.AUTH,
    )
    with_redaction(
        cassette, seq, Redaction(Side.REQUEST, "body", 0, 9, "oauth-refresh"), Redaction(Side.RESPONSE, "body", 0, 9, "oauth-access")
    )
    assert [(one["kind"], one["place"], one["scope"]) for one in used(cassette)["used"]] == [
        ("oauth-access", "login", ["user:inference", "user:profile"]),
        ("oauth-refresh", "grant", ["user:inference", "user:profile"]),
    ]


def test_what_an_agent_merely_quotes_is_no_credential_in_use() -> None:
    """A key in a prompt, and a cookie of an answer, were not used to get in."""
    cassette = MemoryCassette()
    seq = cassette.record(Request("POST", "https", "api.provider.example", 443, b"/v1/x"), Answer(200))
    with_redaction(
        cassette, seq, Redaction(Side.REQUEST, "body", 0, 9, "api-key"), Redaction(Side.RESPONSE, "field:set-cookie", 0, 9, "cookie")
    )
    assert used(cassette) == {"used": [], "variables": [], "files": []}


def test_a_scope_that_is_not_said_is_unknown() -> None:
    """Issue 5: never left out."""
    cassette = MemoryCassette()
    seq = cassette.record(Request("GET", "https", "web.example", 443, b"/?key=x"), None)
    with_redaction(cassette, seq, Redaction(Side.REQUEST, "query:key", 0, 1, "api-key"))
    (one,) = used(cassette)["used"]
    assert (one["scope"], one["account"]) == ("unknown", "unknown")


def test_a_credential_file_is_there_by_path_kind_and_scope() -> None:
    """DESIGN 4: credential files are never stored: the envelope keeps path, kind and scope."""
    staged = Staged(credentials=((".env", "dotenv", "API_KEY, DB_PASSWORD", 40), ("~/.netrc", "netrc", "", 9)))
    assert used(MemoryCassette(), stage=staged.packed())["files"] == [
        {"path": ".env", "kind": "dotenv", "scope": "API_KEY, DB_PASSWORD"},
        {"path": "~/.netrc", "kind": "netrc", "scope": "unknown"},
    ]
