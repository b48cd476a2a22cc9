"""The real credential of a retake: where it comes from, where it goes, and where it is never seen."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shlex import quote

import pytest

from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.exchange import Request, Side
from secondtake.cassettes.memory import fields
from secondtake.cassettes.player import Serve
from secondtake.cassettes.redact import Redactor
from secondtake.proxy.credentials import (
    OUTPUT_BYTES,
    Credentials,
    CredentialSource,
    FromCommand,
    FromEnvironment,
    NoCredential,
    run_command,
)
from tests.cassettes.logins_scene import JSON, NOW_S, Scene, ask, jwt

KEY = "gw-R2D2c3poBB8xyzQm9vS2VlcGVyMTIzNDU2"
HOST = "api.provider.example"
CALL = Request("POST", "https", HOST, 443, b"/v1/messages", fields=fields("x-api-key: dummy-dummy-dummy"))


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.when = datetime.fromtimestamp(NOW_S, UTC)

    def __call__(self) -> datetime:
        return self.when


class Written:
    """A command that is not run: what it writes, one after the other, the last again."""

    def __init__(self, *outputs: str) -> None:
        self.outputs = list(outputs)

    async def __call__(self, source: FromCommand, environ: Mapping[str, str]) -> bytes:
        await asyncio.sleep(0)
        return (self.outputs.pop(0) if len(self.outputs) > 1 else self.outputs[0]).encode()


def credentials(
    source: CredentialSource | None,
    run: Written | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    clock: Clock | None = None,
    redactor: Redactor | None = None,
    hosts: frozenset[str] | None = frozenset({HOST}),
    elsewhere: bool = False,
) -> Credentials:
    redactor = redactor or Redactor(key=b"k" * 32)
    return Credentials(source, hosts=hosts, environ=environ or {}, redactor=redactor, now=clock or Clock(), elsewhere=elsewhere, run=run)


def apply(of: Credentials, request: Request = CALL, adapter: str = "anthropic") -> dict[bytes, bytes]:
    return dict(asyncio.run(of.apply(adapter, request, b"{}")).fields)


def test_a_variable_is_put_on_the_call_and_known_to_the_redactor_before() -> None:
    """Issue 3, item 8: `--credential-env`; never on disk, in errors or logs."""
    redactor = Redactor(key=b"k" * 32)
    assert apply(credentials(FromEnvironment("K"), environ={"K": KEY}, redactor=redactor)) == {b"x-api-key": KEY.encode()}
    assert KEY not in redactor.text(f"boom: {KEY}")
    assert KEY.encode() not in redactor.body(f'{{"output":"{KEY}"}}'.encode(), (), Side.REQUEST).content


def test_a_credential_goes_to_the_one_host_it_is_for() -> None:
    """DESIGN 5; issue 3: in a retake only to the allowed host."""
    elsewhere = Request("POST", "https", "evil.example", 443, b"/v1/messages")
    given = credentials(FromEnvironment("K"), environ={"K": KEY})
    with pytest.raises(BadInput, match=r"not for evil\.example"):
        apply(given, elsewhere)
    assert given.fetched == 0
    port = Request("POST", "https", HOST, 8443, b"/v1/messages")
    assert apply(credentials(FromEnvironment("K"), hosts=frozenset({f"{HOST}:8443"}), environ={"K": KEY}), port) == {
        b"x-api-key": KEY.encode()
    }


def test_a_gateway_without_a_credential_gets_none() -> None:
    """Issue 3, item 3: the old credential never goes there."""
    request = Request("POST", "https", HOST, 443, b"/v1/messages", fields=fields("x-api-key: real", "openai-organization: o", "accept: a"))
    assert apply(credentials(None, hosts=None, elsewhere=True), request) == {b"accept": b"a"}


def test_a_command_is_asked_once_by_calls_side_by_side() -> None:
    """Cached: a command may ask a person."""
    given = credentials(FromCommand("x"), Written("key-number-1", "key-number-2"))

    async def both() -> list[Request]:
        return list(await asyncio.gather(*(given.apply("anthropic", CALL, b"") for _ in range(5))))

    assert {one.fields for one in asyncio.run(both())} == {((b"x-api-key", b"key-number-1"),)}
    assert given.fetched == 1


def test_after_a_401_the_next_call_carries_a_fresh_one() -> None:
    """Issue 3, item 8: a token that expires in the middle does not end the take."""
    given = credentials(FromCommand("x"), Written("key-number-1", "key-number-2"))
    given.answered(401)
    assert apply(given)[b"x-api-key"] == b"key-number-1"
    for status in (200, 403, 429, 500):
        given.answered(status)
    assert apply(given)[b"x-api-key"] == b"key-number-1"
    given.answered(401)
    assert apply(given)[b"x-api-key"] == b"key-number-2"


def test_temporary_keys_that_ended_are_renewed_after_a_403() -> None:
    """AWS: ExpiredTokenException comes as 403."""
    signed = "AWS4-HMAC-SHA256 Credential=AKIA/20260101/r/bedrock/aws4_request, SignedHeaders=host;x-amz-date, Signature=" + "0" * 64
    request = Request("POST", "https", HOST, 443, b"/model/m/converse", fields=fields(f"Authorization: {signed}"))
    one, other = (json.dumps({"AccessKeyId": f"ASIANUMBER{n}", "SecretAccessKey": "s" * 40}) for n in (1, 2))
    given = credentials(FromCommand("x"), Written(one, other))
    assert b"ASIANUMBER1/" in apply(given, request, "bedrock")[b"authorization"]
    given.answered(403)
    assert b"ASIANUMBER2/" in apply(given, request, "bedrock")[b"authorization"]


def test_one_that_says_when_it_ends_is_renewed_before() -> None:
    """A web token's own `exp`, or what the helper says."""
    clock = Clock()
    first, second = (jwt({"exp": NOW_S + seconds}) for seconds in (3600, 7200))
    given = credentials(FromCommand("x"), Written(first, second), clock=clock)
    assert apply(given)[b"Authorization"].endswith(first.encode())
    clock.when += timedelta(seconds=3500)
    assert apply(given)[b"Authorization"].endswith(first.encode())
    clock.when += timedelta(seconds=41)
    assert apply(given)[b"Authorization"].endswith(second.encode())


def test_a_take_goes_on_when_its_token_ends_in_the_middle() -> None:
    """Issue 3, item 8, whole: 401, the agent's refresh is answered locally, the next call has a fresh credential, nothing is kept."""
    scene, given = Scene(), credentials(FromCommand("x"), Written("real-token-number-1", "real-token-number-2"))
    refresh = ask("POST", "https://auth.example/oauth/token", JSON)
    sent = json.dumps({"grant_type": "refresh_token", "refresh_token": "sk-ant-ort01-" + "a1B2c3" * 8}).encode()
    before = apply(given)
    given.answered(401)
    answered = scene.play(refresh, sent)
    assert isinstance(answered, Serve)
    token = json.loads(answered.body.read(0, answered.body.size_bytes))["access_token"]
    assert token.startswith("sk-ant-oat01-")
    after = apply(given, Request("POST", "https", HOST, 443, b"/v1/messages", fields=fields(f"Authorization: Bearer {token}")))
    assert (before[b"x-api-key"], after[b"Authorization"]) == (b"real-token-number-1", b"Bearer real-token-number-2")


def test_aws_keys_are_read_from_the_three_variables() -> None:
    """PROVIDERS A2: Bedrock signs; A-07: a half-set pair is refused and nothing is sent."""
    signed = "AWS4-HMAC-SHA256 Credential=AKIA/20260101/r/bedrock/aws4_request, SignedHeaders=host;x-amz-date, Signature=" + "0" * 64
    request = Request(
        "POST", "https", HOST, 443, b"/model/m/converse", fields=fields(f"Authorization: {signed}", "X-Amz-Date: 20260101T000000Z")
    )
    keys = {
        "AWS_ACCESS_KEY_ID": "ASIANEWNEWNEWNEWNEWN",
        "AWS_SECRET_ACCESS_KEY": "secret-secret-secret",
        "AWS_SESSION_TOKEN": "session-session",
    }
    redactor = Redactor(key=b"k" * 32)
    found = apply(credentials(FromEnvironment("AWS_ACCESS_KEY_ID"), redactor=redactor, environ=keys), request, "bedrock")
    assert b"Credential=ASIANEWNEWNEWNEWNEWN/" in found[b"authorization"]
    assert "secret-secret" not in redactor.text("secret-secret-secret")
    with pytest.raises(NoCredential, match="AWS_SECRET_ACCESS_KEY is not"):
        apply(credentials(FromEnvironment("AWS_ACCESS_KEY_ID"), environ={"AWS_ACCESS_KEY_ID": "A"}), request, "bedrock")


@pytest.mark.parametrize(
    ("source", "environ", "message"),
    [
        (FromEnvironment("MISSING"), {}, r"the variable MISSING \(--credential-env\) is not set"),
        (FromEnvironment("K"), {"K": " "}, "is not set"),
        (FromEnvironment("K"), {"K": "s3cr3t s3cr3t"}, "white space"),
    ],
)
def test_a_source_that_has_none_is_named(source: CredentialSource, environ: dict[str, str], message: str) -> None:
    """STYLE 6: what happened, to which thing, and a hint; never the value."""
    with pytest.raises(NoCredential, match=message) as raised:
        apply(credentials(source, environ=environ))
    assert "s3cr3t" not in "".join(traceback.format_exception(raised.value))


PYTHON = quote(sys.executable)


async def run(code: str, timeout_s: float = 20.0, **environ: str) -> bytes:
    return await run_command(FromCommand(f"{PYTHON} -S -c {quote(code)}", timeout_s), environ)


def test_a_command_gets_the_callers_environment_and_its_output_is_taken() -> None:
    """`--credential-command`: a shell command, as for git's helpers."""
    assert asyncio.run(run("import os; print(os.environ['WHO'])", WHO="me")) == b"me\n"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("print('s3cr3t'); raise SystemExit(3)", "status 3"),
        ("import sys; sys.stderr.write('s3cr3t'); raise SystemExit(1)", "status 1"),
        (f"print('s3cr3t' * {OUTPUT_BYTES})", "more than"),
    ],
)
def test_a_command_that_fails_is_told_without_what_it_wrote(code: str, message: str) -> None:
    """Issue 3, item 8: its bytes reach no error."""
    with pytest.raises(NoCredential, match=message) as raised:
        asyncio.run(run(code))
    assert "s3cr3t" not in str(raised.value)
    assert raised.value.hint is not None


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    """Nothing of ours is left running."""
    held = tmp_path / "held"  # a pipe that ends when the last of them is gone
    os.mkfifo(held)
    reader = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    command = FromCommand(f"(echo begun; exec sleep 600) > {quote(str(held))} & wait", 1.0)
    with pytest.raises(NoCredential, match="took longer than"):
        asyncio.run(run_command(command, {"PATH": "/usr/bin:/bin"}))
    os.set_blocking(reader, True)
    with os.fdopen(reader, "rb") as ends:
        assert ends.read() == b"begun\n"


def test_messages_do_not_quote_the_command() -> None:
    """A command line may hold a secret."""
    assert "s3cr3t" not in FromCommand("echo s3cr3t").told
