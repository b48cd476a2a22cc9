"""An envelope put together: of this machine now, and of a cassette."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from secondtake.cassettes import artifacts, envelope
from secondtake.cassettes.canonical import Json
from secondtake.cassettes.envelope import UNKNOWN, Envelope, Layer
from secondtake.cassettes.exchange import Digest, Side
from secondtake.cassettes.stages import staged
from secondtake.harness.driving import NOTED, version_of
from secondtake.harness.envelope import files
from secondtake.harness.envelope.machine import Machine, timeouts
from secondtake.harness.envelope.programs import versions
from secondtake.harness.envelope.repository import of_stage
from secondtake.harness.envelope.traffic import traffic_layers

if TYPE_CHECKING:
    from secondtake.cassettes.cassette import Cassette
    from secondtake.cassettes.redact import Redactor
    from secondtake.harness.drivers import Driver
    from secondtake.harness.plan import Stage

KIND = artifacts.ENVELOPE
"""Of the artifact in a cassette, and the key of its digest in the closing meta."""

REAL = "real"
_TURNS = frozenset(("--max-turns", "--max-steps", "--max-iterations", "--step-limit", "--max-session-turns"))
"""Options by which agents bound their loop."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What of a run is decided here, and not found on the machine."""

    agent: tuple[str, ...]
    driver: Driver | None = None
    workspace: Path | None = None
    """Where its files are; None: the stage's directory."""
    home: Path | None = None
    repository: Mapping[str, Json] = field(default_factory=dict)
    """The fields of the repository, of who has captured it."""
    routes: Mapping[str, str] = field(default_factory=dict)
    clock: str = REAL
    random: str = REAL
    open_files: int | None = None
    """The soft limit that the agent gets."""


def envelope_now(stage: Stage, scene: Scene, redactor: Redactor, *, machine: Machine | None = None) -> Envelope:
    """Return what can be known before the agent starts; what only its traffic tells is unknown. Programs are asked for their versions."""
    root = stage.cwd if scene.workspace is None else scene.workspace
    home = stage.home if scene.home is None else scene.home
    driver = scene.driver

    def redact(content: bytes) -> bytes:
        return redactor.body(content, (), Side.REQUEST).content

    environment = (machine or Machine()).environment(stage.environ, open_files=scene.open_files)
    return envelope.of(
        {
            Layer.REPOSITORY: dict(scene.repository),
            Layer.INSTRUCTIONS: {"rules": files.digested(root, driver.rules, redact, home=home) if driver is not None else UNKNOWN},
            Layer.TOOLS: {
                "permissions": files.permissions(root, scene.agent, redact),
                "timeouts": timeouts(stage.environ),
                "mcp_config": files.mcp_config(root, redact),
            },
            Layer.ENVIRONMENT: {
                **environment,
                "programs": versions(stage.environ),
                "locks": files.locks(root, redact),
                "home": [name for name in driver.seed if (home / name).exists()] if driver is not None else UNKNOWN,
            },
            Layer.EXTERNAL: {
                "routes": {host: redactor.text(url) for host, url in sorted(scene.routes.items())},
                "clock": scene.clock,
                "random": scene.random,
            },
            Layer.ORCHESTRATOR: _orchestrator(stage, scene, redactor),
        }
    )


def keep_envelope(keep: Callable[[str, bytes], Digest], stage: Stage, scene: Scene, redactor: Redactor) -> Envelope:
    """Take the envelope and put it into a recording that has begun, by its `Writer.keep`."""
    taken = envelope_now(stage, scene, redactor)
    keep(KIND, envelope.encode(taken))
    return taken


def _orchestrator(stage: Stage, scene: Scene, redactor: Redactor) -> dict[str, Json]:
    driver = scene.driver
    program = PurePath(scene.agent[0]).name if scene.agent else UNKNOWN
    version = version_of(driver, scene.agent[0], stage.environ) if driver is not None and scene.agent else None
    return {
        "agent": driver.name if driver is not None else program,
        "version": version or UNKNOWN,
        "driver": driver.name if driver is not None else None,
        "command": [redactor.text(word) for word in scene.agent],
        "switches": {name: redactor.text(value) for name, value in sorted(driver.switched(stage.environ).items())} if driver else UNKNOWN,
        "loop_limit": loop_limit(scene.agent),
    }


def loop_limit(command: Sequence[str]) -> Json:
    """Return how many turns a command line allows; unknown where it does not say."""
    for word, following in zip(command, (*command[1:], ""), strict=False):
        name, equals, value = word.partition("=")
        if name in _TURNS:
            said = value if equals else following
            return int(said) if said.isdecimal() and len(said) < 10 else UNKNOWN
    return UNKNOWN


def envelope_of(cassette: Cassette) -> Envelope:
    """Return the envelope of a recording: as it was taken then, with what its traffic says. Older recordings have the traffic alone.

    Raises:
        Corrupt: recorded bytes are damaged, or the kept envelope is none.
        TooNew: a later version kept it.
    """
    machine = kept_envelope(cassette) or _told(cassette.meta)
    stage = staged(cassette)
    if stage is not None and (fields := of_stage(cassette, stage)):
        machine = envelope.merged(machine, envelope.of({Layer.REPOSITORY: fields}))
    return envelope.merged(machine, envelope.of(traffic_layers(cassette, cassette.meta)))


def kept_envelope(cassette: Cassette) -> Envelope | None:
    """Return the envelope that was taken while recording; None where none was. Raises as `envelope_of`."""
    digest = next((each.digest for each in cassette.artifacts if each.kind == KIND), None)
    return None if digest is None else envelope.decode(cassette.artifact(Digest(digest)))


def _told(meta: Mapping[str, object]) -> Envelope:
    """What any recording says about itself, of whatever age."""
    command = meta.get("command")
    words = [word for word in command if isinstance(word, str)] if isinstance(command, list | tuple) else []
    noted = meta.get(NOTED)
    driver: Mapping[str, object] = noted if isinstance(noted, Mapping) else {}
    routes = meta.get("routes")
    system, _, architecture = str(meta.get("platform", "")).partition(" ")
    orchestrator: dict[str, Json] = {
        "agent": _text(driver.get("name")) if driver else PurePath(words[0]).name if words else UNKNOWN,
        "version": _text(driver.get("version")),
        "driver": _text(driver.get("name")),
        "command": [*words] or UNKNOWN,
        "loop_limit": loop_limit(words),
    }
    if isinstance(switches := driver.get("switches"), Mapping):
        orchestrator["switches"] = {str(name): value if isinstance(value, str) else None for name, value in sorted(switches.items())}
    environment: dict[str, Json] = {"os": system or UNKNOWN, "architecture": architecture or UNKNOWN}
    if isinstance(seed := driver.get("seed"), list | tuple):
        environment["home"] = [name for name in seed if isinstance(name, str)]
    external: dict[str, Json] = {}
    if isinstance(routes, Mapping):
        external["routes"] = {str(host): str(url) for host, url in sorted(routes.items())}
    return envelope.of({Layer.ORCHESTRATOR: orchestrator, Layer.ENVIRONMENT: environment, Layer.EXTERNAL: external})


def _text(value: object) -> str:
    return value if isinstance(value, str) else UNKNOWN
