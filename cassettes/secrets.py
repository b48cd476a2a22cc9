"""The one table of what a credential is: which names hold one, what its value looks like, what kind it is.

Everything that hides, forwards or lists credentials reads this table and keeps none of its own (T-K7).
Names follow SECURITY.md C4 and the providers' public documentation of their key formats.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from secondtake.cassettes.kinds import searchable, value_kind


@dataclass(frozen=True, slots=True)
class Known:
    """A value that is known to be a credential. `name` says where it came from, for people: `env:OPENAI_API_KEY`."""

    kind: str
    value: bytes
    name: str = ""


# ---- header fields -------------------------------------------------------------------------------------------------

HEADERS: Mapping[bytes, str] = {
    b"authorization": "bearer-token",
    b"proxy-authorization": "proxy-credential",
    b"x-authorization": "bearer-token",
    b"x-forwarded-authorization": "bearer-token",
    b"x-amzn-authorization": "bearer-token",
    b"authentication": "bearer-token",
    b"x-api-key": "api-key",
    b"api-key": "api-key",
    b"apikey": "api-key",
    b"x-apikey": "api-key",
    b"x-goog-api-key": "google-api-key",
    b"x-goog-iam-authorization-token": "gcp-oauth",
    b"ocp-apim-subscription-key": "api-key",
    b"x-amz-security-token": "aws-session-token",
    b"x-aws-ec2-metadata-token": "aws-session-token",
    b"x-auth-token": "header-token",
    b"x-auth": "header-token",
    b"x-access-token": "access-token",
    b"x-vault-token": "vault-token",
    b"private-token": "gitlab-token",
    b"job-token": "gitlab-token",
    b"x-github-token": "github-pat",
    b"dd-api-key": "api-key",
    b"dd-application-key": "api-key",
    b"x-litellm-api-key": "api-key",
    b"x-functions-key": "api-key",
    b"x-ms-authorization-auxiliary": "bearer-token",
    b"x-nuget-apikey": "nuget-key",
    b"x-jfrog-art-api": "api-key",
    b"npm-otp": "oauth-code",
    b"statsig-api-key": "api-key",
    b"x-password": "password",
    b"cookie": "cookie",
    b"cookie2": "cookie",
    b"set-cookie": "cookie",
    b"set-cookie2": "cookie",
}
"""Fields whose value is a credential, and the kind where the value itself does not tell."""

_SECRET_WORD = re.compile(rb"(?:^|[-_])(?:token|key|secret|apikey|password|passwd|credential|credentials|assertion)$")

NOT_SECRET_HEADERS = frozenset(
    {
        b"idempotency-key",
        b"x-idempotency-key",
        b"sec-websocket-key",
        b"surrogate-key",
        b"x-surrogate-key",
        b"cache-key",
        b"x-cache-key",
        b"x-fastly-surrogate-key",
        b"sort-key",
        b"partition-key",
        b"x-partition-key",
        b"x-ms-documentdb-partitionkey",
        b"routing-key",
        b"x-routing-key",
        b"public-key",
        b"x-public-key",
        b"page-token",
        b"next-page-token",
        b"x-next-page-token",
        b"continuation-token",
        b"x-continuation-token",
        b"x-ms-continuation-token",
        b"sync-token",
        b"x-request-key",
        b"x-prompt-cache-key",
        b"prompt-cache-key",
    }
)
"""Names that end like a credential's and hold none: keys of caches, pages and retries."""

URL_HEADERS = frozenset({b"location", b"content-location", b"referer", b"link", b"refresh", b"origin", b"x-original-url", b"destination"})
"""Fields that hold URLs; userinfo and query credentials in them are hidden."""


def header_kind(name: bytes) -> str | None:
    """The kind of credential the field `name` holds, or None."""
    lower = name.lower()
    kind = HEADERS.get(lower)
    if kind is not None:
        return kind
    if lower in NOT_SECRET_HEADERS or not _SECRET_WORD.search(lower):
        return None
    return "password" if lower.endswith((b"password", b"passwd")) else "header-token"


# ---- query keys, JSON and form field names -------------------------------------------------------------------------

QUERY: Mapping[bytes, str] = {
    b"api_key": "api-key",
    b"api-key": "api-key",
    b"apikey": "api-key",
    b"x-api-key": "api-key",
    b"subscription-key": "api-key",
    b"access_token": "access-token",
    b"accesstoken": "access-token",
    b"auth_token": "access-token",
    b"private_token": "gitlab-token",
    b"job_token": "gitlab-token",
    b"oauth_token": "access-token",
    b"oauth_signature": "url-signature",
    b"bearer": "bearer-token",
    b"refresh_token": "refresh-token",
    b"id_token": "id-token",
    b"id_token_hint": "id-token",
    b"client_secret": "client-secret",
    b"client_assertion": "client-secret",
    b"assertion": "client-secret",
    b"code_verifier": "oauth-code",
    b"device_code": "oauth-code",
    b"password": "password",
    b"passwd": "password",
    b"pwd": "password",
    b"secret": "client-secret",
    b"x-amz-signature": "aws-signature",
    b"x-amz-security-token": "aws-session-token",
    b"x-amz-credential": "aws-access-key-id",
    b"awsaccesskeyid": "aws-access-key-id",
    b"x-goog-signature": "url-signature",
    b"x-goog-credential": "url-signature",
    b"googleaccessid": "url-signature",
}
"""Query and form names whose value is a credential whatever it looks like."""

QUERY_PERHAPS: Mapping[bytes, str] = {
    b"key": "query-key",
    b"token": "access-token",
    b"auth": "access-token",
    b"authorization": "bearer-token",
    b"code": "oauth-code",
    b"state": "oauth-code",
    b"sig": "url-signature",
    b"signature": "url-signature",
    b"session": "access-token",
    b"session_token": "access-token",
    b"ticket": "access-token",
    b"jwt": "jwt",
}
"""Names that hold a credential here and an ordinary value there (`?key=user_1`): the value decides."""

BODY: Mapping[bytes, str] = {
    b"api_key": "api-key",
    b"apikey": "api-key",
    b"access_token": "access-token",
    b"accesstoken": "access-token",
    b"refresh_token": "refresh-token",
    b"refreshtoken": "refresh-token",
    b"id_token": "id-token",
    b"idtoken": "id-token",
    b"auth_token": "access-token",
    b"authtoken": "access-token",
    b"oauth_token": "access-token",
    b"session_token": "aws-session-token",
    b"sessiontoken": "aws-session-token",
    b"client_secret": "client-secret",
    b"clientsecret": "client-secret",
    b"client_assertion": "client-secret",
    b"device_code": "oauth-code",
    b"devicecode": "oauth-code",
    b"code_verifier": "oauth-code",
    b"secret_access_key": "aws-secret-key",
    b"secretaccesskey": "aws-secret-key",
    b"aws_secret_access_key": "aws-secret-key",
    b"aws_session_token": "aws-session-token",
    b"private_key": "private-key",
    b"privatekey": "private-key",
    b"password": "password",
    b"passwd": "password",
    b"passphrase": "password",
}
"""JSON and multipart field names (lower-case, `-` read as `_`) whose string value is a credential."""

DOCUMENTED = frozenset({"password", "api-key", "private-key"})
"""Kinds whose names are common in documentation an agent is shown: in an answer their value must look like a credential too."""

AUTH_BODY_PLAIN = frozenset(
    {
        b"token_type",
        b"tokentype",
        b"scope",
        b"scopes",
        b"grant_type",
        b"response_type",
        b"type",
        b"error",
        b"error_description",
        b"error_uri",
        b"code_challenge_method",
        b"object",
        b"expiration",
        b"expires_at",
        b"expiresat",
        b"issued_at",
        b"lastupdated",
        b"interval",
        b"status",
        b"event",
        b"action",
        b"resource_url",
        b"issued_token_type",
        b"requested_token_type",
    }
)
"""What may stay readable in the body of a login; every other string in it is replaced."""

# ---- environment ---------------------------------------------------------------------------------------------------

ENVIRONMENT: Mapping[str, str] = {
    "ANTHROPIC_API_KEY": "anthropic-api-key",
    "ANTHROPIC_AUTH_TOKEN": "anthropic-api-key",
    "CLAUDE_CODE_OAUTH_TOKEN": "anthropic-oauth",
    "OPENAI_API_KEY": "openai-api-key",
    "CODEX_API_KEY": "openai-api-key",
    "OPENROUTER_API_KEY": "openrouter-api-key",
    "GEMINI_API_KEY": "google-api-key",
    "GOOGLE_API_KEY": "google-api-key",
    "GROQ_API_KEY": "groq-api-key",
    "XAI_API_KEY": "xai-api-key",
    "GH_TOKEN": "github-pat",
    "GITHUB_TOKEN": "github-pat",
    "COPILOT_GITHUB_TOKEN": "github-pat",
    "GITLAB_TOKEN": "gitlab-token",
    "CI_JOB_TOKEN": "gitlab-token",
    "NPM_TOKEN": "npm-token",
    "NODE_AUTH_TOKEN": "npm-token",
    "HF_TOKEN": "hugging-face-token",
    "AWS_ACCESS_KEY_ID": "aws-access-key-id",
    "AWS_SECRET_ACCESS_KEY": "aws-secret-key",
    "AWS_SESSION_TOKEN": "aws-session-token",
    "AWS_SECURITY_TOKEN": "aws-session-token",
    "AWS_BEARER_TOKEN_BEDROCK": "bearer-token",
    "VAULT_TOKEN": "vault-token",
}
"""Variables whose kind is known by name, so that a dummy value counts as the same kind as the real one (C-13)."""

_ENV_NAME = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|ACCESS_KEY(?:_ID)?|TOKEN|SECRET|SECRET_KEY|PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|PAT|CREDENTIALS?|AUTH|AUTHTOKEN"
    r"|COOKIE|SESSION_TOKEN|PRIVATE_KEY|WEBHOOK_URL|DSN)(?:_\d+|_[A-Z]{1,4})?$",
    re.IGNORECASE,
)
_ENV_NOT = frozenset({"PWD", "OLDPWD", "GPG_KEY", "SSH_AUTH_SOCK", "XAUTHORITY", "GPG_AGENT_INFO", "GIT_ASKPASS", "SSH_ASKPASS"})
_ENV_NOT_ENDS = ("_FILE", "_PATH", "_DIR", "_NAME", "_COUNT", "_LIMIT", "_TTL", "_SOCK")
_NOT_A_VALUE = re.compile(rb"(?:true|false|yes|no|on|off|null|none|auto|\d{1,9}|/[\w./-]*|~/.*|[A-Za-z]:\\.*)", re.IGNORECASE)

_USERINFO_VALUE = re.compile(rb"://([^/?#\s\"']*)@")


def environment_kind(name: str) -> str | None:
    """The kind of credential a variable of this name holds, or None."""
    upper = name.upper()
    if upper in ENVIRONMENT:
        return ENVIRONMENT[upper]
    if upper in _ENV_NOT or upper.endswith(_ENV_NOT_ENDS) or not _ENV_NAME.search(upper):
        return None
    if re.search(r"PASS|PWD", upper):
        return "password"
    return "environment-secret"


def known_in_environment(environ: Mapping[str, str]) -> Iterator[Known]:
    """Every credential in `environ`: values of credential variables, values that look like one, passwords in URLs."""
    for name, text in environ.items():
        value = text.encode("utf-8", "surrogateescape").strip()
        kind = environment_kind(name)
        if kind is None and value_kind(value) is not None:
            kind = value_kind(value)
        if kind is not None and searchable(value) and not _NOT_A_VALUE.fullmatch(value):
            yield Known(kind, value, f"env:{name}")
        for found in _USERINFO_VALUE.finditer(value):
            user, _, password = found[1].partition(b":")
            for part in (password, user if not password else b""):
                if searchable(part):
                    yield Known("proxy-credential" if "PROXY" in name.upper() else "password", part, f"env:{name}")
