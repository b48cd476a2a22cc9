"""The one table of what a credential is: which names hold one, what its value looks like, what kind it is.

Everything that hides, forwards or lists credentials reads this table and keeps none of its own (T-K7).
Names follow SECURITY.md C4 and the providers' public documentation of their key formats.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Known:
    """A value that is known to be a credential. `name` says where it came from, for people: `env:OPENAI_API_KEY`."""

    kind: str
    value: bytes
    name: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of credential.

    `code` stands for it in a placeholder (three characters). `prefix` is the public part of such a value and `tail` the rest, both
    regular expressions; a kind without them is known by its place only. `guessable` kinds never get a fingerprint.
    """

    name: str
    code: str
    prefix: str = ""
    tail: str = ""
    guessable: bool = False


_B62 = "[A-Za-z0-9]"
_URL = "[A-Za-z0-9_-]"

KINDS: tuple[Kind, ...] = (
    Kind("anthropic-api-key", "ant", r"sk-ant-api\d\d-", _URL + "{24,}"),
    Kind("anthropic-oauth", "aoa", r"sk-ant-o[ar]t\d\d-", _URL + "{24,}"),
    Kind("anthropic-admin-key", "aad", r"sk-ant-admin\d\d-", _URL + "{24,}"),
    Kind("anthropic-session", "asi", r"sk-ant-sid\d\d-", _URL + "{24,}"),
    Kind("openrouter-api-key", "orr", r"sk-or-v1-", "[0-9a-f]{32,}"),
    Kind("openai-project-key", "oap", r"sk-(?:proj|svcacct|admin)-", _URL + "{24,}"),
    Kind("langsmith-api-key", "lsm", r"lsv2_(?:pt|sk)_", "[0-9a-f_]{32,}"),
    Kind("openai-api-key", "oai", r"sk-", _B62 + "{32,}"),
    Kind("stripe-key", "stp", r"[sr]k_(?:live|test)_", _B62 + "{16,}"),
    Kind("github-pat-fine-grained", "ghf", r"github_pat_", "[A-Za-z0-9_]{22,}"),
    Kind("github-pat", "ghp", r"ghp_", _B62 + "{36,}"),
    Kind("github-oauth", "gho", r"gho_", _B62 + "{36,}"),
    Kind("github-app", "ghs", r"gh[su]_", "[A-Za-z0-9._-]{36,}"),
    Kind("github-refresh", "ghr", r"ghr_", _B62 + "{36,}"),
    Kind("gitlab-token", "gla", r"gl(?:pat|dt|rt|cbt|ptt|soat|imt)-", "[A-Za-z0-9_.-]{20,}"),
    Kind("aws-access-key-id", "aki", r"A(?:KI|SI)A", "[A-Z2-7]{16}"),
    Kind("slack-token", "slk", r"xox[abeoprs]-", "[A-Za-z0-9-]{16,}"),
    Kind("slack-app-token", "sla", r"xapp-", "[A-Za-z0-9-]{24,}"),
    Kind("npm-token", "npm", r"npm_", _B62 + "{36}"),
    Kind("index-upload-token", "pyp", r"pypi-", _URL + "{50,}"),
    Kind("hugging-face-token", "hfc", r"hf_", "[A-Za-z]{30,}"),
    Kind("google-api-key", "gak", r"AIza", _URL + "{35}"),
    Kind("gcp-oauth", "gco", r"ya29\.", "[A-Za-z0-9_.-]{20,}"),
    Kind("google-client-secret", "gcs", r"GOCSPX-", _URL + "{20,}"),
    Kind("groq-api-key", "grq", r"gsk_", _B62 + "{32,}"),
    Kind("xai-api-key", "xai", r"xai-", _B62 + "{40,}"),
    Kind("perplexity-api-key", "ppx", r"pplx-", _B62 + "{32,}"),
    Kind("replicate-token", "rep", r"r8_", _B62 + "{30,}"),
    Kind("fireworks-api-key", "fwk", r"fw_", _B62 + "{20,}"),
    Kind("cerebras-api-key", "crb", r"csk-", _B62 + "{32,}"),
    Kind("nvidia-api-key", "nvd", r"nvapi-", _URL + "{40,}"),
    Kind("tavily-api-key", "tvl", r"tvly-", _URL + "{20,}"),
    Kind("e2b-api-key", "e2b", r"e2b_", "[0-9a-f]{32,}"),
    Kind("vault-token", "vlt", r"hv[sbr]\.", _URL + "{24,}"),
    Kind("digitalocean-token", "dop", r"do[opr]_v1_", "[0-9a-f]{48,}"),
    Kind("databricks-token", "dbk", r"dapi", "[0-9a-f]{32}"),
    Kind("linear-api-key", "lin", r"lin_(?:api|oauth)_", _B62 + "{32,}"),
    Kind("sendgrid-api-key", "sgr", r"SG\.", "[A-Za-z0-9_.-]{60,}"),
    Kind("tailscale-key", "tsk", r"tskey-(?:auth|api|client)-", "[A-Za-z0-9-]{20,}"),
    Kind("doppler-token", "dpl", r"dp\.[a-z]{2,6}\.", _B62 + "{30,}"),
    Kind("supabase-token", "sbp", r"sbp_", "[0-9a-f]{40}"),
    Kind("figma-token", "fig", r"figd_", _URL + "{30,}"),
    Kind("notion-token", "ntn", r"ntn_", _B62 + "{40,}"),
    Kind("atlassian-token", "atl", r"ATATT3", "[A-Za-z0-9_=-]{40,}"),
    Kind("shopify-token", "shp", r"shp(?:at|ca|pa|ss)_", "[0-9a-fA-F]{32}"),
    Kind("docker-token", "dkr", r"dckr_(?:pat|oat)_", _URL + "{20,}"),
    Kind("postman-key", "pmk", r"PMAK-", "[0-9a-f-]{40,}"),
    Kind("newrelic-key", "nrk", r"NRAK-", "[A-Z0-9]{27}"),
    Kind("grafana-token", "gra", r"gl(?:c|sa)_", "[A-Za-z0-9_+/=-]{32,}"),
    Kind("sentry-token", "sty", r"sntry[su]_", "[A-Za-z0-9_+/=-]{32,}"),
    Kind("planetscale-token", "psc", r"pscale_(?:tkn|oauth|pw)_", "[A-Za-z0-9_.-]{32,}"),
    Kind("gem-push-token", "gem", r"rubygems_", "[0-9a-f]{48}"),
    Kind("cargo-token", "crg"),
    Kind("nuget-key", "nug", r"oy2", "[a-z0-9]{43}"),
    Kind("buildkite-token", "bkt", r"bkua_", "[0-9a-f]{40}"),
    Kind("pulumi-token", "pul", r"pul-", "[0-9a-f]{40}"),
    Kind("jwt", "jwt", r"eyJ", r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    # Known by their place only.
    Kind("bearer-token", "bea"),
    Kind("basic-credential", "bas", guessable=True),
    Kind("password", "pwd", guessable=True),
    Kind("cookie", "cok"),
    Kind("header-token", "hdr"),
    Kind("api-key", "key"),
    Kind("query-key", "qry"),
    Kind("url-signature", "sig"),
    Kind("aws-signature", "asg"),
    Kind("aws-secret-key", "ask"),
    Kind("aws-session-token", "ast"),
    Kind("access-token", "acc"),
    Kind("refresh-token", "rft"),
    Kind("id-token", "idt"),
    Kind("client-secret", "cls"),
    Kind("oauth-code", "cod"),
    Kind("private-key", "pvk"),
    Kind("auth-body", "aut", guessable=True),
    Kind("environment-secret", "env"),
    Kind("proxy-credential", "prx"),
    Kind("withheld", "wth", guessable=True),
    Kind("opaque", "opq"),
)

OPAQUE = "opaque"
"""Perhaps a credential, perhaps only a value: hidden, but two of them are never taken for one another."""

BY_NAME: Mapping[str, Kind] = {kind.name: kind for kind in KINDS}

_PREFIXED = tuple(kind for kind in KINDS if kind.prefix)
PREFIX = re.compile("|".join(f"(?P<{kind.code}>{kind.prefix})" for kind in _PREFIXED).encode())
"""The public prefix of a value; the group's name is the kind's code. Longer prefixes stand first in KINDS."""

WHOLE: tuple[tuple[Kind, re.Pattern[bytes]], ...] = tuple(
    (kind, re.compile(f"(?:{kind.prefix})(?:{kind.tail})".encode())) for kind in _PREFIXED
)
"""What a value of each prefixed kind looks like in full; used with `match` at the start of a token."""

LEADS = frozenset(
    b"sk- lsv sk_ rk_ git ghp gho ghs ghu ghr glp gld glr glc gls gli AKI ASI xox xap npm pyp hf_ AIz ya2 GOC gsk xai ppl r8_ fw_ csk nva"
    b" tvl e2b hvs hvb hvr doo dop dor dap lin SG. tsk dp. sbp fig ntn ATA shp dck PMA NRA snt psc rub oy2 bku pul eyJ".split()
)
"""The first three bytes of every prefix: a set is asked before an expression is tried."""

_BY_CODE = {kind.code: kind for kind in KINDS}

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

COMMON = frozenset(
    b"password passw0rd password1 changeme changeit 12345678 123456789 1234567890 localhost undefined anonymous disabled enabled default"
    b" production development staging testing example username administrator x-access-token x-oauth-basic secondtake placeholder"
    b" postgres postgresql mongodb rabbitmq redacted required optional unknown internal external".split()
)
"""Words that are never searched by value: they would be found in every text. Lower-case."""


def searchable(value: bytes) -> bool:
    """Whether `value` may be looked for anywhere: at least 8 bytes, no common word, no run of one character."""
    return len(value) >= 8 and len(set(value)) >= 4 and value.lower() not in COMMON


def estimated_bits(value: bytes) -> float:
    """A rough upper estimate of what guessing `value` costs: Shannon's measure of its own bytes times its length."""
    size = len(value)
    return -sum(n * math.log2(n / size) for n in Counter(value).values()) if size else 0.0


def looks_random(value: bytes) -> bool:
    """Whether a value in an ambiguous place is a credential rather than a name: long, mixed, without structure."""
    if value_kind(value) is not None:
        return True
    if len(value) < 20 or not re.fullmatch(rb"[A-Za-z0-9_\-+/=.~%]+", value):
        return False
    return bool(re.search(rb"[0-9]", value) and re.search(rb"[A-Za-z]", value)) and estimated_bits(value) >= 3.2 * len(value)


def value_kind(value: bytes) -> str | None:
    """The kind a value shows by its own prefix, or None."""
    found = PREFIX.match(value)
    if found is None or len(value) - found.end() < 8 or found.lastgroup is None:
        return None
    kind = _BY_CODE[found.lastgroup]
    if kind.name in {"openai-api-key", "databricks-token", "nuget-key", "jwt"}:  # prefixes that are also plain words
        return kind.name if dict(WHOLE)[kind].match(value) else None
    return kind.name


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
        value = text.encode("utf-8", "surrogateescape")
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
