"""Bedrock after a swap: signed anew, or not sent."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import quote

import pytest

from secondtake.cassettes.casting import Casting
from secondtake.cassettes.exchange import Fields, Request
from secondtake.cassettes.sigv4 import Credentials
from secondtake.cassettes.swap import Swap, prepare
from secondtake.proxy.signing import BEARER, Bearer, Unsigned, ambient, needs_signature, resign, resigned

OLD, NEW = Credentials("AKIDOLD", "old"), Credentials("AKIDNEW", "new", "SESSION")
WHEN = datetime(2026, 11, 30, 4, 31, 34, tzinfo=UTC)
HOST = "bedrock-runtime.eu-west-1.amazonaws.com"
BODY = json.dumps({"anthropic_version": "bedrock-2023-05-31", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}).encode()
CASTING = Casting.of(["eu.anthropic.claude-haiku-4-5-20251001-v1:0"])


def botocore_signed(path: str, body: bytes, keys: Credentials, when: datetime) -> Fields:
    """What the agent's own client sends: signed by botocore, which is the sender here and never the judge."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials as Botocore

    sent = AWSRequest(
        "POST", f"https://{HOST}{path}", headers={"Content-Type": "application/json", "X-Amz-Date": f"{when:%Y%m%dT%H%M%SZ}"}, data=body
    )
    sent.context["timestamp"] = f"{when:%Y%m%dT%H%M%SZ}"
    auth = SigV4Auth(Botocore(keys.access_key, keys.secret_key, keys.session_token), "bedrock", "eu-west-1")
    auth.add_auth(sent)
    return tuple((name.encode(), value.encode() if isinstance(value, str) else value) for name, value in sent.headers.items())


def agents() -> Request:
    path = "/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke"
    return Request("POST", "https", HOST, 443, path.encode(), fields=botocore_signed(path, BODY, OLD, datetime.now(UTC)))


def swapped() -> tuple[Request, Swap]:
    before = agents()
    made = prepare(before, BODY, "bedrock", CASTING)
    assert isinstance(made, Swap), made
    return before, made


def verifies(request: Request, content: bytes, secret: str) -> bool:
    """A verifier of its own, from the text of the specification: it knows only the request and the secret."""
    sent: dict[str, str] = {"host": request.host}
    for name, value in request.fields:
        sent[name.decode().lower()] = re.sub(r" +", " ", value.decode().strip())
    match = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})",
        sent["authorization"],
    )
    if match is None:
        return False
    _, day, region, service, signed, signature = match.groups()
    if not sent["x-amz-date"].startswith(day) or "host" not in signed.split(";"):
        return False
    path, _, query = request.path.decode().partition("?")
    canonical = [request.method, quote(path, safe="/-_.~"), "&".join(sorted(query.split("&")))]
    canonical += [f"{name}:{sent[name]}" for name in signed.split(";")]
    canonical += ["", signed, hashlib.sha256(content).hexdigest()]
    scope = f"{day}/{region}/{service}/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{sent['x-amz-date']}\n{scope}\n{hashlib.sha256(chr(10).join(canonical).encode()).hexdigest()}"
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    return hmac.compare_digest(hmac.new(key, text.encode(), "sha256").hexdigest(), signature)


def test_the_verifier_takes_what_botocore_signs_and_nothing_else() -> None:
    """A-07: the judge is tested first."""
    request = agents()
    assert verifies(request, BODY, "old")
    assert not verifies(request, BODY, "new")
    assert not verifies(request, BODY + b" ", "old")
    assert not verifies(replace(request, path=request.path.replace(b"sonnet", b"haiku")), BODY, "old")


def test_a_swap_breaks_the_agents_signature() -> None:
    """A-07: the path is signed, so a swapped call must not go as it is."""
    before, made = swapped()
    assert made.request.path == b"/model/eu.anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke"
    assert not verifies(made.request, made.content, "old")
    assert needs_signature(before, made.request, content_changed=False)
    assert not needs_signature(before, before, content_changed=False)
    assert needs_signature(before, before, content_changed=True)
    assert not needs_signature(replace(before, fields=()), made.request, content_changed=True)


def test_after_signing_anew_it_verifies_with_the_operators_key() -> None:
    """A-07: path encoded as it is sent, body as it is sent, session token covered; nothing of the old signature is left."""
    _, made = swapped()
    sent = resigned(made.request, made.content, credentials=NEW, when=WHEN)
    assert verifies(sent, made.content, "new")
    assert not verifies(sent, made.content, "old")
    fields = dict(sent.fields)
    assert fields[b"x-amz-date"] == b"20261130T043134Z"
    assert fields[b"x-amz-security-token"] == b"SESSION"
    assert b"AKIDOLD" not in b"".join(value for _, value in sent.fields)
    assert b"security-token" in fields[b"authorization"]


def test_the_time_is_given_in_any_zone() -> None:
    """A-07: a signature is in UTC."""
    _, made = swapped()
    there = WHEN.astimezone(timezone(timedelta(hours=-7)))
    assert resign(made.request, BODY, credentials=NEW, when=there) == resign(made.request, BODY, credentials=NEW, when=WHEN)


def test_a_changed_body_is_covered() -> None:
    """A-07: rules may cut the body as well."""
    before = agents()
    request = replace(before, fields=tuple(field for field in before.fields if field[0].lower() != b"content-length"))
    made = prepare(request, BODY.replace(b'"max_tokens"', b'"temperature": 1, "max_tokens"'), "bedrock", CASTING, rules={"drop-sampling"})
    assert isinstance(made, Swap)
    sent = resigned(made.request, made.content, credentials=NEW, when=WHEN)
    assert b"temperature" not in made.content
    assert verifies(sent, made.content, "new")


def test_a_bearer_key_stands_where_the_signature_stood() -> None:
    """A-07: with Bedrock's own key nothing is signed."""
    _, made = swapped()
    fields = resign(made.request, made.content, credentials=Bearer("ABSKxyz"), when=WHEN)
    assert [name.lower() for name, _ in fields].count(b"authorization") == 1
    assert {name.lower(): value for name, value in fields}[b"authorization"] == b"Bearer ABSKxyz"
    assert not any(name.lower().startswith(b"x-amz-") for name, _ in fields)
    assert (b"Authorization", b"Bearer ABSKxyz") in resign(replace(made.request, fields=()), b"", credentials=Bearer("ABSKxyz"), when=WHEN)


def test_without_credentials_nothing_is_sent_and_the_reason_has_a_type() -> None:
    """A-07: answered here, with what would help."""
    _, made = swapped()
    with pytest.raises(Unsigned, match="no credentials") as raised:
        resign(made.request, made.content, credentials=None, when=WHEN)
    assert raised.value.hint is not None
    assert BEARER in raised.value.hint


def test_keys_sign_only_what_was_signed_and_only_for_its_region() -> None:
    """A-07: a credential goes nowhere it is not for."""
    _, made = swapped()
    with pytest.raises(Unsigned, match="was not signed"):
        resign(replace(made.request, fields=()), b"", credentials=NEW, when=WHEN)
    with pytest.raises(Unsigned, match="signed for bedrock in eu-west-1"):
        resign(made.request, b"", credentials=NEW, when=WHEN, region="us-east-1")
    with pytest.raises(Unsigned, match="not for sagemaker"):
        resign(made.request, b"", credentials=NEW, when=WHEN, service="sagemaker")
    assert resign(made.request, b"", credentials=NEW, when=WHEN, region="eu-west-1", service="bedrock")


def no_profile(_name: str | None) -> Credentials | None:
    return None


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({BEARER: " ABSK ", "AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "s"}, Bearer("ABSK")),
        ({"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "s"}, Credentials("A", "s")),
        ({"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}, Credentials("A", "s", "t")),
        ({"AWS_ACCESS_KEY_ID": "A"}, None),
        ({}, None),
    ],
)
def test_the_environment_is_looked_through_in_the_order_clients_use(environ: dict[str, str], expected: object) -> None:
    """A-07: bearer key, keys, profile."""
    assert ambient(environ, no_profile) == expected


def test_the_profile_comes_last_and_by_its_name() -> None:
    """A-07: the operator's AWS profile."""
    asked: list[str | None] = []

    def profiles(name: str | None) -> Credentials | None:
        asked.append(name)
        return NEW

    assert ambient({"AWS_PROFILE": "work"}, profiles) == NEW
    assert ambient({"AWS_PROFILE": ""}, profiles) == NEW
    assert asked == ["work", None]


def test_botocore_reads_the_profile(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """A-07: keys of the shared file; a profile that is not there is a typed error."""
    from pathlib import Path

    from secondtake.proxy.signing import of_profile

    assert isinstance(tmp_path, Path)
    file = tmp_path / "credentials"
    file.write_text("[work]\naws_access_key_id = AKIDFILE\naws_secret_access_key = file-secret\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert of_profile("work") == Credentials("AKIDFILE", "file-secret")
    with pytest.raises(Unsigned, match="absent"):
        of_profile("absent")
    assert of_profile(None) is None


def test_no_secret_is_ever_shown() -> None:
    """A-07: neither by repr nor in an error."""
    assert "ABSK" not in repr(Bearer("ABSK"))
    assert "new" not in repr(NEW)
