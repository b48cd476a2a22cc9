"""One credential out, another in, where its provider wants it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import sigv4
from secondtake.cassettes.authorise import OAUTH_BETA, Secret, authorised, read_secret, without_credentials
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.exchange import Fields, Request
from secondtake.cassettes.memory import fields
from secondtake.cassettes.secrets import HEADERS, QUERY, header_kind
from tests.cassettes.logins_scene import NOW_S, jwt

WHEN = datetime.fromtimestamp(NOW_S, UTC)
OLD = "old-credential-Qm9vS2VlcGVyMTIzNDU2Nzg5"
API, OAT = b"sk-ant-api03-TmV3TmV3TmV3TmV3TmV3TmV3TmV3", b"sk-ant-oat01-TmV3TmV3TmV3TmV3TmV3TmV3TmV3"


def call(*head: str, path: bytes = b"/v1/messages", host: str = "api.provider.example") -> Request:
    return Request("POST", "https", host, 443, path, fields=fields("Host: api.provider.example", *head, "User-Agent: agent/1"))


def put(adapter: str, request: Request, value: bytes, *, elsewhere: bool = False) -> Fields:
    return authorised(adapter, request, b"{}", Secret(value), WHEN, elsewhere=elsewhere).fields


@pytest.mark.parametrize(
    ("adapter", "old", "value", "expected"),
    [
        ("anthropic", f"x-api-key: {OLD}", API, (b"x-api-key", API)),
        ("anthropic", f"Authorization: Bearer {OLD}", API, (b"x-api-key", API)),
        ("anthropic", f"X-Api-Key: {OLD}", OAT, (b"Authorization", b"Bearer " + OAT)),
        ("anthropic", f"Authorization: Bearer {OLD}", b"gateway-key-1", (b"Authorization", b"Bearer gateway-key-1")),
        ("anthropic", f"X-Api-Key: {OLD}", b"gateway-key-1", (b"X-Api-Key", b"gateway-key-1")),
        ("openai-chat", f"authorization: Bearer {OLD}", b"sk-new", (b"authorization", b"Bearer sk-new")),
        ("openai-responses", f"authorization: Bearer {OLD}", b"sk-new", (b"authorization", b"Bearer sk-new")),
        ("gateway", f"authorization: Bearer {OLD}", b"sk-or-new", (b"authorization", b"Bearer sk-or-new")),
        ("ollama", "Accept: a", b"k", (b"Authorization", b"Bearer k")),
        ("azure-openai", f"api-key: {OLD}", b"k", (b"api-key", b"k")),
        ("azure-openai", f"api-key: {OLD}", b"eyJh.eyJi.c", (b"Authorization", b"Bearer eyJh.eyJi.c")),
        ("gemini", f"x-goog-api-key: {OLD}", b"AIzaNew", (b"x-goog-api-key", b"AIzaNew")),
        ("gemini", f"x-goog-api-key: {OLD}", b"ya29.new", (b"Authorization", b"Bearer ya29.new")),
        ("vertex", f"authorization: Bearer {OLD}", b"ya29.new", (b"authorization", b"Bearer ya29.new")),
        ("vertex", f"authorization: Bearer {OLD}", b"AIzaNew", (b"x-goog-api-key", b"AIzaNew")),
        ("bedrock", f"authorization: Bearer {OLD}", b"ABSKnew", (b"authorization", b"Bearer ABSKnew")),
    ],
)
def test_each_provider_gets_it_in_its_own_field(adapter: str, old: str, value: bytes, expected: tuple[bytes, bytes]) -> None:
    """PROVIDERS A2; issue 3, item 8: in the place of the old one, and one only."""
    found = put(adapter, call(old), value)
    assert found[1 if old != "Accept: a" else 3] == expected
    assert sum(header_kind(name) is not None for name, _ in found) == 1
    assert OLD not in repr(found)


@pytest.mark.parametrize("name", sorted({*HEADERS, b"x-company-token", b"my-secret"}))
def test_the_old_credential_goes_from_every_field_that_holds_one(name: bytes) -> None:
    """T-K7: one table."""
    request = Request("POST", "https", "h.example", 443, b"/v1/messages", fields=((name, OLD.encode()), (b"accept", b"a")))
    assert without_credentials(request, elsewhere=False).fields == ((b"accept", b"a"),)


@pytest.mark.parametrize("name", sorted({*QUERY, b"key"}))
def test_the_old_credential_goes_from_the_query(name: bytes) -> None:
    """PROVIDERS A2: Gemini's `?key=`; the rest of the query stays, in its order."""
    request = call(path=b"/v1beta/models/m:streamGenerateContent?alt=sse&%s=%s&b=%%20" % (name, OLD.encode()))
    assert without_credentials(request, elsewhere=False).path == b"/v1beta/models/m:streamGenerateContent?alt=sse&b=%20"


def test_a_key_in_a_field_of_any_name_goes() -> None:
    """By what the value looks like; and a query that held nothing else goes with its mark."""
    request = call(
        "X-Whatever: sk-ant-api03-Qm9vS2VlcGVyMTIzNDU2Nzg5MGFiY2RlZg", "Referer: https://u:passw0rd-x@h.example/", path=b"/v1?key=abc"
    )
    assert without_credentials(request, elsewhere=False).fields == fields("Host: api.provider.example", "User-Agent: agent/1")
    assert without_credentials(request, elsewhere=False).path == b"/v1"


PREFIXES = ("sk-ant-api03-", "sk-ant-oat01-", "sk-proj-", "sk-", "sk-or-v1-", "ghp_", "AIza", "ya29.", "gsk_", "hf_", "xoxb-", "AKIA")


@given(st.sampled_from(PREFIXES), st.text("abcdef", min_size=64, max_size=64))
def test_no_kind_of_key_survives_a_change_of_endpoint(prefix: str, tail: str) -> None:
    """DESIGN 5: no credential is sent to any host but the one it is for."""
    path = f"/v1/chat/completions?api_key={prefix}{tail}".encode()
    found = authorised("openai-chat", call(f"Authorization: Bearer {prefix}{tail}", path=path), b"{}", Secret(b"new"), WHEN, elsewhere=True)
    assert tail not in repr(found)


def test_what_names_the_account_stays_at_its_own_endpoint_only() -> None:
    """A new key of another account with the old one's organisation is refused by the provider."""
    request = call(f"authorization: Bearer {OLD}", "openai-organization: org-1", "Openai-Project: p")
    assert len(put("openai-chat", request, b"k")) == 5
    assert put("openai-chat", request, b"k", elsewhere=True) == fields(
        "Host: api.provider.example", "authorization: Bearer k", "User-Agent: agent/1"
    )


def test_the_beta_of_a_login_comes_and_goes_with_it() -> None:
    """PROVIDERS A2: `oauth-2025-04-20`."""
    plain, login = (
        call(f"x-api-key: {OLD}", "anthropic-beta: a,b"),
        call(f"Authorization: Bearer {OLD}", "Anthropic-Beta: a, oauth-2025-04-20,b"),
    )
    assert (b"anthropic-beta", b"a,b," + OAUTH_BETA) in put("anthropic", plain, OAT)
    assert (b"Anthropic-Beta", b"a,b") in put("anthropic", login, API)
    assert (b"Anthropic-Beta", b"a, oauth-2025-04-20,b") in put("anthropic", login, OAT)
    assert put("anthropic", call(), OAT)[-2:] == ((b"Authorization", b"Bearer " + OAT), (b"anthropic-beta", OAUTH_BETA))
    alone = call("anthropic-beta: oauth-2025-04-20")
    assert not any(name.lower() == b"anthropic-beta" for name, _ in put("anthropic", alone, API))


def test_the_account_beside_a_login_is_the_one_its_token_names() -> None:
    """AGENTS 3: Codex with a login sends chatgpt-account-id; in a replay it may have learned a stand-in."""
    token = jwt({"https://api.openai.com/auth": {"chatgpt_account_id": "acc-real"}}).encode()
    request = call(f"authorization: Bearer {OLD}", "chatgpt-account-id: stand-in")
    assert (b"chatgpt-account-id", b"acc-real") in put("openai-responses", request, token)
    assert (b"chatgpt-account-id", b"stand-in") in put("openai-responses", request, b"opaque-token")


SIGNED = (
    "AWS4-HMAC-SHA256 Credential=AKIAOLDOLDOLDOLDOLDO/20260101/us-east-1/bedrock/aws4_request, "
    "SignedHeaders=host;x-amz-date;x-amz-security-token, Signature=" + "0" * 64
)


def test_aws_keys_sign_anew_and_the_old_signature_and_session_are_gone() -> None:
    """A-07, PROVIDERS A2: Bedrock."""
    request = call(
        f"Authorization: {SIGNED}",
        "X-Amz-Date: 20260101T000000Z",
        f"X-Amz-Security-Token: {OLD}",
        f"Cookie: a={OLD}",
        path=b"/model/m/converse",
    )
    keys = sigv4.Credentials("ASIANEWNEWNEWNEWNEWN", "secret", "session")
    found = authorised("bedrock", request, b"{}", Secret(aws=keys), WHEN)
    told = {name.lower(): value for name, value in found.fields}
    assert b"Credential=ASIANEWNEWNEWNEWNEWN/" in told[b"authorization"]
    assert (told[b"x-amz-security-token"], b"cookie" in told, b"user-agent" in told) == (b"session", False, True)
    assert OLD not in repr(found)
    with pytest.raises(BadInput, match="was not signed"):
        authorised("bedrock", call(), b"{}", Secret(aws=keys), WHEN)


def test_a_bearer_on_a_signed_request_takes_the_signature_away() -> None:
    """PROVIDERS A3: prefer a bearer, a swap needs no signature then."""
    request = call(f"Authorization: {SIGNED}", "X-Amz-Date: 20260101T000000Z", f"X-Amz-Security-Token: {OLD}", path=b"/model/m/converse")
    assert put("bedrock", request, b"ABSKnew") == fields(
        "Host: api.provider.example", "Authorization: Bearer ABSKnew", "User-Agent: agent/1"
    )


def test_secrets_are_read_as_helpers_write_them() -> None:
    """A plain token; AWS credential_process; a JSON of a login helper; a web token that says when it ends."""
    ends = WHEN + timedelta(hours=1)
    assert read_secret(b" k-1 \n") == Secret(b"k-1")
    keys = {"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "S", "SessionToken": "T", "Expiration": ends.isoformat()}
    assert read_secret(json.dumps(keys).encode()) == Secret(aws=sigv4.Credentials("A", "S", "T"), expires_s=ends.timestamp())
    assert read_secret(b'{"accessToken":"t","expiresAt":%d}' % (NOW_S * 1000)) == Secret(b"t", expires_s=float(NOW_S))
    token = jwt({"exp": NOW_S}).encode()
    assert read_secret(token).expires_s == NOW_S
    assert read_secret(b'{"token":"%s","expiry":"soon"}' % token).expires_s == NOW_S


@pytest.mark.parametrize("text", [b"", b" \n", b"two words-s3cr3t", b"s3cr3t\r\nX-Evil: 1", b"{s3cr3t", b'{"s3cr3t":1}', b"{" * 5000])
def test_what_is_no_credential_is_refused_without_showing_it(text: bytes) -> None:
    """A line end in a credential would be a field of its own; messages show nothing of it."""
    with pytest.raises(BadInput) as raised:
        read_secret(text)
    assert "s3cr3t" not in str(raised.value)
    assert "s3cr3t" not in repr(Secret(b"s3cr3t", sigv4.Credentials("a", "s3cr3t", "s3cr3t")))
