"""Takes the credentials out of a request, and puts one in as its provider wants it (PROVIDERS A2). Pure.

What is taken out is what secrets.py and kinds.py know, in every field and in the query: the agent's own credential never travels beside
another. The body is left alone: it is the prompt.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from datetime import datetime

from secondtake.cassettes import places, sigv4
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.exchange import Fields, Request
from secondtake.cassettes.secrets import header_kind
from secondtake.cassettes.tokens import payload

OAUTH_BETA = b"oauth-2025-04-20"
"""What a subscription login of Anthropic asks for beside its token (PROVIDERS A2)."""

_ACCOUNTS = frozenset(
    (
        b"openai-organization", b"openai-project", b"chatgpt-account-id", b"anthropic-workspace-id", b"anthropic-user-profile-id",
        b"x-goog-user-project",
    )
)  # fmt: skip
"""Fields that name whose account pays. They belong to the credential: with it to another endpoint they would be wrong."""

_BEARERS = re.compile(rb"ya29\.|eyJ")
"""Beginnings of tokens that are presented as a bearer whatever the provider's keys are presented as."""

_AUTHORIZATION = b"authorization"


@dataclass(frozen=True, slots=True)
class Secret:
    """One credential: a token or key, or AWS keys to sign with. Never shown."""

    value: bytes = field(default=b"", repr=False)
    aws: sigv4.Credentials | None = field(default=None, repr=False)
    expires_s: float | None = None
    """When it ends, seconds since 1970; None where it does not say."""

    @property
    def values(self) -> tuple[bytes, ...]:
        """Everything in it that must not be seen."""
        keys = () if self.aws is None else (self.aws.secret_key, self.aws.session_token, self.aws.access_key)
        return tuple(one for one in (self.value, *(key.encode() for key in keys if key)) if one)


def read_secret(text: bytes) -> Secret:
    """A credential as a variable or a command gives it: a token alone, or a JSON object as credential helpers write it.

    JSON is read as AWS' `credential_process` (AccessKeyId, SecretAccessKey, SessionToken, Expiration) or by the first of `access_token`,
    `accessToken`, `token`, `key`, with `expiry` or `expires_at`. The expiry of a web token is its own claim.

    Raises:
        BadInput: it is empty, or has a line end or another control character in it. The message does not show it.
    """
    value = text.strip()
    if value.startswith(b"{"):
        return _from_json(value)
    if not value or any(byte <= 0x20 or byte == 0x7F for byte in value):
        raise BadInput("the credential is empty or has white space in it")
    return Secret(value, expires_s=_claimed_end(value))


def _from_json(value: bytes) -> Secret:
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        raise BadInput("the credential begins like JSON and is none") from None
    if not isinstance(found, dict):
        raise BadInput("the credential is no JSON object")
    ends = next((_moment(found[name]) for name in ("Expiration", "expiry", "expires_at", "expiresAt") if name in found), None)
    if isinstance(found.get("AccessKeyId"), str) and isinstance(found.get("SecretAccessKey"), str):
        session = found.get("SessionToken")
        keys = sigv4.Credentials(found["AccessKeyId"], found["SecretAccessKey"], session if isinstance(session, str) and session else None)
        return Secret(aws=keys, expires_s=ends)
    for name in ("access_token", "accessToken", "token", "key"):
        if isinstance(found.get(name), str):
            plain = read_secret(found[name].encode())
            return replace(plain, expires_s=ends if ends is not None else plain.expires_s)
    raise BadInput("the credential is a JSON object without a token in it")


def _moment(value: object) -> float | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value / 1000 if value > 100_000_000_000 else float(value)
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return None if found is None or found.tzinfo is None else found.timestamp()


def _claimed_end(token: bytes) -> float | None:
    ends = (payload(token) or {}).get("exp")
    return float(ends) if isinstance(ends, (int, float)) and not isinstance(ends, bool) else None


# ---- out -----------------------------------------------------------------------------------------------------------


def without_credentials(request: Request, *, elsewhere: bool) -> Request:
    """The request without any credential. `elsewhere`: it goes to another endpoint, so what names the account goes as well."""
    fields = tuple(one for one in request.fields if not _holds(*one) and not (elsewhere and one[0].lower() in _ACCOUNTS))
    trailers = tuple(one for one in request.trailers if not _holds(*one))
    return replace(request, fields=fields, trailers=trailers, path=_path(request.path))


def _holds(name: bytes, value: bytes) -> bool:
    return header_kind(name) is not None or next(places.shaped(value), None) is not None or next(places.url(value), None) is not None


def _path(target: bytes) -> bytes:
    """The target without the pairs of its query that hold a credential, and without `key`, which holds nothing else on a model's path."""
    path, mark, query = target.partition(b"?")
    if not mark:
        return target
    kept = [pair for pair in query.split(b"&") if not _is_secret(pair)]
    return path + (mark + b"&".join(kept) if kept else b"")


def _is_secret(pair: bytes) -> bool:
    if pair.partition(b"=")[0].strip().lower() == b"key":
        return True
    return next(places.query(pair, 0, len(pair)), None) is not None or next(places.shaped(pair), None) is not None


# ---- in ------------------------------------------------------------------------------------------------------------


def authorised(adapter: str, request: Request, content: bytes, secret: Secret, when: datetime, *, elsewhere: bool = False) -> Request:
    """The request with `secret` as the one credential, in the place where the old one stood, or last.

    `content`: the body as it is sent, for signatures; `when` has a time zone.

    Raises:
        BadInput: AWS keys for what is not signed.
    """
    bare = without_credentials(request, elsewhere=elsewhere)
    if secret.aws is not None:
        if sigv4.scope(request.fields) is None:
            raise BadInput("AWS keys sign requests, and this one was not signed", hint="give a bearer token (AWS_BEARER_TOKEN_BEDROCK)")
        kept = tuple(one for one in request.fields if one in bare.fields or one[0].lower().startswith((_AUTHORIZATION, b"x-amz-")))
        return replace(bare, fields=sigv4.resign(replace(bare, fields=kept), content, secret.aws, when))
    name, value = _field(adapter, request, secret.value)
    if adapter == "bedrock":
        bare = replace(bare, fields=tuple(one for one in bare.fields if one[0].lower() not in (b"x-amz-date", b"x-amz-content-sha256")))
    placed = _placed(request, bare.fields, name, value)
    if adapter == "anthropic":
        placed = _beta(placed, wanted=secret.value.startswith(b"sk-ant-oat"))
    return replace(bare, fields=_account(placed, secret.value))


def _field(adapter: str, request: Request, value: bytes) -> tuple[bytes, bytes]:
    """Where this provider wants such a credential."""
    bearer = (b"Authorization", b"Bearer " + value)
    match adapter:
        case "anthropic":
            if value.startswith(b"sk-ant-oat") or _BEARERS.match(value):
                return bearer
            if value.startswith(b"sk-ant-"):
                return b"x-api-key", value
            used = {name.lower() for name, _ in request.fields}  # a gateway's key: as the agent was told to present it
            return bearer if _AUTHORIZATION in used and b"x-api-key" not in used else (b"x-api-key", value)
        case "azure-openai":
            return bearer if _BEARERS.match(value) else (b"api-key", value)
        case "gemini" | "vertex":
            keyed = value.startswith(b"AIza") or (adapter == "gemini" and not _BEARERS.match(value))
            return (b"x-goog-api-key", value) if keyed else bearer
        case _:
            return bearer


def _placed(request: Request, kept: Fields, name: bytes, value: bytes) -> Fields:
    """`kept` with the new field where the first old one stood; in the old one's spelling where it has the same name."""
    at = 0
    for old, held in request.fields:
        if (old, held) in kept:
            at = kept.index((old, held)) + 1
        elif header_kind(old) is not None:
            spelled = old if old.lower() == name.lower() else name
            return (*kept[:at], (spelled, value), *kept[at:])
    return (*kept, (name, value))


def _beta(fields: Fields, *, wanted: bool) -> Fields:
    """The beta that goes with a login, added to those that are asked for, or taken out of them."""
    result: list[tuple[bytes, bytes]] = []
    seen = False
    for name, value in fields:
        if name.lower() != b"anthropic-beta":
            result.append((name, value))
            continue
        names = [one.strip() for one in value.split(b",")]
        if wanted and not seen and OAUTH_BETA not in names:
            result.append((name, value + b"," + OAUTH_BETA))
        elif not wanted and OAUTH_BETA in names:
            left = b",".join(one for one in names if one != OAUTH_BETA)
            result += [(name, left)] if left else []
        else:
            result.append((name, value))
        seen = True
    if wanted and not seen:
        result.append((b"anthropic-beta", OAUTH_BETA))
    return tuple(result)


def _account(fields: Fields, value: bytes) -> Fields:
    """Codex with a login names the account beside the token; the token names it too, and the two must agree."""
    claims = (payload(value) or {}).get("https://api.openai.com/auth")
    account = claims.get("chatgpt_account_id") if isinstance(claims, dict) else None
    if not isinstance(account, str) or not account.isascii() or not account.isprintable():
        return fields
    return tuple((name, account.encode() if name.lower() == b"chatgpt-account-id" else old) for name, old in fields)
