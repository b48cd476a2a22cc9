"""Signing a Bedrock call anew after its model was swapped, with what the operator has: a bearer key, keys, or a profile (A-07).

The model stands in the path, and AWS' signature covers path and body, so the agent's signature is broken by a swap. With nothing to
sign with, the call is answered here and nothing is sent. The signature itself is made by `cassettes.sigv4`; botocore (the extra
`bedrock`) is asked only for a profile's keys, and imported only then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from secondtake.cassettes import sigv4
from secondtake.cassettes.errors import RecordedError
from secondtake.cassettes.exchange import Fields, Request
from secondtake.cassettes.sigv4 import Credentials
from secondtake.proxy.credentials import Learns

BEARER = "AWS_BEARER_TOKEN_BEDROCK"
"""Bedrock's own key; with it nothing is signed."""

_SIGNATURE = (b"authorization", b"x-amz-date", b"x-amz-security-token", b"x-amz-content-sha256")


class Unsigned(RecordedError):
    """The call needs a signature and there is nothing to make it with. It was answered here; nothing was sent."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """A key that is sent as it is."""

    token: str = field(repr=False)


type Key = Bearer | Credentials
type Profiles = Callable[[str | None], Credentials | None]
"""Gives the keys of a profile (None: the default one), or None where it has none."""


class Signer:
    """Signs what an agent had signed and a swap has changed, with what the operator's environment has."""

    def __init__(
        self, environ: Mapping[str, str], *, redactor: Learns, now: Callable[[], datetime], profiles: Profiles | None = None
    ) -> None:
        self._environ = environ
        self._redactor = redactor
        self._now = now
        self._profiles = profiles
        self._asking = asyncio.Lock()
        self._key: Key | None = None

    async def sign(self, request: Request, content: bytes) -> Request:
        """`request` as it can be sent with `content`. The key is looked up once, and never reaches the disk.

        Raises:
            Unsigned: there is nothing to sign with, or the request was signed for something else.
        """
        async with self._asking:
            if self._key is None:
                self._key = await asyncio.to_thread(ambient, self._environ, self._profiles)
        if isinstance(self._key, Bearer):
            self._redactor.learn("aws", self._key.token.encode(), BEARER)
        elif self._key is not None:
            for value in (self._key.secret_key, self._key.session_token):
                if value:
                    self._redactor.learn("aws", value.encode(), "AWS")
        return resigned(request, content, credentials=self._key, when=self._now())


def needs_signature(before: Request, sent: Request, *, content_changed: bool) -> bool:
    """Whether the agent signed its request, and what is sent is no longer what it signed."""
    return sigv4.scope(before.fields) is not None and (content_changed or before.path != sent.path or before.host != sent.host)


def ambient(environ: Mapping[str, str], profiles: Profiles | None = None) -> Key | None:
    """What the operator's environment has to sign with: the bearer key, else keys, else those of the profile.

    `profiles` None: botocore's, where it is installed; it may read files, run a helper or ask a metadata service, so call this in a
    thread.
    """
    token = environ.get(BEARER, "").strip()
    if token:
        return Bearer(token)
    access, secret = environ.get("AWS_ACCESS_KEY_ID", "").strip(), environ.get("AWS_SECRET_ACCESS_KEY", "").strip()
    if access and secret:
        return Credentials(access, secret, environ.get("AWS_SESSION_TOKEN", "").strip() or None)
    return (profiles or of_profile)(environ.get("AWS_PROFILE") or None)


def of_profile(name: str | None) -> Credentials | None:
    """The keys of a profile as botocore finds them; None where it is not installed or finds none."""
    try:
        from botocore.exceptions import BotoCoreError
        from botocore.session import Session
    except ImportError:
        return None
    try:
        found = Session(profile=name).get_credentials()
        keys = found.get_frozen_credentials() if found is not None else None
    except BotoCoreError as error:
        raise Unsigned(f"AWS profile `{name or 'default'}`: {error}", hint="aws sts get-caller-identity") from None
    if keys is None or not keys.access_key or not keys.secret_key:
        return None
    return Credentials(keys.access_key, keys.secret_key, keys.token)


def resign(
    request: Request,
    content: bytes,
    *,
    credentials: Key | None,
    when: datetime,
    region: str | None = None,
    service: str | None = None,
) -> Fields:
    """Return the fields of `request`, as it will be sent, with a new signature or a bearer key in place of the old signature.

    `content`: the body's bytes on the wire. `region`, `service`: to insist on those; None takes the old signature's. `when` has a zone.

    Raises:
        Unsigned: no credentials, or the request was not signed for this region and service.
    """
    covered = sigv4.scope(request.fields)
    if credentials is None:
        raise Unsigned(
            "the swapped call needs a new AWS signature, and there are no credentials to make it with",
            hint=f"export {BEARER}=…, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE with botocore installed",
        )
    if isinstance(credentials, Bearer):
        return _bearing(request.fields, credentials)
    if covered is None:
        raise Unsigned("AWS keys sign requests, and this one was not signed", hint=f"export {BEARER}=…")
    if (region or covered.region) != covered.region or (service or covered.service) != covered.service:
        raise Unsigned(f"the call was signed for {covered.service} in {covered.region}, not for {service or covered.service} in {region}")
    return sigv4.resign(request, content, credentials, when)


def resigned(request: Request, content: bytes, *, credentials: Key | None, when: datetime) -> Request:
    """`request` with the fields of `resign`. Raises as it does."""
    return replace(request, fields=resign(request, content, credentials=credentials, when=when))


def _bearing(fields: Fields, key: Bearer) -> Fields:
    """The old signature's fields go; the key stands where `authorization` stood, else last."""
    made: list[tuple[bytes, bytes]] = []
    placed = False
    value = b"Bearer " + key.token.encode("utf-8")
    for name, old in fields:
        if name.lower() not in _SIGNATURE:
            made.append((name, old))
        elif name.lower() == b"authorization" and not placed:
            made.append((name, value))
            placed = True
    return tuple(made) if placed else (*made, (b"Authorization", value))
