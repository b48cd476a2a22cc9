"""The demo's pieces: a failing repository, a small agent that knows nothing of us, and a scripted provider for it."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from secondtake.harness.demo.repository import prepare
from secondtake.harness.demo.scripts import CAREFUL, HASTY, TASK, script
from secondtake.harness.provider import Pacer, Provider, Script, make_identity, real_pace

__all__ = ["CAREFUL", "HASTY", "HOST", "TASK", "Running", "agent_command", "agent_environment", "prepare", "provider", "script"]

HOST = "api.provider.example"
"""The host the demo's agent calls. It does not exist: `--route` sends it to the scripted provider."""


@dataclass(frozen=True, slots=True)
class Running:
    """The provider while it runs. `ca_path` is what has to be trusted to reach `base_url`, None without TLS."""

    provider: Provider
    base_url: str
    ca_path: Path | None

    @property
    def route(self) -> str:
        """The value of `--route` that sends the agent's host here."""
        return f"{HOST}={self.base_url}"


@asynccontextmanager
async def provider(
    directory: Path, *, tls: bool = True, pace: Pacer = real_pace, played: Script | None = None, port: int = 0
) -> AsyncIterator[Running]:
    """The scripted provider on loopback, on `port` or a free one; with `tls`, its CA is written to `directory`/provider-ca.pem.

    The certificate is good for 127.0.0.1, ::1, localhost and `HOST`. `played` replaces the demo's script.

    Raises:
        OSError: the port is in use.
    """
    identity = make_identity(["127.0.0.1", "::1", "localhost", HOST]) if tls else None
    ca_path = None
    if identity is not None:
        ca_path = directory / "provider-ca.pem"
        ca_path.write_bytes(identity.ca_pem)
    async with Provider(played or script(), identity.context if identity else None, pace, port=port) as running:
        yield Running(running, running.base_url, ca_path)


def agent_command(model: str = HASTY, task: str = TASK) -> list[str]:
    """How the agent is started. `-I`: the interpreter reads no PYTHON variables and nothing from the workspace."""
    return [sys.executable, "-I", str(Path(__file__).with_name("agent.py")), "--model", model, task]


def agent_environment(base: Mapping[str, str], *, base_url: str = f"https://{HOST}") -> dict[str, str]:
    """`base` with what the agent needs: a key that is none, where the provider is, and a `python3` for its tool calls."""
    path = os.pathsep.join(p for p in (str(Path(sys.executable).parent), base.get("PATH", os.defpath)) if p)
    added = {
        "ANTHROPIC_API_KEY": "sk-ant-demo-no-key-needed-0000",
        "ANTHROPIC_BASE_URL": base_url,
        "PATH": path,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return {**base, **added}
