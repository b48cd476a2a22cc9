"""Logins that were never recorded are answered by the shape of what is asked."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from secondtake.cassettes.exchange import Request
from secondtake.cassettes.grants import Reply, form_of, grant, made
from secondtake.cassettes.tokens import LIFETIME_S
from tests.cassettes.logins_scene import FORM, JSON, NOW_S, ask, claims_of, form


def token(sent: bytes, *head: str, url: str = "https://auth.example/oauth/token") -> Reply:
    found = made(ask("POST", url, *(head or (FORM,))), sent, now_s=NOW_S)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("authorization_code", {"access_token", "token_type", "expires_in", "refresh_token", "id_token"}),
        ("password", {"access_token", "token_type", "expires_in", "refresh_token", "id_token"}),
        ("urn:ietf:params:oauth:grant-type:device_code", {"access_token", "token_type", "expires_in", "refresh_token", "id_token"}),
        ("client_credentials", {"access_token", "token_type", "expires_in"}),
        ("urn:ietf:params:oauth:grant-type:jwt-bearer", {"access_token", "token_type", "expires_in"}),
        ("urn:ietf:params:oauth:grant-type:token-exchange", {"access_token", "token_type", "expires_in", "issued_token_type"}),
    ],
)
def test_each_grant_has_the_members_of_its_specification(name: str, members: set[str]) -> None:
    """RFC 6749 5.1, 7523, 8628, 8693; OpenID Connect Core 3.1.3.3."""
    reply = token(form(grant_type=name, client_id="c"))
    assert reply.status == 200
    found = json.loads(reply.body)
    assert found.keys() == members
    assert found["expires_in"] == LIFETIME_S < 2**31 / 1000
    for parsed in found.keys() & {"access_token", "id_token"}:
        assert claims_of(found[parsed])["exp"] == NOW_S + LIFETIME_S


def test_an_identity_alone_is_given_where_an_audience_is_asked_for() -> None:
    """Google service accounts: `target_audience`."""
    sent = form(grant_type="urn:ietf:params:oauth:grant-type:jwt-bearer", assertion="a", target_audience="https://r.example")
    assert json.loads(token(sent).body).keys() == {"id_token"}


def test_names_are_written_as_the_client_writes_them() -> None:
    """AWS IAM Identity Center speaks camel case."""
    sent = json.dumps({"grantType": "refresh_token", "refreshToken": "mine", "clientId": "c"}).encode()
    found = json.loads(token(sent, JSON).body)
    assert found.keys() == {"accessToken", "tokenType", "expiresIn", "refreshToken", "idToken"}
    assert found["refreshToken"] == "mine"


@pytest.mark.parametrize(
    ("refresh", "begins"),
    [("sk-ant-ort01-" + "a" * 60, "sk-ant-oat01-"), ("ghr_" + "a" * 40, "ghu_"), ("1//0abc", "ya29."), ("other", "eyJ")],
)
def test_an_access_token_begins_as_those_of_its_refresh_token_do(refresh: str, begins: str) -> None:
    """A client that looks at the beginning sees the kind it expects."""
    found = json.loads(token(form(grant_type="refresh_token", refresh_token=refresh)).body)
    assert found["access_token"].startswith(begins)
    assert found["refresh_token"] == refresh


@pytest.mark.parametrize(
    ("method", "path", "status", "members"),
    [
        ("POST", "/oauth/revoke", 200, set()),
        ("POST", "/oauth2/introspect", 200, {"active", "token_type", "exp", "expires_in"}),
        (
            "POST",
            "/login/device/code",
            200,
            {"device_code", "user_code", "verification_uri", "verification_uri_complete", "expires_in", "interval"},
        ),
        ("GET", "/federation/credentials?role_name=r", 200, {"roleCredentials"}),
        ("GET", "/v2/credentials/a-b", 200, {"RoleArn", "AccessKeyId", "SecretAccessKey", "Token", "Expiration"}),
        ("GET", "/computeMetadata/v1/instance/service-accounts/default/token", 200, {"access_token", "expires_in", "token_type"}),
        ("POST", "/v1/projects/-/serviceAccounts/a@b:generateAccessToken", 200, {"accessToken", "expireTime"}),
        ("POST", "/v1/projects/-/serviceAccounts/a@b:generateIdToken", 200, {"token"}),
        ("GET", "/copilot_internal/v2/token", 200, {"token", "expires_at", "refresh_in"}),
        ("POST", "/app/installations/1/access_tokens", 201, {"token", "expires_at", "permissions"}),
        ("PUT", "/-/user/org.couchdb.user:me", 201, {"ok", "token"}),
        ("POST", "/client/register", 201, {"client_id", "client_id_issued_at", "token_endpoint_auth_method"}),
    ],
)
def test_each_service_is_known_by_its_path(method: str, path: str, status: int, members: set[str]) -> None:
    """DESIGN 5: by shape, never by host."""
    found = made(ask(method, f"https://any.example{path}"), b"", now_s=NOW_S)
    assert found is not None
    assert found.status == status
    assert json.loads(found.body).keys() == members


def test_a_metadata_session_and_a_role_are_words() -> None:
    """IMDSv2: a token in plain text, then the role's name."""
    for path in ("/latest/api/token", "/latest/meta-data/iam/security-credentials/"):
        found = made(ask("GET", f"https://m.example{path}"), None, now_s=NOW_S)
        assert found is not None
        assert found.fields[0] == (b"Content-Type", b"text/plain")
        assert found.body.isascii()


@pytest.mark.parametrize("action", ["AssumeRole", "GetSessionToken", "GetCallerIdentity"])
def test_sts_answers_in_the_form_that_is_asked_for(action: str) -> None:
    """AWS STS: XML by its query protocol, JSON for a client that accepts it."""
    sent = form(Action=action, Version="2011-06-15")
    xml = token(sent, FORM, url="https://sts.example/")
    assert ElementTree.fromstring(xml.body)[0].tag.endswith(f"{action}Result")
    answer = json.loads(token(sent, FORM, "Accept: application/json", url="https://sts.example/").body)
    assert f"{action}Result" in answer[f"{action}Response"]
    assert made(ask("POST", "https://sts.example/", FORM), form(Action="DecodeAuthorizationMessage"), now_s=NOW_S) is None


def test_nobody_is_sent_anywhere_but_to_the_agents_own_listener() -> None:
    """An authorization goes back to loopback with the state; an open redirect it is not."""
    base = "https://auth.example/oauth/authorize?client_id=c&state=s%26t&redirect_uri="
    found = made(ask("GET", base + "http://localhost:8000/cb"), None, now_s=NOW_S)
    assert found is not None
    assert (found.status, found.fields[0][1].endswith(b"&state=s%26t")) == (302, True)
    for elsewhere in ("https://evil.example/", "http://localhost.evil.example/", "http://localhost/%0d%0aA:b", "http://[bad", ""):
        assert made(ask("GET", base + elsewhere), None, now_s=NOW_S) is None


@pytest.mark.parametrize("sent", [b"", b"grant_type=unheard_of", b"\xff\xfe", b"[1]", b"{" * 3000, b"<xml/>", b"&" * 10_000])
def test_what_no_row_describes_is_not_answered(sent: bytes) -> None:
    """A miss is better than a lie; nothing raises."""
    assert made(ask("POST", "https://auth.example/oauth/token", FORM), sent, now_s=NOW_S) is None


def test_a_grant_is_named_in_either_spelling_and_read_from_forms_and_json() -> None:
    """What two requests to one endpoint are told apart by."""
    assert grant(form_of(ask("POST", "https://a.example/t?x=1", JSON), b'{"grantType":"refresh_token","n":1}')) == "refresh_token"
    assert form_of(ask("POST", "https://a.example/t?x=1", FORM), b"a=b") == {"x": "1", "a": "b"}
    coded = Request("POST", "https", "a.example", 443, b"/t", fields=((b"content-encoding", b"gzip"),))
    assert form_of(coded, b"not gzip") == {}
    assert grant({}) is None
