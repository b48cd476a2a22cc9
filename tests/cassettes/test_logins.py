"""Logins play offline: issue 3, item 8. Each scene is recorded through the redactor and answered to a client that parses its tokens."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.exchange import Answer, Answered, Channel, Request
from secondtake.cassettes.logins import UNRECORDED, answer_locally
from secondtake.cassettes.memory import MemoryCassette, fields
from secondtake.cassettes.misses import Miss, MissKind
from secondtake.cassettes.placeholder import MARK
from secondtake.cassettes.player import Live, Player, Serve
from secondtake.cassettes.tokens import LIFETIME_S
from tests.cassettes.logins_scene import FORM, JSON, NOW_S, RECORDED_S, Scene, ask, claims_of, form, jwt

OLD_REFRESH = "rt_old-Qm9vS2VlcGVyMTIzNDU2Nzg5MGFiY2RlZmdo"
NEW_REFRESH = "rt_new-ZXJNb3JlU2VjcmV0czk4NzY1NDMyMTBhYmNk"
EMAIL = "somebody.real@company.example"
ACCOUNT = "3f0c2c1e-9a7b-4a52-8d9e-0f6f1f5b7c11"
AUTH_CLAIMS = {"chatgpt_account_id": ACCOUNT, "chatgpt_plan_type": "plus", "groups": [EMAIL]}
ACCESS = jwt(
    {"iss": "https://auth.example", "aud": ["https://api.provider.example/v1"], "iat": RECORDED_S, "exp": RECORDED_S + 3600, "sub": EMAIL}
)
IDENTITY = jwt(
    {"iss": "https://auth.example", "aud": "app_1", "exp": RECORDED_S + 3600, "email": EMAIL, "https://api.openai.com/auth": AUTH_CLAIMS}
)
REFRESH = ask("POST", "https://auth.example/oauth/token", JSON)


def refresh_with(token: str) -> bytes:
    return json.dumps({"client_id": "app_1", "grant_type": "refresh_token", "refresh_token": token, "scope": "openid email"}).encode()


def subscription() -> Scene:
    scene = Scene()
    answer = {"access_token": ACCESS, "refresh_token": NEW_REFRESH, "id_token": IDENTITY, "token_type": "bearer", "expires_in": 3600}
    scene.record(REFRESH, refresh_with(OLD_REFRESH), 200, json.dumps(answer).encode(), JSON)
    return scene


def test_a_subscription_login_refreshes_offline_with_tokens_that_parse() -> None:
    """Issue 3, item 8: subscription login with refresh; C-13: another refresh token than the recorded one."""
    found = subscription().json(REFRESH, refresh_with("rt_mine-0000000000000000000000000000000"))
    assert list(found) == ["access_token", "refresh_token", "id_token", "token_type", "expires_in"]
    assert (found["token_type"], found["expires_in"]) == ("bearer", LIFETIME_S)
    claims = claims_of(str(found["access_token"]))
    assert (claims["iss"], claims["aud"], claims["iat"]) == ("https://auth.example", ["https://api.provider.example/v1"], NOW_S)
    assert claims["exp"] == NOW_S + LIFETIME_S
    identity = claims_of(str(found["id_token"]))
    assert identity["aud"] == "app_1"
    account = identity["https://api.openai.com/auth"]
    assert isinstance(account, dict)
    assert account["chatgpt_plan_type"] == "plus"
    assert len(account["chatgpt_account_id"]) == 36
    assert account["chatgpt_account_id"] != ACCOUNT
    assert len(str(found["access_token"]).rpartition(".")[2]) == len(ACCESS.rpartition(".")[2])


def test_a_refresh_gets_its_own_refresh_token_back() -> None:
    """A login on disk that works must still work after a replay; RFC 6749 6: a server need not give another."""
    mine = "rt_mine-0000000000000000000000000000000"
    assert subscription().json(REFRESH, refresh_with(mine))["refresh_token"] == mine
    assert Scene().json(REFRESH, refresh_with(mine))["refresh_token"] == mine


def test_no_planted_secret_of_a_login_survives_in_the_store_or_in_an_answer() -> None:
    """C-09, and issue 3, item 8: its bytes are never stored."""
    scene = subscription()
    answered = scene.body(REFRESH, refresh_with("rt_mine-0000000000000000000000000000000")).decode()
    signatures = [token.rpartition(".")[2] for token in (ACCESS, IDENTITY)]
    for secret in (OLD_REFRESH, NEW_REFRESH, ACCESS, IDENTITY, EMAIL, ACCOUNT, *signatures, *(t.split(".")[1] for t in (ACCESS, IDENTITY))):
        assert not scene.holds(secret), secret
        assert secret not in answered
    assert MARK.decode() not in answered


def test_a_take_keeps_nothing_of_a_refresh_that_was_answered_for_it() -> None:
    """ADR 6, a take is whole by itself: our own answers are recorded too, and one repeats the live refresh token."""
    mine = "rt_mine-" + "a1B2c3D4" * 5
    sent = refresh_with(mine)
    answered = subscription().body(REFRESH, sent)
    assert mine.encode() in answered
    take = Scene()
    take.record(REFRESH, sent, 200, answered, JSON)
    assert not take.holds(mine)
    assert take.json(REFRESH, refresh_with("rt_other-" + "z9Y8x7W6" * 5)).keys() == json.loads(answered).keys()


def test_what_is_answered_is_the_same_each_time_and_on_each_machine() -> None:
    """DESIGN 4: deterministic; the store's key has no part in it."""
    one, other = subscription(), subscription()
    sent = refresh_with("rt_mine-0000000000000000000000000000000")
    assert one.body(REFRESH, sent) == one.body(REFRESH, sent) == other.body(REFRESH, sent)


def test_an_api_key_needs_no_login() -> None:
    """Issue 3, item 8: API key. Another key than the recorded one, or a dummy, is the same request (C-13)."""
    scene, path = Scene(), "https://api.provider.example/v1/messages"
    call = json.dumps({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}).encode()
    scene.record(ask("POST", path, JSON, "x-api-key: sk-ant-api03-Qm9vS2VlcGVyMTIzNDU2Nzg5MGFiY2RlZg"), call, 200, b"{}", JSON)
    found = scene.play(ask("POST", path, JSON, "x-api-key: secondtake-replay-anthropic-api-key"), call)
    assert isinstance(found, Serve)
    assert (found.answered, found.channel, found.seq) == (Answered.EXACT, Channel.MODEL, 1)


def test_identity_center_roles_play_offline() -> None:
    """Issue 3, item 8: SSO and cloud roles, with the names of AWS' APIs and times in milliseconds."""
    scene = Scene()
    token = ask("POST", "https://oidc.region.example/token", JSON)
    asked = {"clientId": "c", "clientSecret": "cs-Qm9vS2VlcGVyMTIzNDU2Nzg5", "grantType": "refresh_token", "refreshToken": OLD_REFRESH}
    given_ = {"accessToken": "aoaAAAAA" + "Zm9vYmFyMTIzNDU2" * 8, "expiresIn": 28800, "refreshToken": NEW_REFRESH, "tokenType": "Bearer"}
    scene.record(token, json.dumps(asked).encode(), 200, json.dumps(given_).encode(), JSON)
    roles = "https://portal.sso.region.example/federation/credentials?account_id=123456789012&role_name=dev"
    keys = {
        "accessKeyId": "ASIAQWERTYUIOPASDFGH",
        "secretAccessKey": "wJalrXUtnFEMIK7MDENGbPxRfiCYzEXAMPLEKEYx",
        "sessionToken": "IQoJ" + "b3JpZ2luX2Vj9" * 20,
    }
    scene.record(
        ask("GET", roles, "x-amz-sso_bearer_token: " + given_["accessToken"]),  # type: ignore[operator]
        b"", 200, json.dumps({"roleCredentials": {**keys, "expiration": RECORDED_S * 1000}}).encode(), JSON,
    )  # fmt: skip
    again = scene.json(token, json.dumps({**asked, "refreshToken": "mine-111111111111111111"}).encode())
    assert (again["expiresIn"], again["refreshToken"], again["tokenType"]) == (LIFETIME_S, "mine-111111111111111111", "Bearer")
    assert len(str(again["accessToken"])) == len(str(given_["accessToken"]))
    role = scene.json(ask("GET", roles, f"x-amz-sso_bearer_token: {again['accessToken']}"))["roleCredentials"]
    assert isinstance(role, dict)
    assert role["expiration"] == (NOW_S + LIFETIME_S) * 1000
    assert role["accessKeyId"].startswith("ASIA")
    assert [len(role[name]) for name in keys] == [len(value) for value in keys.values()]
    for secret in (*keys.values(), str(given_["accessToken"]), NEW_REFRESH, OLD_REFRESH):
        assert not scene.holds(secret)


STS = ask("POST", "https://sts.region.example/", FORM)
STS_SECRET = "wJalrXUtnFEMIK7MDENGbPxRfiCYzEXAMPLEKEYx"
STS_ANSWER = f"<AssumeRoleResponse><Credentials><SecretAccessKey>{STS_SECRET}</SecretAccessKey></Credentials></AssumeRoleResponse>".encode()


def test_an_assumed_role_is_answered_by_its_shape_because_xml_is_withheld() -> None:
    """Issue 3, item 8: cloud roles; what was withheld is never served."""
    scene = Scene()
    sent = form(Action="AssumeRoleWithWebIdentity", Version="2011-06-15", RoleArn="arn:x", WebIdentityToken=ACCESS)
    scene.record(STS, sent, 200, STS_ANSWER, "Content-Type: text/xml")
    found = scene.play(STS, sent)
    assert isinstance(found, Serve)
    assert (found.answered, found.seq) == (Answered.LOCAL, UNRECORDED)
    body = found.body.read(0, found.body.size_bytes)
    assert body.startswith(b"<AssumeRoleWithWebIdentityResponse")
    assert b"<AccessKeyId>ASIA" in body
    assert not scene.holds(STS_SECRET)
    assert scene.session is not None
    assert scene.session.unplayed() == []


def test_a_withheld_body_is_a_miss_of_its_own_class_whoever_asks_the_player() -> None:
    """details `response_withheld`: the seal that stands in the store is no answer, whole, in part, or as a HEAD."""
    cassette = MemoryCassette()
    request = Request("GET", "https", "h.example", 443, b"/x")
    seal = b"_2T.opq.aaaaaaaaaaaaaxxxxxxxxxx_"
    cassette.record(request, Answer(200, fields=fields("Content-Type: text/plain")), received=seal, details={"response_withheld": "why"})
    for asked in (request, Request("GET", "https", "h.example", 443, b"/x", fields=fields("Range: bytes=0-3"))):
        found = Player(cassette).session().answer(asked, Live(0, cassette.rows[0].request_digest, b""))
        assert isinstance(found, Miss), asked
    found = Player(cassette).session().answer(request, Live(0, cassette.rows[0].request_digest, b""))
    assert isinstance(found, Miss)
    assert found.kind is MissKind.WITHHELD
    assert "withheld" in found.message


def test_a_copilot_token_and_an_instances_identity_are_got_again_without_a_body() -> None:
    """Requests without a body are found by their exact key: these answers too are filled in."""
    scene = Scene()
    copilot = ask("GET", "https://api.forge.example/copilot_internal/v2/token", "authorization: token gho_" + "a1B2" * 9)
    answer = {"token": "tid=9e8d7c6b;exp=1;sku=x;8kp=1:" + "c0ffee" * 9, "expires_at": RECORDED_S, "refresh_in": 1500,
              "endpoints": {"api": "https://api.individual.forge.example"}, "chat_enabled": True}  # fmt: skip
    scene.record(copilot, b"", 200, json.dumps(answer).encode(), JSON)
    found = scene.json(copilot)
    assert (found["expires_at"], found["refresh_in"]) == (NOW_S + LIFETIME_S, LIFETIME_S)
    assert found["endpoints"] == answer["endpoints"]
    assert found["chat_enabled"] is True
    assert len(str(found["token"])) == len(str(answer["token"]))
    identity = ask("GET", "https://meta.example/computeMetadata/v1/instance/service-accounts/default/identity?audience=aud-1")
    scene.record(identity, b"", 200, ACCESS.encode(), "Content-Type: text/html")
    assert claims_of(scene.body(identity).decode())["aud"] == "aud-1"
    assert not scene.holds(ACCESS)


def test_instance_metadata_of_azure_keeps_its_numbers_as_strings() -> None:
    """Issue 3, item 8: cloud roles; a client that calls int() on them goes on."""
    scene, path = Scene(), "https://meta.example/metadata/identity/oauth2/token?resource=https://r.example"
    answer = {
        "access_token": ACCESS,
        "expires_in": "3599",
        "expires_on": str(RECORDED_S),
        "not_before": str(RECORDED_S - 1),
        "token_type": "Bearer",
    }
    scene.record(ask("GET", path), b"", 200, json.dumps(answer).encode(), JSON)
    for found in (scene.json(ask("GET", path)), Scene().json(ask("GET", path))):
        assert [found[name] for name in ("expires_in", "expires_on", "not_before")] == [
            str(LIFETIME_S),
            str(NOW_S + LIFETIME_S),
            str(NOW_S),
        ]
        assert claims_of(str(found["access_token"]))["exp"] == NOW_S + LIFETIME_S


def test_a_role_of_an_instance_is_a_success_with_a_time_that_parses() -> None:
    """IMDS: the SDKs look at Code, Expiration is ISO 8601 and stays readable in the store."""
    scene, path = Scene(), "https://meta.example/latest/meta-data/iam/security-credentials/role"
    answer = {"Code": "Success", "LastUpdated": "2026-01-01T00:00:00Z", "Type": "AWS-HMAC", "AccessKeyId": "ASIAQWERTYUIOPASDFGH",
              "SecretAccessKey": "wJalrXUtnFEMIK7MDENGbPxRfiCYzEXAMPLEKEYx", "Token": "IQoJ" + "b3JpZ2luX2Vj9" * 20,
              "Expiration": "2026-01-01T06:00:00Z"}  # fmt: skip
    scene.record(ask("GET", path), b"", 200, json.dumps(answer).encode(), JSON)
    for found in (scene.json(ask("GET", path)), Scene().json(ask("GET", path))):
        assert found.keys() == answer.keys()
        assert (found["Code"], found["Type"]) == ("Success", "AWS-HMAC")
        assert (found["LastUpdated"], found["Expiration"]) == ("2026-11-30T00:53:20Z", "2026-12-20T00:53:20Z")


def test_a_form_answer_keeps_its_form() -> None:
    """OAuth 2 before RFC 6749: `access_token=…&scope=&token_type=bearer`."""
    scene, url = Scene(), "https://forge.example/login/oauth/access_token"
    scene.record(
        ask("POST", url, FORM),
        form(client_id="c", code="0123456789abcdef0123"),
        200,
        b"access_token=gho_" + b"a1B2" * 9 + b"&scope=&token_type=bearer",
        FORM,
    )
    found = scene.body(ask("POST", url, FORM), form(client_id="c", code="fedcba98765432100123"))
    assert found.startswith(b"access_token=gho_secondtake-")
    assert found.endswith(b"&scope=&token_type=bearer")
    assert len(found) == 41 + len(b"access_token=&scope=&token_type=bearer") - 1


def test_a_device_flow_waits_as_often_as_it_did_and_is_then_let_in() -> None:
    """RFC 8628: recorded refusals stay refusals, in their order; afterwards a success, never a storm."""
    scene, url = Scene(), "https://auth.example/oauth/token"
    sent = form(grant_type="urn:ietf:params:oauth:grant-type:device_code", device_code="D" * 8 + "1234567890abcdef", client_id="c")
    for _ in range(2):
        scene.record(ask("POST", url, FORM), sent, 400, b'{"error":"authorization_pending"}', JSON)
    scene.record(ask("POST", url, FORM), sent, 200, json.dumps({"access_token": ACCESS, "token_type": "Bearer"}).encode(), JSON)
    mine = form(grant_type="urn:ietf:params:oauth:grant-type:device_code", device_code="another0987654321fedcba", client_id="c")
    statuses = []
    for _ in range(4):
        found = scene.play(ask("POST", url, FORM), mine)
        assert isinstance(found, Serve)
        statuses.append(found.answer.status)
    assert statuses == [400, 400, 200, 200]


def test_a_login_of_another_grant_at_the_same_endpoint_is_not_taken_for_it() -> None:
    """One endpoint, several grants: a code's answer has no business in a token exchange."""
    scene = Scene()
    code = {"grant_type": "authorization_code", "code": "c0de-1234567890abcdef1", "client_id": "c"}
    exchange = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token": "openai-api-key",
        "subject_token": IDENTITY,
    }
    url = ask("POST", "https://auth.example/oauth/token", FORM)
    scene.record(url, form(**code), 200, json.dumps({"access_token": ACCESS, "id_token": IDENTITY}).encode(), JSON)
    scene.record(url, form(**exchange), 200, json.dumps({"access_token": "sk-proj-" + "aB3" * 16}).encode(), JSON)
    assert list(scene.json(url, form(**{**exchange, "subject_token": ACCESS}))) == ["access_token"]
    assert list(scene.json(url, form(**{**code, "code": "another-1234567890abcd"}))) == ["access_token", "id_token"]


def test_a_server_that_was_down_is_not_asked_for_ever() -> None:
    """CASES: 429 and 5xx make agents try for minutes; once is as recorded, then a login is let in."""
    scene = Scene()
    scene.record(REFRESH, refresh_with(OLD_REFRESH), 503, b"{}", JSON)
    found = [scene.play(REFRESH, refresh_with(OLD_REFRESH)) for _ in range(3)]
    assert [one.answer.status for one in found if isinstance(one, Serve)] == [503, 200, 200]


def test_a_redirect_carries_the_state_that_was_sent_and_no_recorded_code() -> None:
    """OAuth's `state` is checked by the client; the recorded one is another's."""
    scene, url = Scene(), "https://auth.example/oauth/authorize?client_id=c&redirect_uri=http://localhost:1455/cb"
    location = "Location: http://localhost:1455/cb?code=ac_Qm9vS2VlcGVyMTIzNDU2Nzg5MGFi&state=c3RhdGUtc3RhdGUtc3RhdGUtc3RhdGUx"
    scene.record(ask("GET", f"{url}&state=c3RhdGUtc3RhdGUtc3RhdGUtc3RhdGUx"), b"", 302, b"", location)
    found = scene.play(ask("GET", f"{url}&state=mine-bWluZS1taW5lLW1pbmUtbWluZTEy"))
    assert isinstance(found, Serve)
    went = dict(found.answer.fields)[b"Location"]
    assert b"state=mine-bWluZS1taW5lLW1pbmUtbWluZTEy" in went
    assert b"Qm9v" not in went
    assert MARK not in went


def test_a_compressed_answer_is_given_plain_with_the_right_length() -> None:
    """The body is made anew, so its coding, its length and its validators go."""
    scene = Scene()
    head = (JSON, "Content-Encoding: gzip", 'ETag: "x"', "Content-Length: 9999")
    scene.record(REFRESH, refresh_with(OLD_REFRESH), 200, gzip.compress(json.dumps({"access_token": ACCESS}).encode()), *head)
    found = scene.play(REFRESH, refresh_with("rt_mine-0000000000000000000000000000000"))
    assert isinstance(found, Serve)
    assert json.loads(found.body.read(0, found.body.size_bytes)).keys() == {"access_token"}
    told = {name.lower(): value for name, value in found.answer.fields}
    assert told == {b"content-type": b"application/json", b"content-length": b"%d" % found.body.size_bytes}


def test_what_is_no_login_is_left_as_it_is() -> None:
    """Only the `auth` channel is touched; model calls, pages and misses of other channels are the player's."""
    scene = Scene()
    page = ask("GET", "https://web.example/a")
    scene.record(page, b"", 200, b'{"token_type":"x"}', JSON)
    assert isinstance(found := scene.play(page), Serve)
    assert answer_locally(page, b"", found, now_s=NOW_S) is None
    assert isinstance(missed := scene.play(ask("GET", "https://web.example/b")), Miss)
    assert answer_locally(page, b"", missed, now_s=NOW_S) is None


@pytest.mark.parametrize("received", [b"[" * 5000, b"{not json", b'{"a":"_2T.aut_', b"\xff\xfe_2T.autxx_", b"a=_2T.autxx_&&=&%zz"])
def test_a_damaged_recorded_answer_is_answered_by_shape(received: bytes) -> None:
    """Never raises for recorded content."""
    cassette = MemoryCassette()
    cassette.record(REFRESH, Answer(200, fields=fields(JSON)), sent=b"{}", received=received, channel=Channel.AUTH)
    sent = refresh_with(OLD_REFRESH)
    found = Player(cassette).session().answer(REFRESH, Live(len(sent), cassette.rows[0].request_digest, sent))
    local = answer_locally(REFRESH, sent, found, now_s=NOW_S)
    assert local is not None
    assert MARK not in local.body.read(0, local.body.size_bytes)


@given(
    st.binary(max_size=200),
    st.sampled_from(["/oauth/token", "/", "/-/v1/login", "/oauth/authorize?redirect_uri=http://localhost/%0d%0aX:1"]),
)
def test_no_request_makes_it_raise_or_write_a_field_of_the_clients_making(sent: bytes, path: str) -> None:
    """CVE class: header injection by `redirect_uri`."""
    request = ask("POST", f"https://auth.example{path}", FORM)
    found = answer_locally(request, sent, Miss(MissKind.NEW_RESOURCE, None, "", Channel.AUTH), now_s=NOW_S)
    if found is not None:
        assert all(b"\r" not in value and b"\n" not in value for _, value in found.answer.fields)
