"""What a login is answered with when the cassette holds no answer to take the shape from: by the grant that is asked for, or the service.

Shapes by RFC 6749 5.1 (token), 7009 (revocation), 7591 (registration), 7662 (introspection), 8628 (device), 8693 (exchange), OpenID Connect
Core 3.1.3.3, and the public API references of AWS STS, IAM Identity Center and the instance metadata services of AWS, Google and Azure.
Paths by shape, never by host. What no row describes is not answered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, urlsplit

from secondtake.cassettes import limits
from secondtake.cassettes.channels import is_loopback
from secondtake.cassettes.content import plain
from secondtake.cassettes.errors import RecordedError
from secondtake.cassettes.exchange import Fields, Request
from secondtake.cassettes.tokens import LIFETIME_S, letters, opaque, prefix_of, web_token

BASE32 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_JSON = b"application/json"
_TEXT = b"text/plain"
_GRANTS = {
    "urn:ietf:params:oauth:grant-type:device_code": "device_code",
    "urn:ietf:params:oauth:grant-type:jwt-bearer": "jwt-bearer",
    "urn:ietf:params:oauth:grant-type:saml2-bearer": "jwt-bearer",
    "urn:ietf:params:oauth:grant-type:token-exchange": "token-exchange",
    "urn:openid:params:grant-type:ciba": "device_code",
}
_KNOWN_GRANTS = frozenset(
    ("authorization_code", "refresh_token", "client_credentials", "password", "device_code", "jwt-bearer", "token-exchange")
)
_FOLLOWED_BY = {b"sk-ant-ort": b"sk-ant-oat", b"ghr_": b"ghu_", b"1//": b"ya29."}
"""How the access token begins that a refresh token with this beginning is for."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to a login that is made here. `note` says by what."""

    status: int
    fields: Fields
    body: bytes
    note: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to a service that is known by its path. `form`: the members of its query and body."""

    path: bytes
    form: Mapping[str, str]
    now_s: int


def form_of(request: Request, content: bytes | None) -> dict[str, str]:
    """The members of a login's body, a form or a flat JSON object, and of its query; empty where it is neither."""
    found: dict[str, str] = {}
    for pairs in (request.path.partition(b"?")[2], _plain(request, content)):
        text = pairs.decode("utf-8", "replace").strip()
        if text.startswith("{"):
            try:
                document = json.loads(text)
            except (ValueError, RecursionError):
                continue
            found |= {name: value for name, value in document.items() if isinstance(value, str)}
        elif text and not text.startswith(("<", "[")):
            try:
                found |= dict(parse_qsl(text, keep_blank_values=True, max_num_fields=limits.FIELD_COUNT))
            except ValueError:
                continue
    return found


def _plain(request: Request, content: bytes | None) -> bytes:
    if not content or len(content) > limits.BODY_IN_MEMORY_BYTES:
        return b""
    try:
        return plain(content, request.fields) or b""
    except RecordedError:
        return b""


def grant(form: Mapping[str, str]) -> str | None:
    """The grant a token request names, in one word; None where it names none."""
    named = form.get("grant_type") or form.get("grantType")
    return None if not named else _GRANTS.get(named, named)


def made(request: Request, content: bytes | None, *, now_s: int) -> Reply | None:
    """An answer by shape alone, or None where this is no login that is known."""
    path = request.path.partition(b"?")[0]
    form = form_of(request, content)
    for pattern, make in _SERVICES:
        if pattern.fullmatch(path) is not None:
            return make(Asked(path, form, now_s))
    asked = grant(form)
    if request.method == "POST" and asked is not None:
        return _token(form, asked, now_s) if asked in _KNOWN_GRANTS else None
    if form.get("Action"):
        return _sts(request, form["Action"], now_s)
    return None


def _reply(document: object, note: str, status: int = 200) -> Reply:
    return Reply(status, ((b"Content-Type", _JSON), (b"Cache-Control", b"no-store")), json.dumps(document).encode(), note)


def _word(text: bytes, note: str) -> Reply:
    return Reply(200, ((b"Content-Type", _TEXT),), text, note)


# ---- OAuth 2 -------------------------------------------------------------------------------------------------------


def _token(form: Mapping[str, str], asked: str, now_s: int) -> Reply:
    """RFC 6749 5.1. A refresh is given its own refresh token back: a client that keeps what it is told keeps a login that works."""
    camel = "grantType" in form
    refresh = form.get("refresh_token") or form.get("refreshToken") or ""
    access = _access(refresh, form, now_s)
    scope = form.get("scope", "")
    if asked == "jwt-bearer" and "target_audience" in form:
        return _reply({"id_token": access}, f"by its grant, {asked}")
    answer: dict[str, object] = {"access_token": access, "token_type": "Bearer", "expires_in": LIFETIME_S}
    if refresh:
        answer["refresh_token"] = refresh
    elif asked in ("authorization_code", "device_code", "password"):
        answer["refresh_token"] = opaque("refresh_token", 64).decode()
    if asked == "token-exchange":
        answer["issued_token_type"] = form.get("requested_token_type", "urn:ietf:params:oauth:token-type:access_token")
    if asked in ("authorization_code", "refresh_token", "device_code", "password") and not prefix_of(refresh.encode()):
        answer["id_token"] = web_token("id_token", _claims(form), now_s=now_s).decode()
    if scope:
        answer["scope"] = scope
    if camel:
        answer = {_camel(name): value for name, value in answer.items()}
    return _reply(answer, f"by its grant, {asked}")


def _access(refresh: str, form: Mapping[str, str], now_s: int) -> str:
    """Opaque with the beginning that goes with the refresh token's; else a web token, which serves those who parse and those who do not."""
    for before, after in _FOLLOWED_BY.items():
        if refresh.encode().startswith(before):
            start = prefix_of(after + b"01-") or after
            return opaque("access_token", max(len(refresh), 40), prefix=start).decode()
    return web_token("access_token", _claims(form), now_s=now_s).decode()


def _claims(form: Mapping[str, str]) -> dict[str, object]:
    client = form.get("client_id") or form.get("clientId") or "secondtake"
    return {"claims": {"iss": "secondtake", "sub": letters("sub", 20).decode(), "aud": client, "scope": form.get("scope", ""), "iat": 0}}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _revoked(_: Asked) -> Reply:
    return _reply({}, "a revocation")


def _introspected(asked: Asked) -> Reply:
    return _reply({"active": True, "token_type": "Bearer", "exp": asked.now_s + LIFETIME_S, "expires_in": LIFETIME_S}, "an introspection")


def _device(asked: Asked) -> Reply:
    """RFC 8628 3.2. Nobody has to go there: the token request that follows is answered at once."""
    where = "https://replay.invalid/device"
    answer = {
        "device_code": opaque("device_code", 40).decode(),
        "user_code": "REPL-AYED",
        "verification_uri": where,
        "verification_uri_complete": where,
        "expires_in": LIFETIME_S,
        "interval": 1,
    }
    camel = "clientId" in asked.form
    return _reply({_camel(name): value for name, value in answer.items()} if camel else answer, "a device authorization")


def _authorized(asked: Asked) -> Reply | None:
    """Back to the agent's own listener with a code; to anywhere else nobody is sent."""
    back = asked.form.get("redirect_uri", "")
    try:
        host = urlsplit(back).hostname or ""
    except ValueError:
        return None
    if not is_loopback(host) or not back.isascii() or not back.isprintable() or " " in back:
        return None
    more = f"code={opaque('code', 40).decode()}" + (f"&state={quote(asked.form['state'], safe='')}" if "state" in asked.form else "")
    location = f"{back}{'&' if '?' in back else '?'}{more}".encode("utf-8", "replace")
    return Reply(302, ((b"Location", location), (b"Cache-Control", b"no-store")), b"", "an authorization")


def _registered(asked: Asked) -> Reply:
    if "clientType" in asked.form:
        aws = {"clientId": opaque("client_id", 22).decode(), "clientSecret": web_token("client_secret", None, now_s=asked.now_s).decode()}
        return _reply({**aws, "clientIdIssuedAt": asked.now_s, "clientSecretExpiresAt": asked.now_s + LIFETIME_S}, "a client registration")
    answer = {"client_id": opaque("client_id", 32).decode(), "client_id_issued_at": asked.now_s, "token_endpoint_auth_method": "none"}
    return _reply(answer, "a client registration", 201)


# ---- clouds --------------------------------------------------------------------------------------------------------


def _stamp(now_s: int) -> str:
    return datetime.fromtimestamp(now_s + LIFETIME_S, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def aws_keys(now_s: int) -> dict[str, str]:
    """Temporary credentials with the names of the AWS APIs; the key's ID has the form of a temporary one."""
    return {
        "AccessKeyId": "ASIA" + letters("AccessKeyId", 16, BASE32).decode(),
        "SecretAccessKey": letters("SecretAccessKey", 40).decode(),
        "SessionToken": opaque("SessionToken", 356).decode(),
        "Expiration": _stamp(now_s),
    }


_ROLE = "arn:aws:iam::000000000000:role/secondtake"


def _sts(request: Request, action: str, now_s: int) -> Reply | None:
    """AWS STS, query protocol. XML, or JSON where the client asks for it."""
    user = {"AssumedRoleId": "AROASECONDTAKE0000000:replay", "Arn": "arn:aws:sts::000000000000:assumed-role/secondtake/replay"}
    identity = {"Arn": user["Arn"], "UserId": user["AssumedRoleId"], "Account": "000000000000"}
    found: dict[str, object]
    if action.startswith("AssumeRole"):
        found = {"AssumedRoleUser": user, "Credentials": aws_keys(now_s)}
    elif action in ("GetSessionToken", "GetFederationToken"):
        found = {"Credentials": aws_keys(now_s)}
    elif action == "GetCallerIdentity":
        found = {**identity}
    else:
        return None
    note = f"as STS {action}"
    if any(name.lower() == b"accept" and b"json" in value for name, value in request.fields):
        result = {f"{action}Result": found, "ResponseMetadata": {"RequestId": "00000000-0000-4000-8000-000000000000"}}
        return _reply({f"{action}Response": result}, note)
    inner = _xml(found)
    body = (
        f'<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result>{inner}</{action}Result>'
        f"<ResponseMetadata><RequestId>00000000-0000-4000-8000-000000000000</RequestId></ResponseMetadata></{action}Response>"
    )
    return Reply(200, ((b"Content-Type", b"text/xml"),), body.encode(), note)


def _xml(value: Mapping[str, object]) -> str:
    return "".join(f"<{name}>{_xml(one) if isinstance(one, Mapping) else one}</{name}>" for name, one in value.items())


def _sso(asked: Asked) -> Reply:
    keys = aws_keys(asked.now_s)
    role = {"accessKeyId": keys["AccessKeyId"], "secretAccessKey": keys["SecretAccessKey"], "sessionToken": keys["SessionToken"]}
    return _reply({"roleCredentials": {**role, "expiration": (asked.now_s + LIFETIME_S) * 1000}}, "as role credentials")


def _instance(asked: Asked) -> Reply:
    """The credentials of an instance's role, or its name where the path ends before it."""
    if asked.path.endswith((b"/security-credentials", b"/security-credentials/")):
        return _word(b"secondtake", "as an instance's role")
    keys = aws_keys(asked.now_s)
    keys["Token"] = keys.pop("SessionToken")
    return _reply(
        {"Code": "Success", "LastUpdated": _stamp(-LIFETIME_S + asked.now_s), "Type": "AWS-HMAC", **keys}, "as an instance's role"
    )


def _container(asked: Asked) -> Reply:
    keys = aws_keys(asked.now_s)
    keys["Token"] = keys.pop("SessionToken")
    return _reply({"RoleArn": _ROLE, **keys}, "as a container's role")


def _session(_: Asked) -> Reply:
    return _word(opaque("metadata", 56), "as a metadata session")


def _google(_: Asked) -> Reply:
    answer = {"access_token": opaque("access_token", 200, prefix=b"ya29.").decode(), "expires_in": LIFETIME_S, "token_type": "Bearer"}
    return _reply(answer, "as an instance's identity")


def _google_identity(asked: Asked) -> Reply:
    told = {"claims": {"iss": "https://accounts.google.com", "aud": asked.form.get("audience", ""), "iat": 0}}
    return _word(web_token("identity", told, now_s=asked.now_s), "as an instance's identity")


def _impersonated(asked: Asked) -> Reply:
    if asked.path.endswith(b":generateIdToken"):
        return _reply({"token": web_token("token", None, now_s=asked.now_s).decode()}, "as a service account")
    return _reply(
        {"accessToken": opaque("accessToken", 200, prefix=b"ya29.").decode(), "expireTime": _stamp(asked.now_s)}, "as a service account"
    )


def _azure(asked: Asked) -> Reply:
    """Azure's instance metadata writes its numbers as strings."""
    answer = {
        "access_token": web_token("access_token", None, now_s=asked.now_s).decode(),
        "expires_in": str(LIFETIME_S),
        "expires_on": str(asked.now_s + LIFETIME_S),
        "not_before": str(asked.now_s),
        "resource": asked.form.get("resource", ""),
        "token_type": "Bearer",
    }
    return _reply(answer, "as an instance's identity")


def _copilot(asked: Asked) -> Reply:
    text = f"tid=secondtake;exp={asked.now_s + LIFETIME_S};sku=replay;st=dotcom;8kp=1:{letters('copilot', 64).decode()}"
    return _reply({"token": text, "expires_at": asked.now_s + LIFETIME_S, "refresh_in": LIFETIME_S - 60}, "as a Copilot token")


def _installed(asked: Asked) -> Reply:
    answer = {"token": opaque("token", 40, prefix=b"ghs_").decode(), "expires_at": _stamp(asked.now_s), "permissions": {}}
    return _reply(answer, "as an installation's token", 201)


def _index(_: Asked) -> Reply:
    return _reply({"ok": True, "token": opaque("token", 40, prefix=b"npm_").decode()}, "as a login to an index", 201)


type _Make = Callable[[Asked], Reply | None]

_SERVICES: tuple[tuple[re.Pattern[bytes], _Make], ...] = tuple(
    (re.compile(pattern), make)
    for pattern, make in (
        (rb".*/oauth2?/(?:v[\d.]+/)?revoke|.*/revoke/?", _revoked),
        (rb".*/(?:introspect|tokeninfo)/?", _introspected),
        (rb".*/(?:devicecode|device_authorization|device/(?:code|auth)|deviceauth/usercode|oauth2?/(?:v[\d.]+/)?device)", _device),
        (rb".*/oauth2?/(?:v[\d.]+/)?authorize", _authorized),
        (rb".*/(?:client/register|register)", _registered),
        (rb".*/federation/credentials", _sso),
        (rb".*/latest/api/token", _session),
        (rb".*/meta-data/iam/security-credentials(?:/.*)?", _instance),
        (rb".*/v[12]/credentials(?:/.*)?", _container),
        (rb".*/instance/service-accounts/.*/identity", _google_identity),
        (rb".*/instance/service-accounts/.*/token", _google),
        (rb".*/serviceAccounts/[^/]+:generate(?:AccessToken|IdToken)", _impersonated),
        (rb"/metadata/identity/oauth2/token", _azure),
        (rb".*/copilot_internal/v\d+/token", _copilot),
        (rb".*/app/installations/\d+/access_tokens", _installed),
        (rb"/-/(?:user/.*|v1/login.*)", _index),
    )
)
