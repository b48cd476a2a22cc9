"""One SDK's program behind the real proxy, in this process, with the scripted provider as the world.

The program is a process of its own, with the SDK's own defaults. All it is given is a key, and what `record` and `replay` tell every
agent; each host that it asks is routed to the provider on loopback.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import IO, Any

from secondtake.cassettes import events
from secondtake.cassettes.cassette import Cassette
from secondtake.cassettes.exchange import Exchange, Side
from secondtake.cassettes.store import Store
from secondtake.harness.plan import HostRules, Naming, Recast, Stage, Where
from secondtake.harness.provider import Provider, Script, make_identity
from secondtake.harness.results import Recorded, Replayed, Retaken
from secondtake.harness.session import record_session, replay_session, retake_session
from secondtake.proxy.policy import Pace
from tests.sdks.scripts import SCENES, script

PROGRAMS = Path(__file__).with_name("programs")

PATIENCE_S = 120
"""Far above what a program takes; only a hang reaches it."""


@dataclass(frozen=True, slots=True)
class Sdk:
    """One SDK, or one of its ways to speak.

    `host` is the one the SDK asks by itself: who a name is a pin for depends on it. `model` is what its program asks for, `served`
    what the answers name then, `pin` the model that takes its place.
    """

    program: str
    adapter: str
    host: str
    model: str
    pin: str
    served: str = ""
    credential: str | None = None
    """The variable a retake has to be told, where a request is signed and a swapped one must be signed anew."""

    @property
    def others(self) -> tuple[str, ...]:
        """The hosts the program also asks, and that have no model."""
        return (*((f"bedrock.{AWS}",) if self.adapter == "bedrock" else ()), "web.example")


AWS = "us-east-1.amazonaws.com"

SDKS = (
    Sdk("messages", "anthropic", "api.anthropic.com", "claude-sonnet-5", "claude-opus-4-6"),
    Sdk("chat", "openai-chat", "api.openai.com", "gpt-5", "gpt-4.1-2025-04-14", "gpt-5-2025-08-07"),
    Sdk("responses", "openai-responses", "api.openai.com", "gpt-5", "gpt-4.1-2025-04-14", "gpt-5-2025-08-07"),
    Sdk("contents", "gemini", "generativelanguage.googleapis.com", "gemini-2.5-pro", "gemini-2.0-flash-001"),
    *(
        Sdk(
            *(program, "bedrock", f"bedrock-runtime.{AWS}"),
            "anthropic.claude-sonnet-4-5-20250929-v1:0",
            "anthropic.claude-haiku-4-5-20251001-v1:0",
            credential="AWS_ACCESS_KEY_ID",
        )
        for program in ("converse", "invoke")
    ),
)

KEYS = {
    "ANTHROPIC_API_KEY": "sk-ant-test-0123456789abcdef",
    "OPENAI_API_KEY": "sk-test-0123456789abcdef",
    "GEMINI_API_KEY": "AIzaTest-0123456789abcdef",
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
}
"""Credentials that no one accepts but the scripted provider."""


@dataclass(frozen=True, slots=True)
class Retake:
    """What came of a retake: its result, the objects the program printed, and whom it reached."""

    result: Retaken
    said: dict[str, Any]
    live: Provider
    trap: Provider


@dataclass(slots=True)
class World:
    """A store, and a provider that can be started again with another script."""

    folder: Path
    sdk: Sdk
    provider: Provider
    ca: Path
    outputs: int = 0
    started_s: float = field(default_factory=time.monotonic)

    @property
    def store(self) -> Store:
        return Store(self.folder / "store")

    def stage(self) -> Stage:
        environ = {
            **{name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH"}},
            **KEYS,
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "SSL_CERT_FILE": str(self.ca),
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_RETRY_MODE": "standard",
        }
        return Stage(
            store=self.store,
            environ=environ,
            cwd=self.folder,
            home=self.folder,
            now=lambda: datetime.now(UTC),
            monotonic_s=time.monotonic,
            random=Random(1),
            again="",
            version="0",
        )

    def routes(self) -> HostRules:
        """All names are this provider's: nothing here ever leaves loopback."""
        return HostRules(routes=dict.fromkeys((self.sdk.host, *self.sdk.others), self.provider.base_url))

    def command(self, scenes: tuple[str, ...] = SCENES) -> list[str]:
        return [sys.executable, str(PROGRAMS / f"{self.sdk.program}.py"), *scenes]

    def said(self, run: Callable[[IO[bytes]], Awaitable[Any]]) -> tuple[Any, dict[str, Any]]:
        """Run something that gets a file for the program's output; its result, and the objects the program printed."""
        self.outputs += 1
        path = self.folder / f"said-{self.outputs}"

        async def bounded() -> Any:
            return await asyncio.wait_for(_ran(), PATIENCE_S)

        async def _ran() -> Any:
            with path.open("wb") as out:
                return await run(out)

        result = asyncio.run(bounded())
        return result, json.loads(path.read_bytes())

    def record(self, name: str) -> tuple[Recorded, dict[str, Any]]:
        """Record the program, with the provider running only for that time."""

        async def run(out: IO[bytes]) -> Recorded:
            async with self.provider:
                return await record_session(self.stage(), self.routes(), Naming(name), self.command(), stdout=out)

        return self.said(run)

    def replay(self, name: str) -> tuple[Replayed, dict[str, Any]]:
        """Replay it, with no provider running."""

        async def run(out: IO[bytes]) -> Replayed:
            return await replay_session(self.stage(), name, self.command(), pace=Pace.FAST, where=Where(in_place=True), stdout=out)

        return self.said(run)

    def retake(self, name: str, recast: Recast, *, scenes: tuple[str, ...] = SCENES, served: str = "") -> Retake:
        """Run the program with another model in the part.

        The model's host is a provider; every other name leads to one that nobody may reach. `scenes`: not all of them. `served`: what the
        model in the part answers as.
        """
        live = Provider(script(self.sdk.model, self.sdk.pin, second_served=served), self.provider.tls)
        trap = Provider(Script(), self.provider.tls)

        async def run(out: IO[bytes]) -> Retaken:
            async with live, trap:
                rules = HostRules(routes={self.sdk.host: live.base_url, **dict.fromkeys(self.sdk.others, trap.base_url)})
                return await retake_session(
                    *(self.stage(), name, recast, rules, self.command(scenes)),
                    pace=Pace.FAST, where=Where(in_place=True), command="secondtake retake", stdout=out,
                )  # fmt: skip

        return Retake(*self.said(run), live, trap)

    @contextmanager
    def cassette(self, name: str) -> Iterator[Cassette]:
        opened = self.store.open(name)
        try:
            yield opened
        finally:
            opened.close()

    def conversation(self, name: str, scene: str) -> list[dict[str, Any]]:
        """The provider-neutral events of one scene of a cassette, each as its line of JSON says it."""
        with self.cassette(name) as cassette:
            content = events.contents(cassette)
            wanted = f"Please: {scene}.".encode()
            of_scene: list[Exchange] = []
            for row in cassette.rows:
                exchange = cassette.exchange(row.seq)
                if wanted in (content(exchange, Side.REQUEST) or b""):
                    of_scene.append(exchange)
            return [json.loads(events.line(event)) for event in events.events(of_scene, content)]


def world_in(folder: Path, sdk: Sdk, made: Script | None = None) -> World:
    """A world of one SDK; nothing runs yet."""
    identity = make_identity(["127.0.0.1", sdk.host, *sdk.others])
    ca = folder / "provider-ca.pem"
    ca.write_bytes(identity.ca_pem)
    return World(folder, sdk, Provider(made or script(sdk.model, served=sdk.served), identity.context), ca)
