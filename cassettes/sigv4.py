"""AWS Signature Version 4: signing a request anew after its model was swapped (AWS, "Signature Version 4 signing process").

A model ID in the path or body is covered by the signature, so a swap breaks it. The old `authorization` field says which
region, service and fields were signed; the new one covers the same with other credentials. The time is an argument.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote

from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.exchange import Fields, Request

ALGORITHM = "AWS4-HMAC-SHA256"

_AUTHORIZATION = re.compile(
    rf"{ALGORITHM}\s+Credential=[^/,]+/\d{{8}}/(?P<region>[a-z0-9-]+)/(?P<service>[a-z0-9-]+)/aws4_request,\s*"
    r"SignedHeaders=(?P<signed>[a-z0-9;_-]+),\s*Signature=[0-9A-Za-z._-]{64}"  # as kept, a placeholder stands in a signature's place
)
_REPLACED = (b"authorization", b"x-amz-date", b"x-amz-security-token", b"x-amz-content-sha256", b"date")


@dataclass(frozen=True, slots=True)
class Credentials:
    """One key. `session_token`: of temporary credentials."""

    access_key: str
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Scope:
    """What an `authorization` field says that it covers."""

    region: str
    service: str
    signed: tuple[str, ...]


def scope(fields: Fields) -> Scope | None:
    """The scope of a signed request; None where it is not signed this way (a bearer key needs no new signature)."""
    for name, value in fields:
        if name.lower() == b"authorization":
            match = _AUTHORIZATION.fullmatch(value.decode("latin-1").strip())
            return None if match is None else Scope(match["region"], match["service"], tuple(match["signed"].split(";")))
    return None


def resign(request: Request, content: bytes, credentials: Credentials, when: datetime) -> Fields:
    """Return the fields of `request`, as it will be sent, signed anew. `content`: the body's bytes on the wire.

    Fields stay in their places; `authorization` and `x-amz-date` are replaced, a session token is replaced, added or left
    out as the credentials have one. `when` has a time zone.

    Raises:
        BadInput: the request is not signed with SigV4.
    """
    covered = scope(request.fields)
    if covered is None:
        raise BadInput("the request is not signed with AWS Signature Version 4")
    stamp = when.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    payload = hashlib.sha256(content).hexdigest()
    kept = [(name, value) for name, value in request.fields if name.lower() not in _REPLACED]
    hashed = any(name.lower() == b"x-amz-content-sha256" for name, _ in request.fields)
    added = [(b"x-amz-date", stamp.encode())]
    if hashed:
        added.append((b"x-amz-content-sha256", payload.encode()))
    if credentials.session_token is not None:
        added.append((b"x-amz-security-token", credentials.session_token.encode("ascii", "strict")))
    names = {name.lower().decode("latin-1") for name, _ in [*kept, *added]} | {"host"}
    own = {name.decode() for name, _ in added} | {"host"}
    signed = sorted(name for name in own | set(covered.signed) if name in names)
    canonical = _canonical(request, [*kept, *added], signed, payload)
    day = f"{stamp[:8]}/{covered.region}/{covered.service}/aws4_request"
    text = f"{ALGORITHM}\n{stamp}\n{day}\n{hashlib.sha256(canonical).hexdigest()}"
    key = b"AWS4" + credentials.secret_key.encode()
    for step in (stamp[:8], covered.region, covered.service, "aws4_request"):
        key = hmac.digest(key, step.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    value = f"{ALGORITHM} Credential={credentials.access_key}/{day}, SignedHeaders={';'.join(signed)}, Signature={signature}"
    return (*kept, *added, (b"authorization", value.encode("ascii")))


def _canonical(request: Request, fields: list[tuple[bytes, bytes]], signed: list[str], payload: str) -> bytes:
    """The canonical request. Every service but S3 encodes the path once more than it is sent."""
    path, _, query = request.path.partition(b"?")
    values: dict[str, list[str]] = {}
    for name, value in fields:
        values.setdefault(name.lower().decode("latin-1"), []).append(" ".join(value.decode("latin-1").split()))
    values.setdefault("host", [_host(request)])
    lines = [
        request.method,
        quote(path or b"/", safe="/-._~"),
        "&".join(sorted(part if "=" in part else f"{part}=" for part in query.decode("latin-1").split("&") if part)),
        *(f"{name}:{','.join(values[name])}" for name in signed),
        "",
        ";".join(signed),
        payload,
    ]
    return "\n".join(lines).encode("latin-1")


def _host(request: Request) -> str:
    default = {"https": 443, "http": 80}.get(request.scheme)
    return request.host if request.port == default else f"{request.host}:{request.port}"
