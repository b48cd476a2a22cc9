"""Signing anew: the same bytes as AWS' own example and botocore make."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import quote

import pytest

from secondtake.cassettes import adapters
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.exchange import Fields, Request
from secondtake.cassettes.redact import Redactor
from secondtake.cassettes.sigv4 import Credentials, Scope, resign, scope

PATH = b"/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse"
BODY = b'{"messages": [{"role": "user", "content": [{"text": "x"}]}]}'
SIGNATURE = "f22efead1952c3c347cea406c188a89650a72bc06d4a5ac1dd8d24b2f09562b4"
"""Made by botocore 1.44.8 for the request below, with the key AKIAOLD, secret `old`, session token TOKEN."""
AUTHORIZATION = (
    "AWS4-HMAC-SHA256 Credential=AKIAOLD/20261130/us-east-1/bedrock/aws4_request, "
    f"SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature={SIGNATURE}"
)
FIELDS: Fields = (
    (b"Content-Type", b"application/json"),
    (b"User-Agent", b"not signed"),
    (b"X-Amz-Date", b"20261130T043134Z"),
    (b"X-Amz-Security-Token", b"TOKEN"),
    (b"Authorization", AUTHORIZATION.encode()),
)
REQUEST = Request("POST", "https", "bedrock-runtime.us-east-1.amazonaws.com", 443, PATH, fields=FIELDS)
WHEN = datetime(2026, 11, 30, 4, 31, 34, tzinfo=UTC)


def only(fields: Fields, name: bytes) -> str:
    (value,) = [value for key, value in fields if key.lower() == name]
    return value.decode()


def verified(request: Request, content: bytes, secret: str) -> bool:
    """A verifier of its own: reads what the request says and computes the rest from the specification's text."""
    sent = {name.lower().decode(): value.decode() for name, value in request.fields} | {"host": request.host}
    parts = dict(part.strip().split("=", 1) for part in sent["authorization"].removeprefix("AWS4-HMAC-SHA256 ").split(","))
    _, *day = parts["Credential"].split("/")
    signed = parts["SignedHeaders"].split(";")
    headers = "".join(f"{name}:{sent[name]}\n" for name in signed)
    sha = hashlib.sha256(content).hexdigest()
    canonical = f"POST\n{quote(request.path.decode(), safe='/')}\n\n{headers}\n{parts['SignedHeaders']}\n{sha}"
    text = f"AWS4-HMAC-SHA256\n{sent['x-amz-date']}\n{'/'.join(day)}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{secret}".encode()
    for part in (*day, text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key.hex() == parts["Signature"]


def test_the_same_key_and_time_give_botocores_signature() -> None:
    """A-07: path encoded twice, token signed."""
    made = resign(REQUEST, BODY, Credentials("AKIAOLD", "old", "TOKEN"), WHEN)
    assert only(made, b"authorization") == AUTHORIZATION
    assert verified(replace(REQUEST, fields=made), BODY, "old")


def test_aws_own_example_is_met() -> None:
    """The `get-vanilla` case of AWS' published test suite for this algorithm."""
    old = f"AWS4-HMAC-SHA256 Credential=OLD/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature={'0' * 64}"
    request = Request("GET", "https", "example.amazonaws.com", 443, b"/", fields=((b"authorization", old.encode()),))
    made = resign(
        request, b"", Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"), datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
    )
    assert only(made, b"authorization").endswith("Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31")


def test_a_swapped_request_verifies_with_the_new_key_only() -> None:
    """A-07: after the splice, with other credentials; what was not signed stays as it is."""
    asked = adapters.read_request("bedrock", REQUEST, BODY)
    path = adapters.splice_path(REQUEST.path, dict.fromkeys(asked.places, "anthropic.claude-opus-4-6-v1"))
    swapped = replace(REQUEST, path=path)
    assert not verified(swapped, BODY, "old")
    when = datetime(2026, 12, 1, 1, 0, tzinfo=timezone(timedelta(hours=2)))
    fields = resign(swapped, BODY, Credentials("AKIANEW", "new"), when)
    assert verified(replace(swapped, fields=fields), BODY, "new")
    assert not verified(replace(swapped, fields=fields), BODY + b" ", "new")
    assert only(fields, b"x-amz-date") == "20261130T230000Z"
    assert not any(name.lower() == b"x-amz-security-token" for name, _ in fields)
    assert fields[:2] == FIELDS[:2]


def test_a_signed_payload_hash_is_made_anew() -> None:
    """Some clients send it as a field."""
    request = replace(REQUEST, fields=(*FIELDS, (b"X-Amz-Content-Sha256", b"0" * 64)))
    fields = resign(request, BODY, Credentials("A", "s"), WHEN)
    assert only(fields, b"x-amz-content-sha256") == hashlib.sha256(BODY).hexdigest()
    assert "x-amz-content-sha256" in only(fields, b"authorization")
    assert verified(replace(request, fields=fields), BODY, "s")


@pytest.mark.parametrize("value", [b"Bearer ABSKxyz", b"AWS4-HMAC-SHA256 Credential=x", b""])
def test_what_is_not_signed_is_not_signed_anew(value: bytes) -> None:
    """PROVIDERS A3: a bearer key needs no signature."""
    request = replace(REQUEST, fields=((b"authorization", value),))
    assert scope(request.fields) is None
    with pytest.raises(BadInput):
        resign(request, BODY, Credentials("A", "s"), WHEN)


def test_the_scope_is_read_and_secrets_are_not_shown() -> None:
    """C-14: a secret must not reach a log by way of a value's own text."""
    assert scope(FIELDS) == Scope("us-east-1", "bedrock", ("content-type", "host", "x-amz-date", "x-amz-security-token"))
    assert scope(()) is None
    assert "s3cret" not in repr(Credentials("A", "s3cret", "s3cret"))


def test_a_signature_that_was_redacted_still_says_what_it_covered() -> None:
    """A-11, probe: a recorded request is signed anew, though its own signature is on no cassette."""
    kept, _ = Redactor(key=b"k" * 32).request(REQUEST)
    assert SIGNATURE.encode() not in dict(kept.fields)[b"Authorization"]
    assert scope(kept.fields) == scope(FIELDS)
    fields = resign(kept, BODY, Credentials("A", "s"), WHEN)
    assert verified(replace(kept, fields=fields), BODY, "s")
