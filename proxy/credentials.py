"""The real credential of a retake: fetched from where the user keeps it, put on model calls only, for the one host it is for.

It is asked for when the first call needs it, kept in memory, and asked for again when it has ended or was refused (401). The redactor
learns it before anything else sees it. Messages name the option and the variable, never the value, nor what the command wrote.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Protocol

from secondtake.cassettes.authorise import Secret, authorised, read_secret, without_credentials
from secondtake.cassettes.errors import BadInput, RecordedError
from secondtake.cassettes.exchange import Request
from secondtake.cassettes.kinds import value_kind
from secondtake.cassettes.secrets import environment_kind

OUTPUT_BYTES = 64 * 1024
"""Most a command may write; a credential is shorter."""

TIMEOUT_S = 60.0
"""How long a command may take: some ask a person to touch a key."""

EARLY_S = 60.0
"""So long before its end a credential is asked for anew."""


class NoCredential(RecordedError):
    """There is none, or the source of it failed. Nothing was sent."""


class Learns(Protocol):
    """The part of the redactor that is told of it."""

    def learn(self, kind: str, value: bytes, name: str = "") -> None: ...


@dataclass(frozen=True, slots=True)
class FromEnvironment:
    """`--credential-env NAME`: a variable. For AWS_ACCESS_KEY_ID the two beside it are read as well."""

    name: str

    @property
    def told(self) -> str:
        """What messages call it."""
        return f"the variable {self.name} (--credential-env)"


@dataclass(frozen=True, slots=True)
class FromCommand:
    """`--credential-command CMD`: what a shell command writes, which the user gave. `timeout_s` ends it."""

    command: str
    timeout_s: float = TIMEOUT_S

    @property
    def told(self) -> str:
        """What messages call it: not by its text, which may hold a secret."""
        return "the command of --credential-command"


type CredentialSource = FromEnvironment | FromCommand
type Run = Callable[[FromCommand, Mapping[str, str]], Awaitable[bytes]]


class Credentials:
    """The one credential of a retake.

    `source` None: calls are sent without any (a gateway that asks for none). `hosts`: where it may go, HOST or HOST:PORT as requests name
    it; None where a gateway takes every call, which then is `elsewhere`: what names the old account is left out too.
    """

    def __init__(
        self,
        source: CredentialSource | None,
        *,
        hosts: frozenset[str] | None,
        environ: Mapping[str, str],
        redactor: Learns,
        now: Callable[[], datetime],
        elsewhere: bool = False,
        run: Run | None = None,
    ) -> None:
        self._source = source
        self._hosts = hosts
        self._environ = environ
        self._redactor = redactor
        self._now = now
        self._elsewhere = elsewhere
        self._run = run or run_command
        self._held: Secret | None = None
        self._asking = asyncio.Lock()
        self.fetched = 0
        """How often the source was asked."""

    async def apply(self, adapter: str, request: Request, content: bytes) -> Request:
        """The request with the real credential in place of the agent's; `content` is the body as it is sent.

        Raises:
            NoCredential: the source has none, or failed.
            BadInput: the call is for another host than the credential, or of a form it cannot be put on.
        """
        if not self._covers(request):
            raise BadInput(
                f"the credential is not for {request.host}",
                hint="model calls to another host than the recorded one need --gateway, or a retake of their own",
            )
        if self._source is None:
            return without_credentials(request, elsewhere=self._elsewhere)
        secret = await self._current(self._source)
        for value in secret.values:  # the newest are never forgotten
            self._learn(value, self._source)
        return authorised(adapter, request, content, secret, self._now(), elsewhere=self._elsewhere)

    def answered(self, status: int) -> None:
        """What came of a call with it. After a 401 the next call asks the source anew: the agent's own retry, or its next turn.

        AWS says 403 of temporary keys that have ended (ExpiredTokenException).
        """
        held = self._held
        if held is not None and (status == HTTPStatus.UNAUTHORIZED or (status == HTTPStatus.FORBIDDEN and held.aws is not None)):
            self._held = None

    def _covers(self, request: Request) -> bool:
        return self._hosts is None or not self._hosts.isdisjoint((request.host, f"{request.host}:{request.port}"))

    async def _current(self, source: CredentialSource) -> Secret:
        async with self._asking:  # calls that run side by side ask once
            held = self._held
            if held is None or (held.expires_s is not None and self._now().timestamp() > held.expires_s - EARLY_S):
                held = self._held = await self._fetch(source)
            return held

    async def _fetch(self, source: CredentialSource) -> Secret:
        self.fetched += 1
        try:
            match source:
                case FromEnvironment():
                    secret = self._from_environment(source)
                case FromCommand():
                    output = await self._run(source, self._environ)
                    secret = read_secret(output)
        except BadInput as error:
            raise NoCredential(f"{source.told}: {error}", hint=error.hint) from None
        return secret

    def _from_environment(self, source: FromEnvironment) -> Secret:
        text = self._environ.get(source.name, "")
        if not text.strip():
            raise NoCredential(f"{source.told} is not set", hint=f"export {source.name}=…")
        value = text.encode("utf-8", "surrogateescape")
        if source.name == "AWS_ACCESS_KEY_ID":
            return _aws(self._environ)
        return read_secret(value)

    def _learn(self, value: bytes, source: CredentialSource) -> None:
        kind = value_kind(value)
        if kind is None and isinstance(source, FromEnvironment):
            kind = environment_kind(source.name)
        name = f"env:{source.name}" if isinstance(source, FromEnvironment) else "credential-command"
        self._redactor.learn(kind or "environment-secret", value, name)


def _aws(environ: Mapping[str, str]) -> Secret:
    from secondtake.cassettes.sigv4 import Credentials as Keys

    key, secret, token = (environ.get(name, "").strip() for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"))
    if not secret:
        raise NoCredential("AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not", hint="export AWS_SECRET_ACCESS_KEY=…")
    return Secret(aws=Keys(key, secret, token or None))


async def run_command(source: FromCommand, environ: Mapping[str, str]) -> bytes:
    """What the command writes to its standard output. Its error output is not looked at: it may say the secret.

    Raises:
        NoCredential: it could not be started, ended with another status than 0, wrote too much, or took too long (it and its children
            are killed then).
    """
    hint = "run the command by hand to see what it says"
    try:
        process = await asyncio.create_subprocess_shell(
            source.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=dict(environ),
            start_new_session=True,
        )
    except OSError as error:
        raise NoCredential(f"{source.told} cannot be started: {error.strerror}") from error
    assert process.stdout is not None
    try:
        async with asyncio.timeout(source.timeout_s):
            output = await _bounded(process.stdout)
            if output is None:
                raise NoCredential(f"{source.told} wrote more than {OUTPUT_BYTES} bytes", hint=hint)
            status = await process.wait()
    except BaseException as error:
        await _ended(process)
        if isinstance(error, TimeoutError):
            raise NoCredential(f"{source.told} took longer than {source.timeout_s:g} s", hint=hint) from None
        raise
    if status != 0:
        raise NoCredential(f"{source.told} ended with status {status}", hint=hint)
    return output


async def _bounded(stream: asyncio.StreamReader) -> bytes | None:
    """All of it, or None where that is too much."""
    held = bytearray()
    while data := await stream.read(OUTPUT_BYTES):
        held += data
        if len(held) > OUTPUT_BYTES:
            return None
    return bytes(held)


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Nothing of it is left running."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
