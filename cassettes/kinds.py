"""What kinds of credentials there are, and how a value shows which it is.

The rows follow the providers' public documentation of their key formats. secrets.py says where they stand; both are one table.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass


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

USED_ONCE = frozenset({OPAQUE, "aws-signature", "url-signature", "oauth-code"})
"""Kinds whose value never comes again, so it is hidden where it stands and not looked for elsewhere."""

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

COMMON = frozenset(
    b"password passw0rd password1 changeme changeit 12345678 123456789 1234567890 localhost undefined anonymous disabled enabled default"
    b" production development staging testing example username administrator x-access-token x-oauth-basic secondtake placeholder"
    b" postgres postgresql mongodb rabbitmq redacted required optional unknown internal external".split()
)
"""Words that are never searched by value: they would be found in every text. Lower-case."""


def searchable(value: bytes) -> bool:
    """Whether `value` may be looked for anywhere: 8 bytes to 16 KiB, no common word, no run of one character."""
    return 8 <= len(value) <= 16 * 1024 and len(set(value)) >= 4 and value.lower() not in COMMON


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
    if value[:3] not in LEADS:
        return None
    found = PREFIX.match(value)
    if found is None or len(value) - found.end() < 8 or found.lastgroup is None:
        return None
    kind = _BY_CODE[found.lastgroup]
    if kind.name in {"openai-api-key", "databricks-token", "nuget-key", "jwt"}:  # prefixes that are also plain words
        return kind.name if dict(WHOLE)[kind].match(value) else None
    return kind.name
